//===- GdnTileRegisterOps.cpp - products in registers ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

using namespace mlir;
using namespace mlir::gdn_tile;

// Rows of the right operands: one group of eight lanes each.
static constexpr int64_t kTokens = 8;

static bool is16Bit(Type type) { return type.isF16() || type.isBF16(); }

static bool hasShape(VectorType type, int64_t rows, int64_t cols) {
  return type.getDimSize(0) == rows && type.getDimSize(1) == cols;
}

// Columns that a step of mma.sync takes from the four lanes of a row.
static LogicalResult verifyColumns(Operation *op, int64_t cols,
                                   int64_t multiple) {
  if (cols % multiple == 0)
    return success();
  return op->emitOpError("expects a multiple of ")
         << multiple << " columns for these types, but has " << cols;
}

static LogicalResult verifyRows(Operation *op, int64_t rows, bool mayBeEight) {
  if (rows % 16 == 0 || (mayBeEight && rows == kTokens))
    return success();
  return op->emitOpError("expects ")
         << (mayBeEight ? "8 rows or a multiple of 16"
                        : "a multiple of 16 rows")
         << " on the left, but has " << rows;
}

LogicalResult DotOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  Type left = a.getElementType();
  int64_t cols = a.getDimSize(1);
  if (getB().empty() || getB().size() != getResults().size())
    return emitOpError("expects one result per right operand, but has ")
           << getB().size() << " operands and " << getResults().size()
           << " results";
  if (failed(verifyRows(*this, a.getDimSize(0), /*mayBeEight=*/true)) ||
      failed(verifyColumns(*this, cols, is16Bit(left) ? 32 : 8)))
    return failure();
  for (auto [operand, result] : llvm::zip(getB(), getResults())) {
    auto b = cast<VectorType>(operand.getType());
    auto to = cast<VectorType>(result.getType());
    if (!hasShape(b, kTokens, cols) ||
        !hasShape(to, a.getDimSize(0), kTokens) || !to.getElementType().isF32())
      return emitOpError("expects 8x")
             << cols << " on the right and " << a.getDimSize(0)
             << "x8 of f32 as the result, but has " << b << " and " << to;
    Type right = b.getElementType();
    bool known = (is16Bit(left) && right == left) ||
                 (left.isF32() && (right.isF32() || is16Bit(right)));
    if (!known)
      return emitOpError("has no product of ") << left << " and " << right;
  }
  return success();
}

LogicalResult OuterOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  auto b = cast<VectorType>(getB().getType());
  auto acc = cast<VectorType>(getAcc().getType());
  int64_t rows = acc.getDimSize(0), cols = acc.getDimSize(1);
  if (failed(verifyRows(*this, rows, /*mayBeEight=*/false)) ||
      failed(verifyColumns(*this, cols, 8)))
    return failure();
  if (!hasShape(a, rows, kTokens) || !hasShape(b, kTokens, cols) ||
      !a.getElementType().isF32() || !is16Bit(b.getElementType()) ||
      !(acc.getElementType().isF32() || is16Bit(acc.getElementType())))
    return emitOpError("expects ")
           << rows << "x8 of f32 times 8x" << cols
           << " of f16 or bf16 into f32, f16 or bf16, but has " << a
           << " times " << b << " into " << acc;
  if (getScale() && (!hasShape(cast<VectorType>(getScale().getType()), 1, 1) ||
                     !getElementTypeOrSelf(getScale()).isF32()))
    return emitOpError("expects a scale of vector<1x1xf32>, but it is ")
           << getScale().getType();
  return success();
}

LogicalResult StackOp::verify() {
  auto type = cast<VectorType>(getResult().getType());
  if (type.getDimSize(0) == kTokens && is16Bit(type.getElementType()) &&
      type.getDimSize(1) % 2 == 0)
    return success();
  return emitOpError("expects 8 rows of f16 or bf16, but has ") << type;
}

LogicalResult TriSolveOp::verify() {
  auto l = cast<VectorType>(getL().getType());
  auto rhs = cast<VectorType>(getRhs().getType());
  if (!hasShape(l, kTokens, kTokens) || rhs.getDimSize(1) != kTokens ||
      !l.getElementType().isF32() || !rhs.getElementType().isF32())
    return emitOpError("expects 8x8 and Mx8 of f32, but has ")
           << l << " and " << rhs;
  if (int64_t count = getCountAttr().getInt(); count < 1 || count > kTokens)
    return emitOpError("expects a count of 1 to 8 columns, but it is ")
           << count;
  return success();
}

LogicalResult AfterLoadsOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

void AfterLoadsOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // No access moves across it.
  effects.emplace_back(MemoryEffects::Read::get(),
                       SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// SumSquaresOp
//===----------------------------------------------------------------------===//

LogicalResult SumSquaresOp::verify() {
  auto from = cast<VectorType>(getValue().getType());
  auto to =
      VectorType::get({from.getDimSize(0), 1}, Float32Type::get(getContext()));
  Type element = from.getElementType();
  if ((!element.isF16() && !element.isBF16()) || from.getDimSize(1) % 16 != 0 ||
      getResult().getType() != to)
    return emitOpError("expects vector<MxK> of f16 or bf16, K a multiple of "
                       "16, to vector<Mx1xf32>, but has ")
           << from << " to " << getResult().getType();
  auto func = (*this)->getParentOfType<FunctionOpInterface>();
  KernelAttr kernel = func ? gdn_tile::getKernelAttr(func) : KernelAttr();
  if (kernel && kernel.getLayout() != FragmentLayoutKind::Accumulator)
    return emitOpError("needs a kernel of the accumulator layout");
  return success();
}
