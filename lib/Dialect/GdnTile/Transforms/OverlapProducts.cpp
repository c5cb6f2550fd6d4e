//===- OverlapProducts.cpp - gdn-tile-overlap-products --------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEOVERLAPPRODUCTSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

// Ops that neither a product nor a wait for it may cross.
static bool isFence(Operation &op) {
  return isa<BarrierOp, WaitOp, RingWaitOp, RingAcquireOp, RingCommitOp,
             RingReleaseOp>(op) ||
         op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>();
}

// Makes a product asynchronous with its wait right behind it. If it continues
// the fragment of another product that nobody else needs, it takes it pending.
static MmaOp makeAsync(MmaOp op) {
  OpBuilder b(op);
  Value acc = op.getAcc();
  auto before = acc ? acc.getDefiningOp<MmaWaitOp>() : MmaWaitOp();
  bool continues =
      before && before->hasOneUse() && before->getBlock() == op->getBlock() &&
      llvm::none_of(llvm::make_range(before->getIterator(), op->getIterator()),
                    isFence);
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

// Issues a product behind its operands and the last fence, and there behind the
// products that were ready as early.
static void issueEarly(MmaOp op) {
  auto isReadyAt = [&](Operation &place) {
    return isFence(place) ||
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return operand.getDefiningOp() == &place;
           });
  };
  Block &block = *op->getBlock();
  auto place = op->getIterator();
  while (place != block.begin() && !isReadyAt(*std::prev(place)))
    --place;
  while (place != op->getIterator() && isIssued(*place))
    ++place;
  op->moveBefore(&block, place);
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

// Waits in front of the first use or fence.
static void waitLate(MmaWaitOp op) {
  Operation *place = op->getNextNode();
  while (!isFence(*place) && !llvm::is_contained(op->getUsers(), place))
    place = place->getNextNode();
  op->moveBefore(place);
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

static void overlapBlock(Block &block) {
  SmallVector<MmaOp> products;
  for (auto op : llvm::make_early_inc_range(block.getOps<MmaOp>()))
    if (!op.isAsync() && fitsWarpgroup(op))
      products.push_back(makeAsync(op));
  for (MmaOp product : products)
    issueEarly(product);
  issueCopiesLate(block);
  // From the end: a wait does not stop at one that moves later itself.
  SmallVector<MmaWaitOp> waits(block.getOps<MmaWaitOp>());
  for (MmaWaitOp wait : llvm::reverse(waits))
    waitLate(wait);
  countPending(block);
}

namespace {
struct OverlapProductsPass
    : public gdn_tile::impl::GdnTileOverlapProductsPassBase<
          OverlapProductsPass> {
  void runOnOperation() override {
    if (!getKernelAttr(getOperation()))
      return;
    getOperation().walk([](Block *block) { overlapBlock(*block); });
  }
};
} // namespace
