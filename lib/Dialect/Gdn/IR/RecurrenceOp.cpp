//===- RecurrenceOp.cpp - gdn.recurrence ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpVerification.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

double RecurrenceOp::getScaleValue() {
  if (auto scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(getKeySize()));
}

static LogicalResult verifySequences(RecurrenceOp op) {
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", op.getQ()},
                             {"k", op.getK()},
                             {"v", op.getV()},
                             {"out", op.getOut()},
                             {"state", op.getState()}})
    if (failed(verifyRank(op, name, value, 4)) ||
        failed(verifyFloat(op, name, value)))
      return failure();
  for (auto [name, value] :
       {std::pair<StringRef, Value>{"q", op.getQ()}, {"v", op.getV()}})
    if (failed(verifyStaticDim(op, name, value, 2, "number of heads")) ||
        failed(verifyStaticDim(op, name, value, 3, "head size")))
      return failure();
  if (failed(verifySameShape(op, "k", op.getK(), "q", op.getQ())) ||
      failed(verifySameShape(op, "out", op.getOut(), "v", op.getV())) ||
      failed(verifyDimSize(op, "v", op.getV(), 0, op.getQType().getDimSize(0),
                           "B")) ||
      failed(verifyDimSize(op, "v", op.getV(), 1, op.getQType().getDimSize(1),
                           "T")))
    return failure();
  for (auto [name, value] : {std::pair<StringRef, Value>{"k", op.getK()},
                             {"v", op.getV()},
                             {"out", op.getOut()}})
    if (failed(verifyElementType(op, name, value, "q", op.getQ())))
      return failure();
  if (op.getNumValueHeads() % op.getNumKeyHeads() != 0)
    return op.emitOpError()
           << "expects the number of value heads (" << op.getNumValueHeads()
           << ") to be a multiple of the number of key heads ("
           << op.getNumKeyHeads() << ")";
  return success();
}

// Checks the first three dimensions [B, T, Hv] and the last one, if any.
static LogicalResult verifyFactor(RecurrenceOp op, StringRef name, Value value,
                                  int64_t rank, int64_t last,
                                  StringRef lastName) {
  if (failed(verifyRank(op, name, value, rank)) ||
      failed(verifyF32Or(op, name, value, "q", op.getQ())) ||
      failed(verifyDimSize(op, name, value, 0, op.getVType().getDimSize(0),
                           "B")) ||
      failed(verifyDimSize(op, name, value, 1, op.getVType().getDimSize(1),
                           "T")) ||
      failed(verifyDimSize(op, name, value, 2, op.getNumValueHeads(), "Hv")))
    return failure();
  if (cast<ShapedType>(value.getType()).isDynamicDim(2))
    return verifyStaticDim(op, name, value, 2, "number of heads");
  if (rank < 4)
    return success();
  if (failed(verifyDimSize(op, name, value, 3, last, lastName)))
    return failure();
  return verifyStaticDim(op, name, value, 3, lastName);
}

static LogicalResult verifyGateAndBeta(RecurrenceOp op) {
  if (Value gate = op.getGate()) {
    int64_t rank = cast<ShapedType>(gate.getType()).getRank();
    if (rank != 3 && rank != 4)
      return op.emitOpError() << "expects 'gate' to be [B, T, Hv] or [B, T, "
                                 "Hv, K], but its shape is "
                              << shapeToString(gate);
    if (failed(verifyFactor(op, "gate", gate, rank, op.getKeySize(), "K")))
      return failure();
  }
  if (Value beta = op.getBeta())
    if (failed(verifyFactor(op, "beta", beta, 3, 0, "")))
      return failure();
  if (!op.getErase() != !op.getWrite())
    return op.emitOpError("expects 'erase' and 'write' together, but has only "
                          "'")
           << (op.getErase() ? "erase" : "write") << "'";
  if (!op.getErase())
    return success();
  if (op.getBeta())
    return op.emitOpError(
        "expects either 'beta' or 'erase' and 'write', but has both");
  if (failed(verifyFactor(op, "erase", op.getErase(), 4, op.getKeySize(), "K")))
    return failure();
  return verifyFactor(op, "write", op.getWrite(), 4, op.getValueSize(), "V");
}

LogicalResult RecurrenceOp::verify() {
  if (failed(verifyDestinationStyle(*this)) || failed(verifySequences(*this)) ||
      failed(verifyGateAndBeta(*this)))
    return failure();
  if (getOffsets() && failed(verifyOffsets(*this, getOffsets(), "q", getQ())))
    return failure();
  int64_t rows = isKFirst() ? getKeySize() : getValueSize();
  int64_t cols = isKFirst() ? getValueSize() : getKeySize();
  if (failed(verifyNumSequences(*this, getState(), getOffsets(), getQ())) ||
      failed(verifyDimSize(*this, "state", getState(), 1, getNumValueHeads(),
                           "Hv")) ||
      failed(verifyDimSize(*this, "state", getState(), 2, rows,
                           isKFirst() ? "K (k_first)" : "V (v_first)")) ||
      failed(verifyDimSize(*this, "state", getState(), 3, cols,
                           isKFirst() ? "V (k_first)" : "K (v_first)")))
    return failure();
  for (int64_t dim = 1; dim < 4; ++dim)
    if (failed(verifyStaticDim(*this, "state", getState(), dim, "size")))
      return failure();
  return success();
}

void RecurrenceOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  getDestinationStyleEffects(*this, effects);
}

LogicalResult RecurrenceOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  return reifyDestinationShapes(builder, *this, reifiedReturnShapes);
}

namespace {

/// A gate of zeros does not decay: drop it.
struct DropZeroGate : OpRewritePattern<RecurrenceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RecurrenceOp op,
                                PatternRewriter &rewriter) const override {
    DenseFPElementsAttr values;
    if (!op.getGate() || !matchPattern(op.getGate(), m_Constant(&values)) ||
        !values.isSplat() || !values.getSplatValue<APFloat>().isZero())
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getGateMutable().clear(); });
    return success();
  }
};

} // namespace

void RecurrenceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<DropZeroGate>(context);
}
