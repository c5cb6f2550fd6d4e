//===- LoopCopies.h - copies of a loop that can run ahead -------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_LOOPCOPIES_H
#define GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_LOOPCOPIES_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn_tile {

/// Whether `root`, or an op in its regions, may write to `memref` or to a view
/// of it.
bool isWrittenIn(Operation *root, Value memref);

/// The ops of a loop's body that compute values from the induction variable and
/// from outside, in order. They can be repeated for any other iteration.
class LoopSlice {
public:
  explicit LoopSlice(scf::ForOp loop) : loop(loop) {}

  /// Adds what `values` need; false, and nothing, if there is more to it.
  bool add(ValueRange values);
  ArrayRef<Operation *> getOps() const { return ops.getArrayRef(); }

private:
  bool add(Value value, llvm::SetVector<Operation *> &to);

  scf::ForOp loop;
  llvm::SetVector<Operation *> ops;
};

/// The copies into shared memory that can run ahead of the rest of a loop, and
/// what their indices and bounds need.
struct LoopCopies {
  SmallVector<CopyInOp> copies;
  ArrayRef<Operation *> getSlice() const { return slice.getOps(); }

  LoopSlice slice;
};

LoopCopies findLoopCopies(scf::ForOp loop);

} // namespace mlir::gdn_tile

#endif // GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_LOOPCOPIES_H
