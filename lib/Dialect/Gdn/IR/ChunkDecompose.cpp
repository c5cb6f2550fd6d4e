//===- ChunkDecompose.cpp - linalg forms of cumsum and tri_inverse --------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

/// A loop over `position` from `begin` to `end` that carries `inits`.
static ValueRange forEach(
    LinalgBuilder &l, Value begin, Value end, ValueRange inits,
    function_ref<SmallVector<Value>(LinalgBuilder &, Value, ValueRange)> body) {
  return scf::ForOp::create(
             l.b, l.loc, begin, end, l.indexValue(1), inits,
             [&](OpBuilder &b, Location loc, Value position, ValueRange args) {
               LinalgBuilder nested(b, loc);
               scf::YieldOp::create(b, loc, body(nested, position, args));
             })
      .getResults();
}

/// Writes `part` over row `position` of `whole`.
static Value writeRow(LinalgBuilder &l, Value part, Value whole,
                      Value position) {
  Value target = l.row(whole, position);
  int64_t rank = cast<ShapedType>(target.getType()).getRank();
  Value copied =
      l.map(target, {{part, allDims(rank)}},
            [](FloatBuilder &f, ValueRange args) { return args[0]; });
  SmallVector<OpFoldResult> offsets(rank + 1, l.index(0));
  SmallVector<OpFoldResult> sizes = l.sizes(whole);
  offsets[0] = position;
  sizes[0] = l.index(1);
  return l.insert(copied, whole, offsets, sizes);
}

FailureOr<SmallVector<Value>> CumsumOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  SmallVector<OpFoldResult> sizes = l.sizes(getX());
  Value count = getValueOrCreateConstantIndexOp(builder, getLoc(), sizes[0]);
  if (sizes.size() == 1) {
    Value zero = FloatBuilder(builder, getLoc()).constant(0.0);
    ValueRange results = forEach(
        l, l.indexValue(0), count, {zero, getOut()},
        [&](LinalgBuilder &n, Value i, ValueRange args) -> SmallVector<Value> {
          Value x = tensor::ExtractOp::create(n.b, n.loc, getX(), i);
          Value sum = FloatBuilder(n.b, n.loc).add(args[0], x);
          return {sum, tensor::InsertOp::create(n.b, n.loc, sum, args[1], i)};
        });
    return SmallVector<Value>{results[1]};
  }
  Value zero = l.zeros(ArrayRef(sizes).drop_front());
  ValueRange results = forEach(
      l, l.indexValue(0), count, {zero, getOut()},
      [&](LinalgBuilder &n, Value i, ValueRange args) -> SmallVector<Value> {
        Value sum =
            n.update(args[0], {{n.row(getX(), i), allDims(sizes.size() - 1)}},
                     [](FloatBuilder &f, ValueRange values) {
                       return f.add(values[1], values[0]);
                     });
        return {sum, writeRow(n, sum, args[1], i)};
      });
  return SmallVector<Value>{results[1]};
}

/// Row i of the inverse: row i of the unit matrix minus sum_{j < i} x_ij row j.
static Value substituteRow(LinalgBuilder &l, Value x, Value inverse, Value i) {
  SmallVector<OpFoldResult> sizes = l.sizes(inverse);
  sizes[0] = l.index(1);
  auto rowOf = [&](LinalgBuilder &n, Value position) {
    return n.slice(inverse, {position, n.index(0)}, sizes);
  };
  ValueRange row = forEach(
      l, l.indexValue(0), i, {rowOf(l, i)},
      [&](LinalgBuilder &n, Value j, ValueRange args) -> SmallVector<Value> {
        Value factor =
            tensor::ExtractOp::create(n.b, n.loc, x, ValueRange{i, j});
        return {n.update(args[0], {{rowOf(n, j), {0, 1}}},
                         [&](FloatBuilder &f, ValueRange values) {
                           return f.sub(values[1], f.mul(factor, values[0]));
                         })};
      });
  return l.insert(row[0], inverse, {i, l.index(0)}, sizes);
}

FailureOr<SmallVector<Value>>
TriInverseOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  Value unit = l.map(getOut(), {}, [](FloatBuilder &f, ValueRange) {
    Value isDiagonal =
        arith::CmpIOp::create(f.b, f.loc, arith::CmpIPredicate::eq,
                              linalg::IndexOp::create(f.b, f.loc, 0),
                              linalg::IndexOp::create(f.b, f.loc, 1));
    return f.select(isDiagonal, f.constant(1.0), f.constant(0.0));
  });
  Value count = l.indexValue(cast<ShapedType>(getX().getType()).getDimSize(0));
  ValueRange results = forEach(
      l, l.indexValue(1), count, unit,
      [&](LinalgBuilder &n, Value i, ValueRange args) -> SmallVector<Value> {
        return {substituteRow(n, getX(), args[0], i)};
      });
  return SmallVector<Value>{results[0]};
}
