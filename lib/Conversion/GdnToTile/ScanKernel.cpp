//===- ScanKernel.cpp - serial part of a recurrence -----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence, value head and block of value channels. The state
// stays in registers, transposed (rows = value channels), so that it and what
// follows from it are always the left operand of a product:
//
//   W^T = V^T - exp(G) o (S K^T);  U^T = W^T T^T
//   O^T = scale exp(G) o (S Q^T) + U^T P^T
//   S  <- exp(G_C) S + (exp(G_C - G) o U^T) K
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

class ScanKernel {
public:
  ScanKernel(RecurrencePlan &plan)
      : plan(plan), c(plan.chunk), kp(plan.keyPad), vb(plan.valueBlock),
        k(plan.op, "scan",
          gdn_tile::KernelAttr::get(plan.op.getContext(), plan.valueBlock / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4, /*blocksPerSM=*/0)),
        sequences(k, plan.getSequences()) {}

  void build();

private:
  void addArguments();
  void allocateTiles();
  void copyTiles();
  Value buildChunk(Value state);
  Value newValues(Value stateOperand, Value grown);
  Access stateAccess(Value memref);
  void storeState(Value value, const Access &access);
  void keepState(Value value, const Sequence &sequence, Value start);
  void storeZeros(const Sequence &sequence, Value chunks);

  RecurrencePlan &plan;
  int64_t c, kp, vb;
  KernelBuilder k;
  SequenceMap sequences;
  // Arguments.
  Value q, key, v, write, inverse, scores, gates, decayedQ, decayedK, restK,
      decay, out, entries, state, start, checkpoints;
  // Shared tiles.
  Value qTile, kTile, restTile, vTile, writeTile, scoreTile, gateTile, outTile;
  SmallVector<Value> inverseTiles;
  // The block and the chunk.
  Value n, head, keyHead, firstValue, valuesLeft;
  StateEntry entry;
  Value slot, row, rows;
};

} // namespace

void ScanKernel::addArguments() {
  if (plan.gateKind != GateKind::Channel) {
    q = k.argument(plan.q);
    key = k.argument(plan.k);
  }
  v = k.argument(plan.v);
  write = k.argument(plan.write);
  inverse = k.argument(plan.inverse);
  scores = k.argument(plan.scores);
  gates = k.argument(plan.gates);
  decayedQ = k.argument(plan.decayedQ);
  decayedK = k.argument(plan.decayedK);
  restK = k.argument(plan.restK);
  decay = k.argument(plan.decay);
  out = k.argument(plan.out);
  entries = k.argument(plan.entries);
  state = k.argument(plan.state);
  start = plan.start.source ? k.argument(plan.start.source) : state;
  checkpoints = k.argument(plan.checkpoints);
}

void ScanKernel::allocateTiles() {
  qTile = k.tile({c, kp}, plan.type);
  restTile = k.tile({c, kp}, plan.type);
  // Without decayed copies one tile of k serves both products.
  kTile = decayedK ? k.tile({c, kp}, plan.type) : restTile;
  vTile = k.tile({c, vb}, plan.type);
  if (write)
    writeTile =
        k.tile({c, vb}, cast<MemRefType>(write.getType()).getElementType());
  scoreTile = k.tile({c, c}, plan.type);
  if (inverse)
    for (int64_t part = 0; part < plan.inverseParts; ++part)
      inverseTiles.push_back(k.tile({c, c}, plan.type));
  if (gates)
    gateTile = k.tile({kGateRows * c}, k.getF32Type());
  outTile = k.tile({c, vb}, plan.type);
}

void ScanKernel::copyTiles() {
  Value zero = k.index(0);
  Value keySize = k.index(plan.keySize);
  auto fromInput = [&](Value memref) -> Access {
    return {memref, {row, keyHead, zero}, {0, 2}, {rows, keySize}};
  };
  auto fromCopy = [&](Value memref) -> Access {
    return {memref, {slot, head, zero, zero}, {2, 3}, {k.index(c), keySize}};
  };
  auto fromValues = [&](Value memref) -> Access {
    return {memref, {row, head, firstValue}, {0, 2}, {rows, valuesLeft}};
  };
  if (decayedK)
    k.copyIn(fromCopy(decayedK), kTile);
  k.copyIn(restK ? fromCopy(restK) : fromInput(key), restTile);
  k.copyIn(fromValues(v), vTile);
  if (write)
    k.copyIn(fromValues(write), writeTile);
  for (auto [part, tile] : llvm::enumerate(inverseTiles))
    k.copyIn({inverse, {slot, head, k.index(part), zero, zero}, {3, 4}, {}},
             tile);
  if (gates)
    k.copyIn({gates, {slot, head, zero}, {2}, {}}, gateTile);
  k.copyIn(decayedQ ? fromCopy(decayedQ) : fromInput(q), qTile);
  k.copyIn({scores, {slot, head, zero, zero}, {2, 3}, {}}, scoreTile);
}

// U^T of the chunk; grown = exp(G), if there are gates.
Value ScanKernel::newValues(Value stateOperand, Value grown) {
  Value values = k.loadF32(transposed(k, vTile), {vb, c});
  if (write)
    values = k.fmul(values, k.loadF32(transposed(k, writeTile), {vb, c}));
  if (!plan.isDelta)
    return values;
  Value read = k.mma(stateOperand, kTile, Value(), /*transposeB=*/true);
  if (grown)
    read = k.fmul(read, grown);
  Value error = k.convert(k.fsub(values, read), plan.type);
  Value result;
  for (Value part : inverseTiles)
    result = k.mma(error, part, result, /*transposeB=*/true);
  return result;
}

Value ScanKernel::buildChunk(Value stateValue) {
  Value zero = k.index(0);
  copyTiles();
  // In front of the products: loads from shared memory queue behind theirs.
  auto loadGates = [&](GateRow row) {
    return k.load({gateTile, {k.index(row * c)}, {0}, {}}, {1, c});
  };
  Value grown, rest, scaled, last;
  if (gates) {
    grown = loadGates(kGrown);
    rest = loadGates(kRest);
    scaled = loadGates(kScaledGrown);
    last = memref::LoadOp::create(k, gateTile,
                                  ValueRange{k.index(kGrown * c + c - 1)});
  }
  Value operand = k.convert(stateValue, plan.type);
  Value updates = newValues(operand, grown);

  Value o = k.mma(operand, qTile, Value(), /*transposeB=*/true);
  // Copies of q with a gate per channel hold the scale already.
  if (!decayedQ)
    o = k.fmul(o, gates ? scaled : k.constant(plan.op.getScaleValue()));
  // The state first: the next chunk waits for it.
  Value local = k.convert(updates, plan.type);
  if (gates) {
    updates = k.fmul(updates, rest);
    stateValue = k.fmul(stateValue, last);
  }
  if (decay)
    stateValue =
        k.fmul(stateValue,
               k.load({decay, {slot, head, zero}, {2}, {k.index(plan.keySize)}},
                      {1, kp}));
  Value next = k.mma(k.convert(updates, plan.type), restTile, stateValue,
                     /*transposeB=*/false);

  o = k.mma(local, scoreTile, o, /*transposeB=*/true);
  k.store(k.convert(o, plan.type), transposed(k, outTile));
  k.copyOut(outTile,
            {out, {row, head, firstValue}, {0, 2}, {rows, valuesLeft}});

  return next;
}

Access ScanKernel::stateAccess(Value memref) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  Value values = entry.bound(k, valuesLeft);
  if (plan.isKFirst)
    return {memref,
            {entry.index, head, zero, firstValue},
            {3, 2},
            {values, keySize}};
  return {
      memref, {entry.index, head, firstValue, zero}, {2, 3}, {values, keySize}};
}

void ScanKernel::storeState(Value value, const Access &access) {
  Type type = cast<MemRefType>(access.memref.getType()).getElementType();
  k.store(k.convert(value, type), access);
}

// The state behind the chunk at `start`, if it is a checkpoint. Bounds and not
// a branch decide, so that the loop's body stays one block.
void ScanKernel::keepState(Value value, const Sequence &sequence, Value start) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  Value every = k.index(plan.every), done = k.add(start, k.index(c));
  Value isDue = k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                              k.rem(done, every), zero);
  Value isWhole = k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, done,
                                                sequence.length);
  isDue = k.createOrFold<arith::AndIOp>(isDue, isWhole);
  Value values = arith::SelectOp::create(k, isDue, valuesLeft, zero);
  Value place =
      k.sub(k.add(sequence.firstCheckpoint, k.div(done, every)), k.index(1));
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

// o of a sequence without a state. Rare, so straight from registers.
void ScanKernel::storeZeros(const Sequence &sequence, Value chunks) {
  Value count = arith::SelectOp::create(k, entry.isLive, k.index(0), chunks);
  auto loop = scf::ForOp::create(k, k.index(0), count, k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value start = k.mul(loop.getInductionVar(), k.index(c));
  Value zeros = k.convert(k.broadcast(k.constant(0.0), {vb, c}), plan.type);
  k.store(zeros, {out,
                  {k.add(sequence.firstRow, start), head, firstValue},
                  {2, 0},
                  {valuesLeft, k.sub(sequence.length, start)}});
}

void ScanKernel::build() {
  addArguments();
  int64_t blocks = (plan.valueSize + vb - 1) / vb;
  Value blockOfHead = k.rem(k.blockId(), k.index(blocks));
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  n = k.div(rest, k.index(plan.valueHeads));
  keyHead = k.div(head, k.index(plan.group));
  firstValue = k.mul(blockOfHead, k.index(vb));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  Sequence sequence = sequences.at(n);
  entry = StateEntry::get(k, entries, n);
  allocateTiles();

  Value initial = plan.start.isZero ? k.broadcast(k.constant(0.0), {vb, kp})
                                    : k.loadF32(stateAccess(start), {vb, kp});
  Value chunks = k.ceilDiv(sequence.length, k.index(c));
  if (entries)
    storeZeros(sequence, chunks);
  auto loop = scf::ForOp::create(k, k.index(0), entry.bound(k, chunks),
                                 k.index(1), ValueRange{initial});
  if (plan.stages > 1)
    loop->setAttr("gdn_tile.stages", k.getI64IntegerAttr(plan.stages));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value start = k.mul(loop.getInductionVar(), k.index(c));
    slot = k.add(sequence.firstSlot, loop.getInductionVar());
    row = k.add(sequence.firstRow, start);
    rows = k.min(k.sub(sequence.length, start), k.index(c));
    Value next = buildChunk(loop.getRegionIterArg(0));
    if (checkpoints)
      keepState(next, sequence, start);
    scf::YieldOp::create(k, ValueRange{next});
  }
  if (plan.updatesState)
    storeState(loop.getResult(0), stateAccess(state));

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perSequence =
      arith::ConstantIndexOp::create(host, plan.valueHeads * blocks);
  k.launch(host.createOrFold<arith::MulIOp>(plan.sequences, perSequence));
}

void mlir::gdn::buildScanKernel(RecurrencePlan &plan) {
  ScanKernel(plan).build();
}
