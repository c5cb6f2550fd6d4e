//===- MmaOp.cpp - matrix products of tile programs on the CPU ------------===//
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

// The row where the 16 of columns k and 8 rows n of a matrix in panels begin.
static Value getPanelRow(Lowering &lowering, Value n, Value k, int64_t rows) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value all = arith::MulIOp::create(b, k, lowering.index(rows));
  Value before =
      arith::MulIOp::create(b, n, lowering.index(gdn_tile::kPanelColumns));
  Value elements = arith::AddIOp::create(b, all, before);
  return arith::DivUIOp::create(b, elements,
                                lowering.index(gdn_tile::kPanelWidth));
}

// `b` as a KxN matrix of f32, which the product reads in pieces of rows.
static Value getRightOperand(Lowering &lowering, gdn_tile::MmaOp op, int64_t k,
                             int64_t n) {
  Value tile = lowering.get(op.getB());
  Type element = cast<MemRefType>(tile.getType()).getElementType();
  if (element.isF32() && !op.getTransposeB())
    return tile;
  Value matrix = lowering.scratch({k, n}, lowering.b.getF32Type());
  if (op.hasPanels()) {
    constexpr int64_t columns = gdn_tile::kPanelColumns;
    constexpr int64_t width = gdn_tile::kPanelWidth;
    lowering.loop(k, columns, [&](Value firstK) {
      lowering.loop(n, width, [&](Value firstN) {
        Value row = getPanelRow(lowering, firstN, firstK, n);
        ImplicitLocOpBuilder &b = lowering.b;
        for (int64_t k = 0; k < columns; k += gdn_tile::kMatrixRows) {
          Value from = lowering.index(gdn_tile::getRowOfColumn(k));
          lowering.copy(
              {tile,
               {arith::AddIOp::create(b, row, from), lowering.index(0)},
               {0, 1}},
              {matrix,
               {arith::AddIOp::create(b, firstK, lowering.index(k)), firstN},
               {0, 1}},
              {gdn_tile::kMatrixRows, width},
              /*valid=*/{}, /*zeroFill=*/false);
        }
      });
    });
    return matrix;
  }
  SmallVector<Value> origin(2, lowering.index(0));
  View from{tile, origin, {0, 1}};
  if (op.getTransposeB())
    from.dims = {1, 0};
  View to{matrix, origin, {0, 1}};
  lowering.copy(from, to, {k, n}, /*valid=*/{}, /*zeroFill=*/false);
  return matrix;
}

LogicalResult mlir::gdn::tile_to_vector::lowerMma(Lowering &lowering,
                                                  gdn_tile::MmaOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = op.getFragmentType();
  int64_t n = type.getDimSize(1), k = getFragmentType(op.getA()).getDimSize(1);
  int64_t width = getPieceWidth(n);
  auto pieceType = VectorType::get(width, b.getF32Type());
  Value left = lowering.buffer(op.getA());
  Value right = getRightOperand(lowering, op, k, n);
  Value memref = lowering.allocateFragment(type);
  auto step = [&](Value i, Value p, Value j, Value acc) -> Value {
    Value a = memref::LoadOp::create(b, left, ValueRange{i, p});
    a = vector::BroadcastOp::create(b, pieceType, lowering.toF32(a));
    Value row = vector::LoadOp::create(b, pieceType, right, ValueRange{p, j});
    auto contract = arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(b, a, row, contract);
    return arith::AddFOp::create(b, acc, product, contract);
  };
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(n, width, [&](Value j) {
      Value init = op.getAcc() ? lowering.piece(op.getAcc(), i, j, width)
                               : lowering.splat(0.0, pieceType);
      Value sum = lowering.reduce(
          lowering.index(0), lowering.index(k), 1, init,
          [&](Value p, Value acc) { return step(i, p, j, acc); });
      vector::StoreOp::create(b, sum, memref, ValueRange{i, j});
    });
  });
  lowering.setBuffer(op.getResult(), memref);
  return success();
}
