//===- RecurrenceTiling.cpp - TilingInterface of gdn.recurrence -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// The loops of the iteration domain.
enum Loop { Sequence = 0, Head = 1, Channel = 2, Time = 3 };

struct Interval {
  OpFoldResult offset, size;
};

/// A tile of the iteration domain in coordinates of the operands.
struct Tile {
  Interval batch, time, keyHead, head, channel; // of q, k, v, ...
  Interval sequence;                            // of slots
  Interval entry;                               // of the state
  Interval checkpoint;                          // times of the checkpoints
  Value offsets, slots;                         // operands of the tile, or null
};

} // namespace

static Interval whole(OpBuilder &b, int64_t size) {
  return {b.getIndexAttr(0), b.getIndexAttr(size)};
}

static bool isDimOf(Value size, Value value, int64_t dim) {
  // The dimension of a slice folds to the size in the slice.
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (slice && slice.getDroppedDims().none() &&
      slice.getMixedSizes()[dim] == OpFoldResult(size))
    return true;
  auto dimOp = size.getDefiningOp<tensor::DimOp>();
  return dimOp && dimOp.getSource() == value && dimOp.getConstantIndex() == dim;
}

/// N as a function of the number of offsets.
static AffineMap numSequencesMap(MLIRContext *context) {
  return AffineMap::get(1, 0, getAffineDimExpr(0, context) - 1);
}

/// N, counted on inputs: tiling replaces the destinations.
static OpFoldResult getSequences(OpBuilder &b, RecurrenceOp op) {
  Location loc = op.getLoc();
  if (!ShapedType::isDynamic(op.getNumSequences()))
    return b.getIndexAttr(op.getNumSequences());
  if (op.getSlots())
    return tensor::getMixedSize(b, loc, op.getSlots(), 0);
  if (!op.getOffsets())
    return tensor::getMixedSize(b, loc, op.getQ(), 0);
  return affine::makeComposedFoldedAffineApply(
      b, loc, numSequencesMap(b.getContext()),
      {tensor::getMixedSize(b, loc, op.getOffsets(), 0)});
}

/// True if `interval` is known to be all of T.
static bool isAllTime(Interval interval, RecurrenceOp op) {
  if (!isConstantIntValue(interval.offset, 0))
    return false;
  int64_t size = op.getQType().getDimSize(1);
  if (!ShapedType::isDynamic(size))
    return isConstantIntValue(interval.size, size);
  auto value = dyn_cast<Value>(interval.size);
  return value && isDimOf(value, op.getQ(), 1);
}

/// True if `interval` is known to be all of N, of an op with offsets or slots.
static bool isAllSequences(Interval interval, RecurrenceOp op) {
  if (!isConstantIntValue(interval.offset, 0))
    return false;
  int64_t size = op.getNumSequences();
  if (!ShapedType::isDynamic(size))
    return isConstantIntValue(interval.size, size);
  auto value = dyn_cast<Value>(interval.size);
  if (value && op.getSlots())
    return isDimOf(value, op.getSlots(), 0);
  auto apply = value ? value.getDefiningOp<affine::AffineApplyOp>()
                     : affine::AffineApplyOp();
  if (!apply || apply.getMapOperands().size() != 1)
    return false;
  AffineExpr operand = apply.getAffineMap().getNumDims() == 1
                           ? getAffineDimExpr(0, op.getContext())
                           : getAffineSymbolExpr(0, op.getContext());
  return apply.getAffineMap().getResult(0) == operand - 1 &&
         isDimOf(apply.getMapOperands().front(), op.getOffsets(), 0);
}

/// offsets[index] as an index value.
static Value loadOffset(OpBuilder &b, Location loc, Value offsets,
                        OpFoldResult index) {
  Value position = getValueOrCreateConstantIndexOp(b, loc, index);
  Value offset =
      tensor::ExtractOp::create(b, loc, offsets, ValueRange{position});
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), offset);
}

/// Time and batch of a tile of packed sequences: one sequence or all.
static LogicalResult resolvePacked(RecurrenceOp op, OpBuilder &b, Tile &tile) {
  Location loc = op.getLoc();
  tile.batch = whole(b, 1);
  if (!isAllTime(tile.time, op))
    return op.emitOpError("cannot be tiled along time while it has 'offsets': "
                          "tile the sequences by 1 first");
  if (isConstantIntValue(tile.sequence.size, 1)) {
    if (op.getNumSequences() == 1)
      return success();
    AffineExpr d0, d1;
    bindDims(b.getContext(), d0, d1);
    OpFoldResult next = affine::makeComposedFoldedAffineApply(
        b, loc, d0 + 1, {tile.sequence.offset});
    Value start = loadOffset(b, loc, op.getOffsets(), tile.sequence.offset);
    Value end = loadOffset(b, loc, op.getOffsets(), next);
    tile.time = {start, affine::makeComposedFoldedAffineApply(
                            b, loc, d1 - d0, {OpFoldResult(start), end})};
    return success();
  }
  if (!isAllSequences(tile.sequence, op))
    return op.emitOpError("cannot be tiled by several sequences while it has "
                          "'offsets': the tile size must be 1 or all");
  tile.offsets = op.getOffsets();
  return success();
}

/// The pool of a tile: all entries, or that of its one sequence. A sequence
/// without a state takes none, so that tiles write disjoint parts.
static LogicalResult resolveSlots(RecurrenceOp op, OpBuilder &b, Tile &tile) {
  Location loc = op.getLoc();
  if (isAllSequences(tile.sequence, op)) {
    tile.slots = op.getSlots();
    tile.entry = {b.getIndexAttr(0),
                  tensor::getMixedSize(b, loc, op.getInitialState(), 0)};
    return success();
  }
  if (!isConstantIntValue(tile.sequence.size, 1))
    return op.emitOpError("cannot be tiled by several sequences while it has "
                          "'slots': the tile size must be 1 or all");
  Value position =
      getValueOrCreateConstantIndexOp(b, loc, tile.sequence.offset);
  Value slot =
      tensor::ExtractOp::create(b, loc, op.getSlots(), ValueRange{position});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(slot.getType()));
  Value isLive =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, slot, zero);
  Value entry = arith::MaxSIOp::create(b, loc, slot, zero);
  tile.entry = {
      arith::IndexCastOp::create(b, loc, b.getIndexType(), entry).getResult(),
      arith::IndexCastUIOp::create(b, loc, b.getIndexType(), isLive)
          .getResult()};
  Value own = arith::MinSIOp::create(b, loc, slot, zero);
  tile.slots = tensor::FromElementsOp::create(b, loc, ValueRange{own});
  return success();
}

/// The checkpoints of a tile: all of its rows, or those of its one sequence.
static LogicalResult resolveCheckpoints(RecurrenceOp op, OpBuilder &b,
                                        Tile &tile) {
  Location loc = op.getLoc();
  if (isAllTime(tile.time, op)) {
    tile.checkpoint = {b.getIndexAttr(0),
                       tensor::getMixedSize(b, loc, op.getCheckpoints(), 1)};
    return success();
  }
  if (!op.getOffsets())
    return op.emitOpError(
        "cannot be tiled along time while it has 'checkpoints'");
  AffineExpr count = b.getAffineDimExpr(0).floorDiv(op.getCheckpointDistance());
  auto divided = [&](OpFoldResult tokens) {
    return affine::makeComposedFoldedAffineApply(b, loc, count, {tokens});
  };
  tile.checkpoint = {divided(tile.time.offset), divided(tile.time.size)};
  return success();
}

/// The key heads of a tile of value heads.
static LogicalResult resolveKeyHeads(RecurrenceOp op, OpBuilder &b,
                                     Tile &tile) {
  std::optional<int64_t> size = getConstantIntValue(tile.head.size);
  std::optional<int64_t> channels = getConstantIntValue(tile.channel.size);
  if (!size || !channels)
    return op.emitOpError("cannot be tiled by a dynamic number of value heads "
                          "or channels: the tile sizes must divide Hv = ")
           << op.getNumValueHeads() << " and V = " << op.getValueSize();
  int64_t group = op.getGroupSize();
  if (*size % group != 0 && group % *size != 0)
    return op.emitOpError("cannot be tiled by ")
           << *size << " value heads: a tile must lie within a group of "
           << group << " or cover whole groups";
  AffineExpr d0 = b.getAffineDimExpr(0);
  tile.keyHead = {affine::makeComposedFoldedAffineApply(
                      b, op.getLoc(), d0.floorDiv(group), {tile.head.offset}),
                  b.getIndexAttr(std::max<int64_t>(*size / group, 1))};
  return success();
}

static FailureOr<Tile> resolveTile(RecurrenceOp op, OpBuilder &b,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes) {
  if (!op.hasPureTensorSemantics())
    return op.emitOpError("can be tiled on tensors only"), failure();
  Tile tile;
  tile.sequence = {offsets[Sequence], sizes[Sequence]};
  tile.head = {offsets[Head], sizes[Head]};
  tile.channel = {offsets[Channel], sizes[Channel]};
  tile.time = {offsets[Time], sizes[Time]};
  tile.batch = tile.entry = tile.sequence;
  if (failed(resolveKeyHeads(op, b, tile)) ||
      (op.getOffsets() && failed(resolvePacked(op, b, tile))) ||
      (op.getSlots() && failed(resolveSlots(op, b, tile))) ||
      (op.getCheckpoints() && failed(resolveCheckpoints(op, b, tile))))
    return failure();
  return tile;
}

static void unzip(ArrayRef<Interval> intervals,
                  SmallVectorImpl<OpFoldResult> &offsets,
                  SmallVectorImpl<OpFoldResult> &sizes) {
  for (Interval interval : intervals) {
    offsets.push_back(interval.offset);
    sizes.push_back(interval.size);
  }
}

static SmallVector<Interval> outIntervals(const Tile &tile) {
  return {tile.batch, tile.time, tile.head, tile.channel};
}

/// The matrix of a state in the op's layout.
static SmallVector<Interval> matrixIntervals(RecurrenceOp op, OpBuilder &b,
                                             const Tile &tile) {
  Interval keys = whole(b, op.getKeySize());
  return op.isKFirst() ? SmallVector<Interval>{keys, tile.channel}
                       : SmallVector<Interval>{tile.channel, keys};
}

static SmallVector<Interval> stateIntervals(RecurrenceOp op, OpBuilder &b,
                                            const Tile &tile) {
  SmallVector<Interval> intervals = {tile.entry, tile.head};
  llvm::append_range(intervals, matrixIntervals(op, b, tile));
  return intervals;
}

static SmallVector<Interval> checkpointIntervals(RecurrenceOp op, OpBuilder &b,
                                                 const Tile &tile) {
  SmallVector<Interval> intervals = {tile.batch, tile.checkpoint, tile.head};
  llvm::append_range(intervals, matrixIntervals(op, b, tile));
  return intervals;
}

/// Cuts `value` (null stays null) and records the slice.
static Value cut(OpBuilder &b, Value value, ArrayRef<Interval> intervals,
                 SmallVectorImpl<Operation *> &slices) {
  if (!value)
    return Value();
  SmallVector<OpFoldResult> offsets, sizes;
  unzip(intervals, offsets, sizes);
  SmallVector<OpFoldResult> strides(intervals.size(), b.getIndexAttr(1));
  auto slice = tensor::ExtractSliceOp::create(b, value.getLoc(), value, offsets,
                                              sizes, strides);
  slices.push_back(slice);
  return slice;
}

SmallVector<utils::IteratorType> RecurrenceOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(4, utils::IteratorType::parallel);
  types[Time] = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> RecurrenceOp::getIterationDomain(OpBuilder &b) {
  Location loc = getLoc();
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return {{zero, getSequences(b, *this), one},
          {zero, b.getIndexAttr(getNumValueHeads()), one},
          {zero, b.getIndexAttr(getValueSize()), one},
          {zero, tensor::getMixedSize(b, loc, getQ(), 1), one}};
}

FailureOr<TilingResult>
RecurrenceOp::getTiledImplementation(OpBuilder &b,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes) {
  FailureOr<Tile> tile = resolveTile(*this, b, offsets, sizes);
  if (failed(tile))
    return failure();
  SmallVector<Operation *> slices;
  Interval keys = whole(b, getKeySize());
  SmallVector<Interval> qk = {tile->batch, tile->time, tile->keyHead, keys};
  SmallVector<Interval> perHead = {tile->batch, tile->time, tile->head};
  SmallVector<Interval> perKey = {tile->batch, tile->time, tile->head, keys};
  SmallVector<Interval> perValue = outIntervals(*tile);

  Value q = cut(b, getQ(), qk, slices), k = cut(b, getK(), qk, slices);
  Value v = cut(b, getV(), perValue, slices);
  Value gate = cut(b, getGate(), hasChannelGate() ? perKey : perHead, slices);
  Value beta = cut(b, getBeta(), perHead, slices);
  Value erase = cut(b, getErase(), perKey, slices);
  Value write = cut(b, getWrite(), perValue, slices);
  SmallVector<Interval> perState = stateIntervals(*this, b, *tile);
  Value initial = cut(b, getInitial(), perState, slices);
  Value out = cut(b, getOut(), perValue, slices);
  Value state = cut(b, getState(), perState, slices);
  Value checkpoints =
      cut(b, getCheckpoints(), checkpointIntervals(*this, b, *tile), slices);
  SmallVector<Type> types;
  for (Value init : {out, state, checkpoints})
    if (init)
      types.push_back(init.getType());
  auto tiled = RecurrenceOp::create(
      b, getLoc(), types, q, k, v, gate, beta, erase, write, tile->offsets,
      tile->slots, initial, out, state, checkpoints, getScaleAttr(),
      getEveryAttr(), getStateLayoutAttr(), getScheduleAttr());
  tiled->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult RecurrenceOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  FailureOr<Tile> tile = resolveTile(*this, b, offsets, sizes);
  if (failed(tile))
    return failure();
  SmallVector<Interval> intervals = outIntervals(*tile);
  if (resultNumber == 1 && getState())
    intervals = stateIntervals(*this, b, *tile);
  else if (resultNumber > 0)
    intervals = checkpointIntervals(*this, b, *tile);
  unzip(intervals, resultOffsets, resultSizes);
  return success();
}
