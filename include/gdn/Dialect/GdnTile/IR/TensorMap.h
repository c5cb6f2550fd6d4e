//===- TensorMap.h - descriptors of the copy engine -------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_TENSORMAP_H
#define GDN_DIALECT_GDNTILE_IR_TENSORMAP_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

namespace mlir::gdn_tile {

/// One dimension of a tensor map.
struct TensorMapDim {
  /// The neighbouring dimensions of the memref that it runs over, the outermost
  /// first; none for the panels of the shared tile.
  SmallVector<int64_t> sourceDims;
  /// Bytes from one of its elements to the next.
  int64_t strideBytes;
  /// Elements of a tile.
  int64_t box;
};

/// The dimensions of a tensor map, the innermost first. Neither more than five
/// nor any that has a single element.
SmallVector<TensorMapDim> getTensorMapDims(TensorMapType type);

/// Bytes of a panel of its tile, which is the span of its swizzle.
int64_t getSwizzleBytes(TensorMapType type);

/// The map for copies between a memref in global memory and a shared tile of
/// rank 2 that runs along `dims` and of which `valid` elements are moved; null
/// if there is none, or if the tile is never valid as a whole.
TensorMapType getTensorMapFor(MemRefType global, MemRefType tile,
                              ArrayRef<int64_t> dims, ValueRange valid);

/// Whether a tile of rank 1 is a row of bytes that the copy engine can move
/// without a map: contiguous, in multiples of 16 bytes.
bool isBulkRow(CopyInOp copy);

} // namespace mlir::gdn_tile

#endif // GDN_DIALECT_GDNTILE_IR_TENSORMAP_H
