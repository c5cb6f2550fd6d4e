//===- PrepareKernel.cpp - chunk-parallel part of a recurrence ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per slot and value head:
//
//   G = cumsum(g);  Gam_ij = exp(G_i - G_j) for i >= j, else 0
//   A = (I + strictlower(beta_i k_i.k_j))^-1;  T = Gam o A o beta_j
//   P = scale * Gam o (Q K^T)
//
// With a gate per key channel the decay stands inside the products, so the
// scores are gated sums, T = A o beta_j, and the decayed copies of q and k that
// the scan needs are written too. With erase and write, erase o k takes the
// place of k_i in A, and write is applied by the scan.
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

namespace {

// exp is 0 in f32 from here on; the sums of clamped gates stay exact where
// those of -1e6 or -inf would swallow or poison the gates behind them.
constexpr double kMinGate = -104.0;
constexpr double kLog2E = 1.4426950408889634;

// The kernel waits for memory and in the inverse: twelve warps on an SM, as
// many as its shared memory admits, hide some of that. The forms that hold more
// in registers are left alone.
int64_t getBlocksPerSM(const RecurrencePlan &plan) {
  if (plan.gateKind == GateKind::Channel || plan.hasErase ||
      plan.type.isF32() || plan.keyPad > 128)
    return 0;
  return 12 * 16 / plan.chunk;
}

class PrepareKernel {
public:
  PrepareKernel(RecurrencePlan &plan)
      : plan(plan), c(plan.chunk), kp(plan.keyPad),
        k(plan.op, "prepare",
          gdn_tile::KernelAttr::get(plan.op.getContext(), plan.chunk / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4, getBlocksPerSM(plan))),
        sequences(k, plan.getSequences()) {}

  void build();

private:
  void addArguments();
  void allocateTiles();
  void buildChunk();
  void buildHead(Value head);
  void buildHeadInverse(Value head);
  void buildChannelHead(Value head);
  void sumGates();
  Value mask();
  Value headDecay();
  void invert(Value products);
  void writeInverse(Value head, Value factor);
  void writeDecayedCopies(Value head);
  void writeGates(Value head);
  void writeTile(Value fragment, Value workspace, ArrayRef<Value> position);
  void writeKeys(Value fragment, Value workspace, Value head);
  Value erasedKeys(Value keys);

  Access rowsOf(Value memref, Value head) {
    Value zero = k.index(0);
    return {memref, {row, head, zero}, {0, 2}, {rows, k.index(plan.keySize)}};
  }
  Access columnOf(Value memref, Value head) {
    return {memref, {row, head}, {0}, {rows}};
  }

  RecurrencePlan &plan;
  int64_t c, kp;
  KernelBuilder k;
  SequenceMap sequences;
  // Arguments.
  Value q, key, gate, beta, erase, inverse, scores, gates, decayedQ, decayedK,
      restK, decay;
  // Shared tiles.
  Value qTile, kTile, gateTile, betaTile, matrix, staged, keyStaged, eraseTile;
  // The chunk.
  Value slot, row, rows;
};

} // namespace

void PrepareKernel::addArguments() {
  q = k.argument(plan.q);
  key = k.argument(plan.k);
  gate = k.argument(plan.gate);
  beta = k.argument(plan.beta);
  erase = k.argument(plan.erase);
  inverse = k.argument(plan.inverse);
  scores = k.argument(plan.scores);
  gates = k.argument(plan.gates);
  decayedQ = k.argument(plan.decayedQ);
  decayedK = k.argument(plan.decayedK);
  restK = k.argument(plan.restK);
  decay = k.argument(plan.decay);
}

void PrepareKernel::allocateTiles() {
  Type f32 = k.getF32Type();
  qTile = k.tile({c, kp}, plan.type);
  kTile = k.tile({c, kp}, plan.type);
  staged = k.tile({c, c}, plan.type);
  if (plan.isDelta || plan.gateKind == GateKind::Channel)
    matrix = k.tile({c, c}, f32);
  if (plan.gateKind == GateKind::Head)
    gateTile = k.tile({c}, f32);
  if (plan.gateKind == GateKind::Channel)
    gateTile = k.tile({c, kp}, f32);
  if (plan.gateKind == GateKind::Channel || plan.hasErase)
    keyStaged = k.tile({c, kp}, plan.type);
  if (beta)
    betaTile = k.tile({c}, f32);
  if (erase)
    eraseTile = k.tile({c, kp}, f32);
}

// The summed gates of the chunk: one per head in log2 units, those per channel
// in natural units, as gdn_tile.scores takes them. Rows behind the end hold 0
// and repeat the last sum.
void PrepareKernel::sumGates() {
  bool perChannel = plan.gateKind == GateKind::Channel;
  Shape2 shape{perChannel ? c : 1, perChannel ? kp : c};
  Value raw = k.load(whole(k, gateTile), shape);
  Value value = k.fmax(raw, k.constant(kMinGate));
  if (!perChannel)
    value = k.fmul(value, k.constant(kLog2E));
  k.store(value, whole(k, gateTile));
  gdn_tile::CumsumOp::create(k, gateTile);
}

// i >= j, for rows i and columns j.
Value PrepareKernel::mask() {
  return k.compare(arith::CmpIPredicate::sge, k.iota({c, 1}), k.iota({1, c}));
}

// Gam of a gate per head.
Value PrepareKernel::headDecay() {
  Value difference = k.fsub(k.load(whole(k, gateTile), {c, 1}),
                            k.load(whole(k, gateTile), {1, c}));
  // Masked before the exponent: above the diagonal it could overflow.
  return k.exp2(k.select(mask(), difference,
                         k.constant(-std::numeric_limits<float>::infinity())));
}

void PrepareKernel::writeTile(Value fragment, Value workspace,
                              ArrayRef<Value> position) {
  Value zero = k.index(0);
  // Through shared memory: a fragment's own rows of 16 bytes would write half
  // sectors.
  k.store(fragment, whole(k, staged));
  SmallVector<Value> indices(position);
  int64_t rank = position.size();
  indices.append({zero, zero});
  k.copyOut(staged, {workspace, indices, {rank, rank + 1}, {}});
}

void PrepareKernel::writeKeys(Value fragment, Value workspace, Value head) {
  Value zero = k.index(0);
  k.store(k.convert(fragment, plan.type), whole(k, keyStaged));
  k.copyOut(keyStaged, {workspace,
                        {slot, head, zero, zero},
                        {2, 3},
                        {k.index(c), k.index(plan.keySize)}});
}

// The inverse in `matrix`, of I + the strictly lower part of beta_i products.
void PrepareKernel::invert(Value products) {
  if (beta)
    products = k.fmul(products, k.load(whole(k, betaTile), {c, 1}));
  Value strict =
      k.compare(arith::CmpIPredicate::sgt, k.iota({c, 1}), k.iota({1, c}));
  k.store(k.select(strict, products, k.constant(0.0)), whole(k, matrix));
  gdn_tile::TriInverseOp::create(k, matrix, /*exact=*/plan.type.isF32());
}

// T: the inverse times `factor`, if any.
void PrepareKernel::writeInverse(Value head, Value factor) {
  Value result = k.load(whole(k, matrix), {c, c});
  if (factor)
    result = k.fmul(result, factor);
  Value high = k.convert(result, plan.type);
  writeTile(high, inverse, {slot, head, k.index(0)});
  if (plan.inverseParts == 1)
    return;
  Value low = k.fsub(result, k.convert(high, k.getF32Type()));
  writeTile(k.convert(low, plan.type), inverse, {slot, head, k.index(1)});
}

// erase o k, rounded as the products need it.
Value PrepareKernel::erasedKeys(Value keys) {
  Value factor = k.load(whole(k, eraseTile), {c, kp});
  return k.convert(k.fmul(k.convert(keys, k.getF32Type()), factor), plan.type);
}

// With a gate per channel: the decayed copies of q and k, and the chunk's
// decay.
void PrepareKernel::writeDecayedCopies(Value head) {
  Type f32 = k.getF32Type();
  Value zero = k.index(0);
  auto exp = [&](Value x) { return k.exp2(k.fmul(x, k.constant(kLog2E))); };
  Value keys = k.load(whole(k, kTile), {c, kp});
  Value sums = k.load(whole(k, gateTile), {c, kp});
  Value last = k.load({gateTile, {k.index(c - 1), zero}, {1}, {}}, {1, kp});
  k.store(exp(last), {decay, {slot, head, zero}, {2}, {k.index(plan.keySize)}});
  writeKeys(k.fmul(k.convert(keys, f32), exp(k.fsub(last, sums))), restK, head);
  Value grown = exp(sums);
  Value queries = k.loadF32(whole(k, qTile), {c, kp});
  queries = k.fmul(queries, k.constant(plan.op.getScaleValue()));
  writeKeys(k.fmul(queries, grown), decayedQ, head);
  if (!plan.isDelta)
    return;
  Value left = erase ? erasedKeys(keys) : keys;
  writeKeys(k.fmul(k.convert(left, f32), grown), decayedK, head);
}

// What the scan multiplies by because of the gates of the tokens.
void PrepareKernel::writeGates(Value head) {
  Value sums = k.load(whole(k, gateTile), {1, c});
  Value last = k.load({gateTile, {k.index(c - 1)}, {0}, {}}, {1, 1});
  Value grown = k.exp2(sums);
  auto write = [&](Value row, GateRow number) {
    k.store(row, {gates, {slot, head, k.index(number * c)}, {2}, {}});
  };
  write(grown, kGrown);
  write(k.exp2(k.fsub(last, sums)), kRest);
  write(k.fmul(grown, k.constant(plan.op.getScaleValue())), kScaledGrown);
}

void PrepareKernel::buildHead(Value head) {
  if (gate)
    sumGates();
  if (plan.gateKind == GateKind::Channel)
    return buildChannelHead(head);
  if (gate)
    writeGates(head);
  Value products = k.mma(k.load(whole(k, qTile), {c, kp}), kTile, Value(),
                         /*transposeB=*/true);
  products = k.fmul(products, k.constant(plan.op.getScaleValue()));
  Value masked = gate ? k.fmul(products, headDecay())
                      : k.select(mask(), products, k.constant(0.0));
  writeTile(k.convert(masked, plan.type), scores, {slot, head});
  if (plan.isDelta)
    buildHeadInverse(head);
}

void PrepareKernel::buildHeadInverse(Value head) {
  Value left = k.load(whole(k, kTile), {c, kp});
  if (erase) {
    left = erasedKeys(left);
    writeKeys(left, decayedK, head);
  }
  Value products = k.mma(left, kTile, Value(), /*transposeB=*/true);
  invert(products);
  // Made anew: kept over the inverse it would cost the registers of another
  // block on the SM.
  Value factor = gate ? headDecay() : Value();
  if (beta) {
    Value column = k.load(whole(k, betaTile), {1, c});
    factor = factor ? k.fmul(factor, column) : column;
  }
  writeInverse(head, factor);
}

void PrepareKernel::buildChannelHead(Value head) {
  writeDecayedCopies(head);
  gdn_tile::ScoresOp::create(k, qTile, kTile, gateTile, matrix,
                             /*strict=*/false);
  Value products = k.load(whole(k, matrix), {c, c});
  products = k.fmul(products, k.constant(plan.op.getScaleValue()));
  writeTile(k.convert(products, plan.type), scores, {slot, head});
  if (!plan.isDelta)
    return;
  Value leftTile = kTile;
  if (erase) {
    k.store(erasedKeys(k.load(whole(k, kTile), {c, kp})), whole(k, keyStaged));
    leftTile = keyStaged;
  }
  gdn_tile::ScoresOp::create(k, leftTile, kTile, gateTile, matrix,
                             /*strict=*/true);
  invert(k.load(whole(k, matrix), {c, c}));
  writeInverse(head, beta ? k.load(whole(k, betaTile), {1, c}) : Value());
}

void PrepareKernel::buildChunk() {
  Value head = k.rem(k.blockId(), k.index(plan.valueHeads));
  Value keyHead = k.div(head, k.index(plan.group));
  k.copyIn(rowsOf(key, keyHead), kTile);
  k.copyIn(rowsOf(q, keyHead), qTile);
  if (beta)
    k.copyIn(columnOf(beta, head), betaTile);
  if (gate)
    k.copyIn(plan.gateKind == GateKind::Channel ? rowsOf(gate, head)
                                                : columnOf(gate, head),
             gateTile);
  if (erase)
    k.copyIn(rowsOf(erase, head), eraseTile);
  buildHead(head);
}

void PrepareKernel::build() {
  addArguments();
  slot = k.div(k.blockId(), k.index(plan.valueHeads));
  Chunk chunk = sequences.chunkAt(slot);
  row = chunk.row;
  rows = k.min(chunk.left, k.index(plan.chunk));
  allocateTiles();
  // Slots between packed sequences may hold nothing.
  auto guarded = scf::IfOp::create(k, k.less(k.index(0), chunk.left));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(guarded.thenBlock());
    buildChunk();
  }
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value heads = arith::ConstantIndexOp::create(host, plan.valueHeads);
  k.launch(host.createOrFold<arith::MulIOp>(plan.slots, heads));
}

void mlir::gdn::buildPrepareKernel(RecurrencePlan &plan) {
  PrepareKernel(plan).build();
}
