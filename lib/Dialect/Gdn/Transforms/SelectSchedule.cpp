//===- SelectSchedule.cpp - gdn-select-schedule ---------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"
#include "gdn/Target/GpuTarget.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_GDNSELECTSCHEDULEPASS
#include "gdn/Dialect/Gdn/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

// Tokens up to which reading the state once and walking the tokens beats the
// chunk form.
constexpr int64_t kMaxStepTokens = 8;
// Rows of the state that one decode block keeps in registers, and where there
// are few states.
constexpr int64_t kStepRows = 8, kFewStepRows = 16;
// Sequences times value heads that are few, by states of float32 and of 16
// bits, and one or two sequences where tokens go in eights.
constexpr int64_t kFewStates = 128, kFewHalfStates = 1024, kFewEights = 64;
constexpr int64_t kMaxSegments = 32;
// Chunks below which a segment does not repay its transition matrix.
constexpr int64_t kSegmentChunks = 5;
// Rows of the state whose products a warpgroup makes.
constexpr int64_t kRolesValueBlock = 64;
// Value channels of a block on the CPU.
constexpr int64_t kMaxCpuValueBlock = 256;
// Key channels from which the state leaves registers for short chunks only.
constexpr int64_t kMaxKeysOfLongChunk = 128;

/// Shared memory of the two kernels of the split phases, in bytes.
struct SplitFootprint {
  int64_t prepare, scan;

  SplitFootprint(RecurrenceOp op, int64_t chunk, int64_t valueBlock,
                 int64_t stages, bool hasRoles, bool isHigh) {
    int64_t keys = llvm::alignTo(op.getKeySize(), 16);
    int64_t bytes = op.getQType().getElementType().getIntOrFloatBitWidth() / 8;
    int64_t outBytes =
        cast<ShapedType>(op.getOut().getType()).getElementTypeBitWidth() / 8;
    bool channelGate = op.hasChannelGate();
    bool copiesOfK = channelGate || op.getErase();
    int64_t keyTile = chunk * keys * bytes;
    int64_t valueTile = chunk * valueBlock * bytes;
    int64_t square = chunk * chunk * bytes;
    int64_t parts = isHigh ? 2 : 1;
    int64_t inverseParts = op.isDelta() ? (bytes == 2 ? 2 : 1) : 0;

    prepare = 2 * keyTile + square;
    if (op.isDelta() || channelGate)
      prepare += 4 * chunk * chunk;
    if (copiesOfK)
      prepare += keyTile;
    for (bool floatTile : {channelGate, static_cast<bool>(op.getErase())})
      prepare += floatTile ? 4 * chunk * keys : 4 * chunk;

    // Copies of q and of k, of which two with the delta rule, are rounded.
    int64_t keyTiles = channelGate ? (op.isDelta() ? 3 : 2) * parts
                       : copiesOfK ? 2 + parts
                                   : 2;
    // One part of the inverse is staged; the second, which few chunks need, has
    // a tile of its own.
    bool hasRarePart = inverseParts == 2 && !isHigh && !op.getErase();
    if (hasRarePart)
      inverseParts = 1;
    int64_t staged = keyTile * keyTiles + valueTile +
                     (parts + inverseParts) * square + 4 * 4 * chunk;
    if (op.getWrite())
      staged += chunk * valueBlock * 4;
    // A role of its own stores one tile while the next is filled, if they are
    // not large.
    int64_t stored = chunk * valueBlock * outBytes;
    scan = stages * staged +
           (hasRoles && 2 * stored <= 16 * 1024 ? 2 : 1) * stored +
           (hasRarePart ? square : 0);
  }

  // Tiles start at multiples of 1024 bytes: room for that of every tile.
  static constexpr int64_t kAlignmentSlack = 8 * 1024;

  bool fits(const GpuTarget &target) const {
    return std::max(prepare, scan) + kAlignmentSlack <= target.sharedBytes;
  }
};

bool hasFewTokens(RecurrenceOp op) {
  int64_t tokens = op.getQType().getDimSize(1);
  return !ShapedType::isDynamic(tokens) && tokens <= kMaxStepTokens;
}

/// Checkpoints that do not lie between chunks: met token by token only.
bool hasOddCheckpoints(RecurrenceOp op) {
  return op.getCheckpointDistance() % 16 != 0;
}

/// True if eight tokens at a time are faster than one by one, and possible.
bool goesInEights(RecurrenceOp op) {
  int64_t tokens = op.getQType().getDimSize(1);
  return hasFewTokens(op) && tokens > 1 && !op.getOffsets() && !op.isKFirst() &&
         !op.hasChannelGate() && !op.getErase() &&
         op.getQType().getElementType().getIntOrFloatBitWidth() == 16 &&
         op.getKeySize() <= kMaxKeysOfLongChunk &&
         llvm::alignTo(op.getKeySize(), 16) % 32 == 0 &&
         op.getValueSize() >= 16;
}

/// True if the step kernel will also make its own inputs, which takes
/// registers.
bool makesInputs(RecurrenceOp op) {
  return op.getK().getDefiningOp<L2NormOp>() ||
         (op.getGate() && op.getGate().getDefiningOp<GateOp>());
}

ScheduleAttr getStep(MLIRContext *context, int64_t chunk, int64_t rows,
                     int64_t warps, bool streaming, bool overlap,
                     Precision precision, int64_t wideFrom = 0) {
  return ScheduleAttr::get(context, Phases::Step, chunk, rows, /*stages=*/1,
                           /*segments=*/0, /*segment_chunks=*/1, warps,
                           streaming, overlap, precision, wideFrom,
                           /*scores_ahead=*/false, /*resident_from=*/0);
}

/// Measured on an H200 at K = V = 128. A few states are a matter of latency:
/// more warps with fewer loads each, no room in the caches, and a launch that
/// is under way while the one in front ends (a quarter of the time of one
/// sequence). Many are streamed best by blocks of one warp. A number that is
/// not known is decided by when the function is called.
ScheduleAttr selectStepSchedule(RecurrenceOp op, const GpuTarget &target,
                                Precision precision) {
  MLIRContext *context = op.getContext();
  bool isF32 = op.getStateType().getElementType().isF32();
  int64_t sequences = op.getNumSequences();
  bool isOpen = ShapedType::isDynamic(sequences);
  int64_t states = isOpen ? 0 : sequences * op.getNumValueHeads();
  if (goesInEights(op)) {
    bool hasWide = isF32 && op.getValueSize() >= 32 && !makesInputs(op);
    bool isWide = hasWide && states > kFewEights;
    return getStep(context, 8, isWide ? 32 : 16, 1, false, false, precision,
                   hasWide && isOpen ? kFewEights + 1 : 0);
  }
  if (op.isKFirst() || !hasFewTokens(op))
    return getStep(context, 16, kStepRows, 1, false, false, precision);
  bool overlaps = target.hasDependentLaunches();
  int64_t few = isF32 ? kFewStates : kFewHalfStates;
  if (states <= few)
    return getStep(context, 16, kFewStepRows, isF32 ? 8 : 4, true, overlaps,
                   precision, isOpen ? few + 1 : 0);
  return getStep(context, 16, kStepRows, 1, false, overlaps && isF32,
                 precision);
}

/// True if the kernel `segments` has blocks of 128 rows, two for each segment.
bool hasWideSegments(RecurrenceOp op) {
  return op.getKeySize() == 128 && op.getValueSize() == 128 &&
         !op.hasChannelGate() && !op.getErase();
}

/// Segments that one sequence may be cut into: as many as give each
/// multiprocessor one block of the scan of those behind the first. 0 where that
/// leaves a single sequence too few segments: whole sequences are as fast then.
///
/// Measured on an H200 at K = V = 128, in us: a sequence of C chunks takes 1.5
/// + 0.92 C. In G segments, the first of F chunks and the others of L, the
/// kernel `segments`, whose 2 (G - 2) blocks of 128 rows for each head fill one
/// wave with the scan of the first, takes 6.5 + 1.07 L from the end of prepare
/// on, that scan 4 + 0.94 F, the scan of the others behind both 4.6 + 0.93 L +
/// 1.05 (G - 2). So F is L + 2.6 + L / 7, G = 2 never pays, and G = 3 only with
/// blocks of 128 rows, or of high precision, whose scan takes longer. How many
/// sequences there are, and how long they are, is known when the function is
/// called: the description of the schedule has the rule.
int64_t selectSegments(RecurrenceOp op, const GpuTarget &target,
                       int64_t valueBlock, bool isHigh) {
  if (op.getKeySize() > kMaxKeysOfLongChunk)
    return 0;
  int64_t blocks =
      op.getNumValueHeads() * llvm::divideCeil(op.getValueSize(), valueBlock);
  int64_t segments = target.multiprocessors / blocks + 1;
  int64_t least = isHigh || hasWideSegments(op) ? 3 : 4;
  return segments < least ? 0 : std::min(segments, kMaxSegments);
}

/// Blocks of the scan from which they have 128 rows of the state instead of 64;
/// 0: never. Measured on an H200 at K = V = 128: a chunk takes a block of 128
/// rows 1.45 times as long as one of 64. So half as many blocks are faster as
/// soon as those of 64 rows need a second wave. Of packed sequences only the
/// number is known when a function is called: two that fill a wave each come
/// out even where one has three quarters of the tokens.
/// Addresses of checkpoints do not fit the registers of two warpgroups.
int64_t selectWideFrom(RecurrenceOp op, const GpuTarget &target) {
  if (op.getValueSize() % (2 * kRolesValueBlock) != 0 ||
      op.getKeySize() > kMaxKeysOfLongChunk || op.getCheckpoints())
    return 0;
  return target.multiprocessors + 1;
}

/// True if blocks of 128 rows are faster where they make P themselves: memory
/// bounds both kernels of the split phases then, and P is read and written as
/// often as q. Measured on an H200 at K = V = 128 with 128 of these blocks: 11
/// % of both kernels' time with one value head for each key head, 2 % with two,
/// which do not repay another kernel; with four the scan is slower by more.
bool makesScoresAhead(RecurrenceOp op, int64_t chunk, int64_t stages,
                      Precision precision) {
  int64_t tokens = op.getQType().getDimSize(1);
  bool hasOneChunk =
      !op.getOffsets() && !ShapedType::isDynamic(tokens) && tokens <= chunk;
  return op.isDelta() && op.getGroupSize() == 1 && !op.hasChannelGate() &&
         !op.getErase() && precision == Precision::Default && chunk == 64 &&
         stages >= 2 && !hasOneChunk;
}

/// Chunks of a sequence, in the mean, from which blocks that make T alone stay.
/// Measured on an H200 at K = V = 128: with 128 and 64 chunks prepare takes 90
/// % of the time and all 97.5 %, with 32 98 %, with 16 101 %; with random
/// lengths of 8 chunks in the mean 101.5 %. 0: they have no such form.
int64_t selectResidentFrom(RecurrenceOp op, int64_t chunk) {
  constexpr int64_t least = 32;
  bool hasForm = op.getNumKeyHeads() % 4 == 0 &&
                 llvm::alignTo(op.getKeySize(), 16) == kMaxKeysOfLongChunk;
  int64_t tokens = op.getQType().getDimSize(1);
  if (op.getOffsets() && !ShapedType::isDynamic(tokens) &&
      !ShapedType::isDynamic(op.getNumSequences()))
    tokens /= std::max<int64_t>(op.getNumSequences(), 1);
  bool areShort = !ShapedType::isDynamic(tokens) && tokens < least * chunk;
  return hasForm && !areShort ? least : 0;
}

/// A schedule of the scan, whose blocks have 128 rows from `wideFrom` blocks of
/// `valueBlock` rows on.
ScheduleAttr getScanSchedule(RecurrenceOp op, int64_t chunk, int64_t valueBlock,
                             int64_t stages, int64_t segments, int64_t wideFrom,
                             Precision precision) {
  int64_t sequences = op.getNumSequences();
  bool scoresAhead = wideFrom && makesScoresAhead(op, chunk, stages, precision);
  // So many sequences leave each but its first segment.
  if (segments && !ShapedType::isDynamic(sequences) &&
      segments - 1 < 2 * sequences)
    segments = 0;
  if (wideFrom && !ShapedType::isDynamic(sequences)) {
    int64_t blocks = sequences * op.getNumValueHeads() *
                     llvm::divideCeil(op.getValueSize(), valueBlock);
    if (blocks >= wideFrom) {
      valueBlock *= 2;
      segments = 0; // These blocks are as many as run at once.
    } else {
      scoresAhead = false;
    }
    wideFrom = 0;
  }
  int64_t least = segments == 0 ? 1 : kSegmentChunks;
  int64_t residentFrom = scoresAhead ? selectResidentFrom(op, chunk) : 0;
  return ScheduleAttr::get(op.getContext(),
                           segments ? Phases::Segmented : Phases::Split, chunk,
                           valueBlock, stages, segments, least, /*warps=*/1,
                           /*streaming=*/false, /*overlap=*/false, precision,
                           wideFrom, scoresAhead, residentFrom);
}

FailureOr<ScheduleAttr> selectGpuSchedule(RecurrenceOp op,
                                          const GpuTarget &target,
                                          Precision precision) {
  if ((hasFewTokens(op) && !op.getOffsets()) || hasOddCheckpoints(op))
    return selectStepSchedule(op, target, precision);

  int64_t valueBlock =
      std::min<int64_t>(kRolesValueBlock, llvm::alignTo(op.getValueSize(), 16));
  int64_t longest = op.getKeySize() > kMaxKeysOfLongChunk ? 32 : 64;
  // The second parts of the state and of a chunk's values take registers.
  bool isHigh = precision == Precision::High &&
                op.getQType().getElementTypeBitWidth() == 16;
  if (isHigh)
    longest /= 2;
  // Products of whole warpgroups, beside which warps of their own copy.
  bool hasRoles = target.hasWarpgroupMma() && valueBlock == kRolesValueBlock &&
                  op.getQType().getElementTypeBitWidth() == 16;
  auto fits = [&](int64_t chunk, int64_t stages) {
    return SplitFootprint(op, chunk, valueBlock, stages, hasRoles, isHigh)
        .fits(target);
  };
  // Copies that overlap the products are worth more than a longer chunk, and
  // that more than copies two chunks ahead, which pay only where warps of their
  // own issue them.
  for (int64_t stages : {2, 1})
    for (int64_t chunk = longest; chunk >= 16; chunk /= 2)
      if (op.getCheckpointDistance() % chunk == 0 && fits(chunk, stages)) {
        int64_t deep = hasRoles && stages == 2 && fits(chunk, 3) ? 3 : stages;
        int64_t segments =
            hasRoles ? selectSegments(op, target, valueBlock, isHigh) : 0;
        // Copies of keys in two parts have not been measured so.
        bool fitsWide =
            hasRoles && !(isHigh && op.hasChannelGate()) &&
            SplitFootprint(op, chunk, 2 * valueBlock, deep, hasRoles, isHigh)
                .fits(target);
        return getScanSchedule(op, chunk, valueBlock, deep, segments,
                               fitsWide ? selectWideFrom(op, target) : 0,
                               precision);
      }
  SplitFootprint least(op, 16, valueBlock, 1, hasRoles, isHigh);
  op.emitOpError("does not fit the shared memory of ")
      << target.name << ": chunks of 16 tokens with K = " << op.getKeySize()
      << " need " << std::max(least.prepare, least.scan)
      << " bytes, the limit is " << target.sharedBytes;
  return failure();
}

ScheduleAttr selectCpuSchedule(RecurrenceOp op, Precision precision) {
  MLIRContext *context = op.getContext();
  int64_t tokens = op.getQType().getDimSize(1);
  // On one core the parts of a chunk that all value blocks share are computed
  // once when the block is large.
  int64_t valueBlock = std::min(op.getValueSize(), kMaxCpuValueBlock);
  if (hasFewTokens(op) || hasOddCheckpoints(op))
    return ScheduleAttr::get(context, Phases::Step, 16, valueBlock, 1,
                             precision);
  // A longer chunk costs more work per token, a shorter one passes over the
  // state more often. Short sequences would only compute padding.
  int64_t chunk = op.getCheckpointDistance() % 32 == 0 ? 32 : 16;
  if (!ShapedType::isDynamic(tokens))
    while (chunk > 16 && chunk >= 2 * tokens)
      chunk /= 2;
  return ScheduleAttr::get(context, Phases::Fused, chunk, valueBlock, 1,
                           precision);
}

struct SelectSchedulePass
    : public gdn::impl::GdnSelectSchedulePassBase<SelectSchedulePass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    gpuTarget = lookUpGpuTarget(target);
    least = symbolizePrecision(precision);
    if (!least)
      return emitError(UnknownLoc::get(context))
             << "unknown precision '" << precision
             << "'; it is default or high";
    if (gpuTarget || target == "cpu")
      return success();
    return emitError(UnknownLoc::get(context))
           << "unknown target '" << target << "'; the targets are cpu, "
           << listGpuTargets();
  }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](RecurrenceOp op) {
      if (op.isScheduled())
        return WalkResult::advance();
      Precision asked = op.isHighPrecision() ? Precision::High : *least;
      FailureOr<ScheduleAttr> schedule =
          gpuTarget ? selectGpuSchedule(op, *gpuTarget, asked)
                    : FailureOr<ScheduleAttr>(selectCpuSchedule(op, asked));
      if (failed(schedule))
        return WalkResult::interrupt();
      op.setScheduleAttr(*schedule);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  std::optional<GpuTarget> gpuTarget;
  std::optional<Precision> least;
};

} // namespace
