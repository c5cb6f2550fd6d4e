//===- LowerVectors.cpp - vector ops to one-dimensional ones --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNLOWERVECTORSPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

static LogicalResult apply(Operation *root,
                           function_ref<void(RewritePatternSet &)> populate) {
  RewritePatternSet patterns(root->getContext());
  populate(patterns);
  return applyPatternsGreedily(root, std::move(patterns));
}

/// Each step is a set of its own: some of these patterns undo each other, and
/// broadcast lowering never ends when canonicalization runs with it.
static LogicalResult lowerVectors(Operation *root) {
  if (failed(
          apply(root,
                [](RewritePatternSet &patterns) {
                  vector::populateCastAwayVectorLeadingOneDimPatterns(patterns);
                  vector::populateVectorTransferPermutationMapLoweringPatterns(
                      patterns);
                })) ||
      failed(apply(
          root,
          [](RewritePatternSet &patterns) {
            vector::populateVectorContractLoweringPatterns(
                patterns, vector::VectorContractLowering::OuterProduct);
            vector::populateVectorOuterProductLoweringPatterns(patterns);
            vector::populateVectorMultiReductionLoweringPatterns(
                patterns, vector::VectorMultiReductionLowering::InnerReduction);
          })) ||
      failed(apply(root,
                   [](RewritePatternSet &patterns) {
                     populateVectorToSCFConversionPatterns(
                         patterns,
                         VectorTransferToSCFOptions().enableFullUnroll());
                   })) ||
      failed(apply(root,
                   [](RewritePatternSet &patterns) {
                     vector::populateVectorTransferLoweringPatterns(
                         patterns,
                         /*maxTransferRank=*/1);
                   })) ||
      failed(apply(root, [](RewritePatternSet &patterns) {
        vector::populateVectorTransposeLoweringPatterns(
            patterns, vector::VectorTransposeLowering::Shuffle16x16);
        vector::populateVectorBroadcastLoweringPatterns(patterns);
      })))
    return failure();
  return apply(root, [](RewritePatternSet &patterns) {
    vector::populateVectorShapeCastLoweringPatterns(patterns);
  });
}

/// exp as a polynomial: libm has no vector form that a JIT could call.
static LogicalResult approximateExp(Operation *root) {
  return apply(root, [](RewritePatternSet &patterns) {
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::ExpOp::getOperationName();
    });
  });
}

/// The order of a sum within a vector is free; in order it would be a chain of
/// scalar additions.
static void relaxReductions(Operation *root) {
  root->walk([](vector::ReductionOp op) {
    op.setFastmath(op.getFastmath() | arith::FastMathFlags::reassoc);
  });
}

namespace {

struct LowerVectorsPass : gdn::impl::GdnLowerVectorsPassBase<LowerVectorsPass> {
  void runOnOperation() override {
    if (failed(lowerVectors(getOperation())) ||
        failed(approximateExp(getOperation())))
      return signalPassFailure();
    relaxReductions(getOperation());
  }
};

} // namespace
