//===- RecurrenceOp.cpp - gdn.recurrence ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpVerification.h"

#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

double RecurrenceOp::getScaleValue() {
  if (auto scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(getKeySize()));
}

static LogicalResult verifyHeads(RecurrenceOp op) {
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", op.getQ()},
                             {"k", op.getK()},
                             {"v", op.getV()},
                             {"out", op.getOut()},
                             {"state", op.getState()}})
    if (failed(verifyRank(op, name, value, 4)) ||
        failed(verifyFloat(op, name, value)))
      return failure();
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", op.getQ()},
                             {"k", op.getK()},
                             {"v", op.getV()},
                             {"out", op.getOut()}})
    if (failed(verifyStaticDim(op, name, value, 2, "number of heads")) ||
        failed(verifyStaticDim(op, name, value, 3, "head size")))
      return failure();
  if (failed(verifySameShape(op, "k", op.getK(), "q", op.getQ())) ||
      failed(verifySameShape(op, "out", op.getOut(), "v", op.getV())))
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

// Checks everything but B and T: dimension Hv and the last one, if any.
static LogicalResult verifyFactor(RecurrenceOp op, StringRef name, Value value,
                                  int64_t rank, int64_t last,
                                  StringRef lastName) {
  if (failed(verifyRank(op, name, value, rank)) ||
      failed(verifyF32Or(op, name, value, "q", op.getQ())) ||
      failed(verifyDimSize(op, name, value, 2, op.getNumValueHeads(), "Hv")))
    return failure();
  return success(rank < 4 ||
                 succeeded(verifyDimSize(op, name, value, 3, last, lastName)));
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

// Checks that all operands have one B and one T; returns B.
static FailureOr<int64_t> verifyBatchAndTime(RecurrenceOp op) {
  SmallVector<NamedDim> batch, time;
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", op.getQ()},
                             {"k", op.getK()},
                             {"v", op.getV()},
                             {"gate", op.getGate()},
                             {"beta", op.getBeta()},
                             {"erase", op.getErase()},
                             {"write", op.getWrite()},
                             {"out", op.getOut()}})
    if (value) {
      batch.push_back({name, value, 0});
      time.push_back({name, value, 1});
    }
  if (failed(verifyEqualSizes(op, "T", time)))
    return failure();
  return verifyEqualSizes(op, "B", batch);
}

LogicalResult RecurrenceOp::verify() {
  if (failed(verifyDestinationStyle(*this)) || failed(verifyHeads(*this)) ||
      failed(verifyGateAndBeta(*this)))
    return failure();
  FailureOr<int64_t> batch = verifyBatchAndTime(*this);
  if (failed(batch))
    return failure();
  int64_t rows = isKFirst() ? getKeySize() : getValueSize();
  int64_t cols = isKFirst() ? getValueSize() : getKeySize();
  if (getSlots() && failed(verifyIntegers(*this, "slots", getSlots())))
    return failure();
  // The pool that slots index has any number of entries.
  StringRef perSequence = getSlots() ? "slots" : "state";
  if (failed(verifySequences(*this, perSequence,
                             getSlots() ? getSlots() : getState(), getOffsets(),
                             *batch)) ||
      failed(verifyDimSize(*this, "state", getState(), 1, getNumValueHeads(),
                           "Hv")) ||
      failed(verifyDimSize(*this, "state", getState(), 2, rows,
                           isKFirst() ? "K (k_first)" : "V (v_first)")) ||
      failed(verifyDimSize(*this, "state", getState(), 3, cols,
                           isKFirst() ? "V (k_first)" : "K (v_first)")))
    return failure();
  if (auto scale = getScale())
    return verifyFinite(*this, "scale", *scale);
  return success();
}

// A gate of zeros does not decay.
static LogicalResult dropZeroGate(RecurrenceOp op, PatternRewriter &rewriter) {
  if (!op.getGate() || !isZero(op.getGate()))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getGateMutable().clear(); });
  return success();
}

// Without tokens the final state is the initial state.
static LogicalResult dropOpWithoutTokens(RecurrenceOp op,
                                         PatternRewriter &rewriter) {
  auto hasNoTokens = [](Value value) {
    return cast<ShapedType>(value.getType()).getDimSize(1) == 0;
  };
  if (llvm::none_of(ValueRange{op.getQ(), op.getK(), op.getV(), op.getOut()},
                    hasNoTokens))
    return failure();
  replaceByDestinations(op, rewriter);
  return success();
}

void RecurrenceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add(dropZeroGate);
  patterns.add(dropOpWithoutTokens);
}
