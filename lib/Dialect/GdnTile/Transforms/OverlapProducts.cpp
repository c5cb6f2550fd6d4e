//===- OverlapProducts.cpp - gdn-tile-overlap-products --------------------===//
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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEOVERLAPPRODUCTSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

// Registers of a thread that the loads in front of one group of products take,
// in one warpgroup, and where there are fewer.
constexpr int64_t kMaxLoadedRegisters = 40;
constexpr int64_t kMaxLoadedRegistersOfTight = 16;

// A branch that only computes, from registers and loads: products may be in
// flight all along.
static bool isPassable(Operation &op) {
  if (!isa<scf::IfOp>(op))
    return false;
  return !op.walk([&](Operation *inner) {
              bool isFree = inner == &op || isa<LoadOp, scf::YieldOp>(inner) ||
                            (inner->getNumRegions() == 0 && isPure(inner));
              return isFree ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

// Ops that everything stays in front of or behind.
static bool isFence(Operation &op) {
  return isa<BarrierOp, WaitOp>(op) ||
         (op.getNumRegions() != 0 && !isPassable(op)) ||
         op.hasTrait<OpTrait::IsTerminator>();
}

// A number as another one plus a constant.
static std::pair<Value, int64_t> splitConstant(Value value) {
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    if (std::optional<int64_t> constant = getConstantIntValue(add.getRhs()))
      return {add.getLhs(), *constant};
  return {value, 0};
}

// Whether a release may be of the stage that a product reads.
static bool mayRelease(RingReleaseOp release, MmaOp product) {
  auto ring = release.getRing().getDefiningOp<RingOp>();
  auto stage = product.getB().getDefiningOp<StageOp>();
  if (!stage)
    return isGuardedByRing(product.getB());
  if (!llvm::is_contained(ring.getBuffers(), stage.getBuffers()))
    return false;
  std::optional<int64_t> released = getConstantIntValue(release.getIteration());
  std::optional<int64_t> read = getConstantIntValue(stage.getStage());
  if (released && read)
    return *released % ring.getRing().getType().getStages() == *read;
  auto number = stage.getStage().getDefiningOp<arith::RemUIOp>();
  if (!number)
    return true;
  auto [a, i] = splitConstant(number.getLhs());
  auto [b, j] = splitConstant(release.getIteration());
  return a != b || i == j;
}

// Ops in front of which a product has to be complete.
static bool needsProduct(Operation &op, MmaWaitOp wait) {
  if (isFence(op))
    return true;
  auto release = dyn_cast<RingReleaseOp>(op);
  // Of products that continue one another the last is waited for.
  for (Value value = wait.getValue(); release && value;) {
    auto product = value.getDefiningOp<MmaOp>();
    if (!product || mayRelease(release, product))
      return true;
    value = product.getAcc();
    if (value && !isa<PendingType>(value.getType()))
      value = Value();
  }
  return false;
}

// Makes a product asynchronous with its wait right behind it. If it continues
// the fragment of another product that nobody else needs, it takes it pending.
static MmaOp makeAsync(MmaOp op) {
  OpBuilder b(op);
  Value acc = op.getAcc();
  auto before = acc ? acc.getDefiningOp<MmaWaitOp>() : MmaWaitOp();
  bool continues =
      before && before->hasOneUse() && before->getBlock() == op->getBlock() &&
      llvm::none_of(
          llvm::make_range(before->getIterator(), op->getIterator()),
          [&](Operation &between) { return needsProduct(between, before); });
  if (continues)
    acc = before.getValue();
  auto type = PendingType::get(op.getContext(), op.getFragmentType());
  auto async = MmaOp::create(b, op.getLoc(), type, op.getA(), op.getB(), acc,
                             op.getTransposeB(), op.getPasses());
  auto wait = MmaWaitOp::create(b, op.getLoc(), async.getResult(), 0);
  op.replaceAllUsesWith(wait.getResult());
  op.erase();
  if (continues)
    before.erase();
  return async;
}

static bool isIssued(Operation &op) {
  auto product = dyn_cast<MmaOp>(op);
  return product && product.isAsync();
}

// Issues a product behind its operands, the last fence, and the products that
// wait for no more others than it does.
static void issueEarly(MmaOp op, const ProductLevels &levels) {
  auto staysBehind = [&](Operation &place) {
    if (isFence(place) || isa<RingWaitOp>(place))
      return true;
    if (isIssued(place) && levels.ofUses(&place) <= levels.ofUses(op))
      return true;
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() == &place;
    });
  };
  Block &block = *op->getBlock();
  auto place = op->getIterator();
  while (place != block.begin() && !staysBehind(*std::prev(place)))
    --place;
  op->moveBefore(&block, place);
}

// Where a load stands that is issued in front of the products in whose shadow
// it stands now; null if something keeps it there.
static Operation *findGroupInFront(Operation *load) {
  Block &block = *load->getBlock();
  auto staysBehind = [&](Operation &place) {
    return isFence(place) || areOrdered(&place, load) ||
           llvm::any_of(load->getOperands(), [&](Value operand) {
             return operand.getDefiningOp() == &place;
           });
  };
  auto place = load->getIterator();
  while (place != block.begin() && !isIssued(*std::prev(place))) {
    --place;
    if (staysBehind(*place))
      return nullptr;
  }
  if (place == block.begin())
    return nullptr;
  // A group goes on over the rounding of an older fragment (see roundEarly).
  Operation *first = &*place;
  auto isRounding = [&](Operation &op) {
    return isa<MmaWaitOp>(op) || (isa<arith::TruncFOp>(op) &&
                                  !llvm::is_contained(op.getUsers(), first));
  };
  while (place != block.begin()) {
    Operation &before = *std::prev(place);
    if (isIssued(before))
      first = &before;
    else if (!isRounding(before))
      break;
    --place;
  }
  return first;
}

static bool isSharedLoad(Operation &op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return isShared(load.getMemref().getType());
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && isShared(load.getMemRefType());
}

// Computes numbers and addresses as soon as possible: loads move past what
// stands in front of these.
static void addressEarly(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (!isPure(&op) || op.getNumRegions() != 0 ||
        llvm::any_of(op.getResultTypes(), llvm::IsaPred<VectorType>))
      continue;
    Operation *last = nullptr;
    for (Value operand : op.getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == &block &&
          (!last || last->isBeforeInBlock(def)))
        last = def;
    if (last)
      op.moveAfter(last);
    else
      op.moveBefore(&block, block.begin());
  }
}

// Issues the copies that stand in front of the block's first products behind
// them: the tensor cores need not wait until the copies have been handed over.
// An asynchronous copy may write its tile at any time up to its wait, so it may
// be issued anywhere between the same fences.
static void issueCopiesLate(Block &block) {
  auto first = llvm::find_if(block, isIssued);
  if (first == block.end())
    return;
  auto last = first;
  while (isIssued(*std::next(last)))
    ++last;
  SmallVector<Operation *> copies;
  for (auto op = first; op != block.begin() && !isFence(*std::prev(op)); --op) {
    Operation &before = *std::prev(op);
    auto copy = dyn_cast<CopyInOp>(before);
    if ((copy && copy.getToken()) || isa<JoinOp>(before))
      copies.push_back(&before);
  }
  for (Operation *op : copies)
    op->moveAfter(&*last);
}

// Loads from shared memory queue behind the operands of the products in flight:
// as many as there are registers for are issued in front of the products.
static void loadEarly(Block &block, KernelAttr kernel, bool isTight) {
  SmallVector<Operation *> loads;
  for (Operation &op : block)
    if (isSharedLoad(op))
      loads.push_back(&op);
  int64_t most = isTight ? kMaxLoadedRegistersOfTight : kMaxLoadedRegisters;
  DenseMap<Operation *, int64_t> taken;
  for (Operation *load : loads) {
    Operation *place = findGroupInFront(load);
    if (!place)
      continue;
    int64_t registers = countRegisters(kernel, load->getResult(0).getType());
    // A single one, a factor or a flag of the chunk, is always loaded there.
    if (registers > 1 && taken[place] + registers > most)
      continue;
    taken[place] += registers;
    load->moveBefore(place);
  }
}

// Waits in front of the first use, or of what needs the product complete.
static void waitLate(MmaWaitOp op) {
  auto uses = [&](Operation *place) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return place->isAncestor(user);
    });
  };
  Operation *place = op->getNextNode();
  while (!needsProduct(*place, op) && !uses(place))
    place = place->getNextNode();
  op->moveBefore(place);
}

// Rounds a fragment in front of the second product that is issued behind its
// own: the first keeps the tensor cores busy, and the second needs the
// registers that the rounding frees. For two warpgroups, of which one computes
// while the other issues products, and for roles of few registers.
static void roundEarly(MmaWaitOp op) {
  if (!op->hasOneUse() || !isa<arith::TruncFOp>(*op->user_begin()))
    return;
  Operation *product = op.getValue().getDefiningOp();
  Operation *round = *op->user_begin();
  if (product->getBlock() != op->getBlock() ||
      round->getBlock() != op->getBlock())
    return;
  int64_t issued = 0;
  for (Operation *place = product->getNextNode(); place != op;
       place = place->getNextNode()) {
    if (!isIssued(*place) || ++issued == 1)
      continue;
    op->moveBefore(place);
    round->moveAfter(op);
    return;
  }
}

// Whether an op only makes more registers of a number, a row or a load.
static bool isExpansion(Operation &op, KernelAttr kernel) {
  if (op.getNumResults() != 1 || !isa<VectorType>(op.getResult(0).getType()))
    return false;
  if (isSharedLoad(op))
    return true;
  int64_t registers = countRegisters(kernel, op.getResult(0).getType());
  auto isSmaller = [&](Value operand) {
    auto type = dyn_cast<VectorType>(operand.getType());
    return !type || type.getDimSize(0) == 1 ||
           countRegisters(kernel, type) < registers;
  };
  return isPure(&op) && op.getNumRegions() == 0 &&
         !isa<MmaOp, MmaWaitOp, arith::ConstantOp>(op) &&
         llvm::all_of(op.getOperands(), isSmaller);
}

// For roles whose registers hold little beside the state: a left operand that
// several products share is free when the last is complete, so they are waited
// for at once, and what only expands is computed where it is used.
static void saveRegisters(Block &block, KernelAttr kernel) {
  DenseMap<Value, Operation *> waits;
  for (auto wait : llvm::make_early_inc_range(block.getOps<MmaWaitOp>())) {
    auto product = wait.getValue().getDefiningOp<MmaOp>();
    if (!product || product->getBlock() != &block)
      continue;
    Operation *&last = waits[product.getA()];
    if (last && product->isBeforeInBlock(last))
      wait->moveAfter(last);
    last = wait;
  }
  SmallVector<Operation *> expansions;
  for (Operation &op : block)
    if (isExpansion(op, kernel) && !op.use_empty())
      expansions.push_back(&op);
  for (Operation *op : llvm::reverse(expansions)) {
    Operation *place = op->getNextNode();
    auto uses = [&](Operation *user) { return place->isAncestor(user); };
    while (llvm::none_of(op->getUsers(), uses) && !areOrdered(op, place) &&
           !isFence(*place) && !isa<RingReleaseOp>(place))
      place = place->getNextNode();
    op->moveBefore(place);
  }
}

// Lets the products issued behind an awaited one run on. What an earlier wait
// has drained does not count: a wait that allows more than is in flight makes
// ptxas believe that something is, and wait once more at the next use.
static void countPending(Block &block) {
  DenseMap<Value, int64_t> numbers;
  int64_t issued = 0, drained = 0;
  for (Operation &op : block) {
    if (isIssued(op))
      numbers[cast<MmaOp>(op).getResult()] = ++issued;
    if (auto wait = dyn_cast<MmaWaitOp>(op)) {
      drained = std::max(drained, numbers.lookup(wait.getValue()));
      wait.setPending(issued - drained);
    }
  }
}

// Whether the fragments of all products of a block fit the registers of a
// thread at the same time, where blocks share a multiprocessor. Those of two
// key heads do not, and ptxas serializes what it is told to overlap (C7511).
static bool fitsRegisters(Block &block, KernelAttr kernel) {
  constexpr int64_t all = 65536;
  int64_t blocks = kernel.getBlocks(), threads = 32 * kernel.getWarps();
  if (blocks < 2)
    return true;
  DenseSet<Value> lefts;
  int64_t registers = 0;
  for (auto op : block.getOps<MmaOp>()) {
    if (!fitsWarpgroup(op))
      continue;
    registers += countRegisters(kernel, op.getFragmentType());
    if (lefts.insert(op.getA()).second)
      registers += countRegisters(kernel, op.getA().getType());
  }
  // A quarter is for addresses.
  return registers <= all / (blocks * threads) * 3 / 4;
}

static void overlapBlock(Block &block, KernelAttr kernel) {
  if (!fitsRegisters(block, kernel))
    return;
  SmallVector<MmaOp> products;
  for (auto op : llvm::make_early_inc_range(block.getOps<MmaOp>()))
    if (!op.isAsync() && fitsWarpgroup(op))
      products.push_back(makeAsync(op));
  ProductLevels levels(block);
  for (MmaOp product : products)
    issueEarly(product, levels);
  issueCopiesLate(block);
  // From the end: a wait does not stop at one that moves later itself.
  SmallVector<MmaWaitOp> waits(block.getOps<MmaWaitOp>());
  RoleOp role = products.empty() ? RoleOp() : getRole(products.front());
  // Two warpgroups, and roles that hand registers to one another.
  bool isTight = kernel.getWarps() > 4 || (role && role.getRegisters());
  for (MmaWaitOp wait : llvm::reverse(waits)) {
    waitLate(wait);
    if (isTight)
      roundEarly(wait);
  }
  if (role && role.isScarce()) {
    saveRegisters(block, kernel);
  } else if (role) {
    // In warps that only compute, nothing else hides the latency.
    addressEarly(block);
    // Roles of few registers have none for that beside the initial state.
    if (!isTight || isa<scf::ForOp>(block.getParentOp()))
      loadEarly(block, kernel, isTight);
  }
  countPending(block);
}

namespace {
struct OverlapProductsPass
    : public gdn_tile::impl::GdnTileOverlapProductsPassBase<
          OverlapProductsPass> {
  void runOnOperation() override {
    KernelAttr kernel = getKernelAttr(getOperation());
    if (!kernel)
      return;
    getOperation().walk([&](Block *block) { overlapBlock(*block, kernel); });
  }
};
} // namespace
