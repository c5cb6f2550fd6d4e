//===- RecurrenceInputs.cpp - what kernels make of raw inputs -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceInputs.h"

#include "RowKernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::gdn;

/// Key channels of which a block has the tiles at once, with gates per channel.
constexpr int64_t kMaxNormalisedKeys = 128;
/// Of a norm that products have as a factor: tokens behind the end have zeros,
/// which no factor may be infinite for.
constexpr double kLeastEps = 1e-12;

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
/// That may be the reader: some of its blocks write what others still read.
static bool writesBetween(Operation *user, Value value, Operation *producer,
                          Operation *reader) {
  if (user == producer || isa<memref::DimOp, ViewLikeOpInterface>(user))
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

RecurrenceInputs RecurrenceInputs::findAll(RecurrenceOp op) {
  RecurrenceInputs inputs;
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

// In the split and segmented phases the kernel `prepare` does it. With a warp
// for each value head what normalises keys and queries are factors of products
// and of what the scan rounds, which has the range of f32 in bf16 alone: a key
// of norm 1e-3 has the factor 1000. With gates per channel they are factors of
// copies, so that these are normalised; all channels are needed for them.
RecurrenceInputs RecurrenceInputs::find(RecurrenceOp op) {
  ScheduleAttr schedule = *op.getSchedule();
  Type type = op.getQType().getElementType();
  if (schedule.getPhases() == Phases::Step)
    return findAll(op);
  bool hasChannels = op.hasChannelGate();
  if (schedule.getPhases() == Phases::Fused || type.isF32() ||
      (op.getErase() && !hasChannels))
    return {};
  RecurrenceInputs inputs = findAll(op);
  bool canNormalise =
      hasChannels ? !schedule.isHigh() && op.getKeySize() <= kMaxNormalisedKeys
                  : type.isBF16();
  for (L2NormOp norm : {inputs.qNorm, inputs.kNorm})
    canNormalise &= norm && norm.getEps().convertToDouble() >= kLeastEps;
  if (!canNormalise)
    inputs.qNorm = inputs.kNorm = L2NormOp();
  // The kernel adds gates up while it copies them.
  if (hasChannels) {
    inputs.gate = GateOp();
    inputs.gateMap = linalg::LinalgOp();
  }
  return inputs;
}

Value RecurrenceInputs::emitTokens(KernelBuilder &k, Value made, Value count) {
  auto type = cast<VectorType>(made.getType());
  Shape2 shape{type.getDimSize(0), type.getDimSize(1)};
  Value limit = arith::IndexCastOp::create(k, k.getI32Type(), count);
  bool isColumn = shape.rows != 1;
  Value token =
      k.iota(isColumn ? Shape2{shape.rows, 1} : Shape2{1, shape.cols});
  Value isToken = k.compare(arith::CmpIPredicate::slt, token, limit);
  return k.select(k.broadcast(isToken, shape), made, k.constant(0.0));
}

Value RecurrenceInputs::emitBeta(KernelBuilder &k, Value x) const {
  linalg::LinalgOp map = betaMap;
  if (map)
    x = applyBody(k, map, {x, Value()}, x.getType());
  return k.convert(x, k.getF32Type());
}

Value RecurrenceInputs::emitGate(KernelBuilder &k, Value x, Value rate,
                                 Value bias) const {
  if (linalg::LinalgOp map = gateMap)
    x = applyBody(k, map, {x, Value()}, x.getType());
  x = k.convert(x, k.getF32Type());
  if (!gate)
    return x;
  if (bias)
    x = k.fadd(x, k.convert(bias, k.getF32Type()));
  return emitLogGate(k, x, rate, GateOp(gate).getLowerBound());
}

Value mlir::gdn::emitNormFactor(KernelBuilder &k, Value squares,
                                L2NormOp norm) {
  return math::RsqrtOp::create(
      k, k.fadd(squares, k.constant(norm.getEps().convertToDouble())));
}

SmallVector<Operation *> RecurrenceInputs::getOps() const {
  SmallVector<Operation *> ops;
  for (Operation *op :
       {L2NormOp(qNorm).getOperation(), L2NormOp(kNorm).getOperation(),
        GateOp(gate).getOperation(), linalg::LinalgOp(gateMap).getOperation(),
        linalg::LinalgOp(betaMap).getOperation()})
    if (op)
      ops.push_back(op);
  return ops;
}
