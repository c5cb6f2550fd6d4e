//===- ScoresPatterns.cpp - causal scores with channel gates --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "BlockScores.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// Blocks of 16 tokens; a warp has one row of blocks and walks the channels.
///
/// Its columns in front of the diagonal come from the other warps: each
/// multiplies its keys once by the decay to the end of its block and leaves
/// them in the scratch space, in the order of an operand's registers. What
/// decays from there to the anchor of the rows is a factor per channel.
class RowOfScores {
public:
  RowOfScores(Emitter &emitter, const KernelLowering &kernel, ScoresOp op,
              ScoresOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor)
      : e(emitter), block(emitter, kernel, op, adaptor),
        numBlocks(kernel.getNumThreads() / 32), warp(emitter.warpId()),
        scratch(kernel.getScratch(emitter, op)) {
    accs.push_back(SmallVector<Value>(adaptor.getAcc()));
    if (op.getLeft())
      accs.push_back(SmallVector<Value>(adaptor.getStrictAcc()));
    diagonals.assign(accs.size(), SmallVector<Value>(8, e.cF32(0.0)));
  }

  /// The registers of the results.
  SmallVector<SmallVector<Value>> emit();

private:
  void addPiece(int64_t channel, int64_t buffer);
  void publish(const Channels &channels, int64_t buffer);
  void addColumns(int64_t column, const Channels &channels,
                  ArrayRef<SmallVector<RowOperand>> rows, int64_t buffer);
  Value getPlace(int64_t buffer);

  Emitter &e;
  BlockScores block;
  int64_t numBlocks;
  Value warp, scratch;
  /// Per result: the accumulators of the whole row and of the diagonal block.
  SmallVector<SmallVector<Value>> accs, diagonals;
};

} // namespace

/// Where the lane finds its part of the first block's columns.
Value RowOfScores::getPlace(int64_t buffer) {
  Value place = e.advance(scratch, e.mulC(e.laneId(), 16));
  return e.advance(place,
                   buffer * (numBlocks - 1) * ScoresScratch::kBlockBytes);
}

void RowOfScores::publish(const Channels &channels, int64_t buffer) {
  e.inThreadsBelow(32 * (numBlocks - 1), 32 * numBlocks, [&] {
    Value place =
        e.advance(getPlace(buffer), e.mulC(warp, ScoresScratch::kBlockBytes));
    SmallVector<Value> keys = block.decayToEnd(channels);
    for (size_t step = 0; step < keys.size() / 4; ++step) {
      SmallVector<Value> words;
      for (Value key : ArrayRef(keys).slice(4 * step, 4))
        words.push_back(e.bitcast(key, e.i32()));
      e.storeWords(e.advance(place, step * ScoresScratch::kStepBytes), words,
                   Value());
    }
  });
}

/// The products with the block of columns `column` in front of the diagonal.
void RowOfScores::addColumns(int64_t column, const Channels &channels,
                             ArrayRef<SmallVector<RowOperand>> rows,
                             int64_t buffer) {
  SmallVector<Type> types(8 * accs.size(), e.f32());
  auto isBehind = LLVM::ICmpOp::create(
      e.builder, e.loc, LLVM::ICmpPredicate::sgt, warp, e.c32(column));
  auto branch = scf::IfOp::create(e.builder, e.loc, types, isBehind,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e.builder);
  SmallVector<Value> sums;
  for (SmallVector<Value> &acc : accs)
    sums.append(acc.begin() + 8 * column, acc.begin() + 8 * (column + 1));
  e.builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(e.builder, e.loc, sums);

  e.builder.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> decays = block.getDecaysFrom(column, channels);
  Value place =
      e.advance(getPlace(buffer), column * ScoresScratch::kBlockBytes);
  for (size_t step = 0; step < decays.size() / 2; ++step) {
    SmallVector<Value> keys;
    Value pointer = e.advance(place, step * ScoresScratch::kStepBytes);
    for (auto [i, word] : llvm::enumerate(e.loadWords(pointer, 4, Value())))
      keys.push_back(
          e.fmul(e.bitcast(word, e.f32()), decays[2 * step + i % 2]));
    ColumnOperand columns = block.getColumns(keys);
    for (size_t i = 0; i < accs.size(); ++i)
      block.multiply(rows[i][step], columns,
                     MutableArrayRef(sums).slice(8 * i, 8));
  }
  scf::YieldOp::create(e.builder, e.loc, sums);
  for (auto [i, acc] : llvm::enumerate(accs))
    llvm::copy(branch.getResults().slice(8 * i, 8), acc.begin() + 8 * column);
}

void RowOfScores::addPiece(int64_t channel, int64_t buffer) {
  Channels channels = block.load(channel);
  if (numBlocks > 1)
    publish(channels, buffer);
  SmallVector<SmallVector<RowOperand>> rows = block.getRows(channels);
  block.addDiagonal(channels, rows, diagonals);
  if (numBlocks == 1)
    return;
  e.barrier();
  for (int64_t column = 0; column < numBlocks - 1; ++column)
    addColumns(column, channels, rows, buffer);
}

SmallVector<SmallVector<Value>> RowOfScores::emit() {
  int64_t buffer = 0;
  for (int64_t channel = 0; channel < block.getNumChannels();
       channel += ScoresScratch::kChannels) {
    addPiece(channel, buffer);
    buffer ^= 1;
  }
  // What comes next may use the scratch space's bytes.
  if (numBlocks > 1)
    e.barrier();
  block.finishDiagonal(diagonals);
  for (auto [acc, diagonal] : llvm::zip_equal(accs, diagonals))
    for (int64_t column = 0; column < numBlocks; ++column) {
      Value isOwn = e.equalsC(warp, column);
      for (int64_t i = 0; i < 8; ++i) {
        Value &sum = acc[8 * column + i];
        sum = e.fadd(sum, e.select(isOwn, diagonal[i], e.cF32(0.0)));
      }
    }
  return accs;
}

namespace {
struct ScoresPattern : TilePattern<ScoresOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ScoresOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SmallVector<SmallVector<Value>> results =
        RowOfScores(e, kernel, op, adaptor).emit();
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};
} // namespace

void mlir::gdn::populateScoresPatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<ScoresPattern>(kernel, patterns.getContext());
}
