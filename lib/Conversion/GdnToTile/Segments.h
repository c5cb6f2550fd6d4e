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

/// Host side: sequences cut into segments of `chunks` chunks, the first of a
/// sequence with one more for every `chunksPerExtra`, the last with fewer; an
/// empty sequence is one segment of no chunks. The *boundary* behind a segment
/// is numbered like the segment; the last has none, so a sequence of b
/// boundaries has b + 1 segments.
///
/// With X tokens per segment, the place of boundary j in a grid or workspace is
/// n b + j. Packed sequences, whose lengths the host does not know, have it at
/// offsets[n] / X + j: that leaves room for all. The segment behind a boundary
/// has its place; the first segment of a sequence has n.
struct SegmentsOf {
  SequencesOf sequences;
  /// Null: every sequence is one segment, and there are no boundaries.
  Value chunks;
  int64_t chunksPerExtra;

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
  /// Its first token in the sequence, its number there, the boundaries of the
  /// sequence and the place of the first. Null where every sequence is one
  /// segment.
  Value start, index, boundaries, firstBoundary;
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

private:
  Segment segmentOf(Value n, Value index);

  KernelBuilder &k;
  SequenceMap sequences;
  /// Chunks and tokens of a segment and those that a first one has more, and
  /// the boundaries of a dense sequence.
  Value chunks, tokens, extraChunks, extraTokens, boundariesOfEach;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SEGMENTS_H
