//===- Decompose.cpp - gdn ops to linalg ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNDECOMPOSEPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

struct DecomposePass : gdn::impl::GdnDecomposePassBase<DecomposePass> {
  using GdnDecomposePassBase::GdnDecomposePassBase;

  bool isSelected(Operation *op) {
    return isa_and_present<GdnDialect>(op->getDialect()) &&
           isa<AggregatedOpInterface>(op) &&
           (ops.empty() ||
            llvm::is_contained(ops, op->getName().getStringRef()));
  }

  // A decomposition may contain further gdn ops; each round is one level.
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    while (true) {
      SmallVector<Operation *> selected;
      getOperation()->walk([&](Operation *op) {
        if (isSelected(op))
          selected.push_back(op);
      });
      if (selected.empty())
        return;
      for (Operation *op : selected) {
        rewriter.setInsertionPoint(op);
        FailureOr<SmallVector<Value>> values =
            cast<AggregatedOpInterface>(op).decomposeOperation(rewriter);
        if (failed(values))
          return signalPassFailure();
        rewriter.replaceOp(op, *values);
      }
    }
  }
};

} // namespace
