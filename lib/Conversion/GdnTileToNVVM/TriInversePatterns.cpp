//===- TriInversePatterns.cpp - inverses of unit triangular tiles ---------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"
#include "MmaEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// In two levels: the inverses X of the diagonal blocks of h = 16 or 32 tokens
/// by forward substitution, a block per warp; then, for two blocks, the block
/// below the diagonal as -X1 (L10 X0) by products, of operands split in two
/// TF32 parts or, if the op is exact, in float32.
struct BlockSizes {
  explicit BlockSizes(int64_t size)
      : block(std::min<int64_t>(32, size > 16 ? size / 2 : 16)),
        count(size / block) {}
  int64_t block, count;
};

/// Forward substitution x_i = delta_ij - sum_{k < i} L_ik x_k in float32 for a
/// diagonal block; a lane, or two for 16 tokens, owns a column.
///
/// Rows are taken four at a time: four chains side by side, and 16-byte reads
/// of L. Block b of four entries of the column lies in lane b % parts of the
/// column's lanes, in its registers for slot b / parts. Each lane adds up the
/// products with its own entries, the lanes exchange the four sums, and each
/// of them finishes the block.
class ColumnSolver {
public:
  /// `origin` is the first row and column of the block.
  ColumnSolver(Emitter &emitter, MemRefType tile, Value base, int64_t size,
               ThreadPart origin);

  /// The lane's entries.
  SmallVector<Value> solve();
  void store(ValueRange entries);

private:
  static constexpr int64_t kBlock = 4;

  SmallVector<Value> loadRow(SharedAddress &address, int64_t row, int64_t col);
  SmallVector<Value> sumKnown(int64_t block);
  void finishBlock(int64_t block, SmallVector<Value> sums);
  /// Where the lane's part of slot 0 starts, as a tile row or column.
  ThreadPart getPartStart();

  Emitter &e;
  SharedLayout layout;
  Value base;
  int64_t size, parts;
  ThreadPart origin;
  Value part;   // null for zero
  Value column; // of this lane, in the block
  SmallVector<Value> x;
  std::optional<SharedAddress> own, broadcast;
};

ColumnSolver::ColumnSolver(Emitter &emitter, MemRefType tile, Value base,
                           int64_t size, ThreadPart origin)
    : e(emitter), layout(tile), base(base), size(size), parts(32 / size),
      origin(origin) {
  // LLVM would hoist the right-hand sides out of loops around the op: a
  // register each.
  Value lane = e.andC(e.opaqueThreadId(), 31);
  if (parts > 1)
    part = e.andC(lane, parts - 1);
  column = e.shrC(lane, llvm::Log2_64(parts));
  x.assign(size / parts, e.cF32(0.0));
}

ThreadPart ColumnSolver::getPartStart() {
  if (!part)
    return ThreadPart();
  return ThreadPart{part, parts - 1}.scale(e, kBlock);
}

SmallVector<Value> ColumnSolver::loadRow(SharedAddress &address, int64_t row,
                                         int64_t col) {
  SmallVector<Value> entries;
  for (Value word : e.loadWords(address.at(row, col), kBlock, Value()))
    entries.push_back(e.bitcast(word, e.f32()));
  return entries;
}
/// -sum_k L_ik x_k over the entries in front of the block, for its four rows,
/// plus the right-hand side.
SmallVector<Value> ColumnSolver::sumKnown(int64_t block) {
  SmallVector<Value> sums;
  for (int64_t i = 0; i < kBlock; ++i) {
    Value isOne = e.equalsC(column, block * kBlock + i);
    // The sums of the lanes are added up below, except those of no products.
    if (part && block > 0)
      isOne = e.both(isOne, e.equalsC(part, 0));
    sums.push_back(e.select(isOne, e.cF32(1.0), e.cF32(0.0)));
  }
  for (int64_t slot = 0; slot * parts < block; ++slot) {
    // Of the last slot only the lanes below hold entries in front of the block;
    // what the others would read may be anything.
    int64_t lanes = block - slot * parts;
    Value isKnown = lanes < parts ? e.lessThanC(part, lanes) : Value();
    for (int64_t i = 0; i < kBlock; ++i) {
      SmallVector<Value> entries =
          loadRow(*own, block * kBlock + i, slot * parts * kBlock);
      Value sum = sums[i];
      for (int64_t j = 0; j < kBlock; ++j) {
        Value negated =
            LLVM::FNegOp::create(e.builder, e.loc, x[slot * kBlock + j]);
        sum = e.fma(entries[j], negated, sum);
      }
      sums[i] = isKnown ? e.select(isKnown, sum, sums[i]) : sum;
    }
  }
  for (Value &sum : sums)
    for (int64_t lane = 1; lane < parts && block > 0; lane *= 2)
      sum = e.fadd(sum, e.shuffleXor(sum, lane));
  return sums;
}

void ColumnSolver::finishBlock(int64_t block, SmallVector<Value> sums) {
  for (int64_t i = 1; i < kBlock; ++i) {
    SmallVector<Value> entries =
        loadRow(*broadcast, block * kBlock + i, block * kBlock);
    for (int64_t j = 0; j < i; ++j)
      sums[i] = e.fma(entries[j],
                      LLVM::FNegOp::create(e.builder, e.loc, sums[j]), sums[i]);
  }
  int64_t slot = block / parts;
  Value isOwner = part ? e.equalsC(part, block % parts) : Value();
  for (int64_t i = 0; i < kBlock; ++i) {
    Value &entry = x[slot * kBlock + i];
    entry = isOwner ? e.select(isOwner, sums[i], entry) : sums[i];
  }
}

SmallVector<Value> ColumnSolver::solve() {
  own.emplace(e, layout, base, origin, getPartStart().add(e, origin));
  broadcast.emplace(e, layout, base, origin, origin);
  for (int64_t block = 0; block < size / kBlock; ++block)
    finishBlock(block, sumKnown(block));
  return x;
}

void ColumnSolver::store(ValueRange entries) {
  SharedAddress address(e, layout, base, getPartStart().add(e, origin),
                        ThreadPart{column, size - 1}.add(e, origin));
  for (auto [i, entry] : llvm::enumerate(entries)) {
    int64_t slot = i / kBlock;
    e.storeF32(entry, address.at(slot * parts * kBlock + i % kBlock, 0));
  }
}

/// The product of two blocks of a tile, spread over the warps in accumulators
/// of 16 rows and 8 columns.
class BlockProduct {
public:
  BlockProduct(Emitter &e, MemRefType tile, Value base, int64_t block,
               int64_t warps);

  /// The blocks are given by their first row and column.
  SmallVector<Value> multiply(std::pair<int64_t, int64_t> left,
                              std::pair<int64_t, int64_t> right);
  /// The same in float32.
  SmallVector<Value> multiplyExact(std::pair<int64_t, int64_t> left,
                                   std::pair<int64_t, int64_t> right);
  /// To the block below the diagonal.
  void store(ValueRange result, bool negate);
  int64_t getNumActiveWarps() const { return numTiles / perWarp; }

private:
  /// Row and column of a warp's tile t, from its first.
  std::pair<int64_t, int64_t> getPlace(int64_t t) const {
    return {t / perRow * 16, t % perRow * 8};
  }

  Emitter &e;
  SharedLayout layout;
  Value base;
  int64_t block, perRow, numTiles, perWarp;
  ThreadPart row, col; // of the warp's first tile
  ThreadPart group, inGroup;
};

BlockProduct::BlockProduct(Emitter &e, MemRefType tile, Value base,
                           int64_t block, int64_t warps)
    : e(e), layout(tile), base(base), block(block), perRow(block / 8),
      numTiles(block / 16 * perRow),
      perWarp(std::max<int64_t>(1, numTiles / warps)) {
  // Warps without a tile of their own repeat one and do not store it.
  Value first = e.mulC(e.andC(e.warpId(), numTiles / perWarp - 1), perWarp);
  if (numTiles > perWarp) {
    if (numTiles > perRow)
      row = ThreadPart{e.shrC(first, llvm::Log2_64(perRow)),
                       numTiles / perRow - 1}
                .scale(e, 16);
    if (perWarp < perRow)
      col = ThreadPart{e.andC(first, perRow - 1), perRow - 1}.scale(e, 8);
  }
  Value lane = e.laneId();
  group = {e.shrC(lane, 2), 7};
  inGroup = {e.andC(lane, 3), 3};
}

SmallVector<Value> BlockProduct::multiply(std::pair<int64_t, int64_t> left,
                                          std::pair<int64_t, int64_t> right) {
  SharedAddress a(e, layout, base, row.add(e, group), inGroup);
  SharedAddress b(e, layout, base, inGroup, col.add(e, group));
  SmallVector<Value> acc(4 * perWarp, e.cF32(0.0));
  for (int64_t k = 0; k < block; k += 8) {
    std::map<int64_t, FloatParts> rows, columns;
    for (int64_t t = 0; t < perWarp; ++t) {
      auto [i, j] = getPlace(t);
      if (!rows.count(i)) {
        SmallVector<Value> values;
        for (int64_t slot = 0; slot < 4; ++slot)
          values.push_back(e.loadF32(a.at(left.first + i + slot % 2 * 8,
                                          left.second + k + slot / 2 * 4)));
        rows[i] = splitOperand(e, values, /*passes=*/3);
      }
      if (!columns.count(j)) {
        SmallVector<Value> values;
        for (int64_t slot = 0; slot < 2; ++slot)
          values.push_back(
              e.loadF32(b.at(right.first + k + slot * 4, right.second + j)));
        columns[j] = splitOperand(e, values, /*passes=*/3);
      }
      emitFloatMma(e, /*passes=*/3, rows[i], columns[j],
                   MutableArrayRef(acc).slice(4 * t, 4));
    }
  }
  return acc;
}

SmallVector<Value>
BlockProduct::multiplyExact(std::pair<int64_t, int64_t> left,
                            std::pair<int64_t, int64_t> right) {
  constexpr int64_t vector = 4;
  SharedAddress a(e, layout, base, row.add(e, group), ThreadPart());
  SharedAddress b(e, layout, base, ThreadPart(),
                  col.add(e, inGroup.scale(e, 2)));
  auto load = [&](SharedAddress &address, int64_t i, int64_t j, int64_t count) {
    SmallVector<Value> values;
    for (Value word : e.loadWords(address.at(i, j), count, Value()))
      values.push_back(e.bitcast(word, e.f32()));
    return values;
  };
  SmallVector<Value> acc(4 * perWarp, e.cF32(0.0));
  for (int64_t t = 0; t < perWarp; ++t) {
    auto [i, j] = getPlace(t);
    for (int64_t k = 0; k < block; k += vector) {
      SmallVector<Value> rows[2];
      for (int64_t half : {0, 1})
        rows[half] =
            load(a, left.first + i + 8 * half, left.second + k, vector);
      for (int64_t step = 0; step < vector; ++step) {
        SmallVector<Value> columns =
            load(b, right.first + k + step, right.second + j, 2);
        for (int64_t slot = 0; slot < 4; ++slot) {
          Value &sum = acc[4 * t + slot];
          sum = e.fma(rows[slot / 2][step], columns[slot % 2], sum);
        }
      }
    }
  }
  return acc;
}

void BlockProduct::store(ValueRange result, bool negate) {
  SharedAddress address(e, layout, base, row.add(e, group),
                        col.add(e, inGroup.scale(e, 2)));
  for (int64_t t = 0; t < perWarp; ++t) {
    auto [i, j] = getPlace(t);
    for (int64_t half = 0; half < 2; ++half) {
      SmallVector<Value> words;
      for (Value value : result.slice(4 * t + 2 * half, 2)) {
        if (negate)
          value = LLVM::FNegOp::create(e.builder, e.loc, value);
        words.push_back(e.bitcast(value, e.i32()));
      }
      e.storeWords(address.at(block + i + 8 * half, j), words, Value());
    }
  }
}

struct TriInversePattern : TilePattern<TriInverseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(TriInverseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    Value base = adaptor.getTile().front();
    BlockSizes sizes(tile.getDimSize(0));
    invertDiagonal(e, tile, base, sizes);
    if (sizes.count == 2) {
      clearUpper(e, tile, base, sizes.block);
      e.barrier();
      int64_t h = sizes.block;
      BlockProduct product(e, tile, base, h, getNumWarps());
      replaceBelow(e, product, op.getExact(), /*left=*/{h, 0}, /*right=*/{0, 0},
                   /*negate=*/false);
      replaceBelow(e, product, op.getExact(), /*left=*/{h, h}, /*right=*/{h, 0},
                   /*negate=*/true);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  int64_t getNumWarps() const { return kernel.getNumThreads() / 32; }

  /// Each warp inverts the diagonal blocks warp, warp + warps, ...
  void invertDiagonal(Emitter &e, MemRefType tile, Value base,
                      BlockSizes sizes) const {
    int64_t warps = getNumWarps();
    for (int64_t first = 0; first < sizes.count; first += warps) {
      int64_t active = std::min(warps, sizes.count - first);
      e.inThreadsBelow(32 * active, kernel.getNumThreads(), [&] {
        ThreadPart origin;
        if (active > 1)
          origin = ThreadPart{e.andC(e.warpId(), 1), 1}.scale(e, sizes.block);
        if (first > 0)
          origin = ThreadPart{e.c32(first * sizes.block), first * sizes.block};
        ColumnSolver solver(e, tile, base, sizes.block, origin);
        SmallVector<Value> entries = solver.solve();
        // The other lanes have read the block.
        NVVM::SyncWarpOp::create(e.builder, e.loc, e.c32(-1));
        solver.store(entries);
      });
    }
  }

  /// Zeros right of the first diagonal block.
  void clearUpper(Emitter &e, MemRefType tile, Value base,
                  int64_t block) const {
    int64_t threads = kernel.getNumThreads(), vectors = block * block / 4;
    for (int64_t first = 0; first < vectors; first += threads)
      e.inThreadsBelow(vectors - first, threads, [&] {
        Value thread = e.addC(e.threadId(), first);
        int64_t perRow = block / 4;
        ThreadPart row{e.shrC(thread, llvm::Log2_64(perRow)), -1};
        ThreadPart col = ThreadPart{e.andC(thread, perRow - 1), perRow - 1};
        SharedAddress address(e, SharedLayout(tile), base, row,
                              col.scale(e, 4));
        Value zero = e.c32(0);
        e.storeWords(address.at(0, block), {zero, zero, zero, zero}, Value());
      });
  }

  /// Replaces the block below the diagonal by the product of two blocks, once
  /// all warps have read them.
  void replaceBelow(Emitter &e, BlockProduct &product, bool exact,
                    std::pair<int64_t, int64_t> left,
                    std::pair<int64_t, int64_t> right, bool negate) const {
    SmallVector<Value> result = exact ? product.multiplyExact(left, right)
                                      : product.multiply(left, right);
    e.barrier();
    e.inThreadsBelow(32 * product.getNumActiveWarps(), kernel.getNumThreads(),
                     [&] { product.store(result, negate); });
    e.barrier();
  }
};

} // namespace

void mlir::gdn::populateTriInversePatterns(const KernelLowering &kernel,
                                           RewritePatternSet &patterns) {
  patterns.add<TriInversePattern>(kernel, patterns.getContext());
}
