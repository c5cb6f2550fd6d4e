//===- ElementwiseKernels.cpp - kernels of elementwise linalg -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a module computes around its gdn ops, element by element: a sigmoid, the
// logarithm of a decay, a cast. A block takes some rows of the output; the body
// becomes the same arithmetic on fragments.
//
//===----------------------------------------------------------------------===//

#include "RowKernels.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Where an operand's elements lie in the rows and columns of the output.
enum class Extent { Block, Row, Column };

/// Of identity layout, or the first columns of one, per token.
bool isFloatMemref(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || type.getMemorySpace() || !getWhole(value))
    return false;
  Type element = type.getElementType();
  return element.isF32() || element.isF16() || element.isBF16();
}

/// The extent of an operand with this map of `rank` loops; nullopt for others
/// than those of a block, of one row for all and of one value per row.
std::optional<Extent> getExtent(AffineMap map, int64_t rank) {
  MLIRContext *context = map.getContext();
  if (map.isIdentity())
    return Extent::Block;
  if (map.getNumResults() == 1 &&
      map.getResult(0) == getAffineDimExpr(rank - 1, context))
    return Extent::Row;
  // (d0, d1, d2) -> (d0, d1) or (d0, d1, 0)
  int64_t results = map.getNumResults();
  if (results < rank - 1 || results > rank)
    return std::nullopt;
  for (int64_t i = 0; i < rank - 1; ++i)
    if (map.getResult(i) != getAffineDimExpr(i, context))
      return std::nullopt;
  if (results == rank &&
      map.getResult(rank - 1) != getAffineConstantExpr(0, context))
    return std::nullopt;
  return Extent::Column;
}

Value flattenAll(ImplicitLocOpBuilder &b, Value value) {
  int64_t rank = cast<MemRefType>(value.getType()).getRank();
  if (rank == 1)
    return value;
  SmallVector<ReassociationIndices> groups = {
      llvm::to_vector(llvm::seq<int64_t>(0, rank))};
  return memref::CollapseShapeOp::create(b, value, groups);
}

bool isSlice(Value value) {
  return !cast<MemRefType>(value.getType()).getLayout().isIdentity();
}

/// Canonicalization keeps the constants of a body in front of the op.
bool isConstant(Value value) {
  return value.getDefiningOp<arith::ConstantOp>() != nullptr;
}

/// `element` in the shape of `like`, a scalar or a fragment.
Type shapedLike(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

} // namespace

bool mlir::gdn::isElementwiseOnFloats(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op->getOperands(), isFloatMemref))
    return false;
  auto isKnown = [&](Value value) {
    return value.getParentBlock() == op.getBlock() || isConstant(value);
  };
  for (Operation &inner : op.getBlock()->without_terminator())
    if (!isa<arith::ConstantOp>(inner) &&
        (inner.getNumRegions() != 0 || inner.getNumResults() != 1 ||
         !OpTrait::hasElementwiseMappableTraits(&inner) ||
         !llvm::all_of(inner.getOperands(), isKnown)))
      return false;
  return llvm::all_of(op.getBlock()->getTerminator()->getOperands(), isKnown);
}

Value mlir::gdn::applyBody(KernelBuilder &k, linalg::LinalgOp op,
                           ArrayRef<Value> arguments, Type like) {
  IRMapping values;
  for (auto [argument, value] :
       llvm::zip_equal(op.getBlock()->getArguments(), arguments))
    values.map(argument, value);
  auto get = [&](Value value) -> Value {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return values.lookup(value);
    TypedAttr attr = constant.getValue();
    Type type = shapedLike(like, attr.getType());
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, attr);
    return arith::ConstantOp::create(k, attr);
  };
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<arith::ConstantOp>(inner))
      continue;
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(get(operand));
    OperationState state(k.getLoc(), inner.getName(), operands,
                         shapedLike(like, inner.getResult(0).getType()),
                         inner.getAttrs());
    values.map(inner.getResult(0), k.create(state)->getResult(0));
  }
  return get(op.getBlock()->getTerminator()->getOperand(0));
}

/// The extents of all operands; empty for an op that has no kernel.
static SmallVector<Extent> getExtents(linalg::LinalgOp op) {
  int64_t rank = op.getNumLoops();
  if (!isElementwiseOnFloats(op) || !hasRows(op.getDpsInits()[0]) || rank == 0)
    return {};
  SmallVector<Extent> extents;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::optional<Extent> extent = getExtent(map, rank);
    if (!extent || (isSlice(operand.get()) && *extent != Extent::Block))
      return {};
    extents.push_back(*extent);
  }
  if (extents.back() != Extent::Block)
    return {};
  return extents;
}

// Rows of the first heads of a slice have others between them: there a block
// takes rows of one head.
void mlir::gdn::buildElementwiseKernel(linalg::LinalgOp op) {
  SmallVector<Extent> extents = getExtents(op);
  if (extents.empty())
    return;
  Value out = op.getDpsInits()[0];
  auto type = cast<MemRefType>(out.getType());
  bool perHead =
      type.getRank() == 4 && llvm::any_of(op->getOperands(), isSlice);
  if (perHead && !llvm::all_equal(extents))
    return;
  int64_t keep = perHead ? 2 : 1, heads = perHead ? type.getDimSize(2) : 1;

  ImplicitLocOpBuilder host(op.getLoc(), op);
  int64_t size = type.getShape().back();
  RowShape rowShape(size, type.getElementType());
  Shape2 shape{rowShape.rows, rowShape.cols};
  SmallVector<Value> flat;
  for (auto [operand, extent] : llvm::zip_equal(op->getOperands(), extents))
    flat.push_back(extent == Extent::Block
                       ? flattenRows(host, getWhole(operand), keep)
                       : flattenAll(host, operand));
  Value count = memref::DimOp::create(host, flat.back(), 0);
  KernelBuilder k(op, "map", rowShape.getKernelAttr(op->getContext()));
  SmallVector<Value> arguments;
  for (Value operand : flat)
    arguments.push_back(k.argument(operand));
  Value countArg = k.argument(count);
  Value head = k.rem(k.blockId(), k.index(heads));
  Value row = k.mul(k.div(k.blockId(), k.index(heads)), k.index(rowShape.rows));
  Value left = k.sub(countArg, row), columns = k.index(size);
  SmallVector<Value> first = {row, k.index(0)};
  if (perHead)
    first.insert(first.begin() + 1, head);
  auto access = [&](Value memref, Extent extent) -> Access {
    switch (extent) {
    case Extent::Block:
      return {memref, first, {0, keep}, {left, columns}};
    case Extent::Row:
      return {memref, {k.index(0)}, {0}, {columns}};
    case Extent::Column:
      return {memref, {row}, {0}, {left}};
    }
    llvm_unreachable("covered switch");
  };
  SmallVector<Value> values;
  for (auto [i, argument] : llvm::enumerate(op.getBlock()->getArguments())) {
    Shape2 part{extents[i] == Extent::Row ? 1 : shape.rows,
                extents[i] == Extent::Column ? 1 : shape.cols};
    values.push_back(
        argument.use_empty()
            ? Value()
            : k.broadcast(k.load(access(arguments[i], extents[i]), part),
                          shape));
  }
  Type like = VectorType::get({shape.rows, shape.cols}, k.getF32Type());
  k.store(applyBody(k, op, values, like),
          access(arguments.back(), Extent::Block));
  k.launch(rowGrid(host, flat.back(), rowShape.rows, heads));
  op.erase();
}
