//===- AheadRole.cpp - roles that run ahead of an iteration --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specializer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::gdn_tile;

void Specializer::mapStages(const Guarded &guarded, Value iteration,
                            IRMapping &mapping) {
  Value stage = stageOf(guarded.ring, iteration);
  for (auto [tile, buffers] : llvm::zip_equal(guarded.tiles, guarded.buffers))
    mapping.map(tile, tileAt(buffers, stage));
}

static bool usesAny(Operation *op, ArrayRef<Value> tiles) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value operand) {
                              return llvm::is_contained(tiles, operand);
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

// The last op of a block that uses any of `tiles`, itself or through a view.
static Operation *findLastUse(Block &block, ArrayRef<Value> tiles) {
  SmallVector<Value> all(tiles);
  Operation *last = nullptr;
  for (Operation &op : block) {
    if (!usesAny(&op, all))
      continue;
    last = &op;
    if (isa<ViewLikeOpInterface>(op))
      all.push_back(op.getResult(0));
  }
  return last;
}

// The ops of the region, each stage that it reads between wait and release, and
// what it writes from the first store on in a stage that has been acquired.
void Specializer::cloneAhead(Value iteration, IRMapping &mapping) {
  Block &body = candidate.ahead->op.getBody().front();
  SmallVector<Operation *> lastUses;
  for (Loaded &group : loaded) {
    lastUses.push_back(findLastUse(body, group.tiles));
    if (!group.isOfAhead)
      continue;
    RingWaitOp::create(b, group.ring, iteration);
    mapStages(group, iteration, mapping);
  }
  Value slot;
  for (Operation &op : body.without_terminator()) {
    if (!slot && usesAny(&op, aheadTiles.tiles)) {
      slot = RingAcquireOp::create(b, SlotType::get(b.getContext()),
                                   aheadTiles.ring, iteration);
      mapStages(aheadTiles, iteration, mapping);
    }
    // The bytes of a tile are those of another role's otherwise, which runs at
    // the same time.
    if (!isa<FreeOp>(op))
      b.clone(op, mapping);
    for (auto [group, last] : llvm::zip_equal(loaded, lastUses))
      if (group.isOfAhead && last == &op)
        RingReleaseOp::create(b, group.ring, iteration);
  }
  RingCommitOp::create(b, slot);
}

// The role whose teams take turns.
void Specializer::buildAhead() {
  AheadPart &part = *candidate.ahead;
  int64_t teams = part.op.getTeams();
  RoleOp role = createRole("ahead", kGroupWarps * teams, aheadRegisters, teams);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&role.getBody().front());
  IRMapping mapping;
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(part.op.getBody(), used);
  // Constants of fragments, and tiles of its own.
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    bool isOwn = isa_and_nonnull<arith::ConstantOp>(op);
    if (isa_and_nonnull<memref::AllocOp>(op))
      isOwn = llvm::all_of(value.getUsers(), [&](Operation *user) {
        return part.op->isAncestor(user) || isa<memref::DeallocOp>(user);
      });
    if (isOwn && loop.isDefinedOutsideOfLoop(value))
      b.clone(*op, mapping);
  }
  Value lower = loop.getLowerBound(), step = loop.getStep();
  if (teams > 1) {
    Value offset = b.createOrFold<arith::MulIOp>(TeamOp::create(b), step);
    lower = b.createOrFold<arith::AddIOp>(lower, offset);
    step = b.createOrFold<arith::MulIOp>(
        arith::ConstantIndexOp::create(b, teams), step);
  }
  scf::ForOp copy =
      createLoop(role, loop, lower, step, part.slice.getOps(), mapping);
  cloneAhead(iterationOf(copy.getInductionVar()), mapping);
}

// The math role reads what the others have made.
void Specializer::takeOver(Value iteration) {
  replaceTiles(aheadTiles, iteration);
  for (RareRefinement &rare : candidate.ahead->refinements)
    takeOutOfBranch(rare.branch, rare.refine, rare.refine.getLow());
}
