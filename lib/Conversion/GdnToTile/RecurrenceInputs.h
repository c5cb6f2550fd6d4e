//===- RecurrenceInputs.h - what kernels make of raw inputs -----*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEINPUTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEINPUTS_H

#include "KernelBuilder.h"
#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::gdn {

/// The ops in front of a recurrence that make one of its operands and whose
/// result nothing else reads: its kernels do their work on what they load.
/// Null where the operand is none of these, or the kernels cannot.
struct RecurrenceInputs {
  L2NormOp qNorm, kNorm;
  GateOp gate;
  /// Elementwise arithmetic on one operand of the same shape.
  linalg::LinalgOp gateMap, betaMap;

  /// Finds those that the kernels of the op's schedule take in. Changes
  /// nothing.
  static RecurrenceInputs find(RecurrenceOp op);

  /// Those that are there.
  SmallVector<Operation *> getOps() const;

  bool makesGate() const { return gate || gateMap; }
  bool makesBeta() const { return linalg::LinalgOp(betaMap) != nullptr; }

  /// What the ops compute, of scalars or fragments as loaded; without an op
  /// they only convert to f32. `rate` and `bias` are the operands of `gate`,
  /// null where there are none.
  Value emitGate(KernelBuilder &k, Value x, Value rate, Value bias) const;
  Value emitBeta(KernelBuilder &k, Value x) const;
  /// What was made of tokens that there are, `count`, the rows of a fragment
  /// or, of a single one, its columns; 0 for those behind.
  static Value emitTokens(KernelBuilder &k, Value made, Value count);

private:
  static RecurrenceInputs findAll(RecurrenceOp op);
};

/// The factor that normalises x, of whose squares `squares` is the sum.
Value emitNormFactor(KernelBuilder &k, Value squares, L2NormOp norm);
} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEINPUTS_H
