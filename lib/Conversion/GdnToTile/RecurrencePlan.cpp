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

// A sequence of fewer segments is not cut: two of them cost more than they
// save.
constexpr int64_t kLeastSegments = 3;

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
  if (!op.isScheduled())
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
  plan.overlap = schedule.getOverlap();
  plan.isFused = schedule.getPhases() == Phases::Fused;
  plan.wideFrom = schedule.getWideFrom();
  plan.scoresAhead = schedule.getScoresAhead();
  plan.residentFrom = schedule.getResidentFrom();
  plan.keyHeads = op.getNumKeyHeads();
  plan.valueHeads = op.getNumValueHeads();
  plan.group = op.getGroupSize();
  plan.keySize = op.getKeySize();
  plan.valueSize = op.getValueSize();
  plan.keyPad = llvm::alignTo(plan.keySize, 16);
  plan.type = op.getQType().getElementType();
  plan.outType = cast<ShapedType>(op.getOut().getType()).getElementType();
  plan.isHigh = schedule.isHigh() && !plan.type.isF32();
  bool hasChannels = plan.gateKind == GateKind::Channel;
  plan.isPackedInverse = !plan.type.isF32() && (hasChannels || !plan.hasErase);
  plan.isPackedScores = plan.isPackedInverse && !hasChannels;
  plan.parts = plan.isHigh ? 2 : 1;
  plan.inverseParts = plan.type.isF32() ? 1 : 2;
  // erase leaves beta nothing to do.
  plan.isUnit =
      plan.isDelta && !plan.hasErase && !plan.type.isF32() && !plan.isHigh;

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

SmallVector<Value> mlir::gdn::partOf(KernelBuilder &k, Value slot, Value head,
                                     int64_t part, int64_t parts) {
  SmallVector<Value> indices{slot, head};
  if (parts > 1)
    indices.push_back(k.index(part));
  return indices;
}

// Of the host. Conditions are 0 or 1: the manifest of a launch has sums,
// products, quotients, least and greatest values.
namespace {
class SegmentLengths {
public:
  SegmentLengths(const RecurrencePlan &plan, ImplicitLocOpBuilder &b)
      : plan(plan), b(b) {
    one = constant(1);
    later = div(constant(std::max<int64_t>(plan.segments - 1, 0)),
                max(plan.sequences, one));
    isFew = isAtLeast(later, constant(kLeastSegments - 1));
    chunks = max(ceilDiv(plan.length, constant(plan.chunk)), one);
    least = constant(kLeastChunks * plan.segmentChunks);
  }

  /// L of dense sequences.
  Value countChunks();
  /// Tokens for a boundary of packed sequences.
  Value countSpacing();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return b.createOrFold<arith::DivUIOp>(x, y); }
  Value max(Value x, Value y) { return b.createOrFold<arith::MaxUIOp>(x, y); }
  Value min(Value x, Value y) { return b.createOrFold<arith::MinUIOp>(x, y); }
  Value ceilDiv(Value x, Value y) {
    return b.createOrFold<arith::CeilDivUIOp>(x, y);
  }
  Value isAtLeast(Value x, Value y) { return min(div(x, y), one); }
  Value isNot(Value x) { return sub(one, x); }

  const RecurrencePlan &plan;
  ImplicitLocOpBuilder &b;
  /// Segments behind the first of a sequence, and whether they are enough;
  /// chunks of a dense sequence, or of all packed ones; chunks of the longest
  /// sequence that stays whole.
  Value one, later, isFew, chunks, least;
};
} // namespace

// As the schedule's description has it.
Value SegmentLengths::countChunks() {
  auto [always, chunksPerOne] = plan.getExtraChunks();
  Value perOne = constant(chunksPerOne), more = constant(always);
  // The first one counts as more than one piece.
  Value shares = add(mul(add(later, one), perOne), one);
  Value shared = sub(max(chunks, add(more, one)), more);
  Value each =
      max(ceilDiv(mul(shared, perOne), shares), constant(plan.segmentChunks));
  Value three = add(mul(each, constant(kLeastSegments - 1)),
                    add(ceilDiv(each, perOne), more));
  Value isLong = isAtLeast(sub(chunks, one), max(three, least));
  // Of few segments each has to gain more.
  Value inner = sub(max(later, constant(kLeastSegments - 1)), one);
  Value gains = isAtLeast(mul(chunks, inner),
                          constant(kLeastGain * (plan.segmentChunks - 1) + 1));
  // More than there are: without a place for a boundary.
  return max(each,
             mul(isNot(min(isFew, min(isLong, gains))), add(chunks, one)));
}

// More tokens than there are where nothing is cut.
Value SegmentLengths::countSpacing() {
  Value places = constant(std::max<int64_t>(plan.segments - 1, 1));
  Value each = max(ceilDiv(plan.length, places), one);
  // Of several, one has to be long for what is launched for it.
  Value several = min(max(plan.sequences, one), constant(2));
  Value isLong = isAtLeast(sub(chunks, one), mul(several, least));
  return max(each, mul(isNot(min(isFew, isLong)), add(plan.length, one)));
}

Value RecurrencePlan::isWide(ImplicitLocOpBuilder &b, Value count,
                             int64_t each) const {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value blocks = b.createOrFold<arith::MulIOp>(count, index(each));
  Value times = b.createOrFold<arith::DivUIOp>(blocks, index(wideFrom));
  return b.createOrFold<arith::MinUIOp>(times, index(1));
}

Value RecurrencePlan::areLong(ImplicitLocOpBuilder &b) const {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  // Raw inputs would need tiles more that pass from role to role.
  if (!residentFrom || !inputs.getOps().empty())
    return index(0);
  Value least = index(residentFrom * chunk);
  if (offsets)
    least = b.createOrFold<arith::MulIOp>(
        b.createOrFold<arith::MaxUIOp>(sequences, index(1)), least);
  Value times = b.createOrFold<arith::DivUIOp>(length, least);
  return b.createOrFold<arith::MinUIOp>(times, index(1));
}

void RecurrencePlan::takeInputs(const RecurrenceInputs &taken) {
  inputs = taken;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto take = [&](Value &operand, Value source) {
    operand = flattenBatchAndTime(b, getWhole(source));
  };
  normalises = static_cast<bool>(inputs.kNorm);
  if (normalises) {
    take(q, inputs.qNorm.getX());
    take(k, inputs.kNorm.getX());
  }
  if (inputs.makesGate())
    take(gate, inputs.gate ? inputs.gate.getA()
                           : inputs.gateMap.getDpsInputs().front());
  if (inputs.betaMap)
    take(beta, inputs.betaMap.getDpsInputs().front());
}

bool RecurrencePlan::hasGateRow(GateRow row) const {
  // Copies with decays are normalised themselves.
  bool hasFactors = normalises && gateKind != GateKind::Channel;
  if (row == kDecay)
    return hasFactors;
  if (row == kSums)
    return scoresAhead && gateKind == GateKind::Head;
  if (row == kQueries)
    return scalesOutput();
  if (gateKind == GateKind::Head || hasFactors)
    return row != kBeta || isUnit;
  return row == kRest && isUnit;
}

int64_t RecurrencePlan::getGateRow(GateRow row) const {
  int64_t size = 0;
  for (int64_t before = 0; before < row; ++before)
    if (hasGateRow(static_cast<GateRow>(before)))
      size += before == kDecay ? kFlagSize : chunk;
  return size;
}

// Of `places` those whose blocks have twice as many rows: all, if those that
// hold anything, at most `most`, give `wideFrom` blocks or more; or none.
static Value countWide(RecurrencePlan &plan, ImplicitLocOpBuilder &b,
                       Value places, Value most) {
  if (!plan.wideFrom || plan.valueSize <= plan.valueBlock)
    return arith::ConstantIndexOp::create(b, 0);
  Value isWide = plan.isWide(b, most, plan.valueHeads * plan.getValueBlocks());
  return b.createOrFold<arith::MulIOp>(places, isWide);
}

void mlir::gdn::planScans(RecurrencePlan &plan) {
  ImplicitLocOpBuilder b(plan.op.getLoc(), plan.op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  if (plan.segments != 0) {
    SegmentLengths lengths(plan, b);
    if (plan.offsets)
      plan.boundarySpacing = lengths.countSpacing();
    else
      plan.chunksOfSegment = lengths.countChunks();
  }
  if (plan.isCut() && plan.wideFrom && plan.walksInScan()) {
    // Whole: more than there are.
    Value isWide =
        plan.isWide(b, plan.sequences, plan.valueHeads * plan.getValueBlocks());
    Value more = b.createOrFold<arith::AddIOp>(plan.length, constant(1));
    Value least = b.createOrFold<arith::MulIOp>(isWide, more);
    for (Value *length : {&plan.boundarySpacing, &plan.chunksOfSegment})
      if (*length)
        *length = b.createOrFold<arith::MaxUIOp>(*length, least);
  }
  // Known to be one segment each: split.
  if (plan.isCut() &&
      isConstantIntValue(plan.getSegments().boundariesOfEach(b), 0))
    plan.chunksOfSegment = plan.boundarySpacing = Value();
  Value first = plan.sequences;
  Value later =
      plan.isCut() ? plan.getSegments().countBoundaries(b) : constant(0);
  Value most = b.createOrFold<arith::MinUIOp>(
      later, constant(std::max<int64_t>(plan.segments - 1, 0)));
  ScanPlaces &places = plan.places;
  places.wideFirst = countWide(plan, b, first, first);
  places.wideLater =
      plan.walksInScan() ? constant(0) : countWide(plan, b, later, most);
  places.usualFirst = b.createOrFold<arith::SubIOp>(first, places.wideFirst);
  places.usualLater = b.createOrFold<arith::SubIOp>(later, places.wideLater);
  // Where anything is cut P is made in any case: whether a later scan reads it
  // is a long expression of the sizes, for schedules that nobody selects.
  if (!plan.scoresAhead)
    plan.needsScores = constant(1);
  else if (plan.valueBlock == kAheadRows)
    plan.needsScores = constant(0);
  else
    plan.needsScores = b.createOrFold<arith::MinUIOp>(
        b.createOrFold<arith::AddIOp>(places.usualFirst, later), constant(1));
}

void mlir::gdn::allocateWorkspaces(RecurrencePlan &plan) {
  ImplicitLocOpBuilder b(plan.op.getLoc(), plan.op);
  plan.slots = plan.getSequences().countSlots(b);
  Value count = plan.slots;
  auto allocate = [&](ArrayRef<int64_t> inner, Type type) -> Value {
    SmallVector<int64_t> shape = {ShapedType::kDynamic, plan.valueHeads};
    shape.append(inner.begin(), inner.end());
    return memref::AllocOp::create(b, MemRefType::get(shape, type),
                                   ValueRange{count});
  };
  auto allocateParts = [&](int64_t rows, int64_t cols) -> Value {
    if (plan.parts == 1)
      return allocate({rows, cols}, plan.type);
    return allocate({plan.parts, rows, cols}, plan.type);
  };
  int64_t c = plan.chunk;
  auto getShape = [&](bool isPacked) {
    return isPacked ? gdn_tile::getLowerShape(c) : SmallVector<int64_t>{c, c};
  };
  SmallVector<int64_t> scores = getShape(plan.isPackedScores);
  SmallVector<int64_t> inverse = getShape(plan.isPackedInverse);
  if (!isConstantIntValue(plan.needsScores, 0)) {
    count = b.createOrFold<arith::MulIOp>(plan.slots, plan.needsScores);
    plan.scores = allocateParts(scores[0], scores[1]);
    count = plan.slots;
  }
  if (plan.isDelta)
    plan.inverse =
        allocate({plan.inverseParts, inverse[0], inverse[1]}, plan.type);
  if (int64_t size = plan.getGatesSize())
    plan.gates = allocate({size}, b.getF32Type());
  if (plan.gateKind == GateKind::Channel) {
    plan.decayedQ = allocateParts(c, plan.keySize);
    plan.restK = allocateParts(c, plan.keySize);
    plan.decay = allocate({plan.keySize}, b.getF32Type());
  }
  if (plan.isDelta && (plan.gateKind == GateKind::Channel || plan.hasErase))
    plan.decayedK = allocateParts(c, plan.keySize);
  if (!plan.isCut())
    return;
  Value boundaries = plan.getSegments().countBoundaries(b);
  auto allocateAtBoundaries = [&](ArrayRef<int64_t> inner, Type type) -> Value {
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    shape.append(inner.begin(), inner.end());
    return memref::AllocOp::create(b, MemRefType::get(shape, type),
                                   ValueRange{boundaries});
  };
  int64_t heads = plan.valueHeads, keys = plan.keySize, values = plan.valueSize;
  if (!plan.splitsTransitions()) {
    plan.boundaryStates = allocateAtBoundaries(
        {2, heads, std::max(values, keys), keys}, b.getF32Type());
    return;
  }
  plan.boundaryStates =
      allocateAtBoundaries({1, heads, values, keys}, b.getF32Type());
  plan.localStates =
      allocateAtBoundaries({heads, values, keys}, b.getF32Type());
  plan.transitions = allocateAtBoundaries({kTransitionParts, heads, keys, keys},
                                          b.getBF16Type());
}
