//===- ChannelPrepareKernel.cpp - prepare kernel with channel gates -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a gate per key channel the decay stands inside the products, so the
// scores are gated sums, T = A o beta_j, and the decayed copies of q and k that
// the scan needs are written too.
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

class ChannelPrepareKernel : public PrepareKernel {
public:
  using PrepareKernel::PrepareKernel;

private:
  void allocateTiles() override;
  void buildHead(Value head) override;
  void sumGates();
  void writeDecayedCopies(Value head);
};

} // namespace

void ChannelPrepareKernel::allocateTiles() {
  PrepareKernel::allocateTiles();
  gateTile = k.tile({c, kp}, k.getF32Type());
}

// The summed gates of the chunk in natural units, as gdn_tile.scores takes
// them. Rows behind the end hold 0 and repeat the last sum.
void ChannelPrepareKernel::sumGates() {
  Value raw = k.load(whole(k, gateTile), {c, kp});
  k.store(k.fmax(raw, k.constant(kMinGate)), whole(k, gateTile));
  gdn_tile::CumsumOp::create(k, gateTile);
}

// The decayed copies of q and k, and the chunk's decay.
void ChannelPrepareKernel::writeDecayedCopies(Value head) {
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

void ChannelPrepareKernel::buildHead(Value head) {
  sumGates();
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

void mlir::gdn::buildChannelPrepareKernel(RecurrencePlan &plan) {
  ChannelPrepareKernel(plan, /*blocksPerSM=*/0).build();
}
