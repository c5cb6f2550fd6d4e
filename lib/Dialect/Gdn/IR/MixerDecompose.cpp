//===- MixerDecompose.cpp - linalg forms of l2norm, gate, gated_rms_norm --===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::gdn;

/// sum over the last dimension of x^2.
static Value sumOfSquares(LinalgBuilder &l, Value x) {
  SmallVector<OpFoldResult> sizes = l.sizes(x);
  return l.reduce(
      l.zeros(ArrayRef(sizes).drop_back()), {{x, allDims(sizes.size())}},
      [](FloatBuilder &f, ValueRange args) { return f.mul(args[0], args[0]); });
}

static Value rsqrt(FloatBuilder &f, Value x) {
  return f.div(f.constant(1.0), math::SqrtOp::create(f.b, f.loc, x));
}

FailureOr<SmallVector<Value>> L2NormOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  int64_t rank = cast<ShapedType>(getX().getType()).getRank();
  double eps = getEps().convertToDouble();
  Value factors = l.update(sumOfSquares(l, getX()), {},
                           [&](FloatBuilder &f, ValueRange args) {
                             return rsqrt(f, f.add(args[0], f.constant(eps)));
                           });
  return SmallVector<Value>{
      l.map(getOut(), {{getX(), allDims(rank)}, {factors, allDims(rank - 1)}},
            [](FloatBuilder &f, ValueRange args) {
              return f.mul(args[0], args[1]);
            })};
}

FailureOr<SmallVector<Value>> GateOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  int64_t rank = cast<ShapedType>(getA().getType()).getRank();
  Value rates =
      l.map(l.empty(l.sizes(getALog())), {{getALog(), {0}}},
            [](FloatBuilder &f, ValueRange args) { return f.exp(args[0]); });
  SmallVector<Input> inputs = {{getA(), allDims(rank)}, {rates, {2}}};
  if (Value bias = getBias()) {
    SmallVector<int64_t> dims = allDims(rank);
    inputs.push_back(
        {bias, SmallVector<int64_t>(ArrayRef(dims).drop_front(2))});
  }
  std::optional<APFloat> bound = getLowerBound();
  Value gate =
      l.map(getOut(), inputs, [&](FloatBuilder &f, ValueRange args) -> Value {
        Value x = args.size() > 2 ? f.add(args[0], args[2]) : args[0];
        if (bound)
          return f.mul(f.constant(bound->convertToDouble()),
                       f.sigmoid(f.mul(args[1], x)));
        return f.sub(f.constant(-0.0), f.mul(args[1], f.softplus(x)));
      });
  return SmallVector<Value>{gate};
}

FailureOr<SmallVector<Value>>
GatedRMSNormOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  auto type = cast<ShapedType>(getX().getType());
  int64_t rank = type.getRank();
  double size = static_cast<double>(type.getDimSize(rank - 1));
  double eps = getEps().convertToDouble();
  Value factors = l.update(sumOfSquares(l, getX()), {},
                           [&](FloatBuilder &f, ValueRange args) {
                             Value mean = f.div(args[0], f.constant(size));
                             return rsqrt(f, f.add(mean, f.constant(eps)));
                           });
  Value y =
      l.map(getOut(),
            {{getX(), allDims(rank)},
             {factors, allDims(rank - 1)},
             {getW(), {rank - 1}},
             {getZ(), allDims(rank)}},
            [&](FloatBuilder &f, ValueRange args) {
              Value normalised = f.mul(f.mul(args[0], args[1]), args[2]);
              return f.mul(normalised, f.activation(args[3], getActivation()));
            });
  return SmallVector<Value>{y};
}
