//===- SumPatterns.cpp - sums of fragments --------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "MmaEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// Sum by a balanced tree: short chains, and an order that does not depend on
/// anything but the count.
Value sumTree(Emitter &e, ArrayRef<Value> values) {
  if (values.size() == 1)
    return values[0];
  size_t half = (values.size() + 1) / 2;
  return e.fadd(sumTree(e, values.take_front(half)),
                sumTree(e, values.drop_front(half)));
}

/// Adds up the lanes that differ in the lane bits of `terms`.
Value sumLanes(Emitter &e, Value value, ArrayRef<ThreadTerm> terms) {
  int64_t bits = 0;
  for (const ThreadTerm &term : terms)
    if (term.shift < 5)
      bits |= term.mask << term.shift;
  for (int64_t bit = 1; bit < 32; bit *= 2)
    if (bits & bit)
      value = e.fadd(value, e.shuffleXor(value, bit));
  return value;
}

struct SumPattern : TilePattern<SumOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(SumOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto from = cast<VectorType>(op.getValue().getType());
    auto to = cast<VectorType>(op.getResult().getType());
    FragmentLayout layout = kernel.getLayout(from);
    bool overRows = to.getDimSize(0) == 1 && from.getDimSize(0) != 1;
    bool overCols = to.getDimSize(1) == 1 && from.getDimSize(1) != 1;
    ValueRange value = adaptor.getValue();
    int64_t numRows = layout.getRowOffsets().size();
    int64_t numCols = layout.getColOffsets().size();
    SmallVector<Value> sums;
    for (int64_t i = 0, n = overRows ? numCols : numRows; i < n; ++i) {
      SmallVector<Value> terms;
      for (int64_t j = 0, m = overRows ? numRows : numCols; j < m; ++j)
        terms.push_back(value[overRows ? layout.getRegister(j, i)
                                       : layout.getRegister(i, j)]);
      Value sum = sumTree(e, terms);
      if (overRows)
        sum = sumLanes(e, sum, layout.getRowTerms());
      else if (overCols)
        sum = sumLanes(e, sum, layout.getColTerms());
      sums.push_back(sum);
    }
    if (overRows && kernel.kernel.getWarps() > 1)
      sums = sumWarps(e, op, to, sums);
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }

private:
  /// Each warp writes its sums to a row of the scratch space; then every thread
  /// adds up its columns over the warps, in their order.
  SmallVector<Value> sumWarps(Emitter &e, SumOp op, VectorType to,
                              ArrayRef<Value> sums) const {
    FragmentLayout layout = kernel.getLayout(to);
    int64_t numCols = to.getDimSize(1), warps = kernel.kernel.getWarps();
    Value columns = kernel.getScratch(e, op);
    if (Value col = kernel.getColBase(e, layout))
      columns = e.advance(columns, e.mulC(col, sizeof(float)));
    Value own = e.advance(columns, e.mulC(e.warpId(), numCols * sizeof(float)));
    // One of the lanes that hold the same columns writes them.
    int64_t replicated = layout.getReplicatedThreadBits() & 31;
    Value owner =
        replicated ? e.equalsC(e.andC(e.threadId(), replicated), 0) : Value();
    for (auto [i, sum] : llvm::enumerate(sums))
      e.storeWords(e.advance(own, layout.colOffset(i) * sizeof(float)),
                   e.bitcast(sum, e.i32()), owner);
    e.barrier();
    SmallVector<Value> totals;
    for (size_t i = 0; i < sums.size(); ++i) {
      Value total;
      for (int64_t warp = 0; warp < warps; ++warp) {
        int64_t offset = (warp * numCols + layout.colOffset(i)) * sizeof(float);
        Value part = e.loadF32(e.advance(columns, offset));
        total = total ? e.fadd(total, part) : part;
      }
      totals.push_back(total);
    }
    // The scratch space may be written again at once, in a loop.
    e.barrier();
    return totals;
  }
};

// The pairs of registers of 16 rows and 16 columns are the left operand of a
// product as they stand, and the first and third, or second and fourth, the
// right one: the same eight rows.
struct SumSquaresPattern : TilePattern<SumSquaresOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(SumSquaresOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto type = cast<VectorType>(op.getValue().getType());
    FragmentLayout layout = kernel.getLayout(type);
    bool isBF16 = type.getElementType().isBF16();
    Type pairType =
        isBF16 ? e.i32() : VectorType::get(2, rewriter.getF16Type());
    // Of its rows, 8 apart, a thread has this element of the diagonal, or a
    // neighbour of the four that share them.
    Value lane = e.andC(e.opaqueThreadId(), 31);
    Value isSecond = e.equalsC(e.andC(lane, 4), 4);
    Value owner = e.add(e.andC(lane, 28), e.shrC(lane, 3));
    SmallVector<Value> sums;
    for (int64_t row = 0, n = layout.getRowOffsets().size(); row < n;
         row += 2) {
      SmallVector<Value> acc(8, e.cF32(0.0));
      for (int64_t k = 0; k < type.getDimSize(1); k += 16) {
        SmallVector<Value> left;
        for (int64_t i = 0; i < 4; ++i) {
          int64_t at = layout.getRegister(row + i % 2, k / 4 + i / 2 * 2);
          left.push_back(e.bitcast(adaptor.getValue()[at / 2], pairType));
        }
        for (int64_t half : {0, 1})
          emitMma(e, 16, isBF16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16,
                  left, {left[half], left[half + 2]},
                  MutableArrayRef(acc).slice(4 * half, 4));
      }
      for (int64_t half : {0, 1})
        sums.push_back(e.shuffleFrom(
            e.select(isSecond, acc[6 * half + 1], acc[6 * half]), owner));
    }
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }
};

} // namespace

void mlir::gdn::populateSumPatterns(const KernelLowering &kernel,
                                    RewritePatternSet &patterns) {
  patterns.add<SumPattern, SumSquaresPattern>(kernel, patterns.getContext());
}
