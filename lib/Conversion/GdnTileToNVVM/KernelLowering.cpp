//===- KernelLowering.cpp - what the patterns of a kernel share -----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "gdn/Dialect/GdnTile/IR/TensorMap.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

static LowerToLLVMOptions getOptions(MLIRContext *context) {
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  return options;
}

KernelLowering::KernelLowering(func::FuncOp func, const GpuTarget &target)
    : func(func), kernel(gdn_tile::getKernelAttr(func)), target(target),
      converter(func.getContext(), getOptions(func.getContext())),
      blockWarps(kernel.getWarps()), endWarp(kernel.getWarps()) {
  addTypeConversions();
}

void KernelLowering::addTypeConversions() {
  // A fragment becomes its registers, a token nothing at all.
  converter.addConversion(
      [this](VectorType type,
             SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
        if (type.getRank() != 2)
          return std::nullopt;
        int64_t count = getLayout(type).getNumRegisters();
        Type element = type.getElementType();
        if (isPacked(type))
          results.append(count / 2, VectorType::get(2, element));
        else
          results.append(count, element);
        return success();
      });
  // mma.sync is done when it is issued.
  converter.addConversion(
      [this](PendingType type, SmallVectorImpl<Type> &results) {
        return converter.convertType(type.getFragment(), results);
      });
  converter.addConversion(
      [](TokenType type, SmallVectorImpl<Type> &results) { return success(); });
  converter.addConversion([](MemRefType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(),
                                      isShared(type) ? 3 : 1);
  });
  // The first of its barriers; the barrier that a filled stage completes.
  auto sharedPointer = [](Type type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), 3);
  };
  converter.addConversion([=](RingType type) { return sharedPointer(type); });
  converter.addConversion([=](SlotType type) { return sharedPointer(type); });
  converter.addConversion([](TensorMapType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
}

FragmentLayout KernelLowering::getLayout(Type fragment) const {
  auto layout = FragmentLayout::get(kernel, cast<VectorType>(fragment),
                                    [&] { return emitError(func.getLoc()); });
  assert(succeeded(layout) && "checkType has accepted the fragment");
  return *layout;
}

bool KernelLowering::isPacked(Type fragment) const {
  Type element = cast<VectorType>(fragment).getElementType();
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16 &&
         getLayout(fragment).hasColumnPairs();
}

const AccessInfo &KernelLowering::getAccess(Operation *op) const {
  auto it = accesses.find(op);
  assert(it != accesses.end() && "analyze has seen every access");
  return it->second;
}

int64_t KernelLowering::getSharedOffset(Operation *op) const {
  auto it = sharedOffsets.find(op);
  assert(it != sharedOffsets.end() && "analyze has placed every allocation");
  return it->second;
}

Value KernelLowering::getSharedBase(Emitter &e, int64_t offset) const {
  auto type = LLVM::LLVMPointerType::get(func.getContext(), 3);
  Value base = LLVM::AddressOfOp::create(e.builder, e.loc, type, kSharedName);
  return e.advance(base, offset);
}

SmallVector<Value> KernelLowering::unpack(Emitter &e, Type fragment,
                                          ValueRange registers) const {
  if (!isPacked(fragment))
    return SmallVector<Value>(registers);
  SmallVector<Value> elements;
  for (Value pair : registers)
    for (int64_t i : {0, 1})
      elements.push_back(e.extractElement(pair, i));
  return elements;
}

SmallVector<Value> KernelLowering::pack(Emitter &e, Type fragment,
                                        ValueRange elements) const {
  if (!isPacked(fragment))
    return SmallVector<Value>(elements);
  SmallVector<Value> registers;
  for (size_t i = 0; i < elements.size(); i += 2)
    registers.push_back(e.makeVector(elements.slice(i, 2)));
  return registers;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

void KernelLowering::recordRoles(RolesOp roles) {
  blockWarps = roles.getNumWarps();
  int64_t barrier = 0;
  for (auto role : roles.getBody().front().getOps<RoleOp>()) {
    // Barrier 0 is that of the whole block.
    int64_t teams = role.getTeams();
    // Warps that copy; those of few registers with fragments see theirs in
    // hideThreadIds.
    bool isTight = role.isScarce() && role.getTeams() == 1 &&
                   !role.walk([&](Operation *op) {
                          return llvm::any_of(op->getResultTypes(), isFragment)
                                     ? WalkResult::interrupt()
                                     : WalkResult::advance();
                        })
                        .wasInterrupted();
    RoleWarps warps{roles.getFirstWarp(role), role.getWarpsOfTeam(), teams,
                    barrier + 1, isTight};
    barrier += teams;
    role.walk([&](Operation *op) {
      roleWarps[op] = warps;
      // The warps of a gdn_tile.each_warp hold theirs by lane.
      if (!isInWarp(op) && llvm::any_of(op->getResultTypes(), isFragment))
        endWarp = std::max(endWarp, warps.first + warps.count * teams);
    });
  }
}

// A role of few registers has none for what LLVM would hoist out of its loop:
// whatever follows from the thread's number. Here it gets to know that number
// in each iteration, and anew for each region of single warps.
void KernelLowering::hideThreadIds() {
  func.walk([&](RoleOp role) {
    bool holdsFragments = false;
    role.walk([&](Operation *op) {
      holdsFragments |= llvm::any_of(op->getResultTypes(), isFragment);
    });
    if (!holdsFragments || !role.isScarce())
      return;
    for (auto loop : role.getBody().front().getOps<scf::ForOp>()) {
      Block &body = *loop.getBody();
      SmallVector<Operation *> places{&body.front()};
      for (EachWarpOp op : body.getOps<EachWarpOp>())
        places.push_back(op);
      for (Operation *place : places) {
        OpBuilder builder(place);
        Value id = Emitter(builder, place->getLoc()).opaqueThreadId();
        hiddenThreadIds.push_back(id.getDefiningOp());
      }
    }
  });
}

void KernelLowering::useHiddenThreadIds() {
  DenseSet<Operation *> hidden(hiddenThreadIds.begin(), hiddenThreadIds.end());
  for (Operation *id : hiddenThreadIds) {
    SmallVector<NVVM::ThreadIdXOp> reads;
    for (Operation *op = id->getNextNode(); op && !hidden.contains(op);
         op = op->getNextNode())
      op->walk([&](NVVM::ThreadIdXOp read) { reads.push_back(read); });
    for (NVVM::ThreadIdXOp read : reads) {
      read.replaceAllUsesWith(id->getResult(0));
      read.erase();
    }
  }
}

static RingOp getRingOf(Value tile) {
  auto stage = tile.getDefiningOp<StageOp>();
  if (!stage)
    return {};
  for (Operation *user : stage.getBuffers().getUsers())
    if (auto ring = dyn_cast<RingOp>(user))
      return ring;
  return {};
}

// Left operands that a role of few registers need not hold: whole stages of the
// ring of the right one, which is released behind the product.
void KernelLowering::findSharedLefts() {
  func.walk([&](MmaOp op) {
    RoleOp role = getRole(op);
    auto load = op.getA().getDefiningOp<LoadOp>();
    if (!role || !role.isScarce() || !load ||
        load->getBlock() != op->getBlock() || !fitsWarpgroup(op, kernel))
      return;
    auto tile = cast<MemRefType>(load.getMemref().getType());
    auto a = cast<VectorType>(op.getA().getType());
    bool isWhole =
        tile.getShape() == a.getShape() && a.getDimSize(0) == 64 &&
        SharedLayout(tile).getPanelBytes() == 128 &&
        load.getDims() == ArrayRef<int64_t>{0, 1} && load.getValid().empty() &&
        llvm::all_of(load.getIndices(),
                     [](Value index) { return isConstantIntValue(index, 0); });
    RingOp ring = getRingOf(load.getMemref());
    if (isWhole && ring && ring == getRingOf(op.getB()))
      sharedLefts[op] = load;
  });
}

bool KernelLowering::isOnlySharedLeft(LoadOp load) const {
  return llvm::all_of(load->getUsers(), [&](Operation *user) {
    auto product = dyn_cast<MmaOp>(user);
    return product && getSharedLeft(product) == load;
  });
}

ThreadSet KernelLowering::getThreads(Emitter &e, Operation *op) const {
  if (isInWarp(op))
    return {e.laneId(), 32};
  // LLVM would hoist what follows from the thread's number out of loops: a
  // register each, which blocks that share an SM do not have.
  auto role = roleWarps.find(op);
  bool isTight = (kernel.getBlocks() > 1 ||
                  (role != roleWarps.end() && role->second.isTight)) &&
                 op->getParentOfType<scf::ForOp>();
  Value thread = isTight ? e.opaqueThreadId() : e.threadId();
  if (role == roleWarps.end())
    return {thread, getBlockThreads()};
  const RoleWarps &warps = role->second;
  thread = e.addC(thread, -32 * warps.first);
  if (warps.teams > 1)
    thread = e.andC(thread, 32 * warps.count - 1);
  return {thread, 32 * warps.count};
}

Value KernelLowering::getWarpInRole(Emitter &e, Operation *op) const {
  auto role = roleWarps.find(op);
  return e.addC(e.warpId(), role == roleWarps.end() ? 0 : -role->second.first);
}

Value KernelLowering::getWarpId(Emitter &e, Operation *op) const {
  Value warp = getWarpInRole(e, op);
  return getNumTeams(op) == 1 ? warp : e.andC(warp, getNumWarps(op) - 1);
}

Value KernelLowering::getTeam(Emitter &e, Operation *op) const {
  if (getNumTeams(op) == 1)
    return e.c32(0);
  return e.shrC(getWarpInRole(e, op), llvm::Log2_64(getNumWarps(op)));
}

int64_t KernelLowering::getNumTeams(Operation *op) const {
  auto role = roleWarps.find(op);
  return role == roleWarps.end() ? 1 : role->second.teams;
}

int64_t KernelLowering::getNumWarps(Operation *op) const {
  auto role = roleWarps.find(op);
  return role == roleWarps.end() ? blockWarps : role->second.count;
}

std::string KernelLowering::getRoleBarrier(Operation *op) const {
  const RoleWarps &role = roleWarps.find(op)->second;
  assert(role.teams == 1 && "which barrier depends on the warp");
  return "bar.sync " + std::to_string(role.barrier) + ", " +
         std::to_string(32 * role.count) + "; ";
}

void KernelLowering::emitBarrier(Emitter &e, Operation *op) const {
  if (isInWarp(op)) {
    NVVM::SyncWarpOp::create(e.builder, e.loc, e.c32(-1));
    return;
  }
  auto role = roleWarps.find(op);
  if (role == roleWarps.end())
    return e.barrier();
  Value barrier = e.c32(role->second.barrier);
  if (role->second.teams > 1)
    barrier = e.add(barrier, getTeam(e, op));
  NVVM::BarrierOp::create(e.builder, e.loc, TypeRange(), barrier,
                          e.c32(32 * role->second.count),
                          NVVM::BarrierReductionAttr(), Value());
}

// The tile's allocation, behind a stage.
static Value getAllocation(Value tile) {
  while (auto stage = tile.getDefiningOp<StageOp>())
    tile = stage.getBuffers();
  return tile;
}

// Whether an op in front of a barrier may write what products read. Whatever
// asynchronous copies write is there at their wait.
static bool writesOperand(Operation &op, const DenseSet<Value> &operands) {
  if (isa<WaitOp>(op) || op.getNumRegions() != 0)
    return true;
  if (auto copy = dyn_cast<CopyInOp>(op))
    return !copy.getToken() && operands.contains(getAllocation(copy.getTile()));
  if (auto store = dyn_cast<StoreOp>(op))
    return operands.contains(getAllocation(store.getMemref()));
  return isa<CopySumsOp, CumsumOp, TriInverseOp>(op);
}

bool KernelLowering::isBulkCopy(CopyInOp copy) const {
  return copy.getSlot() && target.hasTensorMaps() &&
         (copy.getMap() || copy.getLower() || isBulkRow(copy));
}

// A ring whose tiles products read needs a fence, unless only the copy engine
// fills them: behind the wait for copies of threads, which are under way at the
// commit, and in front of the commit behind stores.
void KernelLowering::findRingFences(const DenseSet<Value> &operands) {
  DenseSet<Operation *> bulk;
  func.walk([&](CopyInOp copy) {
    if (!copy.getSlot())
      return;
    auto acquire = copy.getSlot().getDefiningOp<RingAcquireOp>();
    (isBulkCopy(copy) ? bulk : copied)
        .insert(acquire.getRing().getDefiningOp());
    if (copy.getLower())
      lowerBuffers.insert(getAllocation(copy.getTile()));
  });
  func.walk([&](RingOp ring) {
    if (llvm::none_of(ring.getBuffers(),
                      [&](Value buffer) { return operands.contains(buffer); }))
      return;
    for (Operation *user : ring->getUsers()) {
      if (isa<RingWaitOp>(user) && copied.contains(ring))
        fenced.insert(user);
      if (isa<RingAcquireOp>(user) && !copied.contains(ring) &&
          !bulk.contains(ring))
        fenced.insert_range(user->getUsers());
    }
  });
}

// Between them nothing may need the first ones.
void KernelLowering::joinRings() {
  bool clears = false;
  func.walk([&](RingOp ring) {
    clears |= llvm::any_of(ring.getBuffers(), [&](Value buffer) {
      return hasLowerCopies(buffer);
    });
    if (clears)
      clearing.insert(ring);
    Operation *next = ring->getNextNode();
    while (isa<memref::AllocOp>(next))
      next = next->getNextNode();
    if (isa<RingOp>(next))
      joined.insert(ring);
    else
      clears = false;
  });
}

// Whether one of `ops`, which come with all ops around them, may run behind
// `op`. Roles run side by side.
static bool isFollowedByAny(Operation *op, const DenseSet<Operation *> &ops) {
  for (; !isa<func::FuncOp>(op); op = op->getParentOp()) {
    if (isa<LoopLikeOpInterface, RolesOp>(op) && ops.contains(op))
      return true;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (ops.contains(next))
        return true;
  }
  return false;
}

void KernelLowering::findProxyFences() {
  DenseSet<Value> operands;
  DenseSet<Operation *> products;
  auto add = [&](Operation *product, Value operand) {
    operands.insert(getAllocation(operand));
    for (; product; product = product->getParentOp())
      products.insert(product);
  };
  func.walk([&](MmaOp op) { add(op, op.getB()); });
  func.walk([&](RefineOp op) {
    for (Value tile : {Value(op.getN()), op.getLowBuffer(), Value(op.getK()),
                       Value(op.getP()), Value(op.getQ())})
      if (tile)
        add(op, tile);
  });
  findRingFences(operands);
  func.walk([&](BarrierOp barrier) {
    if (!isFollowedByAny(barrier, products))
      return;
    // At the start of a block nothing is known of what came before.
    Operation *op = barrier->getPrevNode();
    while (op && !isa<BarrierOp>(op) && !writesOperand(*op, operands))
      op = op->getPrevNode();
    if (!op || !isa<BarrierOp>(op))
      fenced.insert(barrier);
  });
}

bool KernelLowering::ownsByItem(EachWarpOp op) const {
  return getNumTeams(op) == 1 && getMaxItems(op) < getNumWarps(op);
}

LogicalResult KernelLowering::analyze() {
  if (func.isDeclaration())
    return func.emitOpError("a kernel needs a body");
  if (failed(checkName()) || failed(checkArguments()))
    return failure();
  func.walk([&](EachWarpOp op) {
    op.getBody().walk([&](Operation *inner) { warpOps.insert(inner); });
    maxItems[op] = getMaximum(op.getCount());
  });
  WalkResult walk = func.walk([&](Operation *op) {
    auto product = dyn_cast<MmaOp>(op);
    bool isOfWarpgroup =
        isa<RefineOp>(op) || (product && fitsWarpgroup(product, kernel));
    warpgroupProducts |= isOfWarpgroup && target.hasWarpgroupMma();
    return failed(checkOp(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
  });
  findProxyFences();
  joinRings();
  func.walk([&](RolesOp roles) { recordRoles(roles); });
  func.walk([&](EachWarpOp op) {
    if (ownsByItem(op))
      op.walk([&](memref::AllocOp alloc) {
        owners[alloc] = op.getBody().getArgument(0);
      });
  });
  if (walk.wasInterrupted() || failed(placeSharedMemory()))
    return failure();
  findSharedLefts();
  hideThreadIds();
  return success();
}
