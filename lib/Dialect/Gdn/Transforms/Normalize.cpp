//===- Normalize.cpp - one way to write each recurrence -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNNORMALIZEPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

static void normalize(RecurrenceOp op, IRRewriter &rewriter) {
  bool isEmpty =
      op.getQType().getDimSize(1) == 0 || op.getStateType().getDimSize(0) == 0;
  if (isEmpty && op.hasPureTensorSemantics())
    return rewriter.replaceOp(op, op.getDpsInits());
  rewriter.modifyOpInPlace(op, [&] {
    op.setScaleAttr(rewriter.getF64FloatAttr(op.getScaleValue()));
    if (op.getOffsets() && op.getStateType().getDimSize(0) == 1)
      op.getOffsetsMutable().clear();
  });
}

namespace {

struct NormalizePass : gdn::impl::GdnNormalizePassBase<NormalizePass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](RecurrenceOp op) { normalize(op, rewriter); });
  }
};

} // namespace
