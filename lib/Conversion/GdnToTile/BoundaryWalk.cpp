//===- BoundaryWalk.cpp - from one boundary to a later one ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BoundaryWalk.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Tiles of 96 KB at K = 128 fit twice into the shared memory of sm_90a.
constexpr int64_t kMaxStages = 2;

void BoundaryWalk::addArguments() {
  locals = k.argument(plan.localStates);
  transitions = k.argument(plan.transitions);
}

void BoundaryWalk::allocateTiles(int64_t rows) {
  int64_t kp = plan.keyPad;
  for (int64_t part = 0; part < kTransitionParts; ++part)
    transitionTiles.push_back(k.tile({kp, kp}, k.getBF16Type()));
  localTile = k.tile({rows, kp}, k.getF32Type());
}

void BoundaryWalk::copyTiles(Value boundary, Value head, const Rows &rows) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  for (auto [part, tile] : llvm::enumerate(transitionTiles))
    k.copyIn({transitions,
              {boundary, k.index(part), head, zero, zero},
              {3, 4},
              {keySize, keySize}},
             tile);
  k.copyIn({locals,
            {boundary, head, rows.first, zero},
            {2, 3},
            {rows.left, keySize}},
           localTile);
}

// The products with the second part of S first: then S itself is done with
// when they start, and its registers are those of the result. Beside them N is
// loaded.
Value BoundaryWalk::step(Value state, int64_t rows,
                         function_ref<void()> beside) {
  Value high = k.convert(state, k.getBF16Type());
  Value low = k.convert(k.roundingError(state, high), k.getBF16Type());
  Value next = k.mma(low, transitionTiles[0], Value(), /*transposeB=*/false);
  next = k.mma(high, transitionTiles[1], next, /*transposeB=*/false);
  next = k.mma(high, transitionTiles[0], next, /*transposeB=*/false);
  beside();
  return k.fadd(next, k.load(whole(k, localTile), {rows, plan.keyPad}));
}

Value BoundaryWalk::build(
    Value initial, Value boundary, Value steps, Value head, Rows rows,
    function_ref<void(Value boundary, Value state)> beside) {
  auto loop =
      scf::ForOp::create(k, k.index(0), steps, k.index(1), ValueRange{initial});
  if (int64_t stages = std::min(plan.stages, kMaxStages); stages > 1)
    loop->setAttr("gdn_tile.stages", k.getI64IntegerAttr(stages));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value at = k.add(boundary, loop.getInductionVar());
  copyTiles(at, head, rows);
  Value state = loop.getRegionIterArg(0);
  scf::YieldOp::create(k, step(state, rows.count, [&] { beside(at, state); }));
  return loop.getResult(0);
}
