//===- RefinePatterns.cpp - second parts behind a branch
//--------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// In one piece of assembly: neither LLVM nor ptxas see a branch that they could
// move instructions over, and what is kept only there takes registers only
// there. Each warp keeps the parity of the phase of a ring's stage in a word
// behind the ring's barriers.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "WarpgroupEmission.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

std::string reg(int64_t number) { return "$" + std::to_string(number); }
std::string name(StringRef prefix, int64_t number) {
  return prefix.str() + std::to_string(number);
}

/// "name0, name1, ..." from `first` on.
std::string list(StringRef prefix, int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i)
    text += (i == first ? "" : ", ") + name(prefix, i);
  return text;
}

// Columns of a n^T that are there at the same time: registers.
constexpr int64_t kColumnsAgain = 16;

/// The text of a refinement, from the numbers of its operands.
class RefineText {
public:
  explicit RefineText(VectorType a)
      : a(a), count(a.getDimSize(1) / 2), isBF16(a.getElementType().isBF16()) {}

  /// Numbers of the first registers of a and of the accumulators.
  int64_t firstA = 0, firstState = 0, firstOutput = 0;
  /// Of the addresses of the tiles, the condition, the address of the factors
  /// and, with a ring, its barriers; then comes the word of the parity.
  int64_t n = 0, low = 0, k = 0, p = 0, condition = 0, factors = 0, ring = 0;
  int64_t stateColumns = 0, mask = 0, scale = 0;

  std::string get(const SharedOperand &right, const SharedOperand &lowRight,
                  const SharedOperand &keys, const SharedOperand *scores);

private:
  std::string declare() const;
  std::string product(const std::string &acc, int64_t columns, StringRef left,
                      const SharedOperand &right, int64_t address,
                      std::optional<int64_t> firstRow = {}) const;
  std::string acc(int64_t first, int64_t columns) const {
    return getRegisters(first, columns / 2);
  }
  std::string loadFactors(int64_t row, int64_t pair) const;
  std::string extend(const std::string &pair) const;
  std::string round(const std::string &to, int64_t pair) const;
  std::string restOfError(int64_t firstColumn) const;
  std::string errors(int64_t first, bool isScaled, int64_t row) const;
  std::string waitForRing() const;
  std::string releaseRing() const;

  VectorType a;
  int64_t count;
  bool isBF16;
};

} // namespace

std::string RefineText::declare() const {
  return "{ .reg .pred all, none, done; .reg .b64 d, right; "
         ".reg .b32 parity, lane, place, h, " +
         list("y", 0, count) +
         "; .reg .b16 low16, high16; .reg .f32 e0, e1, "
         "f0, f1, " +
         list("t", 0, kColumnsAgain / 2) + "; ";
}

// Columns of the accumulator, the prefix of the left operand's registers or, if
// it is empty, a; from rows of the right operand on it starts from zero.
std::string RefineText::product(const std::string &acc, int64_t columns,
                                StringRef left, const SharedOperand &right,
                                int64_t address,
                                std::optional<int64_t> firstRow) const {
  auto registers = [&](int64_t first) {
    if (left.empty())
      return getRegisters(firstA + first, 4);
    int64_t offset = left == "z" ? count / 2 : 0;
    return "{" + list("y", offset + first, 4) + "}";
  };
  return right.getDescriptor("right", reg(address), "h") +
         getProducts(a, right, columns,
                     {acc, registers, "", "right", firstRow.value_or(0)},
                     firstRow.has_value());
}

// Registers 2i and 2i + 1 of a fragment are neighbours in a row, 2i + 2 and the
// next the same columns eight rows below.
std::string RefineText::loadFactors(int64_t row, int64_t pair) const {
  if (pair % 2 != 0)
    return "";
  int64_t offset = 4 * row + 16 * pair;
  return "ld.shared.v2.f32 {f0, f1}, [place+" + std::to_string(offset) + "]; ";
}

// A pair of 16-bit numbers as e0 and e1.
std::string RefineText::extend(const std::string &pair) const {
  if (isBF16)
    return "shl.b32 h, " + pair + ", 16; mov.b32 e0, h; and.b32 h, " + pair +
           ", 0xffff0000; mov.b32 e1, h; ";
  return "mov.b32 {low16, high16}, " + pair +
         "; cvt.f32.f16 e0, low16; cvt.f32.f16 e1, high16; ";
}

std::string RefineText::round(const std::string &to, int64_t pair) const {
  return std::string("cvt.rn.") + (isBF16 ? "bf16x2" : "f16x2") + ".f32 " + to +
         ", " + name("t", 2 * pair + 1) + ", " + name("t", 2 * pair) + "; ";
}

// t holds columns of a n^T: what a lacks of acc - t, in columns of the mask, to
// their y.
std::string RefineText::restOfError(int64_t firstColumn) const {
  std::string text;
  int64_t first = firstColumn / 4;
  for (int64_t i = 0; i < kColumnsAgain / 4; ++i) {
    text += loadFactors(mask, first + i) + extend(reg(firstA + first + i));
    for (int64_t j : {0, 1}) {
      std::string t = name("t", 2 * i + j), e = name("e", j), f = name("f", j);
      text += llvm::formatv("sub.rn.f32 {0}, {1}, {0}; sub.rn.f32 {0}, {0}, "
                            "{2}; mul.rn.f32 {0}, {0}, {3}; ",
                            t, reg(2 * (first + i) + j), e, f)
                  .str();
    }
    text += round(name("y", first + i), i);
  }
  return text;
}

// What the rounding of u lacks, scaled by the factors before or behind, to y
// from `first` on.
std::string RefineText::errors(int64_t first, bool isScaled,
                               int64_t row) const {
  std::string text;
  for (int64_t i = 0; i < count / 2; ++i) {
    text += loadFactors(row, i);
    for (int64_t j : {0, 1}) {
      std::string t = name("t", j), u = reg(2 * i + j);
      text += isScaled ? "mul.rn.f32 " + t + ", " + u + ", " + name("f", j)
                       : "mov.f32 " + t + ", " + u;
      text += "; ";
    }
    std::string y = name("y", first + i);
    text += round(y, 0) + extend(y);
    for (int64_t j : {0, 1}) {
      std::string t = name("t", j);
      text += "sub.rn.f32 " + t + ", " + t + ", " + name("e", j) + "; ";
      if (!isScaled)
        text += "mul.rn.f32 " + t + ", " + t + ", " + name("f", j) + "; ";
    }
    text += round(y, 0);
  }
  return text;
}

std::string RefineText::waitForRing() const {
  if (!ring)
    return "";
  std::string word = "[" + reg(ring + 1) + "]";
  return "ld.shared.b32 parity, " + word +
         "; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [" +
         reg(ring) +
         "], parity; @!done bra.uni AGAIN; "
         "fence.proxy.async.shared::cta; bar.warp.sync -1; "
         "xor.b32 parity, parity, 1; st.shared.b32 " +
         word + ", parity; ";
}

std::string RefineText::releaseRing() const {
  if (!ring)
    return "";
  return "bar.warp.sync -1; setp.eq.b32 done, lane, 0; "
         "@done mbarrier.arrive.shared::cta.b64 _, [" +
         reg(ring) + "+" + std::to_string(kBarrierBytes) + "]; ";
}

std::string RefineText::get(const SharedOperand &right,
                            const SharedOperand &lowRight,
                            const SharedOperand &keys,
                            const SharedOperand *scores) {
  int64_t c = a.getDimSize(1);
  std::string text = declare() + "@!" + reg(condition) + " bra.uni SKIP; " +
                     "setp.eq.b32 all, 0, 0; setp.ne.b32 none, 0, 0; "
                     // Each thread has two columns of eight.
                     "mov.u32 lane, %laneid; and.b32 place, lane, 3; "
                     "shl.b32 place, place, 3; add.u32 place, place, " +
                     reg(factors) + "; ";
  for (int64_t first = 0; first < c; first += kColumnsAgain)
    text += product("{" + list("t", 0, kColumnsAgain / 2) + "}", kColumnsAgain,
                    "", right, n, first) +
            getWait(0) + " " + restOfError(first);
  text += waitForRing();
  text += product(acc(0, c), c, "", lowRight, low);
  text += product(acc(0, c), c, "y", right, n);
  text += getWait(0) + " " + releaseRing();
  text += errors(0, /*isScaled=*/true, scale);
  text += product(acc(firstState, stateColumns), stateColumns, "y", keys, k);
  if (scores) {
    text += errors(count / 2, /*isScaled=*/false, mask);
    text += product(acc(firstOutput, c), c, "z", *scores, p);
  }
  return text + getWait(0) + " SKIP: }";
}

namespace {

/// The operands of the assembly: accumulators, which are its results, too, and
/// what is only read.
struct Operands {
  SmallVector<Value> values;
  std::string constraints;
  int64_t results = 0;

  /// Returns the operand's number.
  int64_t add(Value value, StringRef constraint) {
    values.push_back(value);
    constraints += "," + constraint.str();
    return results + static_cast<int64_t>(values.size()) - 1;
  }
};

struct RefinePattern : TilePattern<RefineOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RefineOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!kernel.target.hasWarpgroupMma())
      return op.emitOpError("needs products of warpgroups, which ")
             << kernel.target.name << " has not";
    Emitter e(rewriter, op.getLoc());
    RefineText text(cast<VectorType>(op.getA().getType()));
    text.mask = op.getMask();
    text.scale = op.getScale();
    Operands operands = addFragments(e, op, adaptor, text);
    SharedOperand right = getSquare(e, op, op.getN());
    SharedOperand low = getSquare(e, op, op.getLowBuffer());
    auto keyTile = cast<MemRefType>(op.getK().getType());
    SharedOperand keys(e, keyTile, /*isTransposed=*/false, Value());
    text.stateColumns = keyTile.getDimSize(1);
    std::optional<SharedOperand> scores;
    if (op.getP())
      scores.emplace(getSquare(e, op, op.getP()));
    addMemory(e, op, adaptor, rewriter, operands, text);
    SmallVector<Value> results =
        emitAsm(e, text.get(right, low, keys, scores ? &*scores : nullptr),
                operands.constraints, operands.results, operands.values);
    replace(op, rewriter, results, text);
    return success();
  }

private:
  static SharedOperand getSquare(Emitter &e, RefineOp op, Value tile) {
    auto type = cast<MemRefType>(tile.getType());
    type = MemRefType::get(type.getShape().take_back(2), type.getElementType(),
                           MemRefLayoutAttrInterface(), type.getMemorySpace());
    auto a = cast<VectorType>(op.getA().getType());
    return SharedOperand(e, type, /*isTransposed=*/true, Value(),
                         getPanelRows(type.getShape(), a));
  }

  static Operands addFragments(Emitter &e, RefineOp op, Adaptor adaptor,
                               RefineText &text) {
    Operands operands;
    SmallVector<Value> &values = operands.values;
    llvm::append_range(values, adaptor.getAcc());
    text.firstState = values.size();
    llvm::append_range(values, adaptor.getState());
    text.firstOutput = values.size();
    if (op.getOutput())
      llvm::append_range(values, adaptor.getOutput());
    operands.results = values.size();
    auto [outputs, ties] = getAccumulatorConstraints(operands.results);
    operands.constraints = outputs + ties;
    text.firstA = 2 * operands.results;
    for (Value pair : adaptor.getA())
      operands.add(e.bitcast(pair, e.i32()), "r");
    return operands;
  }

  void addMemory(Emitter &e, RefineOp op, Adaptor adaptor,
                 ConversionPatternRewriter &rewriter, Operands &operands,
                 RefineText &text) const {
    auto addAddress = [&](Value pointer) {
      return operands.add(e.sharedAddress(pointer), "r");
    };
    RingOp ring = op.getRing();
    text.n = addAddress(adaptor.getN().front());
    text.low = addAddress(ring ? rewriter.getRemappedValue(op.getLowBuffer())
                               : adaptor.getLow().front());
    text.k = addAddress(adaptor.getK().front());
    if (op.getP())
      text.p = addAddress(adaptor.getP().front());
    text.condition = operands.add(adaptor.getCondition().front(), "b");
    text.factors = addAddress(adaptor.getFactors().front());
    if (ring) {
      Value barriers = adaptor.getLow().front();
      Value word = e.advance(barriers, e.mulC(kernel.getWarpId(e, op), 4));
      text.ring = addAddress(barriers);
      addAddress(e.advance(word, 2 * kBarrierBytes));
    }
    operands.constraints += ",~{memory}";
  }

  static void replace(RefineOp op, ConversionPatternRewriter &rewriter,
                      ArrayRef<Value> results, const RefineText &text) {
    SmallVector<SmallVector<Value>> parts;
    parts.emplace_back(results.take_front(text.firstState));
    parts.emplace_back(
        results.slice(text.firstState, text.firstOutput - text.firstState));
    if (op.getOutput())
      parts.emplace_back(results.drop_front(text.firstOutput));
    rewriter.replaceOpWithMultiple(op, std::move(parts));
  }
};

} // namespace

void mlir::gdn::populateRefinePatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<RefinePattern>(kernel, patterns.getContext());
}
