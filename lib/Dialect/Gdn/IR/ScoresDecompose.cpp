//===- ScoresDecompose.cpp - linalg form of gdn.scores --------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::gdn;

// Tokens per sub-block of a gate per key channel.
static constexpr int64_t kSubBlock = 16;

/// The loops' pair (row, column) is not masked.
static Value isUnmasked(FloatBuilder &f, bool strict) {
  Value row = linalg::IndexOp::create(f.b, f.loc, 0);
  Value column = linalg::IndexOp::create(f.b, f.loc, 1);
  auto predicate =
      strict ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sle;
  return arith::CmpIOp::create(f.b, f.loc, predicate, column, row);
}

/// exp(x - y) where unmasked; masked pairs never reach exp.
static Value gateFactor(FloatBuilder &f, Value unmasked, Value x, Value y) {
  return f.exp(f.select(unmasked, f.sub(x, y), f.constant(0.0)));
}

/// No gate or one per token: one product, then factor and mask.
static Value decomposePerToken(LinalgBuilder &l, ScoresOp op) {
  Value x = l.extend(op.getX()), y = l.transpose(op.getY());
  Value product = l.matmul(x, y, l.zeros(l.sizes(op.getOut())));
  SmallVector<Input> inputs = {{product, {0, 1}}};
  if (Value gate = op.getGate())
    inputs.append({{gate, {0}}, {gate, {1}}});
  return l.map(op.getOut(), inputs, [&](FloatBuilder &f, ValueRange args) {
    Value unmasked = isUnmasked(f, op.getStrict());
    Value score = args[0];
    if (args.size() > 1)
      score = f.mul(score, gateFactor(f, unmasked, args[1], args[2]));
    return f.select(unmasked, score, f.constant(0.0));
  });
}

/// Sub-block row `begin` against all earlier tokens. The anchor is the first
/// row of the sub-block, so both factors are at most 1 for gates <= 0.
static Value earlierBlocks(LinalgBuilder &l, ScoresOp op, int64_t begin,
                           int64_t count) {
  Value gate = op.getGate();
  Value anchor = l.row(gate, l.index(begin));
  auto scaleBy = [&](Value m, Value sums, bool minusAnchor) {
    return l.map(l.empty(l.sizes(m)),
                 {{m, {0, 1}}, {sums, {0, 1}}, {anchor, {1}}},
                 [&](FloatBuilder &f, ValueRange args) {
                   Value exponent = minusAnchor ? f.sub(args[1], args[2])
                                                : f.sub(args[2], args[1]);
                   return f.mul(args[0], f.exp(exponent));
                 });
  };
  Value x = scaleBy(l.rows(op.getX(), l.index(begin), count),
                    l.rows(gate, l.index(begin), count), true);
  Value y = scaleBy(l.rows(op.getY(), l.index(0), begin),
                    l.rows(gate, l.index(0), begin), false);
  return l.matmul(x, l.transpose(y), l.zeros({l.index(count), l.index(begin)}));
}

/// A sub-block against itself: the exponents of one factor would have either
/// sign, so the difference is taken per pair and channel.
static Value diagonalBlock(LinalgBuilder &l, ScoresOp op, int64_t begin,
                           int64_t count) {
  OpFoldResult first = l.index(begin), size = l.index(count);
  Value x = l.rows(op.getX(), first, count);
  Value y = l.rows(op.getY(), first, count);
  Value gate = l.rows(op.getGate(), first, count);
  return l.reduce(l.zeros({size, size}),
                  {{x, {0, 2}}, {y, {1, 2}}, {gate, {0, 2}}, {gate, {1, 2}}},
                  [&](FloatBuilder &f, ValueRange args) {
                    Value unmasked = isUnmasked(f, op.getStrict());
                    Value factor = gateFactor(f, unmasked, args[2], args[3]);
                    Value term = f.mul(f.mul(args[0], args[1]), factor);
                    return f.select(unmasked, term, f.constant(0.0));
                  });
}

static Value decomposePerChannel(LinalgBuilder &l, ScoresOp op,
                                 int64_t tokens) {
  Value out = l.fillZero(op.getOut());
  for (int64_t begin = 0; begin < tokens; begin += kSubBlock) {
    int64_t count = std::min(kSubBlock, tokens - begin);
    OpFoldResult first = l.index(begin), size = l.index(count);
    if (begin > 0)
      out = l.insert(earlierBlocks(l, op, begin, count), out,
                     {first, l.index(0)}, {size, first});
    out = l.insert(diagonalBlock(l, op, begin, count), out, {first, first},
                   {size, size});
  }
  return out;
}

FailureOr<SmallVector<Value>> ScoresOp::decomposeOperation(OpBuilder &builder) {
  if (!hasPureTensorSemantics())
    return emitOpError("can be decomposed on tensors only"), failure();
  LinalgBuilder l(builder, getLoc());
  Value gate = getGate();
  if (!gate || cast<ShapedType>(gate.getType()).getRank() == 1)
    return SmallVector<Value>{decomposePerToken(l, *this)};
  int64_t tokens = cast<ShapedType>(getX().getType()).getDimSize(0);
  if (ShapedType::isDynamic(tokens))
    return emitOpError("with a gate per channel can be decomposed for a static "
                       "number of tokens only, but x is ")
               << getX().getType(),
           failure();
  return SmallVector<Value>{decomposePerChannel(l, *this, tokens)};
}
