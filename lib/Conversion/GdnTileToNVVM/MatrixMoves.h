//===- MatrixMoves.h - 8x8 matrices of 16-bit elements ----------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix, stmatrix and movmatrix: moves of 8x8 matrices between shared memory
// and the accumulator layout.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_MATRIXMOVES_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_MATRIXMOVES_H

#include "Emitter.h"

namespace mlir::gdn {

/// Four matrices, one register each; lane l gives the address of row l % 8 of
/// matrix l / 8.
SmallVector<Value> loadMatrices(Emitter &emitter, Value address,
                                bool transpose);
void storeMatrices(Emitter &emitter, Value address, ValueRange matrices,
                   bool transpose);
/// The transpose of one matrix in registers.
Value transposeMatrix(Emitter &emitter, Value matrix);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_MATRIXMOVES_H
