//===- BulkCopies.h - copies of whole tiles by one instruction --*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_BULKCOPIES_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_BULKCOPIES_H

#include "KernelLowering.h"
#include "gdn/Dialect/GdnTile/IR/TensorMap.h"

namespace mlir::gdn {

/// Whether all of a tile is valid, the same in all threads; null if it always
/// is.
Value isWholeTile(Emitter &emitter, const AccessInfo &access, MemRefType tile,
                  ArrayRef<ValueRange> valid);

/// A tile that the copy engine moves when one of the threads says so: by a
/// tensor map, or as so many bytes in a row. The engine is a memory proxy of
/// its own, so fences stand where threads and engine touch the same bytes one
/// after the other.
class BulkCopy {
public:
  /// `map` and `tile` are converted operands, `indices` those of the op.
  BulkCopy(Emitter &emitter, ThreadSet threads, gdn_tile::TensorMapType type,
           Value map, Value tile, ArrayRef<ValueRange> indices);
  /// `bytes` from `source` on, in global memory.
  BulkCopy(Emitter &emitter, ThreadSet threads, Value source, Value tile,
           int64_t bytes);

  /// Global to shared memory. `barrier` expects the bytes beside its arrivals:
  /// its phase does not end before they are there.
  void load(Value barrier);
  /// The same of several that are `bytes` together. They are built where the
  /// one thread is: the addresses of all would not fit the registers of warps
  /// that copy.
  static void load(Emitter &emitter, ThreadSet threads, int64_t bytes,
                   Value barrier,
                   function_ref<void(SmallVectorImpl<BulkCopy> &)> build);
  /// The same for all of the threads, which wait; `scratch` is an mbarrier of
  /// this copy only, `barrier` lets them wait for each other.
  void loadAndWait(Value scratch, function_ref<void()> barrier);
  /// Shared to global memory, by a tensor map; behind it that one thread may
  /// let others write the tile again.
  void store();

private:
  void issueLoad(Value barrier);

  Emitter &e;
  ThreadSet threads;
  /// The map, or the address of the source if there are no coordinates.
  Value source;
  Value tile;
  int64_t bytes;
  SmallVector<Value> coordinates;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_BULKCOPIES_H
