//===- ChunkPrepare.cpp - T and P of a chunk by four warps ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkPrepare.h"
#include "PrepareKernel.h"
#include "RecurrenceInputs.h"
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
      blocks(plan.chunk / kBlock), precision(plan.getInversePrecision()),
      scale(RecurrenceOp(plan.op).getScaleValue()) {}

void ChunkPrepare::build() {
  if (in.gate)
    sums = k.tile({c}, k.getF32Type());
  sumGates();
  if (out.inverse)
    buildBlocks();
  // Behind M: warps beside the scan have no registers for two results.
  Value scores = multiplyQueries();
  k.eachWarp(k.index(blocks), [&](Value w) {
    if (out.inverse)
      buildColumn(w);
    buildScores(scores, w);
    if (out.gates)
      k.onlyIn(k.equal(w, k.index(blocks - 1)), [&] { writeFactors(); });
  });
  if (!out.inverse)
    return;
  writeFlags();
  buildLow();
}

void ChunkPrepare::allocateTiles() {
  Type f32 = k.getF32Type();
  factors = k.tile({c, c}, f32);
  diagonals = k.tile({blocks, kBlock, kBlock}, f32);
  ownBetas = k.tile({blocks, kBlock}, f32);
  inverses = k.tile({blocks, kBlock, kBlock}, f32);
  large = k.tile({blocks * kLargeSize}, f32);
}

Value ChunkPrepare::multiplyKeys() {
  Value keys = k.load(whole(k, in.k), {c, plan.keyPad});
  return k.mma(keys, in.k, Value(), /*transposeB=*/true);
}

Value ChunkPrepare::multiplyQueries() {
  if (out.queries)
    storeQueryFactors();
  Value queries = k.load(whole(k, in.q), {c, plan.keyPad});
  return k.fmul(k.mma(queries, in.k, Value(), /*transposeB=*/true),
                k.constant(scale));
}

// A slice of columns after the other, of which few registers are taken. Beside
// a scan the tensor cores are those of its products: squares there would wait.
void ChunkPrepare::storeQueryFactors() {
  int64_t slice = plan.keyPad % 32 == 0 ? 32 : 16;
  Value squares;
  for (int64_t first = 0; first < plan.keyPad; first += slice) {
    Value x =
        k.loadF32({in.q, {k.index(0), k.index(first)}, {0, 1}, {}}, {c, slice});
    squares = squares ? k.fma(x, x, squares) : k.fmul(x, x);
  }
  k.store(emitNormFactor(k, k.sum(squares, {c, 1}), plan.inputs.qNorm),
          {out.queries, {k.index(0)}, {0}, {}});
}

// By one warp: the sums of 64 gates are few instructions.
void ChunkPrepare::sumGates() {
  if (in.gate)
    k.eachWarp(k.index(1), [&](Value) {
      storeGateSums(k, in.gate, /*column=*/Value(), sums);
    });
}

// M and D.
void ChunkPrepare::buildBlocks() {
  allocateTiles();
  Value m = multiplyKeys();
  k.eachWarp(k.index(blocks), [&](Value w) {
    for (int64_t j = 0; j < blocks; ++j)
      storeBlockOf(m, j, w);
    invertDiagonal(w);
  });
}

// Block j of the warp's row of M: in front of the diagonal for all warps.
void ChunkPrepare::storeBlockOf(Value m, int64_t j, Value w) {
  Value block = k.ownRows(m, j * kBlock);
  if (j < blocks - 1)
    k.onlyIn(k.less(k.index(j), w), [&] { storeFactor(block, w, k.index(j)); });
  k.onlyIn(k.equal(w, k.index(j)),
           [&] { k.store(block, whole(k, k.stage(diagonals, w))); });
}

void ChunkPrepare::invertDiagonal(Value w) {
  Value beta = k.stage(ownBetas, w), inverse = k.stage(inverses, w);
  k.store(tokensAt(in.beta, w, /*isRow=*/true), whole(k, beta));
  auto inverted = gdn_tile::BlockInverseOp::create(k, k.stage(diagonals, w),
                                                   beta, inverse, precision);
  k.store(inverted.getResult(0), whole(k, inverse));
  storeFactor(inverted.getResult(1), w, w);
}

void ChunkPrepare::storeFactor(Value block, Value i, Value j) {
  k.store(block, {factors,
                  {k.mul(i, k.index(kBlock)), k.mul(j, k.index(kBlock))},
                  {0, 1},
                  {}});
}

Value ChunkPrepare::loadFactor(int64_t i, int64_t j) {
  return k.load(
      {factors, {k.index(i * kBlock), k.index(j * kBlock)}, {0, 1}, {}},
      {kBlock, kBlock});
}

// The tokens of a block of a vector, as a row or as a column.
Value ChunkPrepare::tokensAt(Value vector, Value block, bool isRow,
                             int64_t first) {
  Value at = k.add(k.mul(block, k.index(kBlock)), k.index(first));
  return k.load({vector, {at}, {0}, {}},
                isRow ? Shape2{1, kBlock} : Shape2{kBlock, 1});
}

// The same of the sums of gates.
Value ChunkPrepare::sumsAt(Value block, bool isRow) {
  if (in.factors)
    return tokensAt(in.factors, block, isRow, plan.getGateRow(kSums));
  return tokensAt(sums, block, isRow);
}

// exp(G_i - G_j). Where j is later, the result is masked: it needs a bound
// only.
Value ChunkPrepare::decayOf(Value late, Value early) {
  Value difference = k.fsub(late, early);
  Value zero = k.constant(0.0);
  return k.exp2(k.select(k.greater(difference, zero), zero, difference));
}

// Block i of row j of Z, for i >= j, from the blocks before.
Value ChunkPrepare::buildBlock(Value j, int64_t i, ArrayRef<Value> before,
                               Value isDiagonal) {
  auto inverse = [&] {
    return k.load(whole(k, k.stage(inverses, j)), {kBlock, kBlock});
  };
  if (i == 0)
    return inverse();
  auto branch = scf::IfOp::create(
      k, TypeRange{VectorType::get({kBlock, kBlock}, k.getF32Type())},
      isDiagonal, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(k, inverse());
  k.setInsertionPointToStart(branch.elseBlock());
  Value sum = k.zero({kBlock, kBlock}, k.getF32Type());
  for (int64_t m = 0, n = before.size(); m < n; ++m)
    sum = k.ifElse(
        k.less(j, k.index(m + 1)),
        [&] { return k.warpMma(before[m], loadFactor(i, m), sum, precision); },
        sum);
  Value result = k.warpMma(sum, loadFactor(i, i), Value(), precision);
  scf::YieldOp::create(k, result);
  return branch.getResult(0);
}

// Only what is kept of a diagonal block counts, the rest is zero, whatever
// later tokens hold.
Value ChunkPrepare::masked(Value value, Value isDiagonal, Value isKept) {
  return k.ifElse(
      isDiagonal, [&] { return k.select(isKept, value, k.constant(0.0)); },
      value);
}

void ChunkPrepare::storeBlock(Value block, Value tile, int64_t i, Value j) {
  k.store(block,
          {tile, {k.index(i * kBlock), k.mul(j, k.index(kBlock))}, {1, 0}, {}});
}

Value ChunkPrepare::loadBlock(Value tile, int64_t i, Value j) {
  return k.load(
      {tile, {k.index(i * kBlock), k.mul(j, k.index(kBlock))}, {1, 0}, {}},
      {kBlock, kBlock});
}

// Goes over the blocks i >= j of column j of N, without exp(G_i - G_j), which
// comes beside it, null without gates. `build` gives values of the types of
// `zeros`; these stand for the blocks i < j, which are zero.
void ChunkPrepare::forEachBlock(
    Value j, ArrayRef<Value> zeros,
    function_ref<SmallVector<Value>(Value n, Value decay)> build,
    function_ref<void(int64_t i, ValueRange)> handle) {
  SmallVector<Value> otherwise(zeros);
  otherwise.push_back(k.zero({kBlock, kBlock}, k.getF32Type()));
  SmallVector<Value> before;
  for (int64_t i = 0; i < blocks; ++i) {
    auto branch = scf::IfOp::create(k, ValueRange(otherwise).getTypes(),
                                    k.less(j, k.index(i + 1)),
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(k);
      k.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k, otherwise);
      k.setInsertionPointToStart(branch.thenBlock());
      Value isDiagonal = k.equal(j, k.index(i)), decay;
      Value z = buildBlock(j, i, before, isDiagonal);
      if (in.gate)
        decay = decayOf(sumsAt(k.index(i), /*isRow=*/true),
                        sumsAt(j, /*isRow=*/false));
      SmallVector<Value> results =
          build(masked(z, isDiagonal, isEarlier(k, /*orSame=*/false)), decay);
      Value factor = k.fmul(tokensAt(in.beta, k.index(i), /*isRow=*/true),
                            k.constant(-1.0));
      results.push_back(k.fmul(z, factor));
      scf::YieldOp::create(k, results);
    }
    ValueRange results = branch.getResults();
    before.push_back(results.back());
    handle(i, results.drop_back());
  }
}

// Block (w, j) of P, not masked.
Value ChunkPrepare::scoreAt(Value scores, Value w, int64_t j) {
  Value score = k.ownRows(scores, j * kBlock), block = k.index(j);
  if (plan.gateKind == GateKind::Head)
    score = k.fmul(score, decayOf(sumsAt(w, /*isRow=*/false),
                                  sumsAt(block, /*isRow=*/true)));
  if (!plan.isUnit)
    return score;
  return k.fmul(score, in.factors ? tokensAt(in.factors, block, /*isRow=*/true,
                                             plan.getGateRow(plan.getBetaRow()))
                                  : tokensAt(in.beta, block, /*isRow=*/true));
}

// Row w of blocks of P.
void ChunkPrepare::buildScores(Value scores, Value w) {
  Value isKept = k.compare(arith::CmpIPredicate::sge, k.iota({kBlock, 1}),
                           k.iota({1, kBlock}));
  Value zero = k.zero({kBlock, kBlock}, plan.type);
  for (int64_t j = 0; j < blocks; ++j) {
    auto build = [&] {
      Value isDiagonal = k.equal(w, k.index(j));
      return k.convert(masked(scoreAt(scores, w, j), isDiagonal, isKept),
                       plan.type);
    };
    Value score =
        k.ifElse(k.less(k.index(j), k.add(w, k.index(1))), build, zero);
    k.store(score, {out.scores,
                    {k.mul(w, k.index(kBlock)), k.index(j * kBlock)},
                    {0, 1},
                    {}});
  }
}

static Value decayed(KernelBuilder &k, Value n, Value decay) {
  return decay ? k.fmul(n, decay) : n;
}

// Column j of blocks of N.
void ChunkPrepare::buildColumn(Value j) {
  Value largest = k.zero({kBlock, kBlock}, k.getF32Type());
  SmallVector<Value> zeros{k.zero({kBlock, kBlock}, plan.type), largest};
  auto build = [&](Value n, Value decay) -> SmallVector<Value> {
    return {k.convert(decayed(k, n, decay), plan.type), k.abs(n)};
  };
  forEachBlock(j, zeros, build, [&](int64_t i, ValueRange results) {
    storeBlock(results[0], out.inverse, i, j);
    largest = k.fmax(largest, results[1]);
  });
  Value isLarge = arith::OrIOp::create(
      k, k.any(k.greater(largest, k.constant(kLargeEntry))),
      k.any(k.greater(tokensAt(in.beta, j, /*isRow=*/true),
                      k.constant(kLargeBeta))));
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

// The factors that follow from gates and beta.
void ChunkPrepare::writeFactors() {
  Value beta = plan.isUnit ? in.beta : Value();
  if (in.gate)
    storeGateRows(k, plan, {sums, beta, Value(), Value()}, out.gates);
  if (beta)
    k.store(k.load(whole(k, beta), {1, c}), factorAt(plan.getBetaRow()));
}

void ChunkPrepare::writeFlags() {
  k.eachWarp(k.index(1), [&](Value) {
    k.store(k.broadcast(k.constant(0.0), {1, kFlagSize}), factorAt(kGateRows));
  });
}

// What N lacks of a more exact inverse, in rows with a large entry anywhere, as
// InverseWriter has it. Rare: N is computed again, in the place of registers
// that hold it.
void ChunkPrepare::buildLow() {
  auto branch = scf::IfOp::create(k, anyIsSplit());
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(branch.thenBlock());
  Value rows = k.tile({blocks * c}, k.getF32Type());
  Value marks = k.tile({c}, k.getF32Type());
  k.eachWarp(k.index(blocks), [&](Value j) { findRows(rows, j); });
  k.eachWarp(k.index(blocks), [&](Value i) { markRows(rows, marks, i); });
  precision = gdn_tile::ProductPrecision::BF16x3;
  k.eachWarp(k.index(blocks), [&](Value w) { invertDiagonal(w); });
  k.eachWarp(k.index(blocks), [&](Value j) { storeLow(marks, j); });
}

// The rows of each column of blocks with large entries.
void ChunkPrepare::findRows(Value rows, Value j) {
  Value zero = k.constant(0.0), one = k.constant(1.0);
  auto build = [&](Value n, Value) -> SmallVector<Value> {
    Value isLarge =
        k.anyOfColumns(k.greater(k.abs(n), k.constant(kLargeEntry)));
    return {k.select(isLarge, one, zero)};
  };
  forEachBlock(j, k.zero({1, kBlock}, k.getF32Type()), build,
               [&](int64_t i, ValueRange results) {
                 Value first = k.add(k.mul(j, k.index(c)), k.index(i * kBlock));
                 Value betas = tokensAt(in.beta, k.index(i), /*isRow=*/true);
                 Value isLarge = k.greater(betas, k.constant(kLargeBeta));
                 k.store(k.fmax(results[0], k.select(isLarge, one, zero)),
                         {rows, {first}, {0}, {}});
               });
}

// Which rows of a block are split, and in the block with the first of them how
// many there are.
void ChunkPrepare::markRows(Value rows, Value marks, Value i) {
  Value zero = k.constant(0.0), one = k.constant(1.0);
  Value first = k.mul(i, k.index(kBlock));
  // Whether the rows of a block have large entries in any column of blocks.
  auto flagsOf = [&](Value token, Shape2 shape) {
    Value flags;
    for (int64_t j = 0; j < blocks; ++j) {
      Value part =
          k.load({rows, {k.add(token, k.index(j * c))}, {0}, {}}, shape);
      flags = flags ? k.fmax(flags, part) : part;
    }
    return flags;
  };
  Value isOwn = upToFirst(k, flagsOf(first, {kBlock, 1}));
  Value hasOwn = k.any(k.greater(isOwn, zero)), later = zero;
  Value hasEarlier = arith::ConstantIntOp::create(k, 0, /*width=*/1);
  for (int64_t before = 0; before < blocks - 1; ++before) {
    Value flags = flagsOf(k.index(before * kBlock), {1, kBlock});
    Value isSplit =
        k.both(k.any(k.greater(flags, zero)), k.less(k.index(before), i));
    hasEarlier = arith::OrIOp::create(k, hasEarlier, isSplit);
    later = arith::SelectOp::create(k, k.equal(i, k.index(before)),
                                    k.constant((blocks - 1 - before) * kBlock),
                                    later);
  }
  // The block with the first split row counts them.
  k.onlyIn(hasOwn, [&] {
    auto branch = scf::IfOp::create(k, TypeRange(), hasEarlier,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(branch.elseBlock());
    Value count = k.fadd(k.sum(isOwn, {1, 1}), later);
    k.store(k.broadcast(count, {1, kFlagSize}), factorAt(kGateRows));
  });
  isOwn = k.fmax(isOwn, arith::SelectOp::create(k, hasEarlier, one, zero));
  k.store(isOwn, {marks, {first}, {0}, {}});
}

void ChunkPrepare::storeLow(Value marks, Value j) {
  Value zero = k.constant(0.0);
  auto build = [&](Value n, Value decay) -> SmallVector<Value> {
    return {decayed(k, n, decay)};
  };
  forEachBlock(j, k.zero({kBlock, kBlock}, k.getF32Type()), build,
               [&](int64_t i, ValueRange results) {
                 Value rounded = loadBlock(out.inverse, i, j);
                 Value error = k.roundingError(results[0], rounded);
                 Value areSplit = k.greater(
                     tokensAt(marks, k.index(i), /*isRow=*/true), zero);
                 Value low = k.select(k.broadcast(areSplit, {kBlock, kBlock}),
                                      error, zero);
                 storeBlock(k.convert(low, plan.type), out.low, i, j);
               });
}
