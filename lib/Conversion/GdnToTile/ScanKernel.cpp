//===- ScanKernel.cpp - serial part of a recurrence -----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BoundaryWalk.h"
#include "StateScan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

constexpr int64_t kManyRows = 128;

namespace {

class ScanKernel : StateScan {
public:
  ScanKernel(RecurrencePlan &plan, StringRef name, bool isWide,
             bool walks = false)
      : StateScan(plan, name, /*hasOutput=*/true,
                  isWide ? 2 * plan.valueBlock : plan.valueBlock,
                  isWide ? plan.getSegmentsOfWide() : plan.getSegments()),
        isCut(isWide ? plan.isWideCut() : plan.isCut()), walks(walks),
        walk(plan, k) {}

  /// The kernel, and its launch for first segments, or whole sequences, at
  /// `places`; if it walks, for segments behind boundaries.
  void build(Value places);
  /// The launch for segments behind boundaries, at `places`.
  void launchLater(Value places);

private:
  /// Whether blocks wait for the kernel in front before they read a state.
  /// Those of many rows, which are launched right behind prepare, read it
  /// before.
  bool waitsFirst() const { return vb < kManyRows; }
  int64_t getRowBlocks() const { return llvm::divideCeil(plan.valueSize, vb); }
  Access boundaryAccess(Value boundary, Value rows);
  Value loadInitial(Value place, const Segment &segment);
  void storeFinal(Value final, const Segment &segment);

  /// Sequences of this kernel may have segments.
  bool isCut;
  /// Blocks find the state in front of their segment themselves.
  bool walks;
  /// Of the host and in the kernel: 1 for segments behind boundaries, else 0.
  /// A constant where one of the two never is.
  Value hostIsLater, isLater;
  BoundaryWalk walk;
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
// the boundary in front of them, whose place they have; or walk to it from the
// first boundary.
Value ScanKernel::loadInitial(Value place, const Segment &segment) {
  if (!hostIsLater && !walks)
    return loadState(valuesLeft);
  if (walks) {
    Value one = k.index(1);
    Value steps = k.onlyIf(k.less(k.index(0), segment.rows.length),
                           k.sub(segment.index, one));
    Value boundary = k.sub(place, steps);
    Value state = k.loadF32(boundaryAccess(boundary, valuesLeft), {vb, kp});
    return walk.build(state, k.add(boundary, one), steps, head,
                      {firstValue, valuesLeft, vb}, [](Value, Value) {});
  }
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
  if (walks) {
    rows = k.onlyIf(segment.isLast, rows);
  } else if (isLater) {
    // A branch: both addresses at once would not fit the registers.
    scf::IfOp::create(
        k, segments.isFirstOfSeveral(segment, isLater),
        [&](OpBuilder &, Location) {
          k.store(final,
                  boundaryAccess(segments.firstBoundary(segment), valuesLeft));
          scf::YieldOp::create(k);
        });
    rows = k.onlyIf(segment.isLast, rows);
  }
  if (plan.updatesState)
    storeState(final, stateAccess(state, rows));
}

void ScanKernel::build(Value places) {
  addArguments();
  if (walks)
    walk.addArguments();
  if (isCut && plan.walksInScan()) {
    isLater = k.index(walks);
  } else if (isCut) {
    ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
    hostIsLater = arith::ConstantIndexOp::create(host, 0);
    isLater = k.argument(hostIsLater);
  }
  Value place = splitBlockId(getRowBlocks());
  Segment segment = segments.at(place, isLater);
  findState(segment.n);
  if (!waitsFirst() && !hostIsLater)
    prefetchState();
  if (walks)
    walk.allocateTiles(vb);
  allocateTiles();
  bool isEarly = !plan.isFused;
  if (isEarly && waitsFirst())
    gdn_tile::AwaitLaunchOp::create(k);
  Value initial = loadInitial(place, segment);
  if (isEarly && !waitsFirst())
    gdn_tile::AwaitLaunchOp::create(k);
  storeFinal(scan(initial, segment), segment);
  k.launch(countBlocks(places, getRowBlocks()), /*beside=*/isEarly);
}

void ScanKernel::launchLater(Value places) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  k.launchAgain(countBlocks(places, getRowBlocks()), hostIsLater,
                arith::ConstantIndexOp::create(host, 1),
                /*beside=*/waitsFirst());
}

void mlir::gdn::buildScanKernels(RecurrencePlan &plan) {
  auto [usualFirst, usualLater, wideFirst, wideLater] = plan.places;
  auto areNone = [](Value a, Value b) {
    return isConstantIntValue(a, 0) && isConstantIntValue(b, 0);
  };
  std::optional<ScanKernel> usual, wide;
  bool walks = plan.isCut() && plan.walksInScan();
  if (!areNone(usualFirst, walks ? usualFirst : usualLater))
    usual.emplace(plan, "scan", /*isWide=*/false);
  if (!areNone(wideFirst, wideLater))
    wide.emplace(plan, usual ? "scan_wide" : "scan", /*isWide=*/true);
  // A kernel of its own walks: whole sequences are a little faster without that
  // code. A launch of no blocks is none. The wide kernel may start beside
  // prepare, and what runs beside the first segments of sequences that are cut,
  // which have few blocks, is launched behind the usual one.
  if (wide)
    wide->build(wideFirst);
  if (usual)
    usual->build(usualFirst);
  if (!plan.isCut())
    return;
  buildSegmentKernels(plan);
  if (walks) {
    ScanKernel(plan, "scan_later", /*isWide=*/false, /*walks=*/true)
        .build(usualLater);
    return;
  }
  if (wide)
    wide->launchLater(wideLater);
  if (usual)
    usual->launchLater(usualLater);
}
