//===- TileLinalg.cpp - linalg ops to tiles of vector registers -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNTILELINALGPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

// Chosen for 32 registers of 16 floats: 16 of them hold the result tile of a
// product.
static constexpr int64_t kProductRows = 8, kProductColumns = 32;
static constexpr int64_t kProductDepth = 1;
static constexpr int64_t kRowLength = 64;
// A transpose of 16 x 16 has its own sequence of shuffles.
static constexpr int64_t kTransposeSize = 16;
static constexpr int64_t kReductionLength = 256;

static int64_t largestDivisor(int64_t size, int64_t limit) {
  int64_t divisor = std::min(size, limit);
  while (divisor > 1 && size % divisor != 0)
    --divisor;
  return divisor;
}

/// True if an operand is read across the loop over its rows.
static bool isTransposing(linalg::LinalgOp op) {
  unsigned last = op.getNumLoops() - 1;
  return llvm::any_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    return map.isFunctionOfDim(last) && map.getNumResults() > 0 &&
           map.getResult(map.getNumResults() - 1) !=
               getAffineDimExpr(last, op.getContext());
  });
}

/// The largest tile of each loop.
static SmallVector<int64_t> tileLimits(linalg::LinalgOp op) {
  if (isa<linalg::MatmulOp>(op))
    return {kProductRows, kProductColumns, kProductDepth};
  int64_t loops = op.getNumLoops();
  SmallVector<int64_t> limits(loops, 1);
  if (loops == 0)
    return limits;
  if (op.getNumReductionLoops() > 0) {
    limits.back() = kReductionLength;
  } else if (loops > 1 && isTransposing(op)) {
    limits[loops - 1] = limits[loops - 2] = kTransposeSize;
  } else {
    limits.back() = kRowLength;
  }
  return limits;
}

/// Splits a parallel loop whose size has no divisor near its limit, so that
/// tiles stay long; the parts are appended to `parts`.
static void splitOddLoops(linalg::LinalgOp op, IRRewriter &rewriter,
                          SmallVectorImpl<linalg::LinalgOp> &parts) {
  SmallVector<int64_t> limits = tileLimits(op);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [loop, size] : llvm::enumerate(sizes)) {
    if (ShapedType::isDynamic(size) || size <= limits[loop] ||
        iterators[loop] != utils::IteratorType::parallel ||
        2 * largestDivisor(size, limits[loop]) > limits[loop])
      continue;
    int64_t point = size / limits[loop] * limits[loop];
    rewriter.setInsertionPoint(op);
    auto [first, second] =
        linalg::splitOp(rewriter, cast<TilingInterface>(op.getOperation()),
                        loop, rewriter.getIndexAttr(point));
    if (!first || !second)
      continue;
    splitOddLoops(cast<linalg::LinalgOp>(first.getOperation()), rewriter,
                  parts);
    splitOddLoops(cast<linalg::LinalgOp>(second.getOperation()), rewriter,
                  parts);
    return;
  }
  parts.push_back(op);
}

static SmallVector<OpFoldResult> tileSizes(linalg::LinalgOp op,
                                           IRRewriter &rewriter) {
  SmallVector<OpFoldResult> tiles;
  for (auto [size, limit] :
       llvm::zip(op.getStaticLoopRanges(), tileLimits(op))) {
    int64_t tile =
        ShapedType::isDynamic(size) ? 1 : largestDivisor(size, limit);
    // 0 means no loop.
    tiles.push_back(rewriter.getIndexAttr(tile == size ? 0 : tile));
  }
  return tiles;
}

static LogicalResult tileLoops(linalg::LinalgOp op,
                               ArrayRef<OpFoldResult> tiles,
                               IRRewriter &rewriter) {
  if (llvm::all_of(tiles,
                   [](OpFoldResult size) { return isZeroInteger(size); }))
    return success();
  scf::SCFTilingOptions options;
  options.setTileSizes(tiles);
  rewriter.setInsertionPoint(op);
  auto tiled = scf::tileUsingSCF(
      rewriter, cast<TilingInterface>(op.getOperation()), options);
  if (failed(tiled))
    return failure();
  rewriter.replaceOp(op, tiled->replacements);
  return success();
}

/// Tiles the parallel loops of a sum, with the fill of the accumulator inside,
/// then the summation: the accumulator stays in registers throughout.
static LogicalResult tileSum(linalg::LinalgOp op, IRRewriter &rewriter) {
  // Sums that share one fill would share, and so copy, a buffer.
  OpOperand &init = *op.getDpsInitOperand(0);
  if (auto fill = init.get().getDefiningOp<linalg::FillOp>()) {
    rewriter.setInsertionPoint(op);
    Operation *own = rewriter.clone(*fill);
    rewriter.modifyOpInPlace(op, [&] { init.set(own->getResult(0)); });
  }
  OpFoldResult untiled = rewriter.getIndexAttr(0);
  SmallVector<OpFoldResult> outer = tileSizes(op, rewriter);
  SmallVector<OpFoldResult> inner(outer.size(), untiled);
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if (type == utils::IteratorType::reduction)
      std::swap(inner[loop], outer[loop]);

  scf::SCFTileAndFuseOptions options;
  options.tilingOptions.setTileSizes(outer);
  options.setFusionControlFn(
      [](tensor::ExtractSliceOp, OpResult producer, bool isDestination)
          -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
        if (isDestination && isa<linalg::FillOp>(producer.getOwner()))
          return scf::SCFTileAndFuseOptions::ControlFnResult{};
        return std::nullopt;
      });
  rewriter.setInsertionPoint(op);
  auto fused = scf::tileConsumerAndFuseProducersUsingSCF(
      rewriter, cast<TilingInterface>(op.getOperation()), options);
  if (failed(fused))
    return failure();
  Operation *tiled = fused->tiledAndFusedOps.front();
  if (tiled != op) {
    for (OpResult result : op->getResults())
      rewriter.replaceAllUsesWith(result, fused->replacements.lookup(result));
    rewriter.eraseOp(op);
  }
  return tileLoops(cast<linalg::LinalgOp>(tiled), inner, rewriter);
}

static LogicalResult tile(linalg::LinalgOp op, IRRewriter &rewriter) {
  if (op.getNumReductionLoops() > 0)
    return tileSum(op, rewriter);
  return tileLoops(op, tileSizes(op, rewriter), rewriter);
}

/// Without the pass linalg-fold-unit-extent-dims: that would also make outputs
/// that are read inputs of their own, which then have to be copied.
static LogicalResult dropUnitLoops(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  linalg::ControlDropUnitDims options;
  options.rankReductionStrategy =
      linalg::ControlDropUnitDims::RankReductionStrategy::ExtractInsertSlice;
  linalg::populateFoldUnitExtentDimsPatterns(patterns, options);
  return applyPatternsGreedily(root, std::move(patterns));
}

namespace {

struct TileLinalgPass : gdn::impl::GdnTileLinalgPassBase<TileLinalgPass> {
  void runOnOperation() override {
    if (failed(dropUnitLoops(getOperation())))
      return signalPassFailure();
    SmallVector<linalg::LinalgOp> ops, sums, others;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureTensorSemantics())
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      splitOddLoops(op, rewriter,
                    op.getNumReductionLoops() > 0 ? sums : others);
    // Sums first: they take their fills into their loops.
    for (linalg::LinalgOp op : llvm::concat<linalg::LinalgOp>(sums, others)) {
      if (op->use_empty()) {
        rewriter.eraseOp(op);
        continue;
      }
      if (failed(tile(op, rewriter))) {
        op->emitOpError("could not be tiled");
        return signalPassFailure();
      }
    }
  }
};

} // namespace
