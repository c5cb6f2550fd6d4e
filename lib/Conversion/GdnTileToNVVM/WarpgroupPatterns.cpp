//===- WarpgroupPatterns.cpp - products by wgmma --------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma with the left operand in registers. The fragment of 64 rows is the
// accumulator of m64nNk16, and rounded to 16 bit it is the left operand; a tile
// in panels of 128 bytes is the right operand in its 128-byte swizzle, one in
// panels of 16 columns without a swizzle.
//
// nvvm.wgmma.mma_async of MLIR 22.1 takes both operands from shared memory
// only, so a group of products is one llvm.inline_asm with tied accumulators.
// So is the wait: it ties the registers that it releases, which the intrinsic
// does not.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

// Shared memory descriptors count in 16 bytes (PTX ISA, "Matrix Descriptor
// Format"); 8 rows of 128 bytes repeat the swizzle.
constexpr int64_t kUnit = 16;
constexpr int64_t kRowsOfGroup = 8;
constexpr int64_t kSwizzle128 = int64_t(1) << 62;

/// An operand in shared memory: its descriptor, and the distance of a k step of
/// 16 from the first, in descriptor units. Transposed: the rows are those of n,
/// or of a left operand. Or in panels of 16 columns with `panelRows` rows n.
struct SharedOperand {
  SharedOperand(Emitter &e, MemRefType tile, bool isTransposed, Value base,
                int64_t panelRows = 0)
      : layout(tile), isKMajor(isTransposed && !panelRows),
        panelRows(panelRows) {
    // K-major panels follow one another along k, MN-major ones along n: the
    // leading dimension offset of the latter.
    int64_t leading = isKMajor ? 0 : layout.getPanelStride();
    int64_t group = kRowsOfGroup * layout.getPanelBytes();
    int64_t constant = kSwizzle128;
    // Core matrices of 8 rows k: the second 8, and those of the next 8 n.
    if (panelRows) {
      leading = kRowsOfGroup * layout.getPitch();
      group = kPanelColumns * layout.getPitch();
      constant = 0;
    }
    constant |= (group / kUnit) << 32 | (leading / kUnit) << 16;
    Value address = LLVM::PtrToIntOp::create(e.builder, e.loc, e.i32(), base);
    Value start = e.shrC(e.andC(address, 0x3FFFF), 4);
    start = LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), start);
    descriptor = LLVM::OrOp::create(e.builder, e.loc, start, e.c64(constant));
  }

  int64_t stepOffset(int64_t k) const {
    if (panelRows)
      return getPanelRow(0, k, panelRows) * layout.getPitch() / kUnit;
    if (!isKMajor)
      return k * 128 / kUnit;
    return (k / 64 * layout.getPanelStride() + k % 64 * 2) / kUnit;
  }

  SharedLayout layout;
  bool isKMajor;
  int64_t panelRows;
  Value descriptor;
};

std::string getRegisters(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// "=f,=f,..." and the ties "0,1,..." of an accumulator.
std::pair<std::string, std::string> getAccumulatorConstraints(int64_t count) {
  std::string outputs, ties;
  for (int64_t i = 0; i < count; ++i) {
    outputs += (i ? ",=f" : "=f");
    ties += "," + std::to_string(i);
  }
  return {outputs, ties};
}

std::string getWait(int64_t pending) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";";
}

SmallVector<Value> emitAsm(Emitter &e, StringRef text, StringRef constraints,
                           int64_t count, ValueRange operands) {
  SmallVector<Type> types(count, e.f32());
  Type result = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), types);
  return e.extractAll(e.inlineAsm(result, text, constraints, operands));
}

/// A group of wgmma in the steps of k; registers `all` and, if it starts from
/// nothing, `none` are predicates, `d` and `l` descriptors. The left operand is
/// in registers from number `firstLeft` on, or that is its descriptor.
std::string getProducts(VectorType a, const SharedOperand &right, int64_t n,
                        int64_t firstLeft, bool startsFromZero,
                        const SharedOperand *left = nullptr) {
  std::string type = a.getElementType().isBF16() ? "bf16" : "f16";
  std::string product = "wgmma.mma_async.sync.aligned.m64n" +
                        std::to_string(n) + "k16.f32." + type + "." + type +
                        " ";
  int64_t k = a.getDimSize(1);
  std::string leftDescriptor = "$" + std::to_string(firstLeft);
  std::string descriptor = "$" + std::to_string(firstLeft + (left ? 1 : k / 4));
  std::string text = "wgmma.fence.sync.aligned; ";
  for (int64_t step = 0; step < k; step += 16) {
    bool starts = step == 0 && startsFromZero;
    text += "add.s64 d, " + descriptor + ", " +
            std::to_string(right.stepOffset(step)) + "; ";
    if (left)
      text += "add.s64 l, " + leftDescriptor + ", " +
              std::to_string(left->stepOffset(step)) + "; ";
    text += product + getRegisters(0, n / 2) + ", " +
            (left ? "l" : getRegisters(firstLeft + step / 4, 4)) + ", d, " +
            (starts ? "none" : "all") + ", 1, 1, " + (left ? "0, " : "") +
            (right.isKMajor ? "0" : "1") + "; ";
  }
  return text + "wgmma.commit_group.sync.aligned; ";
}

struct WarpgroupMmaPattern : TilePattern<MmaOp> {
  WarpgroupMmaPattern(const KernelLowering &kernel, MLIRContext *context)
      // In front of the warp-level products.
      : TilePattern(kernel, context, /*benefit=*/11) {}

  LogicalResult
  matchAndRewrite(MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!kernel.target.hasWarpgroupMma() || !fitsWarpgroup(op, kernel.kernel))
      return failure();
    Emitter e(rewriter, op.getLoc());
    int64_t n = op.getFragmentType().getDimSize(1), count = n / 2;
    SharedOperand right(e, cast<MemRefType>(op.getB().getType()),
                        op.getTransposeB(), adaptor.getB().front(),
                        op.hasPanels() ? n : 0);
    std::optional<SharedOperand> left;
    if (LoadOp load = kernel.getSharedLeft(op))
      left.emplace(e, cast<MemRefType>(load.getMemref().getType()),
                   /*isTransposed=*/true,
                   rewriter.getRemappedValue(load.getMemref()));
    auto [constraints, ties] = getAccumulatorConstraints(count);
    SmallVector<Value> operands;
    int64_t firstLeft = count;
    if (op.getAcc()) {
      llvm::append_range(operands, adaptor.getAcc());
      constraints += ties;
      firstLeft += count;
    }
    if (left) {
      operands.push_back(left->descriptor);
      constraints += ",l";
    } else {
      for (Value pair : adaptor.getA()) {
        operands.push_back(e.bitcast(pair, e.i32()));
        constraints += ",r";
      }
    }
    operands.push_back(right.descriptor);
    constraints += ",l,~{memory}";
    std::string text =
        getText(op, right, n, firstLeft, left ? &*left : nullptr);
    rewriter.replaceOpWithMultiple(
        op, {emitAsm(e, text, constraints, count, operands)});
    return success();
  }

private:
  static std::string getText(MmaOp op, const SharedOperand &right, int64_t n,
                             int64_t firstLeft, const SharedOperand *left) {
    std::string text = "{ .reg .pred all, none; .reg .b64 d";
    text += left ? ", l; " : "; ";
    text += "setp.eq.b32 all, 0, 0; setp.ne.b32 none, 0, 0; " +
            getProducts(cast<VectorType>(op.getA().getType()), right, n,
                        firstLeft, !op.getAcc(), left);
    if (!op.isAsync())
      text += getWait(0) + " ";
    return text + "}";
  }
};

/// In one piece of assembly: neither LLVM nor ptxas see a branch that they
/// could move instructions over. Each warp keeps the parity of the phase of a
/// ring's stage in a word behind the ring's barriers.
struct RareMmaPattern : TilePattern<RareMmaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RareMmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!kernel.target.hasWarpgroupMma())
      return op.emitOpError("needs products of warpgroups, which ")
             << kernel.target.name << " has not";
    Emitter e(rewriter, op.getLoc());
    auto a = cast<VectorType>(op.getA().getType());
    int64_t n = cast<VectorType>(op.getAcc().getType()).getDimSize(1);
    int64_t count = n / 2, k = a.getDimSize(1), firstLeft = 2 * count;
    auto buffer = cast<MemRefType>(op.getBuffer().getType());
    auto tile =
        MemRefType::get(buffer.getShape().take_back(2), buffer.getElementType(),
                        MemRefLayoutAttrInterface(), buffer.getMemorySpace());
    RingOp ring = op.getRing();
    Value base = ring ? rewriter.getRemappedValue(op.getBuffer())
                      : adaptor.getB().front();
    SharedOperand right(e, tile, /*isTransposed=*/true, base,
                        getPanelRows(tile.getShape(), a));
    auto [constraints, ties] = getAccumulatorConstraints(count);
    SmallVector<Value> operands(adaptor.getAcc());
    constraints += ties;
    for (Value pair : adaptor.getA()) {
      operands.push_back(e.bitcast(pair, e.i32()));
      constraints += ",r";
    }
    operands.append({right.descriptor, adaptor.getCondition().front()});
    constraints += ",l,b";
    if (ring) {
      Value barriers = adaptor.getB().front();
      Value word = e.advance(barriers, e.mulC(kernel.getWarpId(e, op), 4));
      operands.append({e.sharedAddress(barriers),
                       e.sharedAddress(e.advance(word, 2 * kBarrierBytes))});
      constraints += ",r,r";
    }
    constraints += ",~{memory}";
    std::string products =
        "setp.eq.b32 all, 0, 0; " +
        getProducts(a, right, n, firstLeft, /*starts=*/false) + getWait(0);
    int64_t condition = firstLeft + k / 4 + 1;
    if (ring)
      products = getWithRing(products, condition + 1);
    std::string text =
        "{ .reg .pred all, done; .reg .b64 d; .reg .b32 parity, lane; "
        "@!$" +
        std::to_string(condition) + " bra.uni SKIP; " + products + " SKIP: }";
    rewriter.replaceOpWithMultiple(
        op, {emitAsm(e, text, constraints, count, operands)});
    return success();
  }

private:
  /// Between the wait for the stage of a ring and its release; `first` is the
  /// operand of the ring, then comes the parity.
  static std::string getWithRing(StringRef products, int64_t first) {
    std::string ring = "$" + std::to_string(first);
    std::string full = "[" + ring + "]";
    std::string empty = "[" + ring + "+" + std::to_string(kBarrierBytes) + "]";
    std::string word = "[$" + std::to_string(first + 1) + "]";
    return "ld.shared.b32 parity, " + word +
           "; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, " + full +
           ", parity; @!done bra.uni AGAIN; "
           "fence.proxy.async.shared::cta; bar.warp.sync -1; "
           "xor.b32 parity, parity, 1; st.shared.b32 " +
           word + ", parity; " + products.str() +
           " bar.warp.sync -1; mov.u32 lane, %laneid; "
           "setp.eq.b32 done, lane, 0; "
           "@done mbarrier.arrive.shared::cta.b64 _, " +
           empty + ";";
  }
};

struct MmaWaitPattern : TilePattern<MmaWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(MmaWaitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!kernel.target.hasWarpgroupMma()) {
      // Warp-level products are complete at once.
      rewriter.replaceOpWithMultiple(op, {adaptor.getValue()});
      return success();
    }
    Emitter e(rewriter, op.getLoc());
    int64_t count = adaptor.getValue().size();
    auto [outputs, ties] = getAccumulatorConstraints(count);
    rewriter.replaceOpWithMultiple(
        op, {emitAsm(e, getWait(op.getPending()), outputs + ties + ",~{memory}",
                     count, adaptor.getValue())});
    return success();
  }
};

} // namespace

void mlir::gdn::populateWarpgroupPatterns(const KernelLowering &kernel,
                                          RewritePatternSet &patterns) {
  patterns.add<WarpgroupMmaPattern, MmaWaitPattern, RareMmaPattern>(
      kernel, patterns.getContext());
}
