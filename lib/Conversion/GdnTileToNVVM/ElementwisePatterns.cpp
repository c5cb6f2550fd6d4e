//===- ElementwisePatterns.cpp - arith and math on fragments --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// An elementwise op on fragments becomes one op per register, or one per pair
/// of 16-bit columns where all operands and results are kept in pairs.
struct ElementwisePattern : ConversionPattern {
  ElementwisePattern(const KernelLowering &kernel, MLIRContext *context)
      : ConversionPattern(kernel.converter, MatchAnyOpTypeTag(), /*benefit=*/10,
                          context),
        kernel(kernel) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || !isFragment(op->getResult(0).getType()) ||
        !OpTrait::hasElementwiseMappableTraits(op))
      return failure();
    Emitter e(rewriter, op->getLoc());
    auto fragment = cast<VectorType>(op->getResult(0).getType());
    bool packedResult = kernel.isPacked(fragment), packedOperands = true;
    for (Value operand : op->getOperands())
      packedOperands &=
          isFragment(operand.getType()) && kernel.isPacked(operand.getType());

    if (packedOperands || (packedResult && isa<arith::TruncFOp>(op))) {
      rewriter.replaceOpWithMultiple(
          op, {convertPairs(e, op, operands, fragment, packedOperands,
                            packedResult)});
      return success();
    }
    SmallVector<SmallVector<Value>> elements;
    for (auto [operand, registers] :
         llvm::zip_equal(op->getOperands(), operands))
      elements.push_back(isFragment(operand.getType())
                             ? kernel.unpack(e, operand.getType(), registers)
                             : SmallVector<Value>(registers));
    int64_t count = kernel.getLayout(fragment).getNumRegisters();
    SmallVector<Value> results;
    for (int64_t r = 0; r < count; ++r) {
      SmallVector<Value> values;
      for (const SmallVector<Value> &operand : elements)
        values.push_back(operand.size() == 1 ? operand[0] : operand[r]);
      results.push_back(
          createScalarOp(e, op, values, fragment.getElementType()));
    }
    rewriter.replaceOpWithMultiple(op, {kernel.pack(e, fragment, results)});
    return success();
  }

private:
  static Value createScalarOp(Emitter &e, Operation *op, ValueRange operands,
                              Type type) {
    OperationState state(op->getLoc(), op->getName(), operands, type,
                         op->getAttrs());
    return e.builder.create(state)->getResult(0);
  }

  /// Elements that are loaded one by one make no pair before they are extended.
  static bool isLoadedFromGlobal(Value fragment) {
    auto load = fragment.getDefiningOp<LoadOp>();
    return load && !isShared(load.getMemref().getType());
  }

  /// Both bf16 of a register as f32: one instruction each, where the conversion
  /// of 16-bit registers needs another to take the pair apart.
  static SmallVector<Value> extendPair(Emitter &e, Value pair) {
    Value word = e.bitcast(pair, e.i32());
    return {e.bitcast(e.shlC(word, 16), e.f32()),
            e.bitcast(e.andC(word, ~int64_t(0xFFFF)), e.f32())};
  }

  SmallVector<Value> convertPairs(Emitter &e, Operation *op,
                                  ArrayRef<ValueRange> operands,
                                  VectorType fragment, bool packedOperands,
                                  bool packedResult) const {
    auto pairType = VectorType::get(2, fragment.getElementType());
    int64_t count = kernel.getLayout(fragment).getNumRegisters();
    SmallVector<Value> results;
    bool extendsBF16 = isa<arith::ExtFOp>(op) &&
                       fragment.getElementType().isF32() &&
                       getElementTypeOrSelf(op->getOperand(0)).isBF16() &&
                       !isLoadedFromGlobal(op->getOperand(0));
    for (int64_t p = 0; p < count / 2; ++p) {
      if (extendsBF16) {
        results.append(extendPair(e, operands.front()[p]));
        continue;
      }
      SmallVector<Value> values;
      for (ValueRange registers : operands)
        values.push_back(packedOperands
                             ? registers[p]
                             : e.makeVector(registers.slice(2 * p, 2)));
      Value pair = createScalarOp(e, op, values, pairType);
      if (packedResult)
        results.push_back(pair);
      else
        results.append({e.extractElement(pair, 0), e.extractElement(pair, 1)});
    }
    return results;
  }

  const KernelLowering &kernel;
};

struct ConstantPattern : TilePattern<arith::ConstantOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isFragment(op.getType()))
      return failure();
    auto value = cast<SplatElementsAttr>(op.getValue());
    SmallVector<Type> types;
    if (failed(typeConverter->convertType(op.getType(), types)))
      return failure();
    TypedAttr attr = value.getSplatValue<TypedAttr>();
    if (auto pair = dyn_cast<VectorType>(types[0]))
      attr = SplatElementsAttr::get(pair, attr);
    Value constant =
        LLVM::ConstantOp::create(rewriter, op.getLoc(), types[0], attr);
    rewriter.replaceOpWithMultiple(
        op, {SmallVector<Value>(types.size(), constant)});
    return success();
  }
};

struct BroadcastPattern : TilePattern<vector::BroadcastOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(vector::BroadcastOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    VectorType fragment = op.getResultVectorType();
    FragmentLayout layout = kernel.getLayout(fragment);
    auto source = dyn_cast<VectorType>(op.getSourceType());
    SmallVector<Value> from(adaptor.getSource());
    if (source)
      from = kernel.unpack(e, source, adaptor.getSource());
    bool alongRows = source && source.getDimSize(0) != 1;
    bool alongCols = source && source.getDimSize(1) != 1;
    SmallVector<Value> results;
    for (int64_t r = 0, n = layout.getNumRegisters(); r < n; ++r) {
      int64_t index = alongRows && alongCols ? r
                      : alongRows            ? layout.rowRegister(r)
                      : alongCols            ? layout.colRegister(r)
                                             : 0;
      results.push_back(from[index]);
    }
    rewriter.replaceOpWithMultiple(op, {kernel.pack(e, fragment, results)});
    return success();
  }
};

struct IotaPattern : TilePattern<IotaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(IotaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto fragment = cast<VectorType>(op.getResult().getType());
    FragmentLayout layout = kernel.getLayout(fragment);
    bool isColumn = fragment.getDimSize(1) == 1;
    Value base =
        isColumn ? kernel.getRowBase(e, layout) : kernel.getColBase(e, layout);
    if (!base)
      base = e.c32(0);
    SmallVector<Value> results;
    for (int64_t r = 0, n = layout.getNumRegisters(); r < n; ++r)
      results.push_back(
          e.addC(base, isColumn ? layout.rowOffset(r) : layout.colOffset(r)));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

} // namespace

void mlir::gdn::populateElementwisePatterns(const KernelLowering &kernel,
                                            RewritePatternSet &patterns) {
  patterns
      .add<ElementwisePattern, ConstantPattern, BroadcastPattern, IotaPattern>(
          kernel, patterns.getContext());
}
