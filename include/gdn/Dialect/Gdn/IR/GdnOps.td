//===- GdnOps.td - all ops of the gdn dialect --------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNOPS_TD
#define GDN_DIALECT_GDN_IR_GDNOPS_TD

include "gdn/Dialect/Gdn/IR/GdnRecurrenceOp.td"
include "gdn/Dialect/Gdn/IR/GdnMixerOps.td"
include "gdn/Dialect/Gdn/IR/GdnChunkOps.td"

#endif // GDN_DIALECT_GDN_IR_GDNOPS_TD
