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
/// of a sequence all of them are zero.
struct ChunkInputs {
  Value k, q, gate, beta;
};

/// Tiles for what `RecurrencePlan` has of a chunk and head in its workspaces:
/// N, P, the second part of N, and the factors of the tokens. Every element is
/// written, also zeros, but `low` only where a row is split.
struct ChunkOutputs {
  Value inverse, scores, low, gates;
};

/// T and P of a chunk by C / 16 warps together, from tiles to tiles. For 16-bit
/// inputs of the default precision, gates per head or none.
///
/// The products of the tokens are common to the warps, and so are the inverses
/// of the diagonal blocks of 16 tokens. Row j of blocks of Z = A^T depends on
/// no other one (see WarpInverse): warp j makes it, and with it column j of N
/// and of P. What lies above the diagonal costs nothing.
class ChunkPrepare {
public:
  ChunkPrepare(KernelBuilder &k, const RecurrencePlan &plan,
               const ChunkInputs &inputs, const ChunkOutputs &outputs);

  void build();

private:
  /// Block i of a column: whether it is the diagonal one, exp(G_i - G_j), and N
  /// without that.
  struct Block {
    int64_t i;
    Value isDiagonal, decay, n;
  };

  void sumGates();
  void buildProducts();
  void invertDiagonal();
  void buildColumn(Value j);
  void writeFactors();
  void buildLow();
  void markRows(Value rows, Value j);
  void maskLow(Value rows, Value i);
  void forEachBlock(Value j, ArrayRef<Value> zeros,
                    function_ref<SmallVector<Value>(const Block &)> build,
                    function_ref<void(int64_t i, ValueRange)> handle);
  Value buildBlock(Value j, int64_t i, ArrayRef<Value> before,
                   Value isDiagonal);
  Value masked(Value value, Value isDiagonal, bool keepsDiagonal);
  Value scoreOf(Value j, const Block &block);
  Value decayed(const Block &block);
  Value decayOf(int64_t i, Value j);
  void storeBlock(Value block, Value tile, int64_t i, Value j);
  Value anyIsSplit();
  Value tokensAt(Value vector, Value first, bool isRow);
  Access factorAt(GateRow row, Value token = Value());

  KernelBuilder &k;
  const RecurrencePlan &plan;
  ChunkInputs in;
  ChunkOutputs out;
  int64_t c, blocks;
  double scale;
  /// M below the diagonal and scale q_i.k_j at [j, i] elsewhere; the inverses
  /// of its diagonal blocks, transposed; the sums of the gates in log2 units;
  /// of each warp, whether its column of N has large entries.
  Value products, inverses, sums, large;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKPREPARE_H
