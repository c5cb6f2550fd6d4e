//===- RegisterOps.cpp - products in registers, on the CPU ----------------===//
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

static constexpr arith::FastMathFlags kContract =
    arith::FastMathFlags::contract;

/// result[i, j] = sum_c a[i, c] b[j, c].
LogicalResult mlir::gdn::tile_to_vector::lowerDot(Lowering &lowering,
                                                  gdn_tile::DotOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType left = getFragmentType(op.getA());
  int64_t cols = left.getDimSize(1), width = getPieceWidth(cols);
  Value zero = lowering.splat(0.0, VectorType::get(width, b.getF32Type()));
  Value a = lowering.buffer(op.getA());
  for (auto [operand, result] : llvm::zip(op.getB(), op.getResults())) {
    Value right = lowering.buffer(operand);
    VectorType type = getFragmentType(result);
    Value memref = lowering.allocateFragment(type);
    auto piece = [&](Value from, Value row, Value c) {
      Type element = cast<MemRefType>(from.getType()).getElementType();
      Value value = vector::LoadOp::create(b, VectorType::get(width, element),
                                           from, ValueRange{row, c});
      return lowering.toF32(value);
    };
    auto term = [&](Value i, Value j, Value c, Value sum) -> Value {
      Value product = arith::MulFOp::create(b, piece(a, i, c),
                                            piece(right, j, c), kContract);
      return arith::AddFOp::create(b, sum, product, kContract);
    };
    lowering.loop(type.getDimSize(0), 1, [&](Value i) {
      lowering.loop(type.getDimSize(1), 1, [&](Value j) {
        Value sum = lowering.reduce(
            lowering.index(0), lowering.index(cols), width, zero,
            [&](Value c, Value acc) { return term(i, j, c, acc); });
        Value total =
            vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
        memref::StoreOp::create(b, total, memref, ValueRange{i, j});
      });
    });
    lowering.setBuffer(result, memref);
  }
  return success();
}

/// result[i, c] = scale acc[i, c] + sum_j a[i, j] b[j, c].
LogicalResult mlir::gdn::tile_to_vector::lowerOuter(Lowering &lowering,
                                                    gdn_tile::OuterOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = getFragmentType(op.getResult());
  VectorType right = getFragmentType(op.getB());
  int64_t width = getPieceWidth(type.getDimSize(1));
  auto pieceType = VectorType::get(width, b.getF32Type());
  auto rowType = VectorType::get(width, right.getElementType());
  Value a = lowering.buffer(op.getA()), rows = lowering.buffer(op.getB());
  Value memref = lowering.allocateFragment(type), scale;
  if (op.getScale()) {
    Value first = memref::LoadOp::create(
        b, lowering.buffer(op.getScale()),
        ValueRange{lowering.index(0), lowering.index(0)});
    scale = vector::BroadcastOp::create(b, pieceType, first);
  }
  auto term = [&](Value i, Value j, Value c, Value sum) -> Value {
    Value factor = memref::LoadOp::create(b, a, ValueRange{i, j});
    factor = vector::BroadcastOp::create(b, pieceType, factor);
    Value row = lowering.toF32(
        vector::LoadOp::create(b, rowType, rows, ValueRange{j, c}));
    Value product = arith::MulFOp::create(b, factor, row, kContract);
    return arith::AddFOp::create(b, sum, product, kContract);
  };
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(type.getDimSize(1), width, [&](Value c) {
      Value start = lowering.toF32(lowering.piece(op.getAcc(), i, c, width));
      if (scale)
        start = arith::MulFOp::create(b, start, scale);
      Value sum = lowering.reduce(
          lowering.index(0), lowering.index(right.getDimSize(0)), 1, start,
          [&](Value j, Value acc) { return term(i, j, c, acc); });
      if (type.getElementType() != b.getF32Type())
        sum = arith::TruncFOp::create(
            b, VectorType::get(width, type.getElementType()), sum);
      vector::StoreOp::create(b, sum, memref, ValueRange{i, c});
    });
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

/// Rows 0 .. 3 of a, then rows 0 .. 3 of b.
LogicalResult mlir::gdn::tile_to_vector::lowerStack(Lowering &lowering,
                                                    gdn_tile::StackOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = getFragmentType(op.getResult());
  int64_t half = type.getDimSize(0) / 2,
          width = getPieceWidth(type.getDimSize(1));
  Value memref = lowering.allocateFragment(type);
  for (auto [operand, start] : {std::pair<Value, int64_t>{op.getA(), 0},
                                std::pair<Value, int64_t>{op.getB(), half}})
    lowering.loop(half, 1, [&, operand = operand, start = start](Value i) {
      Value row = arith::AddIOp::create(b, i, lowering.index(start));
      lowering.loop(type.getDimSize(1), width, [&](Value c) {
        vector::StoreOp::create(b, lowering.piece(operand, i, c, width), memref,
                                ValueRange{row, c});
      });
    });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

/// x[i, t] = rhs[i, t] - sum_{s < t} l[t, s] x[i, s], and 0 from `count` on.
LogicalResult
mlir::gdn::tile_to_vector::lowerTriSolve(Lowering &lowering,
                                         gdn_tile::TriSolveOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = getFragmentType(op.getResult());
  Value l = lowering.buffer(op.getL()), rhs = lowering.buffer(op.getRhs());
  Value x = lowering.allocateFragment(type);
  int64_t count = op.getCount();
  Value zero = lowering.splat(0.0, b.getF32Type());
  auto solve = [&](Value i, Value t) -> Value {
    Value init = memref::LoadOp::create(b, rhs, ValueRange{i, t});
    return lowering.reduce(
        lowering.index(0), t, 1, init, [&](Value s, Value acc) -> Value {
          Value factor = memref::LoadOp::create(b, l, ValueRange{t, s});
          Value known = memref::LoadOp::create(b, x, ValueRange{i, s});
          Value product = arith::MulFOp::create(b, factor, known, kContract);
          return arith::SubFOp::create(b, acc, product, kContract);
        });
  };
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(lowering.index(0), lowering.index(count), 1, [&](Value t) {
      memref::StoreOp::create(b, solve(i, t), x, ValueRange{i, t});
    });
    lowering.loop(lowering.index(count), lowering.index(type.getDimSize(1)), 1,
                  [&](Value t) {
                    memref::StoreOp::create(b, zero, x, ValueRange{i, t});
                  });
  });
  lowering.setBuffer(op.getResult(), x);
  return success();
}

LogicalResult
mlir::gdn::tile_to_vector::lowerAfterLoads(Lowering &lowering,
                                           gdn_tile::AfterLoadsOp op) {
  for (auto [value, result] : llvm::zip(op.getValues(), op.getResults()))
    lowering.setBuffer(result, lowering.buffer(value));
  return success();
}
