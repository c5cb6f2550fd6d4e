//===- Sequences.h - dense or packed sequences in a kernel ------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SEQUENCES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SEQUENCES_H

#include "KernelBuilder.h"

namespace mlir::gdn {

/// Host side: N sequences of `length` tokens each, or packed ones with offsets,
/// cut into chunks. A *slot* is the place of one chunk in a workspace or grid.
/// Dense sequences take ceil(T / C) slots each; with offsets, sequence n starts
/// at slot offsets[n] / C + n, which leaves room for every partial chunk and
/// needs no table.
struct SequencesOf {
  Value offsets, length, sequences;
  int64_t chunk;
  /// Tokens between checkpoints; 0 = none.
  int64_t every = 0;

  /// Number of slots.
  Value countSlots(ImplicitLocOpBuilder &host) const;
};

/// Kernel side: rows of one sequence.
struct Sequence {
  Value firstRow, length, firstSlot;
  /// The row of its first checkpoint, if there are any.
  Value firstCheckpoint;
};

/// Kernel side: one chunk.
struct Chunk {
  /// Its sequence and the first token in it.
  Value n, start;
  /// The first row and the rows left from there in the sequence; none or fewer
  /// for a slot between packed sequences.
  Value row, left;
};

/// Where the state of a sequence lies: entry `index` of it, if `isLive` (null:
/// always).
struct StateEntry {
  Value index, isLive;

  /// The entry of sequence `n`, given the kernel's argument of entries or null.
  static StateEntry get(KernelBuilder &k, Value entries, Value n);

  /// `count` elements of it, none if there is no state.
  Value bound(KernelBuilder &k, Value count) const;
};

class SequenceMap {
public:
  /// Adds the arguments that it needs to the kernel.
  SequenceMap(KernelBuilder &k, const SequencesOf &of);
  Sequence at(Value n);
  Chunk chunkAt(Value slot);

  bool isPacked() const { return static_cast<bool>(offsets); }
  /// The last packed sequence whose `placeOf(start, n)` is not behind `place`;
  /// places must not decrease with n.
  Value findPacked(Value place, function_ref<Value(Value, Value)> placeOf);

private:
  Value find(Value slot);
  Value firstSlot(Value start, Value n);

  KernelBuilder &k;
  int64_t chunk, every;
  Value offsets, length, sequences;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SEQUENCES_H
