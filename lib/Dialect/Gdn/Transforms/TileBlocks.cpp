//===- TileBlocks.cpp - loop over sequences, heads, value blocks ----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNTILEBLOCKSPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

static LogicalResult tileBlocks(RecurrenceOp op, IRRewriter &rewriter,
                                int64_t valueBlock) {
  rewriter.setInsertionPoint(op);
  OpFoldResult one = rewriter.getIndexAttr(1),
               untiled = rewriter.getIndexAttr(0);
  scf::SCFTilingOptions options;
  options.setTileSizes({one, one, rewriter.getIndexAttr(valueBlock), untiled});
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, cast<TilingInterface>(*op), options);
  if (failed(tiled))
    return op.emitOpError("could not be tiled by blocks");
  rewriter.replaceOp(op, tiled->replacements);
  return success();
}

/// Replaces `op` by two: value channels [0, split) and the rest.
static FailureOr<std::pair<RecurrenceOp, RecurrenceOp>>
splitValues(RecurrenceOp op, IRRewriter &rewriter, int64_t split) {
  rewriter.setInsertionPoint(op);
  RecurrenceOp parts[2];
  SmallVector<Value> results(op.getDpsInits());
  int64_t bounds[] = {0, split, op.getValueSize()};
  for (int part = 0; part < 2; ++part) {
    SmallVector<OpFoldResult> offsets, sizes;
    for (Range range : op.getIterationDomain(rewriter)) {
      offsets.push_back(range.offset);
      sizes.push_back(range.size);
    }
    offsets[2] = rewriter.getIndexAttr(bounds[part]);
    sizes[2] = rewriter.getIndexAttr(bounds[part + 1] - bounds[part]);
    FailureOr<TilingResult> tiled =
        op.getTiledImplementation(rewriter, offsets, sizes);
    if (failed(tiled))
      return failure();
    parts[part] = cast<RecurrenceOp>(tiled->tiledOps.front());
    for (size_t result = 0; result < results.size(); ++result) {
      SmallVector<OpFoldResult> position, shape;
      if (failed(op.getResultTilePosition(rewriter, result, offsets, sizes,
                                          position, shape)))
        return failure();
      SmallVector<OpFoldResult> strides(shape.size(), rewriter.getIndexAttr(1));
      results[result] = tensor::InsertSliceOp::create(
          rewriter, op.getLoc(), tiled->tiledValues[result], results[result],
          position, shape, strides);
    }
    // The second part continues in the destinations of the first; slices of the
    // original ones would have to be copied.
    op.getDpsInitsMutable().assign(results);
  }
  rewriter.replaceOp(op, results);
  return std::make_pair(parts[0], parts[1]);
}

static LogicalResult tile(RecurrenceOp op, IRRewriter &rewriter) {
  if (!op.isScheduled())
    return op.emitOpError("has no schedule; run gdn-select-schedule first");
  if (!op.hasPureTensorSemantics())
    return op.emitOpError("can be tiled on tensors only");
  int64_t values = op.getValueSize();
  int64_t block = std::min(op.getSchedule()->getValueBlock(), values);
  int64_t rest = values % block;
  if (rest == 0)
    return tileBlocks(op, rewriter, block);
  auto parts = splitValues(op, rewriter, values - rest);
  if (failed(parts) || failed(tileBlocks(parts->first, rewriter, block)))
    return failure();
  return tileBlocks(parts->second, rewriter, rest);
}

namespace {

struct TileBlocksPass : gdn::impl::GdnTileBlocksPassBase<TileBlocksPass> {
  void runOnOperation() override {
    SmallVector<RecurrenceOp> ops;
    getOperation()->walk([&](RecurrenceOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (RecurrenceOp op : ops)
      if (failed(tile(op, rewriter)))
        return signalPassFailure();
  }
};

} // namespace
