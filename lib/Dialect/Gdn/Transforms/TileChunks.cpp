//===- TileChunks.cpp - loop over the chunks of a block -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNTILECHUNKSPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Rewrites one recurrence on a block. What its loop carries is a list of
/// values: out, the state as float32 [1, 1, K, V], and checkpoints where the op
/// has them.
class ChunkTiler {
public:
  ChunkTiler(RecurrenceOp op, IRRewriter &b)
      : op(op), b(b), loc(op.getLoc()), chunk(getChunk(op)) {}

  /// Tokens from one state that the loop carries to the next.
  static int64_t getChunk(RecurrenceOp op) {
    ScheduleAttr schedule = *op.getSchedule();
    return schedule.getPhases() == Phases::Step ? 1 : schedule.getChunk();
  }

  void run();

private:
  enum Carried { Out, State, Checkpoints };

  bool carriesStoredState() {
    return op.isKFirst() && op.getStateType().getElementType().isF32();
  }
  Value loadState(Value stored);
  Value storeState(Value state, Value stored);
  Value convertState(Value from, Value to);
  SmallVector<Value> fullChunk(Value begin, ValueRange carried);
  SmallVector<Value> paddedChunk(OpFoldResult begin, OpFoldResult count,
                                 ValueRange carried);
  SmallVector<Value> restOfTime(OpFoldResult begin, OpFoldResult count,
                                ValueRange carried);
  /// The checkpoints with the state behind the chunk at `begin`, if it is one.
  Value keepState(Value begin, Value state, Value checkpoints);
  Value insertCheckpoint(OpFoldResult position, Value state, Value checkpoints);
  /// The op's results on the whole block from the state in `stored` [1, 1, V,
  /// K].
  SmallVector<Value> allTime(Value stored);
  /// The same with the state in the pool's entry that the slot names, if any.
  SmallVector<Value> allTimeInSlot();
  /// `value` at times [begin, begin + count), or null.
  Value timeSlice(Value value, OpFoldResult begin, OpFoldResult count);
  Value insertTime(Value part, Value whole, OpFoldResult begin,
                   OpFoldResult count);
  Value padTime(Value value, OpFoldResult begin, OpFoldResult count);
  /// The op with inputs cut by `cut`.
  SmallVector<Value> chunkOp(function_ref<Value(Value)> cut, Value out,
                             Value state);

  RecurrenceOp op;
  IRRewriter &b;
  Location loc;
  int64_t chunk;
};

} // namespace

Value ChunkTiler::timeSlice(Value value, OpFoldResult begin,
                            OpFoldResult count) {
  if (!value)
    return value;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[1] = begin;
  sizes[1] = count;
  return tensor::ExtractSliceOp::create(b, loc, value, offsets, sizes, strides);
}

Value ChunkTiler::insertTime(Value part, Value whole, OpFoldResult begin,
                             OpFoldResult count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, whole);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[1] = begin;
  sizes[1] = count;
  return tensor::InsertSliceOp::create(b, loc, part, whole, offsets, sizes,
                                       strides);
}

Value ChunkTiler::padTime(Value value, OpFoldResult begin, OpFoldResult count) {
  if (!value)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[1] = chunk;
  // Not tensor.empty: equal fills would be merged and then copied apart.
  Value init = bufferization::AllocTensorOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()),
      /*dynamicSizes=*/ValueRange());
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value zeros = linalg::FillOp::create(b, loc, zero, init).getResult(0);
  Value target = timeSlice(zeros, b.getIndexAttr(0), count);
  Value copied =
      linalg::CopyOp::create(b, loc, timeSlice(value, begin, count), target)
          .getResult(0);
  return insertTime(copied, zeros, b.getIndexAttr(0), count);
}

SmallVector<Value> ChunkTiler::chunkOp(function_ref<Value(Value)> cut,
                                       Value out, Value state) {
  auto layout = StateLayoutAttr::get(b.getContext(), StateLayout::KFirst);
  auto tile = RecurrenceOp::create(
      b, loc, TypeRange{out.getType(), state.getType()}, cut(op.getQ()),
      cut(op.getK()), cut(op.getV()), cut(op.getGate()), cut(op.getBeta()),
      cut(op.getErase()), cut(op.getWrite()), /*offsets=*/Value(),
      /*slots=*/Value(), /*initial=*/Value(), out, state,
      /*checkpoints=*/Value(), op.getScaleAttr(), /*every=*/IntegerAttr(),
      layout, op.getScheduleAttr());
  tile->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return llvm::to_vector_of<Value>(tile->getResults());
}

SmallVector<Value> ChunkTiler::fullChunk(Value begin, ValueRange carried) {
  OpFoldResult count = b.getIndexAttr(chunk);
  auto cut = [&](Value value) { return timeSlice(value, begin, count); };
  SmallVector<Value> next = chunkOp(cut, cut(carried[Out]), carried[State]);
  next[Out] = insertTime(next[Out], carried[Out], begin, count);
  if (op.getCheckpoints())
    next.push_back(keepState(begin, next[State], carried[Checkpoints]));
  return next;
}

Value ChunkTiler::keepState(Value begin, Value state, Value checkpoints) {
  int64_t every = op.getCheckpointDistance();
  AffineExpr done = b.getAffineDimExpr(0) + chunk;
  auto compute = [&](AffineExpr expr) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr,
                                                 {OpFoldResult(begin)});
  };
  if (every == chunk)
    return insertCheckpoint(compute(done.floorDiv(every) - 1), state,
                            checkpoints);
  Value left = getValueOrCreateConstantIndexOp(b, loc, compute(done % every));
  Value isDue =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left,
                            arith::ConstantIndexOp::create(b, loc, 0));
  auto conditional = scf::IfOp::create(b, loc, checkpoints.getType(), isDue,
                                       /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(conditional.thenBlock());
  scf::YieldOp::create(
      b, loc,
      insertCheckpoint(compute(done.floorDiv(every) - 1), state, checkpoints));
  b.setInsertionPointToStart(conditional.elseBlock());
  scf::YieldOp::create(b, loc, checkpoints);
  return conditional.getResult(0);
}

Value ChunkTiler::insertCheckpoint(OpFoldResult position, Value state,
                                   Value checkpoints) {
  auto type = cast<RankedTensorType>(checkpoints.getType());
  ArrayRef<int64_t> matrix = type.getShape().take_back(2);
  SmallVector<OpFoldResult> offsets(5, b.getIndexAttr(0));
  offsets[1] = position;
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), {1, 1, 1, matrix[0], matrix[1]});
  SmallVector<OpFoldResult> strides(5, b.getIndexAttr(1));
  auto stateType = RankedTensorType::get({1, 1, matrix[0], matrix[1]},
                                         type.getElementType());
  Value target = tensor::ExtractSliceOp::create(b, loc, stateType, checkpoints,
                                                offsets, sizes, strides);
  return tensor::InsertSliceOp::create(b, loc, convertState(state, target),
                                       checkpoints, offsets, sizes, strides);
}

SmallVector<Value> ChunkTiler::paddedChunk(OpFoldResult begin,
                                           OpFoldResult count,
                                           ValueRange carried) {
  Value out = carried[Out];
  auto type = cast<RankedTensorType>(out.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, out);
  sizes[1] = b.getIndexAttr(chunk);
  Value padded = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  SmallVector<Value> results =
      chunkOp([&](Value value) { return padTime(value, begin, count); }, padded,
              carried[State]);
  Value copied = linalg::CopyOp::create(
                     b, loc, timeSlice(results[0], b.getIndexAttr(0), count),
                     timeSlice(out, begin, count))
                     .getResult(0);
  SmallVector<Value> next(carried);
  next[Out] = insertTime(copied, out, begin, count);
  next[State] = results[1];
  return next;
}

// No checkpoint lies in less than a chunk.
SmallVector<Value> ChunkTiler::restOfTime(OpFoldResult begin,
                                          OpFoldResult count,
                                          ValueRange carried) {
  if (std::optional<int64_t> size = getConstantIntValue(count)) {
    if (*size == 0)
      return SmallVector<Value>(carried);
    return paddedChunk(begin, count, carried);
  }
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isLeft = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::sgt,
      getValueOrCreateConstantIndexOp(b, loc, count), zero);
  auto conditional = scf::IfOp::create(b, loc, carried.getTypes(), isLeft,
                                       /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(conditional.thenBlock());
  scf::YieldOp::create(b, loc, paddedChunk(begin, count, carried));
  b.setInsertionPointToStart(conditional.elseBlock());
  scf::YieldOp::create(b, loc, carried);
  return llvm::to_vector_of<Value>(conditional.getResults());
}

/// Copies between the stored and the carried form of the state.
Value ChunkTiler::convertState(Value from, Value to) {
  auto fromType = cast<RankedTensorType>(from.getType());
  auto toType = cast<RankedTensorType>(to.getType());
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(4));
  if (!op.isKFirst())
    maps[0] = AffineMap::getPermutationMap(ArrayRef<unsigned>{0, 1, 3, 2},
                                           b.getContext());
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  Type element = toType.getElementType();
  auto convert = [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
    Value value = args[0];
    if (fromType.getElementTypeBitWidth() < toType.getElementTypeBitWidth())
      value = arith::ExtFOp::create(nested, nestedLoc, element, value);
    if (fromType.getElementTypeBitWidth() > toType.getElementTypeBitWidth())
      value = arith::TruncFOp::create(nested, nestedLoc, element, value);
    linalg::YieldOp::create(nested, nestedLoc, value);
  };
  return linalg::GenericOp::create(b, loc, toType, from, to, maps, loops,
                                   convert)
      .getResult(0);
}

Value ChunkTiler::loadState(Value stored) {
  if (carriesStoredState())
    return stored;
  Value init = tensor::EmptyOp::create(
      b, loc, ArrayRef<int64_t>{1, 1, op.getKeySize(), op.getValueSize()},
      b.getF32Type());
  return convertState(stored, init);
}

Value ChunkTiler::storeState(Value state, Value stored) {
  return carriesStoredState() ? state : convertState(state, stored);
}

SmallVector<Value> ChunkTiler::allTime(Value stored) {
  AffineExpr d0;
  bindDims(b.getContext(), d0);
  OpFoldResult time = tensor::getMixedSize(b, loc, op.getQ(), 1);
  OpFoldResult full = affine::makeComposedFoldedAffineApply(
      b, loc, d0.floorDiv(chunk) * chunk, {time});
  OpFoldResult rest =
      affine::makeComposedFoldedAffineApply(b, loc, d0 % chunk, {time});
  SmallVector<Value> carried = {op.getOut(), loadState(stored)};
  if (op.getCheckpoints())
    carried.push_back(op.getCheckpoints());
  auto loop = scf::ForOp::create(
      b, loc, arith::ConstantIndexOp::create(b, loc, 0),
      getValueOrCreateConstantIndexOp(b, loc, full),
      arith::ConstantIndexOp::create(b, loc, chunk), carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, loc, fullChunk(loop.getInductionVar(), loop.getRegionIterArgs()));
  }
  SmallVector<Value> results = restOfTime(full, rest, loop.getResults());
  if (op.getState())
    results[State] = storeState(results[State], stored);
  else
    results.erase(results.begin() + State);
  return results;
}

SmallVector<Value> ChunkTiler::allTimeInSlot() {
  Value slot = tensor::ExtractOp::create(
      b, loc, op.getSlots(),
      ValueRange{arith::ConstantIndexOp::create(b, loc, 0)});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(slot.getType()));
  Value isLive =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, slot, zero);
  auto conditional = scf::IfOp::create(b, loc, op->getResultTypes(), isLive,
                                       /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(conditional.thenBlock());
  Value pool = op.getInitialState();
  auto poolType = cast<RankedTensorType>(pool.getType());
  SmallVector<int64_t> shape(poolType.getShape());
  shape[0] = 1;
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0));
  offsets[0] =
      arith::IndexCastOp::create(b, loc, b.getIndexType(), slot).getResult();
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(op.getContext(), shape);
  SmallVector<OpFoldResult> strides(4, b.getIndexAttr(1));
  Value stored = tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, poolType.getElementType()), pool,
      offsets, sizes, strides);
  SmallVector<Value> results = allTime(stored);
  if (op.getState())
    results[State] = tensor::InsertSliceOp::create(b, loc, results[State], pool,
                                                   offsets, sizes, strides);
  scf::YieldOp::create(b, loc, results);
  b.setInsertionPointToStart(conditional.elseBlock());
  Value out = op.getOut();
  Type element = cast<RankedTensorType>(out.getType()).getElementType();
  Value nothing = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  SmallVector<Value> unchanged(op.getDpsInits());
  unchanged[Out] = linalg::FillOp::create(b, loc, nothing, out).getResult(0);
  scf::YieldOp::create(b, loc, unchanged);
  return llvm::to_vector_of<Value>(conditional.getResults());
}

void ChunkTiler::run() {
  b.setInsertionPoint(op);
  b.replaceOp(op,
              op.getSlots() ? allTimeInSlot() : allTime(op.getInitialState()));
}

static LogicalResult verifyIsBlock(RecurrenceOp op) {
  if (!op.isScheduled())
    return op.emitOpError("has no schedule; run gdn-select-schedule first");
  if (!op.hasPureTensorSemantics())
    return op.emitOpError("can be tiled on tensors only");
  ShapedType q = op.getQType();
  if (op.getOffsets() || q.getDimSize(0) != 1 || q.getDimSize(2) != 1 ||
      op.getNumValueHeads() != 1)
    return op.emitOpError("can be tiled by chunks on one block only (B = Hqk = "
                          "Hv = 1, no offsets), but q is ")
           << op.getQ().getType() << " and v is " << op.getV().getType()
           << ": run gdn-tile-blocks first";
  int64_t chunk = ChunkTiler::getChunk(op);
  if (op.getCheckpoints() && op.getCheckpointDistance() % chunk != 0)
    return op.emitOpError("stores a checkpoint every ")
           << op.getCheckpointDistance()
           << " tokens, no multiple of its chunks of " << chunk;
  return success();
}

namespace {

struct TileChunksPass : gdn::impl::GdnTileChunksPassBase<TileChunksPass> {
  void runOnOperation() override {
    SmallVector<RecurrenceOp> ops;
    getOperation()->walk([&](RecurrenceOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (RecurrenceOp op : ops) {
      if (failed(verifyIsBlock(op)))
        return signalPassFailure();
      ChunkTiler(op, rewriter).run();
    }
  }
};

} // namespace
