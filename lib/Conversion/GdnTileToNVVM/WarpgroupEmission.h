//===- WarpgroupEmission.h - the text of wgmma -------------------*- C++
//-*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_WARPGROUPEMISSION_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_WARPGROUPEMISSION_H

#include "Emitter.h"

#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"

#include <string>

namespace mlir::gdn {

/// An operand in shared memory: its descriptor, none without a base, and the
/// distance of a k step of 16 from the first, in descriptor units. Transposed:
/// the rows are those of n, or of a left operand. Or in panels of 16 columns
/// with `panelRows` rows n.
struct SharedOperand {
  SharedOperand(Emitter &e, MemRefType tile, bool isTransposed, Value base,
                int64_t panelRows = 0);
  /// From row `firstRow` on if it is transposed.
  int64_t stepOffset(int64_t k, int64_t firstRow = 0) const;
  /// Of one without a base: the descriptor in the 64-bit register `to` from an
  /// address, with `scratch` of 32 bits.
  std::string getDescriptor(StringRef to, StringRef address,
                            StringRef scratch) const;

  gdn_tile::SharedLayout layout;
  bool isKMajor;
  int64_t panelRows;
  /// All but the address.
  int64_t constant;
  Value descriptor;
};

/// "{$first, $first+1, ...}".
std::string getRegisters(int64_t first, int64_t count);

/// "=f,=f,..." and the ties ",0,1,..." of `count` accumulators.
std::pair<std::string, std::string> getAccumulatorConstraints(int64_t count);

std::string getWait(int64_t pending);

/// Assembly with `count` results of f32.
SmallVector<Value> emitAsm(Emitter &e, StringRef text, StringRef constraints,
                           int64_t count, ValueRange operands);

/// Names of the operands of a group of wgmma: of its accumulator, of the
/// registers of a step of the left operand, or of that one's descriptor, and of
/// the right one's, from its row `firstRow` on if it is transposed.
struct ProductNames {
  std::string acc;
  llvm::function_ref<std::string(int64_t number)> left;
  std::string leftDescriptor, descriptor;
  int64_t firstRow = 0;
};

/// A group of wgmma in the steps of k; registers `all` and, if it starts from
/// nothing, `none` are predicates, `d` and `l` descriptors. The left operand is
/// in registers, or the tile `left`.
std::string getProducts(VectorType a, const SharedOperand &right, int64_t n,
                        const ProductNames &names, bool startsFromZero,
                        const SharedOperand *left = nullptr);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_WARPGROUPEMISSION_H
