//===- Passes.h - gdn_tile passes -------------------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_H
#define GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

#endif // GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_H
