//===- BoundaryWalk.h - from one boundary to a later one --------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_BOUNDARYWALK_H
#define GDN_LIB_CONVERSION_GDNTOTILE_BOUNDARYWALK_H

#include "RecurrencePlan.h"

namespace mlir::gdn {

/// Rows S of the state of one value head, from a boundary to one behind it, in
/// registers as a scan has them:
///
///   S_(j+1) = S_j M_j + N_j
///
/// M_j and S_j are sums of two bfloat16 parts. Of their product the one of the
/// two small parts is left out: 2^-16 of the result. M_j and N_j are tiles that
/// do not depend on S, so they are copied ahead like those of a scan.
class BoundaryWalk {
public:
  /// The first of a block's rows, how many there are in the state from it on,
  /// and how many the block has.
  struct Rows {
    Value first, left;
    int64_t count;
  };

  BoundaryWalk(RecurrencePlan &plan, KernelBuilder &k) : plan(plan), k(k) {}

  /// The workspaces, and the tiles.
  void addArguments();
  void allocateTiles(int64_t rows);
  /// The state behind `steps` boundaries, of which `boundary` is the first.
  /// `beside` builds what runs beside the products of a step, from the place of
  /// its boundary and the state in front of it.
  Value build(Value initial, Value boundary, Value steps, Value head, Rows rows,
              function_ref<void(Value boundary, Value state)> beside);

private:
  void copyTiles(Value boundary, Value head, const Rows &rows);
  Value step(Value state, int64_t rows, function_ref<void()> beside);

  RecurrencePlan &plan;
  KernelBuilder &k;
  Value locals, transitions, localTile;
  SmallVector<Value> transitionTiles;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_BOUNDARYWALK_H
