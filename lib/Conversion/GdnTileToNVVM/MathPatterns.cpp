//===- MathPatterns.cpp - scalar math without libdevice -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's lowering calls libdevice, which only a CUDA toolkit has. These are
// the hardware's approximations: 1 to 2 units in the last place in float32
// (log: 2^-22 absolute near 1).
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;

using Operands = ArrayRef<Value>;

Value emitLog2(Emitter &e, Value x) {
  return e.intrinsic("llvm.nvvm.lg2.approx.ftz.f", e.f32(), x);
}

Value emitDiv(Emitter &e, Value x, Value y) {
  return e.intrinsic("llvm.nvvm.div.full", e.f32(), {x, y});
}

Value emit(math::Exp2Op, Emitter &e, Operands x) { return e.exp2(x[0]); }

Value emit(math::ExpOp, Emitter &e, Operands x) {
  return e.exp2(e.fmul(x[0], e.cF32(kLog2E)));
}

Value emit(math::Log2Op, Emitter &e, Operands x) { return emitLog2(e, x[0]); }

Value emit(math::LogOp, Emitter &e, Operands x) {
  return e.fmul(emitLog2(e, x[0]), e.cF32(kLn2));
}

/// log1p(x) = log(u) x / (u - 1) with u = 1 + x rounded: the error of u
/// cancels.
Value emit(math::Log1pOp, Emitter &e, Operands x) {
  Value one = e.cF32(1.0);
  Value u = e.fadd(x[0], one);
  Value distance = e.fsub(u, one);
  Value log = e.fmul(emitLog2(e, u), e.cF32(kLn2));
  Value corrected = e.fmul(log, emitDiv(e, x[0], distance));
  auto isZero = LLVM::FCmpOp::create(e.builder, e.loc, LLVM::FCmpPredicate::oeq,
                                     distance, e.cF32(0.0));
  auto isInfinite =
      LLVM::FCmpOp::create(e.builder, e.loc, LLVM::FCmpPredicate::oeq, u,
                           e.cF32(std::numeric_limits<double>::infinity()));
  return e.select(isZero, x[0], e.select(isInfinite, u, corrected));
}

Value emit(math::RsqrtOp, Emitter &e, Operands x) {
  return e.intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", e.f32(), x[0]);
}

Value emit(math::SqrtOp, Emitter &e, Operands x) {
  return e.intrinsic("llvm.nvvm.sqrt.approx.ftz.f", e.f32(), x[0]);
}

Value emit(math::AbsFOp, Emitter &e, Operands x) {
  return LLVM::FAbsOp::create(e.builder, e.loc, x[0]);
}

Value emit(math::FmaOp, Emitter &e, Operands x) {
  return e.fma(x[0], x[1], x[2]);
}

Value emit(arith::DivFOp, Emitter &e, Operands x) {
  return emitDiv(e, x[0], x[1]);
}

template <typename Op>
struct MathPattern : TilePattern<Op> {
  using TilePattern<Op>::TilePattern;
  LogicalResult
  matchAndRewrite(Op op, typename TilePattern<Op>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isFragment(op.getType()))
      return failure();
    Emitter e(rewriter, op.getLoc());
    SmallVector<Value> operands;
    for (ValueRange range : adaptor.getOperands())
      operands.push_back(range.front());
    rewriter.replaceOp(op, emit(op, e, operands));
    return success();
  }
};

} // namespace

void mlir::gdn::populateMathPatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns) {
  patterns.add<MathPattern<math::Exp2Op>, MathPattern<math::ExpOp>,
               MathPattern<math::Log2Op>, MathPattern<math::LogOp>,
               MathPattern<math::Log1pOp>, MathPattern<math::RsqrtOp>,
               MathPattern<math::SqrtOp>, MathPattern<math::AbsFOp>,
               MathPattern<math::FmaOp>, MathPattern<arith::DivFOp>>(
      kernel, patterns.getContext());
}
