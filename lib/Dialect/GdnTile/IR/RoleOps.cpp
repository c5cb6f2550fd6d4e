//===- RoleOps.cpp - gdn_tile ops of roles and rings ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "llvm/Support/MathExtras.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::gdn_tile;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

RoleOp mlir::gdn_tile::getRole(Operation *op) {
  if (auto role = dyn_cast<RoleOp>(op))
    return role;
  return op->getParentOfType<RoleOp>();
}

bool mlir::gdn_tile::isGuardedByRing(Value memref) {
  while (auto stage = memref.getDefiningOp<StageOp>())
    memref = stage.getBuffers();
  return llvm::any_of(memref.getUsers(),
                      [](Operation *user) { return isa<RingOp>(user); });
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

constexpr int64_t kWarpsOfGroup = 4;

static SmallVector<RoleOp> getRoles(RolesOp roles) {
  return llvm::to_vector(roles.getBody().front().getOps<RoleOp>());
}

int64_t RolesOp::getNumWarps() {
  int64_t warps = 0;
  for (RoleOp role : getRoles(*this))
    warps += role.getWarps();
  return warps;
}

int64_t RolesOp::getFirstWarp(RoleOp wanted) {
  int64_t first = 0;
  for (RoleOp role : getRoles(*this)) {
    if (role == wanted)
      break;
    first += role.getWarps();
  }
  return first;
}

// setmaxnreg is an instruction of a whole warpgroup.
static LogicalResult verifyRegisters(RolesOp op, ArrayRef<RoleOp> roles) {
  SmallVector<std::optional<int64_t>> registers;
  for (RoleOp role : roles)
    registers.append(role.getWarps(), role.getRegisters());
  if (llvm::none_of(registers, [](auto count) { return count.has_value(); }))
    return success();
  if (registers.size() % kWarpsOfGroup != 0)
    return op.emitOpError("sets registers, so its warps must fill warpgroups "
                          "of 4, but it has ")
           << registers.size();
  for (size_t i = 0; i < registers.size(); ++i)
    if (registers[i] != registers[i / kWarpsOfGroup * kWarpsOfGroup])
      return op.emitOpError("sets the registers of warp ")
             << i << " unlike those of the first warp of its warpgroup";
  return success();
}

static bool hasFragments(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return isa<PendingType>(type) || (vector && vector.getRank() == 2);
  });
}

LogicalResult RolesOp::verify() {
  SmallVector<RoleOp> roles = getRoles(*this);
  for (Operation &op : getBody().front())
    if (!isa<RoleOp>(op))
      return emitOpError("holds gdn_tile.role ops only, but has '")
             << op.getName() << "'";
  if (roles.empty())
    return emitOpError("has no role");
  auto function = dyn_cast<FunctionOpInterface>((*this)->getParentOp());
  KernelAttr kernel =
      function ? gdn_tile::getKernelAttr(function) : KernelAttr();
  if (!kernel)
    return emitOpError("expects a tile program around it");
  if (!(*this)->getNextNode()->hasTrait<OpTrait::IsTerminator>())
    return emitOpError("is not the last op of its tile program");
  if (roles.front().getWarps() != static_cast<uint64_t>(kernel.getWarps()))
    return emitOpError("expects the ")
           << kernel.getWarps()
           << " warps of the kernel in its first role, but it has "
           << roles.front().getWarps();
  if (getNumWarps() > 32)
    return emitOpError("has ") << getNumWarps() << " warps, more than 32";
  for (RoleOp role : ArrayRef(roles).drop_front()) {
    // Fragments are spread over the kernel's warps, or over a warpgroup.
    int64_t warps = role.getWarpsOfTeam();
    if ((warps == kernel.getWarps() || warps == kWarpsOfGroup) &&
        getFirstWarp(role) % warps == 0)
      continue;
    // Those of single warps lie in each by itself, and constants anywhere.
    WalkResult walk = role.getBody().walk([&](Operation *op) {
      bool isOfWarp =
          isa<arith::ConstantOp>(op) || op->getParentOfType<EachWarpOp>();
      return hasFragments(op) && !isOfWarp ? WalkResult::interrupt()
                                           : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return role.emitOpError("holds fragments, but ")
             << warps << " warps behind " << getFirstWarp(role)
             << " are neither a warpgroup nor placed like the "
             << kernel.getWarps() << " warps of the kernel";
  }
  return verifyRegisters(*this, roles);
}

LogicalResult AheadOp::verify() {
  if (getTeams() < 1 || getTeams() > 3)
    return emitOpError("expects 1 to 3 teams, but has ") << getTeams();
  if (isa_and_nonnull<scf::ForOp>((*this)->getParentOp()))
    return success();
  return emitOpError("stands outside of the body of an scf.for");
}

LogicalResult TeamOp::verify() {
  if ((*this)->getParentOfType<RoleOp>())
    return success();
  return emitOpError("stands outside of gdn_tile.role");
}

LogicalResult RoleOp::verify() {
  if (getWarps() < 1 || getWarps() > 16)
    return emitOpError("expects 1 to 16 warps, but has ") << getWarps();
  if (getTeams() < 1 || getTeams() > kMaxTeams ||
      getWarps() % getTeams() != 0 ||
      (getTeams() > 1 && !llvm::isPowerOf2_64(getWarpsOfTeam())))
    return emitOpError("expects 1 to ")
           << kMaxTeams
           << " teams of as many warps each, a power of two, but has "
           << getTeams() << " teams of " << getWarps() << " warps";
  std::optional<uint64_t> registers = getRegisters();
  if (registers && (*registers < 24 || *registers > 256 || *registers % 8 != 0))
    return emitOpError("expects registers to be a multiple of 8 in 24..256, "
                       "but they are ")
           << *registers;
  return success();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages) {
  if (stages >= 1)
    return success();
  return emitError() << "ring: expects at least one stage, but has " << stages;
}

LogicalResult RingOp::verify() {
  int64_t stages = getRing().getType().getStages();
  for (Value buffer : getBuffers()) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!buffer.getDefiningOp<memref::AllocOp>() || !isShared(type))
      return emitOpError("expects allocations in shared memory, but has ")
             << type;
    if (type.getRank() < 2 || type.getDimSize(0) != stages)
      return emitOpError("expects buffers of ")
             << stages << " tiles, but has " << type;
    if (llvm::count_if(buffer.getUsers(),
                       [](Operation *user) { return isa<RingOp>(user); }) != 1)
      return emitOpError("shares the buffer ") << type << " with another ring";
  }
  if (getProducers() < 1 || getProducers() > 16 || getConsumers() < 1 ||
      getConsumers() > 16)
    return emitOpError("expects 1 to 16 producers and consumers, but has ")
           << getProducers() << " and " << getConsumers();
  return success();
}

// The ring is ready for all warps behind the op.
void RingOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

// Checks that an op on a ring stands in a role that can be one of its producers
// or consumers.
static LogicalResult verifyRingUser(Operation *op, Value value,
                                    bool isProducer) {
  auto ring = value.getDefiningOp<RingOp>();
  if (!ring)
    return op->emitOpError("expects the ring of a gdn_tile.ring");
  RoleOp role = getRole(op);
  if (!role)
    return op->emitOpError("stands outside of a role");
  uint64_t warps = isProducer ? ring.getProducers() : ring.getConsumers();
  uint64_t own = role.getWarpsOfTeam();
  if (isProducer ? own == warps : own <= warps)
    return success();
  return op->emitOpError("runs in a role of ")
         << role.getWarps() << " warps, but the ring has " << warps
         << (isProducer ? " producers" : " consumers");
}

// Other warps read and write the tiles meanwhile.
static void addRingEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(),
                       SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(),
                       SideEffects::DefaultResource::get());
}

LogicalResult RingAcquireOp::verify() {
  return verifyRingUser(*this, getRing(), /*isProducer=*/true);
}
void RingAcquireOp::getEffects(Effects &effects) { addRingEffects(effects); }

LogicalResult RingCommitOp::verify() {
  if (getSlot().getDefiningOp<RingAcquireOp>())
    return success();
  return emitOpError("expects the slot of a gdn_tile.ring_acquire");
}
void RingCommitOp::getEffects(Effects &effects) { addRingEffects(effects); }

LogicalResult RingWaitOp::verify() {
  return verifyRingUser(*this, getRing(), /*isProducer=*/false);
}
void RingWaitOp::getEffects(Effects &effects) { addRingEffects(effects); }

LogicalResult RingReleaseOp::verify() {
  return verifyRingUser(*this, getRing(), /*isProducer=*/false);
}
LogicalResult RingDrainOp::verify() {
  for (Value later : getLater()) {
    if (!later.getDefiningOp<RingOp>() || later == getRing())
      return emitOpError("expects other rings in `before`");
    for (Operation *user : later.getUsers()) {
      Operation *place = (*this)->getBlock()->findAncestorOpInBlock(*user);
      if (place && place->isBeforeInBlock(*this) && !isa<RingDrainOp>(user))
        return emitOpError("stands behind '")
               << user->getName() << "' on a ring in `before`";
    }
  }
  return verifyRingUser(*this, getRing(), /*isProducer=*/true);
}
void RingDrainOp::getEffects(Effects &effects) { addRingEffects(effects); }

void RingReleaseOp::getEffects(Effects &effects) { addRingEffects(effects); }
