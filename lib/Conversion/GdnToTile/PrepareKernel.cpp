//===- PrepareKernel.cpp - chunk-parallel part of a recurrence ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::storeGateSums(KernelBuilder &k, Value raw, Value column,
                              Value sums) {
  gdn_tile::CumsumOp::create(k, sums, raw, column, k.getF64FloatAttr(kMinGate),
                             k.getF64FloatAttr(kLog2E));
}

void mlir::gdn::storeGateRows(KernelBuilder &k, const RecurrencePlan &plan,
                              const GateVectors &of, Value tile) {
  static_assert(kGrown == 0 && kRest == 1 && kScaledGrown == 2 && kDecay == 3,
                "the order of gdn_tile.decays");
  static_assert(kFlagSize == gdn_tile::DecaysOp::kLastSize);
  gdn_tile::DecaysOp::create(
      k, of.sums, of.beta, of.keys, of.queries, tile,
      k.getF64FloatAttr(RecurrenceOp(plan.op).getScaleValue()));
}

void mlir::gdn::writeGateRows(KernelBuilder &k, RecurrencePlan &plan,
                              const GateVectors &of, Value gates, Value slot,
                              Value head) {
  Value tile = k.tile({plan.getGateRow(kBeta)}, k.getF32Type());
  storeGateRows(k, plan, of, tile);
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
