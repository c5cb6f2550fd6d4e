//===- DecomposeUtils.cpp - linalg forms of gdn ops -----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

// Without it no multiply-add is fused: LLVM's own contraction switch does not
// reach code that comes from MLIR.
static constexpr auto kContract = arith::FastMathFlags::contract;

//===----------------------------------------------------------------------===//
// FloatBuilder
//===----------------------------------------------------------------------===//

Value FloatBuilder::constant(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

Value FloatBuilder::add(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y, kContract);
}

Value FloatBuilder::sub(Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y, kContract);
}

Value FloatBuilder::mul(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y, kContract);
}

Value FloatBuilder::div(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y, kContract);
}

Value FloatBuilder::max(Value x, Value y) {
  return arith::MaximumFOp::create(b, loc, x, y, kContract);
}

Value FloatBuilder::exp(Value x) {
  return math::ExpOp::create(b, loc, x, kContract);
}

Value FloatBuilder::sigmoid(Value x) {
  Value minusX = arith::NegFOp::create(b, loc, x, kContract);
  return div(constant(1.0), add(constant(1.0), exp(minusX)));
}

Value FloatBuilder::softplus(Value x) {
  Value magnitude = math::AbsFOp::create(b, loc, x, kContract);
  Value minus = arith::NegFOp::create(b, loc, magnitude, kContract);
  Value tail = math::Log1pOp::create(b, loc, exp(minus), kContract);
  return add(max(x, constant(0.0)), tail);
}

Value FloatBuilder::activation(Value x, Activation kind) {
  switch (kind) {
  case Activation::None:
    return x;
  case Activation::SiLU:
    return mul(x, sigmoid(x));
  case Activation::Sigmoid:
    return sigmoid(x);
  }
  llvm_unreachable("unknown activation");
}

Value FloatBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value FloatBuilder::convert(Value x, Type type) {
  unsigned from = x.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (x.getType() == type)
    return x;
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, x);
  return arith::TruncFOp::create(b, loc, type, x);
}

//===----------------------------------------------------------------------===//
// LinalgBuilder
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

SmallVector<int64_t> mlir::gdn::allDims(int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(rank));
}

Value LinalgBuilder::empty(ArrayRef<OpFoldResult> sizes, Type type) {
  return tensor::EmptyOp::create(b, loc, sizes, type ? type : b.getF32Type());
}

Value LinalgBuilder::fillZero(Value init) {
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(tensorType(init).getElementType()));
  return linalg::FillOp::create(b, loc, zero, init).getResult(0);
}

Value LinalgBuilder::zeros(ArrayRef<OpFoldResult> sizes) {
  return fillZero(empty(sizes));
}

Value LinalgBuilder::generic(Value init, ArrayRef<Input> inputs,
                             int64_t reductionLoops, bool readsInit,
                             Body body) {
  int64_t parallel = tensorType(init).getRank();
  int64_t loops = parallel + reductionLoops;
  auto mapOf = [&](ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> results;
    for (int64_t dim : dims)
      results.push_back(b.getAffineDimExpr(dim));
    return AffineMap::get(loops, 0, results, b.getContext());
  };
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    maps.push_back(mapOf(input.dims));
  }
  maps.push_back(mapOf(allDims(parallel)));
  SmallVector<utils::IteratorType> iterators(parallel,
                                             utils::IteratorType::parallel);
  iterators.append(reductionLoops, utils::IteratorType::reduction);
  Type elementType = tensorType(init).getElementType();
  auto op = linalg::GenericOp::create(
      b, loc, init.getType(), values, init, maps, iterators,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
        FloatBuilder f(nested, nestedLoc);
        SmallVector<Value> extended;
        for (Value arg : readsInit ? args : args.drop_back())
          extended.push_back(f.convert(arg, nested.getF32Type()));
        linalg::YieldOp::create(nested, nestedLoc,
                                f.convert(body(f, extended), elementType));
      });
  return op.getResult(0);
}

Value LinalgBuilder::map(Value init, ArrayRef<Input> inputs, Body body) {
  return generic(init, inputs, 0, false, body);
}

Value LinalgBuilder::update(Value init, ArrayRef<Input> inputs, Body body) {
  return generic(init, inputs, 0, true, body);
}

Value LinalgBuilder::reduce(Value init, ArrayRef<Input> inputs, Body body) {
  return generic(init, inputs, 1, true, [&](FloatBuilder &f, ValueRange args) {
    return f.add(args.back(), body(f, args.drop_back()));
  });
}

Value LinalgBuilder::matmul(Value lhs, Value rhs, Value acc, bool transposeA) {
  if (!transposeA)
    return linalg::MatmulOp::create(b, loc, ValueRange{lhs, rhs},
                                    ValueRange{acc})
        .getResult(0);
  AffineExpr m, n, k;
  bindDims(b.getContext(), m, n, k);
  SmallVector<AffineMap> maps = {AffineMap::get(3, 0, {k, m}, b.getContext()),
                                 AffineMap::get(3, 0, {k, n}, b.getContext()),
                                 AffineMap::get(3, 0, {m, n}, b.getContext())};
  SmallVector<Attribute> attributes;
  for (AffineMap map : maps)
    attributes.push_back(AffineMapAttr::get(map));
  auto op =
      linalg::MatmulOp::create(b, loc, ValueRange{lhs, rhs}, ValueRange{acc});
  op.setIndexingMapsAttr(b.getArrayAttr(attributes));
  return op.getResult(0);
}

Value LinalgBuilder::transpose(Value m) {
  SmallVector<OpFoldResult> shape = sizes(m);
  return map(empty({shape[1], shape[0]}), {{m, {1, 0}}},
             [](FloatBuilder &f, ValueRange args) { return args[0]; });
}

Value LinalgBuilder::extend(Value value) {
  RankedTensorType type = tensorType(value);
  if (type.getElementType().isF32())
    return value;
  return map(empty(sizes(value)), {{value, allDims(type.getRank())}},
             [](FloatBuilder &f, ValueRange args) { return args[0]; });
}

Value LinalgBuilder::slice(Value value, ArrayRef<OpFoldResult> offsets,
                           ArrayRef<OpFoldResult> sizes,
                           ArrayRef<int64_t> dropped) {
  RankedTensorType source = tensorType(value);
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, source.getElementType());
  return tensor::ExtractSliceOp::create(b, loc, type, value, offsets, sizes,
                                        strides);
}

Value LinalgBuilder::insert(Value part, Value whole,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, part, whole, offsets, sizes,
                                       strides);
}

Value LinalgBuilder::rows(Value value, OpFoldResult begin, int64_t count) {
  SmallVector<OpFoldResult> offsets(tensorType(value).getRank(), index(0));
  SmallVector<OpFoldResult> shape = sizes(value);
  offsets[0] = begin;
  shape[0] = index(count);
  return slice(value, offsets, shape);
}

Value LinalgBuilder::row(Value value, OpFoldResult position) {
  SmallVector<OpFoldResult> offsets(tensorType(value).getRank(), index(0));
  SmallVector<OpFoldResult> shape = sizes(value);
  offsets[0] = position;
  shape[0] = index(1);
  return slice(value, offsets, shape, {0});
}

Value LinalgBuilder::indexValue(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

SmallVector<OpFoldResult> LinalgBuilder::sizes(Value value) {
  return tensor::getMixedSizes(b, loc, value);
}
