//===- Specializer.h - the roles of a tile program --------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_SPECIALIZER_H
#define GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_SPECIALIZER_H

#include "RoleCandidate.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn_tile {

/// Spreads the loop of a candidate over roles.
class Specializer {
public:
  Specializer(func::FuncOp func, RoleCandidate candidate);

  LogicalResult run();

private:
  /// Tiles that pass from role to role together, and what guards them.
  struct Guarded {
    SmallVector<Value> tiles, buffers;
    Value ring;
  };
  /// Tiles that the same roles read.
  struct Loaded : Guarded {
    SmallVector<CopyInOp> copies;
    bool isOfMath, isOfAhead;
  };

  LogicalResult splitBody();
  void groupCopies();
  void setRegisters();
  Operation *sinkWaits();
  void createRings();
  void createRing(Guarded &guarded, int64_t stages, int64_t producers,
                  int64_t consumers);
  RoleOp createRole(StringRef name, int64_t warps, int64_t registers,
                    int64_t teams = 1);
  scf::ForOp createLoop(RoleOp role, scf::ForOp like, Value lower, Value step,
                        ArrayRef<Operation *> slice, IRMapping &mapping);
  void buildLoad();
  void buildLeadLoad(RoleOp role);
  void fillStages(MutableArrayRef<Loaded> groups, Value iteration,
                  IRMapping &mapping);
  void buildRareLoad(scf::ForOp copyLoop, IRMapping &mapping);
  void buildRefinement();
  static void takeOutOfBranch(scf::IfOp branch, RefineOp refine, Value low);
  void buildStore();
  void buildMath();
  void buildLeadMath();
  void handOver(Value iteration);
  void buildAhead();
  void cloneAhead(Value iteration, IRMapping &mapping);
  void takeOver(Value iteration);
  void mapStages(const Guarded &guarded, Value iteration, IRMapping &mapping);
  Value stageOf(Value ring, Value iteration);
  Value tileAt(Value buffers, Value stage);
  Value iterationOf(Value induction);
  void replaceTiles(const Guarded &guarded, Value iteration);
  void replaceTile(Value tile, Value by);

  func::FuncOp func;
  scf::ForOp loop;
  RoleCandidate candidate;
  ImplicitLocOpBuilder b;
  static constexpr int64_t kGroupWarps = 4, kStoreWarps = 1;
  int64_t mathWarps = 0, loadWarps = 0;
  /// Registers of a thread; 0: as at the start of the block.
  int64_t mathRegisters = 0, aheadRegisters = 0, copyRegisters = 0;
  /// Ops of the function's body that only the math role runs.
  SmallVector<Operation *> mathOps;
  /// Those of them that every role has a copy of.
  SmallVector<AwaitLaunchOp> awaits;
  SmallVector<Loaded> loaded;
  /// Of the loop in front, apart from these: what products read, and the rest.
  SmallVector<Loaded> leadLoaded;
  Guarded storeTiles, rareTiles, aheadTiles;
};

} // namespace mlir::gdn_tile

#endif // GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_SPECIALIZER_H
