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
#include "mlir/IR/Matchers.h"

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

// As what lies above the diagonal of a triangle.
bool isZero(Value value) { return matchPattern(value, m_AnyZeroFloat()); }

/// The registers of `b`, rows n and columns k, are those of the right operand
/// for its upper and its lower eight rows. Products with columns of `b` that
/// are known to be zero are left out.
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
        ValueRange right = adaptor.getB().slice(k / 2 + 2 * half, 2);
        if (isTF32 && llvm::all_of(right, isZero))
          continue;
        if (isTF32)
          emitTF32Mma(e, passes, adaptor.getA().slice(k / 2, 4), right, sums);
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

  static void emitBF16(Emitter &e, ValueRange a, ValueRange b, int64_t half,
                       MutableArrayRef<Value> acc) {
    int64_t row = 2 * half;
    SmallVector<Value> right = {b[row], b[row + 1]};
    bool isShort = isZero(b[row + 4]) && isZero(b[row + 5]);
    if (!isShort)
      right.append({b[row + 4], b[row + 5]});
    emitBF16x3Mma(e, splitToBF16(e, isShort ? a.take_front(4) : a),
                  splitToBF16(e, right), acc);
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

/// The words of a lane: word p is its part of the p-th matrix of 8x8 of a
/// block, of which the first is not there on the diagonal. Pair by pair they
/// are those of columns k below 8 and of the others.
class BlockWords {
public:
  template <typename OpT, typename AdaptorT>
  BlockWords(Emitter &e, OpT op, AdaptorT adaptor)
      : first(op.getDiagonal()), e(e) {
    Value block = getGlobalAddress(e, adaptor.getMemref().front(),
                                   cast<MemRefType>(op.getMemref().getType()),
                                   flatten(adaptor.getIndices()));
    own = e.advance(block, e.mulC(e.laneId(), kWordBytes));
  }
  Value at(int64_t p) { return e.advance(own, (p - first) * 32 * kWordBytes); }
  /// The pair of the fragment in word p.
  static int64_t getPair(int64_t p) { return p ^ 1; }

  static constexpr int64_t kCount = 4;
  const int64_t first;

private:
  static constexpr int64_t kWordBytes = 4;
  Emitter &e;
  Value own;
};

struct StoreBlockPattern : TilePattern<StoreBlockOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StoreBlockOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    BlockWords words(e, op, adaptor);
    for (int64_t p = words.first; p < BlockWords::kCount; ++p)
      e.storeWords(
          words.at(p),
          e.bitcast(adaptor.getValue()[BlockWords::getPair(p)], e.i32()),
          Value(), /*streaming=*/true);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LoadBlockPattern : TilePattern<LoadBlockOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(LoadBlockOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    BlockWords words(e, op, adaptor);
    Type element = cast<VectorType>(op.getValue().getType()).getElementType();
    SmallVector<Value> pairs(BlockWords::kCount);
    for (int64_t p = 0; p < BlockWords::kCount; ++p) {
      Value word = p < words.first
                       ? e.c32(0)
                       : e.loadWords(words.at(p), 1, Value()).front();
      pairs[BlockWords::getPair(p)] =
          e.bitcast(word, VectorType::get(2, element));
    }
    rewriter.replaceOpWithMultiple(op, {pairs});
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

/// In two levels. The 8x8 blocks on the diagonal by forward substitution in
/// float32, four lanes for a block: lane c owns the columns c and c + 4, of
/// which the second has zeros in its upper half. Rows are taken four at a time:
/// four chains side by side, and 16-byte reads of the rows of M, the same for
/// all lanes of a block. Then, with A and C the inverses of two such blocks and
/// B what M has below the first, the transpose of the block between them,
///
///   R^T = -(A^T diag(s) B^T) C^T,
///
/// by tensor cores: A^T and the product before are left
/// operands as they are, and R^T is part of the result as it is. The eight rows
/// that a left operand has left over are those of the next block.
class BlockSolver {
public:
  BlockSolver(Emitter &e, BlockInverseOp op, Value products, Value scale,
              Value scratch);
  /// The registers of the op's results.
  SmallVector<SmallVector<Value>> emit();

private:
  static constexpr int64_t kRows = 4, kHalf = 4, kSize = 8;

  SmallVector<Value> load(SharedAddress &address, int64_t row, int64_t col,
                          int64_t count);
  void substitute();
  /// Rows 4 * group to 4 * group + 3 of column c + 4 * half.
  void solveRows(int64_t group, int64_t half, ArrayRef<SmallVector<Value>> rows,
                 ValueRange scales);
  void storeColumns();
  SmallVector<SmallVector<Value>>
  solveBetween(int64_t first, ArrayRef<SmallVector<Value>> upper,
               ArrayRef<SmallVector<Value>> lower);
  SmallVector<SmallVector<Value>> multiply(ArrayRef<SmallVector<Value>> a,
                                           ArrayRef<SmallVector<Value>> b);

  // Elements of 8x8 blocks in the scratch tile. Columns lie one after the
  // other, but with the pairs of the second four swapped, and in every second
  // block with its halves swapped: so neither the stores of columns nor the
  // loads below meet a bank twice.
  Value wordAt(Value bytes, int64_t number) {
    return e.advance(e.advance(scratch, e.xorC(bytes, number % 2 * kHalf * 4)),
                     number * kSize * kSize * 4);
  }
  /// Elements (2q, g) and (2q + 1, g) of lane 4g + q: two of the transpose.
  SmallVector<Value> loadTransposed(int64_t number);
  /// Elements (g, 2q) and (g, 2q + 1).
  SmallVector<Value> loadPlain(int64_t number);

  Emitter &e;
  bool isTF32;
  Value scratch;
  int64_t halves;
  Value column;
  ThreadPart half;
  SharedAddress products, scale, fragments, factors;
  /// Bytes in front of the words of `loadTransposed` and of the first one of
  /// `loadPlain` in an even block.
  Value pair, single;
  /// Rows of the columns, and those times their negated scale.
  SmallVector<Value> x[2], scaled[2];
};

ThreadPart getLanePart(Emitter &e, int64_t shift, int64_t count,
                       int64_t scale) {
  if (count == 1)
    return {};
  return ThreadPart{e.andC(e.shrC(e.laneId(), shift), count - 1), count - 1}
      .scale(e, scale);
}

BlockSolver::BlockSolver(Emitter &e, BlockInverseOp op, Value products,
                         Value scale, Value scratch)
    : e(e), isTF32(op.getPrecision() == ProductPrecision::TF32),
      scratch(scratch),
      halves(cast<MemRefType>(op.getScale().getType()).getDimSize(0) / kSize),
      column(e.andC(e.laneId(), kHalf - 1)),
      half(getLanePart(e, 2, halves, kSize)),
      products(e, SharedLayout(cast<MemRefType>(op.getProducts().getType())),
               products, half, half),
      scale(e, SharedLayout(cast<MemRefType>(op.getScale().getType())), scale,
            ThreadPart(), half),
      fragments(e, SharedLayout(cast<MemRefType>(op.getProducts().getType())),
                products, getLanePart(e, 2, 8, 1), getLanePart(e, 0, 4, 2)),
      factors(e, SharedLayout(cast<MemRefType>(op.getScale().getType())), scale,
              ThreadPart(), getLanePart(e, 0, 4, 2)) {
  Value lane = e.laneId(), upper = e.andC(e.shrC(lane, 1), 8);
  pair = LLVM::XOrOp::create(e.builder, e.loc, e.shlC(lane, 1), upper);
  pair = e.shlC(pair, 2);
  single = e.add(e.shlC(column, 4),
                 e.add(e.andC(e.shlC(lane, 2), 8), e.shrC(lane, 2)));
  single = e.shlC(single, 2);
}

SmallVector<Value> BlockSolver::load(SharedAddress &address, int64_t row,
                                     int64_t col, int64_t count) {
  SmallVector<Value> values;
  for (Value word : e.loadWords(address.at(row, col), count, Value()))
    values.push_back(e.bitcast(word, e.f32()));
  return values;
}

SmallVector<Value> BlockSolver::loadTransposed(int64_t number) {
  SmallVector<Value> values;
  for (Value word : e.loadWords(wordAt(pair, number), 2, Value()))
    values.push_back(e.bitcast(word, e.f32()));
  return values;
}

SmallVector<Value> BlockSolver::loadPlain(int64_t number) {
  return {e.loadF32(wordAt(single, number)),
          e.loadF32(wordAt(e.xorC(single, kSize * 4), number))};
}

void BlockSolver::solveRows(int64_t group, int64_t half,
                            ArrayRef<SmallVector<Value>> rows,
                            ValueRange scales) {
  int64_t first = half * kHalf;
  for (int64_t r = 0; r < kRows; ++r) {
    int64_t i = group * kRows + r;
    Value isOne = e.equalsC(column, i - first);
    Value sum = e.select(isOne, e.cF32(1.0), e.cF32(0.0));
    for (int64_t k = first; k < i; ++k)
      sum = e.fma(rows[r][k], scaled[half][k - first], sum);
    x[half].push_back(sum);
    scaled[half].push_back(
        e.fmul(LLVM::FNegOp::create(e.builder, e.loc, scales[r]), sum));
  }
}

void BlockSolver::substitute() {
  for (int64_t group = 0; group < kSize / kRows; ++group) {
    SmallVector<Value> scales = load(scale, 0, group * kRows, kRows);
    SmallVector<SmallVector<Value>> rows(kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t k = 0; k < group * kRows + r; k += kRows)
        llvm::append_range(rows[r],
                           load(products, group * kRows + r, k, kRows));
    solveRows(group, 0, rows, scales);
    if (group * kRows >= kHalf)
      solveRows(group, 1, rows, scales);
  }
}

void BlockSolver::storeColumns() {
  // With fewer blocks the lanes behind compute the same.
  Value isOwn =
      halves * kHalf < 32 ? e.lessThanC(e.laneId(), halves * kHalf) : Value();
  // Of column c; `half` counts tokens.
  Value number = e.shrC(half.value, 3);
  Value first = e.add(e.shlC(number, 6), e.shlC(column, 3));
  first = e.add(first, e.shlC(e.andC(number, 1), 2));
  for (int64_t h : {0, 1})
    for (int64_t i = 0; i < kSize; i += kRows) {
      SmallVector<Value> words;
      for (int64_t r = i; r < i + kRows; ++r)
        words.push_back(
            r < h * kHalf ? e.c32(0) : e.bitcast(x[h][r - h * kHalf], e.i32()));
      Value word = e.addC(e.xorC(first, h * kSize + i), h * kHalf * kSize);
      e.storeWords(e.advance(scratch, e.shlC(word, 2)), words, isOwn);
    }
}

// The first eight rows of `a` times the first of `b`, the second times the
// second.
SmallVector<SmallVector<Value>>
BlockSolver::multiply(ArrayRef<SmallVector<Value>> a,
                      ArrayRef<SmallVector<Value>> b) {
  SmallVector<Value> left(a.front());
  llvm::append_range(left, a.back());
  SmallVector<SmallVector<Value>> results;
  for (auto [i, right] : llvm::enumerate(b)) {
    SmallVector<Value> sums(4, e.cF32(0.0));
    if (isTF32)
      emitTF32Mma(e, /*passes=*/1, left, right, sums);
    else
      emitBF16x3Mma(e, splitToBF16(e, left), splitToBF16(e, right), sums);
    results.push_back({sums[2 * i], sums[2 * i + 1]});
  }
  return results;
}

// R^T of the blocks from `first` on, one or two.
SmallVector<SmallVector<Value>>
BlockSolver::solveBetween(int64_t first, ArrayRef<SmallVector<Value>> upper,
                          ArrayRef<SmallVector<Value>> lower) {
  SmallVector<SmallVector<Value>> right;
  for (int64_t b = first, end = first + upper.size(); b < end; ++b) {
    SmallVector<Value> values =
        load(fragments, 16 * b + kSize, 16 * b, /*count=*/2);
    for (auto [value, factor] :
         llvm::zip_equal(values, load(factors, 0, 16 * b, /*count=*/2)))
      value = e.fmul(value, LLVM::FNegOp::create(e.builder, e.loc, factor));
    right.push_back(values);
  }
  return multiply(multiply(upper, right), lower);
}

SmallVector<SmallVector<Value>> BlockSolver::emit() {
  auto sync = [&] { NVVM::SyncWarpOp::create(e.builder, e.loc, e.c32(-1)); };
  auto join = [](ArrayRef<SmallVector<Value>> parts) {
    SmallVector<Value> all;
    for (const SmallVector<Value> &part : parts)
      llvm::append_range(all, part);
    return all;
  };
  substitute();
  storeColumns();
  sync();
  SmallVector<SmallVector<Value>> results, lowers;
  SmallVector<Value> zeros(2, e.cF32(0.0));
  int64_t blocks = halves / 2;
  for (int64_t first = 0; first < blocks; first += 2) {
    SmallVector<SmallVector<Value>> upper, lower;
    for (int64_t b = first; b < std::min(first + 2, blocks); ++b) {
      upper.push_back(loadTransposed(2 * b));
      lower.push_back(loadPlain(2 * b + 1));
    }
    for (auto [i, between] :
         llvm::enumerate(solveBetween(first, upper, lower))) {
      int64_t b = first + i;
      SmallVector<Value> words;
      for (Value value : between)
        words.push_back(e.bitcast(value, e.i32()));
      e.storeWords(wordAt(pair, halves + b), words, Value());
      results.push_back(
          join({upper[i], zeros, between, loadTransposed(2 * b + 1)}));
    }
    llvm::append_range(lowers, lower);
  }
  sync();
  for (int64_t b = 0; b < blocks; ++b)
    results.push_back(
        join({loadPlain(2 * b), loadPlain(halves + b), zeros, lowers[b]}));
  return results;
}

struct BlockInversePattern : TilePattern<BlockInverseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(BlockInverseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    BlockSolver solver(e, op, adaptor.getProducts().front(),
                       adaptor.getScale().front(),
                       adaptor.getScratch().front());
    rewriter.replaceOpWithMultiple(op, solver.emit());
    return success();
  }
};

} // namespace

void mlir::gdn::populateWarpPatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns) {
  patterns.add<EachWarpPattern, FreePattern, WarpMmaPattern, OwnRowsPattern,
               StoreBlockPattern, LoadBlockPattern, AnyPattern,
               BlockInversePattern>(kernel, patterns.getContext());
}
