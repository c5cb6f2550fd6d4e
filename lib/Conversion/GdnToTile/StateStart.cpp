//===- StateStart.cpp - where a kernel takes its initial state from -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function that has its initial state elsewhere, or none, fills the state's
// destination in front of the recurrence. The kernel can read the source
// itself: that saves a launch, and the state's way through memory.
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"
#include "RowKernels.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;

/// True if `op` does nothing to the memory of a memref it is given.
static bool onlyLooksAtSizes(Operation *op) { return isa<memref::DimOp>(op); }

/// The op that fills the state in front of `op`; null if anything else might
/// see or change the state in between.
static Operation *findFill(RecurrenceOp op) {
  Value state = op.getState();
  Operation *fill = nullptr;
  for (Operation *user : state.getUsers()) {
    if (user == op || onlyLooksAtSizes(user) ||
        user->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (user->getBlock() != op->getBlock() || isa<ViewLikeOpInterface>(user))
      return nullptr;
    if (op->isBeforeInBlock(user))
      continue;
    if (fill)
      return nullptr;
    fill = user;
  }
  return fill;
}

/// True if nothing but `fill` uses `source` from `fill` to `op`.
static bool isUntouched(Value source, Operation *fill, Operation *op) {
  return llvm::all_of(source.getUsers(), [&](Operation *user) {
    if (user == fill || onlyLooksAtSizes(user))
      return true;
    if (isa<ViewLikeOpInterface>(user) || user->getBlock() != op->getBlock())
      return user->hasTrait<OpTrait::IsTerminator>();
    return user->isBeforeInBlock(fill) || op->isBeforeInBlock(user);
  });
}

/// The source of a copy, possibly to another type of floats.
static Value getSource(Operation *fill, Value state) {
  if (auto copy = dyn_cast<memref::CopyOp>(fill))
    return copy.getTarget() == state ? copy.getSource() : Value();
  auto linalgOp = dyn_cast<linalg::LinalgOp>(fill);
  if (!linalgOp || linalgOp.getNumDpsInputs() != 1 ||
      linalgOp.getNumDpsInits() != 1 || linalgOp.getDpsInits()[0] != state ||
      !llvm::all_of(linalgOp.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return Value();
  Value value = linalgOp.getBlock()->getTerminator()->getOperand(0);
  if (Operation *cast = value.getDefiningOp())
    value = isa<arith::ExtFOp, arith::TruncFOp>(cast) ? cast->getOperand(0)
                                                      : Value();
  return value == linalgOp.getBlock()->getArgument(0)
             ? linalgOp.getDpsInputs()[0]
             : Value();
}

/// True for a constant of zeros.
static bool isZeroGlobal(memref::GetGlobalOp op) {
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
      op, op.getNameAttr());
  auto value = dyn_cast_or_null<DenseFPElementsAttr>(
      global.getInitialValue().value_or(Attribute()));
  return value && value.isSplat() && value.getSplatValue<APFloat>().isZero();
}

StateStart mlir::gdn::takeStateStart(RecurrenceOp op) {
  Value state = op.getState();
  if (!state || op.getSlots() || !op.isBufferized())
    return {};
  Operation *fill = findFill(op);
  if (!fill)
    return {};
  if (auto zero = dyn_cast<linalg::FillOp>(fill)) {
    if (zero.output() != state || !matchPattern(zero.value(), m_AnyZeroFloat()))
      return {};
    fill->erase();
    return {Value(), /*isZero=*/true};
  }
  Value source = getSource(fill, state);
  if (source)
    if (auto constant = source.getDefiningOp<memref::GetGlobalOp>()) {
      if (!isZeroGlobal(constant))
        return {};
      fill->erase();
      return {Value(), /*isZero=*/true};
    }
  if (!source || !hasRows(source) || !isUntouched(source, fill, op))
    return {};
  fill->erase();
  return {source, /*isZero=*/false};
}
