//===- Lowering.cpp - values and loops of tile programs on the CPU --------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

VectorType mlir::gdn::tile_to_vector::getFragmentType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 2 ? vector : VectorType();
}

int64_t mlir::gdn::tile_to_vector::getPieceWidth(int64_t size) {
  for (int64_t width : {16, 8, 4, 2})
    if (size % width == 0)
      return width;
  return 1;
}

SmallVector<Value> View::at(OpBuilder &builder, Location loc,
                            ValueRange position) const {
  SmallVector<Value> result(indices);
  for (auto [dim, offset] : llvm::zip_equal(dims, position)) {
    bool isZero = isConstantIntValue(result[dim], 0);
    result[dim] = isZero
                      ? offset
                      : arith::AddIOp::create(builder, loc, result[dim], offset)
                            .getResult();
  }
  return result;
}

Lowering::Lowering(func::FuncOp target, Value blockId, Value blocks)
    : b(target.getLoc(), target.getContext()), blockId(blockId), blocks(blocks),
      entry(target.getContext()) {
  b.setInsertionPointToStart(&target.getBody().front());
  constants[0] = arith::ConstantIndexOp::create(b, 0);
  entry.setInsertionPoint(constants[0].getDefiningOp());
}

Value Lowering::idFromEnd() {
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value last = arith::SubIOp::create(b, blocks, one);
  return arith::SubIOp::create(b, last, blockId);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Lowering::allocate(ArrayRef<int64_t> shape, Type elementType) {
  auto type = MemRefType::get(shape, elementType);
  allocations.push_back(memref::AllocOp::create(entry, b.getLoc(), type,
                                                entry.getI64IntegerAttr(64)));
  return allocations.back();
}

Value Lowering::allocateFragment(VectorType type) {
  // The bits of a vector<16xi1> are packed in memory, those of scalars are not.
  Type element = type.getElementType();
  return allocate(type.getShape(),
                  element.isInteger(1) ? entry.getI8Type() : element);
}

Value Lowering::scratch(ArrayRef<int64_t> shape, Type elementType) {
  Value &result = scratches[MemRefType::get(shape, elementType)];
  if (!result)
    result = allocate(shape, elementType);
  return result;
}

void Lowering::freeBuffers() {
  for (Value allocation : allocations)
    memref::DeallocOp::create(b, allocation);
}

Value Lowering::index(int64_t value) {
  Value &result = constants[value];
  if (!result)
    result = arith::ConstantIndexOp::create(entry, b.getLoc(), value);
  return result;
}

SmallVector<Value> Lowering::get(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return get(value); });
}

Value Lowering::toF32(Value value) {
  Type type = value.getType();
  if (getElementTypeOrSelf(type).isF32())
    return value;
  Type result = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    result = vector.clone(result);
  return arith::ExtFOp::create(b, result, value);
}

Value Lowering::splat(double value, Type type) {
  TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(b, attr);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Lowering::loop(Value lower, Value upper, int64_t step, Body body) {
  auto op = scf::ForOp::create(b, lower, upper, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

void Lowering::loop(int64_t size, int64_t step, Body body) {
  if (size == step)
    return body(index(0));
  loop(index(0), index(size), step, body);
}

Value Lowering::reduce(Value lower, Value upper, int64_t step, Value init,
                       Reduction body) {
  auto op = scf::ForOp::create(b, lower, upper, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  scf::YieldOp::create(b,
                       body(op.getInductionVar(), op.getRegionIterArgs()[0]));
  return op.getResult(0);
}

void Lowering::zero(const View &to, ArrayRef<int64_t> shape) {
  Type element = cast<MemRefType>(to.memref.getType()).getElementType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
  loop(shape[0], 1, [&](Value i) {
    if (shape.size() == 1) {
      memref::StoreOp::create(b, zero, to.memref, to.at(b, b.getLoc(), {i}));
      return;
    }
    loop(shape[1], 1, [&](Value j) {
      memref::StoreOp::create(b, zero, to.memref, to.at(b, b.getLoc(), {i, j}));
    });
  });
}

// True if neighbours along the last dimension are neighbours in memory.
static bool isContiguous(const View &view) {
  return view.dims.back() ==
         cast<MemRefType>(view.memref.getType()).getRank() - 1;
}

void Lowering::copy(const View &from, const View &to, ArrayRef<int64_t> shape,
                    ValueRange valid, bool zeroFill) {
  // A constant bound that covers the whole dimension is no bound.
  SmallVector<Value> bounds(shape.size());
  for (auto [d, bound] : llvm::enumerate(valid)) {
    std::optional<int64_t> constant = getConstantIntValue(bound);
    if (!constant || *constant < shape[d])
      bounds[d] = arith::MinSIOp::create(b, bound, index(shape[d]));
  }
  if (zeroFill && llvm::any_of(bounds, [](Value v) { return v != Value(); }))
    zero(to, shape);

  Type fromType = cast<MemRefType>(from.memref.getType()).getElementType();
  Type toType = cast<MemRefType>(to.memref.getType()).getElementType();
  bool vectorize = !bounds.back() && isContiguous(from) && isContiguous(to);
  int64_t width = vectorize ? getPieceWidth(shape.back()) : 1;
  auto convert = [&](Value value) {
    return fromType == toType ? value : toF32(value);
  };
  auto move = [&](ValueRange position) {
    SmallVector<Value> source = from.at(b, b.getLoc(), position);
    SmallVector<Value> target = to.at(b, b.getLoc(), position);
    if (width == 1) {
      Value value = memref::LoadOp::create(b, from.memref, source);
      memref::StoreOp::create(b, convert(value), to.memref, target);
      return;
    }
    Value value = vector::LoadOp::create(b, VectorType::get(width, fromType),
                                         from.memref, source);
    vector::StoreOp::create(b, convert(value), to.memref, target);
  };
  auto bounded = [&](size_t d, int64_t step, Body body) {
    if (bounds[d])
      return loop(index(0), bounds[d], step, body);
    loop(shape[d], step, body);
  };
  if (shape.size() == 1)
    return bounded(0, width, [&](Value i) { move(i); });
  bounded(0, 1,
          [&](Value i) { bounded(1, width, [&](Value j) { move({i, j}); }); });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    b.setLoc(op.getLoc());
    if (failed(lowerOp(&op)))
      return failure();
  }
  return success();
}

// An elementwise op that its only user recomputes piece by piece.
static bool isFused(Operation *op) {
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  return user->getBlock() == op->getBlock() &&
         (isElementwise(user) || isa<gdn_tile::SumOp>(user));
}

// Constants, broadcasts and iota are computed where they are used.
static LogicalResult checkRecomputed(Operation *op) {
  if (DenseElementsAttr value;
      matchPattern(op, m_Constant(&value)) && !value.isSplat())
    return op->emitOpError(
        "is not allowed on fragments unless all elements are equal");
  auto broadcast = dyn_cast<vector::BroadcastOp>(op);
  if (broadcast && isa<VectorType>(broadcast.getSourceType()) &&
      !getFragmentType(broadcast.getSource()))
    return op->emitOpError("cannot make a fragment from ")
           << broadcast.getSourceType();
  return success();
}

// All other ops are taken as they are.
static LogicalResult checkScalar(Operation *op) {
  auto isFragment = [](Type type) {
    return getFragmentType(type) != VectorType();
  };
  if (llvm::any_of(op->getOperandTypes(), isFragment) ||
      llvm::any_of(op->getResultTypes(), isFragment))
    return op->emitOpError("is not allowed on fragments");
  if (op->getNumRegions() != 0 ||
      isa<gdn_tile::GdnTileDialect>(op->getDialect()))
    return op->emitOpError("is not allowed in a tile program");
  return success();
}

LogicalResult Lowering::lowerOp(Operation *op) {
  if (isElementwise(op)) {
    Value result = op->getResult(0);
    if (isFused(op))
      return success();
    Value memref = allocateFragment(getFragmentType(result));
    fill(memref, result);
    setBuffer(result, memref);
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](gdn_tile::CopyInOp op) { return lowerCopyIn(*this, op); })
      .Case([&](gdn_tile::CopySumsOp op) { return lowerCopySums(*this, op); })
      .Case([&](gdn_tile::CopyOutOp op) { return lowerCopyOut(*this, op); })
      .Case([&](gdn_tile::LoadOp op) { return lowerLoad(*this, op); })
      .Case([&](gdn_tile::StoreOp op) { return lowerStore(*this, op); })
      .Case([&](gdn_tile::StageOp op) { return lowerStage(*this, op); })
      .Case([&](gdn_tile::MmaOp op) { return lowerMma(*this, op); })
      .Case([&](gdn_tile::MmaWaitOp op) {
        setBuffer(op.getResult(), buffer(op.getValue()));
        return success();
      })
      .Case([&](gdn_tile::DotOp op) { return lowerDot(*this, op); })
      .Case([&](gdn_tile::OuterOp op) { return lowerOuter(*this, op); })
      .Case([&](gdn_tile::StackOp op) { return lowerStack(*this, op); })
      .Case([&](gdn_tile::TriSolveOp op) { return lowerTriSolve(*this, op); })
      .Case(
          [&](gdn_tile::AfterLoadsOp op) { return lowerAfterLoads(*this, op); })
      .Case([&](gdn_tile::SumOp op) { return lowerSum(*this, op); })
      .Case(
          [&](gdn_tile::SumSquaresOp op) { return lowerSumSquares(*this, op); })
      .Case([&](gdn_tile::CumsumOp op) { return lowerCumsum(*this, op); })
      .Case([&](gdn_tile::DecaysOp op) { return lowerDecays(*this, op); })
      .Case([&](gdn_tile::ScoresOp op) { return lowerScores(*this, op); })
      .Case(
          [&](gdn_tile::TriInverseOp op) { return lowerTriInverse(*this, op); })
      .Case([&](gdn_tile::EachWarpOp op) { return lowerEachWarp(*this, op); })
      .Case([&](gdn_tile::AheadOp op) {
        return lowerBlock(op.getBody().front());
      })
      .Case([&](gdn_tile::WarpMmaOp op) { return lowerWarpMma(*this, op); })
      .Case([&](gdn_tile::OwnRowsOp op) { return lowerOwnRows(*this, op); })
      .Case(
          [&](gdn_tile::StoreBlockOp op) { return lowerStoreBlock(*this, op); })
      .Case([&](gdn_tile::LoadBlockOp op) { return lowerLoadBlock(*this, op); })
      .Case([&](gdn_tile::AnyOp op) { return lowerAny(*this, op); })
      .Case([&](gdn_tile::BlockInverseOp op) {
        return lowerBlockInverse(*this, op);
      })
      .Case([&](scf::ForOp op) { return lowerFor(*this, op); })
      .Case([&](scf::IfOp op) { return lowerIf(*this, op); })
      .Case([&](scf::WhileOp op) { return lowerWhile(*this, op); })
      .Case([&](gdn_tile::FindSequenceOp op) {
        return lowerFindSequence(*this, op);
      })
      .Case([&](gdn_tile::BlockIdOp op) {
        map(op.getResult(), op.getFromEnd() ? idFromEnd() : blockId);
        return success();
      })
      // In one thread every copy is complete at once and nobody else waits.
      .Case<gdn_tile::WaitOp, gdn_tile::JoinOp, gdn_tile::BarrierOp,
            gdn_tile::FreeOp, gdn_tile::PrefetchOp, gdn_tile::OverlapLaunchesOp,
            gdn_tile::AwaitLaunchOp>([](Operation *) { return success(); })
      .Default([&](Operation *op) { return lowerOther(op); });
}

LogicalResult Lowering::lowerOther(Operation *op) {
  if (auto alloc = dyn_cast<memref::AllocOp>(op);
      alloc && gdn_tile::isShared(alloc.getType())) {
    MemRefType type = alloc.getType();
    map(alloc, allocate(type.getShape(), type.getElementType()));
    return success();
  }
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op);
      dealloc && gdn_tile::isShared(dealloc.getMemref().getType()))
    return success();
  if (op->getNumResults() == 1 && getFragmentType(op->getResult(0)) &&
      isa<arith::ConstantOp, vector::BroadcastOp, gdn_tile::IotaOp>(op))
    return checkRecomputed(op);
  if (failed(checkScalar(op)))
    return failure();
  b.clone(*op, mapping);
  return success();
}
