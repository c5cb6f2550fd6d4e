//===- WarpPrepareKernel.cpp - prepare kernel, a warp per value head ------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For gates per head or none and 16-bit inputs. One block per slot, key head
// and as many of its value heads as the block has warps, or two key heads of
// one value head each. The products are common to the heads of a key head:
//
//   M_ij = k_i.k_j for i > j;  M_ji = scale q_i.k_j for i >= j
//
// Then each warp makes T and P of its value head, in blocks of 16 tokens, all
// of them transposed as those of the inverse are. They leave as they are made,
// straight from registers.
//
// Raw q and k are normalised here: products of their elements are exact, and
// the factors of tokens, rsqrt(sum(k^2) + eps), are factors of M and of the
// rows of `gates`. Gates and betas that the kernel makes itself, it makes for
// all heads of a block at once, while q and k are on the way.
//
//===----------------------------------------------------------------------===//

#include "WarpPrepareKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

constexpr int64_t kBlock = WarpInverse::kBlock;
// Blocks between one and that whose q and k it fetches ahead: about as many as
// run at the same time.
constexpr int64_t kAhead = 528;
// Value heads of a key head up to which rows of packed sequences are fetched
// ahead.
constexpr int64_t kMostGuessed = 2;
// Columns of a fragment of the gates, or betas, of a block's heads.
constexpr int64_t kHeadColumns = 8;

static StringRef getName(WarpPrepareKernel::Form form) {
  switch (form) {
  case WarpPrepareKernel::Form::All:
    return "prepare";
  case WarpPrepareKernel::Form::Inverse:
    return "prepare_inverse";
  case WarpPrepareKernel::Form::Resident:
    return "prepare_resident";
  }
  llvm_unreachable("unknown form");
}

// Sixteen warps on an SM, as many as have 128 registers.
WarpPrepareKernel::WarpPrepareKernel(RecurrencePlan &plan, Form form)
    : plan(plan), withScores(form == Form::All),
      isResident(form == Form::Resident), c(plan.chunk), kp(plan.keyPad),
      blocks(plan.chunk / kBlock), parts(llvm::divideCeil(plan.group, blocks)),
      k(plan.op, getName(form),
        gdn_tile::KernelAttr::get(
            plan.op.getContext(), blocks,
            gdn_tile::FragmentLayoutKind::Accumulator, 0, 4,
            plan.keyPad > 128 || isResident ? 0 : 16 / blocks)),
      sequences(k, plan.getSequences()) {
  heads = llvm::divideCeil(plan.group, parts);
  // Warps without a head of their own make P, or T of another key head: the
  // products of two key heads with q would not fit the registers.
  keys = form == Form::Inverse && plan.group == 1 && plan.keyHeads % 2 == 0 &&
                 blocks >= 4
             ? 2
             : 1;
  heads *= keys;
  copiedHeads = isResident ? kHeadsOfCopy : heads;
  tasks = plan.isDelta && withScores && 2 * heads <= blocks ? 2 : 1;
}

void WarpPrepareKernel::addArguments() {
  if (withScores)
    q = k.argument(plan.q);
  key = k.argument(plan.k);
  gate = k.argument(plan.gate);
  if (plan.inputs.gate) {
    rate = k.argument(plan.inputs.gate.getALog());
    bias = k.argument(plan.inputs.gate.getBias());
  }
  beta = k.argument(plan.beta);
  inverse = k.argument(plan.inverse);
  if (withScores)
    scores = k.argument(plan.scores);
  gates = k.argument(plan.gates);
}

// Value heads of the block: the last one of a key head may have fewer.
Value WarpPrepareKernel::headsLeft() {
  if (isResident)
    return k.index(copiedHeads);
  if (keys > 1 || plan.group % heads == 0)
    return k.index(heads);
  Value part = k.rem(k.blockId(), k.index(parts));
  Value left = k.sub(k.index(plan.group), k.mul(part, k.index(heads)));
  return k.min(k.index(heads), left);
}

void WarpPrepareKernel::allocateInputs() {
  kTiles = tileOfKeys(c, kp, plan.type);
  if (q)
    qTiles = tileOfKeys(c, kp, plan.type);
  Type f32 = k.getF32Type();
  if (gate && !plan.inputs.makesGate())
    gateTile = k.tile({c, copiedHeads}, f32);
  if (beta && !plan.inputs.makesBeta())
    betaTile = k.tile({c, copiedHeads}, f32);
}

void WarpPrepareKernel::copyTiles() {
  for (auto [memref, tiles] : {std::pair(key, kTiles), std::pair(q, qTiles)})
    for (int64_t i = 0; memref && i < keys; ++i)
      k.copyIn(tokensOf(memref, row, rows, k.add(keyHead, k.index(i))),
               tileAt(tiles, k.index(i)));
  // One copy for all heads, whose values of a token are neighbours: copies of
  // single heads would fetch each sector once for each of them.
  for (auto [memref, tile] :
       {std::pair(gate, gateTile), std::pair(beta, betaTile)})
    if (tile)
      k.copyIn({memref, {row, firstHead}, {0, 1}, {rows, headsLeft()}}, tile);
}

// What `make` makes of the values of all heads; 0 for tokens behind the end.
Value WarpPrepareKernel::makeTile(Value memref,
                                  function_ref<Value(Value raw)> make) {
  Shape2 shape{c, heads == 1 ? 1 : kHeadColumns};
  Value raw =
      k.load({memref, {row, firstHead}, {0, 1}, {rows, headsLeft()}}, shape);
  Value made = RecurrenceInputs::emitTokens(k, make(raw), rows);
  Value tile = k.tile({shape.rows, shape.cols}, k.getF32Type());
  k.store(made, whole(k, tile));
  return tile;
}

void WarpPrepareKernel::makeGatesAndBetas() {
  const RecurrenceInputs &inputs = plan.inputs;
  auto ofHeads = [&](Value memref) -> Value {
    if (!memref)
      return memref;
    return k.load({memref, {firstHead}, {0}, {headsLeft()}},
                  {1, heads == 1 ? 1 : kHeadColumns});
  };
  if (inputs.makesGate())
    gateTile = makeTile(gate, [&](Value raw) {
      return inputs.emitGate(k, raw, ofHeads(rate), ofHeads(bias));
    });
  if (inputs.makesBeta())
    betaTile =
        makeTile(beta, [&](Value raw) { return inputs.emitBeta(k, raw); });
}

// The block that takes a place on the SM next finds its q and k in the
// second-level cache: all blocks of an SM wait for memory at the same time, and
// compute at the same time.
void WarpPrepareKernel::prefetchTiles() {
  // Of packed sequences the rows are a guess. Where each warp has a head of its
  // own it costs 7 % and gains nothing (H200).
  if (plan.offsets && plan.group > kMostGuessed)
    return;
  Value perSlot = k.index(plan.keyHeads / keys * parts);
  auto exists = scf::IfOp::create(k, k.less(k.index(kAhead - 1), k.blockId()));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(exists.thenBlock());
  Value next = k.sub(k.blockId(), k.index(kAhead));
  // Tells LLVM what it does not see, that 32 bits are enough to divide it.
  next = arith::AndIOp::create(k, next,
                               k.index(std::numeric_limits<int32_t>::max()));
  Value nextSlot = k.div(next, perSlot), nextRow, nextRows = rows;
  if (plan.offsets) {
    // As if it were of the same sequence: looking for it would take as long as
    // the hint gains, and of another one the rows are the same but for a few.
    Value distance = k.mul(k.sub(slot, nextSlot), k.index(c));
    nextRow = k.createOrFold<arith::MaxSIOp>(k.sub(row, distance), k.index(0));
  } else {
    Chunk chunk = sequences.chunkAt(nextSlot);
    nextRow = chunk.row;
    nextRows = k.min(chunk.left, k.index(c));
  }
  Value nextHead =
      k.mul(k.div(k.rem(next, perSlot), k.index(parts)), k.index(keys));
  for (Value memref : {key, q})
    for (int64_t i = 0; memref && i < keys; ++i)
      k.prefetch(
          tokensOf(memref, nextRow, nextRows, k.add(nextHead, k.index(i))),
          {c, plan.keySize});
}

// Those of keys below the diagonal, those with queries above and on it.
Value WarpPrepareKernel::mergeProducts(Value squares, Value read) {
  if (!squares || !read)
    return squares ? squares : read;
  return k.select(
      k.compare(arith::CmpIPredicate::sgt, k.iota({c, 1}), k.iota({1, c})),
      squares, read);
}

// The products of a key head. The squares of raw rows are products too, all in
// front of what follows from them, so that none waits for another.
Value WarpPrepareKernel::multiplyTiles(int64_t i) {
  Value kTile = tileAt(kTiles, k.index(i)), read, squares, ofRows, ofColumns;
  Value rows = k.load(whole(k, kTile), {c, kp});
  auto store = [&](Value factors, Value tile) {
    k.store(factors, {tile, {k.index(0)}, {0}, {}});
  };
  if (plan.normalises) {
    ofColumns = tileAt(allKeyFactors, k.index(i));
    Value ofQueries, ofKeys = k.sumSquares(rows);
    if (q)
      ofQueries = k.sumSquares(k.load(whole(k, qTiles), {c, kp}));
    ofRows = emitNormFactor(k, ofKeys, plan.inputs.kNorm);
    store(ofRows, ofColumns);
    if (q)
      store(emitNormFactor(k, ofQueries, plan.inputs.qNorm), queryFactors);
  }
  if (q) {
    Value factor = k.constant(plan.op.getScaleValue());
    if (queryFactors && !plan.scalesOutput())
      factor = k.fmul(k.load(whole(k, queryFactors), {1, c}), factor);
    read = k.mma(rows, tileAt(qTiles, k.index(i)), Value(),
                 /*transposeB=*/true);
    read = k.fmul(read, factor);
  }
  if (plan.isDelta)
    squares = k.mma(rows, kTile, Value(), /*transposeB=*/true);
  if (squares && ofColumns)
    squares = k.fmul(squares, k.load(whole(k, ofColumns), {1, c}));
  Value merged = mergeProducts(squares, read);
  return ofRows ? k.fmul(merged, ofRows) : merged;
}

void WarpPrepareKernel::allocateProducts() {
  allProducts = tileOfKeys(c + WarpInverse::kProductRowPad,
                           c + WarpInverse::kProductPad, k.getF32Type());
}

void WarpPrepareKernel::buildProducts() {
  if (plan.normalises) {
    SmallVector<int64_t, 2> shape(keys > 1, keys);
    shape.push_back(c);
    allKeyFactors = k.tile(shape, k.getF32Type());
    if (q)
      queryFactors = k.tile({c}, k.getF32Type());
  }
  SmallVector<Value> all;
  for (int64_t i = 0; i < keys; ++i)
    all.push_back(multiplyTiles(i));
  if (!isResident) {
    for (Value tiles : {kTiles, qTiles})
      if (tiles)
        k.free(tiles);
    allocateProducts();
  }
  for (auto [i, merged] : llvm::enumerate(all))
    k.store(merged, {tileAt(allProducts, k.index(i)),
                     {k.index(0), k.index(0)},
                     {0, 1},
                     {}});
}

Value WarpPrepareKernel::blockOf(Value tile, int64_t row, int64_t col) {
  return k.load(
      {tile, {k.index(row * kBlock), k.index(col * kBlock)}, {0, 1}, {}},
      {kBlock, kBlock});
}

Value WarpPrepareKernel::rowsOf(Value vector, int64_t block) {
  return k.load({vector, {k.index(block * kBlock)}, {0}, {}}, {kBlock, 1});
}

// A head's column as a vector.
void WarpPrepareKernel::loadBeta(Value item) {
  headBeta = k.tile({c}, k.getF32Type());
  for (int64_t i = 0; i < blocks; ++i) {
    Value first = k.index(i * kBlock);
    k.store(k.load({betaTile, {first, item}, {0}, {}}, {kBlock, 1}),
            {headBeta, {first}, {0}, {}});
  }
  betaRow = headBeta;
  if (!plan.normalises || !plan.isUnit)
    return;
  betaRow = k.tile({c}, k.getF32Type());
  for (int64_t i = 0; i < blocks; ++i) {
    Value factor = rowsOf(keyFactors, i);
    if (!plan.scalesOutput())
      factor = k.fmul(factor, factor);
    k.store(k.fmul(rowsOf(headBeta, i), factor),
            {betaRow, {k.index(i * kBlock)}, {0}, {}});
  }
}

void WarpPrepareKernel::sumGates(Value item, bool isWritten) {
  sums = k.tile({c}, k.getF32Type());
  if (gate)
    storeGateSums(k, gateTile, item, sums);
  else
    storeZeroSums();
  if (!isWritten)
    return;
  writeGateRows(k, plan,
                {sums, plan.isUnit ? headBeta : Value(), keyFactors,
                 plan.scalesOutput() ? Value() : queryFactors},
                gates, slot, head);
  auto copyOut = [&](Value tile, GateRow row) {
    Value first = k.index(plan.getGateRow(row));
    if (tile && plan.hasGateRow(row))
      k.copyOut(tile, {gates, {slot, head, first}, {2}, {}});
  };
  copyOut(sums, kSums);
  copyOut(queryFactors, kQueries);
}

void WarpPrepareKernel::storeZeroSums() {
  for (int64_t i = 0; i < blocks; ++i)
    k.store(k.broadcast(k.constant(0.0), {kBlock, 1}),
            {sums, {k.index(i * kBlock)}, {0}, {}});
}

Value WarpPrepareKernel::lateSums(int64_t i) {
  return k.load({sums, {k.index(i * kBlock)}, {0}, {}}, {1, kBlock});
}

// exp(G_i - G_j) of a block, transposed; `late` are the sums G_i.
Value WarpPrepareKernel::decayOf(Value late, int64_t j, bool isDiagonal) {
  Value difference = k.fsub(late, rowsOf(sums, j));
  // Masked before the exponent: above the diagonal it could overflow.
  if (isDiagonal)
    difference = k.select(isEarlier(k, /*orSame=*/true), difference,
                          k.constant(-std::numeric_limits<float>::infinity()));
  return k.exp2(difference);
}

void WarpPrepareKernel::writeRow(int64_t i) {
  Value late;
  if (gate)
    late = lateSums(i);
  for (int64_t j = 0; j <= i; ++j) {
    Value decay = gate ? decayOf(late, j, i == j) : Value();
    if (scoreRows) {
      Value score = blockOf(products, j, i);
      if (decay)
        score = k.fmul(score, decay);
      if (plan.isUnit)
        score = k.fmul(score, rowsOf(headBeta, j));
      if (i == j)
        score = k.select(isEarlier(k, /*orSame=*/true), score, k.constant(0.0));
      scoreRows->store(k, score, i, j, plan.parts);
    }
    if (inverseRows)
      inverseRows->store(i, j, decay);
  }
  if (inverseRows)
    inverseRows->finishRow(i);
}

void WarpPrepareKernel::buildHead(Value item, bool makesInverse,
                                  bool makesScores) {
  head = k.add(firstHead, item);
  // With two key heads an item is the value head of one.
  products = tileAt(allProducts, item);
  if (allKeyFactors)
    keyFactors = tileAt(allKeyFactors, item);
  if (plan.isDelta)
    loadBeta(item);
  if (gate || plan.normalises)
    sumGates(item, /*isWritten=*/makesScores || !withScores);
  result.reset();
  inverseRows.reset();
  scoreRows.reset();
  if (makesInverse) {
    result.emplace(k, c, products, headBeta, plan.getInversePrecision());
    InverseWriter::Decay decay;
    if (gate)
      decay = [this](int64_t i, int64_t j) {
        return decayOf(lateSums(i), j, i == j);
      };
    inverseRows.emplace(k, plan, *result, headBeta, betaRow, inverse, gates,
                        slot, head, decay);
  }
  if (makesScores)
    scoreRows = {scores, blocks, [&](int64_t part) {
                   return partOf(k, slot, head, part, plan.parts);
                 }};
  for (int64_t i = 0; i < blocks; ++i) {
    if (makesInverse)
      result->substitute(i);
    writeRow(i);
  }
  if (inverseRows) {
    inverseRows->finish();
    result->free();
  }
  bool hasRow = betaRow && betaRow != headBeta;
  for (Value vector : {gate || plan.normalises ? sums : Value(), headBeta,
                       hasRow ? betaRow : Value()})
    if (vector)
      k.free(vector);
}

void WarpPrepareKernel::buildTask(Value item) {
  if (tasks == 1)
    return buildHead(item, plan.isDelta, withScores);
  Value makesInverse = k.less(item, k.index(heads));
  auto branch = scf::IfOp::create(k, makesInverse, /*withElseRegion=*/true);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(block);
    bool isInverse = block == branch.thenBlock();
    buildHead(isInverse ? item : k.sub(item, k.index(heads)), isInverse,
              !isInverse);
  }
}

void WarpPrepareKernel::buildChunk() {
  allocateInputs();
  copyTiles();
  prefetchTiles();
  makeGatesAndBetas();
  buildProducts();
  // With several tasks a block has all heads of its key heads.
  Value count = tasks > 1 ? k.index(tasks * heads) : headsLeft();
  k.eachWarp(count, [&](Value item) { buildTask(item); });
}

Access WarpPrepareKernel::tokensOf(Value memref, Value rowOf, Value rowsOf,
                                   Value headOf) {
  return {memref,
          {rowOf, headOf, k.index(0)},
          {0, 2},
          {rowsOf, k.index(plan.keySize)}};
}

void WarpPrepareKernel::build(Value count) {
  addArguments();
  if (isResident)
    return buildResident(count);
  k.startAtEnd();
  int64_t blocksPerSlot = plan.keyHeads / keys * parts;
  Value perSlot = k.index(blocksPerSlot);
  Value inSlot = k.rem(k.blockId(), perSlot);
  slot = k.div(k.blockId(), perSlot);
  keyHead = k.mul(k.div(inSlot, k.index(parts)), k.index(keys));
  firstHead = k.mul(keyHead, k.index(plan.group));
  if (parts > 1)
    firstHead =
        k.add(firstHead, k.mul(k.rem(inSlot, k.index(parts)), k.index(heads)));
  Chunk chunk = sequences.chunkAt(slot);
  row = chunk.row;
  rows = k.min(chunk.left, k.index(c));
  // Slots between packed sequences may hold nothing.
  auto guarded = scf::IfOp::create(k, k.less(k.index(0), chunk.left));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(guarded.thenBlock());
    buildChunk();
  }
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perChunk = arith::ConstantIndexOp::create(host, blocksPerSlot);
  Value all = host.createOrFold<arith::MulIOp>(plan.slots, perChunk);
  k.launch(host.createOrFold<arith::MulIOp>(all, count));
}

void mlir::gdn::buildWarpPrepareKernel(RecurrencePlan &plan) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value one = arith::ConstantIndexOp::create(host, 1);
  using Form = WarpPrepareKernel::Form;
  // A launch of no blocks is none.
  auto build = [&](Form form, Value count) {
    if (!isConstantIntValue(count, 0))
      WarpPrepareKernel(plan, form).build(count);
  };
  build(Form::All, plan.needsScores);
  Value alone = host.createOrFold<arith::SubIOp>(one, plan.needsScores);
  Value stays = host.createOrFold<arith::MulIOp>(alone, plan.areLong(host));
  build(Form::Resident, stays);
  build(Form::Inverse, host.createOrFold<arith::SubIOp>(alone, stays));
}
