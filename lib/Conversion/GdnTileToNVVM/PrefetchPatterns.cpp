//===- PrefetchPatterns.cpp - hints to the second-level cache -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// Each thread names lines of rows, as many as it takes.
struct PrefetchPattern : TilePattern<PrefetchOp> {
  using TilePattern::TilePattern;

  static constexpr int64_t kLineBytes = 128;

  LogicalResult
  matchAndRewrite(PrefetchOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto source = cast<MemRefType>(op.getSource().getType());
    int64_t bytes = source.getElementTypeBitWidth() / 8;
    int64_t rowBytes = getStaticStrides(source)[op.getDims()[0]] * bytes;
    int64_t perRow = llvm::divideCeil(op.getShape()[1] * bytes, kLineBytes);
    int64_t total = op.getShape()[0] * perRow;
    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index.front());
    Value origin =
        getGlobalAddress(e, adaptor.getSource().front(), source, indices);
    ThreadSet threads = kernel.getThreads(e, op);
    for (int64_t first = 0; first < total; first += threads.count) {
      Value index = e.addC(threads.id, first), line = e.c32(0), row = index;
      if (perRow > 1) {
        Value divisor = e.c32(perRow);
        row = LLVM::UDivOp::create(rewriter, e.loc, index, divisor);
        line = LLVM::URemOp::create(rewriter, e.loc, index, divisor);
      }
      Value isInside =
          first + threads.count > total ? e.lessThanC(index, total) : Value();
      for (auto [coordinate, scale, valid] :
           llvm::zip(SmallVector<Value>{row, line},
                     SmallVector<int64_t>{1, kLineBytes / bytes},
                     adaptor.getValid())) {
        Value element = LLVM::ZExtOp::create(rewriter, e.loc, e.i64(),
                                             e.mulC(coordinate, scale));
        isInside = e.both(isInside, e.lessThan(element, valid.front()));
      }
      Value offset = e.add(e.mulC(row, rowBytes), e.mulC(line, kLineBytes));
      Value pointer = e.advance(
          origin, LLVM::ZExtOp::create(rewriter, e.loc, e.i64(), offset));
      SmallVector<Value> operands{pointer};
      if (isInside)
        operands.push_back(isInside);
      e.inlineAsm(Type(),
                  isInside ? "@$1 prefetch.global.L2 [$0];"
                           : "prefetch.global.L2 [$0];",
                  isInside ? "l,b" : "l", operands);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mlir::gdn::populatePrefetchPatterns(const KernelLowering &kernel,
                                         RewritePatternSet &patterns) {
  patterns.add<PrefetchPattern>(kernel, patterns.getContext());
}
