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

bool isFloatMemref(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.getLayout().isIdentity() || type.getMemorySpace())
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

/// Canonicalization keeps the constants of a body in front of the op.
bool isConstant(Value value) {
  return value.getDefiningOp<arith::ConstantOp>() != nullptr;
}

bool canConvertBody(linalg::LinalgOp op) {
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

/// The body of an elementwise op on fragments of one shape.
class FragmentBody {
public:
  FragmentBody(KernelBuilder &k, Shape2 shape) : k(k), shape(shape) {}

  void map(Value element, Value fragment) { values.map(element, fragment); }

  void clone(Operation &op) {
    if (isConstant(op.getResult(0)))
      return;
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(get(operand));
    OperationState state(k.getLoc(), op.getName(), operands,
                         getType(op.getResult(0)), op.getAttrs());
    map(op.getResult(0), k.create(state)->getResult(0));
  }

  Value get(Value element) {
    if (!isConstant(element))
      return values.lookup(element);
    auto constant = element.getDefiningOp<arith::ConstantOp>();
    return arith::ConstantOp::create(
        k, DenseElementsAttr::get(getType(element), constant.getValue()));
  }

private:
  VectorType getType(Value element) {
    return VectorType::get({shape.rows, shape.cols}, element.getType());
  }

  KernelBuilder &k;
  Shape2 shape;
  IRMapping values;
};

} // namespace

void mlir::gdn::buildElementwiseKernel(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() || !canConvertBody(op))
    return;
  int64_t rank = op.getNumLoops();
  Value out = op.getDpsInits()[0];
  if (!hasRows(out) || rank == 0)
    return;
  SmallVector<Extent> extents;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::optional<Extent> extent = getExtent(map, rank);
    if (!extent || !isFloatMemref(operand.get()))
      return;
    extents.push_back(*extent);
  }
  if (extents.back() != Extent::Block)
    return;

  ImplicitLocOpBuilder host(op.getLoc(), op);
  int64_t size = cast<MemRefType>(out.getType()).getShape().back();
  RowShape rowShape(size, cast<MemRefType>(out.getType()).getElementType());
  Shape2 shape{rowShape.rows, rowShape.cols};
  SmallVector<Value> flat;
  for (auto [operand, extent] : llvm::zip_equal(op->getOperands(), extents))
    flat.push_back(extent == Extent::Block ? flattenRows(host, operand, 1)
                                           : flattenAll(host, operand));
  Value count = memref::DimOp::create(host, flat.back(), 0);
  KernelBuilder k(op, "map", rowShape.getKernelAttr(op->getContext()));
  SmallVector<Value> arguments;
  for (Value operand : flat)
    arguments.push_back(k.argument(operand));
  Value countArg = k.argument(count);
  Value row = k.mul(k.blockId(), k.index(rowShape.rows));
  Value left = k.sub(countArg, row), columns = k.index(size);
  auto access = [&](Value memref, Extent extent) -> Access {
    switch (extent) {
    case Extent::Block:
      return {memref, {row, k.index(0)}, {0, 1}, {left, columns}};
    case Extent::Row:
      return {memref, {k.index(0)}, {0}, {columns}};
    case Extent::Column:
      return {memref, {row}, {0}, {left}};
    }
    llvm_unreachable("covered switch");
  };
  FragmentBody body(k, shape);
  for (auto [i, argument] : llvm::enumerate(op.getBlock()->getArguments())) {
    if (argument.use_empty())
      continue;
    Shape2 part{extents[i] == Extent::Row ? 1 : shape.rows,
                extents[i] == Extent::Column ? 1 : shape.cols};
    Value loaded = k.load(access(arguments[i], extents[i]), part);
    body.map(argument, k.broadcast(loaded, shape));
  }
  for (Operation &inner : op.getBlock()->without_terminator())
    body.clone(inner);
  k.store(body.get(op.getBlock()->getTerminator()->getOperand(0)),
          access(arguments.back(), Extent::Block));
  k.launch(rowGrid(host, flat.back(), rowShape.rows, 1));
  op.erase();
}
