//===- PipelineProducts.cpp - gdn-tile-pipeline-products ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEPIPELINEPRODUCTSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

// Registers of a thread that fragments may take over the back edge; the rest is
// for those of the products and for addresses.
constexpr int64_t kMaxCarriedRegisters = 150;
// The same with the left operands of the products that open an iteration.
constexpr int64_t kMaxOpeningRegisters = 190;

// Cheaper to compute again than to carry over the back edge.
bool isCheap(Operation *op) {
  if (!isPure(op) || op->getNumRegions() != 0)
    return false;
  return isa<vector::BroadcastOp, arith::ConstantOp>(op) ||
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<VectorType>);
}

bool isLoad(Operation *op) {
  if (isa<LoadOp>(op))
    return true;
  return op->getName().getStringRef() == "memref.load";
}

bool isFence(Operation *op) {
  if (isa<BarrierOp, WaitOp, JoinOp>(op))
    return true;
  auto copy = dyn_cast<CopyInOp>(op);
  return copy && copy.getToken();
}

using Ops = llvm::SetVector<Operation *>;

/// Ops of a loop's body in the order in which one half of it runs.
struct Half {
  /// The products that need no other one of the half, with what they need.
  Ops issue;
  /// Of the second half, releases of stages that only products read which the
  /// next iteration has to wait for anyway.
  Ops release;
  /// In the first half the products that need those; in the second what frees
  /// registers and stages.
  Ops follow;
  Ops rest;

  SmallVector<Operation *> getAll() const {
    SmallVector<Operation *> all;
    for (const Ops *part : {&issue, &release, &follow, &rest})
      llvm::append_range(all, *part);
    return all;
  }
};

class ProductPipeliner {
public:
  explicit ProductPipeliner(scf::ForOp loop)
      : loop(loop), levels(*loop.getBody()), b(loop.getLoc(), loop) {}

  /// Decides what goes where; false if the loop stays as it is.
  bool plan();
  void run();

private:
  bool findSecondLevel();
  void splitOps();
  Ops orderIssue(const Ops &ops, int64_t level);
  void orderFirst();
  void orderSecond();
  bool isReleasedEarly(RingReleaseOp release);
  void addRest(const Ops &ops, Half &half);
  void addWithNeeds(Operation *op, const Ops &among, Ops &to);
  void findCarried();
  bool isLegal();
  bool isInside(Operation *op) {
    return op && op->getBlock() == loop.getBody();
  }
  Value getYielded(BlockArgument argument) {
    return loop.getYieldedValues()[argument.getArgNumber() - 1];
  }

  void clone(ArrayRef<Operation *> ops, IRMapping &mapping);
  void cloneCheap(Value value, IRMapping &mapping);
  Value lookup(Value value, IRMapping &mapping);
  SmallVector<Value> lookUpCarried(IRMapping &mapping);
  void buildPipelined();
  void buildBody(scf::ForOp pipelined);

  scf::ForOp loop;
  ProductLevels levels;
  ImplicitLocOpBuilder b;
  /// Level of the products that give what the loop carries.
  int64_t secondLevel = 0;
  Ops firstOps, secondOps;
  Half first, second;
  /// Values of the first half, and of the loop, that the second half uses.
  llvm::SetVector<Value> carried;
};

//===----------------------------------------------------------------------===//
// What goes where
//===----------------------------------------------------------------------===//

// The loop carries the result of products that wait for others.
bool ProductPipeliner::findSecondLevel() {
  for (Value value : loop.getYieldedValues())
    if (auto product = value.getDefiningOp<MmaOp>();
        product && isInside(product))
      secondLevel = std::max(secondLevel, levels.ofUses(product));
  return secondLevel > 0;
}

// The second half is what needs the products in front of the last level, and
// what memory orders behind it.
void ProductPipeliner::splitOps() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (isCheap(&op))
      continue;
    bool isSecond = levels.ofUses(&op) >= secondLevel ||
                    isa<RingReleaseOp>(op) ||
                    llvm::any_of(secondOps, [&](Operation *before) {
                      return areOrdered(before, &op);
                    });
    (isSecond ? secondOps : firstOps).insert(&op);
  }
  // A stage is acquired where it is stored to.
  for (Operation *op : llvm::to_vector(firstOps))
    if (isa<RingAcquireOp>(op) &&
        llvm::any_of(op->getUsers(), [&](Operation *user) {
          return secondOps.contains(user);
        })) {
      firstOps.remove(op);
      secondOps.insert(op);
    }
}

// Adds an op behind those of `among` that it needs.
void ProductPipeliner::addWithNeeds(Operation *op, const Ops &among, Ops &to) {
  if (to.contains(op))
    return;
  for (Value value : getUsedValues(op)) {
    Operation *needed = value.getDefiningOp();
    if (!isInside(needed))
      continue;
    if (isCheap(needed) || among.contains(needed))
      addWithNeeds(needed, among, to);
  }
  if (!isCheap(op))
    to.insert(op);
}

// Ops in the order of the program.
SmallVector<Operation *> sorted(const Ops &ops) {
  SmallVector<Operation *> result(ops.getArrayRef());
  llvm::sort(result,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return result;
}

// Copies and waits for the stages that the products of `level` read, then these
// with what they need.
Ops ProductPipeliner::orderIssue(const Ops &ops, int64_t level) {
  Ops issue, products;
  for (Operation *op : sorted(ops))
    if (isa<MmaOp>(op) && levels.ofUses(op) == level)
      addWithNeeds(op, ops, products);
  auto isRead = [&](Operation *wait) {
    return llvm::any_of(products,
                        [&](Operation *op) { return areOrdered(wait, op); });
  };
  for (Operation *op : sorted(ops))
    if (isa<CopyInOp>(op) || (isa<RingWaitOp>(op) && isRead(op)))
      addWithNeeds(op, ops, issue);
  issue.insert_range(products);
  return issue;
}

// What is left of a half; loads in front of their first use. Products wait for
// one another at a branch, so it comes last.
void ProductPipeliner::addRest(const Ops &ops, Half &half) {
  Ops placed;
  placed.insert_range(half.getAll());
  enum Kind { Others, Loads, Branches };
  auto getKind = [](Operation *op) {
    bool isBranch = op->getNumRegions() != 0 || isa<RefineOp>(op);
    return isLoad(op) ? Loads : isBranch ? Branches : Others;
  };
  auto add = [&](Kind kind) {
    for (Operation *op : sorted(ops)) {
      if (getKind(op) != kind)
        continue;
      Ops done = placed;
      addWithNeeds(op, ops, done);
      for (Operation *added : done)
        if (placed.insert(added))
          half.rest.insert(added);
    }
  };
  add(Others);
  add(Loads);
  add(Branches);
}

// Behind the first products waits for other stages, and the products that need
// them; what only the second half needs runs beside the last.
void ProductPipeliner::orderFirst() {
  first.issue = orderIssue(firstOps, 0);
  Ops done = first.issue;
  for (Operation *op : sorted(firstOps))
    if (isa<RingWaitOp>(op))
      addWithNeeds(op, firstOps, done);
  for (Operation *op : sorted(firstOps))
    if (isa<MmaOp>(op))
      addWithNeeds(op, firstOps, done);
  for (Operation *op : done)
    if (!first.issue.contains(op))
      first.follow.insert(op);
  addRest(firstOps, first);
}

// Whether all that reads the ring's tiles is behind what the next iteration
// starts with: ops of the first half, and products whose results it takes over.
bool ProductPipeliner::isReleasedEarly(RingReleaseOp release) {
  for (Operation *op : secondOps) {
    if (op == release || !areOrdered(op, release) || isa<RingReleaseOp>(op))
      continue;
    bool isTakenOver =
        isa<MmaOp>(op) && second.issue.contains(op) &&
        llvm::is_contained(loop.getYieldedValues(), op->getResult(0));
    if (!isTakenOver)
      return false;
  }
  return true;
}

// Fragments are rounded and stages released as soon as the products are done;
// what other warps have to be waited for comes last.
void ProductPipeliner::orderSecond() {
  second.issue = orderIssue(secondOps, secondLevel);
  for (Operation *op : sorted(secondOps))
    if (auto release = dyn_cast<RingReleaseOp>(op);
        release && isReleasedEarly(release))
      second.release.insert(op);
  for (Operation *op : sorted(secondOps)) {
    bool isReady = llvm::all_of(getUsedValues(op), [&](Value value) {
      Operation *def = value.getDefiningOp();
      return !isInside(def) || isCheap(def) || firstOps.contains(def) ||
             second.issue.contains(def) || second.follow.contains(def);
    });
    if (!second.issue.contains(op) && !second.release.contains(op) && isReady &&
        (isa<RingReleaseOp>(op) || isMemoryEffectFree(op)))
      second.follow.insert(op);
  }
  addRest(secondOps, second);
}

void ProductPipeliner::findCarried() {
  llvm::SetVector<Value> wanted;
  for (Operation *op : secondOps)
    for (Value value : getUsedValues(op))
      wanted.insert(value);
  for (Value value : loop.getYieldedValues())
    wanted.insert(value);
  // Cheap ops are computed again, from what they need.
  for (size_t i = 0; i < wanted.size(); ++i) {
    Value value = wanted[i];
    Operation *op = value.getDefiningOp();
    if (op && isInside(op)) {
      if (isCheap(op)) {
        wanted.insert(op->operand_begin(), op->operand_end());
        continue;
      }
      if (!firstOps.contains(op))
        continue;
    } else if (value == loop.getInductionVar() ||
               loop.isDefinedOutsideOfLoop(value)) {
      continue;
    }
    carried.insert(value);
  }
}

// Whether the second half of an iteration and the first of the next may be
// merged as planned: see buildBody.
bool ProductPipeliner::isLegal() {
  // What an iteration takes over from the one before is there in time.
  auto comesLater = [&](const Ops &users, ArrayRef<const Ops *> later) {
    for (Operation *op : users)
      for (Value value : getUsedValues(op)) {
        auto argument = dyn_cast<BlockArgument>(value);
        if (!argument || argument == loop.getInductionVar() ||
            argument.getOwner() != loop.getBody())
          continue;
        Operation *def = getYielded(argument).getDefiningOp();
        if (llvm::any_of(later,
                         [&](const Ops *ops) { return ops->contains(def); }))
          return true;
      }
    return false;
  };
  if (comesLater(first.issue, {&second.follow, &second.rest}) ||
      comesLater(first.follow, {&second.rest}))
    return false;
  // Ops of this iteration that come behind ops of the next. What follows the
  // products passes them: it has no effect but to release stages, and the next
  // iteration may start in front of that.
  auto mayPass = [](const Ops &before, const Ops &after) {
    for (Operation *x : before)
      for (Operation *y : after)
        if (areOrdered(x, y))
          return false;
    return true;
  };
  if (!mayPass(second.rest, first.issue) || !mayPass(second.rest, first.follow))
    return false;
  // In a half, ops keep the order that memory needs.
  for (Half *half : {&first, &second}) {
    SmallVector<Operation *> order = half->getAll();
    for (size_t i = 0; i < order.size(); ++i)
      for (size_t j = i + 1; j < order.size(); ++j)
        if (order[j]->isBeforeInBlock(order[i]) &&
            areOrdered(order[j], order[i]))
          return false;
  }
  return true;
}

bool ProductPipeliner::plan() {
  auto func = loop->getParentOfType<func::FuncOp>();
  KernelAttr kernel = getKernelAttr(func);
  if (getConstantIntValue(loop.getStep()) != 1 || loop.getUnsignedCmp() ||
      !findSecondLevel())
    return false;
  WalkResult walk = loop.getBody()->walk([](Operation *op) {
    return isFence(op) || isa<AheadOp, scf::ForOp, scf::WhileOp>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return false;
  splitOps();
  findCarried();
  int64_t registers = 0;
  for (Value value : carried)
    registers += countRegisters(kernel, value.getType());
  if (registers > kMaxCarriedRegisters)
    return false;
  orderFirst();
  orderSecond();
  llvm::SmallSetVector<Value, 4> opening;
  for (Operation *op : first.issue)
    if (auto product = dyn_cast<MmaOp>(op))
      opening.insert(product.getA());
  for (Value value : opening)
    registers += countRegisters(kernel, value.getType());
  return registers <= kMaxOpeningRegisters && isLegal();
}

//===----------------------------------------------------------------------===//
// The new loop
//===----------------------------------------------------------------------===//

void ProductPipeliner::cloneCheap(Value value, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !isInside(op))
    return;
  assert(isCheap(op) && "other ops are cloned in their order");
  for (Value operand : op->getOperands())
    cloneCheap(operand, mapping);
  b.clone(*op, mapping);
}

Value ProductPipeliner::lookup(Value value, IRMapping &mapping) {
  cloneCheap(value, mapping);
  return mapping.lookupOrDefault(value);
}

void ProductPipeliner::clone(ArrayRef<Operation *> ops, IRMapping &mapping) {
  for (Operation *op : ops) {
    for (Value value : getUsedValues(op))
      cloneCheap(value, mapping);
    b.clone(*op, mapping);
  }
}

SmallVector<Value> ProductPipeliner::lookUpCarried(IRMapping &mapping) {
  return llvm::map_to_vector(
      carried, [&](Value value) { return lookup(value, mapping); });
}

// The second half of iteration i and the first half of iteration i + 1.
void ProductPipeliner::buildBody(scf::ForOp pipelined) {
  b.setInsertionPointToStart(pipelined.getBody());
  IRMapping now, next;
  now.map(loop.getInductionVar(), pipelined.getInductionVar());
  now.map(carried.getArrayRef(), pipelined.getRegionIterArgs());
  // What the next iteration takes over, as far as it is there.
  auto handOver = [&] {
    for (auto [argument, value] :
         llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
      Operation *def = value.getDefiningOp();
      if (!isInside(def) || isCheap(def) || now.contains(value))
        next.map(argument, lookup(value, now));
    }
  };
  clone(second.issue.getArrayRef(), now);
  clone(second.release.getArrayRef(), now);
  next.map(
      loop.getInductionVar(),
      arith::AddIOp::create(b, pipelined.getInductionVar(), loop.getStep()));
  handOver();
  clone(first.issue.getArrayRef(), next);
  clone(second.follow.getArrayRef(), now);
  handOver();
  clone(first.follow.getArrayRef(), next);
  clone(second.rest.getArrayRef(), now);
  handOver();
  clone(first.rest.getArrayRef(), next);
  scf::YieldOp::create(b, lookUpCarried(next));
}

void ProductPipeliner::buildPipelined() {
  Value lower = loop.getLowerBound();
  IRMapping start;
  start.map(loop.getInductionVar(), lower);
  start.map(loop.getRegionIterArgs(), loop.getInitArgs());
  clone(first.getAll(), start);
  Value last = arith::SubIOp::create(b, loop.getUpperBound(), loop.getStep());
  auto pipelined =
      scf::ForOp::create(b, lower, last, loop.getStep(), lookUpCarried(start),
                         [](OpBuilder &, Location, Value, ValueRange) {});
  for (NamedAttribute attr : loop->getDiscardableAttrs())
    if (attr.getName() != kStagesAttrName)
      pipelined->setDiscardableAttr(attr.getName(), attr.getValue());
  {
    OpBuilder::InsertionGuard guard(b);
    buildBody(pipelined);
  }
  IRMapping end;
  end.map(loop.getInductionVar(), last);
  end.map(carried.getArrayRef(), pipelined.getResults());
  clone(second.getAll(), end);
  SmallVector<Value> results = llvm::map_to_vector(
      loop.getYieldedValues(), [&](Value value) { return lookup(value, end); });
  scf::YieldOp::create(b, results);
}

void ProductPipeliner::run() {
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                    loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loop.getResultTypes(), any,
                                  /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  buildPipelined();
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loop.getInitArgs());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
}

class GdnTilePipelineProductsPass
    : public gdn_tile::impl::GdnTilePipelineProductsPassBase<
          GdnTilePipelineProductsPass> {
public:
  void runOnOperation() override {
    KernelAttr kernel = getKernelAttr(getOperation());
    if (!kernel || kernel.getLayout() != FragmentLayoutKind::Accumulator)
      return;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      RoleOp role = getRole(loop);
      if (role && role.isScarce())
        continue;
      ProductPipeliner pipeliner(loop);
      if (pipeliner.plan())
        pipeliner.run();
    }
  }
};

} // namespace
