//===- RecurrencePlan.h - sizes and buffers of one recurrence ---*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEPLAN_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEPLAN_H

#include "KernelBuilder.h"
#include "RecurrenceInputs.h"
#include "Segments.h"
#include "gdn/Dialect/Gdn/IR/Gdn.h"

namespace mlir::gdn {

/// exp is 0 in f32 from here on; the sums of clamped gates stay exact where
/// those of -1e6 or -inf would swallow or poison the gates behind them.
constexpr double kMinGate = -104.0;

/// Rows of the state whose products two warpgroups make.
constexpr int64_t kAheadRows = 128;

/// Rows of the state of a scan that walks boundaries.
constexpr int64_t kWalkRows = 64;

enum class GateKind { None, Head, Channel };

/// What the scans of first segments, or whole sequences, and of later ones have
/// of host values: the numbers of those whose blocks have `valueBlock` rows,
/// and of those whose blocks have twice as many.
struct ScanPlaces {
  Value usualFirst, usualLater, wideFirst, wideLater;
};

/// Where the initial state is, if not in the state's memref: in another one, or
/// nowhere, because it is zero.
struct StateStart {
  Value source;
  bool isZero = false;
};

/// Rows of the workspace `gates`, one factor a token. With gates per head, for
/// G the sums of the gates of a chunk: exp(G), exp(G_C - G), scale exp(G); the
/// scan has no time for exponentials. Where T has a unit diagonal
/// (`RecurrencePlan::isUnit`) the second row holds beta too, and there is one
/// more: beta alone, for the second part of P. Without such gates beta is the
/// only row, the second.
///
/// Where q and k come raw (`RecurrencePlan::normalises`), without gates per
/// channel, the same rows hold what normalises them: r of the keys in the first
/// two, r of the queries in the third, and r^2 of the keys beside beta, so that
/// beta over the first row is the factor of a column of P. They are all there
/// without gates too, of gates that are 0. exp(G_C), which is no element of a
/// row then, is kDecay.
///
/// What makes P beside a scan finds G, in log2 units, in kSums. Of raw inputs P
/// and the third row have no factors of the queries then: they are those of
/// outputs, made beside P, or for scans that read P in kQueries. And beta
/// stands beside r of the keys, the factor of a column of P but for its gate.
enum GateRow : int64_t {
  kGrown,
  kRest,
  kScaledGrown,
  kDecay,
  kBeta,
  kSums,
  kQueries,
  kGateRows
};
/// Behind the rows, this many times, the number of the chunk's split rows: its
/// last ones. And so often exp(G_C).
constexpr int64_t kFlagSize = 8;

/// Parts of a transition matrix that products with it read.
constexpr int64_t kTransitionParts = 2;

/// What the kernels of one recurrence agree on: sizes, the model's parts, the
/// operands with batch and time in one dimension [B * T, ...], and the
/// workspaces between the prepare and the scan kernel.
struct RecurrencePlan {
  RecurrenceOp op;
  GateKind gateKind;
  bool isDelta, hasErase, isKFirst;
  int64_t chunk, valueBlock, stages, segments, segmentChunks, warps, wideFrom;
  bool streaming, overlap;
  /// T and P are made in the kernel of the scan.
  bool isFused;
  /// Blocks of `kAheadRows` rows of the state make P themselves.
  bool scoresAhead;
  /// Chunks of a sequence, in the mean, from which blocks that make T alone
  /// stay, and how many of them run at once; 0: they do not stay.
  int64_t residentFrom = 0, residentBlocks = 0;
  /// Of T, and of P, the workspace holds the blocks of 16 tokens on and below
  /// the diagonal, else whole matrices.
  bool isPackedInverse, isPackedScores;
  /// Operands of products of 16-bit inputs are pairs of 16-bit parts.
  bool isHigh;
  int64_t keyHeads, valueHeads, group;
  /// Key and value channels; keyPad is the former rounded up to 16.
  int64_t keySize, valueSize, keyPad;
  /// Element type of q, k, v and of everything that is staged for products.
  Type type;
  /// Element type of o.
  Type outType;
  /// Parts of what is rounded for products.
  int64_t parts;
  /// Parts in which the matrix T is staged: two 16-bit parts, one of f32. One
  /// 16-bit part loses the inverse for beta up to 2.
  int64_t inverseParts;
  /// beta stands outside of T, so that its diagonal is 1, and is left out:
  ///
  ///   U = beta o U~,  U~ = D + N D,  N = Gam o (I + strictlower(M_ij
  ///   beta_j))^-1 - I
  ///
  /// for M the products of the keys. D enters the sum as it is, in f32, so one
  /// 16-bit part of N is as exact as two of T, except where entries are large
  /// and sums over tokens cancel: from the first row with a large entry, or
  /// token with a large beta, on rows are split, and the second parts of N, of
  /// D, of U and of P count. In front of it they are zero, so that no later
  /// token changes a bit; the second part of U for the state is that of the
  /// whole chunk. The scan finds beta in P's columns and in rows of `gates`,
  /// and makes the second part of P itself.
  bool isUnit;
  /// The second part of P is made where rows are split, by blocks whose sizes
  /// are multiples of this; 0: by none.
  int64_t lowScores = 0;
  /// Loops of copies and products will have warp roles.
  bool hasRoles = false;
  /// The state is written back.
  bool updatesState;
  StateStart start;
  /// What stands in front of the recurrence and its kernels do. Then q, k, gate
  /// and beta are the operands of that, but for step phases.
  RecurrenceInputs inputs;
  /// The kernels of the split phases normalise q and k: not the elements, but
  /// what follows from their products.
  bool normalises = false;
  /// Tokens between checkpoints, if there are any.
  int64_t every;

  /// \name Host values
  Value q, k, v, gate, beta, erase, write, offsets, entries, out, state,
      checkpoints;
  Value length, sequences;
  /// [slots, Hv, parts, C, C], or the blocks of C x C: T, or N, whose second
  /// part is there only if the chunk has a split row; [slots, Hv, C, C], or its
  /// blocks: P, with `parts` as T where there are two, null where no scan reads
  /// it; [slots, Hv, rows * C + flags]: factors of the tokens, as `GateRow`
  /// says.
  Value inverse, scores, gates;
  /// With a gate per channel: q and k times their decay since the chunk's start
  /// and k times the decay to its end [slots, Hv, C, K], with `parts` as P; the
  /// chunk's decay [slots, Hv, K]. The second also holds erase times k.
  Value decayedQ, decayedK, restK, decay;
  /// Number of slots.
  Value slots;
  /// With segmented phases, the chunks of a segment of dense sequences, or the
  /// tokens for a boundary of packed ones, and what is known at the
  /// boundaries [boundaries, 2, Hv, max(V, K), K], f32. At [b, 0]: the state
  /// there, or only at the first boundary of a sequence if scans walk to the
  /// others; before the combine kernel, that of the segment in front if it
  /// starts from zero. At [b, 1]: the transition matrix of that segment,
  /// transposed. The first segment of a sequence needs neither.
  ///
  /// For 16-bit inputs and at most 128 key channels, transition matrices are
  /// apart, as two bfloat16 parts [boundaries, 2, Hv, K, K], and so are the
  /// states of segments that start from zero, [boundaries, Hv, V, K], f32: then
  /// the states at the boundaries are [boundaries, 1, Hv, V, K].
  Value chunksOfSegment, boundarySpacing, boundaryStates, transitions,
      localStates;
  ScanPlaces places;
  /// 1 if a scan may read P, else 0.
  Value needsScores;

  /// The factors of raw queries multiply outputs, not rows of P.
  bool scalesOutput() const { return normalises && scoresAhead; }
  /// How operands enter the products of the inverse of 16-bit inputs. Where T
  /// has second parts everywhere, it is as exact as these.
  gdn_tile::ProductPrecision getInversePrecision() const {
    return isUnit ? gdn_tile::ProductPrecision::TF32
                  : gdn_tile::ProductPrecision::BF16x3;
  }
  /// The row of beta, alone or with factors of keys.
  GateRow getBetaRow() const { return hasGateRow(kBeta) ? kBeta : kRest; }

  /// Takes what stands in front of the recurrence into the split phases.
  void takeInputs(const RecurrenceInputs &taken);

  bool hasGateRow(GateRow row) const;
  /// First element of a row of `gates`; of kGateRows, of the flag behind them.
  int64_t getGateRow(GateRow row) const;
  /// Elements of `gates` of a chunk and head.
  int64_t getGatesSize() const {
    return getGateRow(kGateRows) + (isUnit ? kFlagSize : 0);
  }

  /// The op's `slots`, the pool's entry of each sequence, are `entries` here:
  /// slots are those of chunks.
  SequencesOf getSequences() const {
    return {offsets, length, sequences, chunk, every};
  }
  SegmentsOf getSegments() const {
    return {getSequences(), chunksOfSegment, boundarySpacing, getExtraChunks(),
            segmentChunks};
  }
  /// Sequences may have segments.
  bool isCut() const { return chunksOfSegment || boundarySpacing; }
  /// The same for blocks of twice as many rows: where later scans walk, which
  /// such blocks cannot, sequences that have them stay whole.
  bool isWideCut() const { return isCut() && !walksInScan(); }
  SegmentsOf getSegmentsOfWide() const {
    SegmentsOf segments = getSegments();
    if (!isWideCut())
      segments.chunks = segments.spacing = Value();
    return segments;
  }
  /// Of three segments, one is found while the first is scanned, by a kernel
  /// that takes 4/3 of a scan's time; with more, memory bounds both, and what
  /// that kernel takes to start and to end counts: some us longer, as the least
  /// length of a segment follows from such times too.
  ExtraChunks getExtraChunks() const {
    return segments == 3 ? ExtraChunks{0, 3}
                         : ExtraChunks{segmentChunks / 3, 6};
  }
  /// The blocks of later scans find the states in front of their segments
  /// themselves. Those of more rows have no shared memory for it, those with
  /// erase and write no registers. In high precision the tiles fit only where
  /// those of the walk and of the scan take turns in the same bytes, which they
  /// do in roles: key channels that warpgroup products can have.
  bool walksInScan() const {
    return splitsTransitions() && valueBlock == kWalkRows && stages > 1 &&
           hasRoles && !hasErase && !write && (!isHigh || keyPad % 64 == 0);
  }
  bool splitsTransitions() const { return !type.isF32() && keyPad <= 128; }
  /// 1 if sequences have `residentFrom` chunks or more in the mean, else 0.
  Value areLong(ImplicitLocOpBuilder &b) const;
  /// 1 if `count` times `each` is `wideFrom` or more, else 0.
  Value isWide(ImplicitLocOpBuilder &b, Value count, int64_t each) const;
  int64_t getValueBlocks() const {
    return (valueSize + valueBlock - 1) / valueBlock;
  }
};

/// Where part number `part` of a slot and head is in a workspace of `parts`
/// parts; one part has no dimension of its own.
SmallVector<Value> partOf(KernelBuilder &k, Value slot, Value head,
                          int64_t part, int64_t parts);

/// Takes the op that fills the state in front of the recurrence away, and says
/// what it was. Nothing happens where the state might be used in between.
StateStart takeStateStart(RecurrenceOp op);

/// Batch and time as one dimension: the only dynamic one, so that all strides
/// inside a kernel are static. Null for null.
Value flattenBatchAndTime(ImplicitLocOpBuilder &b, Value value);

/// Collects sizes and host values. Emits an error at the op and fails if it
/// has no tile form.
FailureOr<RecurrencePlan> planRecurrence(RecurrenceOp op);

/// Decides which scans there are; with segmented phases behind the length of a
/// segment.
void planScans(RecurrencePlan &plan);
/// The workspaces of the split and the segmented phases.
void allocateWorkspaces(RecurrencePlan &plan);

void buildPrepareKernel(RecurrencePlan &plan);
/// Scans, and with segmented phases what they start from.
void buildScanKernels(RecurrencePlan &plan);
/// The kernels that find the states at the boundaries, from that at the first:
/// they run between the scans of the first segments and of all others.
void buildSegmentKernels(RecurrencePlan &plan);
/// The part of it that walks the boundaries, where transition matrices are
/// split; the grid times `needed`.
void buildTransitionScan(RecurrencePlan &plan, Value needed);
/// An error at the op if the state of a block does not fit the registers.
LogicalResult buildStepKernel(RecurrencePlan &plan);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCEPLAN_H
