//===- CumsumPatterns.cpp - cumulative sums of shared tiles ---------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

struct CumsumPattern : TilePattern<CumsumOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CumsumOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    Value base = adaptor.getTile().front();
    if (tile.getRank() == 1)
      e.inThreadsBelow(32, kernel.getThreads(e, op).count,
                       [&] { scanVector(e, base, tile.getDimSize(0)); });
    else
      scanColumns(e, base, tile);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// One warp; a lane has two neighbours if there are more than 32 elements.
  static void scanVector(Emitter &e, Value base, int64_t count) {
    int64_t perLane = count > 32 ? 2 : 1;
    Value lane = e.laneId();
    Value address = e.advance(base, e.mulC(lane, perLane * sizeof(float)));
    SmallVector<Value> values;
    // With 16 elements the upper half-warp adds zeros.
    Value owner = count == 16 ? e.lessThanC(lane, 16) : Value();
    for (Value word : e.loadWords(address, perLane, owner))
      values.push_back(e.bitcast(word, e.f32()));
    Value sum = perLane == 2 ? e.fadd(values[0], values[1]) : values[0];
    Value scan = sum;
    for (int64_t distance = 1; distance < count / perLane; distance *= 2) {
      Value before = NVVM::ShflOp::create(e.builder, e.loc, e.f32(), e.c32(-1),
                                          scan, e.c32(distance), e.c32(0),
                                          NVVM::ShflKind::up, UnitAttr());
      Value none = e.lessThanC(lane, distance);
      scan = e.select(none, scan, e.fadd(scan, before));
    }
    // scan - values[1] would round once more.
    if (perLane == 2) {
      Value before = NVVM::ShflOp::create(e.builder, e.loc, e.f32(), e.c32(-1),
                                          scan, e.c32(1), e.c32(0),
                                          NVVM::ShflKind::up, UnitAttr());
      Value first =
          e.select(e.equalsC(lane, 0), values[0], e.fadd(before, values[0]));
      values = {first, scan};
    } else {
      values = {scan};
    }
    SmallVector<Value> words;
    for (Value value : values)
      words.push_back(e.bitcast(value, e.i32()));
    e.storeWords(address, words, owner);
  }

  /// One thread per column.
  void scanColumns(Emitter &e, Value base, MemRefType tile) const {
    int64_t numRows = tile.getDimSize(0), numCols = tile.getDimSize(1);
    int64_t threads = kernel.getNumThreads();
    for (int64_t first = 0; first < numCols; first += threads)
      e.inThreadsBelow(numCols - first, threads, [&] {
        ThreadPart col{e.threadId(),
                       static_cast<int64_t>(llvm::PowerOf2Ceil(threads)) - 1};
        SharedAddress address(e, SharedLayout(tile), base, ThreadPart(), col);
        Value sum;
        for (int64_t row = 0; row < numRows; ++row) {
          Value pointer = address.at(row, first);
          Value value = e.loadF32(pointer);
          sum = sum ? e.fadd(sum, value) : value;
          e.storeF32(sum, pointer);
        }
      });
  }
};

} // namespace

void mlir::gdn::populateCumsumPatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<CumsumPattern>(kernel, patterns.getContext());
}
