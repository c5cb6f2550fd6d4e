//===- TriInversePatterns.cpp - inverses of unit triangular tiles ---------===//
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

/// Forward substitution x_i = delta_ij - sum_{k < i} L_ik x_k in float32, one
/// column of the inverse at a time per `parts` neighbouring lanes.
///
/// Rows are taken four at a time: four chains side by side, and 16-byte reads
/// of L. Block b of four entries of the column lies in lane b % parts of the
/// column's lanes, in its registers for slot b / parts. Each lane adds up the
/// products with its own entries, the lanes exchange the four sums, and each
/// of them finishes the block.
class ColumnSolver {
public:
  ColumnSolver(Emitter &emitter, MemRefType tile, Value base, int64_t parts,
               int64_t firstColumn);

  void solve();
  void store();
  /// The registers, so that they can leave a region.
  SmallVector<Value> &getEntries() { return x; }

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
  Value part;   // null for zero
  Value column; // of this thread
  SmallVector<Value> x;
  std::optional<SharedAddress> own, broadcast;
};

ColumnSolver::ColumnSolver(Emitter &emitter, MemRefType tile, Value base,
                           int64_t parts, int64_t firstColumn)
    : e(emitter), layout(tile), base(base), size(tile.getDimSize(0)),
      parts(parts) {
  // LLVM would hoist the right-hand sides out of the loop over the heads: a
  // register each.
  Value thread = e.opaqueThreadId();
  if (parts > 1)
    part = e.andC(thread, parts - 1);
  column = e.addC(e.shrC(thread, llvm::Log2_64(parts)), firstColumn);
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

void ColumnSolver::solve() {
  own.emplace(e, layout, base, ThreadPart(), getPartStart());
  broadcast.emplace(e, layout, base, ThreadPart(), ThreadPart());
  for (int64_t block = 0; block < size / kBlock; ++block) {
    finishBlock(block, sumKnown(block));
  }
}

void ColumnSolver::store() {
  int64_t bits = llvm::PowerOf2Ceil(size) - 1;
  SharedAddress address(e, layout, base, getPartStart(), {column, bits});
  for (auto [i, entry] : llvm::enumerate(x)) {
    int64_t slot = i / kBlock;
    e.storeF32(entry, address.at(slot * parts * kBlock + i % kBlock, 0));
  }
}

struct TriInversePattern : TilePattern<TriInverseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(TriInverseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    int64_t size = tile.getDimSize(0), threads = kernel.getNumThreads();
    // As many lanes per column as there are threads, up to one per block of
    // four entries.
    int64_t parts = llvm::bit_floor(static_cast<uint64_t>(
        std::clamp<int64_t>(threads / size, 1, size / 4)));
    SmallVector<SmallVector<Value>> columns;
    for (int64_t first = 0; first < size; first += threads)
      columns.push_back(
          solve(e, tile, adaptor.getTile().front(), parts, first));
    e.barrier(); // all of L has been read
    for (int64_t first = 0; first < size; first += threads)
      e.inThreadsBelow((size - first) * parts, threads, [&] {
        ColumnSolver solver(e, tile, adaptor.getTile().front(), parts, first);
        solver.getEntries() = columns[first / threads];
        solver.store();
      });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The entries that each thread holds; zeros in threads without a column.
  SmallVector<Value> solve(Emitter &e, MemRefType tile, Value base,
                           int64_t parts, int64_t first) const {
    auto emit = [&] {
      ColumnSolver solver(e, tile, base, parts, first);
      solver.solve();
      return solver.getEntries();
    };
    int64_t size = tile.getDimSize(0), threads = kernel.getNumThreads();
    int64_t needed = (size - first) * parts;
    if (needed >= threads)
      return emit();
    SmallVector<Type> types(size / parts, e.f32());
    auto ifOp = scf::IfOp::create(e.builder, e.loc, types,
                                  e.lessThanC(e.threadId(), needed),
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard insertion(e.builder);
    e.builder.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(e.builder, e.loc, emit());
    e.builder.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(e.builder, e.loc,
                         SmallVector<Value>(types.size(), e.cF32(0.0)));
    return SmallVector<Value>(ifOp.getResults());
  }
};

} // namespace

void mlir::gdn::populateTriInversePatterns(const KernelLowering &kernel,
                                           RewritePatternSet &patterns) {
  patterns.add<TriInversePattern>(kernel, patterns.getContext());
}
