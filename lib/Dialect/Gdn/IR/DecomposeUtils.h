//===- DecomposeUtils.h - linalg forms of gdn ops ---------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_IR_DECOMPOSEUTILS_H
#define GDN_LIB_DIALECT_GDN_IR_DECOMPOSEUTILS_H

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/IR/Builders.h"

namespace mlir::gdn {

/// Emits scalar float32 arithmetic; multiply-add may contract.
class FloatBuilder {
public:
  FloatBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value constant(double value);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value max(Value x, Value y);
  Value exp(Value x);
  Value sigmoid(Value x);
  /// max(x, 0) + log1p(exp(-|x|)): no jump, no overflow.
  Value softplus(Value x);
  Value activation(Value x, Activation kind);
  Value select(Value condition, Value x, Value y);
  /// x rounded or extended to `type`.
  Value convert(Value x, Type type);

  OpBuilder &b;
  Location loc;
};

/// An operand of an elementwise op: `dims` are the loops that index it.
struct Input {
  Value value;
  SmallVector<int64_t> dims;
};

/// Emits linalg ops on tensors. Elements are extended to float32 on the way in
/// and rounded to the type of the destination on the way out.
class LinalgBuilder {
public:
  using Body = function_ref<Value(FloatBuilder &f, ValueRange args)>;

  LinalgBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value empty(ArrayRef<OpFoldResult> sizes, Type type = {});
  Value zeros(ArrayRef<OpFoldResult> sizes);
  Value fillZero(Value init);

  /// init[i...] = body(inputs). The loops are the dimensions of `init`.
  Value map(Value init, ArrayRef<Input> inputs, Body body);
  /// init[i...] = body(inputs, init[i...]).
  Value update(Value init, ArrayRef<Input> inputs, Body body);
  /// init[i...] += sum_c body(inputs); the loops are those of `init`, then c.
  Value reduce(Value init, ArrayRef<Input> inputs, Body body);

  /// acc + a b, or acc + a^T b.
  Value matmul(Value a, Value b, Value acc, bool transposeA = false);
  /// m[j, i] as float32.
  Value transpose(Value m);
  /// `value` with float32 elements; itself if it has them.
  Value extend(Value value);

  /// value[offset...] of `sizes`, unit dimensions in `dropped` removed.
  Value slice(Value value, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> dropped = {});
  Value insert(Value part, Value whole, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes);
  /// Rows [begin, begin + count) of a matrix or vector.
  Value rows(Value value, OpFoldResult begin, int64_t count);
  /// Row `index`, one rank lower.
  Value row(Value value, OpFoldResult index);

  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value indexValue(int64_t value);
  SmallVector<OpFoldResult> sizes(Value value);

  OpBuilder &b;
  Location loc;

private:
  Value generic(Value init, ArrayRef<Input> inputs, int64_t reductionLoops,
                bool readsInit, Body body);
};

/// The loops 0..rank-1.
SmallVector<int64_t> allDims(int64_t rank);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_IR_DECOMPOSEUTILS_H
