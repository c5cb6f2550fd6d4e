//===- MmaEmission.cpp - warp-level products
//----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaEmission.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::emitMma(Emitter &e, int64_t k, NVVM::MMATypes type,
                        ValueRange a, ValueRange b,
                        MutableArrayRef<Value> acc) {
  auto type4 = LLVM::LLVMStructType::getLiteral(e.builder.getContext(),
                                                SmallVector<Type>(4, e.f32()));
  if (k == 8 && type == NVVM::MMATypes::bf16) { // unknown to the op
    SmallVector<Value> operands(a);
    llvm::append_range(operands, b);
    llvm::append_range(operands, acc);
    Value product =
        e.intrinsic("llvm.nvvm.mma.m16n8k8.row.col.bf16", type4, operands);
    llvm::copy(e.extractAll(product), acc.begin());
    return;
  }
  Value product = NVVM::MmaOp::create(
      e.builder, e.loc, type4, a, b, ValueRange(acc),
      ArrayRef<int64_t>{16, 8, k}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  llvm::copy(e.extractAll(product), acc.begin());
}

FloatParts mlir::gdn::splitOperand(Emitter &e, ValueRange values,
                                   int64_t passes) {
  auto round = [&](Value value) -> Value {
    return NVVM::ConvertFloatToTF32Op::create(
        e.builder, e.loc, e.i32(), value, NVVM::FPRoundingMode::RNA,
        NVVM::SaturationMode::NONE, false);
  };
  FloatParts parts;
  for (Value value : values) {
    // Rounded in integers, which costs less than the conversion. A NaN may
    // become a number here; the rest is a NaN then.
    Value bits = e.addC(e.bitcast(value, e.i32()), 0x1000);
    if (passes == 1) { // the product takes no notice of the 13 bits below
      parts.high.push_back(bits);
      continue;
    }
    Value high = e.andC(bits, ~int64_t(0x1fff));
    parts.high.push_back(high);
    parts.low.push_back(
        round(e.roundingError(value, e.bitcast(high, e.f32()))));
  }
  return parts;
}

FloatParts mlir::gdn::splitToBF16(Emitter &e, ValueRange values) {
  auto pairType = VectorType::get(2, e.builder.getBF16Type());
  auto round = [&](Value a, Value b) -> Value {
    Value pair = LLVM::FPTruncOp::create(e.builder, e.loc, pairType,
                                         e.makeVector({a, b}));
    return e.bitcast(pair, e.i32());
  };
  FloatParts parts;
  for (size_t i = 0; i < values.size(); i += 2) {
    Value high = round(values[i], values[i + 1]);
    parts.high.push_back(high);
    Value first = e.bitcast(e.shlC(high, 16), e.f32());
    Value second = e.bitcast(e.andC(high, 0xffff0000), e.f32());
    parts.low.push_back(round(e.roundingError(values[i], first),
                              e.roundingError(values[i + 1], second)));
  }
  return parts;
}

void mlir::gdn::emitBF16x3Mma(Emitter &e, const FloatParts &a,
                              const FloatParts &b, MutableArrayRef<Value> acc) {
  int64_t k = 8 * b.high.size();
  emitMma(e, k, NVVM::MMATypes::bf16, a.low, b.high, acc);
  emitMma(e, k, NVVM::MMATypes::bf16, a.high, b.low, acc);
  emitMma(e, k, NVVM::MMATypes::bf16, a.high, b.high, acc);
}

void mlir::gdn::emitFloatMma(Emitter &e, int64_t passes, const FloatParts &a,
                             const FloatParts &b, MutableArrayRef<Value> acc) {
  if (passes == 3) {
    emitMma(e, 8, NVVM::MMATypes::tf32, a.low, b.high, acc);
    emitMma(e, 8, NVVM::MMATypes::tf32, a.high, b.low, acc);
  }
  emitMma(e, 8, NVVM::MMATypes::tf32, a.high, b.high, acc);
}

void mlir::gdn::emitTF32Mma(Emitter &e, int64_t passes, ValueRange a,
                            ValueRange b, MutableArrayRef<Value> acc) {
  emitFloatMma(e, passes, splitOperand(e, {a[0], a[2], a[1], a[3]}, passes),
               splitOperand(e, b, passes), acc);
}
