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

/// The sums of a chunk's raw gates in log2 units. The gates are a vector, which
/// may be that of the sums, or with `column` one of a tile's columns. Rows
/// behind the end hold 0 and repeat the last sum.
void storeGateSums(KernelBuilder &k, Value raw, Value column, Value sums);
/// Vectors that the rows of `gates` follow from: the sums of gates, in log2
/// units, beta where T has a unit diagonal, and what normalises keys and
/// queries, if they are raw.
struct GateVectors {
  Value sums, beta, keys, queries;
};
/// The first rows of a tile laid out as `gates`.
void storeGateRows(KernelBuilder &k, const RecurrencePlan &plan,
                   const GateVectors &of, Value tile);
/// These rows of the workspace `gates` of a slot and head.
void writeGateRows(KernelBuilder &k, RecurrencePlan &plan,
                   const GateVectors &of, Value gates, Value slot, Value head);

/// With gates per head or none: with erase, or for f32 inputs.
void buildBlockPrepareKernel(RecurrencePlan &plan);
/// With gates per head or none, without erase, for 16-bit inputs.
void buildWarpPrepareKernel(RecurrencePlan &plan);
/// With a gate per key channel.
void buildChannelPrepareKernel(RecurrencePlan &plan);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PREPAREKERNEL_H
