//===- OpVerification.cpp - shared checks of the op verifiers -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpVerification.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

static ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

static std::string sizeToString(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

static bool sizesMatch(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

std::string mlir::gdn::shapeToString(Value value) {
  std::string text;
  for (int64_t size : shaped(value).getShape())
    text += (text.empty() ? "" : "x") + sizeToString(size);
  return text.empty() ? "scalar" : text;
}

LogicalResult
mlir::gdn::verifyDestinationStyle(DestinationStyleOpInterface op) {
  bool anyTensor = false, anyMemRef = false;
  for (Value operand : op->getOperands())
    (isa<MemRefType>(operand.getType()) ? anyMemRef : anyTensor) = true;
  if (anyTensor && anyMemRef)
    return op->emitOpError("expects all operands to be tensors or all to be "
                           "memrefs, but they are mixed");
  if (anyMemRef) {
    if (op->getNumResults() != 0)
      return op->emitOpError("expects no results on memrefs, but has ")
             << op->getNumResults();
    SmallPtrSet<Value, 4> inits;
    for (Value init : op.getDpsInits())
      if (!inits.insert(init).second)
        return op->emitOpError(
            "expects different memrefs as 'outs' operands, but has one twice");
    return success();
  }
  if (op->getNumResults() != op.getNumDpsInits())
    return op->emitOpError("expects one result per 'outs' operand (")
           << op.getNumDpsInits() << "), but has " << op->getNumResults();
  for (auto [result, init] : llvm::zip(op->getResults(), op.getDpsInits()))
    if (result.getType() != init.getType())
      return op->emitOpError("expects the type of result ")
             << result.getResultNumber() << " (" << result.getType()
             << ") to be that of its 'outs' operand (" << init.getType() << ")";
  return success();
}

LogicalResult mlir::gdn::verifyRank(Operation *op, StringRef name, Value value,
                                    int64_t rank) {
  if (shaped(value).getRank() == rank)
    return success();
  return op->emitOpError() << "expects '" << name << "' to have rank " << rank
                           << ", but its shape is " << shapeToString(value);
}

LogicalResult mlir::gdn::verifyDimSize(Operation *op, StringRef name,
                                       Value value, int64_t dim, int64_t size,
                                       StringRef sizeName) {
  if (shaped(value).getDimSize(dim) == size)
    return success();
  return op->emitOpError() << "expects dimension " << dim << " of '" << name
                           << "' to be " << sizeName << " = " << size
                           << ", but its shape is " << shapeToString(value);
}

FailureOr<int64_t> mlir::gdn::verifyEqualSizes(Operation *op,
                                               StringRef sizeName,
                                               ArrayRef<NamedDim> dims) {
  int64_t common = ShapedType::kDynamic;
  for (auto [name, value, dim] : dims) {
    int64_t size = shaped(value).getDimSize(dim);
    if (ShapedType::isDynamic(size))
      continue;
    if (ShapedType::isDynamic(common))
      common = size;
    if (size != common)
      return verifyDimSize(op, name, value, dim, common, sizeName);
  }
  return common;
}

LogicalResult mlir::gdn::verifySameShape(Operation *op, StringRef name,
                                         Value value, StringRef otherName,
                                         Value other) {
  ShapedType type = shaped(value), otherType = shaped(other);
  bool same = type.getRank() == otherType.getRank();
  for (int64_t i = 0; same && i < type.getRank(); ++i)
    same = sizesMatch(type.getDimSize(i), otherType.getDimSize(i));
  if (same)
    return success();
  return op->emitOpError() << "expects '" << name << "' (shape "
                           << shapeToString(value) << ") to have the shape of '"
                           << otherName << "' (" << shapeToString(other) << ")";
}

LogicalResult mlir::gdn::verifyStaticDim(Operation *op, StringRef name,
                                         Value value, int64_t dim,
                                         StringRef sizeName) {
  if (shaped(value).isDynamicDim(dim))
    return op->emitOpError()
           << "expects dimension " << dim << " of '" << name << "' ("
           << sizeName << ") to be static, but its shape is "
           << shapeToString(value);
  if (shaped(value).getDimSize(dim) == 0)
    return op->emitOpError()
           << "expects dimension " << dim << " of '" << name << "' ("
           << sizeName << ") to be positive, but its shape is "
           << shapeToString(value);
  return success();
}

LogicalResult mlir::gdn::verifyFloat(Operation *op, StringRef name,
                                     Value value) {
  Type type = shaped(value).getElementType();
  if (type.isF16() || type.isBF16() || type.isF32())
    return success();
  return op->emitOpError() << "expects the elements of '" << name
                           << "' to be f16, bf16 or f32, but they are " << type;
}

LogicalResult mlir::gdn::verifyElementType(Operation *op, StringRef name,
                                           Value value, StringRef otherName,
                                           Value other) {
  Type type = shaped(value).getElementType();
  Type otherType = shaped(other).getElementType();
  if (type == otherType)
    return success();
  return op->emitOpError() << "expects the elements of '" << name << "' ("
                           << type << ") to be those of '" << otherName << "' ("
                           << otherType << ")";
}

LogicalResult mlir::gdn::verifyF32Or(Operation *op, StringRef name, Value value,
                                     StringRef otherName, Value other) {
  Type type = shaped(value).getElementType();
  Type otherType = shaped(other).getElementType();
  if (type.isF32() || type == otherType)
    return success();
  return op->emitOpError() << "expects the elements of '" << name << "' ("
                           << type << ") to be f32 or those of '" << otherName
                           << "' (" << otherType << ")";
}

LogicalResult mlir::gdn::verifyF32(Operation *op, StringRef name, Value value) {
  Type type = shaped(value).getElementType();
  if (type.isF32())
    return success();
  return op->emitOpError() << "expects the elements of '" << name
                           << "' to be f32, but they are " << type;
}

LogicalResult mlir::gdn::verifyIntegers(Operation *op, StringRef name,
                                        Value value) {
  if (failed(verifyRank(op, name, value, 1)))
    return failure();
  Type type = shaped(value).getElementType();
  if (type.isSignlessInteger(32) || type.isSignlessInteger(64))
    return success();
  return op->emitOpError() << "expects the elements of '" << name
                           << "' to be i32 or i64, but they are " << type;
}

static LogicalResult verifyOffsets(Operation *op, Value offsets,
                                   int64_t batch) {
  if (failed(verifyIntegers(op, "offsets", offsets)))
    return failure();
  if (shaped(offsets).getDimSize(0) == 0)
    return op->emitOpError("expects 'offsets' to have N + 1 >= 1 entries, but "
                           "its shape is 0");
  if (!sizesMatch(batch, 1))
    return op->emitOpError("expects B = 1 with 'offsets' (packed sequences), "
                           "but B is ")
           << batch;
  return success();
}

LogicalResult mlir::gdn::verifySequences(Operation *op, StringRef name,
                                         Value value, Value offsets,
                                         int64_t batch) {
  int64_t expected = batch;
  if (offsets) {
    if (failed(verifyOffsets(op, offsets, batch)))
      return failure();
    expected = shaped(offsets).getDimSize(0);
    if (!ShapedType::isDynamic(expected))
      --expected;
  }
  if (sizesMatch(shaped(value).getDimSize(0), expected))
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' to hold N = " << expected << " sequences ("
                           << (offsets ? "size of 'offsets' - 1" : "B")
                           << "), but its shape is " << shapeToString(value);
}

LogicalResult mlir::gdn::verifyFinite(Operation *op, StringRef name,
                                      const APFloat &value) {
  if (std::isfinite(static_cast<float>(value.convertToDouble())))
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' to be finite in float32, but it is "
                           << value.convertToDouble();
}

void mlir::gdn::detail::getDestinationStyleEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!op.hasPureBufferSemantics())
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    effects.emplace_back(MemoryEffects::Read::get(), &operand,
                         SideEffects::DefaultResource::get());
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

LogicalResult mlir::gdn::detail::reifyDestinationShapes(
    OpBuilder &builder, DestinationStyleOpInterface op,
    ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  if (!op.hasPureTensorSemantics())
    return failure();
  for (Value init : op.getDpsInits())
    reifiedReturnShapes.push_back(
        tensor::getMixedSizes(builder, op.getLoc(), init));
  return success();
}

void mlir::gdn::replaceByDestinations(DestinationStyleOpInterface op,
                                      RewriterBase &rewriter) {
  if (op.hasPureBufferSemantics())
    rewriter.eraseOp(op);
  else
    rewriter.replaceOp(op, SmallVector<Value>(op.getDpsInits()));
}

bool mlir::gdn::isZero(Value value) {
  if (matchPattern(value, m_AnyZeroFloat()))
    return true;
  Operation *op = value.getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return matchPattern(fill.value(), m_AnyZeroFloat());
  if (auto splat = dyn_cast_or_null<tensor::SplatOp>(op))
    return matchPattern(splat.getInput(), m_AnyZeroFloat());
  if (auto castOp = dyn_cast_or_null<tensor::CastOp>(op))
    return isZero(castOp.getSource());
  return false;
}
