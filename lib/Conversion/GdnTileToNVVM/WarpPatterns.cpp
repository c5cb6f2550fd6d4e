//===- WarpPatterns.cpp - work of single warps ----------------------------===//
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

struct EachWarpPattern : TilePattern<EachWarpOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(EachWarpOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    int64_t warps = kernel.getNumWarps(op);
    Value warp = LLVM::ZExtOp::create(rewriter, e.loc, e.i64(),
                                      getFirstItem(e, op, warps));
    Value count = adaptor.getCount().front();
    TypeConverter::SignatureConversion signature(1);
    signature.addInputs(0, e.i64());
    Block *body = rewriter.applySignatureConversion(&op.getBody().front(),
                                                    signature, typeConverter);
    rewriter.eraseOp(body->getTerminator());
    // A loop would be one of a single iteration in most kernels, and LLVM
    // hoists out of loops whatever it can.
    if (kernel.getMaxItems(op) <= warps) {
      auto branch = scf::IfOp::create(rewriter, e.loc, e.lessThan(warp, count),
                                      /*withElseRegion=*/false);
      rewriter.inlineBlockBefore(body, branch.thenYield(), warp);
    } else {
      auto loop =
          scf::ForOp::create(rewriter, e.loc, warp, count, e.c64(warps));
      rewriter.inlineBlockBefore(body, loop.getBody()->getTerminator(),
                                 loop.getInductionVar());
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The first item of a warp. The warps of a block lie on different schedulers
  /// of the SM, in order: where some have less to do than others, blocks that
  /// run side by side must not all spare the same ones. Such blocks are about
  /// as many apart as there are SMs.
  Value getFirstItem(Emitter &e, Operation *op, int64_t warps) const {
    Value warp = kernel.getWarpId(e, op);
    bool isOwn = op->walk([](OwnRowsOp) {
                     return WalkResult::interrupt();
                   }).wasInterrupted();
    if (isOwn || warps == 1 || !llvm::isPowerOf2_64(warps))
      return warp;
    Value block = NVVM::BlockIdXOp::create(e.builder, e.loc, e.i32());
    return e.andC(e.add(warp, e.shrC(block, kSideBySide)), warps - 1);
  }

  /// log2 of the blocks between two that run on one SM.
  static constexpr int64_t kSideBySide = 7;
};

struct FreePattern : TilePattern<FreeOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(FreeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The registers of `b`, rows n and columns k, are those of the right operand
/// for its upper and its lower eight rows.
struct WarpMmaPattern : TilePattern<WarpMmaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WarpMmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SmallVector<Value> acc(8, e.cF32(0.0));
    if (op.getAcc())
      acc = SmallVector<Value>(adaptor.getAcc());
    auto a = cast<VectorType>(op.getA().getType());
    int64_t columns = a.getDimSize(1);
    if (op.getPrecision() == ProductPrecision::Exact) {
      emitExact(e, a.getElementType(), adaptor.getA(), adaptor.getB(), acc);
      rewriter.replaceOpWithMultiple(op, {acc});
      return success();
    }
    bool isTF32 = op.getPrecision() != ProductPrecision::BF16x3;
    int64_t passes = op.getPrecision() == ProductPrecision::TF32x3 ? 3 : 1;
    for (int64_t k = 0; k < columns; k += isTF32 ? 8 : 16)
      for (int64_t half : {0, 1}) {
        MutableArrayRef<Value> sums = MutableArrayRef(acc).slice(4 * half, 4);
        if (isTF32)
          emitTF32(e, passes, adaptor.getA().slice(k / 2, 4),
                   adaptor.getB().slice(k / 2 + 2 * half, 2), sums);
        else
          emitBF16(e, adaptor.getA().slice(k / 2, 8),
                   adaptor.getB().slice(k / 2, 8), half, sums);
      }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }

private:
  /// A register holds two columns of k: four of `b` are the lower and the upper
  /// eight columns of its upper and its lower eight rows.
  static void emitExact(Emitter &e, Type element, ValueRange a, ValueRange b,
                        MutableArrayRef<Value> acc) {
    auto type = element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
    auto operand = [&](Value pair) -> Value {
      return element.isBF16() ? e.bitcast(pair, e.i32()) : pair;
    };
    for (size_t k = 0; k < a.size(); k += 4)
      for (size_t half : {0, 1})
        emitMma(e, 16, type, llvm::map_to_vector(a.slice(k, 4), operand),
                {operand(b[k + half]), operand(b[k + half + 2])},
                acc.slice(4 * half, 4));
  }

  /// With permuted k: columns 2q and 2q + 1 serve as the k slots q and q + 4.
  static void emitTF32(Emitter &e, int64_t passes, ValueRange a, ValueRange b,
                       MutableArrayRef<Value> acc) {
    emitFloatMma(e, passes, splitOperand(e, {a[0], a[2], a[1], a[3]}, passes),
                 splitOperand(e, b, passes), acc);
  }

  static void emitBF16(Emitter &e, ValueRange a, ValueRange b, int64_t half,
                       MutableArrayRef<Value> acc) {
    int64_t row = 2 * half;
    emitBF16x3Mma(e, splitToBF16(e, a),
                  splitToBF16(e, {b[row], b[row + 1], b[row + 4], b[row + 5]}),
                  acc);
  }
};

struct OwnRowsPattern : TilePattern<OwnRowsOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(OwnRowsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ValueRange registers = adaptor.getValue();
    auto from = cast<VectorType>(op.getValue().getType());
    auto to = cast<VectorType>(op.getResult().getType());
    int64_t perColumn = registers.size(), columns = from.getDimSize(1);
    SmallVector<Value> own(
        registers.slice(perColumn * op.getColumn() / columns,
                        perColumn * to.getDimSize(1) / columns));
    rewriter.replaceOpWithMultiple(op, {own});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Blocks of matrices in panels
//===----------------------------------------------------------------------===//

/// Word p of a lane is its part of the p-th matrix of 8x8 of the block.
struct StoreBlockPattern : TilePattern<StoreBlockOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StoreBlockOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value block = getGlobalAddress(e, adaptor.getMemref().front(),
                                   cast<MemRefType>(op.getMemref().getType()),
                                   flatten(adaptor.getIndices()));
    constexpr int64_t wordBytes = 4, matrixBytes = 32 * wordBytes;
    Value own = e.advance(block, e.mulC(e.laneId(), wordBytes));
    for (auto [p, pair] : llvm::enumerate(adaptor.getValue()))
      e.storeWords(e.advance(own, p * matrixBytes), e.bitcast(pair, e.i32()),
                   Value());
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

struct AnyPattern : TilePattern<AnyOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AnyOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    FragmentLayout layout = kernel.getLayout(op.getValue().getType());
    ValueRange value = adaptor.getValue();
    if (!isFragment(op.getResult().getType())) {
      rewriter.replaceOp(op, vote(e, "any", e.builder.getI1Type(),
                                  disjoin(e, SmallVector<Value>(value))));
      return success();
    }
    int64_t rowBits = 0;
    for (const ThreadTerm &term : layout.getRowTerms())
      rowBits |= (term.mask << term.shift) & 31;
    // Those of the lanes that hold the column of lane 0.
    int64_t first = 0;
    for (int64_t lane = 0; lane < 32; ++lane)
      if ((lane & ~rowBits) == 0)
        first |= int64_t(1) << lane;
    Value own = LLVM::ShlOp::create(rewriter, e.loc, e.c32(first),
                                    e.andC(e.laneId(), ~rowBits & 31));
    SmallVector<Value> results;
    for (size_t c = 0; c < layout.getColOffsets().size(); ++c) {
      SmallVector<Value> rows;
      for (size_t r = 0; r < layout.getRowOffsets().size(); ++r)
        rows.push_back(value[layout.getRegister(r, c)]);
      Value lanes = vote(e, "ballot", e.i32(), disjoin(e, rows));
      lanes = LLVM::AndOp::create(rewriter, e.loc, lanes, own);
      results.push_back(LLVM::ICmpOp::create(
          rewriter, e.loc, LLVM::ICmpPredicate::ne, lanes, e.c32(0)));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value disjoin(Emitter &e, ArrayRef<Value> conditions) {
    Value any = conditions.front();
    for (Value condition : conditions.drop_front())
      any = LLVM::OrOp::create(e.builder, e.loc, any, condition);
    return any;
  }

  static Value vote(Emitter &e, StringRef kind, Type type, Value condition) {
    return e.intrinsic(("llvm.nvvm.vote." + kind + ".sync").str(), type,
                       {e.c32(-1), condition});
  }
};

//===----------------------------------------------------------------------===//
// Inverses of diagonal blocks
//===----------------------------------------------------------------------===//

/// Forward substitution in float32, eight lanes for a block: lane c owns the
/// columns c and c + 8, of which the second has zeros in its upper half. Rows
/// are taken four at a time: four chains side by side, and 16-byte reads of the
/// rows of M, the same for all lanes of a block.
class BlockSolver {
public:
  BlockSolver(Emitter &e, BlockInverseOp op, Value products, Value scale,
              Value out, int64_t blocks);
  void emit();

private:
  static constexpr int64_t kRows = 4, kHalf = 8, kSize = 16;

  SmallVector<Value> load(SharedAddress &address, int64_t row, int64_t col);
  /// Rows 4 * group to 4 * group + 3 of column c + 8 * half.
  void solveRows(int64_t group, int64_t half, ArrayRef<SmallVector<Value>> rows,
                 ValueRange scales);

  Emitter &e;
  Value column;
  ThreadPart block;
  SharedAddress products, scale, out;
  /// Rows of the columns, and those times their scale.
  SmallVector<Value> x[2], scaled[2];
};

BlockSolver::BlockSolver(Emitter &e, BlockInverseOp op, Value products,
                         Value scale, Value out, int64_t blocks)
    : e(e), column(e.andC(e.laneId(), kHalf - 1)),
      block(blocks == 1 ? ThreadPart()
                        : ThreadPart{e.andC(e.shrC(e.laneId(), 3), blocks - 1),
                                     blocks - 1}
                              .scale(e, kSize)),
      products(e, SharedLayout(cast<MemRefType>(op.getProducts().getType())),
               products, block, block),
      scale(e, SharedLayout(cast<MemRefType>(op.getScale().getType())), scale,
            ThreadPart(), block),
      out(e, SharedLayout(cast<MemRefType>(op.getOut().getType())), out,
          block.add(e, ThreadPart{column, kHalf - 1}), ThreadPart()) {}

SmallVector<Value> BlockSolver::load(SharedAddress &address, int64_t row,
                                     int64_t col) {
  SmallVector<Value> values;
  for (Value word : e.loadWords(address.at(row, col), kRows, Value()))
    values.push_back(e.bitcast(word, e.f32()));
  return values;
}

void BlockSolver::solveRows(int64_t group, int64_t half,
                            ArrayRef<SmallVector<Value>> rows,
                            ValueRange scales) {
  int64_t first = half * kHalf;
  for (int64_t r = 0; r < kRows; ++r) {
    int64_t i = group * kRows + r;
    Value isOne = e.equalsC(column, i - first);
    Value unit = e.select(isOne, e.cF32(1.0), e.cF32(0.0));
    Value sum;
    for (int64_t k = first; k < i; ++k) {
      Value entry = rows[r][k];
      sum = sum ? e.fma(entry, scaled[half][k - first], sum)
                : e.fmul(entry, scaled[half][k - first]);
    }
    x[half].push_back(sum ? e.fsub(unit, sum) : unit);
    scaled[half].push_back(e.fmul(scales[r], x[half].back()));
  }
}

void BlockSolver::emit() {
  for (int64_t group = 0; group < kSize / kRows; ++group) {
    SmallVector<Value> scales = load(scale, 0, group * kRows);
    SmallVector<SmallVector<Value>> rows(kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t k = 0; k < group * kRows + r; k += kRows)
        llvm::append_range(rows[r], load(products, group * kRows + r, k));
    solveRows(group, 0, rows, scales);
    if (group * kRows >= kHalf)
      solveRows(group, 1, rows, scales);
  }
  for (int64_t half : {0, 1})
    for (int64_t i = 0; i < kSize; i += kRows) {
      SmallVector<Value> words;
      for (int64_t r = i; r < i + kRows; ++r)
        words.push_back(r < half * kHalf
                            ? e.c32(0)
                            : e.bitcast(x[half][r - half * kHalf], e.i32()));
      e.storeWords(out.at(half * kHalf, i), words, Value());
    }
}

struct BlockInversePattern : TilePattern<BlockInverseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(BlockInverseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto scale = cast<MemRefType>(op.getScale().getType());
    int64_t blocks = scale.getDimSize(0) / 16;
    auto solve = [&] {
      BlockSolver(e, op, adaptor.getProducts().front(),
                  adaptor.getScale().front(), adaptor.getOut().front(), blocks)
          .emit();
    };
    ThreadSet threads = kernel.getThreads(e, op);
    if (blocks * 8 == threads.count) {
      solve();
    } else {
      auto branch = scf::IfOp::create(rewriter, e.loc,
                                      e.lessThanC(threads.id, blocks * 8),
                                      /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      solve();
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mlir::gdn::populateWarpPatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns) {
  patterns.add<EachWarpPattern, FreePattern, WarpMmaPattern, OwnRowsPattern,
               StoreBlockPattern, AnyPattern, BlockInversePattern>(
      kernel, patterns.getContext());
}
