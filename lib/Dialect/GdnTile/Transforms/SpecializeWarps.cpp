//===- SpecializeWarps.cpp - gdn-tile-specialize-warps --------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleCandidate.h"

#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILESPECIALIZEWARPSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

// Together with four warps that compute these are 256 threads: as many as leave
// each the 255 registers that an instruction can name. With eight they are a
// third warpgroup, which gives its registers to the others.
constexpr int64_t kLoadWarps = 3;
constexpr int64_t kStoreWarps = 1;
constexpr int64_t kWideWarps = 8;
constexpr int64_t kWideRegisters = 240;
constexpr int64_t kCopyRegisters = 24;
// One tile is filled while another is stored, if both fit: large ones, of eight
// warps or of f32, would take the shared memory of a stage of what is read.
constexpr int64_t kStoreStages = 2;
constexpr int64_t kStoreBytes = 16 * 1024;

// Ops in front of the loop that every warp may run: numbers, also those that a
// loop finds, and allocations.
bool isShareable(Operation *op) {
  if (isa<memref::AllocOp>(op))
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

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

class Specializer {
public:
  Specializer(func::FuncOp func, RoleCandidate candidate)
      : func(func), loop(candidate.loop), candidate(std::move(candidate)),
        b(loop.getLoc(), loop) {}

  LogicalResult run();

private:
  LogicalResult splitBody();
  Value createRing(ArrayRef<Value> tiles, int64_t stages, int64_t producers,
                   int64_t consumers, SmallVectorImpl<Value> &buffers);
  RoleOp createRole(StringRef name, int64_t warps);
  scf::ForOp createLoop(RoleOp role, ArrayRef<Operation *> slice,
                        IRMapping &mapping);
  void buildLoad();
  void buildRareLoad(scf::ForOp copyLoop, IRMapping &mapping);
  void buildRareProduct();
  void buildStore();
  void buildMath();
  void handOver(Value iteration);
  Value stageOf(Value ring, Value iteration);
  Value tileAt(Value buffers, Value stage);
  Value iterationOf(scf::ForOp of);
  void replaceTile(Value tile, Value by);

  func::FuncOp func;
  scf::ForOp loop;
  RoleCandidate candidate;
  ImplicitLocOpBuilder b;
  int64_t mathWarps = 0, loadWarps = kLoadWarps;
  /// Ops of the function's body that only the math role runs.
  SmallVector<Operation *> mathOps;
  Value loadRing, storeRing, rareRing;
  SmallVector<Value> loadBuffers, storeBuffers, rareBuffers;
};

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
    if (!isBehind && !needsMoved && isShareable(&op))
      continue;
    moved.insert(&op);
    mathOps.push_back(&op);
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
  if (candidate.rare) {
    addOperands(candidate.rare->copy);
    read.push_back(candidate.rare->flag.getIndices().front());
  }
  llvm::for_each(candidate.storeSlice.getOps(), addOperands);
  for (StoredTile &stored : candidate.stored)
    addOperands(stored.copy);
  return success(llvm::all_of(read, isFree));
}

// One allocation of `stages` tiles for each tile, and a ring that guards them.
Value Specializer::createRing(ArrayRef<Value> tiles, int64_t stages,
                              int64_t producers, int64_t consumers,
                              SmallVectorImpl<Value> &buffers) {
  for (Value tile : tiles) {
    auto type = cast<MemRefType>(tile.getType());
    SmallVector<int64_t> shape{stages};
    llvm::append_range(shape, type.getShape());
    buffers.push_back(
        memref::AllocOp::create(b, MemRefType::get(shape, type.getElementType(),
                                                   MemRefLayoutAttrInterface(),
                                                   type.getMemorySpace())));
  }
  return RingOp::create(b, RingType::get(b.getContext(), stages), buffers,
                        producers, consumers);
}

RoleOp Specializer::createRole(StringRef name, int64_t warps) {
  IntegerAttr registers;
  if (mathWarps == kWideWarps)
    registers = b.getI64IntegerAttr(warps == mathWarps ? kWideRegisters
                                                       : kCopyRegisters);
  auto role = RoleOp::create(b, b.getStringAttr(name),
                             b.getI64IntegerAttr(warps), registers);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&role.getBody().emplaceBlock());
  RoleEndOp::create(b);
  return role;
}

// A loop like the original one without its values; the builder is left in its
// body, behind the ops of `slice`.
scf::ForOp Specializer::createLoop(RoleOp role, ArrayRef<Operation *> slice,
                                   IRMapping &mapping) {
  b.setInsertionPointToStart(&role.getBody().front());
  auto copy = scf::ForOp::create(
      b, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
      ValueRange(),
      [](OpBuilder &b, Location loc, Value, ValueRange) {
        scf::YieldOp::create(b, loc);
      },
      loop.getUnsignedCmp());
  b.setInsertionPoint(copy.getBody()->getTerminator());
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  for (Operation *op : slice)
    b.clone(*op, mapping);
  return copy;
}

// Number of the iteration, from 0.
Value Specializer::iterationOf(scf::ForOp of) {
  Value i = of.getInductionVar();
  if (getConstantIntValue(of.getLowerBound()) != 0)
    i = arith::SubIOp::create(b, i, of.getLowerBound());
  if (getConstantIntValue(of.getStep()) != 1)
    i = arith::DivUIOp::create(b, i, of.getStep());
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

void Specializer::buildLoad() {
  IRMapping mapping;
  RoleOp role = createRole("load", loadWarps);
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp copyLoop = createLoop(role, candidate.copies.getSlice(), mapping);
  Value iteration = iterationOf(copyLoop);
  Value slot = RingAcquireOp::create(b, SlotType::get(b.getContext()), loadRing,
                                     iteration);
  Value stage = stageOf(loadRing, iteration);
  auto map = [&](ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  for (auto [copy, buffers] :
       llvm::zip_equal(candidate.copies.copies, loadBuffers)) {
    Value tile = tileAt(buffers, stage);
    CopyInOp::create(b, Type(), copy.getSource(), map(copy.getIndices()),
                     copy.getDims(), map(copy.getValid()), tile, slot);
  }
  RingCommitOp::create(b, slot);
  if (candidate.rare)
    buildRareLoad(copyLoop, mapping);
}

// Copies the rare tile where its condition holds, as often as it has been
// released. The last of a loop's ops: it gets a result.
void Specializer::buildRareLoad(scf::ForOp copyLoop, IRMapping &mapping) {
  RareTile &rare = *candidate.rare;
  auto map = [&](ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  auto build = [&](OpBuilder &builder, Location loc,
                   ArrayRef<BlockArgument> counts) -> SmallVector<Value> {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(builder.getInsertionBlock(),
                        builder.getInsertionPoint());
    SmallVector<Value> indices = map(rare.flags.getIndices());
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
                                       rareRing, counts.front());
    Value tile =
        tileAt(rareBuffers.front(), arith::ConstantIndexOp::create(b, 0));
    CopyInOp::create(b, Type(), rare.copy.getSource(),
                     map(rare.copy.getIndices()), rare.copy.getDims(),
                     map(rare.copy.getValid()), tile, slot);
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

void Specializer::buildRareProduct() {
  RareTile &rare = *candidate.rare;
  b.setInsertionPoint(rare.branch);
  Value result = RareMmaOp::create(
      b, rare.product.getFragmentType(), rare.branch.getCondition(),
      rare.product.getA(), rareRing, rare.product.getAcc());
  Operation *alloc = rare.copy.getTile().getDefiningOp();
  rare.branch.getResult(0).replaceAllUsesWith(result);
  rare.branch.erase();
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    user->erase();
  alloc->erase();
}

void Specializer::buildStore() {
  IRMapping mapping;
  RoleOp role = createRole("store", kStoreWarps);
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp copyLoop =
      createLoop(role, candidate.storeSlice.getOps(), mapping);
  Value iteration = iterationOf(copyLoop);
  RingWaitOp::create(b, storeRing, iteration);
  Value stage = stageOf(storeRing, iteration);
  auto map = [&](ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  for (auto [stored, buffers] :
       llvm::zip_equal(candidate.stored, storeBuffers)) {
    CopyOutOp copy = stored.copy;
    CopyOutOp::create(b, tileAt(buffers, stage), copy.getDestination(),
                      map(copy.getIndices()), copy.getDims(),
                      map(copy.getValid()));
  }
  RingReleaseOp::create(b, storeRing, iteration);
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

void Specializer::buildMath() {
  RoleOp role = createRole("math", mathWarps);
  OpBuilder::InsertionGuard guard(b);
  Operation *end = role.getBody().front().getTerminator();
  for (Operation *op : mathOps)
    op->moveBefore(end);
  Block *body = loop.getBody();
  if (candidate.rare)
    buildRareProduct();
  b.setInsertionPointToStart(body);
  Value iteration = iterationOf(loop);
  RingWaitOp::create(b, loadRing, iteration);
  Value stage = stageOf(loadRing, iteration);
  SmallVector<Value> tiles;
  for (Value buffers : loadBuffers)
    tiles.push_back(tileAt(buffers, stage));
  for (auto [copy, staged] : llvm::zip_equal(candidate.copies.copies, tiles)) {
    Value tile = copy.getTile();
    copy.erase();
    replaceTile(tile, staged);
  }
  if (storeRing)
    handOver(iteration);
  b.setInsertionPoint(body->getTerminator());
  RingReleaseOp::create(b, loadRing, iteration);
  loop->removeAttr(kStagesAttrName);
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
                                     storeRing, iteration);
  Value stage = stageOf(storeRing, iteration);
  for (auto [stored, buffers] :
       llvm::zip_equal(candidate.stored, storeBuffers)) {
    Value tile = stored.copy.getTile(), staged = tileAt(buffers, stage);
    stored.copy.erase();
    replaceTile(tile, staged);
  }
  b.setInsertionPoint(behind);
  RingCommitOp::create(b, slot);
}

LogicalResult Specializer::run() {
  if (failed(splitBody()))
    return failure();
  mathWarps = getKernelAttr(func).getWarps();
  // A role that sets its registers is a part of whole warpgroups.
  if (mathWarps == kWideWarps && candidate.stored.empty())
    loadWarps += kStoreWarps;
  auto tilesOf = [](auto &&copies) {
    return llvm::map_to_vector(
        copies, [](auto &copy) -> Value { return copy.getTile(); });
  };
  b.setInsertionPoint(func.getBody().front().getTerminator());
  loadRing = createRing(tilesOf(candidate.copies.copies), candidate.stages,
                        loadWarps, mathWarps, loadBuffers);
  if (candidate.rare)
    rareRing = createRing(candidate.rare->copy.getTile(), /*stages=*/1,
                          loadWarps, mathWarps, rareBuffers);
  if (!candidate.stored.empty()) {
    SmallVector<Value> tiles;
    for (StoredTile &stored : candidate.stored)
      tiles.push_back(stored.copy.getTile());
    int64_t bytes = 0;
    for (Value tile : tiles) {
      auto type = cast<MemRefType>(tile.getType());
      bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    }
    int64_t stages = 2 * bytes <= kStoreBytes ? kStoreStages : 1;
    storeRing = createRing(tiles, stages, mathWarps, kStoreWarps, storeBuffers);
  }
  auto roles = RolesOp::create(b);
  b.setInsertionPointToStart(&roles.getBody().emplaceBlock());
  // The roles that copy are built first: from what the math role gives up.
  buildLoad();
  if (storeRing)
    buildStore();
  b.setInsertionPointToStart(&roles.getBody().front());
  buildMath();
  return success();
}

class GdnTileSpecializeWarpsPass
    : public gdn_tile::impl::GdnTileSpecializeWarpsPassBase<
          GdnTileSpecializeWarpsPass> {
public:
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    KernelAttr kernel = getKernelAttr(func);
    if (!kernel || func.isExternal() || !func.getBody().hasOneBlock() ||
        kernel.getLayout() != FragmentLayoutKind::Accumulator)
      return;
    if (std::optional<RoleCandidate> candidate = findRoleCandidate(func))
      // Loops that do not fit are left to gdn-tile-pipeline-copies.
      (void)Specializer(func, std::move(*candidate)).run();
  }
};

} // namespace
