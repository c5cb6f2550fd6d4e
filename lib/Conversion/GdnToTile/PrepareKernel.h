//===- PrepareKernel.h - chunk-parallel part of a recurrence ----*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PREPAREKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PREPAREKERNEL_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

/// What the forms of the prepare kernel share: one block per slot and value
/// head, the copies of its operands, the inverse of a shared tile, and the way
/// of T and P to the workspaces.
class PrepareKernel {
public:
  PrepareKernel(RecurrencePlan &plan, int64_t blocksPerSM);
  virtual ~PrepareKernel() = default;

  void build();

  // exp is 0 in f32 from here on; the sums of clamped gates stay exact where
  // those of -1e6 or -inf would swallow or poison the gates behind them.
  static constexpr double kMinGate = -104.0;
  static constexpr double kLog2E = 1.4426950408889634;

protected:
  virtual void allocateTiles();
  /// What is computed of the chunk once the tiles are filled.
  virtual void buildHead(Value head) = 0;

  /// i >= j, for rows i and columns j.
  Value mask();
  /// The inverse in `matrix`, of I + the strictly lower part of beta_i
  /// products.
  void invert(Value products);
  /// T: the inverse times `factor`, if any.
  void writeInverse(Value head, Value factor);
  void writeTile(Value fragment, Value workspace, ArrayRef<Value> position);
  void writeKeys(Value fragment, Value workspace, Value head);
  /// erase o k, rounded as the products need it.
  Value erasedKeys(Value keys);

  Access rowsOf(Value memref, Value head) {
    Value zero = k.index(0);
    return {memref, {row, head, zero}, {0, 2}, {rows, k.index(plan.keySize)}};
  }
  Access columnOf(Value memref, Value head) {
    return {memref, {row, head}, {0}, {rows}};
  }

  RecurrencePlan &plan;
  int64_t c, kp;
  KernelBuilder k;
  SequenceMap sequences;
  // Arguments.
  Value q, key, gate, beta, erase, inverse, scores, gates, decayedQ, decayedK,
      restK, decay;
  // Shared tiles.
  Value qTile, kTile, gateTile, betaTile, matrix, staged, keyStaged, eraseTile;
  // The chunk.
  Value slot, row, rows;

private:
  void addArguments();
  void buildChunk();
};

/// The rows of the workspace `gates` that belong to a slot and head, from the
/// sums of its gates in log2 units.
void writeGateRows(KernelBuilder &k, RecurrencePlan &plan, Value sums,
                   Value gates, Value slot, Value head);

/// With gates per head or none, without erase, for 16-bit inputs.
void buildWarpPrepareKernel(RecurrencePlan &plan);
/// With a gate per key channel.
void buildChannelPrepareKernel(RecurrencePlan &plan);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PREPAREKERNEL_H
