//===- HoistBuffers.cpp - allocations out of loops and branches -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNHOISTBUFFERSPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// True if the buffer or a view of it leaves its region: two iterations may
/// then hold different buffers at once.
static bool isHandedOn(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [](Operation *user) {
    if (user->hasTrait<OpTrait::IsTerminator>() ||
        isa<LoopLikeOpInterface>(user))
      return true;
    if (isa<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), isHandedOn);
    return llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
  });
}

/// The op in front of which the allocation can stand: the outermost loop or
/// branch around it outside of which its sizes are defined.
static Operation *findPlace(memref::AllocOp alloc) {
  Operation *place = alloc;
  while (Operation *parent = place->getParentOp()) {
    bool isKnownOutside = llvm::all_of(alloc->getOperands(), [&](Value size) {
      return !parent->isAncestor(size.getParentRegion()->getParentOp());
    });
    if (!isa<scf::ForOp, scf::IfOp>(parent) || !isKnownOutside)
      break;
    place = parent;
  }
  return place;
}

namespace {

struct HoistBuffersPass : gdn::impl::GdnHoistBuffersPassBase<HoistBuffersPass> {
  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocs;
    getOperation()->walk([&](memref::AllocOp op) { allocs.push_back(op); });
    for (memref::AllocOp alloc : allocs) {
      Operation *place = findPlace(alloc);
      if (place != alloc && !isHandedOn(alloc))
        alloc->moveBefore(place);
    }
  }
};

} // namespace
