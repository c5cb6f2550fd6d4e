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

LogicalResult mlir::gdn::tile_to_vector::lowerWarpMma(Lowering &lowering,
                                                      gdn_tile::WarpMmaOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto type = cast<VectorType>(op.getResult().getType());
  int64_t k = getFragmentType(op.getA()).getDimSize(1);
  int64_t width = getPieceWidth(k);
  auto pieceType = VectorType::get(width, b.getF32Type());
  Value memref = lowering.allocateFragment(type);
  auto load = [&](Value matrix, Value row, Value p) -> Value {
    return lowering.toF32(lowering.piece(matrix, row, p, width));
  };
  lowering.loop(type.getDimSize(0), 1, [&](Value i) {
    lowering.loop(type.getDimSize(1), 1, [&](Value j) {
      Value sums = lowering.reduce(
          lowering.index(0), lowering.index(k), width,
          lowering.splat(0.0, pieceType), [&](Value p, Value acc) -> Value {
            auto contract = arith::FastMathFlags::contract;
            Value product = arith::MulFOp::create(
                b, load(op.getA(), i, p), load(op.getB(), j, p), contract);
            return arith::AddFOp::create(b, acc, product, contract);
          });
      Value sum =
          vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums);
      if (op.getAcc()) {
        Value acc = vector::ExtractOp::create(
            b, lowering.piece(op.getAcc(), i, j, 1), ArrayRef<int64_t>{0});
        sum = arith::AddFOp::create(b, acc, sum);
      }
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

// X[i, j] = delta_ij - sum_{k < i} M[i, k] s_k X[k, j], stored transposed, for
// the rows i of a block one after the other.
LogicalResult
mlir::gdn::tile_to_vector::lowerBlockInverse(Lowering &lowering,
                                             gdn_tile::BlockInverseOp op) {
  constexpr int64_t size = 16;
  ImplicitLocOpBuilder &b = lowering.b;
  Value products = lowering.get(op.getProducts());
  Value scale = lowering.get(op.getScale());
  Value out = lowering.get(op.getOut());
  int64_t chunk = cast<MemRefType>(scale.getType()).getDimSize(0);
  Value zero = lowering.splat(0.0, b.getF32Type());
  Value one = lowering.splat(1.0, b.getF32Type());
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto solve = [&](Value block, Value j, Value i) {
    Value row = add(block, i), column = add(block, j);
    Value sum = lowering.reduce(
        lowering.index(0), i, 1, zero, [&](Value k, Value acc) -> Value {
          Value entry = memref::LoadOp::create(b, products,
                                               ValueRange{row, add(block, k)});
          Value known = memref::LoadOp::create(b, out, ValueRange{column, k});
          Value factor = memref::LoadOp::create(b, scale, add(block, k));
          known = arith::MulFOp::create(b, factor, known);
          return arith::AddFOp::create(b, acc,
                                       arith::MulFOp::create(b, entry, known));
        });
    Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, i, j);
    Value unit = arith::SelectOp::create(b, isOne, one, zero);
    Value result = arith::SubFOp::create(b, unit, sum);
    memref::StoreOp::create(b, result, out, ValueRange{column, i});
  };
  lowering.loop(chunk, size, [&](Value block) {
    lowering.loop(size, 1, [&](Value j) {
      lowering.loop(size, 1, [&](Value i) { solve(block, j, i); });
    });
  });
  return success();
}
