//===- ChunkOps.cpp - cumsum, scores and tri_inverse on the CPU -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

// factor * max(source, least), what the sums are of.
static void copySummands(Lowering &lowering, gdn_tile::CumsumOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value source = lowering.get(op.getSource()),
        tile = lowering.get(op.getTile());
  int64_t count = cast<MemRefType>(tile.getType()).getDimSize(0);
  int64_t width = op.getColumn() ? 1 : getPieceWidth(count);
  auto type = VectorType::get(width, b.getF32Type());
  auto splat = [&](const APFloat &value) {
    return lowering.splat(value.convertToDouble(), type);
  };
  Value least = splat(*op.getLeast()), factor = splat(*op.getFactor());
  lowering.loop(count, width, [&](Value i) {
    SmallVector<Value> position{i};
    if (op.getColumn())
      position.push_back(lowering.get(op.getColumn()));
    Value value = vector::LoadOp::create(b, type, source, position);
    value = arith::MulFOp::create(b, arith::MaximumFOp::create(b, value, least),
                                  factor);
    vector::StoreOp::create(b, value, tile, i);
  });
}

LogicalResult mlir::gdn::tile_to_vector::lowerCumsum(Lowering &lowering,
                                                     gdn_tile::CumsumOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value tile = lowering.get(op.getTile());
  auto type = cast<MemRefType>(tile.getType());
  Value one = lowering.index(1), rows = lowering.index(type.getDimSize(0));
  if (op.getSource())
    copySummands(lowering, op);
  auto add = [&](ValueRange previous, ValueRange position) {
    Value sum =
        arith::AddFOp::create(b, memref::LoadOp::create(b, tile, previous),
                              memref::LoadOp::create(b, tile, position));
    memref::StoreOp::create(b, sum, tile, position);
  };
  lowering.loop(one, rows, 1, [&](Value i) {
    Value previous = arith::SubIOp::create(b, i, one);
    if (type.getRank() == 1)
      return add(previous, i);
    lowering.loop(type.getDimSize(1), 1,
                  [&](Value j) { add({previous, j}, {i, j}); });
  });
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerDecays(Lowering &lowering,
                                                     gdn_tile::DecaysOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value sums = lowering.get(op.getSums()), rows = lowering.get(op.getRows());
  int64_t count = cast<MemRefType>(sums.getType()).getDimSize(0);
  auto type = VectorType::get(getPieceWidth(count), b.getF32Type());
  Value last = vector::BroadcastOp::create(
      b, type, memref::LoadOp::create(b, sums, lowering.index(count - 1)));
  Value scale = lowering.splat(op.getScale().convertToDouble(), type);
  auto store = [&](Value value, int64_t row, Value i) {
    Value at = arith::AddIOp::create(b, lowering.index(row * count), i);
    vector::StoreOp::create(b, value, rows, at);
  };
  lowering.loop(count, type.getDimSize(0), [&](Value i) {
    Value sum = vector::LoadOp::create(b, type, sums, i);
    Value grown = math::Exp2Op::create(b, sum);
    Value rest = math::Exp2Op::create(b, arith::SubFOp::create(b, last, sum));
    Value scaled = arith::MulFOp::create(b, grown, scale);
    auto multiply = [&](Value &value, Value vector) {
      if (vector)
        value = arith::MulFOp::create(
            b, value, vector::LoadOp::create(b, type, lowering.get(vector), i));
    };
    multiply(rest, op.getBeta());
    multiply(rest, op.getKeys());
    multiply(grown, op.getKeys());
    multiply(scaled, op.getQueries());
    store(grown, 0, i);
    store(rest, 1, i);
    store(scaled, 2, i);
  });
  if (op.getKeys()) {
    auto eight = VectorType::get(gdn_tile::DecaysOp::kLastSize, b.getF32Type());
    Value all = vector::BroadcastOp::create(
        b, eight, memref::LoadOp::create(b, sums, lowering.index(count - 1)));
    vector::StoreOp::create(b, math::Exp2Op::create(b, all), rows,
                            lowering.index(3 * count));
  }
  return success();
}

// acc[i, j] + sum_c x[i, c] k[j, c] 2^(sums[i + 1, c] - sums[j + 1, c])
static void addScore(Lowering &lowering, gdn_tile::ScoresOp op, Value x,
                     Value out, Value i, Value j) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto type = cast<MemRefType>(op.getK().getType());
  int64_t width = getPieceWidth(type.getDimSize(1));
  auto pieceType = VectorType::get(width, b.getF32Type());
  auto load = [&](Value tile, Value row, Value c) {
    Value memref = lowering.get(tile);
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    return lowering.toF32(vector::LoadOp::create(
        b, VectorType::get(width, element), memref, ValueRange{row, c}));
  };
  Value one = lowering.index(1);
  Value sumsI = arith::AddIOp::create(b, i, one);
  Value sumsJ = arith::AddIOp::create(b, j, one);
  Value sum = lowering.reduce(
      lowering.index(0), lowering.index(type.getDimSize(1)), width,
      lowering.splat(0.0, pieceType), [&](Value c, Value acc) -> Value {
        Value difference = arith::SubFOp::create(
            b, load(op.getSums(), sumsI, c), load(op.getSums(), sumsJ, c));
        Value decay = math::Exp2Op::create(b, difference);
        Value product =
            arith::MulFOp::create(b, load(x, i, c), load(op.getK(), j, c));
        return arith::AddFOp::create(b, acc,
                                     arith::MulFOp::create(b, product, decay));
      });
  Value total = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
  Value acc = memref::LoadOp::create(b, out, ValueRange{i, j});
  memref::StoreOp::create(b, arith::AddFOp::create(b, acc, total), out,
                          ValueRange{i, j});
}

LogicalResult mlir::gdn::tile_to_vector::lowerScores(Lowering &lowering,
                                                     gdn_tile::ScoresOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  VectorType type = getFragmentType(op.getScores());
  auto lower = [&](Value x, Value acc, Value result, bool strict) {
    Value out = lowering.allocateFragment(type);
    lowering.fill(out, acc);
    lowering.loop(type.getDimSize(0), 1, [&](Value i) {
      Value end = strict ? i : arith::AddIOp::create(b, i, lowering.index(1));
      lowering.loop(lowering.index(0), end, 1,
                    [&](Value j) { addScore(lowering, op, x, out, i, j); });
    });
    lowering.setBuffer(result, out);
  };
  lower(op.getQ(), op.getAcc(), op.getScores(), /*strict=*/false);
  if (op.getLeft())
    lower(op.getLeft(), op.getStrictAcc(), op.getStrict(), /*strict=*/true);
  return success();
}

LogicalResult
mlir::gdn::tile_to_vector::lowerTriInverse(Lowering &lowering,
                                           gdn_tile::TriInverseOp op) {
  // X[i, :] = e_i - sum_{j < i} L[i, j] X[j, :]; rows 0..i-1 of the tile
  // hold X already, row i still holds L.
  ImplicitLocOpBuilder &b = lowering.b;
  Value tile = lowering.get(op.getTile());
  int64_t chunk = cast<MemRefType>(tile.getType()).getDimSize(0);
  auto rowType = VectorType::get(chunk, b.getF32Type());
  Value zeroIndex = lowering.index(0);
  Value zero = lowering.splat(0.0, rowType);
  Value one = lowering.splat(1.0, b.getF32Type());
  lowering.loop(chunk, 1, [&](Value i) {
    Value unit = vector::InsertOp::create(b, one, zero, OpFoldResult(i));
    Value row = lowering.reduce(
        zeroIndex, i, 1, unit, [&](Value j, Value acc) -> Value {
          Value factor = memref::LoadOp::create(b, tile, ValueRange{i, j});
          factor = vector::BroadcastOp::create(b, rowType, factor);
          Value solved = vector::LoadOp::create(b, rowType, tile,
                                                ValueRange{j, zeroIndex});
          return arith::SubFOp::create(
              b, acc, arith::MulFOp::create(b, factor, solved));
        });
    vector::StoreOp::create(b, row, tile, ValueRange{i, zeroIndex});
  });
  return success();
}
