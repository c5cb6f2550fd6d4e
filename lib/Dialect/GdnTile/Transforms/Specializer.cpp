//===- Specializer.cpp - the roles of a tile program ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specializer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::gdn_tile;

// Together with four warps that compute these are 256 threads: as many as leave
// each the 255 registers that an instruction can name. With eight they are a
// third warpgroup, which gives its registers to the others, and so beside warps
// that run ahead.
constexpr int64_t kLoadWarps = 3;
constexpr int64_t kMathRegisters = 240;
constexpr int64_t kCopyRegisters = 24;
// Of eight warps beside a warpgroup that runs ahead: with fewer ptxas
// serializes products, and copies of its inputs have addresses more.
constexpr int64_t kWideMathRegisters = 208, kWideCopyRegisters = 32;
// Of a multiprocessor, for each thread of a warpgroup.
constexpr int64_t kAllRegisters = 65536 / 128;
Specializer::Specializer(func::FuncOp func, RoleCandidate candidate)
    : func(func), loop(candidate.loop), candidate(std::move(candidate)),
      b(loop.getLoc(), loop) {}

// Ops in front of the loop that every warp may run: numbers, also those that a
// loop finds, allocations and hints.
static bool isShareable(Operation *op) {
  if (isa<memref::AllocOp, PrefetchOp>(op))
    return true;
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<VectorType>))
    return false;
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return !isShared(load.getMemRefType());
  if (op->hasTrait<OpTrait::IsTerminator>())
    return true;
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return llvm::all_of(op->getRegions(), [](Region &region) {
      return llvm::all_of(region.getOps(),
                          [](Operation &inner) { return isShareable(&inner); });
    });
  // A division may fault, but no warp runs it that would not run it anyway.
  return op->getNumRegions() == 0 && isMemoryEffectFree(op);
}

// Parts the ops of the function into those that all warps run and those of the
// math role; the loop and everything behind it are of the latter.
LogicalResult Specializer::splitBody() {
  DenseSet<Operation *> moved;
  bool isBehind = false;
  for (Operation &op : func.getBody().front().without_terminator()) {
    isBehind |= &op == loop;
    bool needsMoved = llvm::any_of(op.getOperands(), [&](Value operand) {
      return moved.contains(operand.getDefiningOp());
    });
    // Nothing is read for all roles before they have waited.
    bool mayShare =
        awaits.empty() || isa<memref::AllocOp>(op) || isMemoryEffectFree(&op);
    if (!isBehind && !needsMoved && mayShare && isShareable(&op))
      continue;
    moved.insert(&op);
    mathOps.push_back(&op);
    if (auto await = dyn_cast<AwaitLaunchOp>(op); await && !isBehind)
      awaits.push_back(await);
  }
  auto isFree = [&](Value value) {
    return !moved.contains(value.getDefiningOp());
  };
  // What the other roles read has to be there in front of the roles.
  SmallVector<Value> read{loop.getLowerBound(), loop.getUpperBound(),
                          loop.getStep()};
  auto addOperands = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (loop.isDefinedOutsideOfLoop(operand))
        read.push_back(operand);
  };
  llvm::for_each(candidate.copies.getSlice(), addOperands);
  llvm::for_each(candidate.copies.copies, addOperands);
  if (candidate.lead) {
    scf::ForOp lead = candidate.lead->loop;
    read.push_back(lead.getUpperBound());
    auto addLeadOperands = [&](Operation *op) {
      for (Value operand : op->getOperands())
        if (lead.isDefinedOutsideOfLoop(operand))
          read.push_back(operand);
    };
    llvm::for_each(candidate.lead->copies.getSlice(), addLeadOperands);
    llvm::for_each(candidate.lead->copies.copies, addLeadOperands);
  }
  if (candidate.rare) {
    addOperands(candidate.rare->copy);
    read.push_back(candidate.rare->flag.getIndices().front());
  }
  if (candidate.ahead) {
    // Constants are there in every role.
    candidate.ahead->op.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (loop.isDefinedOutsideOfLoop(operand) &&
            !operand.getDefiningOp<arith::ConstantOp>())
          read.push_back(operand);
    });
    llvm::for_each(candidate.ahead->slice.getOps(), addOperands);
  }
  llvm::for_each(candidate.storeSlice.getOps(), addOperands);
  for (StoredTile &stored : candidate.stored)
    addOperands(stored.copy);
  return success(llvm::all_of(read, isFree));
}

// Warpgroups start alike; where that gives the math role too few registers, the
// others hand over theirs. A role that sets its registers is a part of whole
// warpgroups.
void Specializer::setRegisters() {
  int64_t teams = candidate.ahead ? candidate.ahead->op.getTeams() : 0;
  loadWarps = kLoadWarps;
  if (candidate.teams)
    return; // All have enough.
  if (mathWarps == kGroupWarps && teams == 0)
    return;
  if (candidate.stored.empty())
    loadWarps += kStoreWarps;
  int64_t mathGroups = mathWarps / kGroupWarps, groups = mathGroups + teams + 1;
  int64_t atStart = kAllRegisters / groups / 8 * 8;
  bool isScarce = teams > 0 && mathGroups > 1;
  mathRegisters = isScarce ? kWideMathRegisters : kMathRegisters;
  copyRegisters = isScarce ? kWideCopyRegisters : kCopyRegisters;
  if (teams == 0)
    return;
  int64_t left = groups * atStart - copyRegisters - mathGroups * mathRegisters;
  aheadRegisters = std::min(left / teams / 8 * 8, kMathRegisters);
}

RoleOp Specializer::createRole(StringRef name, int64_t warps, int64_t registers,
                               int64_t teams) {
  auto role = RoleOp::create(
      b, b.getStringAttr(name), b.getI64IntegerAttr(warps),
      b.getI64IntegerAttr(teams),
      registers ? b.getI64IntegerAttr(registers) : IntegerAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&role.getBody().emplaceBlock());
  RoleEndOp::create(b);
  return role;
}

// A loop like the original one without its values, at the end of a role; the
// builder is left in its body, behind the ops of `slice`.
scf::ForOp Specializer::createLoop(RoleOp role, scf::ForOp like, Value lower,
                                   Value step, ArrayRef<Operation *> slice,
                                   IRMapping &mapping) {
  b.setInsertionPoint(role.getBody().front().getTerminator());
  if (role.getBody().front().getOps<scf::ForOp>().empty())
    for (AwaitLaunchOp await : awaits)
      b.clone(*await);
  auto copy = scf::ForOp::create(
      b, lower, like.getUpperBound(), step, ValueRange(),
      [](OpBuilder &b, Location loc, Value, ValueRange) {
        scf::YieldOp::create(b, loc);
      },
      like.getUnsignedCmp());
  b.setInsertionPoint(copy.getBody()->getTerminator());
  mapping.map(like.getInductionVar(), copy.getInductionVar());
  for (Operation *op : slice)
    b.clone(*op, mapping);
  return copy;
}

// Number of an iteration of the original loop, from 0.
Value Specializer::iterationOf(Value induction) {
  Value i = induction;
  if (getConstantIntValue(loop.getLowerBound()) != 0)
    i = arith::SubIOp::create(b, i, loop.getLowerBound());
  if (getConstantIntValue(loop.getStep()) != 1)
    i = arith::DivUIOp::create(b, i, loop.getStep());
  return i;
}

// The stage of an iteration of a ring.
Value Specializer::stageOf(Value ring, Value iteration) {
  int64_t count = cast<RingType>(ring.getType()).getStages();
  Value stages = arith::ConstantIndexOp::create(b, count);
  return arith::RemUIOp::create(b, iteration, stages);
}

Value Specializer::tileAt(Value buffers, Value stage) {
  auto type = cast<MemRefType>(buffers.getType());
  auto tile =
      MemRefType::get(type.getShape().drop_front(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  return StageOp::create(b, tile, buffers, stage);
}

static SmallVector<Value> lookUp(const IRMapping &mapping, ValueRange values) {
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

void Specializer::buildLoad() {
  IRMapping mapping;
  RoleOp role = createRole("load", loadWarps, copyRegisters);
  OpBuilder::InsertionGuard guard(b);
  if (candidate.lead)
    buildLeadLoad(role);
  scf::ForOp copyLoop =
      createLoop(role, loop, loop.getLowerBound(), loop.getStep(),
                 candidate.copies.getSlice(), mapping);
  fillStages(loaded, iterationOf(copyLoop.getInductionVar()), mapping);
  if (candidate.rare)
    buildRareLoad(copyLoop, mapping);
}

// The copies of the loop in front. Behind it their bytes are those of all other
// rings.
void Specializer::buildLeadLoad(RoleOp role) {
  LeadLoop &lead = *candidate.lead;
  IRMapping mapping;
  scf::ForOp copyLoop =
      createLoop(role, lead.loop, lead.loop.getLowerBound(),
                 lead.loop.getStep(), lead.copies.getSlice(), mapping);
  fillStages(leadLoaded, copyLoop.getInductionVar(), mapping);
  b.setInsertionPoint(role.getBody().front().getTerminator());
  SmallVector<Value> later;
  for (Loaded &group : loaded)
    later.push_back(group.ring);
  for (Guarded *others : {&storeTiles, &rareTiles, &aheadTiles})
    if (others->ring)
      later.push_back(others->ring);
  Value count = arith::MaxSIOp::create(b, lead.loop.getUpperBound(),
                                       arith::ConstantIndexOp::create(b, 0));
  for (Loaded &group : leadLoaded)
    RingDrainOp::create(b, group.ring, count, later);
}

void Specializer::fillStages(MutableArrayRef<Loaded> groups, Value iteration,
                             IRMapping &mapping) {
  for (Loaded &group : groups) {
    Value slot = RingAcquireOp::create(b, SlotType::get(b.getContext()),
                                       group.ring, iteration);
    Value stage = stageOf(group.ring, iteration);
    for (auto [copy, buffers] : llvm::zip_equal(group.copies, group.buffers)) {
      Value tile = tileAt(buffers, stage);
      CopyInOp::create(b, Type(), copy.getSource(),
                       lookUp(mapping, copy.getIndices()), copy.getDims(),
                       lookUp(mapping, copy.getValid()), tile, copy.getLower(),
                       slot);
    }
    RingCommitOp::create(b, slot);
  }
}

// Copies the rare tile where its condition holds, as often as it has been
// released. The last of a loop's ops: it gets a result.
void Specializer::buildRareLoad(scf::ForOp copyLoop, IRMapping &mapping) {
  RareTile &rare = *candidate.rare;
  auto build = [&](OpBuilder &builder, Location loc,
                   ArrayRef<BlockArgument> counts) -> SmallVector<Value> {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(builder.getInsertionBlock(),
                        builder.getInsertionPoint());
    SmallVector<Value> indices = lookUp(mapping, rare.flags.getIndices());
    indices.back() = arith::AddIOp::create(b, indices.back(),
                                           rare.flag.getIndices().front());
    Value flag = memref::LoadOp::create(b, rare.flags.getSource(), indices);
    DenseElementsAttr limit;
    matchPattern(rare.compare.getRhs(), m_Constant(&limit));
    Value isRare = arith::CmpFOp::create(
        b, rare.compare.getPredicate(), flag,
        arith::ConstantOp::create(b, limit.getSplatValue<FloatAttr>()));
    auto branch = scf::IfOp::create(b, TypeRange{b.getIndexType()}, isRare,
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, ValueRange{counts.front()});
    b.setInsertionPointToStart(branch.thenBlock());
    Value slot = RingAcquireOp::create(b, SlotType::get(b.getContext()),
                                       rareTiles.ring, counts.front());
    Value tile =
        tileAt(rareTiles.buffers.front(), arith::ConstantIndexOp::create(b, 0));
    CopyInOp::create(b, Type(), rare.copy.getSource(),
                     lookUp(mapping, rare.copy.getIndices()),
                     rare.copy.getDims(), lookUp(mapping, rare.copy.getValid()),
                     tile, rare.copy.getLower(), slot);
    RingCommitOp::create(b, slot);
    Value next = arith::AddIOp::create(b, counts.front(),
                                       arith::ConstantIndexOp::create(b, 1));
    scf::YieldOp::create(b, ValueRange{next});
    return {branch.getResult(0)};
  };
  IRRewriter rewriter(b.getContext());
  rewriter.setInsertionPoint(copyLoop);
  Value zero = arith::ConstantIndexOp::create(rewriter, copyLoop.getLoc(), 0);
  // Fails only for loops that cannot yield.
  (void)copyLoop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, build);
}

// The refinement decides by itself then.
void Specializer::takeOutOfBranch(scf::IfOp branch, RefineOp refine,
                                  Value low) {
  refine->moveBefore(branch);
  refine.getConditionMutable().assign(branch.getCondition());
  refine.getLowMutable().assign(low);
  branch.replaceAllUsesWith(refine.getResults());
  branch.erase();
}

void Specializer::buildRefinement() {
  RareTile &rare = *candidate.rare;
  Operation *alloc = rare.copy.getTile().getDefiningOp();
  takeOutOfBranch(rare.branch, rare.refine, rareTiles.ring);
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    user->erase();
  alloc->erase();
}

void Specializer::buildStore() {
  IRMapping mapping;
  RoleOp role = createRole("store", kStoreWarps, copyRegisters);
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp copyLoop =
      createLoop(role, loop, loop.getLowerBound(), loop.getStep(),
                 candidate.storeSlice.getOps(), mapping);
  Value iteration = iterationOf(copyLoop.getInductionVar());
  RingWaitOp::create(b, storeTiles.ring, iteration);
  Value stage = stageOf(storeTiles.ring, iteration);
  for (auto [stored, buffers] :
       llvm::zip_equal(candidate.stored, storeTiles.buffers)) {
    CopyOutOp copy = stored.copy;
    CopyOutOp::create(b, tileAt(buffers, stage), copy.getDestination(),
                      lookUp(mapping, copy.getIndices()), copy.getDims(),
                      lookUp(mapping, copy.getValid()));
  }
  RingReleaseOp::create(b, storeTiles.ring, iteration);
}

// Puts a stage in the place of a tile of its own.
void Specializer::replaceTile(Value tile, Value by) {
  Operation *alloc = tile.getDefiningOp();
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  tile.replaceAllUsesWith(by);
  alloc->erase();
}

// The math role's stages of an iteration, behind the wait for them.
void Specializer::replaceTiles(const Guarded &guarded, Value iteration) {
  RingWaitOp::create(b, guarded.ring, iteration);
  Value stage = stageOf(guarded.ring, iteration);
  for (auto [tile, buffers] : llvm::zip_equal(guarded.tiles, guarded.buffers))
    replaceTile(tile, tileAt(buffers, stage));
}

// The first op of a block that uses any of `tiles`, itself or in a region; the
// last op, if none does.
static Operation *findFirstUse(Block &block, ArrayRef<Value> tiles) {
  Operation *first = block.getTerminator();
  for (Value tile : tiles)
    for (Operation *user : tile.getUsers())
      if (Operation *place = block.findAncestorOpInBlock(*user);
          place && place->isBeforeInBlock(first))
        first = place;
  return first;
}

void Specializer::buildLeadMath() {
  LeadLoop &lead = *candidate.lead;
  for (CopyInOp copy : lead.copies.copies)
    copy.erase();
  Block *body = lead.loop.getBody();
  Value iteration = lead.loop.getInductionVar();
  for (Loaded &group : leadLoaded) {
    // Products need not wait for what is added.
    b.setInsertionPoint(findFirstUse(*body, group.tiles));
    replaceTiles(group, iteration);
  }
  b.setInsertionPoint(body->getTerminator());
  for (Loaded &group : leadLoaded)
    RingReleaseOp::create(b, group.ring, iteration);
  lead.loop->removeAttr(kStagesAttrName);
}

void Specializer::buildMath() {
  int64_t teams = std::max<int64_t>(candidate.teams, 1);
  RoleOp role = createRole("math", mathWarps * teams, mathRegisters, teams);
  OpBuilder::InsertionGuard guard(b);
  Operation *end = role.getBody().front().getTerminator();
  for (Operation *op : mathOps)
    op->moveBefore(end);
  if (candidate.lead)
    buildLeadMath();
  Block *body = loop.getBody();
  if (candidate.rare)
    buildRefinement();
  for (CopyInOp copy : candidate.copies.copies)
    copy.erase();
  if (candidate.ahead)
    candidate.ahead->op.erase();
  b.setInsertionPointToStart(body);
  Value iteration = iterationOf(loop.getInductionVar());
  // Beside a role that runs ahead rings are several, and the stage of each is
  // waited for where it is used first: what that role makes comes last.
  auto setPlaceOfWait = [&](const Guarded &guarded) {
    if (candidate.ahead)
      b.setInsertionPoint(findFirstUse(*body, guarded.tiles));
  };
  for (Loaded &group : loaded) {
    setPlaceOfWait(group);
    if (group.isOfMath)
      replaceTiles(group, iteration);
    else
      for (Value tile : group.tiles)
        tile.getDefiningOp()->erase();
  }
  if (candidate.ahead) {
    setPlaceOfWait(aheadTiles);
    takeOver(iteration);
  }
  if (storeTiles.ring)
    handOver(iteration);
  b.setInsertionPoint(body->getTerminator());
  for (Loaded &group : loaded)
    if (group.isOfMath)
      RingReleaseOp::create(b, group.ring, iteration);
  if (candidate.ahead)
    RingReleaseOp::create(b, aheadTiles.ring, iteration);
  loop->removeAttr(kStagesAttrName);
  if (!candidate.teams)
    return;
  loop->removeAttr(kTeamsAttrName);
  b.setInsertionPoint(loop);
  loop.setLowerBound(TeamOp::create(b));
  loop.setStep(arith::ConstantIndexOp::create(b, teams));
}

// Stores into stages in the place of the copies to global memory: the first
// store waits until the stage is free, behind the last it is committed.
void Specializer::handOver(Value iteration) {
  Operation *first = candidate.stored.front().store;
  Operation *last = candidate.stored.front().copy;
  for (StoredTile &stored : candidate.stored) {
    if (stored.store->isBeforeInBlock(first))
      first = stored.store;
    if (last->isBeforeInBlock(stored.copy))
      last = stored.copy;
  }
  Operation *behind = last->getNextNode();
  b.setInsertionPoint(first);
  Value slot = RingAcquireOp::create(b, SlotType::get(b.getContext()),
                                     storeTiles.ring, iteration);
  Value stage = stageOf(storeTiles.ring, iteration);
  for (auto [stored, buffers] :
       llvm::zip_equal(candidate.stored, storeTiles.buffers)) {
    Value tile = stored.copy.getTile(), staged = tileAt(buffers, stage);
    stored.copy.erase();
    replaceTile(tile, staged);
  }
  b.setInsertionPoint(behind);
  RingCommitOp::create(b, slot);
}

// Numbers that are read for all roles are under way while the rings are made:
// what waits for them moves behind.
Operation *Specializer::sinkWaits() {
  Block &body = func.getBody().front();
  DenseSet<Operation *> ofMath(mathOps.begin(), mathOps.end());
  DenseSet<Operation *> waiting;
  SmallVector<Operation *> late;
  for (Operation &op : body.without_terminator()) {
    if (ofMath.contains(&op))
      continue;
    bool waits = op.getNumRegions() != 0 ||
                 llvm::any_of(op.getOperands(), [&](Value operand) {
                   return waiting.contains(operand.getDefiningOp());
                 });
    if (waits)
      late.push_back(&op);
    if (waits || isa<memref::LoadOp>(op))
      waiting.insert(&op);
  }
  for (Operation *op : late)
    op->moveBefore(body.getTerminator());
  return late.empty() ? body.getTerminator() : late.front();
}

LogicalResult Specializer::run() {
  mathWarps = candidate.teams ? 1 : getKernelAttr(func).getWarps();
  if (failed(splitBody()))
    return failure();
  groupCopies();
  setRegisters();
  b.setInsertionPoint(sinkWaits());
  createRings();
  b.setInsertionPoint(func.getBody().front().getTerminator());
  auto roles = RolesOp::create(b);
  b.setInsertionPointToStart(&roles.getBody().emplaceBlock());
  // The other roles are built first: from what the math role gives up.
  if (candidate.ahead)
    buildAhead();
  buildLoad();
  if (storeTiles.ring)
    buildStore();
  // The role with fragments of the kernel's warps comes first.
  b.setInsertionPointToStart(&roles.getBody().front());
  if (candidate.teams)
    b.setInsertionPointAfter(&roles.getBody().front().front());
  buildMath();
  return success();
}
