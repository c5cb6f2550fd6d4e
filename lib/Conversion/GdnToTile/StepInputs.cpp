//===- StepInputs.cpp - what a step kernel computes of its inputs ---------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepInputs.h"

#include "RowKernels.h"

using namespace mlir;
using namespace mlir::gdn;

/// The op that writes `buffer`, if the buffer is made for it: an allocation in
/// the block of `reader` that the two alone use.
static Operation *findProducer(Value buffer, Operation *reader) {
  if (!buffer || !buffer.getDefiningOp<memref::AllocOp>())
    return nullptr;
  Operation *producer = nullptr;
  for (Operation *user : buffer.getUsers()) {
    if (user == reader || isa<memref::DimOp>(user))
      continue;
    if (producer || user->getBlock() != reader->getBlock() ||
        !user->isBeforeInBlock(reader))
      return nullptr;
    producer = user;
  }
  return producer;
}

/// The memory behind `value` and all views of it.
static SmallVector<Value> getAliases(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  SmallVector<Value> aliases = {value};
  for (size_t i = 0; i < aliases.size(); ++i)
    for (Operation *user : aliases[i].getUsers())
      if (isa<ViewLikeOpInterface>(user))
        llvm::append_range(aliases, user->getResults());
  return aliases;
}

/// True if `user` stands from `producer` to `reader` and may write to `value`.
static bool writesBetween(Operation *user, Value value, Operation *producer,
                          Operation *reader) {
  if (user == producer || user == reader ||
      isa<memref::DimOp, ViewLikeOpInterface>(user))
    return false;
  if (user->getBlock() != reader->getBlock())
    return true;
  if (user->isBeforeInBlock(producer) || reader->isBeforeInBlock(user))
    return false;
  auto effects = dyn_cast<DestinationStyleOpInterface>(user);
  return !effects || llvm::is_contained(effects.getDpsInits(), value);
}

/// True if nothing from `producer` to `reader` may write to an operand of the
/// producer.
static bool keepsOperands(Operation *producer, Operation *reader) {
  for (Value operand : producer->getOperands())
    if (isa<MemRefType>(operand.getType()))
      for (Value alias : getAliases(operand))
        for (Operation *user : alias.getUsers())
          if (writesBetween(user, alias, producer, reader))
            return false;
  return true;
}

template <typename Op>
static Op findOp(Value buffer, Operation *reader) {
  auto producer = dyn_cast_or_null<Op>(findProducer(buffer, reader));
  return producer && keepsOperands(producer, reader) ? producer : Op();
}

/// One operand of the shape of the result, and a body of floats.
static linalg::LinalgOp findMap(Value buffer, Operation *reader) {
  auto map = findOp<linalg::LinalgOp>(buffer, reader);
  if (!map || !isElementwiseOnFloats(map) || map.getNumDpsInputs() != 1 ||
      !llvm::all_of(map.getIndexingMapsArray(),
                    [](AffineMap m) { return m.isIdentity(); }) ||
      !map.getBlock()->getArgument(1).use_empty())
    return {};
  return map;
}

/// Of the whole of its input.
static L2NormOp findNorm(Value buffer, Operation *reader) {
  auto norm = findOp<L2NormOp>(buffer, reader);
  return norm && getWhole(norm.getX()) ? norm : L2NormOp();
}

StepInputs StepInputs::find(RecurrenceOp op) {
  StepInputs inputs;
  // One normalisation may serve both.
  if (op.getQ() == op.getK())
    return inputs;
  inputs.qNorm = findNorm(op.getQ(), op);
  inputs.kNorm = findNorm(op.getK(), op);
  inputs.gate = findOp<GateOp>(op.getGate(), op);
  inputs.gateMap = findMap(op.getGate(), op);
  inputs.betaMap = findMap(op.getBeta(), op);
  return inputs;
}

SmallVector<Operation *> StepInputs::getOps() const {
  SmallVector<Operation *> ops;
  for (Operation *op :
       {L2NormOp(qNorm).getOperation(), L2NormOp(kNorm).getOperation(),
        GateOp(gate).getOperation(), linalg::LinalgOp(gateMap).getOperation(),
        linalg::LinalgOp(betaMap).getOperation()})
    if (op)
      ops.push_back(op);
  return ops;
}
