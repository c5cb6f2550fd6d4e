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
#include "WarpgroupEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// The same of operands by their numbers; the accumulator begins with the
/// first, the left operand is in registers from number `firstLeft` on, or that
/// is its descriptor.
std::string getProducts(VectorType a, const SharedOperand &right, int64_t n,
                        int64_t firstLeft, bool startsFromZero,
                        const SharedOperand *left = nullptr) {
  int64_t count = left ? 1 : a.getDimSize(1) / 4;
  auto leftRegisters = [&](int64_t number) {
    return "$" + std::to_string(firstLeft + number);
  };
  ProductNames names{getRegisters(0, n / 2), leftRegisters,
                     "$" + std::to_string(firstLeft),
                     "$" + std::to_string(firstLeft + count)};
  return getProducts(a, right, n, names, startsFromZero, left);
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
  patterns.add<WarpgroupMmaPattern, MmaWaitPattern>(kernel,
                                                    patterns.getContext());
}
