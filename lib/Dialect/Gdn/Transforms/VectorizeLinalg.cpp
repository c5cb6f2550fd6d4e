//===- VectorizeLinalg.cpp - linalg tiles to vector ops -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNVECTORIZELINALGPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

// Larger ops would become straight-line code of that size.
static constexpr int64_t kMaxElements = 4096;

static bool isSmallAndStatic(linalg::LinalgOp op) {
  int64_t elements = 1;
  for (int64_t size : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(size))
      return false;
    elements *= size;
  }
  return op.getNumLoops() > 0 && elements > 0 && elements <= kMaxElements;
}

/// Ops that have no vector form stay; they become scalar loops later.
static void vectorizeOps(Operation *root, IRRewriter &rewriter) {
  SmallVector<linalg::LinalgOp> ops;
  root->walk([&](linalg::LinalgOp op) {
    if (op.hasPureTensorSemantics() && isSmallAndStatic(op))
      ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::VectorizationResult> result = linalg::vectorize(
        rewriter, op, /*inputVectorSizes=*/{}, /*inputScalableVecDims=*/{},
        /*vectorizeNDExtract=*/false, /*flatten1DDepthwiseConv=*/false,
        /*assumeDynamicDimsMatchVecSizes=*/false,
        /*createNamedContraction=*/true);
    if (succeeded(result))
      rewriter.replaceOp(op, result->replacements);
  }
}

/// Transfers of a tile straight from and to the whole tensor.
static LogicalResult foldSlices(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  vector::populateVectorTransferPermutationMapLoweringPatterns(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  tensor::populateFoldTensorSubsetIntoVectorTransferPatterns(patterns);
  vector::TransferReadOp::getCanonicalizationPatterns(patterns,
                                                      root->getContext());
  vector::TransferWriteOp::getCanonicalizationPatterns(patterns,
                                                       root->getContext());
  return applyPatternsGreedily(root, std::move(patterns));
}

/// Keeps a tile that every iteration reads and writes in registers. Innermost
/// loops only: a tensor that leaves a larger loop would be copied in it.
static void hoistTiles(Operation *root, IRRewriter &rewriter) {
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) {
    if (loop.getOps<LoopLikeOpInterface>().empty())
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    moveLoopInvariantCode(loop);
    hoistLoopInvariantSubsets(rewriter, loop);
  }
}

namespace {

struct VectorizeLinalgPass
    : gdn::impl::GdnVectorizeLinalgPassBase<VectorizeLinalgPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    vectorizeOps(getOperation(), rewriter);
    if (failed(foldSlices(getOperation())))
      return signalPassFailure();
    hoistTiles(getOperation(), rewriter);
    if (failed(foldSlices(getOperation())))
      return signalPassFailure();
  }
};

} // namespace
