//===- BlockPrepareKernel.cpp - prepare kernel of whole blocks ------------===//
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
// With erase and write, erase o k takes the place of k_i in A, and write is
// applied by the scan. For gates per head or none, where the form with a warp
// per head does not go: with erase, and for f32 inputs, whose inverse is exact.
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

namespace {

class BlockPrepareKernel {
public:
  BlockPrepareKernel(RecurrencePlan &plan);

  void build();

private:
  void addArguments();
  void allocateTiles();
  void buildChunk();
  void buildHead(Value head);
  /// i >= j, for rows i and columns j.
  Value mask();
  Value headDecay();
  void buildInverse(Value head);
  /// erase o k, as the products need it.
  SmallVector<Value> erasedKeys(Value keys);
  /// The inverse in `matrix`, of I + the strictly lower part of beta_i
  /// products.
  void invert(Value products);
  /// T: the inverse times `factor`, if any.
  void writeInverse(Value head, Value factor);
  void writeTile(Value fragment, Value workspace, ArrayRef<Value> position);
  void writeKeys(ValueRange parts, Value workspace, Value head);

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
  Value q, key, gate, beta, erase, inverse, scores, gates, decayedK;
  // Shared tiles.
  Value qTile, kTile, gateTile, betaTile, matrix, staged, keyStaged, eraseTile;
  // The chunk.
  Value slot, row, rows;
};

} // namespace

BlockPrepareKernel::BlockPrepareKernel(RecurrencePlan &plan)
    : plan(plan), c(plan.chunk), kp(plan.keyPad),
      k(plan.op, "prepare",
        gdn_tile::KernelAttr::get(plan.op.getContext(), plan.chunk / 16,
                                  gdn_tile::FragmentLayoutKind::Accumulator, 0,
                                  4, /*blocksPerSM=*/0)),
      sequences(k, plan.getSequences()) {}

void BlockPrepareKernel::addArguments() {
  q = k.argument(plan.q);
  key = k.argument(plan.k);
  gate = k.argument(plan.gate);
  beta = k.argument(plan.beta);
  erase = k.argument(plan.erase);
  inverse = k.argument(plan.inverse);
  scores = k.argument(plan.scores);
  gates = k.argument(plan.gates);
  decayedK = k.argument(plan.decayedK);
}

void BlockPrepareKernel::allocateTiles() {
  qTile = k.tile({c, kp}, plan.type);
  kTile = k.tile({c, kp}, plan.type);
  staged = k.tile({c, c}, plan.type);
  if (plan.isDelta)
    matrix = k.tile({c, c}, k.getF32Type());
  if (erase)
    keyStaged = k.tile({c, kp}, plan.type);
  if (beta)
    betaTile = k.tile({c}, k.getF32Type());
  if (erase)
    eraseTile = k.tile({c, kp}, k.getF32Type());
  if (gate)
    gateTile = k.tile({c}, k.getF32Type());
}

Value BlockPrepareKernel::mask() {
  return k.compare(arith::CmpIPredicate::sge, k.iota({c, 1}), k.iota({1, c}));
}

void BlockPrepareKernel::writeTile(Value fragment, Value workspace,
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

void BlockPrepareKernel::writeKeys(ValueRange parts, Value workspace,
                                   Value head) {
  Value zero = k.index(0);
  for (auto [part, fragment] : llvm::enumerate(parts)) {
    k.store(fragment, whole(k, keyStaged));
    SmallVector<Value> indices = partOf(k, slot, head, part, parts.size());
    int64_t rank = indices.size();
    indices.append({zero, zero});
    k.copyOut(keyStaged, {workspace,
                          indices,
                          {rank, rank + 1},
                          {k.index(c), k.index(plan.keySize)}});
  }
}

void BlockPrepareKernel::invert(Value products) {
  if (beta)
    products = k.fmul(products, k.load(whole(k, betaTile), {c, 1}));
  Value strict =
      k.compare(arith::CmpIPredicate::sgt, k.iota({c, 1}), k.iota({1, c}));
  k.store(k.select(strict, products, k.constant(0.0)), whole(k, matrix));
  gdn_tile::TriInverseOp::create(k, matrix, /*exact=*/plan.type.isF32());
}

void BlockPrepareKernel::writeInverse(Value head, Value factor) {
  Value result = k.load(whole(k, matrix), {c, c});
  if (factor)
    result = k.fmul(result, factor);
  for (auto [part, fragment] :
       llvm::enumerate(k.split(result, plan.type, plan.inverseParts)))
    writeTile(fragment, inverse, {slot, head, k.index(part)});
}

SmallVector<Value> BlockPrepareKernel::erasedKeys(Value keys) {
  Value factor = k.load(whole(k, eraseTile), {c, kp});
  return k.split(k.fmul(k.convert(keys, k.getF32Type()), factor), plan.type,
                 plan.parts);
}

void BlockPrepareKernel::buildChunk() {
  Value head = k.rem(k.blockId(), k.index(plan.valueHeads));
  Value keyHead = k.div(head, k.index(plan.group));
  k.copyIn(rowsOf(key, keyHead), kTile);
  k.copyIn(rowsOf(q, keyHead), qTile);
  if (beta)
    k.copyIn(columnOf(beta, head), betaTile);
  if (gate)
    k.copyIn(columnOf(gate, head), gateTile);
  if (erase)
    k.copyIn(rowsOf(erase, head), eraseTile);
  buildHead(head);
}

void BlockPrepareKernel::build() {
  addArguments();
  k.startAtEnd();
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

// Gam.
Value BlockPrepareKernel::headDecay() {
  Value difference = k.fsub(k.load(whole(k, gateTile), {c, 1}),
                            k.load(whole(k, gateTile), {1, c}));
  // Masked before the exponent: above the diagonal it could overflow.
  return k.exp2(k.select(mask(), difference,
                         k.constant(-std::numeric_limits<float>::infinity())));
}

void BlockPrepareKernel::buildHead(Value head) {
  if (gate) {
    storeGateSums(k, gateTile, /*column=*/Value(), gateTile);
    writeGateRows(k, plan, {gateTile, Value(), Value(), Value()}, gates, slot,
                  head);
  }
  Value products = k.mma(k.load(whole(k, qTile), {c, kp}), kTile, Value(),
                         /*transposeB=*/true);
  products = k.fmul(products, k.constant(plan.op.getScaleValue()));
  Value masked = gate ? k.fmul(products, headDecay())
                      : k.select(mask(), products, k.constant(0.0));
  for (auto [part, fragment] :
       llvm::enumerate(k.split(masked, plan.type, plan.parts)))
    writeTile(fragment, scores, partOf(k, slot, head, part, plan.parts));
  if (plan.isDelta)
    buildInverse(head);
}

void BlockPrepareKernel::buildInverse(Value head) {
  SmallVector<Value> left{k.load(whole(k, kTile), {c, kp})};
  if (erase) {
    left = erasedKeys(left.front());
    writeKeys(left, decayedK, head);
  }
  Value products = k.product(left, kTile, Value(), /*transposeB=*/true);
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

void mlir::gdn::buildBlockPrepareKernel(RecurrencePlan &plan) {
  BlockPrepareKernel(plan).build();
}
