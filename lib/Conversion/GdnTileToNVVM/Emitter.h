//===- Emitter.h - short forms for LLVM and NVVM ops ------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_EMITTER_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_EMITTER_H

#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::gdn {

/// Builds LLVM and NVVM ops at the insertion point of a builder. Integer
/// arithmetic folds the neutral elements.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  OpBuilder &builder;
  Location loc;

  Type i1() { return builder.getI1Type(); }
  Type i16() { return builder.getIntegerType(16); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }
  Type f32() { return builder.getF32Type(); }

  Value constInt(Type type, int64_t value);
  Value c32(int64_t value) { return constInt(i32(), value); }
  Value c64(int64_t value) { return constInt(i64(), value); }
  Value cF32(double value);
  /// The zero of a scalar or vector type.
  Value zero(Type type);

  Value add(Value a, Value b);
  Value addC(Value a, int64_t c);
  Value mulC(Value a, int64_t c);
  Value andC(Value a, int64_t c);
  Value xorC(Value a, int64_t c);
  Value shrC(Value a, int64_t c);
  Value shlC(Value a, int64_t c);
  Value lessThan(Value a, Value b);
  Value lessThanC(Value a, int64_t c) {
    return lessThan(a, constInt(a.getType(), c));
  }
  Value equalsC(Value a, int64_t c);
  /// Conjunction of predicates; null stands for true.
  Value both(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  /// min(max(value, 0), limit) of an i64, as i32.
  Value clamp(Value value, int64_t limit);
  Value sub(Value a, Value b);

  Value fadd(Value a, Value b);
  Value fsub(Value a, Value b);
  Value fmul(Value a, Value b);
  /// What `rounded` lacks of a value. Never fused with the product that gives
  /// the value: the two parts are those of one number, whatever made it.
  Value roundingError(Value value, Value rounded);
  Value fma(Value a, Value b, Value c);
  Value bitcast(Value value, Type type);
  /// The two 16-bit floats of a register as f32.
  SmallVector<Value> extendPair(Value pair, Type element);
  /// Calls an LLVM intrinsic by its full name.
  Value intrinsic(StringRef name, Type type, ValueRange operands);
  Value exp2(Value value);

  Value extractElement(Value vector, int64_t i);
  Value makeVector(ValueRange elements);
  SmallVector<Value> extractAll(Value aggregate);

  /// Runs `body` in the threads below `count` of the block's `numThreads`.
  void inThreadsBelow(int64_t count, int64_t numThreads,
                      function_ref<void()> body);
  Value threadId();
  /// The same, but neither it nor what follows from it moves out of a loop. For
  /// values that are cheaper to compute again than to keep.
  Value opaqueThreadId();
  Value laneId() { return andC(threadId(), 31); }
  Value warpId() { return shrC(threadId(), 5); }
  /// Sum of ((thread >> shift) & mask) * scale; null if there are no terms.
  Value threadCoordinate(ArrayRef<gdn_tile::ThreadTerm> terms,
                         int64_t numThreads);
  Value shuffleXor(Value value, int64_t laneMask);
  /// The value of lane `lane`, an i32.
  Value shuffleFrom(Value value, Value lane);
  void barrier() { NVVM::BarrierOp::create(builder, loc); }
  /// Makes shared memory that was written by instructions of this thread, or
  /// that it has waited for, visible to wgmma and the copy engine.
  void proxyFence();

  /// Behind it the phase of that parity of an mbarrier is complete.
  void waitForParity(Value barrier, Value parity);

  /// A shared address in a register of 32 bits, for inline assembly.
  Value sharedAddress(Value pointer);
  /// Pointer plus bytes; a null offset is zero.
  Value advance(Value pointer, Value bytes);
  Value advance(Value pointer, int64_t bytes);

  /// Loads `words` words of 32 bits, or with words = 0 one of 16 bits. Where
  /// the predicate (if any) is false the words are zero and nothing is read.
  SmallVector<Value> loadWords(Value pointer, int64_t words, Value predicate,
                               bool streaming = false);
  void storeWords(Value pointer, ValueRange words, Value predicate,
                  bool streaming = false);
  Value loadF32(Value sharedPointer);
  void storeF32(Value value, Value sharedPointer);
  /// Waits for the grid in front of a dependent launch.
  void awaitLaunch();
  Value inlineAsm(Type result, StringRef text, StringRef constraints,
                  ValueRange operands);
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_EMITTER_H
