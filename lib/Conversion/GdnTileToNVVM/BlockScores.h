//===- BlockScores.h - gated scores of a block of tokens --------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_BLOCKSCORES_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_BLOCKSCORES_H

#include "Addressing.h"
#include "MmaEmission.h"

namespace mlir::gdn {

/// Decayed keys that the warps exchange, two buffers in turn: per block of 16
/// tokens and step of 8 channels the four registers of each lane.
struct ScoresScratch {
  static constexpr int64_t kChannels = 16, kStepBytes = 32 * 16,
                           kBlockBytes = kChannels / 8 * kStepBytes;
  static int64_t getBytes(int64_t warps) {
    return 2 * (warps - 1) * kBlockBytes;
  }
};

/// Some channels of the 16 tokens of a warp, in the order of an accumulator:
/// register 4 s + 2 h + p holds row l / 4 + 8 h and channel 8 s + 2 (l % 4) + p
/// of lane l. The rows in front of and at the end of the block have registers
/// 2 s + p; the first of them, `anchor`, is already moved by the headroom.
struct Channels {
  SmallVector<Value> q, left, k, sums, anchor, end;
  int64_t first = 0;

  int64_t getNumSteps() const { return k.size() / 4; }
};

/// Operands of the products of one step of 8 channels: 16 rows, and two tiles
/// of 8 columns.
using RowOperand = FloatParts;
using ColumnOperand = std::array<FloatParts, 2>;

/// What one warp computes of the block of its 16 tokens on the diagonal, and
/// the operands of the products in front of it.
class BlockScores {
public:
  BlockScores(Emitter &emitter, const KernelLowering &kernel,
              gdn_tile::ScoresOp op,
              gdn_tile::ScoresOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor);

  int64_t getNumChannels() const { return numChannels; }

  /// Up to kChannels channels from a constant one on.
  Channels load(int64_t first);
  /// The keys times the decay to the end of their block.
  SmallVector<Value> decayToEnd(const Channels &channels);
  /// The decay from the end of an earlier block to the anchor, per channel.
  SmallVector<Value> getDecaysFrom(int64_t block, const Channels &channels);
  /// Left operands of q and, if there is one, left; one per step.
  SmallVector<SmallVector<RowOperand>> getRows(const Channels &channels);
  ColumnOperand getColumns(ValueRange keys);
  /// Adds rows * columns^T to the 8 registers of a 16x16 block.
  void multiply(const RowOperand &rows, const ColumnOperand &columns,
                MutableArrayRef<Value> acc);

  /// Adds the products on the diagonal, with keys that grow from the anchor on.
  void addDiagonal(const Channels &channels,
                   ArrayRef<SmallVector<RowOperand>> rows,
                   MutableArrayRef<SmallVector<Value>> accs);
  /// Replaces rows whose decay is out of range and clears what is masked.
  void finishDiagonal(MutableArrayRef<SmallVector<Value>> accs);

private:
  void initThread();
  SmallVector<Value> loadTokens(Value base, ThreadPart channel, int64_t first,
                                int64_t count);
  SmallVector<Value> loadSums(ThreadPart channel, int64_t first, int64_t count);
  SmallVector<Value> loadRow(ThreadPart row, int64_t rowConst,
                             ThreadPart channel, int64_t first, int64_t count);
  Channels loadChannels(ThreadPart channel, int64_t first, int64_t count);
  Value excess(Value decay, Value widest);
  Value isExcessive(Value widest);

  static constexpr int64_t kNumLevels = 4;

  SmallVector<Value> replaceWideRows(ValueRange fast);
  SmallVector<Value> walkChannels(
      int64_t numValues,
      function_ref<void(const Channels &, int64_t step, MutableArrayRef<Value>)>
          body);
  void addLevels(const Channels &channels, int64_t step, int64_t half,
                 MutableArrayRef<Value> tiles);
  void addHalves(const Channels &channels, int64_t step,
                 MutableArrayRef<Value> tile);
  void multiplyStacked(ArrayRef<Value> q, ArrayRef<Value> left,
                       ArrayRef<Value> k, MutableArrayRef<Value> tile);
  SmallVector<Value> chooseLevels(ValueRange tiles);
  Value getFirstWideRow(Value firstHalf, Value secondHalf);

  Emitter &e;
  gdn_tile::SharedLayout tokens, sumsLayout;
  Type element;
  bool leftIsKeys;
  int64_t numThreads, numChannels, passes;
  Value q, k, left, sums;  // tiles; left is null if there is none
  Value lane, group, quad; // the lane's row and pair of columns
  ThreadPart blockRow;     // first token of the warp
  Value widest;            // see excess
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_BLOCKSCORES_H
