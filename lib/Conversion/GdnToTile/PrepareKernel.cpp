//===- PrepareKernel.cpp - chunk-parallel part of a recurrence ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"

using namespace mlir;
using namespace mlir::gdn;

// Parts of a vector of c elements as columns: of those a lane holds an eighth,
// of a row a quarter. One warp holds 16 rows at most.
static void forEachPart(KernelBuilder &k, int64_t c,
                        function_ref<void(Value first, Shape2 shape)> body) {
  Operation *parent = k.getInsertionBlock()->getParentOp();
  bool isInWarp =
      isa<gdn_tile::EachWarpOp>(parent) || gdn_tile::isInWarp(parent);
  int64_t size = isInWarp ? 16 : c;
  for (int64_t first = 0; first < c; first += size)
    body(k.index(first), {size, 1});
}

void mlir::gdn::storeGateSums(KernelBuilder &k, Value raw, Value column,
                              Value sums) {
  int64_t c = cast<MemRefType>(sums.getType()).getDimSize(0);
  forEachPart(k, c, [&](Value first, Shape2 shape) {
    SmallVector<Value> start = {first};
    if (column)
      start.push_back(column);
    Value value = k.load({raw, start, {0}, {}}, shape);
    value = k.fmul(k.fmax(value, k.constant(kMinGate)), k.constant(kLog2E));
    k.store(value, {sums, {first}, {0}, {}});
  });
  gdn_tile::CumsumOp::create(k, sums);
}

void mlir::gdn::storeGateRows(KernelBuilder &k, const RecurrencePlan &plan,
                              Value sums, Value beta, Value tile) {
  int64_t c = plan.chunk;
  Value scale = k.constant(RecurrenceOp(plan.op).getScaleValue());
  Value last = k.load({sums, {k.index(c - 1)}, {0}, {}}, {1, 1});
  forEachPart(k, c, [&](Value first, Shape2 shape) {
    auto write = [&](GateRow row, Value value) {
      Value start = k.add(first, k.index(plan.getGateRow(row)));
      k.store(value, {tile, {start}, {0}, {}});
    };
    Value sum = k.load({sums, {first}, {0}, {}}, shape);
    Value grown = k.exp2(sum), rest = k.exp2(k.fsub(last, sum));
    if (beta)
      rest = k.fmul(rest, k.load({beta, {first}, {0}, {}}, shape));
    write(kGrown, grown);
    write(kRest, rest);
    write(kScaledGrown, k.fmul(grown, scale));
  });
}

void mlir::gdn::writeGateRows(KernelBuilder &k, RecurrencePlan &plan,
                              Value sums, Value beta, Value gates, Value slot,
                              Value head) {
  Value tile = k.tile({plan.getGateRow(kSplit)}, k.getF32Type());
  storeGateRows(k, plan, sums, beta, tile);
  k.copyOut(tile, {gates, {slot, head, k.index(0)}, {2}, {}});
  k.free(tile);
}

void mlir::gdn::buildPrepareKernel(RecurrencePlan &plan) {
  if (plan.gateKind == GateKind::Channel)
    buildChannelPrepareKernel(plan);
  else if (plan.hasErase || plan.type.isF32())
    buildBlockPrepareKernel(plan);
  else
    buildWarpPrepareKernel(plan);
}
