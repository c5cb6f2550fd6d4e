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

/// Entries from which on a row of N is split. Emulated: below it the sums over
/// tokens cancel little enough for one part.
constexpr double kLargeEntry = 0.5;

/// In a transposed block on the diagonal: whether the row's token is earlier
/// than the column's, or the same.
Value isEarlier(KernelBuilder &k, bool orSame);

/// The inverse A of I + strictlower(M_ij beta_j), in the region of a
/// gdn_tile.each_warp and in blocks of 16 tokens, all of them transposed. With
/// Z_ji = A_ij^T, L_ik = -M_ik beta_k and D_i the inverse of the diagonal block
/// i:
///
///   Z_jj = D_j^T;  Z_ji = (sum_{j <= k < i} Z_jk L_ik^T) D_i^T
///
/// Every left operand is a product before, so nothing moves between lanes.
class WarpInverse {
public:
  static constexpr int64_t kBlock = 16;
  /// Rows of these tiles lie in panels of 32 bytes, in which the eight-byte
  /// pieces of a fragment meet no bank twice.
  static constexpr int64_t kProductPad = 8, kInversePad = 8;

  /// `products` is M, a tile of chunk x (chunk + kProductPad), `beta` one of
  /// chunk. Builds the diagonal blocks.
  WarpInverse(KernelBuilder &k, int64_t chunk, Value products, Value beta);

  /// The blocks Z_ji, j < i, from those of the rows before.
  void substitute(int64_t i);
  /// Z_ji, a fragment.
  Value at(int64_t j, int64_t i) const { return z[j][i]; }

private:
  KernelBuilder &k;
  Value products, beta;
  Value z[4][4], diagonal[4];
};

/// A row of blocks on its way to a workspace of matrices as their lower blocks:
/// tiles of the warp for the parts in which the elements are staged.
class WarpRow {
public:
  WarpRow(KernelBuilder &k, int64_t chunk, Type type, int64_t parts);

  /// Zeros in all blocks.
  void clear();
  /// Stores a transposed block of f32 in its column of blocks: rounded, and
  /// what the rounding has left in the next parts.
  void store(Value block, int64_t column);
  /// The blocks up to the diagonal to `position` of each part, as row `row` of
  /// blocks.
  void copyOut(int64_t row, Value workspace,
               function_ref<SmallVector<Value>(int64_t part)> position);
  /// Ends the life of the tiles.
  void free();

private:
  KernelBuilder &k;
  int64_t blocks;
  Type type;
  SmallVector<Value> tiles;
};

/// Writes the inverse of a head as the scan reads it, a row of blocks after the
/// other: see RecurrencePlan::isUnit.
class InverseWriter {
public:
  /// `beta` is a tile of one chunk, the workspaces are those of the plan.
  InverseWriter(KernelBuilder &k, const RecurrencePlan &plan,
                const WarpInverse &inverse, Value beta, Value workspace,
                Value gates, Value slot, Value head);

  /// Row i of blocks: the beginning, the block of each column j <= i times its
  /// decay, if any, and the end.
  void begin(int64_t i);
  void store(int64_t j, Value decay);
  void end();
  /// Behind the last row: what the scan has to know of all rows.
  void finish();

private:
  void storeLow(Value block, int64_t j);
  void copyLow(int64_t i);
  Value at(GateRow row, int64_t token = 0) {
    return k.index(plan.getGateRow(row) - firstFactor + token);
  }
  SmallVector<Value> position(int64_t part) {
    return {slot, head, k.index(part)};
  }

  KernelBuilder &k;
  const RecurrencePlan &plan;
  const WarpInverse &inverse;
  int64_t c, blocks;
  Value beta, workspace, gates, slot, head;
  WarpRow high, low;
  /// What is written here of the chunk's part of `gates`, from `firstFactor`
  /// on.
  Value factors;
  int64_t firstFactor = 0;
  /// The row of blocks: where entries are large, and whether anywhere.
  int64_t row = 0;
  Value isLarge;
  SmallVector<Value> isSplit;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H
