//===- MixerToLoops.cpp - l2norm, gate, short_conv, gated_rms_norm --------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

using namespace mlir;
using namespace mlir::gdn;

static int64_t rankOf(Value memref) {
  return cast<MemRefType>(memref.getType()).getRank();
}

static SmallVector<Value> append(ValueRange indices, Value last) {
  SmallVector<Value> all(indices);
  all.push_back(last);
  return all;
}

// sum x^2 over the last dimension of x.
static Value sumOfSquares(LoopEmitter &emit, Value x, ValueRange row) {
  return emit.sum(emit.index(0), emit.size(x, row.size()), emit.constant(0.0),
                  [&](Value c) {
                    Value value = emit.load(x, append(row, c));
                    return emit.mul(value, value);
                  });
}

void mlir::gdn::lowerToLoops(L2NormOp op, LoopEmitter &emit) {
  Value x = op.getX();
  int64_t last = rankOf(x) - 1;
  Value eps = emit.constant(op.getEps().convertToDouble());
  emit.loopOver(x, 0, last, [&](ValueRange row) {
    Value factor = emit.rsqrt(emit.add(sumOfSquares(emit, x, row), eps));
    emit.loop(emit.index(0), emit.size(x, last), [&](Value c) {
      Value y = emit.mul(emit.load(x, append(row, c)), factor);
      emit.store(y, op.getOut(), append(row, c));
    });
  });
}

// max(x, 0) + log1p(exp(-|x|))
static Value softplus(LoopEmitter &emit, Value x) {
  Value tail = emit.log1p(emit.exp(emit.neg(emit.abs(x))));
  return emit.add(emit.max(x, emit.constant(0.0)), tail);
}

void mlir::gdn::lowerToLoops(GateOp op, LoopEmitter &emit) {
  emit.loopOver(op.getA(), 0, rankOf(op.getA()), [&](ValueRange at) {
    Value x = emit.load(op.getA(), at);
    if (op.getBias())
      x = emit.add(x, emit.load(op.getBias(), at.drop_front(2)));
    Value rate = emit.exp(emit.load(op.getALog(), at[2]));
    Value g;
    if (auto bound = op.getLowerBound())
      g = emit.mul(emit.constant(bound->convertToDouble()),
                   emit.sigmoid(emit.mul(rate, x)));
    else
      g = emit.mul(emit.neg(rate), softplus(emit, x));
    emit.store(g, op.getOut(), at);
  });
}

namespace {

/// The loops of one short convolution: one channel of one sequence.
struct ShortConvLoops {
  ShortConvOp op;
  LoopEmitter &emit;
  Value sequence, channel, row, first, stored;

  /// Input `i` of the sequence with its history in front: i < S is the state.
  Value input(Value i);
  void emitOutput(Value t);
  void emitState(Value length);
};

} // namespace

Value ShortConvLoops::input(Value i) {
  return emit.select(
      emit.isLess(i, stored),
      [&] { return emit.load(op.getState(), {sequence, channel, i}); },
      [&] {
        Value token = emit.addIndex(first, emit.subIndex(i, stored));
        return emit.load(op.getX(), {row, token, channel});
      });
}

// Token t of the sequence meets the inputs t - W + 1 .. t, which lie S further
// in the sequence with its history.
void ShortConvLoops::emitOutput(Value t) {
  Value taps = emit.size(op.getW(), 1);
  Value start = emit.addIndex(emit.subIndex(emit.addIndex(t, stored), taps),
                              emit.index(1));
  Value init =
      op.getBias() ? emit.load(op.getBias(), channel) : emit.constant(0.0);
  Value sum = emit.sum(emit.index(0), taps, init, [&](Value i) {
    Value tap = emit.load(op.getW(), {channel, i});
    return emit.mul(tap, input(emit.addIndex(start, i)));
  });
  emit.store(emit.activate(op.getActivation(), sum), op.getOut(),
             {row, emit.addIndex(first, t), channel});
}

// The last S inputs. Entry i takes entry i + length >= i, so ascending order
// never reads what it has overwritten.
void ShortConvLoops::emitState(Value length) {
  emit.loop(emit.index(0), stored, [&](Value i) {
    emit.store(input(emit.addIndex(i, length)), op.getState(),
               {sequence, channel, i});
  });
}

void mlir::gdn::lowerToLoops(ShortConvOp op, LoopEmitter &emit) {
  emit.loopOver(op.getState(), 0, 2, [&](ValueRange at) {
    auto [row, first, end] =
        getTokenRange(emit, at[0], op.getX(), op.getOffsets());
    ShortConvLoops loops{
        op, emit, at[0], at[1], row, first, emit.size(op.getState(), 2)};
    Value length = emit.subIndex(end, first);
    emit.loop(emit.index(0), length, [&](Value t) { loops.emitOutput(t); });
    loops.emitState(length);
  });
}

void mlir::gdn::lowerToLoops(GatedRMSNormOp op, LoopEmitter &emit) {
  Value x = op.getX();
  int64_t last = rankOf(x) - 1;
  auto size = cast<MemRefType>(x.getType()).getDimSize(last);
  Value eps = emit.constant(op.getEps().convertToDouble());
  emit.loopOver(x, 0, last, [&](ValueRange row) {
    Value mean = emit.div(sumOfSquares(emit, x, row),
                          emit.constant(static_cast<double>(size)));
    Value factor = emit.rsqrt(emit.add(mean, eps));
    emit.loop(emit.index(0), emit.size(x, last), [&](Value c) {
      SmallVector<Value> at = append(row, c);
      Value y = emit.mul(emit.load(x, at), factor);
      y = emit.mul(y, emit.load(op.getW(), c));
      Value gate = emit.activate(op.getActivation(), emit.load(op.getZ(), at));
      emit.store(emit.mul(y, gate), op.getOut(), at);
    });
  });
}
