//===- SegmentKernels.cpp - states at the boundaries of segments ----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over a segment a recurrence is affine in its state, and the rows of the state
// (value channels) do not see one another:
//
//   S_out = S_in M + N,   N: the segment from S = 0,   M: from S = I and V = 0
//
// `segments`: one block per segment between two boundaries, value head and
// block of rows of N and, as more rows of the same program, of M. Beside it the
// scan runs over the first segments, which start from the state itself: that
// gives S_1. The last segments are in front of no boundary.
//
// Then the scan runs over all other segments of all sequences side by side. Its
// blocks walk the boundaries in front of them, S_(j+1) = S_j M_j + N_j (see
// BoundaryWalk.h). Where they cannot, `combine` does in front of it: one block
// per sequence, value head and few rows. Here in products of split TF32; see
// CombineKernel.cpp for 16-bit inputs.
//
//===----------------------------------------------------------------------===//

#include "StateScan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

//===----------------------------------------------------------------------===//
// segments
//===----------------------------------------------------------------------===//

/// Rows of a block. As many blocks as the scan has fill the GPU, but these are
/// twice as many: so two warpgroups share a block and the tiles of a chunk.
int64_t getRowsOfBlock(const RecurrencePlan &plan) {
  bool isWhole = plan.valueSize % 128 == 0 && plan.keySize % 128 == 0;
  // Otherwise the tiles of more stages would not fit the shared memory.
  bool isPlain = !plan.type.isF32() && !plan.isHigh &&
                 plan.gateKind != GateKind::Channel && !plan.hasErase;
  return isWhole && isPlain && plan.valueBlock == 64 ? 128 : plan.valueBlock;
}

class SegmentsKernel : StateScan {
public:
  SegmentsKernel(RecurrencePlan &plan)
      : StateScan(plan, "segments", /*hasOutput=*/false, getRowsOfBlock(plan),
                  plan.getSegments()) {}

  void build();

private:
  Value getInitial();
  void storeFinal(Value final, Value boundary, Value values, Value transitions);

  /// First row of the block in the transition matrix; negative for values.
  Value firstTransition;
  Value boundaryStates, localStates, transitions;
  /// The parts of a block's rows of the transition matrix.
  SmallVector<Value> transitionTiles;
};

} // namespace

// Zeros; rows of I in a block of transitions.
Value SegmentsKernel::getInitial() {
  Value offset = arith::IndexCastOp::create(k, k.getI32Type(), firstTransition);
  Value row = k.iota({vb, 1});
  row = arith::AddIOp::create(k, row, k.broadcastLike(offset, row));
  Value identity = k.compare(arith::CmpIPredicate::eq, row, k.iota({1, kp}));
  return k.select(identity, k.constant(1.0), k.constant(0.0));
}

// `values` and `rows` of the transition matrix exist. In one workspace with the
// states its rows are columns, as the combine kernel reads them.
void SegmentsKernel::storeFinal(Value final, Value boundary, Value values,
                                Value rows) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  if (!plan.transitions) {
    k.store(final, {boundaryStates,
                    {boundary, zero, head, firstValue, zero},
                    {3, 4},
                    {values, keySize}});
    return k.store(final, {boundaryStates,
                           {boundary, k.index(1), head, zero, firstTransition},
                           {4, 3},
                           {rows, keySize}});
  }
  k.store(final, {localStates,
                  {boundary, head, firstValue, zero},
                  {2, 3},
                  {values, keySize}});
  for (int64_t part = 0; part < kTransitionParts; ++part) {
    Value rounded = k.convert(final, k.getBF16Type());
    Access access{transitions,
                  {boundary, k.index(part), head, firstTransition, zero},
                  {3, 4},
                  {rows, keySize}};
    if (transitionTiles.empty()) {
      k.store(rounded, access);
    } else {
      k.store(rounded, whole(k, transitionTiles[part]));
      k.copyOut(transitionTiles[part], access);
    }
    final = k.roundingError(final, rounded);
  }
}

void SegmentsKernel::build() {
  addArguments();
  if (!plan.transitions)
    boundaryStates = k.argument(plan.boundaryStates);
  localStates = k.argument(plan.localStates);
  transitions = k.argument(plan.transitions);
  int64_t valueBlocks = llvm::divideCeil(plan.valueSize, vb);
  int64_t blocks = valueBlocks + llvm::divideCeil(plan.keySize, vb);
  Segment segment = segments.inner(splitBlockId(blocks));
  Value first = segments.firstBoundary(segment);
  findState(segment.n);
  Value zero = k.index(0);
  Value values = k.max(valuesLeft, zero);
  firstTransition = k.sub(firstValue, k.index(valueBlocks * vb));
  Value isTransition = k.less(firstTransition, zero);
  isTransition = arith::XOrIOp::create(
      k, isTransition, arith::ConstantOp::create(k, k.getBoolAttr(true)));
  hasNoValues = isTransition;
  // Places of first segments, and behind the last boundary of a sequence, hold
  // nothing.
  Value exists = k.onlyIf(k.less(zero, segment.index), segment.boundaries);
  exists = k.less(segment.index, exists);
  Value rows =
      k.onlyIf(isTransition, k.sub(k.index(plan.keySize), firstTransition));
  segment.rows.length = k.onlyIf(exists, segment.rows.length);

  allocateTiles();
  // A warp's stores of 16-bit values are to eight rows each, 16 bytes of them.
  if (plan.transitions && plan.hasRoles)
    for (int64_t part = 0; part < kTransitionParts; ++part)
      transitionTiles.push_back(k.tile({vb, kp}, k.getBF16Type()));
  Value final = scan(getInitial(), segment);
  storeFinal(final, k.add(first, segment.index), k.onlyIf(exists, values),
             k.onlyIf(exists, rows));

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  k.launch(countBlocks(plan.getSegments().countInner(host), blocks),
           /*beside=*/true);
}

//===----------------------------------------------------------------------===//
// combine
//===----------------------------------------------------------------------===//

namespace {

/// Rows of the state of one block. Its blocks read a transition matrix once
/// each: fewer rows would fill more multiprocessors, but ask the L2 cache for
/// more than it can give.
constexpr int64_t kCombineRows = 16;
/// Key channels up to which the next transition matrix waits in registers.
constexpr int64_t kMaxPrefetchedKeys = 128;
/// Key channels that the warps of a block hold at once.
constexpr int64_t kMaxKeysOfPart = 192;

/// Fragments have the state's columns as their rows, in `parts` parts: S_j^T is
/// the right operand, in shared memory, and M_j^T the left one.
class CombineKernel {
public:
  CombineKernel(RecurrencePlan &plan)
      : plan(plan), kp(plan.keyPad), parts(kp > kMaxKeysOfPart ? 2 : 1),
        rows(llvm::alignTo(llvm::divideCeil(kp, parts), 16)),
        k(plan.op, "combine",
          gdn_tile::KernelAttr::get(plan.op.getContext(), rows / 16,
                                    gdn_tile::FragmentLayoutKind::Accumulator,
                                    0, 4, /*blocksPerSM=*/0)),
        segments(k, plan.getSegments()) {}

  /// The grid times `needed`.
  void build(Value needed);

private:
  bool prefetches() const { return kp <= kMaxPrefetchedKeys; }
  Value partStart(int64_t part) { return k.index(part * rows); }
  Value keysLeft(int64_t part) {
    return k.max(k.sub(k.index(plan.keySize), partStart(part)), k.index(0));
  }
  Access stateAccess(Value boundary, int64_t part, Value exists);
  Value loadTransition(Value boundary, int64_t part, Value exists);
  SmallVector<Value> step(Value boundary, ValueRange states, Value transition);

  RecurrencePlan &plan;
  int64_t kp, parts, rows;
  KernelBuilder k;
  SegmentMap segments;
  Value boundaryStates, tile, head, firstValue, valuesLeft;
};

} // namespace

Access CombineKernel::stateAccess(Value boundary, int64_t part, Value exists) {
  Value keys = keysLeft(part);
  if (exists)
    keys = k.onlyIf(exists, keys);
  return {boundaryStates,
          {boundary, k.index(0), head, firstValue, partStart(part)},
          {4, 3},
          {keys, valuesLeft}};
}

Value CombineKernel::loadTransition(Value boundary, int64_t part,
                                    Value exists) {
  Value keys = keysLeft(part);
  if (exists)
    keys = k.onlyIf(exists, keys);
  return k.load({boundaryStates,
                 {boundary, k.index(1), head, partStart(part), k.index(0)},
                 {3, 4},
                 {keys, k.index(plan.keySize)}},
                {rows, kp});
}

// The state at `boundary`, from that one boundary before it.
SmallVector<Value> CombineKernel::step(Value boundary, ValueRange states,
                                       Value transition) {
  for (auto [part, state] : llvm::enumerate(states)) {
    Access access = transposed(k, tile);
    access.indices[1] = partStart(part);
    access.valid = {k.min(k.index(rows), k.sub(k.index(kp), partStart(part))),
                    k.index(kCombineRows)};
    k.store(state, access);
  }
  SmallVector<Value> results;
  for (int64_t part = 0; part < parts; ++part) {
    Value local =
        k.load(stateAccess(boundary, part, Value()), {rows, kCombineRows});
    Value left =
        transition ? transition : loadTransition(boundary, part, Value());
    results.push_back(k.mma(left, tile, local, /*transposeB=*/true));
  }
  for (auto [part, result] : llvm::enumerate(results))
    k.store(result, stateAccess(boundary, part, Value()));
  return results;
}

void CombineKernel::build(Value needed) {
  boundaryStates = k.argument(plan.boundaryStates);
  int64_t blocks = llvm::divideCeil(plan.valueSize, kCombineRows);
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  firstValue =
      k.mul(k.rem(k.blockId(), k.index(blocks)), k.index(kCombineRows));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  Segment sequence = segments.sequence(k.div(rest, k.index(plan.valueHeads)));
  tile = k.tile({kCombineRows, kp}, k.getF32Type());

  Value one = k.index(1), first = segments.firstBoundary(sequence);
  Value exists = k.less(one, sequence.boundaries);
  SmallVector<Value> carried;
  for (int64_t part = 0; part < parts; ++part)
    carried.push_back(
        k.load(stateAccess(first, part, exists), {rows, kCombineRows}));
  if (prefetches())
    carried.push_back(loadTransition(k.add(first, one), 0, exists));
  auto loop = scf::ForOp::create(k, one, sequence.boundaries, one, carried);
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    Value boundary = k.add(first, number), next = k.add(number, one);
    ValueRange arguments = loop.getRegionIterArgs();
    Value transition, nextTransition;
    if (prefetches()) {
      transition = arguments.back();
      nextTransition = loadTransition(k.add(first, next), 0,
                                      k.less(next, sequence.boundaries));
    }
    SmallVector<Value> results =
        step(boundary, arguments.take_front(parts), transition);
    if (prefetches())
      results.push_back(nextTransition);
    scf::YieldOp::create(k, results);
  }

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perSequence =
      arith::ConstantIndexOp::create(host, plan.valueHeads * blocks);
  Value grid = host.createOrFold<arith::MulIOp>(plan.sequences, perSequence);
  k.launch(host.createOrFold<arith::MulIOp>(grid, needed));
}

void mlir::gdn::buildSegmentKernels(RecurrencePlan &plan) {
  SegmentsKernel(plan).build();
  if (plan.walksInScan())
    return;
  // 0 or 1: nothing to combine where no sequence has a second boundary.
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value one = arith::ConstantIndexOp::create(host, 1);
  Value most = host.createOrFold<arith::MaxUIOp>(
      plan.getSegments().boundariesOfEach(host), one);
  Value needed = host.createOrFold<arith::MinUIOp>(
      host.createOrFold<arith::SubIOp>(most, one), one);
  if (isConstantIntValue(needed, 0))
    return;
  if (plan.transitions)
    buildTransitionScan(plan, needed);
  else
    CombineKernel(plan).build(needed);
}
