//===- RecurrenceToLoops.cpp - gdn.recurrence, token by token -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// The loops of one recurrence, from the inside out.
class RecurrenceLoops {
public:
  RecurrenceLoops(RecurrenceOp op, LoopEmitter &emit)
      : op(op), emit(emit), zero(emit.index(0)),
        keySize(emit.index(op.getKeySize())),
        valueSize(emit.index(op.getValueSize())) {}

  void emitAll();

private:
  void loadState(Value entry, Value head);
  void storeState(Value to, ValueRange at);
  void keepState(Value row, Value first, Value token, Value head);
  void emitSequence(Value sequence, Value entry, Value head);
  void emitZeros(Value sequence, Value head);
  void emitToken(Value row, Value token, Value head);
  void emitDecay(Value row, Value token, Value head);
  Value emitCorrection(ValueRange bth, ValueRange keyAt, Value i);

  RecurrenceOp op;
  LoopEmitter &emit;
  Value zero, keySize, valueSize;
  /// float32: the state of one head, V x K whatever the op's layout is, and
  /// exp(gate) of one token per key channel.
  Value state, decay;
};

} // namespace

// Copies the state of one head into the local buffer.
void RecurrenceLoops::loadState(Value entry, Value head) {
  emit.loop(zero, valueSize, [&](Value i) {
    emit.loop(zero, keySize, [&](Value c) {
      SmallVector<Value> from{entry, head, i, c};
      if (op.isKFirst())
        std::swap(from[2], from[3]);
      emit.store(emit.load(op.getInitialState(), from), state, {i, c});
    });
  });
}

// Copies the local buffer to the matrix `at` of `to`.
void RecurrenceLoops::storeState(Value to, ValueRange at) {
  emit.loop(zero, valueSize, [&](Value i) {
    emit.loop(zero, keySize, [&](Value c) {
      SmallVector<Value> element(at);
      element.append({op.isKFirst() ? c : i, op.isKFirst() ? i : c});
      emit.store(emit.load(state, {i, c}), to, element);
    });
  });
}

// The state behind a token, if it is a checkpoint.
void RecurrenceLoops::keepState(Value row, Value first, Value token,
                                Value head) {
  int64_t every = op.getCheckpointDistance();
  Value done = emit.addIndex(emit.subIndex(token, first), emit.index(1));
  Value isOff = emit.isLess(zero, emit.remIndex(done, every));
  emit.branch(
      isOff, [] {},
      [&] {
        Value number = emit.subIndex(emit.divIndex(done, every), emit.index(1));
        Value place = emit.addIndex(emit.divIndex(first, every), number);
        storeState(op.getCheckpoints(), {row, place, head});
      });
}

// decay[c] = exp(gate)
void RecurrenceLoops::emitDecay(Value row, Value token, Value head) {
  emit.loop(zero, keySize, [&](Value c) {
    SmallVector<Value> at{row, token, head};
    if (op.hasChannelGate())
      at.push_back(c);
    emit.store(emit.exp(emit.load(op.getGate(), at)), decay, c);
  });
}

// write_i v_i - sum_c S[i, c] erase_c k_c, or v_i.
Value RecurrenceLoops::emitCorrection(ValueRange bth, ValueRange keyAt,
                                      Value i) {
  auto at = [](ValueRange indices, Value last) {
    SmallVector<Value> all(indices);
    all.push_back(last);
    return all;
  };
  Value v = emit.load(op.getV(), at(bth, i));
  if (!op.isDelta())
    return v;
  Value beta = op.getBeta() ? emit.load(op.getBeta(), bth) : Value();
  Value write = beta ? beta : emit.load(op.getWrite(), at(bth, i));
  Value read = emit.sum(zero, keySize, emit.constant(0.0), [&](Value c) {
    Value erase = beta ? beta : emit.load(op.getErase(), at(bth, c));
    Value k = emit.load(op.getK(), at(keyAt, c));
    Value s = emit.load(state, {i, c});
    return emit.mul(s, emit.mul(erase, k));
  });
  return emit.sub(emit.mul(write, v), read);
}

void RecurrenceLoops::emitToken(Value row, Value token, Value head) {
  Value keyHead = emit.divIndex(head, op.getGroupSize());
  if (op.getGate())
    emitDecay(row, token, head);
  emit.loop(zero, valueSize, [&](Value i) {
    if (op.getGate())
      emit.loop(zero, keySize, [&](Value c) {
        Value s = emit.load(state, {i, c});
        emit.store(emit.mul(s, emit.load(decay, c)), state, {i, c});
      });
    Value u = emitCorrection({row, token, head}, {row, token, keyHead}, i);
    emit.loop(zero, keySize, [&](Value c) {
      Value k = emit.load(op.getK(), {row, token, keyHead, c});
      Value s = emit.load(state, {i, c});
      emit.store(emit.add(s, emit.mul(u, k)), state, {i, c});
    });
    Value o = emit.sum(zero, keySize, emit.constant(0.0), [&](Value c) {
      Value q = emit.load(op.getQ(), {row, token, keyHead, c});
      return emit.mul(emit.load(state, {i, c}), q);
    });
    emit.store(emit.mul(emit.constant(op.getScaleValue()), o), op.getOut(),
               {row, token, head, i});
  });
}

void RecurrenceLoops::emitSequence(Value sequence, Value entry, Value head) {
  loadState(entry, head);
  TokenRange range = getTokenRange(emit, sequence, op.getQ(), op.getOffsets());
  emit.loop(range.first, range.end, [&](Value token) {
    emitToken(range.row, token, head);
    if (op.getCheckpoints())
      keepState(range.row, range.first, token, head);
  });
  if (op.getState())
    storeState(op.getState(), {entry, head});
}

// o of a sequence without a state.
void RecurrenceLoops::emitZeros(Value sequence, Value head) {
  auto [row, first, end] =
      getTokenRange(emit, sequence, op.getQ(), op.getOffsets());
  emit.loop(first, end, [&, row = row](Value token) {
    emit.loop(zero, valueSize, [&](Value i) {
      emit.store(emit.constant(0.0), op.getOut(), {row, token, head, i});
    });
  });
}

void RecurrenceLoops::emitAll() {
  state = emit.allocate({op.getValueSize(), op.getKeySize()});
  if (op.getGate())
    decay = emit.allocate({op.getKeySize()});
  Value sequences =
      emit.size(op.getSlots() ? op.getSlots() : op.getInitialState(), 0);
  emit.loop(zero, sequences, [&](Value sequence) {
    emit.loop(zero, emit.index(op.getNumValueHeads()), [&](Value head) {
      if (!op.getSlots())
        return emitSequence(sequence, sequence, head);
      Value entry = emit.loadOffset(op.getSlots(), sequence);
      emit.branch(
          emit.isLess(entry, zero), [&] { emitZeros(sequence, head); },
          [&] { emitSequence(sequence, entry, head); });
    });
  });
  emit.free(state);
  if (decay)
    emit.free(decay);
}

void mlir::gdn::lowerToLoops(RecurrenceOp op, LoopEmitter &emit) {
  RecurrenceLoops(op, emit).emitAll();
}
