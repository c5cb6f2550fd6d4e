//===- CombineKernel.cpp - states at boundaries, one after the other ------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence, value head and rows of the state walks the
// boundaries, and leaves the state at each of them.
//
//===----------------------------------------------------------------------===//

#include "BoundaryWalk.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Rows of the state of one block: those of a warpgroup's product.
constexpr int64_t kRows = 64;

class TransitionScan {
public:
  explicit TransitionScan(RecurrencePlan &plan)
      : plan(plan),
        k(plan.op, "combine",
          gdn_tile::KernelAttr::get(plan.op.getContext(), kRows / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4, /*blocksPerSM=*/0)),
        segments(k, plan.getSegments()), walk(plan, k) {}

  /// The grid times `needed`.
  void build(Value needed);

private:
  Access stateAt(Value boundary, Value rows);

  RecurrencePlan &plan;
  KernelBuilder k;
  SegmentMap segments;
  BoundaryWalk walk;
  Value boundaryStates, head, firstValue, valuesLeft;
};

} // namespace

Access TransitionScan::stateAt(Value boundary, Value rows) {
  return {boundaryStates,
          {boundary, k.index(0), head, firstValue, k.index(0)},
          {3, 4},
          {rows, k.index(plan.keySize)}};
}

void TransitionScan::build(Value needed) {
  boundaryStates = k.argument(plan.boundaryStates);
  walk.addArguments();
  int64_t blocks = llvm::divideCeil(plan.valueSize, kRows);
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  firstValue = k.mul(k.rem(k.blockId(), k.index(blocks)), k.index(kRows));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  Segment sequence = segments.sequence(k.div(rest, k.index(plan.valueHeads)));
  walk.allocateTiles(kRows);

  Value one = k.index(1), first = segments.firstBoundary(sequence);
  Value exists = k.less(one, sequence.boundaries);
  Value steps = k.sub(k.max(sequence.boundaries, one), one);
  gdn_tile::AwaitLaunchOp::create(k);
  Value initial = k.load(stateAt(first, k.onlyIf(exists, valuesLeft)),
                         {kRows, plan.keyPad});
  Value final = walk.build(
      initial, k.add(first, one), steps, head, {firstValue, valuesLeft, kRows},
      [&](Value boundary, Value state) {
        k.store(state, stateAt(k.sub(boundary, one), valuesLeft));
      });
  k.store(final, stateAt(k.add(first, steps), k.onlyIf(exists, valuesLeft)));

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perSequence =
      arith::ConstantIndexOp::create(host, plan.valueHeads * blocks);
  Value grid = host.createOrFold<arith::MulIOp>(plan.sequences, perSequence);
  k.launch(host.createOrFold<arith::MulIOp>(grid, needed), /*beside=*/true);
}

void mlir::gdn::buildTransitionScan(RecurrencePlan &plan, Value needed) {
  TransitionScan(plan).build(needed);
}
