//===- RegisterProductPatterns.cpp - products of fragments in registers ---===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With g = lane / 4 and t = lane % 4 a lane of mma.sync m16n8 holds
//
//   a: rows g, g + 8      b: column g      c, d: rows g, g + 8, columns 2t, 2t
//   + 1
//
// and of a and b those k that belong to t. In the rows layout with 4 lanes a
// lane holds rows g, g + 8, ... and the columns of its chunks, the same of
// every row. So along the columns of two fragments, whatever order these come
// in, registers are operands as they are (gdn_tile.dot); and an 8x8 matrix of
// 16-bit pairs, transposed between the lanes, is the right operand whose
// columns are those of the lanes' own chunks (gdn_tile.outer).
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "MatrixMoves.h"
#include "MmaEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

using Accumulator = std::array<Value, 4>;

bool is16Bit(VectorType type) { return type.getElementTypeBitWidth() == 16; }

NVVM::MMATypes getHalfType(VectorType type) {
  return type.getElementType().isBF16() ? NVVM::MMATypes::bf16
                                        : NVVM::MMATypes::f16;
}

/// A float32 value as two TF32 operands, the second truncated by the product:
/// their sum has 21 bits. Two instructions; rounding both would take five.
struct Tf32Parts {
  Value high, low;
};

Tf32Parts splitTf32(Emitter &e, Value value) {
  Value high = e.andC(e.bitcast(value, e.i32()), ~int64_t(0x1fff));
  Value low = e.roundingError(value, e.bitcast(high, e.f32()));
  return {high, e.bitcast(low, e.i32())};
}

/// Registers of a fragment by row register and column register.
class Registers {
public:
  Registers(Emitter &e, const KernelLowering &kernel, Value fragment,
            ValueRange values)
      : e(e), values(values), packed(kernel.isPacked(fragment.getType())),
        type(cast<VectorType>(fragment.getType())) {
    FragmentLayout layout = kernel.getLayout(type);
    rows = layout.getRowOffsets().size();
    cols = layout.getColOffsets().size();
  }

  int64_t getNumRows() const { return rows; }
  int64_t getNumCols() const { return cols; }

  /// One element, or zero behind the last row.
  Value at(int64_t row, int64_t col) const {
    if (row >= rows)
      return e.zero(type.getElementType());
    int64_t r = row * cols + col;
    return packed ? e.extractElement(values[r / 2], r % 2) : values[r];
  }
  /// Two neighbours of 16 bits as an operand of mma.sync.
  Value pair(int64_t row, int64_t col) const {
    auto pairType = VectorType::get(2, type.getElementType());
    Value value =
        row < rows ? values[(row * cols + col) / 2] : e.zero(pairType);
    return type.getElementType().isF16() ? value : e.bitcast(value, e.i32());
  }
  /// One element as a TF32 operand; 16-bit values have an exact one.
  Value asTf32(int64_t row, int64_t col) const {
    Value value = at(row, col);
    if (is16Bit(type))
      value = LLVM::FPExtOp::create(e.builder, e.loc, e.f32(), value);
    return e.bitcast(value, e.i32());
  }

private:
  Emitter &e;
  ValueRange values;
  bool packed;
  VectorType type;
  int64_t rows, cols;
};

struct DotPattern : TilePattern<DotOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(DotOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Registers a(e, kernel, op.getA(), adaptor.getA());
    SmallVector<Registers> rights;
    for (auto [value, registers] : llvm::zip_equal(op.getB(), adaptor.getB()))
      rights.emplace_back(e, kernel, value, registers);
    SmallVector<SmallVector<Value>> results(rights.size());
    auto left = cast<VectorType>(op.getA().getType());
    for (int64_t row = 0; row < a.getNumRows(); row += 2) {
      SmallVector<Accumulator> sums =
          is16Bit(left) ? multiplyHalves(e, getHalfType(left), a, rights, row)
                        : multiplyFloats(e, op, a, rights, row);
      int64_t count = std::min<int64_t>(a.getNumRows() - row, 2) * 2;
      for (auto [result, sum] : llvm::zip_equal(results, sums))
        result.append(sum.begin(), sum.begin() + count);
    }
    SmallVector<ValueRange> replacements(results.begin(), results.end());
    rewriter.replaceOpWithMultiple(op, replacements);
    return success();
  }

private:
  static Accumulator zero(Emitter &e) {
    Accumulator result;
    result.fill(e.cF32(0.0));
    return result;
  }

  static void addTo(Emitter &e, MutableArrayRef<Accumulator> sums,
                    ArrayRef<Accumulator> others) {
    for (auto [sum, other] : llvm::zip_equal(sums, others))
      for (auto [a, b] : llvm::zip_equal(sum, other))
        a = e.fadd(a, b);
  }

  static SmallVector<Accumulator>
  multiplyHalves(Emitter &e, NVVM::MMATypes type, const Registers &a,
                 ArrayRef<Registers> rights, int64_t row) {
    // One sum each: two that do not wait for one another take registers that
    // another warp would hide as much with.
    SmallVector<Accumulator> sums(rights.size(), zero(e));
    for (int64_t col = 0; col < a.getNumCols(); col += 4) {
      SmallVector<Value> left = {a.pair(row, col), a.pair(row + 1, col),
                                 a.pair(row, col + 2),
                                 a.pair(row + 1, col + 2)};
      for (auto [b, sum] : llvm::zip_equal(rights, sums))
        emitMma(e, 16, type, left, {b.pair(0, col), b.pair(0, col + 2)}, sum);
    }
    return sums;
  }

  static SmallVector<Accumulator> multiplyFloats(Emitter &e, DotOp op,
                                                 const Registers &a,
                                                 ArrayRef<Registers> rights,
                                                 int64_t row) {
    // Sums that do not wait for one another, a product takes some 20 cycles: of
    // low and of high parts, and of two columns in turn where these are few.
    int64_t turns = rights.size() == 1 ? 2 : 1;
    SmallVector<SmallVector<Accumulator>> lows(
        turns, SmallVector<Accumulator>(rights.size(), zero(e)));
    SmallVector<SmallVector<Accumulator>> highs = lows;
    for (int64_t col = 0; col < a.getNumCols(); col += 2) {
      SmallVector<Value> high, low;
      for (int64_t c : {col, col + 1})
        for (int64_t r : {row, row + 1}) {
          Tf32Parts parts = splitTf32(e, a.at(r, c));
          high.push_back(parts.high);
          low.push_back(parts.low);
        }
      for (auto [operand, b, lowSum, highSum] :
           llvm::zip_equal(op.getB(), rights, lows[col / 2 % turns],
                           highs[col / 2 % turns])) {
        if (is16Bit(cast<VectorType>(operand.getType()))) {
          SmallVector<Value> right = {b.asTf32(0, col), b.asTf32(0, col + 1)};
          emitMma(e, 8, NVVM::MMATypes::tf32, low, right, lowSum);
          emitMma(e, 8, NVVM::MMATypes::tf32, high, right, highSum);
          continue;
        }
        Tf32Parts first = splitTf32(e, b.at(0, col));
        Tf32Parts second = splitTf32(e, b.at(0, col + 1));
        emitMma(e, 8, NVVM::MMATypes::tf32, low, {first.high, second.high},
                lowSum);
        emitMma(e, 8, NVVM::MMATypes::tf32, high, {first.low, second.low},
                lowSum);
        emitMma(e, 8, NVVM::MMATypes::tf32, high, {first.high, second.high},
                highSum);
      }
    }
    for (auto [i, sums] : llvm::enumerate(lows)) {
      addTo(e, sums, highs[i]);
      if (i > 0)
        addTo(e, lows[0], sums);
    }
    return lows[0];
  }
};

struct OuterPattern : TilePattern<OuterOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(OuterOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Registers a(e, kernel, op.getA(), adaptor.getA());
    Registers b(e, kernel, op.getB(), adaptor.getB());
    auto rightType = cast<VectorType>(op.getB().getType());
    bool inTf32 = op.getExact() || !rightType.getElementType().isBF16();
    auto accType = cast<VectorType>(op.getAcc().getType());
    SmallVector<Value> acc(adaptor.getAcc());
    Value scale = op.getScale() ? adaptor.getScale()[0] : Value();
    SmallVector<SmallVector<SmallVector<Value>>> lefts;
    for (int64_t row = 0; row < a.getNumRows(); row += 2)
      lefts.push_back(inTf32 ? splitFloats(e, a, row)
                             : splitHalves(e, a, row, rightType));
    int64_t cols = b.getNumCols();
    for (int64_t col = 0; col < cols; col += 2) {
      // Tokens 2t and 2t + 1 of the column that is number g of the tile.
      Value word = transposeMatrix(e, e.bitcast(b.pair(0, col), e.i32()));
      for (auto [i, left] : llvm::enumerate(lefts)) {
        int64_t first = 2 * i * cols + col;
        int64_t places[] = {first, first + cols};
        Accumulator tile = readTile(e, acc, accType, places, scale);
        if (inTf32)
          multiplyFloats(e, left, word, rightType, tile);
        else
          emitMma(e, 16, NVVM::MMATypes::bf16, left[0], {word, word}, tile);
        writeTile(e, acc, accType, places, tile);
      }
    }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }

private:
  /// Two neighbours at each of two places, scaled, in f32.
  static Accumulator readTile(Emitter &e, ArrayRef<Value> acc, VectorType type,
                              ArrayRef<int64_t> places, Value scale) {
    Accumulator tile;
    for (int64_t i = 0; i < 4; ++i) {
      int64_t place = places[i / 2] + i % 2;
      tile[i] = is16Bit(type) ? LLVM::FPExtOp::create(
                                    e.builder, e.loc, e.f32(),
                                    e.extractElement(acc[place / 2], place % 2))
                              : acc[place];
      if (scale)
        tile[i] = e.fmul(tile[i], scale);
    }
    return tile;
  }

  static void writeTile(Emitter &e, MutableArrayRef<Value> acc, VectorType type,
                        ArrayRef<int64_t> places, const Accumulator &tile) {
    for (int64_t i : {0, 2}) {
      int64_t place = places[i / 2];
      if (is16Bit(type)) {
        acc[place / 2] = LLVM::FPTruncOp::create(
            e.builder, e.loc, VectorType::get(2, type.getElementType()),
            e.makeVector({tile[i], tile[i + 1]}));
        continue;
      }
      acc[place] = tile[i];
      acc[place + 1] = tile[i + 1];
    }
  }

  /// k 0..7 are the tokens of the high parts, 8..15 those of the low parts.
  static SmallVector<SmallVector<Value>>
  splitHalves(Emitter &e, const Registers &a, int64_t row, VectorType type) {
    SmallVector<Value> high, low;
    for (int64_t r : {row, row + 1}) {
      Value pair = e.makeVector({a.at(r, 0), a.at(r, 1)});
      auto halves = VectorType::get(2, type.getElementType());
      Value rounded = LLVM::FPTruncOp::create(e.builder, e.loc, halves, pair);
      Value back =
          LLVM::FPExtOp::create(e.builder, e.loc, pair.getType(), rounded);
      Value rest = LLVM::FPTruncOp::create(e.builder, e.loc, halves,
                                           e.roundingError(pair, back));
      high.push_back(e.bitcast(rounded, e.i32()));
      low.push_back(e.bitcast(rest, e.i32()));
    }
    high.append(low);
    return {high};
  }

  /// k t is token 2t, k t + 4 token 2t + 1.
  static SmallVector<SmallVector<Value>>
  splitFloats(Emitter &e, const Registers &a, int64_t row) {
    SmallVector<Value> high, low;
    for (int64_t token : {0, 1})
      for (int64_t r : {row, row + 1}) {
        Tf32Parts parts = splitTf32(e, a.at(r, token));
        high.push_back(parts.high);
        low.push_back(parts.low);
      }
    return {low, high};
  }

  static void multiplyFloats(Emitter &e, ArrayRef<SmallVector<Value>> parts,
                             Value word, VectorType type, Accumulator &acc) {
    Value pair = e.bitcast(word, VectorType::get(2, type.getElementType()));
    SmallVector<Value> right;
    for (int64_t i : {0, 1}) {
      Value value = LLVM::FPExtOp::create(e.builder, e.loc, e.f32(),
                                          e.extractElement(pair, i));
      right.push_back(e.bitcast(value, e.i32()));
    }
    for (const SmallVector<Value> &left : parts)
      emitMma(e, 8, NVVM::MMATypes::tf32, left, right, acc);
  }
};

struct StackPattern : TilePattern<StackOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StackOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value lane = e.laneId(), from = e.andC(lane, 15);
    Value isUpper = e.lessThan(e.c32(15), lane);
    // Zeros need not be passed on.
    bool isZero = matchPattern(op.getB(), m_AnyZeroFloat());
    SmallVector<Value> results;
    for (auto [a, b] : llvm::zip_equal(adaptor.getA(), adaptor.getB())) {
      Value upper = e.bitcast(b, e.i32());
      if (!isZero)
        upper = e.shuffleFrom(upper, from);
      Value both = e.select(isUpper, upper, e.bitcast(a, e.i32()));
      results.push_back(e.bitcast(both, a.getType()));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct TriSolvePattern : TilePattern<TriSolveOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(TriSolveOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Registers l(e, kernel, op.getL(), adaptor.getL());
    Registers rhs(e, kernel, op.getRhs(), adaptor.getRhs());
    int64_t count = op.getCount();
    // Element (t, s) is with lane 4 t + s / 2, the same for all rows of x.
    SmallVector<SmallVector<Value>> factors(count);
    for (int64_t t = 0; t < count; ++t)
      for (int64_t s = 0; s < t; ++s)
        factors[t].push_back(
            e.shuffleFrom(l.at(0, s % 2), e.c32(4 * t + s / 2)));
    Value quad = e.andC(e.laneId(), 28), inQuad = e.andC(e.laneId(), 3);
    SmallVector<Value> results;
    for (int64_t row = 0; row < rhs.getNumRows(); ++row) {
      // The four lanes of a row all solve it, so that each needs only the
      // right-hand side of the others.
      SmallVector<Value> x;
      for (int64_t t = 0; t < count; ++t) {
        Value value = e.shuffleFrom(rhs.at(row, t % 2), e.addC(quad, t / 2));
        for (int64_t s = 0; s < t; ++s)
          value = e.fsub(value, e.fmul(factors[t][s], x[s]));
        x.push_back(value);
      }
      for (int64_t odd : {0, 1})
        results.push_back(pickOwn(e, x, odd, inQuad));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  /// x[2t + odd] in lane t of four, zero behind the last.
  static Value pickOwn(Emitter &e, ArrayRef<Value> x, int64_t odd,
                       Value inQuad) {
    Value own = e.cF32(0.0);
    for (int64_t t = 0; 2 * t + odd < static_cast<int64_t>(x.size()); ++t)
      own = e.select(e.equalsC(inQuad, t), x[2 * t + odd], own);
    return own;
  }
};

struct AfterLoadsPattern : TilePattern<AfterLoadsOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AfterLoadsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    // NVVM has this reduction for predicates only, and LLVM would know that a
    // vote on a constant is one.
    Value zero = e.inlineAsm(e.i32(), "bar.red.popc.u32 $0, 0, $1;",
                             "=r,b,~{memory}", {e.constInt(e.i1(), 0)});
    SmallVector<SmallVector<Value>> results;
    for (ValueRange registers : adaptor.getValues()) {
      results.emplace_back();
      for (Value value : registers)
        results.back().push_back(mark(e, value, zero));
    }
    SmallVector<ValueRange> replacements(results.begin(), results.end());
    rewriter.replaceOpWithMultiple(op, replacements);
    return success();
  }

private:
  static Value mark(Emitter &e, Value value, Value zero) {
    Type type = value.getType();
    bool half = !isa<VectorType>(type) && type.getIntOrFloatBitWidth() == 16;
    Type bits = half ? e.i16() : e.i32();
    if (half)
      zero = LLVM::TruncOp::create(e.builder, e.loc, bits, zero);
    Value marked =
        LLVM::OrOp::create(e.builder, e.loc, e.bitcast(value, bits), zero);
    return e.bitcast(marked, type);
  }
};

} // namespace

void mlir::gdn::populateRegisterProductPatterns(const KernelLowering &kernel,
                                                RewritePatternSet &patterns) {
  patterns.add<DotPattern, OuterPattern, StackPattern, TriSolvePattern,
               AfterLoadsPattern>(kernel, patterns.getContext());
}
