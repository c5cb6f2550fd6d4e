//===- RecurrenceDecompose.cpp - chunk form of gdn.recurrence -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

using namespace mlir;
using namespace mlir::gdn;

// exp is 0 in float32 from here on. Gates are raised to it because -inf would
// make differences of their sums NaN; exp of every sum stays the same.
static constexpr double kSmallestGate = -104.0;

namespace {

/// The parts of one chunk on one head, matrices of float32 except where said.
struct Chunk {
  Value k, scaledQ;   // [C, K]
  Value v;            // [C, V], element type of the op
  Input erase, write; // factors of k and v; null without the delta rule
  Value sums;         // cumulative gates [C] or [C, K]; null without gate
  Value decay;        // exp(sums)
  Value decayToEnd;   // exp(last row of sums - sums)
  Value lastSums;     // last row of sums, [] or [K]
  SmallVector<int64_t> gateDims; // loops over [C, K] that index the gate
};

} // namespace

static LogicalResult verifyIsChunk(RecurrenceOp op) {
  ShapedType q = op.getQType();
  if (!op.hasPureTensorSemantics())
    return op.emitOpError("can be decomposed on tensors only");
  if (op.getOffsets() || op.getSlots() || op.getInitial() ||
      op.getCheckpoints() || q.getDimSize(0) != 1 ||
      op.getNumValueHeads() != 1 || q.isDynamicDim(1))
    return op.emitOpError("can be decomposed on one block and one chunk only "
                          "(B = Hqk = Hv = 1, T static; no offsets, slots, "
                          "initial or checkpoints), but q is ")
           << op.getQ().getType() << " and v is " << op.getV().getType()
           << ": run gdn-tile-blocks and gdn-tile-chunks first";
  return success();
}

/// [1, C, 1] -> [C] and [1, C, 1, X] -> [C, X].
static Value dropUnits(LinalgBuilder &l, Value value) {
  SmallVector<OpFoldResult> sizes = l.sizes(value);
  SmallVector<OpFoldResult> offsets(sizes.size(), l.index(0));
  return l.slice(value, offsets, sizes, {0, 2});
}

static void prepareGate(LinalgBuilder &l, RecurrenceOp op, Chunk &chunk) {
  Value gate = dropUnits(l, op.getGate());
  SmallVector<OpFoldResult> sizes = l.sizes(gate);
  chunk.gateDims = allDims(sizes.size());
  Value clamped = l.map(l.empty(sizes), {{gate, chunk.gateDims}},
                        [](FloatBuilder &f, ValueRange args) {
                          return f.max(args[0], f.constant(kSmallestGate));
                        });
  Value init = l.empty(sizes);
  chunk.sums =
      CumsumOp::create(l.b, l.loc, init.getType(), clamped, init)->getResult(0);
  int64_t tokens = op.getQType().getDimSize(1);
  chunk.lastSums = l.row(chunk.sums, l.index(tokens - 1));
  chunk.decay =
      l.map(l.empty(sizes), {{chunk.sums, chunk.gateDims}},
            [](FloatBuilder &f, ValueRange args) { return f.exp(args[0]); });
  SmallVector<int64_t> lastDims(ArrayRef(chunk.gateDims).drop_front());
  chunk.decayToEnd =
      l.map(l.empty(sizes),
            {{chunk.lastSums, lastDims}, {chunk.sums, chunk.gateDims}},
            [](FloatBuilder &f, ValueRange args) {
              return f.exp(f.sub(args[0], args[1]));
            });
}

static Chunk prepareChunk(LinalgBuilder &l, RecurrenceOp op) {
  Chunk chunk;
  chunk.k = l.extend(dropUnits(l, op.getK()));
  chunk.v = dropUnits(l, op.getV());
  double scale = op.getScaleValue();
  chunk.scaledQ =
      l.map(l.empty(l.sizes(chunk.k)), {{dropUnits(l, op.getQ()), {0, 1}}},
            [&](FloatBuilder &f, ValueRange args) {
              return f.mul(args[0], f.constant(scale));
            });
  if (op.getBeta())
    chunk.erase = chunk.write = {dropUnits(l, op.getBeta()), {0}};
  if (op.getErase()) {
    chunk.erase = {dropUnits(l, op.getErase()), {0, 1}};
    chunk.write = {dropUnits(l, op.getWrite()), {0, 1}};
  }
  if (op.getGate())
    prepareGate(l, op, chunk);
  return chunk;
}

/// factor o x for [C, K] matrices; x itself without factor.
static Value scaleRows(LinalgBuilder &l, Value x, Input factor) {
  if (!factor.value)
    return x;
  return l.map(
      l.empty(l.sizes(x)), {{x, {0, 1}}, factor},
      [](FloatBuilder &f, ValueRange args) { return f.mul(args[0], args[1]); });
}

static Value scores(LinalgBuilder &l, Value x, const Chunk &chunk,
                    bool strict) {
  OpFoldResult tokens = l.sizes(x)[0];
  Value init = l.empty({tokens, tokens});
  return ScoresOp::create(l.b, l.loc, init.getType(), x, chunk.k, chunk.sums,
                          init, strict)
      ->getResult(0);
}

/// The rows that the chunk adds to the state: v, or the corrected values.
static Value newValues(LinalgBuilder &l, const Chunk &chunk, Value state) {
  if (!chunk.erase.value)
    return l.extend(chunk.v);
  Value erased = scaleRows(l, chunk.k, chunk.erase);
  Value strict = scores(l, erased, chunk, /*strict=*/true);
  Value init = l.empty(l.sizes(strict));
  Value inverse = TriInverseOp::create(l.b, l.loc, init.getType(), strict, init)
                      ->getResult(0);
  Value erasedDecayed = scaleRows(l, erased, {chunk.decay, chunk.gateDims});
  SmallVector<OpFoldResult> sizes = l.sizes(chunk.v);
  Value predicted = l.matmul(erasedDecayed, state, l.zeros(sizes));
  Value errors = l.map(l.empty(sizes),
                       {{chunk.v, {0, 1}}, chunk.write, {predicted, {0, 1}}},
                       [](FloatBuilder &f, ValueRange args) {
                         return f.sub(f.mul(args[0], args[1]), args[2]);
                       });
  return l.matmul(inverse, errors, l.zeros(sizes));
}

static Value outputs(LinalgBuilder &l, const Chunk &chunk, Value state,
                     Value newValues, Value out) {
  Value weights = scores(l, chunk.scaledQ, chunk, /*strict=*/false);
  Value decayedQ = scaleRows(l, chunk.scaledQ, {chunk.decay, chunk.gateDims});
  bool isF32 = cast<ShapedType>(out.getType()).getElementType().isF32();
  Value zero = isF32 ? l.fillZero(out) : l.zeros(l.sizes(out));
  Value carried = l.matmul(decayedQ, state, zero);
  Value sum = l.matmul(weights, newValues, carried);
  if (isF32)
    return sum;
  return l.map(out, {{sum, {0, 1}}},
               [](FloatBuilder &f, ValueRange args) { return args[0]; });
}

/// `state` is the chunk's initial state [K, V], overwritten.
static Value finalState(LinalgBuilder &l, const Chunk &chunk, Value state,
                        Value newValues) {
  if (!chunk.sums)
    return l.matmul(chunk.k, newValues, state, /*transposeA=*/true);
  SmallVector<int64_t> lastDims;
  if (chunk.gateDims.size() == 2)
    lastDims.push_back(0);
  Value lastDecay =
      l.map(l.empty(l.sizes(chunk.lastSums)),
            {{chunk.lastSums, allDims(lastDims.size())}},
            [](FloatBuilder &f, ValueRange args) { return f.exp(args[0]); });
  Value decayed = l.update(
      state, {{lastDecay, lastDims}},
      [](FloatBuilder &f, ValueRange args) { return f.mul(args[0], args[1]); });
  Value keys = scaleRows(l, chunk.k, {chunk.decayToEnd, chunk.gateDims});
  return l.matmul(keys, newValues, decayed, /*transposeA=*/true);
}

FailureOr<SmallVector<Value>>
RecurrenceOp::decomposeOperation(OpBuilder &builder) {
  if (failed(verifyIsChunk(*this)))
    return failure();
  LinalgBuilder l(builder, getLoc());
  Chunk chunk = prepareChunk(l, *this);

  SmallVector<OpFoldResult> stateSizes = l.sizes(getState());
  SmallVector<OpFoldResult> zeros(4, l.index(0));
  Value stored = l.slice(getState(), zeros, stateSizes, {0, 1});
  Value state = isKFirst() ? l.extend(stored) : l.transpose(stored);

  SmallVector<OpFoldResult> outSizes = l.sizes(getOut());
  Value out = l.slice(getOut(), zeros, outSizes, {0, 2});
  Value values = newValues(l, chunk, state);
  out = outputs(l, chunk, state, values, out);
  state = finalState(l, chunk, state, values);
  if (state.getType() != stored.getType() || !isKFirst())
    state = l.map(stored,
                  {{state, isKFirst() ? SmallVector<int64_t>{0, 1}
                                      : SmallVector<int64_t>{1, 0}}},
                  [](FloatBuilder &f, ValueRange args) { return args[0]; });
  return SmallVector<Value>{l.insert(out, getOut(), zeros, outSizes),
                            l.insert(state, getState(), zeros, stateSizes)};
}
