//===- MmaEmission.h - warp-level products --------------------------*- C++
//-*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_MMAEMISSION_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_MMAEMISSION_H

#include "Emitter.h"

namespace mlir::gdn {

/// One mma.sync m16n8kK; the accumulator's four registers are replaced.
void emitMma(Emitter &e, int64_t k, NVVM::MMATypes type, ValueRange a,
             ValueRange b, MutableArrayRef<Value> acc);

/// float32 values as TF32 operands.
struct FloatParts {
  SmallVector<Value> high, low;
};

/// One pass: rounded to TF32. Three: that and the rest, rounded again. Both
/// rounded to nearest: the product of the two rests, which is left out, is at
/// most 2^-22 of the whole then, and 2^-20 if they were cut off.
FloatParts splitOperand(Emitter &e, ValueRange values, int64_t passes);

/// m16n8k8 of float32 operands in 1 or 3 passes.
void emitFloatMma(Emitter &e, int64_t passes, const FloatParts &a,
                  const FloatParts &b, MutableArrayRef<Value> acc);

/// The same of registers of fragments, whose columns 2q and 2q + 1 serve as the
/// k slots q and q + 4.
void emitTF32Mma(Emitter &e, int64_t passes, ValueRange a, ValueRange b,
                 MutableArrayRef<Value> acc);

/// m16n8k16, or k8 with one register of b, of float32 operands in two bfloat16
/// parts each, neighbours of `values` in one register; the product of the low
/// parts is left out.
FloatParts splitToBF16(Emitter &e, ValueRange values);
void emitBF16x3Mma(Emitter &e, const FloatParts &a, const FloatParts &b,
                   MutableArrayRef<Value> acc);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_MMAEMISSION_H
