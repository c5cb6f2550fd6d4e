//===- InsertBarriers.cpp - gdn-tile-insert-barriers ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEINSERTBARRIERSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

/// A shared tile: an allocation and, where they are known, the stage of it and
/// the columns in it.
struct Tile {
  static constexpr int64_t kAnyStage = -1;

  Value allocation;
  int64_t stage = kAnyStage;
  int64_t firstColumn = 0;
  int64_t endColumn = std::numeric_limits<int64_t>::max();

  bool overlaps(const Tile &other) const {
    return allocation == other.allocation &&
           (stage == other.stage || stage == kAnyStage ||
            other.stage == kAnyStage) &&
           firstColumn < other.endColumn && other.firstColumn < endColumn;
  }
  auto getKey() const {
    return std::make_tuple(allocation.getAsOpaquePointer(), stage, firstColumn,
                           endColumn);
  }
  bool operator<(const Tile &other) const { return getKey() < other.getKey(); }
  bool operator==(const Tile &other) const {
    return getKey() == other.getKey();
  }
};

struct Access {
  Tile tile;
  bool isWrite;
};

/// What the block has read and written since the last barrier.
struct State {
  std::set<Tile> reads, writes;

  bool needsBarrier(const Access &access) const {
    auto overlaps = [&](const Tile &tile) {
      return tile.overlaps(access.tile);
    };
    return llvm::any_of(writes, overlaps) ||
           (access.isWrite && llvm::any_of(reads, overlaps));
  }
  void add(const Access &access) {
    (access.isWrite ? writes : reads).insert(access.tile);
  }
  void join(const State &other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
  }
  /// What a ring guards is ordered by its own barriers across these ops.
  void forget(RingOp ring) {
    for (std::set<Tile> *tiles : {&reads, &writes})
      for (auto tile = tiles->begin(); tile != tiles->end();)
        tile = llvm::is_contained(ring.getBuffers(), tile->allocation)
                   ? tiles->erase(tile)
                   : std::next(tile);
  }
  bool touches(llvm::function_ref<bool(Value allocation)> which) const {
    auto isOne = [&](const Tile &tile) { return which(tile.allocation); };
    return llvm::any_of(reads, isOne) || llvm::any_of(writes, isOne);
  }
  void clear() {
    reads.clear();
    writes.clear();
  }
  bool operator==(const State &other) const {
    return reads == other.reads && writes == other.writes;
  }
};

/// Ops that get a barrier in front of them.
using Barriers = llvm::SmallPtrSet<Operation *, 8>;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// The tile behind a shared memref; null if it is not an allocation.
Tile getTile(Value memref) {
  Tile tile;
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>()) {
    if (auto stage = dyn_cast<StageOp>(*view))
      tile.stage =
          getConstantIntValue(stage.getStage()).value_or(Tile::kAnyStage);
    memref = view.getViewSource();
  }
  if (memref.getDefiningOp<memref::AllocOp>())
    tile.allocation = memref;
  return tile;
}

/// The values that `value` may stand for: what enters and what comes back
/// through the loops and branches around it.
void appendSources(Value value, SmallVectorImpl<Value> &sources) {
  auto [owner, index] = [&]() -> std::pair<Operation *, unsigned> {
    if (auto result = dyn_cast<OpResult>(value))
      return {result.getOwner(), result.getResultNumber()};
    auto argument = cast<BlockArgument>(value);
    return {argument.getOwner()->getParentOp(), argument.getArgNumber()};
  }();
  bool isArgument = isa<BlockArgument>(value);
  if (auto loop = dyn_cast<scf::ForOp>(owner)) {
    unsigned position = isArgument ? index - 1 : index;
    sources.push_back(loop.getInitArgs()[position]);
    sources.push_back(loop.getYieldedValues()[position]);
  } else if (auto branch = dyn_cast<scf::IfOp>(owner)) {
    sources.push_back(branch.thenYield().getOperand(index));
    sources.push_back(branch.elseYield().getOperand(index));
  } else if (auto loop = dyn_cast<scf::WhileOp>(owner)) {
    if (isArgument &&
        cast<BlockArgument>(value).getOwner() == loop.getBeforeBody()) {
      sources.push_back(loop.getInits()[index]);
      sources.push_back(loop.getYieldOp().getOperand(index));
    } else {
      sources.push_back(loop.getConditionOp().getArgs()[index]);
    }
  } else if (auto join = dyn_cast<JoinOp>(owner)) {
    llvm::append_range(sources, join.getTokens());
  }
}

/// The tiles that the copies behind a token write.
SmallVector<Value> getCopiedTiles(Value token) {
  llvm::SetVector<Value> tokens;
  tokens.insert(token);
  SmallVector<Value> tiles;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Value current = tokens[i];
    if (auto copy = current.getDefiningOp<CopyInOp>()) {
      tiles.push_back(copy.getTile());
      continue;
    }
    SmallVector<Value> sources;
    appendSources(current, sources);
    tokens.insert(sources.begin(), sources.end());
  }
  return tiles;
}

/// Narrows the tile that a load or store of `fragment` touches to its columns,
/// if they are constant.
void setColumns(Tile &tile, MemRefType memref, VectorType fragment,
                ValueRange indices, ArrayRef<int64_t> dims) {
  std::optional<int64_t> first = getConstantIntValue(indices.back());
  if (memref.getRank() != 2 || !first)
    return;
  int64_t size = 1;
  if (dims.back() == 1)
    size = fragment.getDimSize(1) == 1 ? fragment.getDimSize(0)
                                       : fragment.getDimSize(1);
  else if (dims.front() == 1)
    size = fragment.getDimSize(0);
  tile.firstColumn = *first;
  tile.endColumn = *first + size;
}

/// The ring that the roles wait for each other at, null if `op` is none of
/// these ops.
RingOp getRingOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, RingOp>(op)
      .Case<RingAcquireOp, RingWaitOp, RingReleaseOp, RingDrainOp>(
          [](auto user) {
            return user.getRing().template getDefiningOp<RingOp>();
          })
      .Case([](RingCommitOp commit) {
        auto acquire = commit.getSlot().getDefiningOp<RingAcquireOp>();
        return acquire.getRing().getDefiningOp<RingOp>();
      })
      .Default(RingOp());
}

/// Appends the accesses of an op without regions to shared memory.
LogicalResult getAccesses(Operation *op, SmallVectorImpl<Access> &accesses) {
  auto append = [&](Value memref, bool isWrite) -> LogicalResult {
    Tile tile = getTile(memref);
    if (!tile.allocation)
      return op->emitOpError(
          "accesses shared memory that is not a memref.alloc");
    accesses.push_back({tile, isWrite});
    return success();
  };
  if (auto wait = dyn_cast<WaitOp>(op)) {
    // The number of a tile's stage is a constant or says nothing: so it holds
    // for a token that a loop carries, too.
    for (Value memref : getCopiedTiles(wait.getToken()))
      if (failed(append(memref, /*isWrite=*/true)))
        return failure();
    return success();
  }
  bool hasShared = llvm::any_of(op->getOperandTypes(), isShared);
  if (!hasShared || isa<ViewLikeOpInterface>(op))
    return success();
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return op->emitOpError("has unknown effects on shared memory");
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    Value memref = effect.getValue();
    bool isWrite = isa<MemoryEffects::Write>(effect.getEffect());
    if (!memref || !isShared(memref.getType()) ||
        !(isWrite || isa<MemoryEffects::Read>(effect.getEffect())))
      continue;
    size_t before = accesses.size();
    if (failed(append(memref, isWrite)))
      return failure();
    if (accesses.size() == before)
      continue;
    auto setColumnsOf = [&](auto access, Value fragment) {
      setColumns(accesses.back().tile, cast<MemRefType>(memref.getType()),
                 cast<VectorType>(fragment.getType()), access.getIndices(),
                 access.getDims());
    };
    if (auto load = dyn_cast<LoadOp>(op))
      setColumnsOf(load, load.getResult());
    else if (auto store = dyn_cast<StoreOp>(op))
      setColumnsOf(store, store.getValue());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Walk
//===----------------------------------------------------------------------===//

/// Decides where barriers go. Every function takes the state in front of an op
/// or block, leaves the state behind it there, and adds barriers to a set;
/// nothing is changed, so loops can be walked until their state is stable.
class Planner {
public:
  LogicalResult walk(Block &block, State &state, Barriers &barriers);

private:
  using LoopBody = llvm::function_ref<LogicalResult(State &head, State &back,
                                                    Barriers &barriers)>;

  LogicalResult walkOp(Operation *op, State &state, Barriers &barriers);
  LogicalResult walkAccesses(Operation *op, State &state, Barriers &barriers);
  LogicalResult walkEachWarp(EachWarpOp op, State &state, Barriers &barriers);
  LogicalResult walkIf(scf::IfOp op, State &state, Barriers &barriers);
  LogicalResult walkRoles(RolesOp op, State &state, Barriers &barriers);
  LogicalResult walkLoop(Operation *op, State &state, Barriers &barriers,
                         LoopBody body);
  LogicalResult solveLoop(State &state, Barriers &barriers, LoopBody body);
};

LogicalResult Planner::walk(Block &block, State &state, Barriers &barriers) {
  for (Operation &op : block)
    if (failed(walkOp(&op, state, barriers)))
      return failure();
  return success();
}

LogicalResult Planner::walkOp(Operation *op, State &state, Barriers &barriers) {
  // All warps of the block meet where a ring is made.
  if (isa<BarrierOp, RingOp>(op)) {
    state.clear();
    return success();
  }
  if (RingOp ring = getRingOf(op)) {
    state.forget(ring);
    return success();
  }
  if (auto roles = dyn_cast<RolesOp>(op))
    return walkRoles(roles, state, barriers);
  if (auto ahead = dyn_cast<AheadOp>(op))
    return walk(ahead.getBody().front(), state, barriers);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return walkIf(branch, state, barriers);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto body = [&](State &head, State &back, Barriers &inside) {
      back = head;
      return walk(*loop.getBody(), back, inside);
    };
    return walkLoop(op, state, barriers, body);
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    auto body = [&](State &head, State &back, Barriers &inside) {
      // The loop is left behind the region `before`.
      if (failed(walk(*loop.getBeforeBody(), head, inside)))
        return failure();
      back = head;
      return walk(*loop.getAfterBody(), back, inside);
    };
    return walkLoop(op, state, barriers, body);
  }
  if (auto warp = dyn_cast<EachWarpOp>(op))
    return walkEachWarp(warp, state, barriers);
  if (op->getNumRegions() != 0)
    return op->emitOpError("is not allowed in a tile program");
  return walkAccesses(op, state, barriers);
}

// The warps need one barrier in front for the tiles of the block, which they
// only read; inside, barriers order the lanes of a warp and its own tiles.
LogicalResult Planner::walkEachWarp(EachWarpOp op, State &state,
                                    Barriers &barriers) {
  SmallVector<Access> shared;
  WalkResult result = op.getBody().walk([&](Operation *inner) {
    SmallVector<Access> accesses;
    if (failed(getAccesses(inner, accesses)))
      return WalkResult::interrupt();
    for (const Access &access : accesses)
      if (!op->isProperAncestor(access.tile.allocation.getDefiningOp()))
        shared.push_back(access);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (llvm::any_of(shared, [&](const Access &access) {
        return state.needsBarrier(access);
      })) {
    barriers.insert(op);
    state.clear();
  }
  State own;
  Block &body = op.getBody().front();
  if (failed(walk(body, own, barriers)))
    return failure();
  // The next item may put other tiles where this one's were.
  if (own.touches([&](Value allocation) {
        return op->isProperAncestor(allocation.getDefiningOp());
      }))
    barriers.insert(body.getTerminator());
  for (const Access &access : shared)
    state.add(access);
  return success();
}

LogicalResult Planner::walkAccesses(Operation *op, State &state,
                                    Barriers &barriers) {
  SmallVector<Access> accesses;
  if (failed(getAccesses(op, accesses)))
    return failure();
  // A wait is no access: it completes the writes of this thread, so the
  // barrier that others need comes behind it.
  bool isWait = isa<WaitOp>(op);
  if (!isWait && llvm::any_of(accesses, [&](const Access &access) {
        return state.needsBarrier(access);
      })) {
    barriers.insert(op);
    state.clear();
  }
  // An asynchronous copy must not start early, but has not written yet.
  auto copy = dyn_cast<CopyInOp>(op);
  if (copy && copy.getToken())
    return success();
  for (const Access &access : accesses)
    state.add(access);
  return success();
}

LogicalResult Planner::walkIf(scf::IfOp op, State &state, Barriers &barriers) {
  State otherwise = state;
  if (failed(walk(*op.thenBlock(), state, barriers)))
    return failure();
  if (op.elseBlock() && failed(walk(*op.elseBlock(), otherwise, barriers)))
    return failure();
  state.join(otherwise);
  return success();
}

// Every role starts with nothing pending: a barrier of the whole block in front
// of the roles, where one is needed, and barriers of its warps inside.
LogicalResult Planner::walkRoles(RolesOp op, State &state, Barriers &barriers) {
  if (!(state == State()))
    barriers.insert(op);
  state.clear();
  for (auto role : op.getBody().front().getOps<RoleOp>()) {
    State inside;
    if (failed(walk(role.getBody().front(), inside, barriers)))
      return failure();
  }
  return success();
}

LogicalResult Planner::solveLoop(State &state, Barriers &barriers,
                                 LoopBody body) {
  State head = state;
  while (true) {
    State exit = head, back;
    Barriers inside;
    if (failed(body(exit, back, inside)))
      return failure();
    State joined = head;
    joined.join(back);
    if (joined == head) {
      barriers.insert(inside.begin(), inside.end());
      state = exit;
      return success();
    }
    head = joined;
  }
}

LogicalResult Planner::walkLoop(Operation *op, State &state, Barriers &barriers,
                                LoopBody body) {
  State empty;
  Barriers needed, alone;
  State exit = state;
  if (failed(solveLoop(exit, needed, body)) ||
      failed(solveLoop(empty, alone, body)))
    return failure();
  // A barrier that only the first iteration needs stands in front of the loop.
  if (needed.size() > alone.size()) {
    barriers.insert(op);
    barriers.insert(alone.begin(), alone.end());
    state = empty;
    return success();
  }
  barriers.insert(needed.begin(), needed.end());
  state = exit;
  return success();
}

class GdnTileInsertBarriersPass
    : public gdn_tile::impl::GdnTileInsertBarriersPassBase<
          GdnTileInsertBarriersPass> {
public:
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!getKernelAttr(func) || func.isExternal())
      return;
    State state;
    Barriers barriers;
    for (Block &block : func.getBody())
      if (failed(Planner().walk(block, state, barriers)))
        return signalPassFailure();
    for (Operation *op : barriers) {
      OpBuilder builder(op);
      BarrierOp::create(builder, op->getLoc());
    }
  }
};

} // namespace
