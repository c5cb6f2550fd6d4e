//===- ControlFlow.cpp - loops and branches of tile programs on the CPU ---===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments that control flow carries live in one buffer per position; tokens
// are dropped; all other values stay what they are.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

static bool isCarried(Value value) {
  return !getFragmentType(value) && !isa<gdn_tile::TokenType>(value.getType());
}

static SmallVector<Value> getCarried(Lowering &lowering, ValueRange values) {
  SmallVector<Value> result;
  for (Value value : values)
    if (isCarried(value))
      result.push_back(lowering.get(value));
  return result;
}

static void mapCarried(Lowering &lowering, ValueRange from, ValueRange to) {
  size_t next = 0;
  for (Value value : from)
    if (isCarried(value))
      lowering.map(value, to[next++]);
}

static SmallVector<Type> getCarriedTypes(ValueRange values) {
  SmallVector<Type> result;
  for (Value value : values)
    if (isCarried(value))
      result.push_back(value.getType());
  return result;
}

// A buffer for each fragment among `values`, null for the others.
static SmallVector<Value> allocateBuffers(Lowering &lowering,
                                          ValueRange values) {
  SmallVector<Value> result;
  for (Value value : values) {
    VectorType type = getFragmentType(value);
    result.push_back(type ? lowering.allocateFragment(type) : Value());
  }
  return result;
}

static void setBuffers(Lowering &lowering, ValueRange values,
                       ArrayRef<Value> buffers) {
  for (auto [value, buffer] : llvm::zip_equal(values, buffers))
    if (buffer)
      lowering.setBuffer(value, buffer);
}

// Assigns the fragments among `values` to `buffers`, all at the same time: a
// value that is computed from the old contents of another buffer takes the way
// over a temporary one.
static void assign(Lowering &lowering, ValueRange values,
                   ArrayRef<Value> buffers) {
  SmallVector<std::pair<Value, Value>> copies;
  SmallVector<std::pair<Value, Value>> fills;
  for (auto [value, buffer] : llvm::zip_equal(values, buffers)) {
    if (!buffer || lowering.lookupBuffer(value) == buffer)
      continue;
    llvm::SetVector<Value> sources;
    lowering.collectBuffers(value, sources);
    if (llvm::none_of(sources, [&](Value source) {
          return llvm::is_contained(buffers, source);
        })) {
      fills.push_back({buffer, value});
      continue;
    }
    auto type = cast<MemRefType>(buffer.getType());
    Value temporary = lowering.allocate(type.getShape(), type.getElementType());
    lowering.fill(temporary, value);
    copies.push_back({buffer, temporary});
  }
  for (auto [buffer, value] : fills)
    lowering.fill(buffer, value);
  for (auto [buffer, temporary] : copies)
    memref::CopyOp::create(lowering.b, temporary, buffer);
}

// Lowers the ops of a region's block at the end of `target` and leaves the
// insertion point there for the terminator.
static LogicalResult lowerRegion(Lowering &lowering, Block &block,
                                 Block *target) {
  lowering.b.setInsertionPointToEnd(target);
  return lowering.lowerBlock(block);
}

LogicalResult mlir::gdn::tile_to_vector::lowerFor(Lowering &lowering,
                                                  scf::ForOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  SmallVector<Value> buffers = allocateBuffers(lowering, op.getResults());
  assign(lowering, op.getInitArgs(), buffers);
  LogicalResult status = success();
  auto body = [&](OpBuilder &nested, Location, Value iv, ValueRange args) {
    OpBuilder::InsertionGuard guard(b);
    lowering.map(op.getInductionVar(), iv);
    mapCarried(lowering, op.getRegionIterArgs(), args);
    setBuffers(lowering, op.getRegionIterArgs(), buffers);
    status = lowerRegion(lowering, *op.getBody(), nested.getInsertionBlock());
    if (failed(status))
      return;
    assign(lowering, op.getYieldedValues(), buffers);
    scf::YieldOp::create(b, getCarried(lowering, op.getYieldedValues()));
  };
  auto loop = scf::ForOp::create(
      b, lowering.get(op.getLowerBound()), lowering.get(op.getUpperBound()),
      lowering.get(op.getStep()), getCarried(lowering, op.getInitArgs()), body,
      op.getUnsignedCmp());
  mapCarried(lowering, op.getResults(), loop.getResults());
  setBuffers(lowering, op.getResults(), buffers);
  return status;
}

LogicalResult mlir::gdn::tile_to_vector::lowerIf(Lowering &lowering,
                                                 scf::IfOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  SmallVector<Value> buffers = allocateBuffers(lowering, op.getResults());
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(b, getCarriedTypes(op.getResults()),
                                  lowering.get(op.getCondition()),
                                  /*addThenBlock=*/true, hasElse);
  auto lowerBranch = [&](Region &from, Region &to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    if (failed(lowerRegion(lowering, from.front(), &to.front())))
      return failure();
    ValueRange yielded = from.front().getTerminator()->getOperands();
    assign(lowering, yielded, buffers);
    scf::YieldOp::create(b, getCarried(lowering, yielded));
    return success();
  };
  if (failed(lowerBranch(op.getThenRegion(), branch.getThenRegion())))
    return failure();
  if (hasElse &&
      failed(lowerBranch(op.getElseRegion(), branch.getElseRegion())))
    return failure();
  mapCarried(lowering, op.getResults(), branch.getResults());
  setBuffers(lowering, op.getResults(), buffers);
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerWhile(Lowering &lowering,
                                                    scf::WhileOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  SmallVector<Value> before =
      allocateBuffers(lowering, op.getBeforeArguments());
  SmallVector<Value> after = allocateBuffers(lowering, op.getResults());
  assign(lowering, op.getInits(), before);
  LogicalResult status = success();
  auto beforeBody = [&](OpBuilder &nested, Location, ValueRange args) {
    OpBuilder::InsertionGuard guard(b);
    mapCarried(lowering, op.getBeforeArguments(), args);
    setBuffers(lowering, op.getBeforeArguments(), before);
    status =
        lowerRegion(lowering, *op.getBeforeBody(), nested.getInsertionBlock());
    if (failed(status))
      return;
    scf::ConditionOp condition = op.getConditionOp();
    assign(lowering, condition.getArgs(), after);
    scf::ConditionOp::create(b, lowering.get(condition.getCondition()),
                             getCarried(lowering, condition.getArgs()));
  };
  auto afterBody = [&](OpBuilder &nested, Location, ValueRange args) {
    if (failed(status))
      return;
    OpBuilder::InsertionGuard guard(b);
    mapCarried(lowering, op.getAfterArguments(), args);
    setBuffers(lowering, op.getAfterArguments(), after);
    status =
        lowerRegion(lowering, *op.getAfterBody(), nested.getInsertionBlock());
    if (failed(status))
      return;
    ValueRange yielded = op.getYieldOp()->getOperands();
    assign(lowering, yielded, before);
    scf::YieldOp::create(b, getCarried(lowering, yielded));
  };
  auto loop = scf::WhileOp::create(b, getCarriedTypes(op.getResults()),
                                   getCarried(lowering, op.getInits()),
                                   beforeBody, afterBody);
  mapCarried(lowering, op.getResults(), loop.getResults());
  setBuffers(lowering, op.getResults(), after);
  return status;
}
