//===- StateScan.h - rows of a state over the chunks of a segment -*- C++ -*-=//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STATESCAN_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STATESCAN_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

/// A kernel whose blocks carry `valueBlock` rows of a head's state over the
/// chunks of a segment. Rows at and behind V have no values, and so no output:
/// their state only decays and is corrected.
class StateScan {
public:
  StateScan(RecurrencePlan &plan, StringRef name, bool hasOutput,
            int64_t valueBlock, const SegmentsOf &segments);

protected:
  /// Splits the number of the block, which has `rowBlocks` blocks of rows as
  /// its fastest part, then the heads; returns the rest.
  Value splitBlockId(int64_t rowBlocks);
  void addArguments();
  void allocateTiles();
  /// Looks up the place of sequence n's state, behind addArguments.
  void findState(Value n);
  /// The block's rows of the sequence's state in a memref of states; `rows` of
  /// them exist.
  Access stateAccess(Value memref, Value rows);
  /// The same of the state that the sequence starts from.
  Value loadState(Value rows);
  /// A hint that it will be read soon.
  void prefetchState();
  /// The state behind the segment.
  Value scan(Value initial, const Segment &segment);
  /// Rounds to the memref's type.
  void storeState(Value value, const Access &access);
  /// The number of blocks where each head and each of `places` has `rowBlocks`.
  Value countBlocks(Value places, int64_t rowBlocks);

  RecurrencePlan &plan;
  bool hasOutput;
  /// P, and with it T if the plan says so, are made here, ahead of the scan.
  bool makesScores;
  int64_t c, kp, vb;
  KernelBuilder k;
  SegmentMap segments;
  Value state, boundaryStates;
  Value head, keyHead, firstValue, valuesLeft;
  /// Set where the block's rows may have no values: whether they have none.
  /// Then the values of other rows are copied in their place, since whole tiles
  /// are copied much faster than zeros are written, and count as 0.
  Value hasNoValues;

private:
  void copyTiles();
  void prepareAhead();
  Value buildChunk(Value state);
  Value newValues(ValueRange stateParts, Value grown);
  Value unitProduct(Value error);
  void refine(Value &updates, Value &stateValue, Value &output);
  Value readState(ValueRange stateParts, Value scaled);
  void writeOutput(Value output);
  Value loadQueryFactors();
  SmallVector<Value> split(Value fragment) {
    return k.split(fragment, plan.type, plan.parts);
  }
  void keepState(Value value, const Segment &segment, Value start);
  void storeZeros(const Sequence &sequence, Value chunks);

  // Arguments.
  Value q, key, v, write, gate, beta, inverse, scores, gates, decayedQ,
      decayedK, restK, decay, out, entries, start, checkpoints;
  StateEntry entry;
  // Shared tiles; in parts what is rounded.
  Value vTile, writeTile, gateTile, outTile;
  /// Where T and P are made here: the gates and beta of the tokens. Where P is,
  /// of raw q, the factors of outputs.
  Value rawGateTile, betaTile, queryFactors;
  SmallVector<Value> qTiles, kTiles, restTiles, scoreTiles, inverseTiles;
  /// The second part of N, in chunks with split rows.
  Value lowTile;
  // The chunk.
  Value slot, row, rows, isSplit, roundedError;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STATESCAN_H
