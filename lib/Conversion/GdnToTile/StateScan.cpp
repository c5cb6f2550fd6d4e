//===- StateScan.cpp - rows of a state over the chunks of a segment -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence or segment, value head and block of value channels.
// The state stays in registers, transposed (rows = value channels), so that it
// and what follows from it are always the left operand of a product:
//
//   W^T = V^T - exp(G) o (S K^T);  U^T = W^T T^T
//   O^T = scale exp(G) o (S Q^T) + U^T P^T
//   S  <- exp(G_C) S + (exp(G_C - G) o U^T) K
//
// T, P and the factors exp(G) come from the workspaces of a prepare kernel, or
// all of them, or P alone, are made in the same kernel, ahead of the scan.
//
//===----------------------------------------------------------------------===//

#include "StateScan.h"
#include "ChunkPrepare.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

// Warpgroups that make T and P in turn: one alone is slower than the scan, but
// not where it makes only P.
constexpr int64_t kTeams = 2, kTeamsOfScores = 1;

StateScan::StateScan(RecurrencePlan &plan, StringRef name, bool hasOutput,
                     int64_t valueBlock, const SegmentsOf &segments)
    : plan(plan), hasOutput(hasOutput),
      makesScores(plan.isFused ||
                  (plan.scoresAhead && hasOutput && valueBlock == kAheadRows)),
      c(plan.chunk), kp(plan.keyPad), vb(valueBlock),
      k(plan.op, name,
        gdn_tile::KernelAttr::get(plan.op.getContext(), valueBlock / 16,
                                  gdn_tile::FragmentLayoutKind::Accumulator, 0,
                                  4, /*blocksPerSM=*/0)),
      segments(k, segments) {}

Value StateScan::splitBlockId(int64_t rowBlocks) {
  Value blockOfHead = k.rem(k.blockId(), k.index(rowBlocks));
  Value rest = k.div(k.blockId(), k.index(rowBlocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  keyHead = k.div(head, k.index(plan.group));
  firstValue = k.mul(blockOfHead, k.index(vb));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  return k.div(rest, k.index(plan.valueHeads));
}

void StateScan::addArguments() {
  bool hasCopies = plan.gateKind == GateKind::Channel;
  if (hasOutput && !hasCopies)
    q = k.argument(plan.q);
  if (!hasCopies)
    key = k.argument(plan.k);
  v = k.argument(plan.v);
  write = k.argument(plan.write);
  if (plan.isFused) {
    gate = k.argument(plan.gate);
    beta = k.argument(plan.beta);
  }
  inverse = k.argument(plan.inverse);
  if (hasOutput && !makesScores)
    scores = k.argument(plan.scores);
  assert((!hasOutput || makesScores || scores) && "a scan without P");
  gates = k.argument(plan.gates);
  if (hasOutput)
    decayedQ = k.argument(plan.decayedQ);
  decayedK = k.argument(plan.decayedK);
  restK = k.argument(plan.restK);
  decay = k.argument(plan.decay);
  if (hasOutput)
    out = k.argument(plan.out);
  entries = k.argument(plan.entries);
  if (!hasOutput)
    return;
  state = k.argument(plan.state);
  start = plan.start.source ? k.argument(plan.start.source) : state;
  checkpoints = k.argument(plan.checkpoints);
  boundaryStates = k.argument(plan.boundaryStates);
}

void StateScan::allocateTiles() {
  auto tiles = [&](int64_t parts, ArrayRef<int64_t> shape) {
    SmallVector<Value> result;
    for (int64_t part = 0; part < parts; ++part)
      result.push_back(k.tile(shape, plan.type));
    return result;
  };
  // Of a workspace of blocks, panels; what is made here is in neither.
  auto shapeOf = [&](bool isPacked, Value workspace) {
    return isPacked && workspace ? gdn_tile::getPanelShape(c)
                                 : SmallVector<int64_t>{c, c};
  };
  if (hasOutput)
    qTiles = tiles(decayedQ ? plan.parts : 1, {c, kp});
  restTiles = tiles(restK ? plan.parts : 1, {c, kp});
  // Without decayed copies one tile of k serves both products.
  kTiles = decayedK ? tiles(plan.parts, {c, kp}) : restTiles;
  vTile = k.tile({c, vb}, plan.type);
  if (write)
    writeTile =
        k.tile({c, vb}, cast<MemRefType>(write.getType()).getElementType());
  if (hasOutput)
    scoreTiles = tiles(plan.parts, shapeOf(plan.isPackedScores, scores));
  if (plan.isDelta)
    inverseTiles =
        tiles(plan.inverseParts, shapeOf(plan.isPackedInverse, inverse));
  if (plan.isUnit)
    lowTile = inverseTiles.pop_back_val();
  if (int64_t size = plan.getGatesSize())
    gateTile = k.tile({size}, k.getF32Type());
  if (gate)
    rawGateTile = k.tile({c}, k.getF32Type());
  if (beta)
    betaTile = k.tile({c}, k.getF32Type());
  if (makesScores && plan.scalesOutput())
    queryFactors = k.tile({c}, k.getF32Type());
  if (hasOutput)
    outTile = k.tile({c, vb}, plan.outType);
}

void StateScan::copyTiles() {
  Value zero = k.index(0);
  Value keySize = k.index(plan.keySize);
  auto fromInput = [&](Value memref) -> Access {
    return {memref, {row, keyHead, zero}, {0, 2}, {rows, keySize}};
  };
  Value firstCopied = firstValue, left = valuesLeft;
  if (hasNoValues) {
    firstCopied = arith::SelectOp::create(k, hasNoValues, zero, firstValue);
    left = arith::SelectOp::create(k, hasNoValues, k.index(plan.valueSize),
                                   valuesLeft);
  }
  auto fromValues = [&](Value memref) -> Access {
    return {memref, {row, head, firstCopied}, {0, 2}, {rows, left}};
  };
  auto copyParts = [&](Value memref, ArrayRef<Value> tiles,
                       ArrayRef<Value> valid, bool isLower = false) {
    for (auto [part, tile] : llvm::enumerate(tiles)) {
      SmallVector<Value> indices = partOf(k, slot, head, part, tiles.size());
      int64_t rank = indices.size();
      indices.append({zero, zero});
      k.copyIn({memref, indices, {rank, rank + 1}, SmallVector<Value>(valid)},
               tile, isLower);
    }
  };
  auto copyKeys = [&](Value copies, Value input, ArrayRef<Value> tiles) {
    if (copies)
      copyParts(copies, tiles, {k.index(c), keySize});
    else
      k.copyIn(fromInput(input), tiles.front());
  };
  if (decayedK)
    copyKeys(decayedK, Value(), kTiles);
  // What has rows of tokens first: the warps that copy have few registers.
  copyKeys(restK, key, restTiles);
  if (hasOutput)
    copyKeys(decayedQ, q, qTiles);
  k.copyIn(fromValues(v), vTile);
  if (write)
    k.copyIn(fromValues(write), writeTile);
  for (auto [memref, tile] :
       {std::pair(gate, rawGateTile), std::pair(beta, betaTile)})
    if (memref)
      k.copyIn({memref, {row, head}, {0}, {rows}}, tile);
  if (inverse)
    for (auto [part, tile] : llvm::enumerate(inverseTiles))
      k.copyIn({inverse, {slot, head, k.index(part), zero, zero}, {3, 4}, {}},
               tile, plan.isPackedInverse);
  if (scores)
    copyParts(scores, scoreTiles, {}, plan.isPackedScores);
  if (gates)
    k.copyIn({gates, {slot, head, zero}, {2}, {}}, gateTile);
}

// P, or T, P and the factors of the gates: nothing that the state is needed
// for.
void StateScan::prepareAhead() {
  int64_t teams = plan.isFused ? kTeams : kTeamsOfScores;
  auto ahead = gdn_tile::AheadOp::create(k, k.getI64IntegerAttr(teams));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(&ahead.getBody().emplaceBlock());
  gdn_tile::AheadEndOp::create(k);
  k.setInsertionPointToStart(&ahead.getBody().front());
  ChunkInputs inputs{kTiles.front(), qTiles.front(), rawGateTile, betaTile,
                     plan.isFused ? Value() : gateTile};
  ChunkOutputs outputs{Value(), scoreTiles.front(), Value(), Value(),
                       queryFactors};
  if (plan.isFused)
    outputs = {inverseTiles.empty() ? Value() : inverseTiles.front(),
               scoreTiles.front(), lowTile, gateTile, Value()};
  ChunkPrepare(k, plan, inputs, outputs).build();
}

// U^T of the chunk; grown = exp(G), if there are gates, and the factors of
// keys.
Value StateScan::newValues(ValueRange stateParts, Value grown) {
  // The product first: what waits for v need not keep it back.
  Value read;
  if (plan.isDelta)
    read = k.product(stateParts, kTiles, Value(), /*transposeB=*/true);
  Value values = k.loadF32(transposed(k, vTile), {vb, c});
  if (write)
    values = k.fmul(values, k.loadF32(transposed(k, writeTile), {vb, c}));
  if (hasNoValues)
    values = arith::SelectOp::create(
        k, hasNoValues, k.broadcast(k.constant(0.0), {vb, c}), values);
  if (!plan.isDelta)
    return values;
  if (grown)
    read = k.fmul(read, grown);
  Value error = k.fsub(values, read);
  if (plan.isUnit)
    return unitProduct(error);
  return k.product(split(error), inverseTiles, Value(), /*transposeB=*/true);
}

// D + N D without second parts, and without beta.
Value StateScan::unitProduct(Value error) {
  roundedError = k.convert(error, plan.type);
  return k.mma(roundedError, inverseTiles.front(), error, /*transposeB=*/true);
}

// In chunks with split rows the second parts of N, of D and of U.
void StateScan::refine(Value &updates, Value &stateValue, Value &output) {
  Value zero = k.index(0), one = k.index(1);
  SmallVector<Value> accumulators{updates, stateValue};
  if (output)
    accumulators.push_back(output);
  SmallVector<Type> types(ValueRange(accumulators).getTypes());
  auto branch = scf::IfOp::create(k, types, isSplit, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(branch.thenBlock());
    if (inverse)
      k.copyIn({inverse, {slot, head, one, zero, zero}, {3, 4}, {}}, lowTile,
               plan.isPackedInverse);
    auto refined = gdn_tile::RefineOp::create(
        k, types[0], types[1], output ? types[2] : Type(), Value(),
        roundedError, inverseTiles.front(), lowTile, updates, stateValue,
        restTiles.front(), output, output ? scoreTiles.front() : Value(),
        /*q=*/Value(), gateTile, plan.getGateRow(kGateRows),
        plan.getGateRow(kRest), IntegerAttr(), IntegerAttr(), IntegerAttr(),
        FloatAttr());
    bool hasLowScores = plan.lowScores > 0 &&
                        llvm::all_of(ArrayRef{vb, c, kp}, [&](int64_t size) {
                          return size % plan.lowScores == 0;
                        });
    if (output && hasLowScores) {
      refined.getQMutable().assign(qTiles.front());
      refined.setBeta(plan.getGateRow(plan.getBetaRow()));
      refined.setFactorAttr(k.getF64FloatAttr(plan.op.getScaleValue()));
      // In quotients of a row the scale does not count.
      if (plan.hasGateRow(kGrown))
        refined.setGrown(
            plan.getGateRow(plan.scalesOutput() ? kScaledGrown : kGrown));
      if (plan.normalises && !plan.scalesOutput())
        refined.setScaled(plan.getGateRow(kScaledGrown));
    }
    scf::YieldOp::create(k, refined.getResults());
    k.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k, accumulators);
  }
  updates = branch.getResult(0);
  stateValue = branch.getResult(1);
  if (output)
    output = branch.getResult(2);
}

// S Q^T, scaled.
Value StateScan::readState(ValueRange stateParts, Value scaled) {
  Value o = k.product(stateParts, qTiles, Value(), /*transposeB=*/true);
  // Copies of q with a gate per channel hold the scale already.
  if (decayedQ)
    return o;
  return k.fmul(o, scaled ? scaled : k.constant(plan.op.getScaleValue()));
}

void StateScan::writeOutput(Value output) {
  if (plan.scalesOutput())
    output = k.fmul(output, loadQueryFactors());
  k.store(k.convert(output, plan.outType), transposed(k, outTile));
  k.copyOut(outTile,
            {out, {row, head, firstValue}, {0, 2}, {rows, valuesLeft}});
}

Value StateScan::loadQueryFactors() {
  if (queryFactors)
    return k.load(whole(k, queryFactors), {1, c});
  return k.load({gateTile, {k.index(plan.getGateRow(kQueries))}, {0}, {}},
                {1, c});
}

Value StateScan::buildChunk(Value stateValue) {
  Value zero = k.index(0);
  // Two warpgroups beside a third have few registers: no factor is kept for
  // longer than one product.
  bool isScarce = makesScores && vb == kAheadRows;
  copyTiles();
  if (makesScores)
    prepareAhead();
  // In front of the products: loads from shared memory queue behind theirs.
  auto loadGates = [&](GateRow row) {
    return k.load({gateTile, {k.index(plan.getGateRow(row))}, {0}, {}}, {1, c});
  };
  Value grown, rest, scaled, last;
  bool hasFactors = plan.hasGateRow(kGrown);
  if (hasFactors)
    grown = loadGates(kGrown);
  if (plan.hasGateRow(kRest))
    rest = loadGates(kRest);
  if (hasFactors && hasOutput)
    scaled = isScarce && !plan.normalises
                 ? k.fmul(grown, k.constant(plan.op.getScaleValue()))
                 : loadGates(kScaledGrown);
  if (plan.gateKind == GateKind::Head) {
    int64_t at = plan.normalises ? plan.getGateRow(kDecay)
                                 : plan.getGateRow(kGrown) + c - 1;
    last = memref::LoadOp::create(k, gateTile, ValueRange{k.index(at)});
  }
  if (plan.isUnit)
    isSplit = k.any(k.greater(
        k.load({gateTile, {k.index(plan.getGateRow(kGateRows))}, {0}, {}},
               {1, 1}),
        k.broadcast(k.constant(0.0), {1, 1})));
  SmallVector<Value> operand = split(stateValue);
  Value updates, o;
  if (isScarce)
    o = readState(operand, scaled);
  updates = newValues(operand, grown);
  if (hasOutput && !isScarce)
    o = readState(operand, scaled);
  if (last)
    stateValue = k.fmul(stateValue, last);
  if (decay)
    stateValue =
        k.fmul(stateValue,
               k.load({decay, {slot, head, zero}, {2}, {k.index(plan.keySize)}},
                      {1, kp}));
  // Nothing that need not wait for the branch stands behind it.
  if (plan.isUnit)
    refine(updates, stateValue, o);
  SmallVector<Value> local, kept;
  if (isScarce && rest)
    kept = split(k.fmul(updates, rest));
  local = split(updates);
  if (kept.empty())
    kept = rest ? split(k.fmul(updates, rest)) : local;
  // The state first: the next chunk waits for it. But where no product of that
  // chunk is issued early, the state's is what o can be stored beside.
  bool isOutputFirst = hasOutput && isScarce;
  auto addScores = [&] {
    o = k.product(local, scoreTiles, o, /*transposeB=*/true);
  };
  if (isOutputFirst)
    addScores();
  Value next = k.product(kept, restTiles, stateValue, /*transposeB=*/false);
  if (!hasOutput)
    return next;
  if (!isOutputFirst)
    addScores();
  writeOutput(o);
  return next;
}

// o of rows without a state. Rare, so straight from registers.
void StateScan::storeZeros(const Sequence &sequence, Value chunks) {
  Value count = arith::SelectOp::create(k, entry.isLive, k.index(0), chunks);
  auto loop = scf::ForOp::create(k, k.index(0), count, k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value start = k.mul(loop.getInductionVar(), k.index(c));
  Value zeros = k.convert(k.broadcast(k.constant(0.0), {vb, c}), plan.outType);
  k.store(zeros, {out,
                  {k.add(sequence.firstRow, start), head, firstValue},
                  {2, 0},
                  {valuesLeft, k.sub(sequence.length, start)}});
}

void StateScan::storeState(Value value, const Access &access) {
  Type type = cast<MemRefType>(access.memref.getType()).getElementType();
  k.store(k.convert(value, type), access);
}

// The state behind the chunk at `start`, if it is a checkpoint. Bounds and not
// a branch decide, so that the loop's body stays one block.
void StateScan::keepState(Value value, const Segment &segment, Value start) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  Value every = k.index(plan.every), end = k.add(start, k.index(c));
  Value done = segment.start ? k.add(segment.start, end) : end;
  Value isDue = k.equal(k.rem(done, every), zero);
  Value isWhole = k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, end,
                                                segment.rows.length);
  isDue = k.createOrFold<arith::AndIOp>(isDue, isWhole);
  Value values = k.onlyIf(isDue, valuesLeft);
  Value place = k.sub(k.add(segment.rows.firstCheckpoint, k.div(done, every)),
                      k.index(1));
  if (plan.isKFirst)
    return storeState(value, {checkpoints,
                              {place, head, zero, firstValue},
                              {3, 2},
                              {values, keySize}});
  storeState(value, {checkpoints,
                     {place, head, firstValue, zero},
                     {2, 3},
                     {values, keySize}});
}

Value StateScan::scan(Value initial, const Segment &segment) {
  const Sequence &sequence = segment.rows;
  Value chunks = k.ceilDiv(sequence.length, k.index(c));
  if (entries && hasOutput)
    storeZeros(sequence, chunks);
  auto loop = scf::ForOp::create(k, k.index(0), entry.bound(k, chunks),
                                 k.index(1), ValueRange{initial});
  if (plan.stages > 1)
    loop->setAttr("gdn_tile.stages", k.getI64IntegerAttr(plan.stages));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value start = k.mul(loop.getInductionVar(), k.index(c));
  slot = k.add(sequence.firstSlot, loop.getInductionVar());
  row = k.add(sequence.firstRow, start);
  rows = k.min(k.sub(sequence.length, start), k.index(c));
  Value next = buildChunk(loop.getRegionIterArg(0));
  if (checkpoints)
    keepState(next, segment, start);
  scf::YieldOp::create(k, ValueRange{next});
  return loop.getResult(0);
}

void StateScan::findState(Value n) { entry = StateEntry::get(k, entries, n); }

Access StateScan::stateAccess(Value memref, Value rows) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  rows = entry.bound(k, rows);
  if (plan.isKFirst)
    return {
        memref, {entry.index, head, zero, firstValue}, {3, 2}, {rows, keySize}};
  return {
      memref, {entry.index, head, firstValue, zero}, {2, 3}, {rows, keySize}};
}

Value StateScan::loadState(Value rows) {
  Shape2 shape{vb, kp};
  return plan.start.isZero ? k.broadcast(k.constant(0.0), shape)
                           : k.loadF32(stateAccess(start, rows), shape);
}

void StateScan::prefetchState() {
  if (plan.start.isZero)
    return;
  Access access = stateAccess(start, valuesLeft);
  Shape2 shape{vb, kp};
  // Rows are what lies in one piece in memory.
  if (plan.isKFirst) {
    std::swap(access.dims[0], access.dims[1]);
    std::swap(access.valid[0], access.valid[1]);
    std::swap(shape.rows, shape.cols);
  }
  k.prefetch(access, shape);
}

Value StateScan::countBlocks(Value places, int64_t rowBlocks) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perPlace =
      arith::ConstantIndexOp::create(host, plan.valueHeads * rowBlocks);
  return host.createOrFold<arith::MulIOp>(places, perPlace);
}
