//===- ScanKernel.cpp - serial part of a recurrence -----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateScan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

// Blocks with as many rows start while prepare ends, and load their states;
// with fewer, of which more are needed, that costs more than it gains.
constexpr int64_t kEarlyRows = 128;

namespace {

class ScanKernel : StateScan {
public:
  ScanKernel(RecurrencePlan &plan, StringRef name, bool isWide)
      : StateScan(plan, name, /*hasOutput=*/true,
                  isWide ? 2 * plan.valueBlock : plan.valueBlock) {}

  /// The kernel, and its launch for first segments, or whole sequences, at
  /// `places`.
  void build(Value places);
  /// The launch for segments behind boundaries, at `places`.
  void launchLater(Value places);

private:
  int64_t getRowBlocks() const { return llvm::divideCeil(plan.valueSize, vb); }
  Access boundaryAccess(Value boundary, Value rows);
  Value loadInitial(Value place);
  void storeFinal(Value final, const Segment &segment);

  /// Of the host and in the kernel: 1 for segments behind boundaries, else 0.
  Value hostIsLater, isLater;
};

} // namespace

// The block's rows of the state at a boundary.
Access ScanKernel::boundaryAccess(Value boundary, Value rows) {
  Value zero = k.index(0);
  return {boundaryStates,
          {boundary, zero, head, firstValue, zero},
          {3, 4},
          {rows, k.index(plan.keySize)}};
}

// The first segment of a sequence reads the state, all others find theirs at
// the boundary in front of them, whose place they have.
Value ScanKernel::loadInitial(Value place) {
  if (!isLater)
    return loadState(valuesLeft);
  // A branch: both at once would not fit the registers.
  Value isFirst = k.equal(isLater, k.index(0));
  return scf::IfOp::create(
             k, isFirst,
             [&](OpBuilder &, Location) {
               scf::YieldOp::create(k, loadState(valuesLeft));
             },
             [&](OpBuilder &, Location) {
               Access boundary = boundaryAccess(place, valuesLeft);
               scf::YieldOp::create(k, k.loadF32(boundary, {vb, kp}));
             })
      .getResult(0);
}

// The last segment's is the state; that of the first one of several is at its
// boundary.
void ScanKernel::storeFinal(Value final, const Segment &segment) {
  Value rows = valuesLeft;
  if (isLater) {
    Value several = k.min(segment.boundaries, k.index(1));
    // A branch: both addresses at once would not fit the registers.
    scf::IfOp::create(k, k.less(isLater, several), [&](OpBuilder &, Location) {
      k.store(final, boundaryAccess(segment.firstBoundary, valuesLeft));
      scf::YieldOp::create(k);
    });
    rows = k.onlyIf(k.equal(segment.index, segment.boundaries), rows);
  }
  if (plan.updatesState)
    storeState(final, stateAccess(state, rows));
}

void ScanKernel::build(Value places) {
  addArguments();
  if (plan.chunksOfSegment) {
    ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
    hostIsLater = arith::ConstantIndexOp::create(host, 0);
    isLater = k.argument(hostIsLater);
  }
  Value place = splitBlockId(getRowBlocks());
  Segment segment = segments.at(place, isLater);
  findState(segment.n);
  allocateTiles();
  Value initial = loadInitial(place);
  bool startsEarly = vb >= kEarlyRows && !plan.isFused;
  if (startsEarly)
    gdn_tile::AwaitLaunchOp::create(k);
  storeFinal(scan(initial, segment), segment);
  k.launch(countBlocks(places, getRowBlocks()), /*beside=*/startsEarly);
}

void ScanKernel::launchLater(Value places) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  k.launchAgain(countBlocks(places, getRowBlocks()), hostIsLater,
                arith::ConstantIndexOp::create(host, 1));
}

void mlir::gdn::buildScanKernels(RecurrencePlan &plan) {
  bool isCut = static_cast<bool>(plan.chunksOfSegment);
  auto [usualFirst, usualLater, wideFirst, wideLater] = plan.places;
  auto areNone = [](Value a, Value b) {
    return isConstantIntValue(a, 0) && isConstantIntValue(b, 0);
  };
  std::optional<ScanKernel> usual, wide;
  if (!areNone(usualFirst, usualLater))
    usual.emplace(plan, "scan", /*isWide=*/false);
  if (!areNone(wideFirst, wideLater))
    wide.emplace(plan, usual ? "scan_wide" : "scan", /*isWide=*/true);
  // A launch of no blocks is none. The wide kernel may start beside prepare,
  // and what runs beside the first segments of sequences that are cut, which
  // have few blocks, is launched behind the usual one.
  if (wide)
    wide->build(wideFirst);
  if (usual)
    usual->build(usualFirst);
  if (!isCut)
    return;
  buildSegmentKernels(plan);
  if (wide)
    wide->launchLater(wideLater);
  if (usual)
    usual->launchLater(usualLater);
}
