//===- ChunkPatterns.cpp - cumulative sums and inverses -------------------===//
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

/// Runs `body` in the threads below `count`; it returns values that are zero in
/// the other threads.
SmallVector<Value> inThreadsBelow(Emitter &e, int64_t count, int64_t numThreads,
                                  ArrayRef<Type> types,
                                  function_ref<SmallVector<Value>()> body) {
  if (count >= numThreads)
    return body();
  auto ifOp = scf::IfOp::create(e.builder, e.loc, types,
                                e.lessThanC(e.threadId(), count),
                                /*withElseRegion=*/!types.empty());
  OpBuilder::InsertionGuard insertion(e.builder);
  e.builder.setInsertionPointToStart(ifOp.thenBlock());
  SmallVector<Value> results = body();
  if (types.empty())
    return {};
  scf::YieldOp::create(e.builder, e.loc, results);
  e.builder.setInsertionPointToStart(ifOp.elseBlock());
  SmallVector<Value> zeros;
  for (Type type : types)
    zeros.push_back(e.zero(type));
  scf::YieldOp::create(e.builder, e.loc, zeros);
  return SmallVector<Value>(ifOp.getResults());
}

//===----------------------------------------------------------------------===//
// cumsum
//===----------------------------------------------------------------------===//

struct CumsumPattern : TilePattern<CumsumOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CumsumOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    Value base = adaptor.getTile().front();
    if (tile.getRank() == 1)
      inThreadsBelow(e, 32, kernel.getNumThreads(), {}, [&] {
        scanVector(e, base, tile.getDimSize(0));
        return SmallVector<Value>();
      });
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
    // With 16 elements the upper half-warp repeats the lower's work.
    if (count == 16) {
      lane = e.andC(lane, 15);
      address = e.advance(base, e.mulC(lane, sizeof(float)));
    }
    for (Value word : e.loadWords(address, perLane, Value()))
      values.push_back(e.bitcast(word, e.f32()));
    Value sum = perLane == 2 ? e.fadd(values[0], values[1]) : values[0];
    Value scan = sum;
    for (int64_t distance = 1; distance < count / perLane; distance *= 2) {
      Value before = NVVM::ShflOp::create(
          e.builder, e.loc, e.f32(), e.c32(-1), scan, e.c32(distance),
          e.c32(count == 16 ? 0x1000 : 0), NVVM::ShflKind::up, UnitAttr());
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
    e.storeWords(address, words, Value());
  }

  /// One thread per column.
  void scanColumns(Emitter &e, Value base, MemRefType tile) const {
    int64_t numRows = tile.getDimSize(0), numCols = tile.getDimSize(1);
    int64_t threads = kernel.getNumThreads();
    for (int64_t first = 0; first < numCols; first += threads)
      inThreadsBelow(e, numCols - first, threads, {}, [&] {
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
        return SmallVector<Value>();
      });
  }
};

//===----------------------------------------------------------------------===//
// tri_inverse
//===----------------------------------------------------------------------===//

/// Thread = column of the inverse, its entries in registers: forward
/// substitution x_i = delta_ij - sum_{k < i} L_ik x_k, four rows at a time so
/// that four chains run side by side. Rows of L are read by broadcast, four
/// entries at once.
struct TriInversePattern : TilePattern<TriInverseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(TriInverseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    Value base = adaptor.getTile().front();
    int64_t size = tile.getDimSize(0), threads = kernel.getNumThreads();
    SmallVector<SmallVector<Value>> columns;
    SmallVector<Type> types(size, e.f32());
    for (int64_t first = 0; first < size; first += threads)
      columns.push_back(inThreadsBelow(e, size - first, threads, types, [&] {
        return solveColumn(e, tile, base, e.addC(e.threadId(), first));
      }));
    e.barrier(); // all of L has been read
    for (auto [i, column] : llvm::enumerate(columns)) {
      int64_t first = i * threads;
      inThreadsBelow(e, size - first, threads, {}, [&, &column = column] {
        ThreadPart col{e.threadId(),
                       static_cast<int64_t>(llvm::PowerOf2Ceil(threads)) - 1};
        SharedAddress address(e, SharedLayout(tile), base, ThreadPart(), col);
        for (int64_t row = 0; row < size; ++row)
          e.storeF32(column[row], address.at(row, first));
        return SmallVector<Value>();
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static SmallVector<Value> solveColumn(Emitter &e, MemRefType tile, Value base,
                                        Value column) {
    constexpr int64_t block = 4;
    int64_t size = tile.getDimSize(0);
    SharedAddress address(e, SharedLayout(tile), base, ThreadPart(),
                          ThreadPart());
    auto loadNegated = [&](int64_t row, int64_t col) {
      SmallVector<Value> entries;
      for (Value word : e.loadWords(address.at(row, col), block, Value()))
        entries.push_back(
            LLVM::FNegOp::create(e.builder, e.loc, e.bitcast(word, e.f32())));
      return entries;
    };
    SmallVector<Value> x;
    for (int64_t row = 0; row < size; row += block) {
      SmallVector<Value> sums;
      for (int64_t i = 0; i < block; ++i)
        sums.push_back(
            e.select(e.equalsC(column, row + i), e.cF32(1.0), e.cF32(0.0)));
      for (int64_t k = 0; k < row; k += block)
        for (int64_t i = 0; i < block; ++i) {
          SmallVector<Value> entries = loadNegated(row + i, k);
          for (int64_t j = 0; j < block; ++j)
            sums[i] = e.fma(entries[j], x[k + j], sums[i]);
        }
      for (int64_t i = 0; i < block; ++i) {
        if (i > 0) {
          SmallVector<Value> entries = loadNegated(row + i, row);
          for (int64_t j = 0; j < i; ++j)
            sums[i] = e.fma(entries[j], x[row + j], sums[i]);
        }
        x.push_back(sums[i]);
      }
    }
    return x;
  }
};

} // namespace

void mlir::gdn::populateChunkPatterns(const KernelLowering &kernel,
                                      RewritePatternSet &patterns) {
  patterns.add<CumsumPattern, TriInversePattern>(kernel, patterns.getContext());
}
