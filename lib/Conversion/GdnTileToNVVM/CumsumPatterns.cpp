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

/// A vector in shared memory by the lanes of one warp; a lane has two
/// neighbours if there are more than 32 elements. Of 16 elements the upper
/// half-warp holds zeros.
struct LaneVector {
  LaneVector(Emitter &e, int64_t count)
      : count(count), perLane(count > 32 ? 2 : 1), lane(e.laneId()),
        owner(count == 16 ? e.lessThanC(lane, 16) : Value()) {}

  Value addressIn(Emitter &e, Value base, int64_t first) const {
    Value address = e.advance(base, e.mulC(lane, perLane * sizeof(float)));
    return e.advance(address, first * sizeof(float));
  }
  SmallVector<Value> load(Emitter &e, Value base) const {
    SmallVector<Value> values;
    for (Value word : e.loadWords(addressIn(e, base, 0), perLane, owner))
      values.push_back(e.bitcast(word, e.f32()));
    return values;
  }
  /// Of a tile of rank 2; `column` is an i64.
  SmallVector<Value> loadColumn(Emitter &e, Value base, MemRefType type,
                                Value column) const {
    SmallVector<Value> values;
    for (int64_t i = 0; i < perLane; ++i) {
      Value row = LLVM::ZExtOp::create(e.builder, e.loc, e.i64(),
                                       e.addC(e.mulC(lane, perLane), i));
      Value pointer = getSharedElement(e, base, type, {row, column});
      for (Value word : e.loadWords(pointer, 1, owner))
        values.push_back(e.bitcast(word, e.f32()));
    }
    return values;
  }
  /// From element `first` on.
  void store(Emitter &e, ArrayRef<Value> values, Value base,
             int64_t first = 0) const {
    SmallVector<Value> words;
    for (Value value : values)
      words.push_back(e.bitcast(value, e.i32()));
    e.storeWords(addressIn(e, base, first), words, owner);
  }

  int64_t count, perLane;
  Value lane, owner;
};

struct CumsumPattern : TilePattern<CumsumOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CumsumOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    Value base = adaptor.getTile().front();
    if (tile.getRank() == 1)
      e.inThreadsBelow(32, kernel.getThreads(e, op).count, [&] {
        LaneVector lanes(e, tile.getDimSize(0));
        scanVector(e, lanes, base, loadSummands(e, op, adaptor, lanes));
      });
    else
      scanColumns(e, base, tile);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static SmallVector<Value> loadSummands(Emitter &e, CumsumOp op,
                                         Adaptor adaptor,
                                         const LaneVector &lanes) {
    if (!op.getSource())
      return lanes.load(e, adaptor.getTile().front());
    Value source = adaptor.getSource().front();
    SmallVector<Value> values;
    if (op.getColumn())
      values = lanes.loadColumn(e, source,
                                cast<MemRefType>(op.getSource().getType()),
                                adaptor.getColumn().front());
    else
      values = lanes.load(e, source);
    Value least = e.cF32(op.getLeast()->convertToDouble());
    Value factor = e.cF32(op.getFactor()->convertToDouble());
    for (Value &value : values) {
      value = LLVM::MaximumOp::create(e.builder, e.loc, value, least);
      // Rounded before it is added to others, in all forms of a kernel.
      value = LLVM::FMulOp::create(e.builder, e.loc, value, factor);
    }
    return values;
  }

  static void scanVector(Emitter &e, const LaneVector &lanes, Value base,
                         ArrayRef<Value> values) {
    int64_t perLane = lanes.perLane, count = lanes.count;
    Value lane = lanes.lane;
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
      lanes.store(e, {first, scan}, base);
    } else {
      lanes.store(e, {scan}, base);
    }
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

struct DecaysPattern : TilePattern<DecaysOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(DecaysOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    int64_t count = cast<MemRefType>(op.getSums().getType()).getDimSize(0);
    Value sums = adaptor.getSums().front(), rows = adaptor.getRows().front();
    Value scale = e.cF32(op.getScale().convertToDouble());
    e.inThreadsBelow(32, kernel.getThreads(e, op).count, [&] {
      LaneVector lanes(e, count);
      Value last = e.loadF32(e.advance(sums, (count - 1) * sizeof(float)));
      SmallVector<Value> grown, rest, scaled;
      for (Value sum : lanes.load(e, sums)) {
        grown.push_back(e.exp2(sum));
        rest.push_back(e.exp2(e.fsub(last, sum)));
        scaled.push_back(e.fmul(grown.back(), scale));
      }
      auto multiply = [&](MutableArrayRef<Value> values, ValueRange vector) {
        if (!vector.empty())
          for (auto [value, factor] :
               llvm::zip_equal(values, lanes.load(e, vector.front())))
            value = e.fmul(value, factor);
      };
      SmallVector<Value> beta = flatten(adaptor.getBeta()),
                         keys = flatten(adaptor.getKeys());
      multiply(rest, beta);
      multiply(rest, keys);
      multiply(grown, keys);
      multiply(scaled, flatten(adaptor.getQueries()));
      lanes.store(e, grown, rows);
      lanes.store(e, rest, rows, count);
      lanes.store(e, scaled, rows, 2 * count);
      if (!keys.empty())
        storeLast(e, lanes.lane, e.exp2(last), rows, 3 * count);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// One value in some elements from `first` on.
  static void storeLast(Emitter &e, Value lane, Value value, Value rows,
                        int64_t first) {
    Value address = e.advance(rows, e.mulC(lane, sizeof(float)));
    e.storeWords(e.advance(address, first * sizeof(float)),
                 {e.bitcast(value, e.i32())},
                 e.lessThanC(lane, DecaysOp::kLastSize));
  }
};

} // namespace

void mlir::gdn::populateCumsumPatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<CumsumPattern, DecaysPattern>(kernel, patterns.getContext());
}
