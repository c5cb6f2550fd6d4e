//===- WarpInverse.cpp - T of one head by one warp ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpInverse.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

Value mlir::gdn::isEarlier(KernelBuilder &k, bool orSame) {
  constexpr int64_t block = WarpInverse::kBlock;
  return k.compare(orSame ? arith::CmpIPredicate::sle
                          : arith::CmpIPredicate::slt,
                   k.iota({block, 1}), k.iota({1, block}));
}

Value mlir::gdn::upToFirst(KernelBuilder &k, Value flags) {
  Value isFound =
      k.both(isEarlier(k, /*orSame=*/true), k.greater(flags, k.constant(0.0)));
  return k.select(k.anyOfColumns(isFound), k.constant(1.0), k.constant(0.0));
}

WarpInverse::WarpInverse(KernelBuilder &k, int64_t chunk, Value products,
                         Value beta, gdn_tile::ProductPrecision precision)
    : k(k), blocks(chunk / kBlock), products(products), beta(beta),
      precision(precision) {
  scratch = k.tile({kScratchPerToken * chunk}, k.getF32Type());
  invertDiagonal();
}

WarpInverse::WarpInverse(const WarpInverse &other,
                         gdn_tile::ProductPrecision precision)
    : k(other.k), blocks(other.blocks), products(other.products),
      beta(other.beta), scratch(other.scratch), precision(precision) {
  invertDiagonal();
}

void WarpInverse::free() { k.free(scratch); }

void WarpInverse::invertDiagonal() {
  auto inverses =
      gdn_tile::BlockInverseOp::create(k, products, beta, scratch, precision)
          .getInverses();
  for (int64_t i = 0; i < blocks; ++i) {
    z[i][i] = inverses[i];
    diagonal[i] = inverses[blocks + i];
  }
}

void WarpInverse::substitute(int64_t i) {
  SmallVector<Value> right;
  for (int64_t j = 0; j < i; ++j)
    right.push_back(k.load(
        {products, {k.index(i * kBlock), k.index(j * kBlock)}, {0, 1}, {}},
        {kBlock, kBlock}));
  for (int64_t j = 0; j < i; ++j) {
    Value sum;
    for (int64_t m = j; m < i; ++m)
      sum = k.warpMma(scaled[j][m], right[m], sum, precision);
    z[j][i] = k.warpMma(sum, diagonal[i], Value(), precision);
  }
  if (i + 1 == blocks)
    return;
  Value factor =
      k.fmul(k.load({beta, {k.index(i * kBlock)}, {0}, {}}, {1, kBlock}),
             k.constant(-1.0));
  for (int64_t j = 0; j <= i; ++j)
    scaled[j][i] = k.fmul(z[j][i], factor);
}

//===----------------------------------------------------------------------===//
// LowerBlocks
//===----------------------------------------------------------------------===//

void LowerBlocks::store(KernelBuilder &k, Value block, int64_t row,
                        int64_t column, int64_t parts) const {
  Type type = cast<MemRefType>(workspace.getType()).getElementType();
  for (auto [part, rounded] : llvm::enumerate(k.split(block, type, parts)))
    storePart(k, rounded, row, column, part);
}

SmallVector<Value> LowerBlocks::indicesOf(KernelBuilder &k, int64_t row,
                                          int64_t column, int64_t part) const {
  SmallVector<Value> indices = position(part);
  int64_t first = gdn_tile::getLowerRow(row, column, blocks);
  indices.append({k.index(first), k.index(0)});
  return indices;
}

void LowerBlocks::storePart(KernelBuilder &k, Value block, int64_t row,
                            int64_t column, int64_t part) const {
  k.storeBlock(block, workspace, indicesOf(k, row, column, part),
               /*isDiagonal=*/row == column);
}

Value LowerBlocks::loadPart(KernelBuilder &k, int64_t row, int64_t column,
                            int64_t part) const {
  return k.loadBlock(workspace, indicesOf(k, row, column, part),
                     /*isDiagonal=*/row == column);
}

//===----------------------------------------------------------------------===//
// InverseWriter
//===----------------------------------------------------------------------===//

InverseWriter::InverseWriter(KernelBuilder &k, const RecurrencePlan &plan,
                             const WarpInverse &inverse, Value beta,
                             Value betaRow, Value workspace, Value gates,
                             Value slot, Value head, Decay decayOf)
    : k(k), plan(plan), inverse(inverse), c(plan.chunk),
      blocks(plan.chunk / WarpInverse::kBlock), beta(beta), betaRow(betaRow),
      gates(gates), slot(slot), head(head), decayOf(std::move(decayOf)),
      rows{workspace, blocks, [&k, slot, head](int64_t part) {
             return SmallVector<Value>{slot, head, k.index(part)};
           }} {
  if (!plan.isUnit)
    return;
  marks = k.tile({c}, k.getF32Type());
  flags = k.tile({kFlagSize}, k.getF32Type());
}

void InverseWriter::finishRow(int64_t i) {
  if (!plan.isUnit)
    return;
  // On the diagonal beta, in a measure in which both have one limit.
  constexpr int64_t size = WarpInverse::kBlock;
  Value betas = k.fmul(k.load({beta, {k.index(i * size)}, {0}, {}}, {1, size}),
                       k.constant(kLargeEntry / kLargeBeta));
  Value largest =
      k.select(isEarlier(k, /*orSame=*/false), k.abs(inverse.at(i, i)),
               k.broadcast(betas, {size, size}));
  for (int64_t j = 0; j < i; ++j)
    largest = k.fmax(largest, k.abs(inverse.at(j, i)));
  isLarge = k.greater(largest, k.constant(kLargeEntry));
  Value isAny = k.any(isLarge);
  if (i > 0)
    isAny = arith::OrIOp::create(k, isSplit.back(), isAny);
  isSplit.push_back(isAny);
  k.onlyIn(isAny, [&] { markRows(i); });
}

// The split rows of a block, from the first with a large entry or beta on:
// through memory, which makes a column of a row.
void InverseWriter::markRows(int64_t i) {
  constexpr int64_t size = WarpInverse::kBlock;
  Value one = k.constant(1.0), zero = k.constant(0.0);
  Access access = marksAt(i * size);
  k.store(k.select(k.anyOfColumns(isLarge), one, zero), access);
  Value rows = upToFirst(k, k.load(access, {size, 1}));
  if (i > 0)
    rows = k.fmax(rows, arith::SelectOp::create(k, isSplit[i - 1], one, zero));
  k.store(rows, access);
}

// A block of N.
Value InverseWriter::blockOf(const WarpInverse &of, int64_t i, int64_t j,
                             Value decay) {
  Value block = of.at(j, i);
  if (decay)
    block = k.fmul(block, decay);
  if (i == j)
    block = k.select(isEarlier(k, /*orSame=*/false), block, k.constant(0.0));
  return block;
}

void InverseWriter::store(int64_t i, int64_t j, Value decay) {
  if (plan.isUnit)
    return rows.store(k, blockOf(inverse, i, j, decay), i, j, /*parts=*/1);
  Value block = inverse.at(j, i);
  if (decay)
    block = k.fmul(block, decay);
  block =
      k.fmul(block, k.load({beta, {k.index(i * WarpInverse::kBlock)}, {0}, {}},
                           {1, WarpInverse::kBlock}));
  rows.store(k, block, i, j, plan.inverseParts);
}

// What the first parts of split rows lack; zeros of others.
void InverseWriter::storeLow(Value block, int64_t i, int64_t j) {
  constexpr int64_t size = WarpInverse::kBlock;
  Value error = k.roundingError(block, rows.loadPart(k, i, j, /*part=*/0));
  Value areSplit = k.load(marksAt(i * size), {1, size});
  Value isOwn = k.broadcast(k.greater(areSplit, k.constant(0.0)), {size, size});
  Value low = k.select(isOwn, error, k.constant(0.0));
  rows.storePart(k, k.convert(low, plan.type), i, j, /*part=*/1);
}

// Of an inverse that is more exact than the first parts.
void InverseWriter::storeLowRows() {
  WarpInverse exact(inverse, gdn_tile::ProductPrecision::BF16x3);
  Value zero = k.zero({WarpInverse::kBlock, WarpInverse::kBlock}, plan.type);
  for (int64_t i = 0; i < blocks; ++i) {
    exact.substitute(i);
    auto hasLow = scf::IfOp::create(k, TypeRange(), isSplit[i],
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k);
    for (int64_t j = 0; j <= i; ++j) {
      k.setInsertionPoint(hasLow.thenBlock()->getTerminator());
      storeLow(blockOf(exact, i, j, decayOf ? decayOf(i, j) : Value()), i, j);
      k.setInsertionPoint(hasLow.elseBlock()->getTerminator());
      rows.storePart(k, zero, i, j, /*part=*/1);
    }
  }
}

void InverseWriter::finish() {
  if (!plan.isUnit)
    return;
  auto setFlags = [&](Value value) {
    k.store(k.broadcast(value, {1, kFlagSize}), {flags, {k.index(0)}, {0}, {}});
  };
  setFlags(k.constant(0.0));
  k.onlyIn(isSplit.back(), [&] {
    setFlags(countSplitRows());
    storeLowRows();
  });
  auto copyOut = [&](Value tile, GateRow row) {
    Value first = k.index(plan.getGateRow(row));
    k.copyOut(tile, {gates, {slot, head, first}, {2}, {}});
  };
  // With gates per head the rows in front are written with their sums.
  copyOut(betaRow, plan.getBetaRow());
  copyOut(flags, kGateRows);
  k.free(marks);
  k.free(flags);
}

Value InverseWriter::countSplitRows() {
  Value zero = k.broadcast(k.constant(0.0), {1, 1}), count = zero;
  for (int64_t i = 0; i < blocks; ++i) {
    Value own = k.sum(
        k.load(marksAt(i * WarpInverse::kBlock), {1, WarpInverse::kBlock}),
        {1, 1});
    count = k.fadd(count, arith::SelectOp::create(k, isSplit[i], own, zero));
  }
  return count;
}
