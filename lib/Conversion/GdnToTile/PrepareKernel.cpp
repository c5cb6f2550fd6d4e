//===- PrepareKernel.cpp - chunk-parallel part of a recurrence ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::storeGateSums(KernelBuilder &k, Value raw, Value sums) {
  int64_t c = cast<MemRefType>(sums.getType()).getDimSize(0);
  Value value = k.fmax(k.load(whole(k, raw), {1, c}), k.constant(kMinGate));
  k.store(k.fmul(value, k.constant(kLog2E)), whole(k, sums));
  gdn_tile::CumsumOp::create(k, sums);
}

void mlir::gdn::storeGateRows(KernelBuilder &k, const RecurrencePlan &plan,
                              Value sums, Value beta, Value tile) {
  int64_t c = plan.chunk;
  double scale = RecurrenceOp(plan.op).getScaleValue();
  auto write = [&](GateRow row, Value value) {
    k.store(value, {tile, {k.index(plan.getGateRow(row))}, {0}, {}});
  };
  Value sum = k.load(whole(k, sums), {1, c});
  Value last = k.load({sums, {k.index(c - 1)}, {0}, {}}, {1, 1});
  Value grown = k.exp2(sum);
  write(kGrown, grown);
  Value rest = k.exp2(k.fsub(last, sum));
  write(kRest, beta ? k.fmul(rest, k.load(whole(k, beta), {1, c})) : rest);
  write(kScaledGrown, k.fmul(grown, k.constant(scale)));
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
