//===- RoleRings.cpp - rings between the roles of a tile program ----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specializer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::gdn_tile;

// One tile is filled while another is stored, if both fit: large ones, of eight
// warps or of f32, would take the shared memory of a stage of what is read. Nor
// is there room for more beside the tiles of what runs ahead.
constexpr int64_t kStoreStages = 2;
constexpr int64_t kStoreBytes = 16 * 1024;
// Of tiles that only the math role reads, beside others that are read ahead.
constexpr int64_t kMathStages = 2;

// Copies whose tiles the same roles read share a ring.
void Specializer::groupCopies() {
  for (CopyInOp copy : candidate.copies.copies) {
    Value tile = copy.getTile();
    bool isOfAhead = false, isOfMath = false;
    for (Operation *user : tile.getUsers()) {
      if (user == copy || isa<memref::DeallocOp>(user))
        continue;
      bool runsAhead = candidate.ahead && candidate.ahead->op->isAncestor(user);
      (runsAhead ? isOfAhead : isOfMath) = true;
    }
    isOfMath |= !isOfAhead;
    auto *place = llvm::find_if(loaded, [&](const Loaded &group) {
      return group.isOfMath == isOfMath && group.isOfAhead == isOfAhead;
    });
    if (place == loaded.end()) {
      loaded.emplace_back();
      place = &loaded.back();
      place->isOfMath = isOfMath;
      place->isOfAhead = isOfAhead;
    }
    place->tiles.push_back(tile);
    place->copies.push_back(copy);
  }
  // What runs ahead waits for its tiles first. A stage that math holds would
  // keep the copies behind it back.
  llvm::sort(loaded, [](const Loaded &a, const Loaded &b) {
    return a.isOfMath + !a.isOfAhead < b.isOfMath + !b.isOfAhead;
  });
  if (!candidate.lead)
    return;
  // What is only added is needed late, and has one stage: its bytes are better
  // spent on what products wait for.
  leadLoaded.resize(2);
  for (CopyInOp copy : candidate.lead->copies.copies) {
    bool isMultiplied =
        llvm::any_of(copy.getTile().getUsers(), llvm::IsaPred<MmaOp>);
    Loaded &group = leadLoaded[!isMultiplied];
    group.tiles.push_back(copy.getTile());
    group.copies.push_back(copy);
  }
  llvm::erase_if(leadLoaded,
                 [](const Loaded &group) { return group.copies.empty(); });
}

// One allocation of `stages` tiles for each tile, and a ring that guards them.
void Specializer::createRing(Guarded &guarded, int64_t stages,
                             int64_t producers, int64_t consumers) {
  for (Value tile : guarded.tiles) {
    auto type = cast<MemRefType>(tile.getType());
    SmallVector<int64_t> shape{stages};
    llvm::append_range(shape, type.getShape());
    guarded.buffers.push_back(
        memref::AllocOp::create(b, MemRefType::get(shape, type.getElementType(),
                                                   MemRefLayoutAttrInterface(),
                                                   type.getMemorySpace())));
  }
  guarded.ring = RingOp::create(b, RingType::get(b.getContext(), stages),
                                guarded.buffers, producers, consumers);
}

void Specializer::createRings() {
  for (Loaded &group : leadLoaded) {
    bool isMultiplied =
        llvm::any_of(group.tiles.front().getUsers(), llvm::IsaPred<MmaOp>);
    createRing(group, isMultiplied ? candidate.lead->stages : 1, loadWarps,
               mathWarps);
  }
  int64_t stages = candidate.stages;
  int64_t lateStages = std::min(stages, kMathStages);
  // Of those that take turns each holds one meanwhile.
  if (candidate.teams)
    lateStages = candidate.teams + stages;
  for (Loaded &group : loaded) {
    bool isLate = candidate.ahead && !group.isOfAhead;
    createRing(group, isLate ? lateStages : stages, loadWarps,
               mathWarps * group.isOfMath + kGroupWarps * group.isOfAhead);
  }
  if (candidate.rare) {
    rareTiles.tiles = {candidate.rare->copy.getTile()};
    createRing(rareTiles, /*stages=*/1, loadWarps, mathWarps);
  }
  if (candidate.ahead) {
    // A team that acquires a stage has seen the release before the last only if
    // there are as many stages as teams, and two, so that one is filled while
    // the other is read. So it is with teams that read.
    aheadTiles.tiles = candidate.ahead->outputs;
    int64_t teams =
        std::max<int64_t>(candidate.teams, candidate.ahead->op.getTeams());
    createRing(aheadTiles, std::max<int64_t>(2, teams), kGroupWarps, mathWarps);
  }
  if (candidate.stored.empty())
    return;
  int64_t bytes = 0;
  for (StoredTile &stored : candidate.stored) {
    storeTiles.tiles.push_back(stored.copy.getTile());
    auto type = cast<MemRefType>(stored.copy.getTile().getType());
    bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }
  bool fits = 2 * bytes <= kStoreBytes && !candidate.ahead;
  createRing(storeTiles, fits ? kStoreStages : 1, mathWarps, kStoreWarps);
}
