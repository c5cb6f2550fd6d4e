//===- SizeChecks.h - run-time checks of dynamic sizes ----------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SIZECHECKS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SIZECHECKS_H

#include "gdn/Dialect/Gdn/IR/Gdn.h"

namespace mlir::gdn {

/// Inserts a cf.assert in front of a gdn op on memrefs for each pair of sizes
/// that must be equal and is not known to be.
void checkDynamicSizes(Operation *op);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SIZECHECKS_H
