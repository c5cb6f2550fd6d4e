//===- RolePatterns.cpp - roles of warps, rings of stages -----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of n stages is 2 n mbarriers: full[0..n), then empty[0..n). Iteration
// i uses stage i mod n for the (i / n)-th time, so the phase that completes is
// number i / n, and its parity tells it from the one before.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Roles that follow one another and fill the same warpgroups, or that set no
/// registers.
struct RoleGroup {
  SmallVector<RoleOp> roles;
  int64_t endWarp = 0;
  std::optional<uint64_t> registers;
};

SmallVector<RoleGroup> groupRoles(RolesOp op) {
  SmallVector<RoleGroup> groups;
  for (auto role : op.getBody().front().getOps<RoleOp>()) {
    if (groups.empty() || groups.back().registers != role.getRegisters())
      groups.push_back({{}, 0, role.getRegisters()});
    groups.back().roles.push_back(role);
    groups.back().endWarp = op.getFirstWarp(role) + role.getWarps();
  }
  return groups;
}

// Whether a role issues copies for others, and so is done before they are.
bool copiesIn(RoleOp role) {
  return role
      .walk([](CopyInOp copy) {
        return copy.getSlot() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct RolesPattern : TilePattern<RolesOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RolesOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    // Read from lane 0, so that ptxas knows the branches to be uniform.
    Value warp = NVVM::ShflOp::create(rewriter, op.getLoc(), e.i32(), e.c32(-1),
                                      e.warpId(), e.c32(0), e.c32(31),
                                      NVVM::ShflKind::idx, UnitAttr());
    SmallVector<RoleGroup> groups = groupRoles(op);
    OpBuilder::InsertionGuard guard(rewriter);
    for (auto [i, group] : llvm::enumerate(groups)) {
      bool isLast = i + 1 == groups.size();
      Block *rest = isLast ? nullptr : branch(rewriter, warp, group.endWarp);
      emitGroup(rewriter, op, group, warp);
      if (rest)
        rewriter.setInsertionPointToStart(rest);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// if (warp < end) { insertion point } else { the returned block }
  static Block *branch(ConversionPatternRewriter &rewriter, Value warp,
                       int64_t end) {
    Emitter e(rewriter, warp.getLoc());
    auto branch = scf::IfOp::create(rewriter, e.loc, e.lessThanC(warp, end),
                                    /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    return branch.elseBlock();
  }

  void emitGroup(ConversionPatternRewriter &rewriter, RolesOp op,
                 const RoleGroup &group, Value warp) const {
    // What ptxas gives every thread of the block at its start.
    uint64_t atStart = 65536 / kernel.getBlockThreads() / 8 * 8;
    if (group.registers && *group.registers != atStart)
      NVVM::SetMaxRegisterOp::create(
          rewriter, op.getLoc(), *group.registers,
          *group.registers > atStart ? NVVM::SetMaxRegisterAction::increase
                                     : NVVM::SetMaxRegisterAction::decrease);
    for (RoleOp role : group.roles) {
      bool isLast = role == group.roles.back();
      int64_t end = op.getFirstWarp(role) + role.getWarps();
      Block *rest = isLast ? nullptr : branch(rewriter, warp, end);
      Block &body = role.getBody().front();
      bool isAhead = copiesIn(role);
      rewriter.eraseOp(body.getTerminator());
      rewriter.inlineBlockBefore(&body, rewriter.getInsertionBlock(),
                                 rewriter.getInsertionPoint());
      if (isAhead && kernel.letsNextStartLate())
        NVVM::GriddepcontrolOp::create(
            rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
      if (rest)
        rewriter.setInsertionPointToStart(rest);
    }
  }
};

struct TeamPattern : TilePattern<TeamOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(TeamOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value team = kernel.getTeam(e, op);
    rewriter.replaceOp(op,
                       LLVM::ZExtOp::create(rewriter, e.loc, e.i64(), team));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// The stage and the parity of an iteration.
struct StageOf {
  StageOf(Emitter &e, Value iteration, int64_t stages) {
    Value i = LLVM::TruncOp::create(e.builder, e.loc, e.i32(), iteration);
    Value n = e.c32(stages);
    stage = LLVM::URemOp::create(e.builder, e.loc, i, n);
    parity = e.andC(LLVM::UDivOp::create(e.builder, e.loc, i, n), 1);
  }
  Value stage, parity;
};

int64_t getStages(Value ring) {
  return cast<RingType>(ring.getType()).getStages();
}

Value getBarrier(Emitter &e, Value ring, Value stage, int64_t firstStage) {
  Value pointer = e.advance(ring, e.mulC(stage, kBarrierBytes));
  return e.advance(pointer, firstStage * kBarrierBytes);
}

/// One arrival for all lanes of a warp.
void arriveOncePerWarp(Emitter &e, Value barrier) {
  NVVM::SyncWarpOp::create(e.builder, e.loc, e.c32(-1));
  Value isFirst = e.equalsC(e.laneId(), 0);
  e.inlineAsm(Type(), "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];",
              "r,b,~{memory}", {e.sharedAddress(barrier), isFirst});
}

struct RingPattern : TilePattern<RingOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value ring = kernel.getScratch(e, op);
    int64_t stages = getStages(op.getRing());
    int64_t arrivals = op.getProducers() * (kernel.hasCopies(op) ? 32 : 1);
    e.inThreadsBelow(1, kernel.getBlockThreads(), [&] {
      auto init = [&](int64_t barrier, int64_t count) {
        NVVM::MBarrierInitOp::create(rewriter, e.loc,
                                     e.advance(ring, barrier * kBarrierBytes),
                                     e.c32(count), Value());
      };
      for (int64_t stage = 0; stage < stages; ++stage) {
        init(stage, arrivals);
        init(stages + stage, op.getConsumers());
      }
      if (KernelLowering::hasParities(op))
        for (uint64_t warp = 0; warp < op.getConsumers(); ++warp)
          LLVM::StoreOp::create(
              rewriter, e.loc, e.c32(0),
              e.advance(ring, 2 * kBarrierBytes * stages + 4 * warp));
      if (!kernel.isFollowedByRing(op))
        NVVM::FenceMbarrierInitOp::create(rewriter, e.loc);
    });
    for (Value buffer : op.getBuffers())
      if (kernel.hasLowerCopies(buffer))
        clear(e, rewriter.getRemappedValue(buffer),
              SharedLayout(cast<MemRefType>(buffer.getType())).getBytes());
    if (!kernel.isFollowedByRing(op)) {
      if (kernel.clearsBuffers(op))
        e.proxyFence();
      e.barrier();
    }
    rewriter.replaceOp(op, ring);
    return success();
  }

private:
  /// Zeros, by all threads of the block.
  void clear(Emitter &e, Value base, int64_t bytes) const {
    constexpr int64_t width = 16;
    SmallVector<Value> zeros(width / 4, e.c32(0));
    Value thread =
        LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), e.threadId());
    scf::ForOp::create(
        e.builder, e.loc, thread, e.c64(bytes / width),
        e.c64(kernel.getBlockThreads()), ValueRange(),
        [&](OpBuilder &, Location loc, Value i, ValueRange) {
          Value offset = LLVM::TruncOp::create(e.builder, loc, e.i32(), i);
          e.storeWords(e.advance(base, e.mulC(offset, width)), zeros, Value());
          scf::YieldOp::create(e.builder, loc);
        });
  }
};

// Until the stage of an iteration has been released as often as it was filled
// before. The phase before the first counts as complete: all stages start free.
Value waitUntilFree(Emitter &e, Value ring, Value iteration, int64_t stages) {
  StageOf at(e, iteration, stages);
  e.waitForParity(getBarrier(e, ring, at.stage, stages), e.xorC(at.parity, 1));
  return at.stage;
}

struct RingAcquirePattern : TilePattern<RingAcquireOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingAcquireOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value ring = adaptor.getRing().front();
    Value stage = waitUntilFree(e, ring, adaptor.getIteration().front(),
                                getStages(op.getRing()));
    rewriter.replaceOp(op, getBarrier(e, ring, stage, 0));
    return success();
  }
};

struct RingCommitPattern : TilePattern<RingCommitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingCommitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto acquire = op.getSlot().getDefiningOp<RingAcquireOp>();
    Value full = adaptor.getSlot().front();
    if (kernel.hasCopies(acquire.getRing().getDefiningOp<RingOp>()))
      // Each thread arrives when its own copies have landed.
      e.inlineAsm(Type(), "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];",
                  "r,~{memory}", e.sharedAddress(full));
    else {
      // The asynchronous proxy, by which wgmma reads, sees stores behind a
      // fence of the threads that made them.
      if (kernel.usesWarpgroupProducts() && kernel.needsProxyFence(op))
        e.proxyFence();
      arriveOncePerWarp(e, full);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct RingWaitPattern : TilePattern<RingWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingWaitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value ring = adaptor.getRing().front();
    StageOf at(e, adaptor.getIteration().front(), getStages(op.getRing()));
    e.waitForParity(getBarrier(e, ring, at.stage, 0), at.parity);
    // cp.async writes by the generic proxy, wgmma reads by the asynchronous
    // one: a fence anywhere on the way between them orders the two.
    if (kernel.usesWarpgroupProducts() && kernel.needsProxyFence(op))
      e.proxyFence();
    rewriter.eraseOp(op);
    return success();
  }
};

struct RingReleasePattern : TilePattern<RingReleaseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingReleaseOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value ring = adaptor.getRing().front();
    int64_t stages = getStages(op.getRing());
    StageOf at(e, adaptor.getIteration().front(), stages);
    arriveOncePerWarp(e, getBarrier(e, ring, at.stage, stages));
    rewriter.eraseOp(op);
    return success();
  }
};

struct RingDrainPattern : TilePattern<RingDrainOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingDrainOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value ring = adaptor.getRing().front();
    int64_t stages = getStages(op.getRing());
    // As if the next iterations acquired their stages.
    for (int64_t i = 0; i < stages; ++i)
      waitUntilFree(e, ring,
                    LLVM::AddOp::create(rewriter, e.loc,
                                        adaptor.getIterations().front(),
                                        e.c64(i)),
                    stages);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mlir::gdn::populateRolePatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns) {
  patterns.add<RolesPattern, TeamPattern, RingPattern, RingAcquirePattern,
               RingCommitPattern, RingWaitPattern, RingReleasePattern,
               RingDrainPattern>(kernel, patterns.getContext());
}
