//===- SequenceOps.cpp - gdn_tile ops on packed sequences -----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn_tile;

LogicalResult FindSequenceOp::verify() {
  auto offsets = cast<MemRefType>(getOffsets().getType());
  Type type = offsets.getElementType();
  if (offsets.getRank() != 1 || !(type.isInteger(32) || type.isInteger(64)) ||
      !offsets.getLayout().isIdentity() || isShared(offsets))
    return emitOpError("expects offsets of i32 or i64 in one dimension of "
                       "global memory, but has ")
           << offsets;
  if (!llvm::isPowerOf2_64(getChunk()))
    return emitOpError("expects chunks of a power of two of tokens, but they "
                       "have ")
           << static_cast<int64_t>(getChunk());
  return success();
}

void FindSequenceOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getOffsetsMutable(),
                       SideEffects::DefaultResource::get());
}
