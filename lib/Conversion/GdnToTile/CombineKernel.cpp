//===- CombineKernel.cpp - states at boundaries, one after the other ------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence, value head and rows of the state walks the
// boundaries with its rows S in registers, as a scan walks chunks:
//
//   S_(j+1) = S_j M_j + N_j
//
// M_j and S_j are sums of two bfloat16 parts. Of their product the one of the
// two small parts is left out: 2^-16 of the result. M_j and N_j are tiles that
// do not depend on S, so they are copied ahead like those of a scan.
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Rows of the state of one block: those of a warpgroup's product.
constexpr int64_t kRows = 64;
/// Tiles of 96 KB at K = 128 fit twice into the shared memory of sm_90a.
constexpr int64_t kMaxStages = 2;

class TransitionScan {
public:
  explicit TransitionScan(RecurrencePlan &plan)
      : plan(plan), kp(plan.keyPad),
        k(plan.op, "combine",
          gdn_tile::KernelAttr::get(plan.op.getContext(), kRows / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4, /*blocksPerSM=*/0)),
        segments(k, plan.getSegments()) {}

  /// The grid times `needed`.
  void build(Value needed);

private:
  Access stateAt(Value boundary, Value rows);
  void allocateTiles();
  void copyTiles(Value boundary);
  Value step(Value state, Value previous);

  RecurrencePlan &plan;
  int64_t kp;
  KernelBuilder k;
  SegmentMap segments;
  // Arguments.
  Value boundaryStates, locals, transitions;
  // Tiles.
  Value localTile;
  SmallVector<Value> transitionTiles;
  Value head, firstValue, valuesLeft;
};

} // namespace

Access TransitionScan::stateAt(Value boundary, Value rows) {
  return {boundaryStates,
          {boundary, k.index(0), head, firstValue, k.index(0)},
          {3, 4},
          {rows, k.index(plan.keySize)}};
}

void TransitionScan::allocateTiles() {
  for (int64_t part = 0; part < kTransitionParts; ++part)
    transitionTiles.push_back(k.tile({kp, kp}, k.getBF16Type()));
  localTile = k.tile({kRows, kp}, k.getF32Type());
}

void TransitionScan::copyTiles(Value boundary) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  for (auto [part, tile] : llvm::enumerate(transitionTiles))
    k.copyIn({transitions,
              {boundary, k.index(part), head, zero, zero},
              {3, 4},
              {keySize, keySize}},
             tile);
  k.copyIn({locals,
            {boundary, head, firstValue, zero},
            {2, 3},
            {valuesLeft, keySize}},
           localTile);
}

// The state at the boundary behind `previous`, the place of the one `state` is
// at. The products with the first part of S need not wait for the second one,
// and beside the products S is stored and N loaded: in its registers.
Value TransitionScan::step(Value state, Value previous) {
  Value high = k.convert(state, k.getBF16Type());
  Value next = k.mma(high, transitionTiles[1], Value(), /*transposeB=*/false);
  next = k.mma(high, transitionTiles[0], next, /*transposeB=*/false);
  Value low = k.convert(k.roundingError(state, high), k.getBF16Type());
  next = k.mma(low, transitionTiles[0], next, /*transposeB=*/false);
  k.store(state, stateAt(previous, valuesLeft));
  return k.fadd(next, k.load(whole(k, localTile), {kRows, kp}));
}

void TransitionScan::build(Value needed) {
  boundaryStates = k.argument(plan.boundaryStates);
  locals = k.argument(plan.localStates);
  transitions = k.argument(plan.transitions);
  int64_t blocks = llvm::divideCeil(plan.valueSize, kRows);
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  firstValue = k.mul(k.rem(k.blockId(), k.index(blocks)), k.index(kRows));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  Segment sequence = segments.sequence(k.div(rest, k.index(plan.valueHeads)));
  allocateTiles();

  Value one = k.index(1), first = segments.firstBoundary(sequence);
  Value exists = k.less(one, sequence.boundaries);
  gdn_tile::AwaitLaunchOp::create(k);
  Value initial =
      k.load(stateAt(first, k.onlyIf(exists, valuesLeft)), {kRows, kp});
  auto loop =
      scf::ForOp::create(k, one, sequence.boundaries, one, ValueRange{initial});
  if (int64_t stages = std::min(plan.stages, kMaxStages); stages > 1)
    loop->setAttr("gdn_tile.stages", k.getI64IntegerAttr(stages));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value boundary = k.add(first, loop.getInductionVar());
    copyTiles(boundary);
    scf::YieldOp::create(k,
                         step(loop.getRegionIterArg(0), k.sub(boundary, one)));
  }
  Value last = k.sub(k.add(first, sequence.boundaries), one);
  k.store(loop.getResult(0), stateAt(last, k.onlyIf(exists, valuesLeft)));

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perSequence =
      arith::ConstantIndexOp::create(host, plan.valueHeads * blocks);
  Value grid = host.createOrFold<arith::MulIOp>(plan.sequences, perSequence);
  k.launch(host.createOrFold<arith::MulIOp>(grid, needed), /*beside=*/true);
}

void mlir::gdn::buildTransitionScan(RecurrencePlan &plan, Value needed) {
  TransitionScan(plan).build(needed);
}
