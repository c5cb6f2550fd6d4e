//===- Normalize.cpp - one way to write each recurrence -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNNORMALIZEPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// Replaces an op on memrefs by one on tensors that reads and writes them.
static void moveToTensors(DestinationStyleOpInterface op,
                          IRRewriter &rewriter) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  // One tensor for each memref, so that bufferization sees which are one.
  llvm::MapVector<Value, Value> tensors;
  SmallVector<Value> operands;
  for (Value memref : op->getOperands()) {
    Value &tensor = tensors[memref];
    if (!tensor)
      tensor = bufferization::ToTensorOp::create(
          rewriter, loc, memref::getTensorTypeFromMemRefType(memref.getType()),
          memref, /*restrict=*/true, /*writable=*/true);
    operands.push_back(tensor);
  }
  SmallVector<Type> types;
  for (OpOperand &init : op.getDpsInitsMutable())
    types.push_back(operands[init.getOperandNumber()].getType());
  Operation *moved = clone(rewriter, op, types, operands);
  for (auto [result, init] : llvm::zip(moved->getResults(), op.getDpsInits())) {
    auto materialize = bufferization::MaterializeInDestinationOp::create(
        rewriter, loc, result, init);
    materialize.setRestrict(true);
    materialize.setWritable(true);
  }
  rewriter.eraseOp(op);
}

static void normalize(RecurrenceOp op, IRRewriter &rewriter) {
  bool isEmpty = op.getQType().getDimSize(1) == 0 || op.getNumSequences() == 0;
  if (isEmpty && op.hasPureTensorSemantics())
    return rewriter.replaceOp(op, op.getDpsInits());
  rewriter.modifyOpInPlace(op, [&] {
    op.setScaleAttr(rewriter.getF64FloatAttr(op.getScaleValue()));
    if (op.getOffsets() && op.getNumSequences() == 1)
      op.getOffsetsMutable().clear();
  });
}

namespace {

struct NormalizePass : gdn::impl::GdnNormalizePassBase<NormalizePass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<DestinationStyleOpInterface> onMemRefs;
    getOperation()->walk([&](DestinationStyleOpInterface op) {
      if (isa_and_present<GdnDialect>(op->getDialect()) &&
          op.hasPureBufferSemantics())
        onMemRefs.push_back(op);
    });
    for (DestinationStyleOpInterface op : onMemRefs)
      moveToTensors(op, rewriter);
    getOperation()->walk([&](RecurrenceOp op) { normalize(op, rewriter); });
  }
};

} // namespace
