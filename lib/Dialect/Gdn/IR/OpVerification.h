//===- OpVerification.h - shared checks of the op verifiers -----*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_IR_OPVERIFICATION_H
#define GDN_LIB_DIALECT_GDN_IR_OPVERIFICATION_H

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::gdn {

/// "4x?x16x128": the shape of a value, for error messages.
std::string shapeToString(Value value);

/// Checks that all operands are tensors (then one result per init, of its
/// type) or all are memrefs (then no results).
LogicalResult verifyDestinationStyle(DestinationStyleOpInterface op);

LogicalResult verifyRank(Operation *op, StringRef name, Value value,
                         int64_t rank);

/// Checks that size `dim` of `value` is static and equals `size`.
LogicalResult verifyDimSize(Operation *op, StringRef name, Value value,
                            int64_t dim, int64_t size, StringRef sizeName);

/// One dimension of an operand.
struct NamedDim {
  StringRef name;
  Value value;
  int64_t dim;
};

/// Checks that all static sizes among `dims` are equal. Returns that size, or
/// the dynamic size if there is none.
FailureOr<int64_t> verifyEqualSizes(Operation *op, StringRef sizeName,
                                    ArrayRef<NamedDim> dims);

/// Checks that `value` has exactly the shape of `other`, dynamic sizes match
/// everything.
LogicalResult verifySameShape(Operation *op, StringRef name, Value value,
                              StringRef otherName, Value other);

LogicalResult verifyStaticDim(Operation *op, StringRef name, Value value,
                              int64_t dim, StringRef sizeName);

/// f16, bf16 or f32.
LogicalResult verifyFloat(Operation *op, StringRef name, Value value);

LogicalResult verifyElementType(Operation *op, StringRef name, Value value,
                                StringRef otherName, Value other);

/// f32 or the element type of `other`.
LogicalResult verifyF32Or(Operation *op, StringRef name, Value value,
                          StringRef otherName, Value other);

LogicalResult verifyF32(Operation *op, StringRef name, Value value);

/// Rank 1, i32 or i64.
LogicalResult verifyIntegers(Operation *op, StringRef name, Value value);

/// Checks offsets, if any (rank 1, i32 or i64, B = 1), and N, dimension 0 of
/// `value`: size(offsets) - 1, or B without offsets.
LogicalResult verifySequences(Operation *op, StringRef name, Value value,
                              Value offsets, int64_t batch);

/// Checks that `value`, a float attribute, stays finite in float32, which all
/// arithmetic is done in.
LogicalResult verifyFinite(Operation *op, StringRef name, const APFloat &value);

/// Replaces an op that computes nothing: its results by its destinations.
void replaceByDestinations(DestinationStyleOpInterface op,
                           RewriterBase &rewriter);

/// Rank and sizes of a tensor or memref.
inline int64_t rankOf(Value value) {
  return cast<ShapedType>(value.getType()).getRank();
}
inline int64_t sizeOf(Value value, int64_t dim) {
  return cast<ShapedType>(value.getType()).getDimSize(dim);
}

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_IR_OPVERIFICATION_H
