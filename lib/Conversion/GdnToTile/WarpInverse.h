//===- WarpInverse.h - T of one head by one warp ----------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H

#include "KernelBuilder.h"

namespace mlir::gdn {

/// The inverse A of I + strictlower(beta_i M_ij), times beta_j, in the region
/// of a gdn_tile.each_warp and in blocks of 16 tokens, all of them transposed.
/// With Z_ji = (beta_j A_ij)^T, L_ik = -beta_i M_ik and D_i the inverse of the
/// diagonal block i:
///
///   Z_jj = beta_j D_j^T;  Z_ji = (sum_{j <= k < i} Z_jk L_ik^T) D_i^T
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
  Value rowsOf(int64_t block);

  KernelBuilder &k;
  Value products, beta;
  Value z[4][4], diagonal[4];
};

/// A row of blocks on its way to a workspace: tiles of the warp for the parts
/// in which the elements are staged. What no row reaches before the last one
/// holds zeros.
class WarpRow {
public:
  WarpRow(KernelBuilder &k, int64_t chunk, Type type, int64_t parts);

  /// Stores a transposed block of f32 in its column of blocks: rounded, and
  /// what the rounding has left in the next parts.
  void store(Value block, int64_t column);
  /// To `position` of each part, behind it the rows from block `row` on.
  void copyOut(int64_t row, Value workspace,
               function_ref<SmallVector<Value>(int64_t part)> position);
  /// Ends the life of the tiles.
  void free();

private:
  KernelBuilder &k;
  Type type;
  SmallVector<Value> tiles;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_WARPINVERSE_H
