//===- LoopCopies.cpp - copies of a loop that can run ahead ---------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopCopies.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::gdn_tile;

bool mlir::gdn_tile::isWrittenIn(Operation *root, Value memref) {
  for (Operation *user : memref.getUsers()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(user)) {
      if (isWrittenIn(root, view.getViewDest()))
        return true;
      continue;
    }
    if (!root->isAncestor(user))
      continue;
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects || effects.getEffectOnValue<MemoryEffects::Write>(memref))
      return true;
  }
  return false;
}

bool LoopSlice::add(Value value, llvm::SetVector<Operation *> &to) {
  if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0)
    return false;
  if (to.contains(op))
    return true;
  Value read;
  if (auto load = dyn_cast<memref::LoadOp>(op))
    read = load.getMemRef();
  else if (auto find = dyn_cast<FindSequenceOp>(op))
    read = find.getOffsets();
  bool isRepeatable = read ? !isShared(read.getType()) &&
                                 loop.isDefinedOutsideOfLoop(read) &&
                                 !isWrittenIn(loop, read)
                           : isMemoryEffectFree(op);
  if (!isRepeatable)
    return false;
  for (Value operand : op->getOperands())
    if (!add(operand, to))
      return false;
  to.insert(op);
  return true;
}

bool LoopSlice::add(ValueRange values) {
  llvm::SetVector<Operation *> extended = ops;
  for (Value value : values)
    if (!add(value, extended))
      return false;
  ops = std::move(extended);
  return true;
}

// Only this copy fills the tile, and everything that touches the tile comes
// behind the copy in the same iteration.
static bool canRunAhead(scf::ForOp loop, CopyInOp copy) {
  auto alloc = copy.getTile().getDefiningOp<memref::AllocOp>();
  auto elementType = [](Value memref) {
    return cast<MemRefType>(memref.getType()).getElementType();
  };
  if (copy.getToken() || copy.getSlot() || !alloc ||
      !loop.isDefinedOutsideOfLoop(copy.getSource()) ||
      elementType(copy.getSource()) != elementType(copy.getTile()) ||
      isWrittenIn(loop, copy.getSource()))
    return false;
  for (Operation *user : alloc->getUsers()) {
    if (user == copy || isa<memref::DeallocOp>(user))
      continue;
    Operation *ancestor = loop.getBody()->findAncestorOpInBlock(*user);
    if (!ancestor || !copy->isBeforeInBlock(ancestor))
      return false;
    if (isa<CopyInOp, ViewLikeOpInterface>(user))
      return false;
  }
  return true;
}

LoopCopies mlir::gdn_tile::findLoopCopies(scf::ForOp loop) {
  LoopCopies result{{}, LoopSlice(loop)};
  for (auto copy : loop.getBody()->getOps<CopyInOp>()) {
    if (!canRunAhead(loop, copy))
      continue;
    SmallVector<Value> operands(copy.getIndices());
    llvm::append_range(operands, copy.getValid());
    if (result.slice.add(operands))
      result.copies.push_back(copy);
  }
  return result;
}
