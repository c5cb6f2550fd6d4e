//===- Segments.h - sequences cut into segments in a kernel -----*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SEGMENTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SEGMENTS_H

#include "Sequences.h"

namespace mlir::gdn {

/// A sequence is cut that has more chunks than so many times the least length
/// of a segment, if its chunks times the number of its segments but two are
/// more than so many times that length but one: few segments save less than
/// they cost.
constexpr int64_t kLeastChunks = 4, kLeastGain = 11;

/// The first segment of a sequence has E = `always` + ceil(L / `chunksPerOne`)
/// chunks more than the others, L: it is scanned beside a kernel that takes
/// longer for a chunk, and to start and to end.
struct ExtraChunks {
  int64_t always, chunksPerOne;
};

/// Host side: sequences cut into segments of L chunks, the first of a sequence
/// with `extra` ones more, the last with fewer; an empty sequence is one
/// segment of no chunks. The *boundary* behind a segment is numbered like the
/// segment; the last has none, so a sequence of b boundaries has b + 1
/// segments.
///
/// Dense sequences have one L, `chunks`, and the place of boundary j in a grid
/// or workspace is n b + j. Of packed ones the host knows the sum of their
/// lengths alone, and each has an L of its own: one boundary for every
/// `spacing` tokens, of which that with number j has its place at offsets[n] /
/// `spacing` + j. So all have room, and there are as many places as `spacing`
/// fits into the sum, whatever the lengths are. The segment behind a boundary
/// has its place; the first segment of a sequence has n.
struct SegmentsOf {
  SequencesOf sequences;
  /// Both null: every sequence is one segment, and there are no boundaries.
  Value chunks, spacing;
  ExtraChunks extra;
  int64_t leastChunks;

  /// Number of places of boundaries, and so of segments behind one.
  Value countBoundaries(ImplicitLocOpBuilder &host) const;
  /// Number of places of segments between two boundaries.
  Value countInner(ImplicitLocOpBuilder &host) const;
  /// Boundaries of each sequence, an upper bound for packed ones.
  Value boundariesOfEach(ImplicitLocOpBuilder &host) const;
};

/// Kernel side: one segment.
struct Segment {
  /// Its sequence; its rows, none where a place holds no segment.
  Value n;
  Sequence rows;
  /// Its first token in the sequence, its number there and the boundaries of
  /// the sequence; whether it is the last segment. Null where every sequence is
  /// one segment.
  Value start, index, boundaries, isLast;
};

class SegmentMap {
public:
  /// Adds the arguments that it needs to the kernel.
  SegmentMap(KernelBuilder &k, const SegmentsOf &of);
  /// The first segment of the sequence at a place, or, if `isLater` is 1 and
  /// not 0, the segment behind the boundary there. Without segments `isLater`
  /// is null.
  Segment at(Value place, Value isLater);
  /// A segment between two boundaries, or, of packed sequences, in front of any
  /// boundary.
  Segment inner(Value place);
  /// A sequence as a segment: all of its rows.
  Segment sequence(Value n);
  /// The place of the first boundary of a segment's sequence, found where this
  /// is called.
  Value firstBoundary(const Segment &segment);
  /// For a segment `at` a place.
  Value isFirstOfSeveral(const Segment &segment, Value isLater);

private:
  /// Chunks and tokens of a segment, and those that the first has more.
  struct Lengths {
    Value chunks, tokens, extraChunks, extraTokens;
  };
  Lengths withExtra(Value chunks);
  Value divide(Value a, Value b);
  /// Those of a packed sequence, and its boundaries.
  Lengths cut(Value length);
  Value countBoundaries(Value length, const Lengths &lengths);
  Segment sequence(Value n, Lengths &lengths);
  Segment segmentOf(Value n, Value index);

  KernelBuilder &k;
  SequenceMap sequences;
  int64_t chunk;
  ExtraChunks extra;
  int64_t leastChunks;
  /// Of dense sequences that are cut.
  Lengths each;
  Value boundariesOfEach;
  /// Of packed ones.
  Value spacing;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SEGMENTS_H
