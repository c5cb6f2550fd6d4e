//===- LoopEmitter.h - scalar code and loops over memrefs -------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOLOOPS_LOOPEMITTER_H
#define GDN_LIB_CONVERSION_GDNTOLOOPS_LOOPEMITTER_H

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/IR/Builders.h"

namespace mlir::gdn {

/// Emits scalar float32 arithmetic and serial loops over memrefs. Loads extend
/// to float32 and stores round, so everything between them is float32.
class LoopEmitter {
public:
  LoopEmitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value);
  Value constant(double value);
  /// Size of a dimension.
  Value size(Value memref, int64_t dim);

  Value addIndex(Value a, Value b);
  Value subIndex(Value a, Value b);
  Value divIndex(Value a, int64_t b);
  Value remIndex(Value a, int64_t b);
  Value isLess(Value a, Value b);

  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value neg(Value a);
  Value max(Value a, Value b);
  Value abs(Value a);
  Value exp(Value a);
  Value log1p(Value a);
  Value rsqrt(Value a);
  /// 1 / (1 + exp(-x)).
  Value sigmoid(Value a);
  Value activate(Activation activation, Value a);

  Value load(Value memref, ValueRange indices);
  void store(Value value, Value memref, ValueRange indices);
  /// Element `i` of offsets or slots, as index.
  Value loadOffset(Value offsets, Value i);

  /// A local float32 buffer; release it with `free`.
  Value allocate(ArrayRef<int64_t> shape);
  void free(Value buffer);

  void loop(Value from, Value to, function_ref<void(Value)> body);
  /// init + term(from) + term(from + 1) + ..., in this order.
  Value sum(Value from, Value to, Value init, function_ref<Value(Value)> term);
  /// A loop nest over the dimensions [first, last) of `memref`.
  void loopOver(Value memref, int64_t first, int64_t last,
                function_ref<void(ValueRange)> body);
  Value select(Value condition, function_ref<Value()> ifTrue,
               function_ref<Value()> ifFalse);
  void branch(Value condition, function_ref<void()> ifTrue,
              function_ref<void()> ifFalse);

private:
  void loopOver(Value memref, int64_t dim, int64_t last,
                SmallVectorImpl<Value> &indices,
                function_ref<void(ValueRange)> body);

  OpBuilder &builder;
  Location loc;
};

/// The row of `batched` ([B, T, ...]) and the tokens [first, end) of one
/// sequence.
struct TokenRange {
  Value row, first, end;
};
TokenRange getTokenRange(LoopEmitter &emit, Value sequence, Value batched,
                         Value offsets);

void lowerToLoops(RecurrenceOp op, LoopEmitter &emit);
void lowerToLoops(L2NormOp op, LoopEmitter &emit);
void lowerToLoops(GateOp op, LoopEmitter &emit);
void lowerToLoops(ShortConvOp op, LoopEmitter &emit);
void lowerToLoops(GatedRMSNormOp op, LoopEmitter &emit);
void lowerToLoops(CumsumOp op, LoopEmitter &emit);
void lowerToLoops(ScoresOp op, LoopEmitter &emit);
void lowerToLoops(TriInverseOp op, LoopEmitter &emit);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOLOOPS_LOOPEMITTER_H
