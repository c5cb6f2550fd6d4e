//===- ChunkPrepare.cpp - T and P of a chunk by four warps ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkPrepare.h"
#include "PrepareKernel.h"
#include "WarpInverse.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

constexpr int64_t kBlock = WarpInverse::kBlock;
// Columns of the tile in which a warp says whether its entries are large.
constexpr int64_t kLargeSize = 8;

ChunkPrepare::ChunkPrepare(KernelBuilder &k, const RecurrencePlan &plan,
                           const ChunkInputs &inputs,
                           const ChunkOutputs &outputs)
    : k(k), plan(plan), in(inputs), out(outputs), c(plan.chunk),
      blocks(plan.chunk / kBlock),
      scale(RecurrenceOp(plan.op).getScaleValue()) {}

void ChunkPrepare::build() {
  Type f32 = k.getF32Type();
  products = k.tile({c, c + WarpInverse::kProductPad}, f32);
  if (in.gate)
    sums = k.tile({c}, f32);
  if (plan.isDelta) {
    inverses = k.tile({c, kBlock + WarpInverse::kInversePad}, f32);
    large = k.tile({blocks * kLargeSize}, f32);
  }
  sumGates();
  buildProducts();
  invertDiagonal();
  k.eachWarp(k.index(blocks), [&](Value j) { buildColumn(j); });
  if (out.gates)
    k.eachWarp(k.index(1), [&](Value) { writeFactors(); });
  if (plan.isDelta)
    buildLow();
}

// By one warp: the sums of 64 gates are few instructions, and the others have
// products to make meanwhile.
void ChunkPrepare::sumGates() {
  if (in.gate)
    k.eachWarp(k.index(1), [&](Value) { storeGateSums(k, in.gate, sums); });
}

// One product after the other: warps beside the scan have no registers for two.
void ChunkPrepare::buildProducts() {
  Access all{products, {k.index(0), k.index(0)}, {0, 1}, {}};
  auto multiply = [&](Value right) {
    Value keys = k.load(whole(k, in.k), {c, plan.keyPad});
    return k.mma(keys, right, Value(), /*transposeB=*/true);
  };
  if (plan.isDelta)
    k.store(multiply(in.k), all);
  // k_j.q_i and not q_i.k_j: P leaves transposed, as N does.
  Value merged = k.fmul(multiply(in.q), k.constant(scale));
  if (plan.isDelta) {
    Value isLower =
        k.compare(arith::CmpIPredicate::sgt, k.iota({c, 1}), k.iota({1, c}));
    merged = k.select(isLower, k.load(all, {c, c}), merged);
  }
  k.store(merged, all);
}

void ChunkPrepare::invertDiagonal() {
  if (plan.isDelta)
    k.eachWarp(k.index(1), [&](Value) {
      gdn_tile::BlockInverseOp::create(k, products, in.beta, inverses);
    });
}

// The tokens of a vector from `first` on, as a row or as a column.
Value ChunkPrepare::tokensAt(Value vector, Value first, bool isRow) {
  return k.load({vector, {first}, {0}, {}},
                isRow ? Shape2{1, kBlock} : Shape2{kBlock, 1});
}

// exp(G_i - G_j) of a block. Of the diagonal block what lies above the diagonal
// is 0 otherwise, so it needs a bound only.
Value ChunkPrepare::decayOf(int64_t i, Value j) {
  Value late = tokensAt(sums, k.index(i * kBlock), /*isRow=*/true);
  Value early = tokensAt(sums, k.mul(j, k.index(kBlock)), /*isRow=*/false);
  Value difference = k.fsub(late, early);
  Value zero = k.constant(0.0);
  return k.exp2(k.select(k.greater(difference, zero), zero, difference));
}

// Block i of row j of Z, for i >= j, from the blocks before: zeros for i < j.
Value ChunkPrepare::buildBlock(Value j, int64_t i, ArrayRef<Value> before,
                               Value isDiagonal) {
  Value row = k.index(i * kBlock), zero = k.index(0);
  auto inverse = [&](int64_t rows, int64_t cols) {
    return k.load({inverses, {row, zero}, {rows, cols}, {}}, {kBlock, kBlock});
  };
  if (i == 0)
    return inverse(0, 1);
  auto branch = scf::IfOp::create(
      k, TypeRange{VectorType::get({kBlock, kBlock}, k.getF32Type())},
      isDiagonal, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(k, inverse(0, 1));
  k.setInsertionPointToStart(branch.elseBlock());
  Value sum = k.zero({kBlock, kBlock}, k.getF32Type());
  for (int64_t m = 0, n = before.size(); m < n; ++m) {
    auto multiply = [&] {
      Value first = k.index(m * kBlock);
      Value left =
          k.load({products, {row, first}, {0, 1}, {}}, {kBlock, kBlock});
      Value factor = tokensAt(in.beta, first, /*isRow=*/true);
      left = k.fmul(left, k.fmul(factor, k.constant(-1.0)));
      return k.warpMma(before[m], left, sum);
    };
    Value isThere = k.less(j, k.index(m + 1));
    sum = k.ifElse(isThere, multiply, sum);
  }
  scf::YieldOp::create(k, k.warpMma(sum, inverse(1, 0), Value()));
  return branch.getResult(0);
}

// What lies above the diagonal of a diagonal block, and the diagonal, counts as
// zero.
Value ChunkPrepare::masked(Value value, Value isDiagonal, bool keepsDiagonal) {
  auto mask = [&] {
    return k.select(isEarlier(k, /*orSame=*/keepsDiagonal), value,
                    k.constant(0.0));
  };
  return k.ifElse(isDiagonal, mask, value);
}

void ChunkPrepare::storeBlock(Value block, Value tile, int64_t i, Value j) {
  k.store(block,
          {tile, {k.index(i * kBlock), k.mul(j, k.index(kBlock))}, {1, 0}, {}});
}

// Goes over the blocks i >= j of column j of N and P. `build` gives values of
// the types of `zeros`; these stand for the blocks i < j, which are zero.
void ChunkPrepare::forEachBlock(
    Value j, ArrayRef<Value> zeros,
    function_ref<SmallVector<Value>(const Block &)> build,
    function_ref<void(int64_t i, ValueRange)> handle) {
  Value none = k.zero({kBlock, kBlock}, k.getF32Type());
  SmallVector<Value> before;
  for (int64_t i = 0; i < blocks; ++i) {
    SmallVector<Value> otherwise(zeros);
    otherwise.push_back(none);
    auto branch = scf::IfOp::create(k, ValueRange(otherwise).getTypes(),
                                    k.less(j, k.index(i + 1)),
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(k);
      k.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k, otherwise);
      k.setInsertionPointToStart(branch.thenBlock());
      Block block{i, k.equal(j, k.index(i)), Value(), Value()};
      Value z = none;
      if (in.gate)
        block.decay = decayOf(i, j);
      if (plan.isDelta) {
        z = buildBlock(j, i, before, block.isDiagonal);
        block.n = masked(z, block.isDiagonal, /*keepsDiagonal=*/false);
      }
      SmallVector<Value> results = build(block);
      results.push_back(z);
      scf::YieldOp::create(k, results);
    }
    before.push_back(branch.getResults().back());
    handle(i, branch.getResults().drop_back());
  }
}

// A block of P. Whatever later tokens hold, infinities too, they leave no
// trace.
Value ChunkPrepare::scoreOf(Value j, const Block &block) {
  Value first = k.mul(j, k.index(kBlock));
  Value score =
      k.load({products, {first, k.index(block.i * kBlock)}, {0, 1}, {}},
             {kBlock, kBlock});
  if (block.decay)
    score = k.fmul(score, block.decay);
  if (plan.isUnit)
    score = k.fmul(score, tokensAt(in.beta, first, /*isRow=*/false));
  return masked(score, block.isDiagonal, /*keepsDiagonal=*/true);
}

Value ChunkPrepare::decayed(const Block &block) {
  return block.decay ? k.fmul(block.n, block.decay) : block.n;
}

// All blocks are made before the first is stored: the tiles may still be read.
void ChunkPrepare::buildColumn(Value j) {
  Value rounded = k.zero({kBlock, kBlock}, plan.type);
  Value largest = k.zero({kBlock, kBlock}, k.getF32Type());
  SmallVector<Value> scores, inverse, zeros(1, rounded);
  if (plan.isDelta)
    zeros.append({rounded, largest});
  auto build = [&](const Block &block) {
    SmallVector<Value> results{k.convert(scoreOf(j, block), plan.type)};
    if (plan.isDelta)
      results.append({k.convert(decayed(block), plan.type), k.abs(block.n)});
    return results;
  };
  forEachBlock(j, zeros, build, [&](int64_t, ValueRange results) {
    scores.push_back(results[0]);
    if (!plan.isDelta)
      return;
    inverse.push_back(results[1]);
    largest = k.fmax(largest, results[2]);
  });
  for (auto [i, block] : llvm::enumerate(scores))
    storeBlock(block, out.scores, i, j);
  for (auto [i, block] : llvm::enumerate(inverse))
    storeBlock(block, out.inverse, i, j);
  if (!plan.isDelta)
    return;
  Value isLarge = k.any(k.greater(largest, k.constant(kLargeEntry)));
  Value flag =
      arith::SelectOp::create(k, isLarge, k.constant(1.0), k.constant(0.0));
  k.store(k.broadcast(flag, {1, kLargeSize}),
          {large, {k.mul(j, k.index(kLargeSize))}, {0}, {}});
}

Value ChunkPrepare::anyIsSplit() {
  Value flags = k.load(whole(k, large), {1, blocks * kLargeSize});
  return k.any(k.greater(flags, k.constant(0.0)));
}

Access ChunkPrepare::factorAt(GateRow row, Value token) {
  Value first = k.index(plan.getGateRow(row));
  return {out.gates, {token ? k.add(first, token) : first}, {0}, {}};
}

void ChunkPrepare::writeFactors() {
  Value beta;
  if (plan.isUnit) {
    beta = in.beta;
    k.store(k.zero({1, c}, k.getF32Type()), factorAt(kSplit));
    Value flag = arith::SelectOp::create(k, anyIsSplit(), k.constant(1.0),
                                         k.constant(0.0));
    k.store(k.broadcast(flag, {1, kFlagSize}), factorAt(kGateRows));
  }
  if (in.gate)
    storeGateRows(k, plan, sums, beta, out.gates);
  else
    k.store(k.load(whole(k, beta), {1, c}), factorAt(kRest));
}

// What the rounding has left of N, in rows with a large entry anywhere. Rare: N
// is computed again, in the place of registers that hold it.
void ChunkPrepare::buildLow() {
  auto branch = scf::IfOp::create(k, anyIsSplit());
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(branch.thenBlock());
  Value rows = k.tile({blocks * c}, k.getF32Type());
  k.eachWarp(k.index(blocks), [&](Value j) { markRows(rows, j); });
  k.eachWarp(k.index(blocks), [&](Value i) { maskLow(rows, i); });
}

// All errors, and the rows of each column of blocks with large entries.
void ChunkPrepare::markRows(Value rows, Value j) {
  Value zero = k.constant(0.0), one = k.constant(1.0);
  auto build = [&](const Block &block) -> SmallVector<Value> {
    Value value = decayed(block);
    Value error = k.roundingError(value, k.convert(value, plan.type));
    Value isLarge =
        k.anyOfColumns(k.greater(k.abs(block.n), k.constant(kLargeEntry)));
    return {k.convert(error, plan.type), k.select(isLarge, one, zero)};
  };
  SmallVector<Value> zeros{k.zero({kBlock, kBlock}, plan.type),
                           k.zero({1, kBlock}, k.getF32Type())};
  forEachBlock(j, zeros, build, [&](int64_t i, ValueRange results) {
    storeBlock(results[0], out.low, i, j);
    Value first = k.add(k.mul(j, k.index(c)), k.index(i * kBlock));
    k.store(results[1], {rows, {first}, {0}, {}});
  });
}

void ChunkPrepare::maskLow(Value rows, Value i) {
  Value zero = k.constant(0.0);
  Value first = k.mul(i, k.index(kBlock)), isOwn;
  for (int64_t j = 0; j < blocks; ++j) {
    Value token = k.add(first, k.index(j * c));
    Value row = k.load({rows, {token}, {0}, {}}, {1, kBlock});
    isOwn = isOwn ? k.fmax(isOwn, row) : row;
  }
  k.store(isOwn, factorAt(kSplit, first));
  for (int64_t j = 0; j < blocks; ++j) {
    Access access{out.low, {first, k.index(j * kBlock)}, {1, 0}, {}};
    Value error = k.loadF32(access, {kBlock, kBlock});
    error = k.select(k.broadcast(k.greater(isOwn, zero), {kBlock, kBlock}),
                     error, zero);
    k.store(k.convert(error, plan.type), access);
  }
}
