//===- RowKernels.h - kernels that map rows to rows -------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H

#include "gdn/Dialect/Gdn/IR/Gdn.h"

namespace mlir::gdn {

LogicalResult buildL2NormKernel(L2NormOp op);
LogicalResult buildGatedRMSNormKernel(GatedRMSNormOp op);
LogicalResult buildGateKernel(GateOp op);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H
