//===- ChunkToLoops.cpp - cumsum, scores, tri_inverse ---------------------===//
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

// The first row is copied, every other row adds x to the sums of the row
// before it.
void mlir::gdn::lowerToLoops(CumsumOp op, LoopEmitter &emit) {
  Value x = op.getX(), out = op.getOut(), zero = emit.index(0);
  emit.loop(zero, emit.size(x, 0), [&](Value i) {
    emit.loopOver(x, 1, rankOf(x), [&](ValueRange rest) {
      SmallVector<Value> at{i}, before{emit.subIndex(i, emit.index(1))};
      at.append(rest.begin(), rest.end());
      before.append(rest.begin(), rest.end());
      Value sum = emit.select(
          emit.isLess(zero, i), [&] { return emit.load(out, before); },
          [&] { return emit.constant(0.0); });
      emit.store(emit.add(sum, emit.load(x, at)), out, at);
    });
  });
}

// sum_c x[i, c] y[j, c] exp(G[i, c] - G[j, c])
static Value score(ScoresOp op, LoopEmitter &emit, Value i, Value j) {
  Value gate = op.getGate();
  return emit.sum(emit.index(0), emit.size(op.getX(), 1), emit.constant(0.0),
                  [&](Value c) -> Value {
                    Value xValue = emit.load(op.getX(), {i, c});
                    Value yValue = emit.load(op.getY(), {j, c});
                    Value product = emit.mul(xValue, yValue);
                    if (!gate)
                      return product;
                    SmallVector<Value> later{i}, earlier{j};
                    if (rankOf(gate) == 2) {
                      later.push_back(c);
                      earlier.push_back(c);
                    }
                    Value gateLater = emit.load(gate, later);
                    Value gateEarlier = emit.load(gate, earlier);
                    Value decay = emit.exp(emit.sub(gateLater, gateEarlier));
                    return emit.mul(product, decay);
                  });
}

void mlir::gdn::lowerToLoops(ScoresOp op, LoopEmitter &emit) {
  emit.loopOver(op.getOut(), 0, 2, [&](ValueRange at) {
    Value i = at[0], j = at[1];
    Value end = op.getStrict() ? i : emit.addIndex(i, emit.index(1));
    Value value = emit.select(
        emit.isLess(j, end), [&] { return score(op, emit, i, j); },
        [&] { return emit.constant(0.0); });
    emit.store(value, op.getOut(), at);
  });
}

// (I + L) X = I, row by row. Below the diagonal
//   X[i, j] = -sum_{j <= r < i} L[i, r] X[r, j].
void mlir::gdn::lowerToLoops(TriInverseOp op, LoopEmitter &emit) {
  Value x = op.getX(), out = op.getOut();
  emit.loopOver(out, 0, 2, [&](ValueRange at) {
    Value i = at[0], j = at[1];
    auto below = [&] {
      Value zero = emit.constant(0.0);
      Value sum = emit.sum(j, i, zero, [&](Value r) {
        Value left = emit.load(x, {i, r});
        return emit.mul(left, emit.load(out, {r, j}));
      });
      return emit.sub(zero, sum);
    };
    auto aboveOrOn = [&] {
      return emit.select(
          emit.isLess(i, j), [&] { return emit.constant(0.0); },
          [&] { return emit.constant(1.0); });
    };
    emit.store(emit.select(emit.isLess(j, i), below, aboveOrOn), out, at);
  });
}
