//===- Lowering.h - tile programs on the CPU --------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State shared by the files of convert-gdn-tile-to-vector.
//
// A fragment is up to 64 x 256 elements. As an LLVM value it would be thousands
// of registers and its arithmetic thousands of instructions, so it lives in
// memory: every fragment value has a buffer, written where the value is
// defined, and its arithmetic is a loop over pieces of rows,
// vectors of at most 16 elements. Two kinds of values need no buffer:
// constants, broadcasts and iota are recomputed at each use, and an elementwise
// op with one elementwise use becomes part of the loop of its user.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETOVECTOR_LOWERING_H
#define GDN_LIB_CONVERSION_GDNTILETOVECTOR_LOWERING_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn::tile_to_vector {

/// Part of a memref: element (i, j) of the part is element
/// indices + i * e(dims[0]) + j * e(dims[1]) of the memref.
struct View {
  Value memref;
  SmallVector<Value> indices;
  SmallVector<int64_t> dims;

  /// Indices of an element of the part.
  SmallVector<Value> at(OpBuilder &builder, Location loc,
                        ValueRange position) const;
};

/// The type of a fragment, or null for values of other types.
VectorType getFragmentType(Type type);
inline VectorType getFragmentType(Value value) {
  return getFragmentType(value.getType());
}

/// True if an op works on fragments element by element.
bool isElementwise(Operation *op);

/// Builds the CPU form of one tile program.
class Lowering {
public:
  Lowering(func::FuncOp target, Value blockId, Value blocks);

  /// Lowers all ops of a block but the terminator at the insertion point.
  LogicalResult lowerBlock(Block &block);

  /// Frees the buffers; the insertion point is at the end of the function.
  void freeBuffers();

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// A new buffer, allocated at function entry.
  Value allocate(ArrayRef<int64_t> shape, Type elementType);
  Value allocateFragment(VectorType type);

  /// A buffer that is used within one op only; one per shape and type.
  Value scratch(ArrayRef<int64_t> shape, Type elementType);

  /// An index constant at function entry.
  Value index(int64_t value);

  /// A value that is not a fragment.
  Value get(Value value) { return mapping.lookup(value); }
  SmallVector<Value> get(ValueRange values);
  void map(Value from, Value to) { mapping.map(from, to); }

  /// The buffer of a fragment; without one, its value is stored in a new one.
  Value buffer(Value fragment);
  void setBuffer(Value fragment, Value memref) { buffers[fragment] = memref; }
  /// The buffer of a fragment, or null if it has none.
  Value lookupBuffer(Value fragment) { return buffers.lookup(fragment); }

  /// Stores a fragment in a buffer.
  void fill(Value memref, Value fragment);

  /// The buffers that the recomputation of a fragment reads.
  void collectBuffers(Value fragment, llvm::SetVector<Value> &result);

  /// Elements (i, j) .. (i, j + width - 1) of a fragment as a vector of rank 1.
  Value piece(Value fragment, Value i, Value j, int64_t width);

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  using Body = llvm::function_ref<void(Value)>;
  using Reduction = llvm::function_ref<Value(Value, Value)>;

  /// for (i = lower; i < upper; i += step); no loop for a single iteration.
  void loop(Value lower, Value upper, int64_t step, Body body);
  void loop(int64_t size, int64_t step, Body body);
  /// The same with a value that is carried from iteration to iteration.
  Value reduce(Value lower, Value upper, int64_t step, Value init,
               Reduction body);

  /// Copies from[p] to to[p] for all p in `shape` below `valid` (empty = all),
  /// extending the elements if the types differ. With `zeroFill` the elements
  /// at or behind `valid` become zero.
  void copy(const View &from, const View &to, ArrayRef<int64_t> shape,
            ValueRange valid, bool zeroFill);

  /// A float value (scalar or vector) extended to f32.
  Value toF32(Value value);
  /// A splat of a scalar constant.
  Value splat(double value, Type type);

  ImplicitLocOpBuilder b;
  Value idFromEnd();

  Value blockId, blocks;

private:
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerOther(Operation *op);
  Value recompute(Value fragment, Value i, Value j, int64_t width);
  Value broadcastPiece(Value source, Value i, Value j, int64_t width);
  void zero(const View &to, ArrayRef<int64_t> shape);

  /// Insertion point for buffers and constants at function entry.
  OpBuilder entry;
  IRMapping mapping;
  DenseMap<Value, Value> buffers;
  DenseMap<int64_t, Value> constants;
  DenseMap<Type, Value> scratches;
  SmallVector<Value> allocations;
};

/// Number of elements of a piece of a row of `size` elements.
int64_t getPieceWidth(int64_t size);

// FragmentOps.cpp
LogicalResult lowerSum(Lowering &lowering, gdn_tile::SumOp op);
LogicalResult lowerSumSquares(Lowering &lowering, gdn_tile::SumSquaresOp op);

// MemoryOps.cpp
LogicalResult lowerCopyIn(Lowering &lowering, gdn_tile::CopyInOp op);
LogicalResult lowerCopySums(Lowering &lowering, gdn_tile::CopySumsOp op);
LogicalResult lowerCopyOut(Lowering &lowering, gdn_tile::CopyOutOp op);
LogicalResult lowerLoad(Lowering &lowering, gdn_tile::LoadOp op);
LogicalResult lowerStore(Lowering &lowering, gdn_tile::StoreOp op);
LogicalResult lowerStage(Lowering &lowering, gdn_tile::StageOp op);

// MmaOp.cpp
LogicalResult lowerMma(Lowering &lowering, gdn_tile::MmaOp op);

// RegisterOps.cpp
LogicalResult lowerDot(Lowering &lowering, gdn_tile::DotOp op);
LogicalResult lowerOuter(Lowering &lowering, gdn_tile::OuterOp op);
LogicalResult lowerTriSolve(Lowering &lowering, gdn_tile::TriSolveOp op);
LogicalResult lowerStack(Lowering &lowering, gdn_tile::StackOp op);
LogicalResult lowerAfterLoads(Lowering &lowering, gdn_tile::AfterLoadsOp op);

// ChunkOps.cpp
LogicalResult lowerCumsum(Lowering &lowering, gdn_tile::CumsumOp op);
LogicalResult lowerFindSequence(Lowering &lowering,
                                gdn_tile::FindSequenceOp op);
LogicalResult lowerDecays(Lowering &lowering, gdn_tile::DecaysOp op);
LogicalResult lowerScores(Lowering &lowering, gdn_tile::ScoresOp op);
LogicalResult lowerTriInverse(Lowering &lowering, gdn_tile::TriInverseOp op);

// WarpOps.cpp
LogicalResult lowerEachWarp(Lowering &lowering, gdn_tile::EachWarpOp op);
LogicalResult lowerWarpMma(Lowering &lowering, gdn_tile::WarpMmaOp op);
LogicalResult lowerOwnRows(Lowering &lowering, gdn_tile::OwnRowsOp op);
LogicalResult lowerStoreBlock(Lowering &lowering, gdn_tile::StoreBlockOp op);
LogicalResult lowerLoadBlock(Lowering &lowering, gdn_tile::LoadBlockOp op);
LogicalResult lowerAny(Lowering &lowering, gdn_tile::AnyOp op);
LogicalResult lowerBlockInverse(Lowering &lowering,
                                gdn_tile::BlockInverseOp op);

// ControlFlow.cpp
LogicalResult lowerFor(Lowering &lowering, scf::ForOp op);
LogicalResult lowerIf(Lowering &lowering, scf::IfOp op);
LogicalResult lowerWhile(Lowering &lowering, scf::WhileOp op);

} // namespace mlir::gdn::tile_to_vector

#endif // GDN_LIB_CONVERSION_GDNTILETOVECTOR_LOWERING_H
