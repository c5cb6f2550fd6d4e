//===- WarpOps.cpp - work of single warps on the CPU ----------------------===//
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

// One item after the other: the tiles of a warp are those of all warps.
LogicalResult
mlir::gdn::tile_to_vector::lowerEachWarp(Lowering &lowering,
                                         gdn_tile::EachWarpOp op) {
  LogicalResult status = success();
  lowering.loop(lowering.index(0), lowering.get(op.getCount()), 1,
                [&](Value item) {
                  lowering.map(op.getItem(), item);
                  status = lowering.lowerBlock(op.getBody().front());
                });
  return status;
}

/// The bfloat16 parts of a fragment, high and low, as buffers of f32.
static std::pair<Value, Value> splitInTwo(Lowering &lowering, Value fragment) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = getFragmentType(fragment);
  int64_t width = getPieceWidth(type.getDimSize(1));
  auto roundedType = VectorType::get(width, b.getBF16Type());
  auto round = [&](Value value) {
    return lowering.toF32(arith::TruncFOp::create(b, roundedType, value));
  };
  Value high = lowering.allocateFragment(type);
  Value low = lowering.allocateFragment(type);
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(type.getDimSize(1), width, [&](Value j) {
      Value value = lowering.piece(fragment, i, j, width);
      Value rounded = round(value);
      vector::StoreOp::create(b, rounded, high, ValueRange{i, j});
      Value error = arith::SubFOp::create(b, value, rounded);
      vector::StoreOp::create(b, round(error), low, ValueRange{i, j});
    });
  });
  return {high, low};
}

/// Element [i, j] of a b^T + acc, acc null for none.
static Value multiplyRows(Lowering &lowering, VectorType operand, Value a,
                          Value b, Value i, Value j, Value acc) {
  ImplicitLocOpBuilder &builder = lowering.b;
  int64_t k = operand.getDimSize(1), width = getPieceWidth(k);
  auto pieceType = VectorType::get(width, operand.getElementType());
  auto load = [&](Value matrix, Value row, Value p) {
    return lowering.toF32(
        vector::LoadOp::create(builder, pieceType, matrix, ValueRange{row, p}));
  };
  auto contract = arith::FastMathFlags::contract;
  Value sums = lowering.reduce(
      lowering.index(0), lowering.index(k), width,
      lowering.splat(0.0, VectorType::get(width, builder.getF32Type())),
      [&](Value p, Value sum) -> Value {
        Value product = arith::MulFOp::create(builder, load(a, i, p),
                                              load(b, j, p), contract);
        return arith::AddFOp::create(builder, sum, product, contract);
      });
  Value sum =
      vector::ReductionOp::create(builder, vector::CombiningKind::ADD, sums);
  return acc ? arith::AddFOp::create(builder, acc, sum).getResult() : sum;
}

// Of f32 operands in three products of parts as on the GPU, so that forms that
// split them elsewhere compute the same bits; TF32 is taken for float32.
LogicalResult mlir::gdn::tile_to_vector::lowerWarpMma(Lowering &lowering,
                                                      gdn_tile::WarpMmaOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto type = cast<VectorType>(op.getResult().getType());
  SmallVector<std::pair<Value, Value>> products;
  if (op.getPrecision() == gdn_tile::ProductPrecision::BF16x3) {
    auto [leftHigh, leftLow] = splitInTwo(lowering, op.getA());
    auto [rightHigh, rightLow] = splitInTwo(lowering, op.getB());
    products = {
        {leftLow, rightHigh}, {leftHigh, rightLow}, {leftHigh, rightHigh}};
  } else {
    products = {{lowering.buffer(op.getA()), lowering.buffer(op.getB())}};
  }
  VectorType operand = getFragmentType(op.getA());
  Value memref = lowering.allocateFragment(type);
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(type.getDimSize(1), 1, [&](Value j) {
      Value sum;
      if (op.getAcc())
        sum = vector::ExtractOp::create(b, lowering.piece(op.getAcc(), i, j, 1),
                                        ArrayRef<int64_t>{0});
      for (auto [left, right] : products)
        sum = multiplyRows(lowering, operand, left, right, i, j, sum);
      memref::StoreOp::create(b, sum, memref, ValueRange{i, j});
    });
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerOwnRows(Lowering &lowering,
                                                      gdn_tile::OwnRowsOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto type = cast<VectorType>(op.getResult().getType());
  int64_t width = getPieceWidth(type.getDimSize(1));
  Value item =
      lowering.get(op->getParentOfType<gdn_tile::EachWarpOp>().getItem());
  Value first = arith::MulIOp::create(b, item, lowering.index(16));
  Value memref = lowering.allocateFragment(type);
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    Value row = arith::AddIOp::create(b, first, i);
    lowering.loop(type.getDimSize(1), width, [&](Value j) {
      Value column =
          arith::AddIOp::create(b, j, lowering.index(op.getColumn()));
      Value piece = lowering.piece(op.getValue(), row, column, width);
      vector::StoreOp::create(b, piece, memref, ValueRange{i, j});
    });
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

// A matrix of 8x8 after the other.
// Calls `handle` for each matrix of 8x8 of a block, with its first element in
// the fragment and its indices in the memref.
template <typename OpT>
static void forEachMatrix(
    Lowering &lowering, OpT op,
    function_ref<void(SmallVector<Value>, SmallVector<Value>)> handle) {
  ImplicitLocOpBuilder &b = lowering.b;
  constexpr int64_t rows = gdn_tile::kMatrixRows;
  constexpr int64_t columns = gdn_tile::kPanelColumns;
  int64_t rank = op.getIndices().size();
  for (int64_t k : {int64_t(0), rows})
    for (int64_t n : {int64_t(0), rows}) {
      if (op.getDiagonal() && k > n)
        continue;
      SmallVector<Value> indices = lowering.get(op.getIndices());
      int64_t row = n / rows * columns + gdn_tile::getRowOfColumn(k) -
                    (op.getDiagonal() ? rows : 0);
      indices[rank - 2] =
          arith::AddIOp::create(b, indices[rank - 2], lowering.index(row));
      handle({lowering.index(k), lowering.index(n)}, indices);
    }
}

LogicalResult
mlir::gdn::tile_to_vector::lowerStoreBlock(Lowering &lowering,
                                           gdn_tile::StoreBlockOp op) {
  int64_t rank = op.getIndices().size();
  Value value = lowering.buffer(op.getValue());
  forEachMatrix(
      lowering, op, [&](SmallVector<Value> first, SmallVector<Value> indices) {
        lowering.copy(
            {value, first, {0, 1}},
            {lowering.get(op.getMemref()), indices, {rank - 2, rank - 1}},
            {gdn_tile::kMatrixRows, gdn_tile::kPanelWidth},
            /*valid=*/{}, /*zeroFill=*/false);
      });
  return success();
}

LogicalResult
mlir::gdn::tile_to_vector::lowerLoadBlock(Lowering &lowering,
                                          gdn_tile::LoadBlockOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  int64_t rank = op.getIndices().size();
  auto type = cast<VectorType>(op.getValue().getType());
  Value value = lowering.allocateFragment(type);
  auto zeros = VectorType::get(type.getDimSize(1), type.getElementType());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(zeros));
  for (int64_t row = 0; op.getDiagonal() && row < type.getDimSize(0); ++row)
    vector::StoreOp::create(b, none, value,
                            ValueRange{lowering.index(row), lowering.index(0)});
  forEachMatrix(
      lowering, op, [&](SmallVector<Value> first, SmallVector<Value> indices) {
        lowering.copy(
            {lowering.get(op.getMemref()), indices, {rank - 2, rank - 1}},
            {value, first, {0, 1}},
            {gdn_tile::kMatrixRows, gdn_tile::kPanelWidth},
            /*valid=*/{}, /*zeroFill=*/false);
      });
  lowering.setBuffer(op.getValue(), value);
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerAny(Lowering &lowering,
                                                  gdn_tile::AnyOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType from = getFragmentType(op.getValue());
  int64_t width = getPieceWidth(from.getDimSize(1));
  auto pieceType = VectorType::get(width, b.getI1Type());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(pieceType));
  Value zero = lowering.index(0), rows = lowering.index(from.getDimSize(0)),
        columns = lowering.index(from.getDimSize(1));
  auto anyOfRows = [&](Value j, Value init) {
    return lowering.reduce(
        zero, rows, 1, init, [&](Value i, Value acc) -> Value {
          return arith::OrIOp::create(
              b, acc, lowering.piece(op.getValue(), i, j, width));
        });
  };
  VectorType to = getFragmentType(op.getResult());
  if (!to) {
    Value any =
        lowering.reduce(zero, columns, width, none,
                        [&](Value j, Value acc) { return anyOfRows(j, acc); });
    lowering.map(op.getResult(), vector::ReductionOp::create(
                                     b, vector::CombiningKind::OR, any));
    return success();
  }
  Value memref = lowering.allocateFragment(to);
  Type stored = cast<MemRefType>(memref.getType()).getElementType();
  lowering.loop(from.getDimSize(1), width, [&](Value j) {
    Value any = arith::ExtUIOp::create(b, VectorType::get(width, stored),
                                       anyOfRows(j, none));
    vector::StoreOp::create(b, any, memref, ValueRange{zero, j});
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

// X[i, j] = delta_ij - sum_{k < i} M[i, k] s_k X[k, j] for the rows i of a
// block one after the other, and the same transposed.
static void invertBlock(Lowering &lowering, gdn_tile::BlockInverseOp op,
                        int64_t first, Value transposed, Value plain) {
  constexpr int64_t size = 16;
  ImplicitLocOpBuilder &b = lowering.b;
  Value products = lowering.get(op.getProducts());
  Value scale = lowering.get(op.getScale());
  Value zero = lowering.splat(0.0, b.getF32Type());
  Value one = lowering.splat(1.0, b.getF32Type());
  auto inChunk = [&](Value token) -> Value {
    return arith::AddIOp::create(b, lowering.index(first), token);
  };
  auto solve = [&](Value j, Value i) {
    Value row = inChunk(i);
    Value sum = lowering.reduce(
        lowering.index(0), i, 1, zero, [&](Value k, Value acc) -> Value {
          Value entry =
              memref::LoadOp::create(b, products, ValueRange{row, inChunk(k)});
          Value known = memref::LoadOp::create(b, transposed, ValueRange{j, k});
          Value factor = memref::LoadOp::create(b, scale, inChunk(k));
          known = arith::MulFOp::create(b, factor, known);
          return arith::AddFOp::create(b, acc,
                                       arith::MulFOp::create(b, entry, known));
        });
    Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i, j);
    Value unit = arith::SelectOp::create(b, isOne, one, zero);
    Value result = arith::SubFOp::create(b, unit, sum);
    memref::StoreOp::create(b, result, transposed, ValueRange{j, i});
    memref::StoreOp::create(b, result, plain, ValueRange{i, j});
  };
  lowering.loop(size, 1, [&](Value j) {
    lowering.loop(size, 1, [&](Value i) { solve(j, i); });
  });
}

LogicalResult
mlir::gdn::tile_to_vector::lowerBlockInverse(Lowering &lowering,
                                             gdn_tile::BlockInverseOp op) {
  int64_t blocks = op.getNumResults() / 2;
  for (int64_t i = 0; i < blocks; ++i) {
    Value buffers[2];
    for (int64_t isPlain : {0, 1}) {
      Value result = op.getResult(isPlain * blocks + i);
      buffers[isPlain] = lowering.allocateFragment(getFragmentType(result));
      lowering.setBuffer(result, buffers[isPlain]);
    }
    invertBlock(lowering, op, 16 * i, buffers[0], buffers[1]);
  }
  return success();
}
