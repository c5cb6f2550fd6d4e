//===- LoopEmitter.cpp - scalar code and loops over memrefs ---------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

Value LoopEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value LoopEmitter::constant(double value) {
  return arith::ConstantOp::create(
      builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
}

Value LoopEmitter::size(Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return index(type.getDimSize(dim));
  return memref::DimOp::create(builder, loc, memref, dim);
}

Value LoopEmitter::addIndex(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value LoopEmitter::subIndex(Value a, Value b) {
  return arith::SubIOp::create(builder, loc, a, b);
}

Value LoopEmitter::divIndex(Value a, int64_t b) {
  return arith::DivUIOp::create(builder, loc, a, index(b));
}

Value LoopEmitter::remIndex(Value a, int64_t b) {
  return arith::RemUIOp::create(builder, loc, a, index(b));
}

Value LoopEmitter::isLess(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

Value LoopEmitter::add(Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b);
}

Value LoopEmitter::sub(Value a, Value b) {
  return arith::SubFOp::create(builder, loc, a, b);
}

Value LoopEmitter::mul(Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}

Value LoopEmitter::div(Value a, Value b) {
  return arith::DivFOp::create(builder, loc, a, b);
}

Value LoopEmitter::neg(Value a) {
  return arith::NegFOp::create(builder, loc, a);
}

Value LoopEmitter::max(Value a, Value b) {
  return arith::MaximumFOp::create(builder, loc, a, b);
}

Value LoopEmitter::abs(Value a) {
  return math::AbsFOp::create(builder, loc, a);
}

Value LoopEmitter::exp(Value a) { return math::ExpOp::create(builder, loc, a); }

Value LoopEmitter::log1p(Value a) {
  return math::Log1pOp::create(builder, loc, a);
}

Value LoopEmitter::rsqrt(Value a) {
  return math::RsqrtOp::create(builder, loc, a);
}

Value LoopEmitter::sigmoid(Value a) {
  Value one = constant(1.0);
  return div(one, add(one, exp(neg(a))));
}

Value LoopEmitter::activate(Activation activation, Value a) {
  switch (activation) {
  case Activation::None:
    return a;
  case Activation::SiLU:
    return mul(a, sigmoid(a));
  case Activation::Sigmoid:
    return sigmoid(a);
  }
  llvm_unreachable("unknown activation");
}

Value LoopEmitter::load(Value memref, ValueRange indices) {
  Value value = memref::LoadOp::create(builder, loc, memref, indices);
  if (value.getType().isF32())
    return value;
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

void LoopEmitter::store(Value value, Value memref, ValueRange indices) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (!type.isF32())
    value = arith::TruncFOp::create(builder, loc, type, value);
  memref::StoreOp::create(builder, loc, value, memref, indices);
}

Value LoopEmitter::loadOffset(Value offsets, Value i) {
  Value value = memref::LoadOp::create(builder, loc, offsets, i);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    value);
}

Value LoopEmitter::allocate(ArrayRef<int64_t> shape) {
  return memref::AllocOp::create(builder, loc,
                                 MemRefType::get(shape, builder.getF32Type()));
}

void LoopEmitter::free(Value buffer) {
  memref::DeallocOp::create(builder, loc, buffer);
}

void LoopEmitter::loop(Value from, Value to, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, from, to, index(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value LoopEmitter::sum(Value from, Value to, Value init,
                       function_ref<Value(Value)> term) {
  auto loop = scf::ForOp::create(builder, loc, from, to, index(1), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value partial = add(loop.getRegionIterArg(0), term(loop.getInductionVar()));
  scf::YieldOp::create(builder, loc, partial);
  return loop.getResult(0);
}

void LoopEmitter::loopOver(Value memref, int64_t first, int64_t last,
                           function_ref<void(ValueRange)> body) {
  SmallVector<Value> indices;
  loopOver(memref, first, last, indices, body);
}

void LoopEmitter::loopOver(Value memref, int64_t dim, int64_t last,
                           SmallVectorImpl<Value> &indices,
                           function_ref<void(ValueRange)> body) {
  if (dim == last) {
    body(indices);
    return;
  }
  loop(index(0), size(memref, dim), [&](Value i) {
    indices.push_back(i);
    loopOver(memref, dim + 1, last, indices, body);
    indices.pop_back();
  });
}

Value LoopEmitter::select(Value condition, function_ref<Value()> ifTrue,
                          function_ref<Value()> ifFalse) {
  auto branch = scf::IfOp::create(builder, loc, builder.getF32Type(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, ifTrue());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, ifFalse());
  return branch.getResult(0);
}

void LoopEmitter::branch(Value condition, function_ref<void()> ifTrue,
                         function_ref<void()> ifFalse) {
  auto branch = scf::IfOp::create(builder, loc, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  ifTrue();
  builder.setInsertionPointToStart(branch.elseBlock());
  ifFalse();
}

TokenRange mlir::gdn::getTokenRange(LoopEmitter &emit, Value sequence,
                                    Value batched, Value offsets) {
  if (!offsets)
    return {sequence, emit.index(0), emit.size(batched, 1)};
  Value next = emit.addIndex(sequence, emit.index(1));
  return {emit.index(0), emit.loadOffset(offsets, sequence),
          emit.loadOffset(offsets, next)};
}
