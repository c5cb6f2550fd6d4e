//===- RefinePatterns.cpp - second parts behind a branch ------------------===//
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

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

std::string reg(int64_t number) { return "$" + std::to_string(number); }
std::string name(StringRef prefix, int64_t number) {
  return prefix.str() + std::to_string(number);
}

/// A number of f32 as PTX writes it.
std::string getFloat(double value) {
  float rounded = static_cast<float>(value);
  return llvm::formatv("0f{0:X-8}", llvm::bit_cast<uint32_t>(rounded)).str();
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
// Registers of P, 64x64.
constexpr int64_t kScores = 32;

/// The text of a refinement, from the numbers of its operands.
class RefineText {
public:
  explicit RefineText(VectorType a)
      : a(a), pairs(a.getDimSize(1) / 4), isBF16(a.getElementType().isBF16()) {}

  /// Numbers of the first registers of a and of the accumulators.
  int64_t firstA = 0, firstState = 0, firstOutput = 0;
  /// Of the addresses of the tiles, the condition, the address of the factors
  /// and, with a ring, its barriers; then comes the word of the parity, 16
  /// bytes and four for each warp in front behind them. Without one, of the
  /// number of the warp: the thread's number itself, in here, makes ptxas
  /// spill.
  int64_t n = 0, low = 0, k = 0, p = 0, q = 0, condition = 0, factors = 0,
          ring = 0, warp = 0;
  int64_t stateColumns = 0, count = 0, scale = 0, beta = 0;
  /// Without it exp(G) is 1. `scaled` is factor exp(G) of the rows.
  std::optional<int64_t> grown, scaled;
  double factor = 1;
  /// Bytes from the operand `q` to the tile.
  int64_t distance = 0;
  /// The barrier of the role.
  std::string barrier;

  /// `scores` are p, `queries` q as the right operand of k, null if P has no
  /// second part.
  std::string get(const SharedOperand &right, const SharedOperand &lowRight,
                  const SharedOperand &keys, const SharedOperand *scores,
                  const SharedOperand *queries);

private:
  std::string declare(bool hasScores) const;
  std::string product(const std::string &acc, int64_t columns, StringRef left,
                      const SharedOperand &right, int64_t address,
                      std::optional<int64_t> firstRow = {}) const;
  std::string acc(int64_t first, int64_t columns) const {
    return getRegisters(first, columns / 2);
  }
  std::string loadFactors(int64_t row, int64_t pair) const;
  std::string extend(const std::string &pair) const;
  std::string round(const std::string &to, int64_t pair) const;
  std::string keepLate(StringRef value, int64_t column) const;
  std::string restOfError(int64_t firstColumn) const;
  std::string errors(int64_t first, bool isScaled, int64_t row) const;
  std::string waitForRing() const;
  std::string releaseRing() const;
  std::string placeRows() const;
  std::string placeMatrices(const std::string &to, const SharedOperand &tile,
                            int64_t address) const;
  std::string moveMatrices(StringRef place, const SharedOperand &tile,
                           int64_t columns, bool isStore) const;
  std::string errorsOfScores(int64_t columns) const;
  std::string addScores(const SharedOperand &lowRight,
                        const SharedOperand &scores,
                        const SharedOperand &queries) const;

  VectorType a;
  /// Of a row of the fragments that a thread holds, twice.
  int64_t pairs;
  bool isBF16;
};

} // namespace

std::string RefineText::declare(bool hasScores) const {
  std::string scores =
      ".reg .b32 row, group, last, at, from, to, top0, top1, m0, m1; "
      ".reg .f32 g0, g1, " +
      list("s", 0, kScores) + "; ";
  return "{ .reg .pred all, none, done; .reg .b64 d, l, right, left; "
         ".reg .b32 parity, lane, place, first, h, " +
         list("y", 0, 2 * pairs) +
         "; .reg .b16 low16, high16; .reg .f32 e0, e1, "
         "f0, f1, " +
         list("t", 0, kColumnsAgain / 2) + "; " + (hasScores ? scores : "");
}

// Columns of the accumulator, the prefix of the left operand's registers or, if
// it is empty, a; from rows of the right operand on it starts from zero.
std::string RefineText::product(const std::string &acc, int64_t columns,
                                StringRef left, const SharedOperand &right,
                                int64_t address,
                                std::optional<int64_t> firstRow) const {
  auto registers = [&](int64_t number) {
    if (left.empty())
      return reg(firstA + number);
    return name("y", (left == "z" ? pairs : 0) + number);
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

// Zero in columns in front of the first late one; `first` is that, counted from
// the thread's columns.
std::string RefineText::keepLate(StringRef value, int64_t column) const {
  return llvm::formatv("setp.le.s32 done, first, {1}; "
                       "selp.f32 {0}, {0}, 0f00000000, done; ",
                       value, column)
      .str();
}

// t holds columns of a n^T: what a lacks of acc - t, in late columns, to their
// y.
std::string RefineText::restOfError(int64_t firstColumn) const {
  std::string text;
  int64_t first = firstColumn / 4;
  for (int64_t i = 0; i < kColumnsAgain / 4; ++i) {
    int64_t column = (first + i) / 2 * 8;
    text += extend(reg(firstA + first + i));
    for (int64_t j : {0, 1}) {
      std::string t = name("t", 2 * i + j), e = name("e", j);
      text += llvm::formatv("sub.rn.f32 {0}, {1}, {0}; sub.rn.f32 {0}, {0}, "
                            "{2}; ",
                            t, reg(2 * (first + i) + j), e)
                  .str();
      text += keepLate(t, column + j);
    }
    text += round(name("y", first + i), i);
  }
  return text;
}

// What the rounding of u lacks, scaled by the factors from `row` on in front or
// in late columns, to y from `first` on.
std::string RefineText::errors(int64_t first, bool isScaled,
                               int64_t row) const {
  std::string text;
  for (int64_t i = 0; i < pairs; ++i) {
    if (isScaled)
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
        text += keepLate(t, i / 2 * 8 + j);
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
  return "bar.warp.sync -1; mov.u32 lane, %laneid; "
         "setp.eq.b32 done, lane, 0; "
         "@done mbarrier.arrive.shared::cta.b64 _, [" +
         reg(ring) + "+" + std::to_string(kBarrierBytes) + "]; ";
}

//===----------------------------------------------------------------------===//
// The second part of P
//===----------------------------------------------------------------------===//

// The thread's rows of P, `row` and eight more: their factors as g0 and g1,
// and the last of its columns that counts as top0 and top1, from the thread's
// first one: that of the row itself, or none.
std::string RefineText::placeRows() const {
  // Of the warps, four to a group, each has 16 rows. h is zero, as above.
  std::string text =
      "shr.u32 h, lane, 5; " +
      (ring ? "add.u32 row, " + reg(ring + 1) + ", h; sub.u32 row, row, " +
                  reg(ring) + "; bfe.u32 row, row, 2, 2; "
            : "add.u32 row, " + reg(warp) + ", h; and.b32 row, row, 3; ") +
      "shl.b32 group, row, 4; "
      "shr.u32 row, lane, 2; add.u32 row, row, group; and.b32 h, lane, 3; "
      "shl.b32 h, h, 1; add.s32 last, first, h; shl.b32 at, row, 2; "
      "add.u32 at, at, " +
      reg(factors) + "; ";
  for (int64_t i : {0, 1}) {
    std::string top = name("top", i), g = name("g", i);
    text += llvm::formatv("add.u32 {0}, row, {1}; setp.ge.s32 done, {0}, last; "
                          "sub.s32 {0}, {0}, h; selp.b32 {0}, {0}, -8, done; ",
                          top, 8 * i)
                .str();
    if (grown)
      text += llvm::formatv("ld.shared.f32 {0}, [at+{1}]; "
                            "setp.gt.f32 done, {0}, {2}; "
                            "selp.b32 {3}, {3}, -8, done; ",
                            g, 4 * (scaled.value_or(*grown) + 8 * i),
                            getFloat(kLeastGrown), top)
                  .str();
  }
  return text;
}

// Where the thread's row of two matrices of 8x8 lies: those of the warp's 16
// rows and the first eight columns. The threads behind the first 16 have any.
std::string RefineText::placeMatrices(const std::string &to,
                                      const SharedOperand &tile,
                                      int64_t address) const {
  // From one row to the next, in a matrix and from it to the next.
  int64_t row = tile.panelRows ? 16 : 128;
  int64_t matrix = tile.panelRows ? 2 * 8 * 16 : 8 * 128;
  std::string text =
      llvm::formatv("and.b32 h, lane, 7; mul.lo.u32 {0}, h, {1}; ", to, row);
  if (!tile.panelRows)
    text += llvm::formatv("shl.b32 h, h, 4; or.b32 {0}, {0}, h; ", to);
  return text +
         llvm::formatv("bfe.u32 h, lane, 3, 1; mad.lo.u32 {0}, h, {1}, {0}; "
                       "mad.lo.u32 {0}, group, {2}, {0}; add.u32 {0}, {0}, "
                       "{3}; ",
                       to, matrix, matrix / 8, reg(address))
             .str();
}

// Two matrices from or to columns `columns` and later, rows of P in rows of
// fragments.
std::string RefineText::moveMatrices(StringRef place, const SharedOperand &tile,
                                     int64_t columns, bool isStore) const {
  std::string text, at = "[at]";
  if (tile.panelRows)
    at = "[" + place.str() + "+" +
         std::to_string(16 * (getPanelRow(0, columns, tile.panelRows) +
                              getRowOfColumn(columns))) +
         "]";
  else
    text = llvm::formatv("xor.b32 at, {0}, {1}; ", place, 2 * columns);
  std::string trans = tile.panelRows ? ".trans" : "";
  if (isStore)
    return text + "stmatrix.sync.aligned.m8n8.x2" + trans + ".shared.b16 " +
           at + ", {m0, m1}; ";
  return text + "ldmatrix.sync.aligned.m8n8.x2" + trans +
         ".shared.b16 {m0, m1}, " + at + "; ";
}

// What P, in s, has more than m in eight columns, to m.
std::string RefineText::errorsOfScores(int64_t columns) const {
  auto load = [&](StringRef to, int64_t row) {
    return llvm::formatv("ld.shared.v2.f32 {{{0}0, {0}1}, [place+{1}]; ", to,
                         4 * (row + columns))
        .str();
  };
  std::string text = load("f", beta);
  if (grown)
    text += load("e", *grown);
  for (int64_t j : {0, 1}) {
    std::string e = name("e", j), f = name("f", j);
    if (!scaled)
      text += llvm::formatv("mul.rn.f32 {0}, {0}, {1}; ", f, getFloat(factor));
    if (grown)
      text += llvm::formatv("rcp.approx.ftz.f32 {1}, {1}; "
                            "mul.rn.f32 {0}, {0}, {1}; ",
                            f, e);
  }
  for (int64_t i : {0, 1}) {
    std::string m = name("m", i), g = name("g", i);
    text += extend(m);
    for (int64_t j : {0, 1}) {
      std::string s = name("s", columns / 2 + 2 * i + j), t = name("t", j);
      text += llvm::formatv("mul.rn.f32 {0}, {1}, {2}; ", t, s, name("f", j));
      if (grown)
        text += llvm::formatv("mul.rn.f32 {0}, {0}, {1}; ", t, g);
      text +=
          llvm::formatv("sub.rn.f32 {0}, {0}, {1}; setp.ge.s32 done, {2}, {3}; "
                        "selp.f32 {0}, {0}, 0f00000000, done; ",
                        t, name("e", j), name("top", i), columns + j);
    }
    text += round(m, 0);
  }
  return text;
}

// The second part of P in the place of that of N, which no warp reads any more,
// and its product with u rounded.
std::string RefineText::addScores(const SharedOperand &lowRight,
                                  const SharedOperand &scores,
                                  const SharedOperand &queries) const {
  int64_t c = a.getDimSize(1);
  auto rows = VectorType::get({64, stateColumns}, a.getElementType());
  std::string s = "{" + list("s", 0, kScores) + "}";
  std::string text = "add.u32 h, " + reg(q) + ", " + std::to_string(distance) +
                     "; " + queries.getDescriptor("left", "h", "h") +
                     queries.getDescriptor("right", reg(k), "h") +
                     getProducts(rows, queries, c, {s, {}, "left", "right"},
                                 /*startsFromZero=*/true, &queries) +
                     getWait(0) + " " + placeRows() +
                     placeMatrices("from", scores, p) +
                     placeMatrices("to", lowRight, low) + barrier;
  for (int64_t columns = 0; columns < c; columns += 8)
    text += moveMatrices("from", scores, columns, /*isStore=*/false) +
            errorsOfScores(columns) +
            moveMatrices("to", lowRight, columns, /*isStore=*/true);
  text += "fence.proxy.async.shared::cta; " + barrier;
  for (int64_t i = 0; i < pairs; ++i)
    text += "mov.f32 t0, " + reg(2 * i) + "; mov.f32 t1, " + reg(2 * i + 1) +
            "; " + round(name("y", i), 0);
  return text + product(acc(firstOutput, c), c, "y", lowRight, low) +
         getWait(0) + " " + releaseRing();
}

std::string RefineText::get(const SharedOperand &right,
                            const SharedOperand &lowRight,
                            const SharedOperand &keys,
                            const SharedOperand *scores,
                            const SharedOperand *queries) {
  int64_t c = a.getDimSize(1);
  std::string text = declare(queries) + "@!" + reg(condition) +
                     " bra.uni SKIP; " +
                     "setp.eq.b32 all, 0, 0; setp.ne.b32 none, 0, 0; "
                     "ld.shared.f32 e0, [" +
                     reg(factors) + "+" + std::to_string(4 * count) +
                     "]; cvt.rzi.s32.f32 first, e0; "
                     // The sign, which is none: what follows from the number of
                     // the lane would wait in registers all over the loop.
                     "shr.u32 h, first, 31; mov.u32 lane, %laneid; "
                     "add.u32 lane, lane, h; "
                     // Each thread has two columns of eight.
                     "and.b32 place, lane, 3; sub.s32 first, " +
                     std::to_string(c) +
                     ", first; shl.b32 h, place, 1; sub.s32 first, first, h; "
                     "shl.b32 place, place, 3; add.u32 place, place, " +
                     reg(factors) + "; ";
  for (int64_t first = 0; first < c; first += kColumnsAgain)
    text += product("{" + list("t", 0, kColumnsAgain / 2) + "}", kColumnsAgain,
                    "", right, n, first) +
            getWait(0) + " " + restOfError(first);
  text += waitForRing();
  text += product(acc(0, c), c, "", lowRight, low);
  text += product(acc(0, c), c, "y", right, n);
  text += getWait(0) + " ";
  if (!queries)
    text += releaseRing();
  text += errors(0, /*isScaled=*/true, scale);
  text += product(acc(firstState, stateColumns), stateColumns, "y", keys, k);
  if (scores) {
    text += errors(pairs, /*isScaled=*/false, 0);
    text += product(acc(firstOutput, c), c, "z", *scores, p);
  }
  text += getWait(0) + " ";
  if (queries)
    text += addScores(lowRight, *scores, *queries);
  return text + "SKIP: }";
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
    text.count = op.getCount();
    text.scale = op.getScale();
    if (op.getQ()) {
      text.beta = *op.getBeta();
      text.grown = op.getGrown();
      text.scaled = op.getScaled();
      text.factor = op.getFactor()->convertToDouble();
      text.barrier = kernel.getRoleBarrier(op);
    }
    Operands operands = addFragments(e, op, adaptor, text);
    SharedOperand right = getSquare(e, op, op.getN());
    SharedOperand low = getSquare(e, op, op.getLowBuffer());
    auto keyTile = cast<MemRefType>(op.getK().getType());
    SharedOperand keys(e, keyTile, /*isTransposed=*/false, Value());
    text.stateColumns = keyTile.getDimSize(1);
    std::optional<SharedOperand> scores, queries;
    if (op.getP())
      scores.emplace(getSquare(e, op, op.getP()));
    if (op.getQ())
      queries.emplace(e, keyTile, /*isTransposed=*/true, Value());
    addMemory(e, op, adaptor, rewriter, operands, text);
    SmallVector<Value> results =
        emitAsm(e,
                text.get(right, low, keys, scores ? &*scores : nullptr,
                         queries ? &*queries : nullptr),
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

  /// Bytes from the tile k to q, if they are the same in all stages: a register
  /// less.
  std::optional<int64_t> getDistance(RefineOp op) const {
    auto k = op.getK().getDefiningOp<StageOp>();
    auto q = op.getQ().getDefiningOp<StageOp>();
    if (!k || !q || k.getStage() != q.getStage() ||
        k.getBuffers().getType() != q.getBuffers().getType())
      return std::nullopt;
    Operation *buffers[] = {k.getBuffers().getDefiningOp(),
                            q.getBuffers().getDefiningOp()};
    if (!isa_and_nonnull<memref::AllocOp>(buffers[0]) ||
        !isa_and_nonnull<memref::AllocOp>(buffers[1]))
      return std::nullopt;
    return kernel.getSharedOffset(buffers[1]) -
           kernel.getSharedOffset(buffers[0]);
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
    if (op.getQ()) {
      std::optional<int64_t> distance = getDistance(op);
      text.q = distance ? text.k : addAddress(adaptor.getQ().front());
      text.distance = distance.value_or(0);
    }
    text.condition = operands.add(adaptor.getCondition().front(), "b");
    text.factors = addAddress(adaptor.getFactors().front());
    if (ring) {
      Value barriers = adaptor.getLow().front();
      Value word = e.advance(barriers, e.mulC(kernel.getWarpId(e, op), 4));
      text.ring = addAddress(barriers);
      addAddress(e.advance(word, 2 * kBarrierBytes));
    } else if (op.getQ()) {
      text.warp = operands.add(kernel.getWarpId(e, op), "r");
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
