//===- RecurrencePlan.cpp - sizes and buffers of one recurrence -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

Value mlir::gdn::flattenBatchAndTime(ImplicitLocOpBuilder &b, Value value) {
  if (!value)
    return value;
  int64_t rank = cast<MemRefType>(value.getType()).getRank();
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  for (int64_t dim = 2; dim < rank; ++dim)
    groups.push_back({dim});
  return memref::CollapseShapeOp::create(b, value, groups);
}

static LogicalResult verifyTileForm(RecurrenceOp op) {
  if (!op.isBufferized())
    return op.emitOpError("has no tile form on tensors; bufferize first");
  if (!op.getSchedule())
    return op.emitOpError("has no schedule; run gdn-select-schedule first");
  for (Value operand : op->getOperands()) {
    bool isRead = llvm::is_contained(op.getDpsInputs(), operand) &&
                  cast<MemRefType>(operand.getType()).getRank() > 2 &&
                  operand != op.getInitialState();
    bool isWhole = getWhole(operand) == operand;
    if (!isWhole && (!isRead || !getWhole(operand)))
      return op.emitOpError("has no tile form for the strided operand ")
             << operand.getType();
  }
  if (op.getKeySize() > 256)
    return op.emitOpError("has no tile form for K = ")
           << op.getKeySize() << " key channels; the limit is 256";
  return success();
}

FailureOr<RecurrencePlan> mlir::gdn::planRecurrence(RecurrenceOp op) {
  if (failed(verifyTileForm(op)))
    return failure();
  RecurrencePlan plan;
  plan.op = op;
  plan.gateKind = op.hasChannelGate() ? GateKind::Channel
                  : op.getGate()      ? GateKind::Head
                                      : GateKind::None;
  plan.isDelta = op.isDelta();
  plan.hasErase = static_cast<bool>(op.getErase());
  plan.isKFirst = op.isKFirst();
  ScheduleAttr schedule = *op.getSchedule();
  plan.chunk = schedule.getChunk();
  plan.valueBlock = schedule.getValueBlock();
  plan.stages = schedule.getStages();
  plan.segments = schedule.getSegments();
  plan.segmentChunks = schedule.getSegmentChunks();
  plan.warps = schedule.getWarps();
  plan.streaming = schedule.getStreaming();
  plan.keyHeads = op.getNumKeyHeads();
  plan.valueHeads = op.getNumValueHeads();
  plan.group = op.getGroupSize();
  plan.keySize = op.getKeySize();
  plan.valueSize = op.getValueSize();
  plan.keyPad = llvm::alignTo(plan.keySize, 16);
  plan.type = op.getQType().getElementType();
  plan.inverseParts = plan.type.isF32() ? 1 : 2;

  ImplicitLocOpBuilder b(op.getLoc(), op);
  plan.length = b.createOrFold<memref::DimOp>(op.getQ(), 1);
  plan.sequences = b.createOrFold<memref::DimOp>(
      op.getSlots() ? op.getSlots() : op.getInitialState(), 0);
  for (auto [flat, value] : {std::pair<Value *, Value>{&plan.q, op.getQ()},
                             {&plan.k, op.getK()},
                             {&plan.v, op.getV()},
                             {&plan.gate, op.getGate()},
                             {&plan.beta, op.getBeta()},
                             {&plan.erase, op.getErase()},
                             {&plan.write, op.getWrite()},
                             {&plan.out, op.getOut()},
                             {&plan.checkpoints, op.getCheckpoints()}})
    *flat = flattenBatchAndTime(b, value ? getWhole(value) : value);
  plan.offsets = op.getOffsets();
  plan.entries = op.getSlots();
  plan.state = op.getInitialState();
  plan.updatesState = static_cast<bool>(op.getState());
  plan.every = op.getCheckpointDistance();
  return plan;
}

void mlir::gdn::allocateWorkspaces(RecurrencePlan &plan) {
  ImplicitLocOpBuilder b(plan.op.getLoc(), plan.op);
  plan.slots = plan.getSequences().countSlots(b);
  auto allocate = [&](ArrayRef<int64_t> inner, Type type) -> Value {
    SmallVector<int64_t> shape = {ShapedType::kDynamic, plan.valueHeads};
    shape.append(inner.begin(), inner.end());
    return memref::AllocOp::create(b, MemRefType::get(shape, type),
                                   ValueRange{plan.slots});
  };
  int64_t c = plan.chunk;
  plan.scores = allocate({c, c}, plan.type);
  if (plan.isDelta)
    plan.inverse = allocate({plan.inverseParts, c, c}, plan.type);
  if (plan.gateKind == GateKind::Head)
    plan.gates = allocate({kGateRows * c}, b.getF32Type());
  if (plan.gateKind == GateKind::Channel) {
    plan.decayedQ = allocate({c, plan.keySize}, plan.type);
    plan.restK = allocate({c, plan.keySize}, plan.type);
    plan.decay = allocate({plan.keySize}, b.getF32Type());
  }
  if (plan.isDelta && (plan.gateKind == GateKind::Channel || plan.hasErase))
    plan.decayedK = allocate({c, plan.keySize}, plan.type);
  if (plan.segments == 0)
    return;
  Value least = arith::ConstantIndexOp::create(b, plan.segmentChunks);
  Value segments = arith::ConstantIndexOp::create(b, plan.segments);
  Value share = b.createOrFold<arith::CeilDivUIOp>(plan.slots, segments);
  plan.chunksOfSegment = b.createOrFold<arith::MaxUIOp>(least, share);
  // Known to be one segment each: split.
  if (isConstantIntValue(plan.getSegments().boundariesOfEach(b), 0)) {
    plan.chunksOfSegment = Value();
    return;
  }
  plan.boundaryStates = memref::AllocOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, 2, plan.valueHeads,
                       std::max(plan.valueSize, plan.keySize), plan.keySize},
                      b.getF32Type()),
      ValueRange{plan.getSegments().countBoundaries(b)});
}
