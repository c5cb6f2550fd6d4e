//===- MmaPatterns.cpp - matrix products ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"
#include "MatrixMoves.h"
#include "MmaEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// The B operand in shared memory, K x N or (transposed) N x K.
struct TileOperand {
  SharedLayout layout;
  Value base;
  bool transposed;
  int64_t k, n;
  bool hasPanels;
};

/// 16-bit: the pairs of accumulator columns are the A operand as they stand;
/// one ldmatrix brings B for two column tiles of one k step of 16: of panels a
/// row for each lane.
void emitHalfMma(Emitter &e, NVVM::MMATypes type, ValueRange a,
                 const TileOperand &b, MutableArrayRef<Value> acc,
                 int64_t numThreads) {
  // Lane bit 3 chooses the half of the 16 k's, bit 4 that of the 16 columns.
  SmallVector<ThreadTerm> ks{{3, 1, 8}}, ns{{4, 1, 8}};
  (b.transposed ? ns : ks).push_back({0, 7, 1});
  ThreadPart kPart = ThreadPart::get(e, ks, numThreads);
  ThreadPart nPart = ThreadPart::get(e, ns, numThreads);
  ThreadPart rows = b.transposed ? nPart : kPart;
  ThreadPart columns = b.transposed ? kPart : nPart;
  if (b.hasPanels) {
    rows = ThreadPart::get(e, {{0, 31, 1}}, numThreads);
    columns = ThreadPart();
  }
  SharedAddress address(e, b.layout, b.base, rows, columns);
  Type operandType = type == NVVM::MMATypes::f16
                         ? VectorType::get(2, e.builder.getF16Type())
                         : e.i32();
  for (int64_t k = 0; k < b.k; k += 16) {
    SmallVector<Value> left;
    for (int64_t i = 0; i < 4; ++i)
      left.push_back(
          e.bitcast(a[k / 4 + (b.hasPanels ? i ^ 2 : i)], operandType));
    for (int64_t n = 0; n < b.n; n += 16) {
      Value pointer = b.hasPanels    ? address.at(getPanelRow(n, k, b.n), 0)
                      : b.transposed ? address.at(n, k)
                                     : address.at(k, n);
      SmallVector<Value> right;
      for (Value word : loadMatrices(e, pointer, b.hasPanels || !b.transposed))
        right.push_back(e.bitcast(word, operandType));
      for (int64_t half : {0, 1})
        emitMma(e, 16, type, left, ArrayRef(right).slice(2 * half, 2),
                acc.slice((n + 8 * half) / 2, 4));
    }
  }
}

/// float32 as TF32 with permuted k: columns 2q and 2q + 1 of an accumulator
/// tile serve as the k slots q and q + 4, so B is read at rows 2q and 2q + 1.
void emitFloatMmaTile(Emitter &e, int64_t passes, ValueRange a,
                      const TileOperand &b, MutableArrayRef<Value> acc,
                      int64_t numThreads) {
  ThreadPart kPart = ThreadPart::get(e, {{0, 3, 2}}, numThreads);
  ThreadPart nPart = ThreadPart::get(e, {{2, 7, 1}}, numThreads);
  SharedAddress address(e, b.layout, b.base, b.transposed ? nPart : kPart,
                        b.transposed ? kPart : nPart);
  for (int64_t k = 0; k < b.k; k += 8) {
    ValueRange tile = a.slice(k / 2, 4);
    FloatParts left =
        splitOperand(e, {tile[0], tile[2], tile[1], tile[3]}, passes);
    for (int64_t n = 0; n < b.n; n += 8) {
      SmallVector<Value> loaded;
      if (b.transposed) {
        for (Value word : e.loadWords(address.at(n, k), 2, Value()))
          loaded.push_back(e.bitcast(word, e.f32()));
      } else {
        loaded = {e.loadF32(address.at(k, n)), e.loadF32(address.at(k + 1, n))};
      }
      FloatParts right = splitOperand(e, loaded, passes);
      MutableArrayRef<Value> to = acc.slice(n / 2, 4);
      emitFloatMma(e, passes, left, right, to);
    }
  }
}

struct MmaPattern : TilePattern<MmaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto fragment = cast<VectorType>(op.getA().getType());
    auto tile = cast<MemRefType>(op.getB().getType());
    Type element = fragment.getElementType();
    bool transposed = op.getTransposeB();
    TileOperand b{SharedLayout(tile),
                  adaptor.getB().front(),
                  transposed,
                  fragment.getDimSize(1),
                  op.getFragmentType().getDimSize(1),
                  op.hasPanels()};
    SmallVector<Value> acc;
    if (op.getAcc())
      acc = SmallVector<Value>(adaptor.getAcc());
    else
      acc.assign(kernel.getLayout(op.getFragmentType()).getNumRegisters(),
                 e.cF32(0.0));
    if (element.isF32())
      emitFloatMmaTile(e, op.getPasses(), adaptor.getA(), b, acc,
                       kernel.getEndThread());
    else
      emitHalfMma(e,
                  element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16,
                  adaptor.getA(), b, acc, kernel.getEndThread());
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }
};

} // namespace

void mlir::gdn::populateMmaPatterns(const KernelLowering &kernel,
                                    RewritePatternSet &patterns) {
  patterns.add<MmaPattern>(kernel, patterns.getContext());
}
