//===- Products.h - how products of a block depend on each other *- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_PRODUCTS_H
#define GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_PRODUCTS_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

namespace mlir::gdn_tile {

/// How many products, one behind the other, have to be complete before a value
/// of a block is there. A product needs its left operand complete; its
/// accumulator may still be in flight. A branch with a product counts as one.
class ProductLevels {
public:
  explicit ProductLevels(Block &block);

  /// Level of a value; 0 if it comes from outside of the block.
  int64_t of(Value value) const { return levels.lookup(value); }
  /// Level at which an op can run: the highest of what it uses. A product: of
  /// all but its accumulator.
  int64_t ofUses(Operation *op) const { return uses.lookup(op); }

private:
  DenseMap<Value, int64_t> levels;
  DenseMap<Operation *, int64_t> uses;
};

/// The values that an op and the ops in its regions use from outside.
SmallVector<Value> getUsedValues(Operation *op);

/// Whether two ops, in this order, must stay in it because of memory: one
/// writes what the other reads or writes, or one is a step of a ring that the
/// other must not cross.
bool areOrdered(Operation *before, Operation *after);

} // namespace mlir::gdn_tile

#endif // GDN_LIB_DIALECT_GDNTILE_TRANSFORMS_PRODUCTS_H
