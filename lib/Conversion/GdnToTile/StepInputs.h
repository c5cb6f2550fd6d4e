//===- StepInputs.h - what a step kernel computes of its inputs -*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STEPINPUTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STEPINPUTS_H

#include "KernelBuilder.h"
#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::gdn {

/// The ops in front of a recurrence that make one of its operands and whose
/// result nothing else reads: a step kernel does their work on what it loads.
/// Null where the operand is none of these.
struct StepInputs {
  L2NormOp qNorm, kNorm;
  GateOp gate;
  /// Elementwise arithmetic on one operand of the same shape.
  linalg::LinalgOp gateMap, betaMap;

  /// Finds them. Changes nothing.
  static StepInputs find(RecurrenceOp op);

  /// Those that are there.
  SmallVector<Operation *> getOps() const;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STEPINPUTS_H
