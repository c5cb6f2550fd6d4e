//===- BlockScores.cpp - gated scores of a block of tokens ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockScores.h"
#include "MatrixMoves.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

// Rows start 2^60 above the anchor, so that the factors of a block that decays
// by up to 2^-160 are between 2^-100 and 2^100, as are their products with
// tokens of any usual size; gates above zero may grow by 2^60.
static constexpr double kHeadroom = 60, kMostDecay = 160, kMostGrowth = 60;

BlockScores::BlockScores(Emitter &emitter, const KernelLowering &kernel,
                         ScoresOp op,
                         ScoresOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor)
    : e(emitter), tokens(cast<MemRefType>(op.getK().getType())),
      sumsLayout(cast<MemRefType>(op.getSums().getType())),
      element(cast<MemRefType>(op.getK().getType()).getElementType()),
      leftIsKeys(op.getLeft() == op.getK()), numThreads(kernel.getNumThreads()),
      numChannels(cast<MemRefType>(op.getK().getType()).getDimSize(1)),
      passes(element.isF32() ? 3 : 1), q(adaptor.getQ().front()),
      k(adaptor.getK().front()), sums(adaptor.getSums().front()),
      widest(e.cF32(0.0)) {
  if (op.getLeft())
    left = adaptor.getLeft().front();
  initThread();
}

void BlockScores::initThread() {
  // LLVM would hoist the addresses out of loops around the op: a register each.
  Value thread = e.opaqueThreadId();
  lane = e.andC(thread, 31);
  group = e.shrC(lane, 2);
  quad = e.andC(lane, 3);
  int64_t warps = numThreads / 32;
  if (warps > 1)
    blockRow = ThreadPart{e.shrC(thread, 5), warps - 1}.scale(e, 16);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

SmallVector<Value> BlockScores::loadTokens(Value base, ThreadPart channel,
                                           int64_t first, int64_t count) {
  SmallVector<Value> values;
  if (element.isF32()) {
    SharedAddress address(e, tokens, base, blockRow.add(e, {group, 7}),
                          ThreadPart{quad, 3}.scale(e, 2).add(e, channel));
    for (int64_t i = 0; i < count / 4; ++i)
      for (Value word : e.loadWords(
               address.at(8 * (i % 2), first + 8 * (i / 2)), 2, Value()))
        values.push_back(e.bitcast(word, e.f32()));
    return values;
  }
  // Lane bit 3 chooses the half of the rows, bit 4 that of the columns.
  SharedAddress address(
      e, tokens, base, blockRow.add(e, {e.andC(lane, 15), 15}),
      ThreadPart{e.shrC(lane, 4), 1}.scale(e, 8).add(e, channel));
  for (int64_t c = 0; c < count; c += 16)
    for (Value word : loadMatrices(e, address.at(0, first + c), false))
      llvm::append_range(values, e.extendPair(word, element));
  return values;
}

SmallVector<Value> BlockScores::loadSums(ThreadPart channel, int64_t first,
                                         int64_t count) {
  // Row 0 of the tile stands in front of the first token.
  ThreadPart row{e.addC(blockRow.add(e, {group, 7}).value, 1), -1};
  SharedAddress address(e, sumsLayout, sums, row,
                        ThreadPart{quad, 3}.scale(e, 2).add(e, channel));
  SmallVector<Value> values;
  for (int64_t i = 0; i < count / 4; ++i)
    for (Value word :
         e.loadWords(address.at(8 * (i % 2), first + 8 * (i / 2)), 2, Value()))
      values.push_back(e.bitcast(word, e.f32()));
  return values;
}

SmallVector<Value> BlockScores::loadRow(ThreadPart row, int64_t rowConst,
                                        ThreadPart channel, int64_t first,
                                        int64_t count) {
  SharedAddress address(e, sumsLayout, sums, row,
                        ThreadPart{quad, 3}.scale(e, 2).add(e, channel));
  SmallVector<Value> values;
  for (int64_t c = 0; c < count; c += 8)
    for (Value word : e.loadWords(address.at(rowConst, first + c), 2, Value()))
      values.push_back(e.bitcast(word, e.f32()));
  return values;
}

Channels BlockScores::loadChannels(ThreadPart channel, int64_t first,
                                   int64_t count) {
  Channels channels;
  channels.first = first;
  channels.k = loadTokens(k, channel, first, count);
  channels.sums = loadSums(channel, first, count);
  channels.anchor = loadRow(blockRow, 0, channel, first, count);
  channels.end = loadRow(blockRow, 16, channel, first, count);
  channels.q = loadTokens(q, channel, first, count);
  if (left)
    channels.left =
        leftIsKeys ? channels.k : loadTokens(left, channel, first, count);
  for (Value &anchor : channels.anchor)
    anchor = e.fsub(anchor, e.cF32(kHeadroom));
  return channels;
}

Channels BlockScores::load(int64_t first) {
  return loadChannels(ThreadPart(), first,
                      std::min(ScoresScratch::kChannels, numChannels - first));
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

// The channel of an accumulator register.
static int64_t channelOf(int64_t i) { return 2 * (i / 4) + i % 2; }

SmallVector<Value> BlockScores::decayToEnd(const Channels &channels) {
  SmallVector<Value> keys;
  for (auto [i, key] : llvm::enumerate(channels.k)) {
    Value sum = e.fsub(channels.end[channelOf(i)], channels.sums[i]);
    keys.push_back(e.fmul(key, e.exp2(sum)));
  }
  return keys;
}

SmallVector<Value> BlockScores::getDecaysFrom(int64_t block,
                                              const Channels &channels) {
  SmallVector<Value> decays =
      loadRow(ThreadPart(), 16 * (block + 1), ThreadPart(), channels.first,
              8 * channels.getNumSteps());
  for (auto [decay, anchor] : llvm::zip_equal(decays, channels.anchor))
    decay = e.exp2(e.fsub(anchor, decay));
  return decays;
}

SmallVector<SmallVector<RowOperand>>
BlockScores::getRows(const Channels &channels) {
  SmallVector<SmallVector<RowOperand>> rows(left ? 2 : 1);
  for (int64_t step = 0; step < channels.getNumSteps(); ++step) {
    SmallVector<Value> decays;
    for (int64_t i = 4 * step; i < 4 * (step + 1); ++i)
      decays.push_back(
          e.exp2(e.fsub(channels.sums[i], channels.anchor[channelOf(i)])));
    for (auto [i, operands] : llvm::enumerate(rows)) {
      ArrayRef<Value> values = i == 0 ? channels.q : channels.left;
      SmallVector<Value> decayed;
      // Columns 2 q and 2 q + 1 serve as the k slots q and q + 4.
      for (int64_t r : {0, 2, 1, 3})
        decayed.push_back(e.fmul(values[4 * step + r], decays[r]));
      operands.push_back(splitOperand(e, decayed, passes));
    }
  }
  return rows;
}

ColumnOperand BlockScores::getColumns(ValueRange keys) {
  return {splitOperand(e, keys.take_front(2), passes),
          splitOperand(e, keys.drop_front(2), passes)};
}

void BlockScores::multiply(const RowOperand &rows, const ColumnOperand &columns,
                           MutableArrayRef<Value> acc) {
  for (int64_t tile : {0, 1})
    emitFloatMma(e, passes, rows, columns[tile], acc.slice(4 * tile, 4));
}

//===----------------------------------------------------------------------===//
// The diagonal
//===----------------------------------------------------------------------===//

/// The distance of a decay (in log2 units, from the moved anchor) from the
/// middle of the range, if it is above `widest`.
Value BlockScores::excess(Value decay, Value widest) {
  constexpr double middle = (kMostDecay - kMostGrowth) / 2;
  Value distance = LLVM::FAbsOp::create(
      e.builder, e.loc, e.fadd(decay, e.cF32(kHeadroom - middle)));
  return LLVM::MaxNumOp::create(e.builder, e.loc, widest, distance);
}

Value BlockScores::isExcessive(Value widest) {
  constexpr double half = (kMostDecay + kMostGrowth) / 2;
  return LLVM::FCmpOp::create(e.builder, e.loc, LLVM::FCmpPredicate::ogt,
                              widest, e.cF32(half));
}

void BlockScores::addDiagonal(const Channels &channels,
                              ArrayRef<SmallVector<RowOperand>> rows,
                              MutableArrayRef<SmallVector<Value>> accs) {
  for (auto [anchor, end] : llvm::zip_equal(channels.anchor, channels.end))
    widest = excess(e.fsub(anchor, end), widest);
  for (int64_t step = 0; step < channels.getNumSteps(); ++step) {
    SmallVector<Value> keys;
    for (int64_t i = 4 * step; i < 4 * (step + 1); ++i) {
      Value sum = e.fsub(channels.anchor[channelOf(i)], channels.sums[i]);
      keys.push_back(e.fmul(channels.k[i], e.exp2(sum)));
    }
    ColumnOperand columns = getColumns(keys);
    for (auto [i, acc] : llvm::enumerate(accs))
      multiply(rows[i][step], columns, acc);
  }
}

void BlockScores::finishDiagonal(MutableArrayRef<SmallVector<Value>> accs) {
  SmallVector<Value> fast;
  for (SmallVector<Value> &acc : accs)
    llvm::append_range(fast, acc);
  Value isWide =
      NVVM::VoteSyncOp::create(e.builder, e.loc, e.i1(), e.c32(-1),
                               isExcessive(widest), NVVM::VoteSyncKind::any);
  auto branch = scf::IfOp::create(e.builder, e.loc, ValueRange(fast).getTypes(),
                                  isWide, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(e.builder, e.loc, fast);
    e.builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(e.builder, e.loc, replaceWideRows(fast));
  }
  initThread();
  Value column = e.mulC(quad, 2);
  for (auto [result, acc] : llvm::enumerate(accs))
    for (int64_t r = 0; r < 8; ++r) {
      int64_t tile = r / 4, half = r / 2 % 2;
      acc[r] = tile > half ? e.cF32(0.0) : branch.getResult(8 * result + r);
      // i >= j, or i > j in the second result.
      Value bound = e.addC(group, result == 0 ? 1 : 0);
      if (tile == half)
        acc[r] = e.select(e.lessThan(e.addC(column, r % 2), bound), acc[r],
                          e.cF32(0.0));
    }
}

//===----------------------------------------------------------------------===//
// Any decay
//===----------------------------------------------------------------------===//
//
// A pair of tokens i > j belongs to the level s = 1, 2, 4 or 8 of the highest
// bit in which the two differ: to the two halves of a group of 2 s tokens. With
// the last token of the first half as the anchor both factors are at most 1,
// whatever the gates are. Level 0 are the pairs i = j.
//
// Up to s = 4 the group lies in 8 rows. One product has the rows of q above
// those of left; of its elements only those of its level are taken. One walk
// over the channels for each half of the block, and one for level 8, need few
// registers beside those of the rest of the row.

SmallVector<Value> BlockScores::walkChannels(
    int64_t numValues,
    function_ref<void(const Channels &, int64_t step, MutableArrayRef<Value>)>
        body) {
  SmallVector<Value> inits(numValues, e.cF32(0.0));
  auto loop = scf::ForOp::create(
      e.builder, e.loc, e.c64(0), e.c64(numChannels), e.c64(16), inits,
      [&](OpBuilder &, Location loc, Value channel, ValueRange carried) {
        int64_t bits = (llvm::PowerOf2Ceil(numChannels) - 1) & ~int64_t(15);
        initThread();
        ThreadPart part{LLVM::TruncOp::create(e.builder, loc, e.i32(), channel),
                        bits};
        Channels channels = loadChannels(part, 0, 16);
        SmallVector<Value> values(carried);
        for (int64_t step : {0, 1})
          body(channels, step, values);
        scf::YieldOp::create(e.builder, loc, values);
      });
  initThread();
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> BlockScores::replaceWideRows(ValueRange fast) {
  SmallVector<Value> diagonal[2], widest;
  for (int64_t half : {0, 1}) {
    SmallVector<Value> walked = walkChannels(
        4 * kNumLevels + 1, [&](const Channels &channels, int64_t step,
                                MutableArrayRef<Value> values) {
          addLevels(channels, step, half, values);
          for (int64_t i : {0, 1}) {
            Value decay = e.fsub(channels.anchor[2 * step + i],
                                 channels.sums[4 * step + 2 * half + i]);
            values.back() = excess(decay, values.back());
          }
        });
    diagonal[half] = chooseLevels(walked);
    widest.push_back(walked.back());
  }
  SmallVector<Value> below =
      walkChannels(4, [&](const Channels &channels, int64_t step,
                          MutableArrayRef<Value> values) {
        addHalves(channels, step, values);
      });
  Value firstWide = getFirstWideRow(widest[0], widest[1]);
  SmallVector<Value> rows;
  for (size_t r = 0; r < fast.size(); ++r) {
    int64_t result = r / 8, tile = r / 4 % 2, half = r / 2 % 2, parity = r % 2;
    ArrayRef<Value> exact = tile == half ? diagonal[half] : below;
    Value isFast = e.lessThan(e.addC(group, 8 * half), firstWide);
    rows.push_back(e.select(isFast, fast[r], exact[2 * result + parity]));
  }
  return rows;
}

/// Levels 0, 1, 2 and 4 of half a block.
void BlockScores::addLevels(const Channels &channels, int64_t step,
                            int64_t half, MutableArrayRef<Value> tiles) {
  for (int64_t tile = 0; tile < kNumLevels; ++tile) {
    int64_t level = (int64_t(1) << tile) / 2;
    Value sign, source;
    if (level != 0) {
      Value isSecond =
          LLVM::ICmpOp::create(e.builder, e.loc, LLVM::ICmpPredicate::ne,
                               e.andC(group, level), e.c32(0));
      sign = e.select(isSecond, e.cF32(1.0), e.cF32(-1.0));
      source =
          e.addC(e.andC(lane, 31 & ~(4 * (2 * level - 1))), 4 * (level - 1));
    }
    SmallVector<Value> operands[3];
    for (int64_t i = 4 * step + 2 * half, end = i + 2; i < end; ++i) {
      Value decay;
      if (level != 0) {
        Value anchor = e.shuffleFrom(channels.sums[i], source);
        decay = e.exp2(e.fmul(e.fsub(channels.sums[i], anchor), sign));
      }
      auto scale = [&](Value x) { return decay ? e.fmul(x, decay) : x; };
      operands[0].push_back(scale(channels.q[i]));
      operands[1].push_back(left ? scale(channels.left[i]) : e.cF32(0.0));
      operands[2].push_back(scale(channels.k[i]));
    }
    multiplyStacked(operands[0], operands[1], operands[2],
                    tiles.slice(4 * tile, 4));
  }
}

/// Level 8: the last 8 tokens against the first.
void BlockScores::addHalves(const Channels &channels, int64_t step,
                            MutableArrayRef<Value> tile) {
  Value source = e.addC(quad, 28);
  SmallVector<Value> operands[3];
  for (int64_t i = 4 * step, end = i + 2; i < end; ++i) {
    int64_t second = i + 2;
    Value anchor = e.shuffleFrom(channels.sums[i], source);
    Value rows = e.exp2(e.fsub(channels.sums[second], anchor));
    Value columns = e.exp2(e.fsub(anchor, channels.sums[i]));
    operands[0].push_back(e.fmul(channels.q[second], rows));
    operands[1].push_back(left ? e.fmul(channels.left[second], rows)
                               : e.cF32(0.0));
    operands[2].push_back(e.fmul(channels.k[i], columns));
  }
  multiplyStacked(operands[0], operands[1], operands[2], tile);
}

/// Rows of q in the upper half, of left in the lower one, times 8 keys.
void BlockScores::multiplyStacked(ArrayRef<Value> q, ArrayRef<Value> left,
                                  ArrayRef<Value> k,
                                  MutableArrayRef<Value> tile) {
  FloatParts rows = splitOperand(e, {q[0], left[0], q[1], left[1]}, passes);
  emitFloatMma(e, passes, rows, splitOperand(e, k, passes), tile);
}

/// Of the levels' tiles, for each register, the one of the level of its pair.
SmallVector<Value> BlockScores::chooseLevels(ValueRange tiles) {
  SmallVector<Value> chosen;
  for (int64_t r = 0; r < 4; ++r) {
    Value bits = LLVM::XOrOp::create(e.builder, e.loc, group,
                                     e.addC(e.mulC(quad, 2), r % 2));
    chosen.push_back(tiles[4 * 3 + r]);
    for (auto [limit, level] : {std::pair(4, 2), {2, 1}, {1, 0}})
      chosen[r] =
          e.select(e.lessThanC(bits, limit), tiles[4 * level + r], chosen[r]);
  }
  return chosen;
}

/// The first row from which on the factors of the anchor in front of the block
/// are out of range: what comes later must not matter to the rows before.
Value BlockScores::getFirstWideRow(Value firstHalf, Value secondHalf) {
  // 8 if there is none: 32 zeros are counted.
  auto getFirst = [&](Value widest) {
    Value lanes = NVVM::VoteSyncOp::create(e.builder, e.loc, e.i32(), e.c32(-1),
                                           isExcessive(widest),
                                           NVVM::VoteSyncKind::ballot);
    Value zeros = LLVM::CountTrailingZerosOp::create(
        e.builder, e.loc, e.i32(), lanes, /*is_zero_poison=*/false);
    return e.shrC(zeros, 2);
  };
  Value first = getFirst(firstHalf), second = getFirst(secondHalf);
  return e.select(e.lessThanC(first, 8), first, e.addC(second, 8));
}
