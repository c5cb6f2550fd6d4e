//===- WarpInverse.h - T of one head by one warp ----------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

/// The first row of N with an entry above this is split, and all behind it.
/// Emulated: below it the sums over tokens cancel little enough for one part.
constexpr double kLargeEntry = 0.4;
/// So is that of the first token with a beta above this, which reverses a
/// direction of the state: such sums cancel more, whatever the keys.
constexpr double kLargeBeta = 1.0;

/// Of the tokens of a block, [1, 16], as 1 or 0: whether `flags` of one of them
/// up to theirs, a column, is above 0.
Value upToFirst(KernelBuilder &k, Value flags);

/// In a transposed block on the diagonal: whether the row's token is earlier
/// than the column's, or the same.
Value isEarlier(KernelBuilder &k, bool orSame);

/// The inverse A of I + strictlower(M_ij beta_j), in the region of a
/// gdn_tile.each_warp and in blocks of 16 tokens, all of them transposed. With
/// Z_ji = A_ij^T and D_i the inverse of the diagonal block i:
///
///   Z_jj = D_j^T;  Z_ji = (sum_{j <= k < i} Z_jk diag(-beta_k) M_ik^T) D_i^T
///
/// Every left operand is a product before, so nothing moves between lanes.
class WarpInverse {
public:
  static constexpr int64_t kBlock = 16;
  /// Rows of the tile of M lie in panels of 32 bytes, in which the eight-byte
  /// pieces of a fragment meet no bank twice; an odd number of rows has four
  /// blocks on the diagonal in different banks.
  static constexpr int64_t kProductPad = 8, kProductRowPad = 1;
  /// Elements that gdn_tile.block_inverse exchanges.
  static constexpr int64_t kScratchPerToken = 12;

  /// `products` is M, a tile of chunk + kProductRowPad rows and chunk +
  /// kProductPad columns, `beta` one of chunk. Builds the diagonal blocks.
  WarpInverse(KernelBuilder &k, int64_t chunk, Value products, Value beta,
              gdn_tile::ProductPrecision precision);
  /// The same once more with operands of another precision.
  WarpInverse(const WarpInverse &other, gdn_tile::ProductPrecision precision);

  /// Behind the last inverse of the products: frees what the lanes exchange.
  void free();

  /// The blocks Z_ji, j < i, from those of the rows before.
  void substitute(int64_t i);
  /// Z_ji, a fragment.
  Value at(int64_t j, int64_t i) const { return z[j][i]; }

private:
  void invertDiagonal();

  KernelBuilder &k;
  int64_t blocks;
  Value products, beta, scratch;
  gdn_tile::ProductPrecision precision;
  /// Z_ji, those times -beta_i as left operands, and D_i.
  Value z[4][4], scaled[4][4], diagonal[4];
};

/// A workspace of matrices as their lower blocks, and where the matrix of a
/// part begins in it.
struct LowerBlocks {
  Value workspace;
  /// Rows of blocks.
  int64_t blocks;
  std::function<SmallVector<Value>(int64_t part)> position;

  /// Stores a transposed block of f32: rounded, and what the rounding has left
  /// in the next parts.
  void store(KernelBuilder &k, Value block, int64_t row, int64_t column,
             int64_t parts) const;
  /// Stores one of 16 bits.
  void storePart(KernelBuilder &k, Value block, int64_t row, int64_t column,
                 int64_t part) const;
  /// What that has stored.
  Value loadPart(KernelBuilder &k, int64_t row, int64_t column,
                 int64_t part) const;

private:
  SmallVector<Value> indicesOf(KernelBuilder &k, int64_t row, int64_t column,
                               int64_t part) const;
};

/// Writes the inverse of a head as the scan reads it, a row of blocks after the
/// other: see RecurrencePlan::isUnit. Second parts of rows are what the first
/// ones lack of a more exact inverse, made once more where there are any: so
/// all others can do with less, and no later token changes a bit of theirs.
class InverseWriter {
public:
  /// exp(G_i - G_j) of a block, transposed.
  using Decay = std::function<Value(int64_t i, int64_t j)>;

  /// `beta` is a tile of one chunk, `betaRow` one for the row of the
  /// workspace, which are those of the plan; `decayOf` is null where the
  /// inverse has the decay in it.
  InverseWriter(KernelBuilder &k, const RecurrencePlan &plan,
                const WarpInverse &inverse, Value beta, Value betaRow,
                Value workspace, Value gates, Value slot, Value head,
                Decay decayOf);

  /// Row i of blocks, the block of each column j <= i times its decay, null
  /// without `decayOf`; behind them a branch, in front of which they are
  /// straight code, whose latencies ptxas hides.
  void store(int64_t i, int64_t j, Value decay);
  void finishRow(int64_t i);
  /// Behind the last row: second parts, and what the scan has to know of all
  /// rows.
  void finish();

private:
  void markRows(int64_t i);
  Value blockOf(const WarpInverse &of, int64_t i, int64_t j, Value decay);
  void storeLow(Value block, int64_t i, int64_t j);
  void storeLowRows();
  Value countSplitRows();
  Access marksAt(int64_t token) { return {marks, {k.index(token)}, {0}, {}}; }

  KernelBuilder &k;
  const RecurrencePlan &plan;
  const WarpInverse &inverse;
  int64_t c, blocks;
  Value beta, betaRow, gates, slot, head;
  Decay decayOf;
  LowerBlocks rows;
  /// Which rows are split, of blocks where some are, and what is told to the
  /// scan.
  Value marks, flags;
  /// Of the row of blocks: where entries or, on the diagonal, beta are large.
  Value isLarge;
  /// Whether a row of blocks has split rows.
  SmallVector<Value> isSplit;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H
