//===- ScoresPatterns.cpp - causal scores with channel gates --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// The exponentials differ per pair of tokens and channel, so this is no matrix
/// product. A thread owns 2x2 blocks of the lower triangle and walks the
/// channels, 16 at a time; it also clears the mirrored blocks.
struct ScoresPattern : TilePattern<ScoresOp> {
  using TilePattern::TilePattern;

  static constexpr int64_t kBlock = 2, kChannels = 16, kVector = 4;

  LogicalResult
  matchAndRewrite(ScoresOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto x = cast<MemRefType>(op.getX().getType());
    int64_t blocks = x.getDimSize(0) / kBlock;
    Value thread =
        LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), e.threadId());
    scf::ForOp::create(
        rewriter, op.getLoc(), thread, e.c64(blocks * (blocks + 1) / 2),
        e.c64(kernel.getNumThreads()), ValueRange(),
        [&](OpBuilder &, Location loc, Value index, ValueRange) {
          emitBlock(e, op, adaptor,
                    LLVM::TruncOp::create(rewriter, loc, e.i32(), index),
                    blocks);
          scf::YieldOp::create(rewriter, loc);
        });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Block rows p and blocks - 1 - p together have blocks + 1 blocks on and
  /// below the diagonal.
  static std::pair<Value, Value> getBlock(Emitter &e, Value index,
                                          int64_t blocks) {
    Value width = e.c32(blocks + 1);
    Value pair = LLVM::UDivOp::create(e.builder, e.loc, index, width);
    Value position = LLVM::URemOp::create(e.builder, e.loc, index, width);
    Value inLong = e.lessThan(pair, position);
    Value row = e.select(inLong, e.sub(e.c32(blocks - 1), pair), pair);
    Value col = e.select(inLong, e.sub(position, e.addC(pair, 1)), position);
    return {row, col};
  }

  static SmallVector<Value> loadVector(Emitter &e, SharedAddress &address,
                                       int64_t row, int64_t col, Type element) {
    SmallVector<Value> values;
    if (element.isF32()) {
      for (Value word : e.loadWords(address.at(row, col), kVector, Value()))
        values.push_back(e.bitcast(word, element));
      return values;
    }
    for (Value word : e.loadWords(address.at(row, col), kVector / 2, Value())) {
      Value pair = e.bitcast(word, VectorType::get(2, element));
      for (int64_t i : {0, 1})
        values.push_back(LLVM::FPExtOp::create(e.builder, e.loc, e.f32(),
                                               e.extractElement(pair, i)));
    }
    return values;
  }

  /// The sums over 16 channels from `channel` on, added to `sums`.
  static void addChannels(Emitter &e, ScoresOp op, Adaptor adaptor, Value row,
                          Value col, ThreadPart channel,
                          SmallVectorImpl<Value> &sums) {
    constexpr double log2E = 1.4426950408889634;
    auto xType = cast<MemRefType>(op.getX().getType());
    auto gateType = cast<MemRefType>(op.getGate().getType());
    // Rows are multiples of two.
    ThreadPart rows{row, ~int64_t(1)}, cols{col, ~int64_t(1)};
    SharedLayout xLayout(xType), gateLayout(gateType);
    Value gate = adaptor.getGate().front();
    SharedAddress x(e, xLayout, adaptor.getX().front(), rows, channel);
    SharedAddress y(e, xLayout, adaptor.getY().front(), cols, channel);
    SharedAddress gateX(e, gateLayout, gate, rows, channel);
    SharedAddress gateY(e, gateLayout, gate, cols, channel);
    Type element = xType.getElementType();
    for (int64_t c = 0; c < kChannels; c += kVector) {
      SmallVector<SmallVector<Value>> xs, ys, gatesX, gatesY;
      for (int64_t i = 0; i < kBlock; ++i) {
        xs.push_back(loadVector(e, x, i, c, element));
        ys.push_back(loadVector(e, y, i, c, element));
        gatesX.push_back(loadVector(e, gateX, i, c, e.f32()));
        gatesY.push_back(loadVector(e, gateY, i, c, e.f32()));
      }
      for (int64_t i = 0; i < kBlock; ++i)
        for (int64_t j = 0; j < kBlock; ++j)
          for (int64_t k = 0; k < kVector; ++k) {
            Value difference = e.fsub(gatesX[i][k], gatesY[j][k]);
            Value decay = e.exp2(e.fmul(difference, e.cF32(log2E)));
            Value &sum = sums[i * kBlock + j];
            sum = e.fma(e.fmul(xs[i][k], decay), ys[j][k], sum);
          }
    }
  }

  static void emitBlock(Emitter &e, ScoresOp op, Adaptor adaptor, Value index,
                        int64_t blocks) {
    auto [blockRow, blockCol] = getBlock(e, index, blocks);
    Value row = e.mulC(blockRow, kBlock), col = e.mulC(blockCol, kBlock);
    int64_t channels = cast<MemRefType>(op.getX().getType()).getDimSize(1);
    SmallVector<Value> zeros(kBlock * kBlock, e.cF32(0.0));
    auto loop = scf::ForOp::create(
        e.builder, e.loc, e.c64(0), e.c64(channels), e.c64(kChannels), zeros,
        [&](OpBuilder &, Location loc, Value channel, ValueRange carried) {
          int64_t bits = (llvm::PowerOf2Ceil(channels) - 1) & ~(kChannels - 1);
          ThreadPart part{
              LLVM::TruncOp::create(e.builder, loc, e.i32(), channel), bits};
          SmallVector<Value> sums(carried);
          addChannels(e, op, adaptor, row, col, part, sums);
          scf::YieldOp::create(e.builder, loc, sums);
        });
    storeBlock(e, op, adaptor.getOut().front(), row, col, loop.getResults());
  }

  static void storeBlock(Emitter &e, ScoresOp op, Value out, Value row,
                         Value col, ValueRange sums) {
    SharedLayout layout(cast<MemRefType>(op.getOut().getType()));
    ThreadPart rows{row, ~int64_t(1)}, cols{col, ~int64_t(1)};
    SharedAddress lower(e, layout, out, rows, cols);
    SharedAddress upper(e, layout, out, cols, rows);
    Value zero = e.cF32(0.0);
    // The mirrored block first: a diagonal block is its own mirror.
    for (int64_t i = 0; i < kBlock; ++i)
      e.storeWords(upper.at(i, 0), {e.c32(0), e.c32(0)}, Value());
    for (int64_t i = 0; i < kBlock; ++i) {
      SmallVector<Value> words;
      for (int64_t j = 0; j < kBlock; ++j) {
        // Keep i > j, or i >= j unless strict.
        Value limit = e.addC(row, i + (op.getStrict() ? 0 : 1));
        Value keep = e.lessThan(e.addC(col, j), limit);
        words.push_back(
            e.bitcast(e.select(keep, sums[i * kBlock + j], zero), e.i32()));
      }
      e.storeWords(lower.at(i, 0), words, Value());
    }
  }
};

} // namespace

void mlir::gdn::populateScoresPatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<ScoresPattern>(kernel, patterns.getContext());
}
