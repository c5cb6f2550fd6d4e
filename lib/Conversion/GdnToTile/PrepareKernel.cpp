//===- PrepareKernel.cpp - chunk-parallel part of a recurrence ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per slot and key head, for all value heads of the key head:
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

class PrepareKernel {
public:
  PrepareKernel(RecurrencePlan &plan)
      : plan(plan), c(plan.chunk), kp(plan.keyPad),
        k(plan.op, "prepare",
          gdn_tile::KernelAttr::get(plan.op.getContext(), plan.chunk / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4)),
        sequences(k, plan.getSequences()) {}

  void build();

private:
  void addArguments();
  void allocateTiles();
  void buildChunk();
  void buildHead(Value head, Value keyScores, Value queryScores);
  void loadGate(Value head);
  void loadBeta(Value head);
  Value buildHeadGate(Value head);
  void buildChannelGate(Value head);
  void buildInverse(Value head, Value keyScores, Value factor);
  void writeTile(Value fragment, Value workspace, ArrayRef<Value> position);
  void writeKeys(Value fragment, Value workspace, Value head);
  Value erasedKeys(Value head);

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
  // Fragments that all heads share.
  Value qRows, kRows, mask, strictMask;
};

} // namespace

void PrepareKernel::addArguments() {
  auto argument = [&](Value value) {
    return value ? k.argument(value) : Value();
  };
  q = argument(plan.q);
  key = argument(plan.k);
  gate = argument(plan.gate);
  beta = argument(plan.beta);
  erase = argument(plan.erase);
  inverse = argument(plan.inverse);
  scores = argument(plan.scores);
  gates = argument(plan.gates);
  decayedQ = argument(plan.decayedQ);
  decayedK = argument(plan.decayedK);
  restK = argument(plan.restK);
  decay = argument(plan.decay);
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
void PrepareKernel::loadGate(Value head) {
  bool perChannel = plan.gateKind == GateKind::Channel;
  Shape2 shape{perChannel ? c : 1, perChannel ? kp : c};
  k.copyIn(perChannel ? rowsOf(gate, head) : columnOf(gate, head), gateTile);
  Value raw = k.load(whole(k, gateTile), shape);
  Value value = k.fmax(raw, k.constant(kMinGate));
  if (!perChannel)
    value = k.fmul(value, k.constant(kLog2E));
  k.store(value, whole(k, gateTile));
  gdn_tile::CumsumOp::create(k, gateTile);
}

void PrepareKernel::loadBeta(Value head) {
  k.copyIn(columnOf(beta, head), betaTile);
}

// Writes the sums and returns Gam.
Value PrepareKernel::buildHeadGate(Value head) {
  loadGate(head);
  Value zero = k.index(0);
  k.copyOut(gateTile, {gates, {slot, head, zero}, {2}, {}});
  Value sumRow = k.load(whole(k, gateTile), {c, 1});
  Value sumColumn = k.load(whole(k, gateTile), {1, c});
  Value difference = k.fsub(sumRow, sumColumn);
  // Masked before the exponent: above the diagonal it could overflow.
  return k.exp2(k.select(mask, difference,
                         k.constant(-std::numeric_limits<float>::infinity())));
}

void PrepareKernel::writeTile(Value fragment, Value workspace,
                              ArrayRef<Value> position) {
  Value zero = k.index(0);
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

// T from strictly lower products `keyScores`; factor multiplies T (Gam o beta).
void PrepareKernel::buildInverse(Value head, Value keyScores, Value factor) {
  Value zero = k.constant(0.0);
  k.store(k.select(strictMask, keyScores, zero), whole(k, matrix));
  gdn_tile::TriInverseOp::create(k, matrix);
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
Value PrepareKernel::erasedKeys(Value head) {
  k.copyIn(rowsOf(erase, head), eraseTile);
  Value factor = k.load(whole(k, eraseTile), {c, kp});
  Value product = k.fmul(k.convert(kRows, k.getF32Type()), factor);
  return k.convert(product, plan.type);
}

// The decayed copies of q and k, the chunk's decay, and P; leaves the products
// of T's matrix in `matrix`.
void PrepareKernel::buildChannelGate(Value head) {
  Type f32 = k.getF32Type();
  Value zero = k.index(0);
  loadGate(head);
  Value sums = k.load(whole(k, gateTile), {c, kp});
  Value last = k.load({gateTile, {k.index(c - 1), zero}, {1}, {}}, {1, kp});
  auto exp = [&](Value x) { return k.exp2(k.fmul(x, k.constant(kLog2E))); };
  k.store(exp(last), {decay, {slot, head, zero}, {2}, {k.index(plan.keySize)}});
  Value grown = exp(sums);
  Value scale = k.constant(plan.op.getScaleValue());
  writeKeys(k.fmul(k.fmul(k.convert(qRows, f32), scale), grown), decayedQ,
            head);
  Value rest = exp(k.fsub(last, sums));
  writeKeys(k.fmul(k.convert(kRows, f32), rest), restK, head);
  gdn_tile::ScoresOp::create(k, qTile, kTile, gateTile, matrix,
                             /*strict=*/false);
  Value products = k.load(whole(k, matrix), {c, c});
  writeTile(k.convert(k.fmul(products, scale), plan.type), scores,
            {slot, head});
  if (!plan.isDelta)
    return;
  Value left = erase ? erasedKeys(head) : kRows;
  writeKeys(k.fmul(k.convert(left, f32), grown), decayedK, head);
  Value leftTile = kTile;
  if (erase) {
    k.store(left, whole(k, keyStaged));
    leftTile = keyStaged;
  }
  gdn_tile::ScoresOp::create(k, leftTile, kTile, gateTile, matrix,
                             /*strict=*/true);
}

void PrepareKernel::buildHead(Value head, Value keyScores, Value queryScores) {
  Value betaRow, betaColumn;
  if (beta) {
    loadBeta(head);
    betaRow = k.load(whole(k, betaTile), {c, 1});
    betaColumn = k.load(whole(k, betaTile), {1, c});
  }
  if (plan.gateKind == GateKind::Channel) {
    buildChannelGate(head);
    if (!plan.isDelta)
      return;
    Value products = k.load(whole(k, matrix), {c, c});
    buildInverse(head, beta ? k.fmul(products, betaRow) : products, betaColumn);
    return;
  }
  Value gamma;
  if (gate)
    gamma = buildHeadGate(head);
  Value scaled = k.fmul(queryScores, k.constant(plan.op.getScaleValue()));
  Value masked =
      gamma ? k.fmul(scaled, gamma) : k.select(mask, scaled, k.constant(0.0));
  writeTile(k.convert(masked, plan.type), scores, {slot, head});
  if (!plan.isDelta)
    return;
  if (erase) {
    Value left = erasedKeys(head);
    writeKeys(left, decayedK, head);
    buildInverse(head, k.mma(left, kTile, Value(), true), gamma);
    return;
  }
  Value factor = gamma ? k.fmul(gamma, betaColumn) : betaColumn;
  buildInverse(head, k.fmul(keyScores, betaRow), factor);
}

void PrepareKernel::buildChunk() {
  Value keyHead = k.rem(k.blockId(), k.index(plan.keyHeads));
  k.copyIn(rowsOf(key, keyHead), kTile);
  k.copyIn(rowsOf(q, keyHead), qTile);
  Value rowNumbers = k.iota({c, 1}), columnNumbers = k.iota({1, c});
  mask = k.compare(arith::CmpIPredicate::sge, rowNumbers, columnNumbers);
  strictMask = k.compare(arith::CmpIPredicate::sgt, rowNumbers, columnNumbers);
  kRows = k.load(whole(k, kTile), {c, kp});
  qRows = k.load(whole(k, qTile), {c, kp});
  Value keyScores, queryScores;
  if (plan.gateKind != GateKind::Channel) {
    queryScores = k.mma(qRows, kTile, Value(), true);
    if (plan.isDelta && !plan.hasErase)
      keyScores = k.mma(kRows, kTile, Value(), true);
  }
  Value firstHead = k.mul(keyHead, k.index(plan.group));
  if (plan.group == 1) {
    buildHead(firstHead, keyScores, queryScores);
    return;
  }
  auto loop =
      scf::ForOp::create(k, k.index(0), k.index(plan.group), k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  buildHead(k.add(firstHead, loop.getInductionVar()), keyScores, queryScores);
}

void PrepareKernel::build() {
  addArguments();
  slot = k.div(k.blockId(), k.index(plan.keyHeads));
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
  Value heads = arith::ConstantIndexOp::create(host, plan.keyHeads);
  k.launch(host.createOrFold<arith::MulIOp>(plan.slots, heads));
}

void mlir::gdn::buildPrepareKernel(RecurrencePlan &plan) {
  PrepareKernel(plan).build();
}
