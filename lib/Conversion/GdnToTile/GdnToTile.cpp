//===- GdnToTile.cpp - convert-gdn-to-tile --------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"
#include "RowKernels.h"
#include "SizeChecks.h"
#include "WarpPrepareKernel.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTOTILEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

// One warp per 16 rows of the state, at most 16 warps in a block.
LogicalResult checkScan(RecurrencePlan &plan) {
  StringRef phases = stringifyPhases(plan.op.getSchedule()->getPhases());
  if (int64_t most = plan.wideFrom ? 128 : 256;
      plan.valueBlock % 16 != 0 || plan.valueBlock > most)
    return plan.op.emitOpError()
           << phases
           << " phases need a value_block that is a multiple of 16 and at most "
           << most << (plan.wideFrom ? " with wide_from" : "") << ", but it is "
           << plan.valueBlock;
  if (plan.every % plan.chunk != 0)
    return plan.op.emitOpError("stores a checkpoint every ")
           << plan.every << " tokens, no multiple of its chunks of "
           << plan.chunk;
  return success();
}

// What warps beside those of a scan make ahead of it. `subject` is what asks
// for it, with its verb.
LogicalResult checkAhead(RecurrencePlan &plan, StringRef subject,
                         StringRef models, bool hasModel, StringRef blocks,
                         bool hasBlocks) {
  auto fail = [&](const Twine &what) {
    return plan.op.emitOpError() << subject << " " << what;
  };
  if (plan.type.isF32() || plan.isHigh)
    return fail("inputs of 16 bits and precision = default");
  if (!hasModel || plan.gateKind == GateKind::Channel || plan.hasErase ||
      plan.write)
    return fail(models + "a gate per head or none, and no erase or write");
  if (plan.chunk != 64 || plan.stages < 2 || !hasBlocks)
    return fail("chunk = 64, " + blocks);
  if (std::optional<int64_t> length = getConstantIntValue(plan.length);
      length && !plan.offsets && *length <= plan.chunk)
    return fail("more than one chunk, but T = ") << *length;
  if (plan.keyPad > 128)
    return fail("at most 128 key channels, but K = ") << plan.keySize;
  return success();
}

LogicalResult checkFused(RecurrencePlan &plan) {
  if (failed(checkScan(plan)))
    return failure();
  return checkAhead(plan, "fused phases in a tile program need",
                    /*models=*/"", /*hasModel=*/true,
                    "value_block = 64 and two stages or more",
                    plan.valueBlock == 64);
}

LogicalResult checkScoresAhead(RecurrencePlan &plan) {
  return checkAhead(plan, "scores_ahead in a tile program needs",
                    "the delta rule, ", plan.isDelta,
                    "two stages or more and blocks of 128 rows: value_block = "
                    "128, or 64 with wide_from",
                    (plan.wideFrom ? 2 : 1) * plan.valueBlock == kAheadRows);
}

LogicalResult checkResident(RecurrencePlan &plan) {
  if (plan.group == 1 && plan.keyHeads % WarpPrepareKernel::kHeadsOfCopy == 0 &&
      (plan.keyPad == 64 || plan.keyPad == 128))
    return success();
  return plan.op.emitOpError("resident_from in a tile program needs one value "
                             "head for each key head, heads in fours, and 64 "
                             "or 128 key channels, but has ")
         << plan.keyHeads << " key heads, " << plan.valueHeads
         << " value heads and K = " << plan.keySize;
}

LogicalResult convertRecurrence(RecurrenceOp op, StateStart start,
                                const RecurrenceInputs &inputs,
                                int64_t lowScores, bool hasRoles,
                                int64_t multiprocessors) {
  FailureOr<RecurrencePlan> plan = planRecurrence(op);
  if (failed(plan))
    return failure();
  plan->start = start;
  plan->hasRoles = hasRoles;
  plan->residentBlocks = multiprocessors;
  // Copies of q and k with a gate per channel hold decays, which P does not.
  if (plan->isUnit && plan->gateKind != GateKind::Channel)
    plan->lowScores = lowScores;
  switch (op.getSchedule()->getPhases()) {
  case Phases::Auto:
    llvm_unreachable("a plan needs a selected schedule");
  case Phases::Step:
    plan->inputs = inputs;
    return buildStepKernel(*plan);
  case Phases::Fused:
    if (failed(checkFused(*plan)))
      return failure();
    planScans(*plan);
    buildScanKernels(*plan);
    return success();
  case Phases::Split:
  case Phases::Segmented:
    if (failed(checkScan(*plan)) ||
        (plan->scoresAhead && failed(checkScoresAhead(*plan))) ||
        (plan->residentFrom && failed(checkResident(*plan))))
      return failure();
    plan->takeInputs(inputs);
    planScans(*plan);
    allocateWorkspaces(*plan);
    buildPrepareKernel(*plan);
    buildScanKernels(*plan);
    return success();
  }
  return failure();
}

struct ConvertGdnToTilePass
    : public gdn::impl::ConvertGdnToTilePassBase<ConvertGdnToTilePass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp op) { eraseSelfCopy(op); });
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<GdnDialect>(op->getDialect()))
        ops.push_back(op);
    });
    findFusedOps(ops);
    convertMemoryOps();
    for (Operation *op : ops) {
      // Kernels stand beside the function that launches them, where the passes
      // behind look for them.
      auto function = op->getParentOfType<func::FuncOp>();
      if (!function || function->getParentOp() != getOperation()) {
        op->emitOpError("has no tile form outside of the module's functions");
        return signalPassFailure();
      }
      checkDynamicSizes(op);
      if (fused.contains(op))
        continue;
      LogicalResult converted =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](RecurrenceOp recurrence) {
                return convertRecurrence(recurrence, starts[op], inputs[op],
                                         lowScores, roles, multiprocessors);
              })
              .Case(buildL2NormKernel)
              .Case(buildGatedRMSNormKernel)
              .Case(buildGateKernel)
              .Case([&](ShortConvOp conv) {
                return buildShortConvKernels(conv, norms[op]);
              })
              .Default([](Operation *other) {
                return other->emitOpError("has no tile form");
              });
      if (failed(converted))
        return signalPassFailure();
      op->erase();
    }
    for (Operation *op : fused)
      op->erase();
  }

private:
  /// What the kernels of recurrences do beside the recurrence.
  void findFusedOps(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      if (auto conv = dyn_cast<ShortConvOp>(op))
        if (L2NormOp norm = norms[op] = findConvNorm(conv))
          fused.insert(norm);
      auto recurrence = dyn_cast<RecurrenceOp>(op);
      if (!recurrence || !recurrence.getSchedule())
        continue;
      starts[op] = takeStateStart(recurrence);
      inputs[op] = RecurrenceInputs::find(recurrence);
      fused.insert_range(inputs[op].getOps());
    }
  }

  void convertMemoryOps() {
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (gdn_tile::getKernelAttr(function))
        continue;
      function.walk([](linalg::FillOp op) { buildFillKernel(op); });
      function.walk([&](linalg::LinalgOp op) {
        if (!fused.contains(op))
          buildElementwiseKernel(op);
      });
      function.walk([](memref::CopyOp op) { buildCopyKernel(op); });
    }
  }

  DenseMap<Operation *, StateStart> starts;
  DenseMap<Operation *, RecurrenceInputs> inputs;
  DenseMap<Operation *, L2NormOp> norms;
  llvm::SetVector<Operation *> fused;
};

} // namespace
