//===- AccessAnalysis.cpp - divisors of indices ---------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;

/// A number that divides `value` for certain; 0 if the value is zero.
static int64_t getDivisor(Value value, int depth = 0) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return std::abs(constant.getSExtValue());
  constexpr int maxDepth = 8;
  if (depth == maxDepth)
    return 1;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop =
        dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || loop.getInductionVar() != value)
      return 1;
    return std::gcd(getDivisor(loop.getLowerBound(), depth + 1),
                    getDivisor(loop.getStep(), depth + 1));
  }
  Operation *op = value.getDefiningOp();
  auto of = [&](unsigned i) {
    return getDivisor(op->getOperand(i), depth + 1);
  };
  if (isa<arith::MulIOp>(op))
    return of(0) * of(1);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
          arith::RemSIOp, arith::RemUIOp>(op))
    return std::gcd(of(0), of(1));
  if (isa<arith::SelectOp>(op))
    return std::gcd(of(1), of(2));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return of(0);
  return 1;
}

namespace {
/// Smallest and largest value.
struct IndexRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
} // namespace

/// What is known of `value`; enough for "size minus start of the block".
static IndexRange getRange(Value value, int depth = 0) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {constant.getSExtValue(), constant.getSExtValue()};
  constexpr int maxDepth = 8;
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth)
    return {};
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (isa<gdn_tile::BlockIdOp>(op))
    return {0, limit};
  if (op->getNumOperands() != 2)
    return {};
  IndexRange a = getRange(op->getOperand(0), depth + 1);
  IndexRange b = getRange(op->getOperand(1), depth + 1);
  if (isa<arith::MinSIOp>(op))
    return {std::min(a.min, b.min), std::min(a.max, b.max)};
  if (isa<arith::MaxSIOp>(op))
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  if (isa<arith::AndIOp>(op) && b.min >= 0)
    return {0, b.max};
  if (a.min < 0)
    return {};
  if (isa<arith::RemSIOp, arith::RemUIOp>(op) && b.min > 0)
    return {0, std::min(a.max, b.max - 1)};
  if (isa<arith::DivSIOp, arith::DivUIOp>(op) && b.min > 0)
    return {a.min / b.max, a.max / b.min};
  // Small numbers only: nothing below can overflow.
  if (b.min < 0 || a.max > limit || b.max > limit)
    return {};
  if (isa<arith::MulIOp>(op))
    return {a.min * b.min, a.max * b.max};
  if (isa<arith::AddIOp>(op))
    return {a.min + b.min, a.max + b.max};
  if (isa<arith::SubIOp>(op))
    return {a.min - b.max, a.max - b.min};
  return {};
}

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

int64_t mlir::gdn::getMaximum(Value index) { return getRange(index).max; }

SmallVector<int64_t> mlir::gdn::getStaticStrides(MemRefType type) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t d = type.getRank() - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * type.getDimSize(d + 1);
  return strides;
}

AccessInfo mlir::gdn::analyzeAccess(MemRefType memref, ValueRange indices,
                                    ArrayRef<int64_t> dims, ValueRange valid) {
  AccessInfo info;
  int64_t bytes = memref.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides = getStaticStrides(memref);
  int64_t divisor = 16;
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    info.indices.push_back(getConstant(index));
    info.indexMultiples.push_back(getDivisor(index));
    divisor = std::gcd(divisor, info.indexMultiples.back() * stride * bytes);
  }
  for (int64_t dim : dims)
    if (strides[dim] != 1)
      divisor = std::gcd(divisor, strides[dim] * bytes);
  info.alignment = divisor;
  for (Value bound : valid) {
    info.leastValid.push_back(getRange(bound).min);
    info.valid.push_back(getConstant(bound));
    info.validMultiples.push_back(getDivisor(bound));
  }
  return info;
}
