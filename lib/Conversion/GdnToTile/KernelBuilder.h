//===- KernelBuilder.h - builds one tile program ----------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_KERNELBUILDER_H
#define GDN_LIB_CONVERSION_GDNTOTILE_KERNELBUILDER_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// exp(x) = exp2(kLog2E x).
constexpr double kLog2E = 1.4426950408889634;

/// Number of rows and columns of a fragment.
struct Shape2 {
  int64_t rows, cols;
};

/// Where a tile lies in a memref: start indices, the dimensions along which its
/// rows and columns run, and optional bounds on them.
struct Access {
  Value memref;
  SmallVector<Value> indices;
  SmallVector<int64_t> dims;
  SmallVector<Value> valid;
};

/// Builds the body of one tile program together with its launch. Arguments are
/// added on the way; elementwise helpers broadcast scalars, columns and rows as
/// numpy does.
class KernelBuilder : public ImplicitLocOpBuilder {
public:
  /// Creates the kernel `<function>_<name>` beside the function that holds
  /// `op`.
  KernelBuilder(Operation *op, StringRef name, gdn_tile::KernelAttr attr);

  /// Adds a kernel argument that is `value` of the host at the launch. Null for
  /// null: an operand that the op does not have.
  Value argument(Value value);
  /// The same for a size of the host; a constant where it is known.
  Value sizeArgument(Value size);

  /// Ends the kernel and launches it in front of the op on `grid` blocks;
  /// `beside`: beside the launch in front.
  void launch(Value grid, bool beside = false);
  /// Launches the kernel, which has ended, once more, with `value` in the place
  /// of `old`; `beside` as before.
  void launchAgain(Value grid, Value old, Value value, bool beside = false);

  /// Host code in front of the op.
  OpBuilder &getHost() { return host; }

  Value blockId();
  /// Blocks that start first have the last numbers, so that the caches still
  /// hold what the kernel behind, which begins with the first, reads first.
  void startAtEnd() { startsAtEnd = true; }

  /// \name Index arithmetic
  Value index(int64_t value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value rem(Value a, Value b);
  Value ceilDiv(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value less(Value a, Value b);
  Value equal(Value a, Value b);
  /// `value` where the condition holds, else 0: a bound that admits nothing.
  Value onlyIf(Value condition, Value value);
  /// One element of a memref of integers, as an index; of none below 0, which
  /// leaves nothing to extend.
  Value loadIndex(Value memref, Value position);
  Value loadSize(Value memref, Value position);

  /// \name Shared memory
  Value tile(ArrayRef<int64_t> shape, Type elementType);
  /// One tile of several, and the end of a tile's life.
  Value stage(Value tiles, Value number);
  void free(Value tile);
  /// `isLower`: the blocks of a lower triangular matrix into its panels.
  void copyIn(const Access &from, Value tile, bool isLower = false);
  /// A hint that the tile will be read soon.
  void prefetch(const Access &from, Shape2 shape);
  void copyOut(Value tile, const Access &to);
  /// A transposed block of a matrix in panels.
  void storeBlock(Value block, Value memref, ValueRange indices,
                  bool isDiagonal);
  Value loadBlock(Value memref, ValueRange indices, bool isDiagonal);

  /// \name Fragments
  Value load(const Access &from, Shape2 shape, bool streaming = false);
  /// As `load`, extended to f32.
  Value loadF32(const Access &from, Shape2 shape);
  void store(Value fragment, const Access &to, bool streaming = false);
  Value mma(Value a, Value b, Value acc, bool transposeB);
  /// A fragment of f32 as the sum of `parts` fragments of `type`, each what the
  /// ones before have left.
  SmallVector<Value> split(Value fragment, Type type, int64_t parts);
  /// a b + acc of operands in one or two parts; the product of two second parts
  /// is left out.
  Value product(ValueRange a, ValueRange b, Value acc, bool transposeB);
  /// a b^T + acc in one warp, of float32 operands.
  Value warpMma(Value a, Value b, Value acc,
                gdn_tile::ProductPrecision precision);
  /// Columns `column` to `column` + 15 of the 16 rows that an item's warp
  /// holds.
  Value ownRows(Value fragment, int64_t column);
  Value sum(Value fragment, Shape2 shape);
  /// Of the rows of a fragment of 16 bits, a column.
  Value sumSquares(Value fragment);
  /// Whether a condition holds anywhere, an i1; in each column.
  Value any(Value condition);
  Value anyOfColumns(Value condition);
  /// What the warps of the block, or of a role, do for items 0 .. count - 1.
  void eachWarp(Value count, function_ref<void(Value item)> build);
  /// `then()` where the uniform condition holds, else `otherwise`.
  Value ifElse(Value condition, function_ref<Value()> then, Value otherwise);
  /// Stores and the like where the uniform condition holds.
  void onlyIn(Value condition, function_ref<void()> build);
  Value zero(Shape2 shape, Type elementType);
  /// a b^T for each of `rights`, in registers.
  SmallVector<Value> dot(Value a, ValueRange rights);
  /// scale acc + a b, in registers; without `scale` acc + a b.
  Value outer(Value a, Value b, Value acc, Value scale, bool exact);
  /// Four rows of a, then four of b, in registers.
  Value stack(Value a, Value b);
  Value triSolve(Value l, Value rhs, int64_t count);
  /// Both behind all loads so far.
  std::pair<Value, Value> afterLoads(Value a, Value b);
  Value iota(Shape2 shape);

  /// \name Elementwise, on scalars and fragments of f32
  Value constant(double value);
  Value fmul(Value a, Value b);
  Value fadd(Value a, Value b);
  Value fsub(Value a, Value b);
  /// What `rounded`, of a smaller type, lacks of a value. Never fused with the
  /// product that gives the value: the two parts are those of one number,
  /// whatever made it.
  Value roundingError(Value value, Value rounded);
  Value fdiv(Value a, Value b);
  Value fmax(Value a, Value b);
  Value exp2(Value a);
  Value fma(Value a, Value b, Value c);
  Value select(Value condition, Value a, Value b);
  Value compare(arith::CmpIPredicate predicate, Value a, Value b);
  /// a > b, of f32.
  Value greater(Value a, Value b);
  Value abs(Value a);
  /// Conjunction of conditions.
  Value both(Value a, Value b);
  /// An i32 to compare numbers of rows and columns with.
  Value integer(int64_t value);
  /// Rounds to `type`, or extends to f32; the value itself if nothing changes.
  Value convert(Value value, Type type);
  Value broadcast(Value value, Shape2 shape);
  /// A scalar in the shape of `other`, a scalar or a fragment.
  Value broadcastLike(Value scalar, Value other);

private:
  std::pair<Value, Value> unify(Value a, Value b);

  OpBuilder host;
  func::FuncOp kernel;
  SmallVector<Value> operands;
  Value id;
  bool startsAtEnd = false;
};

/// Access to a rank-1 or rank-2 tile from its start.
Access whole(KernelBuilder &k, Value tile);
/// The same with rows and columns exchanged.
Access transposed(KernelBuilder &k, Value tile);

/// The memref of identity layout that starts with `value`: itself, or what it
/// is a slice of, of all batches and tokens and the first heads or channels.
/// Kernels index that one. Null for any other layout.
Value getWhole(Value value);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_KERNELBUILDER_H
