//===- FragmentOps.cpp - arithmetic on fragments --------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

bool mlir::gdn::tile_to_vector::isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 && getFragmentType(op->getResult(0));
}

static Value loadPiece(Lowering &lowering, Value memref, Type elementType,
                       Value i, Value j, int64_t width) {
  ImplicitLocOpBuilder &b = lowering.b;
  Type stored = cast<MemRefType>(memref.getType()).getElementType();
  Value value = vector::LoadOp::create(b, VectorType::get(width, stored),
                                       memref, ValueRange{i, j});
  if (stored == elementType)
    return value;
  return arith::TruncIOp::create(b, VectorType::get(width, elementType), value);
}

Value Lowering::piece(Value fragment, Value i, Value j, int64_t width) {
  Value memref = buffers.lookup(fragment);
  if (!memref)
    return recompute(fragment, i, j, width);
  VectorType type = getFragmentType(fragment);
  if (auto pending = dyn_cast<gdn_tile::PendingType>(fragment.getType()))
    type = pending.getFragment();
  return loadPiece(*this, memref, type.getElementType(), i, j, width);
}

// One row or column of a fragment, spread over the other dimension.
Value Lowering::broadcastPiece(Value source, Value i, Value j, int64_t width) {
  auto from = dyn_cast<VectorType>(source.getType());
  if (!from)
    return vector::BroadcastOp::create(
        b, VectorType::get(width, source.getType()), get(source));
  auto type = VectorType::get(width, from.getElementType());
  Value row = from.getDimSize(0) == 1 ? index(0) : i;
  if (from.getDimSize(1) != 1)
    return piece(source, row, j, width);
  Value single = piece(source, row, index(0), 1);
  return vector::BroadcastOp::create(b, type,
                                     vector::ExtractOp::create(b, single, 0));
}

static Value iotaPiece(Lowering &lowering, VectorType fragment, Value i,
                       Value j, int64_t width) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto type = VectorType::get(width, fragment.getElementType());
  bool isColumn = fragment.getDimSize(1) == 1;
  Value base = arith::IndexCastOp::create(b, fragment.getElementType(),
                                          isColumn ? i : j);
  base = vector::BroadcastOp::create(b, type, base);
  SmallVector<int32_t> steps =
      llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(width)));
  Value step = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef(steps)));
  return arith::AddIOp::create(b, base, step);
}

Value Lowering::recompute(Value fragment, Value i, Value j, int64_t width) {
  VectorType type = getFragmentType(fragment);
  auto pieceType = VectorType::get(width, type.getElementType());
  Operation *op = fragment.getDefiningOp();
  assert(op && "a block argument of fragment type has a buffer");
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(b, value.resizeSplat(pieceType));
  }
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return broadcastPiece(broadcast.getSource(), i, j, width);
  if (isa<gdn_tile::IotaOp>(op))
    return iotaPiece(*this, type, i, j, width);
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, getFragmentType(operand) ? piece(operand, i, j, width)
                                                   : get(operand));
  Operation *copy = b.clone(*op, operands);
  copy->getResult(0).setType(pieceType);
  return copy->getResult(0);
}

void Lowering::fill(Value memref, Value fragment) {
  VectorType type = getFragmentType(fragment);
  Type stored = cast<MemRefType>(memref.getType()).getElementType();
  int64_t width = getPieceWidth(type.getDimSize(1));
  loop(type.getDimSize(0), 1, [&](Value i) {
    loop(type.getDimSize(1), width, [&](Value j) {
      Value value = piece(fragment, i, j, width);
      if (stored != type.getElementType())
        value =
            arith::ExtUIOp::create(b, VectorType::get(width, stored), value);
      vector::StoreOp::create(b, value, memref, ValueRange{i, j});
    });
  });
}

Value Lowering::buffer(Value fragment) {
  if (Value memref = buffers.lookup(fragment))
    return memref;
  Value memref = allocateFragment(getFragmentType(fragment));
  fill(memref, fragment);
  return memref;
}

void Lowering::collectBuffers(Value fragment, llvm::SetVector<Value> &result) {
  if (!getFragmentType(fragment))
    return;
  if (Value memref = buffers.lookup(fragment)) {
    result.insert(memref);
    return;
  }
  for (Value operand : fragment.getDefiningOp()->getOperands())
    collectBuffers(operand, result);
}

LogicalResult mlir::gdn::tile_to_vector::lowerSum(Lowering &lowering,
                                                  gdn_tile::SumOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType from = getFragmentType(op.getValue());
  VectorType to = getFragmentType(op.getResult());
  int64_t width = getPieceWidth(from.getDimSize(1));
  auto pieceType = VectorType::get(width, from.getElementType());
  Value zero = lowering.splat(0.0, pieceType);
  Value zeroIndex = lowering.index(0),
        rows = lowering.index(from.getDimSize(0)),
        columns = lowering.index(from.getDimSize(1));
  Value memref = lowering.allocateFragment(to);
  auto add = [&](Value i, Value j, Value sum) -> Value {
    return arith::AddFOp::create(b, sum,
                                 lowering.piece(op.getValue(), i, j, width));
  };
  if (to.getDimSize(0) == from.getDimSize(0) && to.getDimSize(1) == 1) {
    lowering.loop(from.getDimSize(0), 1, [&](Value i) {
      Value sum =
          lowering.reduce(zeroIndex, columns, width, zero,
                          [&](Value j, Value acc) { return add(i, j, acc); });
      Value total =
          vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
      memref::StoreOp::create(b, total, memref, ValueRange{i, zeroIndex});
    });
  } else {
    lowering.loop(from.getDimSize(1), width, [&](Value j) {
      Value sum =
          lowering.reduce(zeroIndex, rows, 1, zero,
                          [&](Value i, Value acc) { return add(i, j, acc); });
      vector::StoreOp::create(b, sum, memref, ValueRange{zeroIndex, j});
    });
  }
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

LogicalResult
mlir::gdn::tile_to_vector::lowerSumSquares(Lowering &lowering,
                                           gdn_tile::SumSquaresOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType from = getFragmentType(op.getValue());
  int64_t width = getPieceWidth(from.getDimSize(1));
  Value zero = lowering.splat(0.0, VectorType::get(width, b.getF32Type()));
  Value first = lowering.index(0), columns = lowering.index(from.getDimSize(1));
  Value memref = lowering.allocateFragment(getFragmentType(op.getResult()));
  lowering.loop(from.getDimSize(0), 1, [&](Value i) {
    Value sums = lowering.reduce(
        first, columns, width, zero, [&](Value j, Value acc) -> Value {
          Value x = lowering.toF32(lowering.piece(op.getValue(), i, j, width));
          return arith::AddFOp::create(b, acc, arith::MulFOp::create(b, x, x));
        });
    Value total =
        vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums);
    memref::StoreOp::create(b, total, memref, ValueRange{i, first});
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}
