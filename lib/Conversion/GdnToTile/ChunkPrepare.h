//===- ChunkPrepare.h - T and P of a chunk by four warps --------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKPREPARE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKPREPARE_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

/// Tiles of a chunk of C tokens: k and q [C, keyPad], 16 bit; the gates as they
/// are given and beta, [C], f32, null where the model has none. Behind the end
/// of a sequence all of them are zero. Where only P is made, `factors` instead
/// of the last two: rows of the workspace `gates`.
struct ChunkInputs {
  Value k, q, gate, beta, factors;
};

/// Tiles for what `RecurrencePlan` has of a chunk and head in its workspaces:
/// N, P, the second part of N, and the factors of the tokens. Every element is
/// written, also zeros, but `low` only where a row is split. Without `inverse`
/// only P is made, without `gates` no factors. `queries` are the factors of raw
/// queries, [C].
struct ChunkOutputs {
  Value inverse, scores, low, gates, queries;
};

/// T and P of a chunk by C / 16 warps together, from tiles to tiles. For 16-bit
/// inputs of the default precision, gates per head or none.
///
/// Warp w holds the tokens of block w as rows of the products with all others.
/// It stores M_wk, k < w, and the inverse D_w of the diagonal block as right
/// operands for all warps. Row j of blocks of Z =
/// A^T depends on no other one (see WarpInverse): warp j makes it, and with it
/// column j of N. Of P it makes row j of blocks, so that the warps with the
/// shorter chains have more of it. What lies above the diagonal costs nothing.
class ChunkPrepare {
public:
  ChunkPrepare(KernelBuilder &k, const RecurrencePlan &plan,
               const ChunkInputs &inputs, const ChunkOutputs &outputs);

  void build();

private:
  void allocateTiles();
  void sumGates();
  Value multiplyKeys();
  Value multiplyQueries();
  void storeQueryFactors();
  void buildBlocks();
  void storeBlockOf(Value m, int64_t j, Value w);
  void invertDiagonal(Value w);
  void buildScores(Value scores, Value w);
  void buildColumn(Value j);
  void writeFactors();
  void writeFlags();
  void buildLow();
  void findRows(Value rows, Value j);
  void markRows(Value rows, Value marks, Value i);
  void storeLow(Value marks, Value j);
  void
  forEachBlock(Value j, ArrayRef<Value> zeros,
               function_ref<SmallVector<Value>(Value n, Value decay)> build,
               function_ref<void(int64_t i, ValueRange)> handle);
  Value buildBlock(Value j, int64_t i, ArrayRef<Value> before,
                   Value isDiagonal);
  Value loadFactor(int64_t i, int64_t j);
  void storeFactor(Value block, Value i, Value j);
  Value masked(Value value, Value isDiagonal, Value isKept);
  Value decayOf(Value late, Value early);
  Value tokensAt(Value vector, Value block, bool isRow, int64_t first = 0);
  Value sumsAt(Value block, bool isRow);
  Value scoreAt(Value scores, Value w, int64_t j);
  void storeBlock(Value block, Value tile, int64_t i, Value j);
  Value loadBlock(Value tile, int64_t i, Value j);
  Value anyIsSplit();
  Access factorAt(GateRow row, Value token = Value());

  KernelBuilder &k;
  const RecurrencePlan &plan;
  ChunkInputs in;
  ChunkOutputs out;
  int64_t c, blocks;
  gdn_tile::ProductPrecision precision;
  double scale;
  /// M below the blocks on the diagonal, and there D.
  Value factors;
  /// Of each warp: the diagonal block of M, its beta, D^T, and whether its
  /// column of N has large entries. Of the chunk: the sums of the gates in log2
  /// units.
  Value diagonals, ownBetas, inverses, large, sums;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKPREPARE_H
