//===- Products.cpp - how products of a block depend on each other --------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::gdn_tile;

SmallVector<Value> mlir::gdn_tile::getUsedValues(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, values);
  return values.takeVector();
}

// Whether an op is a product, or a branch in which there is one.
static bool hasProduct(Operation &op) {
  return op
      .walk([](Operation *inner) {
        return isa<MmaOp, RefineOp>(inner) ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

// Whether a product or a branch uses a value only as an accumulator, or hands
// it on.
static bool isOnlyContinued(Operation &op, Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (!op.isAncestor(user) || isa<scf::YieldOp>(user))
      return true;
    if (auto refine = dyn_cast<RefineOp>(user))
      return refine.getA() != value;
    auto product = dyn_cast<MmaOp>(user);
    return product && product.getAcc() == value && product.getA() != value;
  });
}

ProductLevels::ProductLevels(Block &block) {
  for (Operation &op : block) {
    bool isProduct = hasProduct(op);
    int64_t used = 0, result = 0;
    for (Value value : getUsedValues(&op)) {
      result = std::max(result, of(value));
      if (!isProduct || !isOnlyContinued(op, value))
        used = std::max(used, of(value));
    }
    if (isProduct)
      result = std::max(result, used + 1);
    uses[&op] = used;
    for (Value value : op.getResults())
      levels[value] = result;
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// What an op and those in its regions do to memory.
struct Accesses {
  llvm::SetVector<Value> reads, writes;
  /// Whether it does something else, too.
  bool unknown = false;
};

} // namespace

// The allocation behind a tile, or the memref itself.
static Value getRoot(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

static bool isRingUser(Operation *op) {
  return isa<RingAcquireOp, RingCommitOp, RingWaitOp, RingReleaseOp>(op);
}

static Accesses getAccesses(Operation *root) {
  Accesses result;
  root->walk([&](Operation *op) {
    if (isRingUser(op)) {
      result.unknown |= op != root;
      return;
    }
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        isa<MmaWaitOp>(op) || isMemoryEffectFree(op))
      return;
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    if (!interface) {
      result.unknown = true;
      return;
    }
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      Value memref = effect.getValue();
      if (!memref) {
        result.unknown = true;
        continue;
      }
      bool isRead = isa<MemoryEffects::Read>(effect.getEffect());
      (isRead ? result.reads : result.writes).insert(getRoot(memref));
    }
  });
  return result;
}

static RingOp getRing(Operation *op) {
  if (auto commit = dyn_cast<RingCommitOp>(op))
    op = commit.getSlot().getDefiningOp();
  return op->getOperand(0).getDefiningOp<RingOp>();
}

// A stage may be used behind the op.
static bool opensStage(Operation *op) {
  return isa<RingAcquireOp, RingWaitOp>(op);
}

static bool touches(const Accesses &accesses, RingOp ring) {
  return accesses.unknown || llvm::any_of(ring.getBuffers(), [&](Value buffer) {
           return accesses.reads.contains(buffer) ||
                  accesses.writes.contains(buffer);
         });
}

bool mlir::gdn_tile::areOrdered(Operation *before, Operation *after) {
  // Ring ops let in what comes behind them, or let go what was in front.
  if (isRingUser(before) && isRingUser(after))
    // The stages of one ring come in order; different rings and the two ends
    // of one may pass each other.
    return getRing(before) == getRing(after) &&
           opensStage(before) == opensStage(after);
  if (isRingUser(before))
    return opensStage(before) && touches(getAccesses(after), getRing(before));
  if (isRingUser(after))
    return !opensStage(after) && touches(getAccesses(before), getRing(after));
  Accesses a = getAccesses(before), b = getAccesses(after);
  auto overlap = [](const llvm::SetVector<Value> &x,
                    const llvm::SetVector<Value> &y) {
    return llvm::any_of(x, [&](Value value) { return y.contains(value); });
  };
  auto isFree = [](const Accesses &x) {
    return !x.unknown && x.reads.empty() && x.writes.empty();
  };
  if (isFree(a) || isFree(b))
    return false;
  return a.unknown || b.unknown || overlap(a.writes, b.writes) ||
         overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}
