//===- MixerOps.cpp - l2norm, gate, short_conv, gated_rms_norm ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpVerification.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::gdn;

// Checks x: float, rank >= 1, static last size.
static LogicalResult verifyRows(Operation *op, Value x) {
  if (failed(verifyFloat(op, "x", x)))
    return failure();
  if (rankOf(x) < 1)
    return op->emitOpError("expects 'x' to have rank 1 or more, but it is a "
                           "scalar");
  return verifyStaticDim(op, "x", x, rankOf(x) - 1, "row size");
}

// Checks that `value` has the shape and element type of x, and a static last
// size.
static LogicalResult verifyLikeRows(Operation *op, StringRef name, Value value,
                                    Value x) {
  if (failed(verifySameShape(op, name, value, "x", x)) ||
      failed(verifyElementType(op, name, value, "x", x)))
    return failure();
  return verifyStaticDim(op, name, value, rankOf(x) - 1, "row size");
}

static LogicalResult verifyEps(Operation *op, const APFloat &eps) {
  if (eps.isNegative())
    return op->emitOpError("expects 'eps' to be at least 0, but it is ")
           << eps.convertToDouble();
  return verifyFinite(op, "eps", eps);
}

//===----------------------------------------------------------------------===//
// L2NormOp
//===----------------------------------------------------------------------===//

LogicalResult L2NormOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyRows(*this, getX())) ||
      failed(verifyLikeRows(*this, "out", getOut(), getX())))
    return failure();
  return verifyEps(*this, getEps());
}

namespace {

/// Without eps, normalising a normalised row changes it by rounding only. With
/// eps a short row (sum x^2 of the order of eps or less) does not get length 1,
/// and the second op changes it by more than rounding: both stay.
struct FoldL2NormOfL2Norm : OpRewritePattern<L2NormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(L2NormOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<L2NormOp>();
    if (!inner || !inner.getEps().isZero() || !op.getEps().isZero() ||
        inner.getResult(0).getType() != op.getResult(0).getType())
      return failure();
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

} // namespace

void L2NormOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<FoldL2NormOfL2Norm>(context);
}

//===----------------------------------------------------------------------===//
// GateOp
//===----------------------------------------------------------------------===//

LogicalResult GateOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyFloat(*this, "a", getA())))
    return failure();
  int64_t rank = rankOf(getA());
  if (rank != 3 && rank != 4)
    return emitOpError("expects 'a' to be [B, T, Hv] or [B, T, Hv, K], but its "
                       "shape is ")
           << shapeToString(getA());
  if (failed(verifySameShape(*this, "out", getOut(), "a", getA())))
    return failure();
  for (int64_t dim = 2; dim < rank; ++dim) {
    StringRef sizeName = dim == 2 ? "number of heads" : "head size";
    if (failed(verifyStaticDim(*this, "a", getA(), dim, sizeName)) ||
        failed(verifyStaticDim(*this, "out", getOut(), dim, sizeName)))
      return failure();
  }
  if (failed(verifyRank(*this, "A_log", getALog(), 1)) ||
      failed(verifyDimSize(*this, "A_log", getALog(), 0, sizeOf(getA(), 2),
                           "Hv")) ||
      failed(verifyF32(*this, "A_log", getALog())) ||
      failed(verifyF32(*this, "out", getOut())))
    return failure();
  if (Value bias = getBias()) {
    if (failed(verifyRank(*this, "bias", bias, rank - 2)) ||
        failed(verifyF32(*this, "bias", bias)) ||
        failed(verifyDimSize(*this, "bias", bias, 0, sizeOf(getA(), 2), "Hv")))
      return failure();
    if (rank == 4 &&
        failed(verifyDimSize(*this, "bias", bias, 1, sizeOf(getA(), 3), "K")))
      return failure();
  }
  if (auto bound = getLowerBound()) {
    double value = bound->convertToDouble();
    if (!(value >= -5.0 && value < 0.0))
      return emitOpError("expects 'lower_bound' to lie in [-5, 0), but it is ")
             << value;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ShortConvOp
//===----------------------------------------------------------------------===//

// Without tokens the final state is the initial state.
static LogicalResult dropOpWithoutTokens(ShortConvOp op,
                                         PatternRewriter &rewriter) {
  if (sizeOf(op.getX(), 1) != 0 && sizeOf(op.getOut(), 1) != 0)
    return failure();
  replaceByDestinations(op, rewriter);
  return success();
}

void ShortConvOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add(dropOpWithoutTokens);
}

LogicalResult ShortConvOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyFloat(*this, "x", getX())) ||
      failed(verifyRank(*this, "x", getX(), 3)) ||
      failed(verifyStaticDim(*this, "x", getX(), 2, "channels D")) ||
      failed(verifySameShape(*this, "out", getOut(), "x", getX())) ||
      failed(verifyStaticDim(*this, "out", getOut(), 2, "channels D")) ||
      failed(verifyElementType(*this, "out", getOut(), "x", getX())) ||
      failed(verifyRank(*this, "w", getW(), 2)) ||
      failed(verifyF32Or(*this, "w", getW(), "x", getX())) ||
      failed(verifyDimSize(*this, "w", getW(), 0, sizeOf(getX(), 2), "D")) ||
      failed(verifyStaticDim(*this, "w", getW(), 1, "taps W")) ||
      failed(verifyRank(*this, "state", getState(), 3)) ||
      failed(verifyF32Or(*this, "state", getState(), "x", getX())) ||
      failed(
          verifyDimSize(*this, "state", getState(), 1, sizeOf(getX(), 2), "D")))
    return failure();
  if (Value bias = getBias())
    if (failed(verifyRank(*this, "bias", bias, 1)) ||
        failed(verifyF32Or(*this, "bias", bias, "x", getX())) ||
        failed(verifyDimSize(*this, "bias", bias, 0, sizeOf(getX(), 2), "D")))
      return failure();
  int64_t taps = sizeOf(getW(), 1), stored = sizeOf(getState(), 2);
  if (ShapedType::isDynamic(stored) || stored < taps - 1)
    return emitOpError("expects 'state' to hold a static number of at least "
                       "W - 1 = ")
           << taps - 1 << " inputs per channel, but its shape is "
           << shapeToString(getState());
  FailureOr<int64_t> batch =
      verifyEqualSizes(*this, "B", {{"x", getX(), 0}, {"out", getOut(), 0}});
  if (failed(batch))
    return failure();
  return verifySequences(*this, "state", getState(), getOffsets(), *batch);
}

//===----------------------------------------------------------------------===//
// GatedRMSNormOp
//===----------------------------------------------------------------------===//

LogicalResult GatedRMSNormOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyRows(*this, getX())))
    return failure();
  if (failed(verifyLikeRows(*this, "z", getZ(), getX())) ||
      failed(verifyLikeRows(*this, "out", getOut(), getX())) ||
      failed(verifySameShape(*this, "out", getOut(), "z", getZ())))
    return failure();
  if (failed(verifyRank(*this, "w", getW(), 1)) ||
      failed(verifyF32Or(*this, "w", getW(), "x", getX())) ||
      failed(verifyDimSize(*this, "w", getW(), 0,
                           sizeOf(getX(), rankOf(getX()) - 1), "V")))
    return failure();
  return verifyEps(*this, getEps());
}
