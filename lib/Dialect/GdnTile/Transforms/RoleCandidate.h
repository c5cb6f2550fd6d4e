//===- RoleCandidate.h - what moves into warp roles -------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_ROLECANDIDATE_H
#define GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_ROLECANDIDATE_H

#include "LoopCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::gdn_tile {

/// A tile that one store of the loop fills and one copy hands to global memory.
struct StoredTile {
  StoreOp store;
  CopyOutOp copy;
};

/// A tile that is copied and multiplied with only where a condition holds, in a
/// branch of the loop:
///
///   scf.if %condition { copy_in ... to %tile; yield refine ... %tile ... }
///   else { yield its accumulators }
///
/// The condition compares an element of a tile that a copy of the loop fills;
/// the warps that copy read it where the copy does.
struct RareTile {
  scf::IfOp branch;
  CopyInOp copy;
  RefineOp refine;
  /// The tile's copy, the element in it and the comparison.
  CopyInOp flags;
  LoadOp flag;
  arith::CmpFOp compare;
};

/// A refinement in a branch of its own, as above without the copy.
struct RareRefinement {
  scf::IfOp branch;
  RefineOp refine;
};

/// The part of an iteration that runs ahead.
struct AheadPart {
  AheadOp op;
  /// Tiles that it writes and the rest of the iteration reads, and refinements
  /// with them.
  SmallVector<Value> outputs;
  SmallVector<RareRefinement> refinements;
  /// What it needs of the rest of the iteration.
  LoopSlice slice;
};

/// A loop in front of the loop of a tile program: copies, and what one role
/// does with their tiles.
struct LeadLoop {
  scf::ForOp loop;
  int64_t stages;
  LoopCopies copies;
};

/// The loop of a tile program that can be spread over roles.
struct RoleCandidate {
  scf::ForOp loop;
  int64_t stages;
  LoopCopies copies;
  std::optional<LeadLoop> lead;
  SmallVector<StoredTile> stored;
  LoopSlice storeSlice;
  std::optional<RareTile> rare;
  std::optional<AheadPart> ahead;
  /// Warps that take turns with what does not run ahead; 0: the kernel's warps
  /// do that together.
  int64_t teams = 0;
};

/// The only loop of a tile program with more than one stage, or the second of
/// two, if roles pay for it: warpgroup products run beside copies.
std::optional<RoleCandidate> findRoleCandidate(func::FuncOp func);

} // namespace mlir::gdn_tile

#endif // GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_ROLECANDIDATE_H
