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
/// The first rows of a tile laid out as `gates`: what follows from the sums,
/// and `beta` where T has a unit diagonal.
void storeGateRows(KernelBuilder &k, const RecurrencePlan &plan, Value sums,
                   Value beta, Value tile);
/// The rows of the workspace `gates` that belong to a slot and head and follow
/// from the sums of its gates, in log2 units; `beta` where T has a unit
/// diagonal.
void writeGateRows(KernelBuilder &k, RecurrencePlan &plan, Value sums,
                   Value beta, Value gates, Value slot, Value head);

/// With gates per head or none: with erase, or for f32 inputs.
void buildBlockPrepareKernel(RecurrencePlan &plan);
/// With gates per head or none, without erase, for 16-bit inputs.
void buildWarpPrepareKernel(RecurrencePlan &plan);
/// With a gate per key channel.
void buildChannelPrepareKernel(RecurrencePlan &plan);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PREPAREKERNEL_H
