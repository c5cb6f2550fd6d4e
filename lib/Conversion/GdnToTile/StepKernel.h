//===- StepKernel.h - what the step kernels share ---------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence, value head and block of value channels reads its part
// of the state once, walks the tokens and writes the state back, at the speed
// of the memory. Two kernels do it: token by token, and in chunks of eight
// tokens by products.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STEPKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STEPKERNEL_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

class StepKernel {
public:
  /// `values`: value channels of a block. `lanes` hold a row of the state,
  /// `chunk` neighbouring elements each in turn.
  StepKernel(RecurrencePlan &plan, StringRef name, int64_t values,
             int64_t warps, int64_t lanes, int64_t chunk,
             int64_t blocksPerSM = 0);
  virtual ~StepKernel() = default;

  /// The kernel and its launch for `sequences` sequences: all or none.
  void build(Value sequences);

protected:
  /// Loads that do not depend on where the state lies, for a sequence whose
  /// number of tokens is known.
  virtual void loadTokens(const Sequence &sequence) = 0;
  /// Everything from the state's loads to its stores.
  virtual void buildTokens(const Sequence &sequence) = 0;

  Shape2 valueShape() {
    return plan.isKFirst ? Shape2{1, values} : Shape2{values, 1};
  }
  Access valueAccess(Value memref, Value row) {
    return {memref, {row, head, firstValue}, {2}, {valuesLeft}};
  }
  Value loadState(Shape2 shape);
  void storeState(Value value);
  /// The state behind token number `token` of the sequence, if it is a
  /// checkpoint.
  void keepState(Value value, const Sequence &sequence, Value token);

  RecurrencePlan &plan;
  int64_t values;
  KernelBuilder k;
  SequenceMap sequences;
  /// Tokens of each sequence if that is known and all fit in the registers at
  /// once, else 0.
  int64_t tokens = 0;
  /// Of `gate`, if the kernel computes the gates itself: memrefs.
  Value rate, bias;
  Value q, key, v, gate, beta, erase, write, out, entries, state, start,
      checkpoints;
  Value head, keyHead, firstValue, valuesLeft;
  StateEntry entry;

private:
  void addArguments();
  Value argumentOr(Value source, Value operand);
  Access stateAccess(Value memref, Value index, Value bound);
  void store(Value value, const Access &access);
  void storeZeros(const Sequence &sequence);
};

/// Token by token, of any recurrence; launched for `sequences`.
LogicalResult buildTokenStepKernel(RecurrencePlan &plan, StringRef name,
                                   Value sequences);
/// In chunks of eight tokens.
LogicalResult buildChunkStepKernel(RecurrencePlan &plan, StringRef name,
                                   Value sequences);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STEPKERNEL_H
