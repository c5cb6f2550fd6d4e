//===- RoleCandidate.cpp - what moves into warp roles ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleCandidate.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

// The store that alone fills the tile of `copy` in the same iteration; null if
// there is more to it.
StoreOp getOnlyStore(scf::ForOp loop, CopyOutOp copy) {
  auto alloc = copy.getTile().getDefiningOp<memref::AllocOp>();
  if (!alloc || copy->getBlock() != loop.getBody())
    return {};
  StoreOp store;
  for (Operation *user : alloc->getUsers()) {
    if (user == copy || isa<memref::DeallocOp>(user))
      continue;
    auto other = dyn_cast<StoreOp>(user);
    if (store || !other || other->getBlock() != loop.getBody() ||
        !other->isBeforeInBlock(copy))
      return {};
    store = other;
  }
  return store;
}

// The element that `condition` compares, if it is one of a tile that one of
// `copies` fills.
bool findFlag(Value condition, ArrayRef<CopyInOp> copies, RareTile &rare) {
  auto any = condition.getDefiningOp<AnyOp>();
  rare.compare = any ? any.getValue().getDefiningOp<arith::CmpFOp>() : nullptr;
  rare.flag =
      rare.compare ? rare.compare.getLhs().getDefiningOp<LoadOp>() : LoadOp();
  DenseElementsAttr limit;
  if (!rare.flag || !matchPattern(rare.compare.getRhs(), m_Constant(&limit)) ||
      !limit.isSplat() || rare.flag.getIndices().size() != 1 ||
      cast<VectorType>(rare.flag.getResult().getType()).getNumElements() != 1)
    return false;
  const auto *copy = llvm::find_if(copies, [&](CopyInOp copy) {
    return copy.getTile() == rare.flag.getMemref();
  });
  if (copy == copies.end())
    return false;
  rare.flags = *copy;
  auto source = cast<MemRefType>(rare.flags.getSource().getType());
  return rare.flags.getValid().empty() &&
         rare.flags.getDims().front() == source.getRank() - 1;
}

// Whether a branch yields all results of a refinement, or its accumulators.
bool isRefined(scf::IfOp branch, RefineOp refine) {
  if (!refine || refine.getCondition() || branch.getElseRegion().empty() ||
      !branch.elseBlock()->without_terminator().empty() ||
      !llvm::equal(branch.thenYield().getOperands(), refine.getResults()))
    return false;
  SmallVector<Value> accumulators{refine.getAcc(), refine.getState()};
  if (refine.getOutput())
    accumulators.push_back(refine.getOutput());
  KernelAttr kernel = getKernelAttr(branch->getParentOfType<func::FuncOp>());
  auto a = cast<VectorType>(refine.getA().getType());
  auto k = cast<MemRefType>(refine.getK().getType());
  int64_t warps = kernel.getWarps();
  return llvm::equal(branch.elseYield().getOperands(), accumulators) &&
         (warps == 4 || warps == 8) && a.getDimSize(0) == 16 * warps &&
         a.getDimSize(1) % 64 == 0 && k.getDimSize(1) % 64 == 0 &&
         k.getDimSize(1) <= 256;
}

std::optional<RareTile> findRareTile(scf::ForOp loop, scf::IfOp branch,
                                     LoopCopies &copies) {
  RareTile rare{branch, {}, {}, {}, {}, {}};
  if (!llvm::hasNItems(branch.thenBlock()->without_terminator(), 2))
    return std::nullopt;
  rare.copy = dyn_cast<CopyInOp>(branch.thenBlock()->front());
  rare.refine = dyn_cast<RefineOp>(*std::next(branch.thenBlock()->begin()));
  if (!rare.copy || !isRefined(branch, rare.refine) || rare.copy.getToken() ||
      rare.refine.getLow() != rare.copy.getTile() ||
      !findFlag(branch.getCondition(), copies.copies, rare))
    return std::nullopt;
  auto alloc = rare.copy.getTile().getDefiningOp<memref::AllocOp>();
  SmallVector<Value> needed(rare.copy.getIndices());
  llvm::append_range(needed, rare.copy.getValid());
  bool isOwn = alloc && llvm::all_of(alloc->getUsers(), [&](Operation *user) {
                 return user == rare.copy || user == rare.refine ||
                        isa<memref::DeallocOp>(user);
               });
  if (!isOwn || !loop.isDefinedOutsideOfLoop(rare.copy.getSource()) ||
      !loop.isDefinedOutsideOfLoop(rare.flag.getIndices().front()) ||
      !copies.slice.add(needed))
    return std::nullopt;
  return rare;
}

// A branch that is one refinement.
std::optional<RareRefinement> findRefinement(scf::IfOp branch) {
  if (!llvm::hasSingleElement(branch.thenBlock()->without_terminator()))
    return std::nullopt;
  auto refine = dyn_cast<RefineOp>(branch.thenBlock()->front());
  if (!isRefined(branch, refine))
    return std::nullopt;
  return RareRefinement{branch, refine};
}

// What of the loop's body runs ahead; none if the rest of it writes what that
// reads or writes, or computes what it needs.
std::optional<AheadPart> findAheadPart(scf::ForOp loop) {
  auto ops = loop.getBody()->getOps<AheadOp>();
  if (!llvm::hasSingleElement(ops))
    return std::nullopt;
  AheadPart part{*ops.begin(), {}, {}, LoopSlice(loop)};
  for (auto branch : loop.getBody()->getOps<scf::IfOp>())
    if (auto refinement = findRefinement(branch))
      part.refinements.push_back(*refinement);
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(part.op.getBody(), used);
  SmallVector<Value> needed;
  for (Value value : used) {
    if (!value.getDefiningOp<memref::AllocOp>()) {
      needed.push_back(value);
      continue;
    }
    if (!isWrittenIn(part.op, value))
      continue;
    bool isRead = false;
    for (Operation *user : value.getUsers()) {
      if (part.op->isAncestor(user) || isa<memref::DeallocOp>(user))
        continue;
      Operation *place = loop.getBody()->findAncestorOpInBlock(*user);
      // A refinement may leave something else in the place of what it read.
      bool isScratch =
          llvm::any_of(part.refinements, [&](RareRefinement &rare) {
            return rare.branch == place && rare.refine.getLow() == value;
          });
      if (!place || !part.op->isBeforeInBlock(place) ||
          (isWrittenIn(place, value) && !isScratch))
        return std::nullopt;
      isRead = true;
    }
    if (isRead)
      part.outputs.push_back(value);
  }
  // Branches on tiles that others write are no part of this.
  llvm::erase_if(part.refinements, [&](RareRefinement &rare) {
    return !llvm::is_contained(part.outputs, rare.refine.getLow());
  });
  if (part.outputs.empty() || !part.slice.add(needed))
    return std::nullopt;
  return part;
}

int64_t getStages(scf::ForOp loop) {
  return loop->getAttrOfType<IntegerAttr>(kStagesAttrName).getInt();
}

// Ops whose GPU form is for the first warps of a block or has its barriers in
// it.
bool meetsAllWarps(Operation *op) {
  if (isa<CumsumOp, DecaysOp, ScoresOp, TriInverseOp>(op))
    return true;
  auto sum = dyn_cast<SumOp>(op);
  return sum && cast<VectorType>(sum.getResult().getType()).getDimSize(0) == 1;
}

// A loop whose iterations count from 0, none of whose copies has to stay.
std::optional<LeadLoop> findLeadLoop(scf::ForOp loop) {
  LeadLoop lead{loop, getStages(loop), findLoopCopies(loop)};
  if (lead.stages < 2 || lead.copies.copies.empty() ||
      !isConstantIntValue(loop.getLowerBound(), 0) ||
      !isConstantIntValue(loop.getStep(), 1) ||
      !llvm::all_of(
          loop.getBody()->getOps<CopyInOp>(),
          [&](CopyInOp copy) {
            return llvm::is_contained(lead.copies.copies, copy);
          }))
    return std::nullopt;
  return lead;
}

// Warps that take turns with what does not run ahead: work of single warps,
// which nothing goes on with from iteration to iteration.
bool findTeams(scf::ForOp loop, RoleCandidate &candidate) {
  auto teams = loop->getAttrOfType<IntegerAttr>(kTeamsAttrName);
  if (!teams)
    return true;
  candidate.teams = teams.getInt();
  bool isOfWarps =
      llvm::all_of(loop.getBody()->without_terminator(), [](Operation &op) {
        return isa<CopyInOp, AheadOp, EachWarpOp, FindSequenceOp>(op) ||
               isa<memref::LoadOp>(op) || isMemoryEffectFree(&op);
      });
  return candidate.ahead && candidate.ahead->op.getTeams() == 1 && isOfWarps &&
         loop.getNumResults() == 0 && !candidate.lead &&
         isConstantIntValue(loop.getLowerBound(), 0) &&
         isConstantIntValue(loop.getStep(), 1);
}

} // namespace

std::optional<RoleCandidate>
mlir::gdn_tile::findRoleCandidate(func::FuncOp func) {
  SmallVector<scf::ForOp> loops;
  bool isFit = true, hasProducts = false;
  func.walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && loop->hasAttr(kStagesAttrName))
      loops.push_back(loop);
    if (auto product = dyn_cast<MmaOp>(op))
      hasProducts |= fitsWarpgroup(product);
    bool isOfWarp = op->getParentOfType<EachWarpOp>() != nullptr;
    isFit &= (isOfWarp || !meetsAllWarps(op)) && !isa<RolesOp>(op);
  });
  if (!isFit || !hasProducts || loops.empty() || loops.size() > 2 ||
      llvm::any_of(
          loops, [&](scf::ForOp loop) { return loop->getParentOp() != func; }))
    return std::nullopt;
  scf::ForOp loop = loops.back();
  int64_t stages = getStages(loop);
  RoleCandidate result{
      loop, stages, findLoopCopies(loop), {}, {}, LoopSlice(loop), {}, {}};
  if (stages < 2 || result.copies.copies.empty())
    return std::nullopt;
  if (loops.size() == 2) {
    result.lead = findLeadLoop(loops.front());
    if (!result.lead)
      return std::nullopt;
  }
  result.ahead = findAheadPart(loop);
  for (auto branch : loop.getBody()->getOps<scf::IfOp>())
    if (!result.rare)
      result.rare = findRareTile(loop, branch, result.copies);
  for (auto copy : loop.getBody()->getOps<CopyOutOp>()) {
    StoreOp store = getOnlyStore(loop, copy);
    SmallVector<Value> operands(copy.getIndices());
    llvm::append_range(operands, copy.getValid());
    if (store && loop.isDefinedOutsideOfLoop(copy.getDestination()) &&
        result.storeSlice.add(operands))
      result.stored.push_back({store, copy});
  }
  if (!findTeams(loop, result))
    return std::nullopt;
  return result;
}
