//===- Passes.td - gdn_tile passes -------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD
