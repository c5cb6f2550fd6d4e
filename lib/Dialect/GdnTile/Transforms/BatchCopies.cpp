//===- BatchCopies.cpp - gdn-tile-batch-copies ----------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEBATCHCOPIESPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

static bool canBeAsync(CopyInOp copy) {
  return !copy.getToken() && !copy.getSlot() &&
         cast<MemRefType>(copy.getSource().getType()).getElementType() ==
             cast<MemRefType>(copy.getTile().getType()).getElementType();
}

// Makes the copies asynchronous and waits for them behind `last`.
static void batch(ArrayRef<CopyInOp> copies, Operation *last) {
  if (copies.size() < 2)
    return;
  auto tokenType = TokenType::get(last->getContext());
  SmallVector<Value> tokens;
  OpBuilder b(last);
  b.setInsertionPointAfter(last);
  // Where the wait goes, even if `last` is one of the copies.
  Location loc = last->getLoc();
  Operation *next = last->getNextNode();
  for (CopyInOp copy : copies) {
    b.setInsertionPoint(copy);
    tokens.push_back(CopyInOp::create(b, copy.getLoc(), tokenType,
                                      copy.getSource(), copy.getIndices(),
                                      copy.getDims(), copy.getValid(),
                                      copy.getTile(), copy.getLower())
                         .getToken());
    copy.erase();
  }
  b.setInsertionPoint(next);
  Value group = JoinOp::create(b, loc, tokens);
  WaitOp::create(b, loc, group, /*pending=*/0);
}

static void batchBlock(Block &block) {
  SmallVector<CopyInOp> copies;
  Operation *last = nullptr;
  auto finish = [&] {
    if (last)
      batch(copies, last);
    copies.clear();
    last = nullptr;
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto copy = dyn_cast<CopyInOp>(op);
        copy && !copy.getToken() && !copy.getSlot()) {
      // A tile that is copied to twice would be written in any order.
      if (llvm::any_of(copies, [&](CopyInOp other) {
            return other.getTile() == copy.getTile();
          }))
        finish();
      if (canBeAsync(copy))
        copies.push_back(copy);
      last = copy;
    } else if (isa<CopySumsOp>(op) && last) {
      // What it waits for comes together with the copies in front.
      last = &op;
    } else if (!isPure(&op) && !isa<memref::AllocOp>(op)) {
      finish();
    }
  }
  finish();
}

namespace {
struct BatchCopiesPass
    : public gdn_tile::impl::GdnTileBatchCopiesPassBase<BatchCopiesPass> {
  void runOnOperation() override {
    if (!getKernelAttr(getOperation()))
      return;
    getOperation().walk([](Block *block) {
      // A wait is one of the block, not of a warp.
      if (!isa_and_nonnull<EachWarpOp>(block->getParentOp()) &&
          !isInWarp(block->getParentOp()))
        batchBlock(*block);
    });
  }
};
} // namespace
