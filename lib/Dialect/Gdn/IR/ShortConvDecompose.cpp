//===- ShortConvDecompose.cpp - linalg form of gdn.short_conv -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Where one sequence lies in x.
struct Sequence {
  OpFoldResult index;         // of the state
  OpFoldResult batch;         // of x
  OpFoldResult begin, length; // along time
};

} // namespace

static Value copyOf(FloatBuilder &, ValueRange args) { return args[0]; }

static OpFoldResult sumOf(LinalgBuilder &l, OpFoldResult x, OpFoldResult y) {
  AffineExpr d0, d1;
  bindDims(l.b.getContext(), d0, d1);
  return affine::makeComposedFoldedAffineApply(l.b, l.loc, d0 + d1, {x, y});
}

static Value loadOffset(LinalgBuilder &l, Value offsets, Value position) {
  Value offset = tensor::ExtractOp::create(l.b, l.loc, offsets, position);
  return arith::IndexCastOp::create(l.b, l.loc, l.b.getIndexType(), offset);
}

static Sequence locate(LinalgBuilder &l, ShortConvOp op, Value n) {
  OpFoldResult zero = l.index(0);
  if (!op.getOffsets())
    return {n, n, zero, tensor::getMixedSize(l.b, l.loc, op.getX(), 1)};
  Value next = arith::AddIOp::create(l.b, l.loc, n, l.indexValue(1));
  Value begin = loadOffset(l, op.getOffsets(), n);
  Value end = loadOffset(l, op.getOffsets(), next);
  Value length = arith::SubIOp::create(l.b, l.loc, end, begin);
  return {n, zero, begin, length};
}

/// A slice of no elements would start behind its end.
static bool isStateless(Value state) {
  return cast<ShapedType>(state.getType()).getDimSize(2) == 0;
}

/// history[0..S) = the state, history[S..S + length) = the inputs; the
/// operands keep their own element types, the history is float32.
static Value writeHistory(LinalgBuilder &l, ShortConvOp op, Sequence sequence,
                          Value state, Value history) {
  SmallVector<OpFoldResult> stateSizes = l.sizes(state);
  OpFoldResult channels = stateSizes[1], stored = stateSizes[2];
  OpFoldResult zero = l.index(0), one = l.index(1);
  if (!isStateless(state)) {
    Value past = l.slice(state, {sequence.index, zero, zero},
                         {one, channels, stored}, {0});
    Value pastRows = l.map(l.slice(history, {zero, zero}, {stored, channels}),
                           {{past, {1, 0}}}, copyOf);
    history = l.insert(pastRows, history, {zero, zero}, {stored, channels});
  }
  Value x = l.slice(op.getX(), {sequence.batch, sequence.begin, zero},
                    {one, sequence.length, channels}, {0});
  Value xRows =
      l.map(l.slice(history, {stored, zero}, {sequence.length, channels}),
            {{x, {0, 1}}}, copyOf);
  return l.insert(xRows, history, {stored, zero}, {sequence.length, channels});
}

/// The outputs of one sequence: one shifted view of the history per tap.
static Value convolve(LinalgBuilder &l, ShortConvOp op, Sequence sequence,
                      Value taps, Value history, Value out) {
  SmallVector<OpFoldResult> outSizes = l.sizes(op.getOut());
  OpFoldResult zero = l.index(0), channels = outSizes[2];
  int64_t count = cast<ShapedType>(op.getW().getType()).getDimSize(1);
  int64_t stored = cast<ShapedType>(op.getState().getType()).getDimSize(2);
  SmallVector<Input> inputs;
  for (int64_t tap = 0; tap < count; ++tap) {
    OpFoldResult first = l.index(stored - count + 1 + tap);
    inputs.push_back(
        {l.slice(history, {first, zero}, {sequence.length, channels}), {0, 1}});
    inputs.push_back({l.row(taps, l.index(tap)), {1}});
  }
  if (op.getBias())
    inputs.push_back({op.getBias(), {1}});
  SmallVector<OpFoldResult> offsets = {sequence.batch, sequence.begin, zero};
  SmallVector<OpFoldResult> sizes = {l.index(1), sequence.length, channels};
  Value y = l.map(l.slice(out, offsets, sizes, {0}), inputs,
                  [&](FloatBuilder &f, ValueRange args) {
                    Value sum = op.getBias() ? args.back() : f.constant(0.0);
                    for (int64_t tap = 0; tap < count; ++tap)
                      sum = f.add(sum, f.mul(args[2 * tap], args[2 * tap + 1]));
                    return f.activation(sum, op.getActivation());
                  });
  return l.insert(y, out, offsets, sizes);
}

/// The last S rows of the history are the final state.
static Value writeState(LinalgBuilder &l, Sequence sequence, Value history,
                        Value state) {
  if (isStateless(state))
    return state;
  SmallVector<OpFoldResult> stateSizes = l.sizes(state);
  OpFoldResult channels = stateSizes[1], stored = stateSizes[2];
  OpFoldResult zero = l.index(0), one = l.index(1);
  Value last = l.slice(history, {sequence.length, zero}, {stored, channels});
  Value target = l.slice(state, {sequence.index, zero, zero},
                         {one, channels, stored}, {0});
  return l.insert(l.map(target, {{last, {1, 0}}}, copyOf), state,
                  {sequence.index, zero, zero}, {one, channels, stored});
}

FailureOr<SmallVector<Value>>
ShortConvOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  SmallVector<OpFoldResult> xSizes = l.sizes(getX());
  if (isConstantIntValue(xSizes[1], 0))
    return SmallVector<Value>{getOut(), getState()};
  OpFoldResult stored = l.sizes(getState())[2];
  Value taps = l.transpose(getW());
  // Long enough for every sequence, so that it is allocated once.
  Value history = l.empty({sumOf(l, xSizes[1], stored), xSizes[2]});
  Value count = getValueOrCreateConstantIndexOp(
      builder, getLoc(),
      tensor::getMixedSize(builder, getLoc(), getState(), 0));
  auto loop = scf::ForOp::create(
      builder, getLoc(), l.indexValue(0), count, l.indexValue(1),
      ValueRange{getOut(), getState(), history},
      [&](OpBuilder &b, Location loc, Value n, ValueRange args) {
        LinalgBuilder nested(b, loc);
        Sequence sequence = locate(nested, *this, n);
        Value rows = writeHistory(nested, *this, sequence, args[1], args[2]);
        Value out = convolve(nested, *this, sequence, taps, rows, args[0]);
        Value state = writeState(nested, sequence, rows, args[1]);
        scf::YieldOp::create(b, loc, ValueRange{out, state, rows});
      });
  return SmallVector<Value>{loop.getResult(0), loop.getResult(1)};
}
