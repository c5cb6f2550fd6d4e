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

/// The operand that holds the initial state.
static StringRef stateName(RecurrenceOp op) {
  return op.getState() ? "state" : "initial";
}

static LogicalResult verifyHeads(RecurrenceOp op) {
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", op.getQ()},
                             {"k", op.getK()},
                             {"v", op.getV()},
                             {"out", op.getOut()},
                             {stateName(op), op.getInitialState()}})
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
  if (failed(verifyElementType(op, "k", op.getK(), "q", op.getQ())) ||
      failed(verifyElementType(op, "v", op.getV(), "q", op.getQ())) ||
      failed(verifyF32Or(op, "out", op.getOut(), "q", op.getQ())))
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

namespace {
/// B and T, or the dynamic size.
struct BatchAndTime {
  int64_t batch, time;
};
} // namespace

// Checks that all operands have one B and one T; returns them.
static FailureOr<BatchAndTime> verifyBatchAndTime(RecurrenceOp op) {
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
  FailureOr<int64_t> tokens = verifyEqualSizes(op, "T", time);
  if (failed(tokens))
    return failure();
  FailureOr<int64_t> rows = verifyEqualSizes(op, "B", batch);
  if (failed(rows))
    return failure();
  return BatchAndTime{*rows, *tokens};
}

// Checks Hv and the matrix of a state, the last three dimensions of `value`.
static LogicalResult verifyMatrices(RecurrenceOp op, StringRef name,
                                    Value value) {
  int64_t rows = op.isKFirst() ? op.getKeySize() : op.getValueSize();
  int64_t cols = op.isKFirst() ? op.getValueSize() : op.getKeySize();
  int64_t dim = rankOf(value) - 3;
  if (failed(
          verifyDimSize(op, name, value, dim, op.getNumValueHeads(), "Hv")) ||
      failed(verifyDimSize(op, name, value, dim + 1, rows,
                           op.isKFirst() ? "K (k_first)" : "V (v_first)")))
    return failure();
  return verifyDimSize(op, name, value, dim + 2, cols,
                       op.isKFirst() ? "V (k_first)" : "K (v_first)");
}

static LogicalResult verifyStates(RecurrenceOp op, int64_t batch) {
  if (op.getSlots() && failed(verifyIntegers(op, "slots", op.getSlots())))
    return failure();
  // The pool that slots index has any number of entries.
  StringRef perSequence = op.getSlots() ? "slots" : stateName(op);
  Value counted = op.getSlots() ? op.getSlots() : op.getInitialState();
  if (failed(verifySequences(op, perSequence, counted, op.getOffsets(), batch)))
    return failure();
  return verifyMatrices(op, stateName(op), op.getInitialState());
}

static LogicalResult verifyCheckpoints(RecurrenceOp op, int64_t batch,
                                       int64_t tokens) {
  Value checkpoints = op.getCheckpoints();
  if (!checkpoints && !op.getEvery())
    return success();
  if (!checkpoints || !op.getEvery())
    return op.emitOpError("expects 'checkpoints' and 'every' together, but has "
                          "only '")
           << (checkpoints ? "checkpoints" : "every") << "'";
  int64_t every = op.getCheckpointDistance();
  if (every < 1)
    return op.emitOpError("expects 'every' to be at least 1 token, but it is ")
           << every;
  if (failed(verifyRank(op, "checkpoints", checkpoints, 5)) ||
      failed(verifyFloat(op, "checkpoints", checkpoints)))
    return failure();
  int64_t size = sizeOf(checkpoints, 0), count = sizeOf(checkpoints, 1);
  if (!ShapedType::isDynamic(batch) && !ShapedType::isDynamic(size) &&
      size != batch)
    return verifyDimSize(op, "checkpoints", checkpoints, 0, batch, "B");
  if (!ShapedType::isDynamic(tokens) && !ShapedType::isDynamic(count) &&
      count != tokens / every)
    return verifyDimSize(op, "checkpoints", checkpoints, 1, tokens / every,
                         "T / every");
  return verifyMatrices(op, "checkpoints", checkpoints);
}

LogicalResult RecurrenceOp::verify() {
  if (!getState() == !getInitial())
    return emitOpError("expects the initial state either as the destination "
                       "'state' or as 'initial', but has ")
           << (getState() ? "both" : "neither");
  if (failed(verifyDestinationStyle(*this)) || failed(verifyHeads(*this)) ||
      failed(verifyGateAndBeta(*this)))
    return failure();
  FailureOr<BatchAndTime> sizes = verifyBatchAndTime(*this);
  if (failed(sizes) || failed(verifyStates(*this, sizes->batch)) ||
      failed(verifyCheckpoints(*this, sizes->batch, sizes->time)))
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
