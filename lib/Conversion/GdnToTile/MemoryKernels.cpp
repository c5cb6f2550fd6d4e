//===- MemoryKernels.cpp - kernels that fill and copy ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowKernels.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

// Rows of at most this many elements lie in the registers of a block.
constexpr int64_t kMaxRowSize = 16384;

/// The kernel of `op` over the rows of `out`, which stores what `value` gives;
/// it takes the builder and an access to the block's rows of any memref of
/// out's shape.
void buildRows(
    Operation *op, StringRef name, Value out,
    function_ref<Value(KernelBuilder &, Shape2, function_ref<Access(Value)>)>
        value) {
  ImplicitLocOpBuilder host(op->getLoc(), op);
  auto type = cast<MemRefType>(out.getType());
  int64_t size = type.getShape().back();
  RowShape shape(size, type.getElementType());
  Value rows = flattenRows(host, out, 1);
  Value count = memref::DimOp::create(host, rows, 0);
  KernelBuilder k(op, name, shape.getKernelAttr(op->getContext()));
  Value outArg = k.argument(rows), countArg = k.argument(count);
  Value row = k.mul(k.blockId(), k.index(shape.rows));
  auto access = [&](Value memref) -> Access {
    return {memref,
            {row, k.index(0)},
            {0, 1},
            {k.sub(countArg, row), k.index(size)}};
  };
  Value stored = value(k, {shape.rows, shape.cols}, access);
  k.store(stored, access(outArg));
  k.launch(rowGrid(host, rows, shape.rows, 1));
}

void buildConstantRows(Operation *op, Value out, const APFloat &value) {
  buildRows(op, "fill", out,
            [&](KernelBuilder &k, Shape2 shape, function_ref<Access(Value)>) {
              Type element = cast<MemRefType>(out.getType()).getElementType();
              Value constant =
                  arith::ConstantOp::create(k, FloatAttr::get(element, value));
              return k.broadcast(constant, shape);
            });
}

} // namespace

bool mlir::gdn::hasRows(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getLayout().isIdentity() && !type.getMemorySpace() &&
         type.getRank() > 0 && !type.isDynamicDim(type.getRank() - 1) &&
         type.getShape().back() > 0 && type.getShape().back() <= kMaxRowSize &&
         (type.getElementType().isF32() || type.getElementType().isF16() ||
          type.getElementType().isBF16());
}

void mlir::gdn::buildFillKernel(linalg::FillOp op) {
  FloatAttr value;
  if (!op.hasPureBufferSemantics() || !hasRows(op.output()) ||
      !matchPattern(op.value(), m_Constant(&value)) ||
      value.getType() !=
          cast<MemRefType>(op.output().getType()).getElementType())
    return;
  buildConstantRows(op, op.output(), value.getValue());
  op.erase();
}

void mlir::gdn::buildCopyKernel(memref::CopyOp op) {
  if (!hasRows(op.getTarget()) || !hasRows(op.getSource()))
    return;
  if (auto source = op.getSource().getDefiningOp<memref::GetGlobalOp>()) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        op, source.getNameAttr());
    auto value = dyn_cast_or_null<DenseFPElementsAttr>(
        global.getInitialValue().value_or(Attribute()));
    if (!value || !value.isSplat())
      return;
    buildConstantRows(op, op.getTarget(), value.getSplatValue<APFloat>());
    op.erase();
    return;
  }
  ImplicitLocOpBuilder host(op.getLoc(), op);
  Value from = flattenRows(host, op.getSource(), 1);
  buildRows(
      op, "copy", op.getTarget(),
      [&](KernelBuilder &k, Shape2 shape, function_ref<Access(Value)> access) {
        return k.load(access(k.argument(from)), shape);
      });
  op.erase();
}

// `value` without pairs of views that undo each other.
static Value simplified(Value value) {
  auto collapse = value.getDefiningOp<memref::CollapseShapeOp>();
  auto expand = collapse
                    ? collapse.getSrc().getDefiningOp<memref::ExpandShapeOp>()
                    : memref::ExpandShapeOp();
  return expand && expand.getSrcType() == collapse.getResultType()
             ? expand.getSrc()
             : value;
}

void mlir::gdn::eraseSelfCopy(memref::CopyOp op) {
  Value source = op.getSource(), target = op.getTarget();
  auto from = simplified(source).getDefiningOp<memref::SubViewOp>();
  auto to = target.getDefiningOp<memref::SubViewOp>();
  if (!from || !to || from->getOperands() != to->getOperands() ||
      from->getAttrDictionary() != to->getAttrDictionary() ||
      from.getType() != to.getType())
    return;
  op.erase();
  for (Value view : {source, target})
    if (Operation *unused = view.getDefiningOp(); unused->use_empty())
      unused->erase();
}
