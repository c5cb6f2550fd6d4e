//===- Addressing.h - addresses of elements ---------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_ADDRESSING_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_ADDRESSING_H

#include "Emitter.h"
#include "KernelLowering.h"
#include <map>

namespace mlir::gdn {

/// A coordinate of a thread: a value known only at run time (null for zero) in
/// which at most the given bits are set (-1: unknown).
struct ThreadPart {
  Value value;
  int64_t bits = 0;

  static ThreadPart get(Emitter &emitter, ArrayRef<gdn_tile::ThreadTerm> terms,
                        int64_t numThreads);
  ThreadPart add(Emitter &emitter, const ThreadPart &other) const;
  ThreadPart scale(Emitter &emitter, int64_t factor) const;
};

/// Addresses (row + constant, column + constant) in a shared tile, row and
/// column of the calling thread. Where the bits of the constants and of the
/// thread's part do not meet, the swizzle splits into an exclusive or with a
/// constant, so that a whole tile needs one address register per 16-byte chunk
/// of a panel row and immediate offsets for the rest.
class SharedAddress {
public:
  SharedAddress(Emitter &emitter, gdn_tile::SharedLayout layout, Value base,
                ThreadPart row, ThreadPart col);

  /// Pointer to the element at constant distance from the thread's.
  Value at(int64_t row, int64_t col);

private:
  Value getThreadOffset(const ThreadPart &row, const ThreadPart &colBytes);

  Emitter &e;
  gdn_tile::SharedLayout layout;
  Value base;
  ThreadPart row, colBytes;
  Value offset;
  std::map<int64_t, Value> swizzled;
};

/// The values of operands that have one each.
SmallVector<Value> flatten(ArrayRef<ValueRange> operands);

/// Address of a memref element; `indices` are i64.
Value getGlobalAddress(Emitter &emitter, Value base, MemRefType type,
                       ValueRange indices);
Value getSharedElement(Emitter &emitter, Value base, MemRefType type,
                       ValueRange indices);

/// Addresses of the elements of a fragment in the memref of a load or store.
class FragmentAddress {
public:
  /// `base` and `indices` are the converted operands.
  FragmentAddress(Emitter &emitter, const KernelLowering &kernel,
                  MemRefType memref, Value base, ValueRange indices,
                  const AccessInfo &access, ArrayRef<int64_t> dims,
                  VectorType fragment, const gdn_tile::FragmentLayout &layout);

  /// Pointer to the element at the thread's first row and column plus
  /// constants.
  Value at(int64_t row, int64_t col);

  /// The fragment's rows (0) or columns (1) run along these dimensions of the
  /// memref; -1 where the fragment has a single row or column.
  int64_t getDim(bool columns) const { return fragmentDims[columns]; }

private:
  void initGlobal(const KernelLowering &kernel, Value base, ValueRange indices,
                  const gdn_tile::FragmentLayout &layout);
  void initShared(const KernelLowering &kernel, Value base, ValueRange indices,
                  const AccessInfo &access,
                  const gdn_tile::FragmentLayout &layout);

  Emitter &e;
  MemRefType memref;
  int64_t fragmentDims[2] = {-1, -1};
  // Global memory.
  Value pointer;
  int64_t rowBytes = 0, colBytes = 0;
  // Shared memory: constant parts of the tile's row and column.
  std::optional<SharedAddress> shared;
  int64_t tileConst[2] = {0, 0};
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_ADDRESSING_H
