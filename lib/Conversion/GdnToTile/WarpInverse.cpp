//===- WarpInverse.cpp - T of one head by one warp ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpInverse.h"

using namespace mlir;
using namespace mlir::gdn;

WarpInverse::WarpInverse(KernelBuilder &k, int64_t chunk, Value products,
                         Value beta)
    : k(k), products(products), beta(beta) {
  Value inverses = k.tile({chunk, kBlock + kInversePad}, k.getF32Type());
  gdn_tile::BlockInverseOp::create(k, products, beta, inverses);
  for (int64_t i = 0; i < chunk / kBlock; ++i) {
    Value first = k.index(i * kBlock), zero = k.index(0);
    z[i][i] =
        k.fmul(k.load({inverses, {first, zero}, {0, 1}, {}}, {kBlock, kBlock}),
               rowsOf(i));
    if (i > 0)
      diagonal[i] =
          k.load({inverses, {first, zero}, {1, 0}, {}}, {kBlock, kBlock});
  }
  k.free(inverses);
}

Value WarpInverse::rowsOf(int64_t block) {
  return k.load({beta, {k.index(block * kBlock)}, {0}, {}}, {kBlock, 1});
}

void WarpInverse::substitute(int64_t i) {
  Value negated = k.fmul(rowsOf(i), k.constant(-1.0));
  SmallVector<Value> left;
  for (int64_t j = 0; j < i; ++j) {
    Value block = k.load(
        {products, {k.index(i * kBlock), k.index(j * kBlock)}, {0, 1}, {}},
        {kBlock, kBlock});
    left.push_back(k.fmul(block, negated));
  }
  for (int64_t j = 0; j < i; ++j) {
    Value sum;
    for (int64_t m = j; m < i; ++m)
      sum = k.warpMma(z[j][m], left[m], sum);
    z[j][i] = k.warpMma(sum, diagonal[i], Value());
  }
}

WarpRow::WarpRow(KernelBuilder &k, int64_t chunk, Type type, int64_t parts)
    : k(k), type(type) {
  constexpr int64_t block = WarpInverse::kBlock;
  for (int64_t part = 0; part < parts; ++part)
    tiles.push_back(k.tile({block, chunk}, type));
  if (chunk > block)
    for (Value tile : tiles)
      k.store(k.zero({block, chunk - block}, type),
              {tile, {k.index(0), k.index(block)}, {0, 1}, {}});
}

void WarpRow::store(Value block, int64_t column) {
  Value first = k.index(column * WarpInverse::kBlock);
  for (Value tile : tiles) {
    Value rounded = k.convert(block, type);
    k.store(rounded, {tile, {k.index(0), first}, {1, 0}, {}});
    if (tile != tiles.back())
      block = k.roundingError(block, rounded);
  }
}

void WarpRow::copyOut(int64_t row, Value workspace,
                      function_ref<SmallVector<Value>(int64_t part)> position) {
  for (auto [part, tile] : llvm::enumerate(tiles)) {
    SmallVector<Value> indices = position(part);
    int64_t rank = indices.size();
    indices.append({k.index(row * WarpInverse::kBlock), k.index(0)});
    k.copyOut(tile, {workspace, indices, {rank, rank + 1}, {}});
  }
}

void WarpRow::free() {
  for (Value tile : tiles)
    k.free(tile);
}
