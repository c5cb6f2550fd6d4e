//===- WarpPrepareKernel.h - T and P by warps -------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_WARPPREPAREKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_WARPPREPAREKERNEL_H

#include "PrepareKernel.h"
#include "WarpInverse.h"

namespace mlir::gdn {

/// The chunk-parallel part of a recurrence with gates per head or none, for
/// 16-bit inputs: products by warpgroups, all that follows by single warps.
class WarpPrepareKernel {
public:
  /// Heads whose gates, or betas, of a token are copied at once by blocks that
  /// take single ones: 16 bytes, which go past the first-level cache.
  static constexpr int64_t kHeadsOfCopy = 4;

  /// What it makes, and by which blocks.
  enum class Form {
    /// T and P, a block for a chunk and key head, or some of its value heads.
    All,
    /// T, a block for a chunk and one or two key heads.
    Inverse,
    /// T, by as many blocks as run at once. Each takes one chunk and head after
    /// the other.
    Resident
  };
  WarpPrepareKernel(RecurrencePlan &plan, Form form);

  /// The kernel, and its launch `count` times, 0 or 1.
  void build(Value count);

private:
  void addArguments();
  void buildChunk();
  void buildResident(Value count);
  void findItem(Value number);
  void allocateInputs();
  void allocateProducts();
  void copyTiles();
  Value makeTile(Value memref, function_ref<Value(Value raw)> make);
  void makeGatesAndBetas();
  void prefetchTiles();
  void buildProducts();
  Value multiplyTiles(int64_t i);
  Value mergeProducts(Value squares, Value read);
  void buildTask(Value item);
  void buildHead(Value item, bool makesInverse, bool makesScores);
  void loadBeta(Value item);
  void sumGates(Value item, bool isWritten);
  void storeZeroSums();
  void writeRow(int64_t i);
  Value lateSums(int64_t i);
  Value decayOf(Value late, int64_t j, bool isDiagonal);
  Access tokensOf(Value memref, Value rowOf, Value rowsOf, Value headOf);
  Value blockOf(Value tile, int64_t row, int64_t col);
  Value rowsOf(Value vector, int64_t block);
  Value headsLeft();
  /// A tile for each key head; one has no dimension of its own.
  Value tileOfKeys(int64_t rows, int64_t columns, Type type) {
    if (keys == 1)
      return k.tile({rows, columns}, type);
    return k.tile({keys, rows, columns}, type);
  }
  Value tileAt(Value tiles, Value number) {
    return keys == 1 ? tiles : k.stage(tiles, number);
  }

  RecurrencePlan &plan;
  bool withScores, isResident;
  int64_t c, kp, blocks;
  /// Key heads and value heads of a block, blocks of a key head, and warps of a
  /// value head.
  int64_t keys, heads, parts, tasks;
  /// Value heads whose gates and betas are copied.
  int64_t copiedHeads;
  KernelBuilder k;
  SequenceMap sequences;
  // Arguments.
  Value q, key, gate, beta, rate, bias, inverse, scores, gates;
  // Tiles of the block; what normalises keys and queries, if they are raw.
  Value qTiles, kTiles, gateTile, betaTile, allProducts, allKeyFactors,
      queryFactors;
  // The chunk and its heads.
  Value slot, row, rows, keyHead, firstHead;
  // The warp's head: its products, beta and gates' sums, and what becomes of
  // it.
  Value head, products, keyFactors, headBeta, betaRow, sums;
  std::optional<WarpInverse> result;
  std::optional<InverseWriter> inverseRows;
  std::optional<LowerBlocks> scoreRows;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_WARPPREPAREKERNEL_H
