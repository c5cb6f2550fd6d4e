//===- RowKernels.h - kernels that map rows to rows -------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H

#include "KernelBuilder.h"
#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::gdn {

/// How rows of `size` elements of `type` lie in a block.
struct RowShape {
  RowShape(int64_t size, Type type);

  /// One row in one warp, each element in one thread: for kernels in which a
  /// thread reads what it overwrites.
  static RowShape singleRow(Type type);

  gdn_tile::KernelAttr getKernelAttr(MLIRContext *context) const;

  int64_t warps, lanes, elementsPerChunk, rows, cols;

private:
  RowShape() = default;
};

/// Fails with an error at the op unless all operands are memrefs of identity
/// layout; `input` may be a slice.
LogicalResult verifyRowsForm(Operation *op, Value input = {});

/// All dimensions but the last `keep` as one.
Value flattenRows(ImplicitLocOpBuilder &host, Value value, int64_t keep);

/// Grid of row blocks, times `factor`.
Value rowGrid(ImplicitLocOpBuilder &host, Value flat, int64_t rows,
              int64_t factor);

Value activate(KernelBuilder &k, Activation activation, Value x);

/// gdn.gate of a projection to which the bias is added; see there for `bound`.
Value emitLogGate(KernelBuilder &k, Value x, Value logRate,
                  std::optional<APFloat> bound);

LogicalResult buildL2NormKernel(L2NormOp op);
LogicalResult buildGatedRMSNormKernel(GatedRMSNormOp op);
LogicalResult buildGateKernel(GateOp op);
/// `norm`, if there is one, is what findConvNorm finds.
LogicalResult buildShortConvKernels(ShortConvOp op, L2NormOp norm);

/// The op behind a convolution that normalises the first channels of its
/// result, head by head and in place, if the kernels of the convolution can do
/// it on what they store.
L2NormOp findConvNorm(ShortConvOp op);

/// True for a memref of floats, of identity layout, whose rows fit a block.
bool hasRows(Value value);

/// True for a linalg op whose body is elementwise arithmetic on floats; its
/// operands are whole, or the first heads or channels of something that is.
bool isElementwiseOnFloats(linalg::LinalgOp op);

/// The body of such an op on scalars or fragments, one per block argument; null
/// for an argument without use. `like` has the shape.
Value applyBody(KernelBuilder &k, linalg::LinalgOp op,
                ArrayRef<Value> arguments, Type like);

/// Kernels of such ops. An operand may
/// also be one row for all, or one value per row. Other forms stay as they are.
void buildElementwiseKernel(linalg::LinalgOp op);

/// linalg.fill and memref.copy of floats, which bufferization leaves where a
/// function makes a zero state itself or needs a destination twice. Other forms
/// stay as they are.
void buildFillKernel(linalg::FillOp op);
void buildCopyKernel(memref::CopyOp op);

/// Erases a copy of a part of memory onto itself, which bufferization leaves
/// where an op works in place on a slice, with the views made for it.
void eraseSelfCopy(memref::CopyOp op);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_ROWKERNELS_H
