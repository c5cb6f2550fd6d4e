//===- Passes.h - conversion passes -----------------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_PASSES_H
#define GDN_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::gdn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

#endif // GDN_CONVERSION_PASSES_H
