//===- StepKernel.cpp - what the step kernels share -----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the loads is that of the time they need: the slot first, since
// the address of the state waits for it, then what belongs to the tokens, then
// the state. Sequences without a state branch off in front of the last.
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

// With more tokens than this their loads wait in registers for too long.
static constexpr int64_t kMaxTokens = 8;
// Of a block of one warp, token by token.
static constexpr int64_t kWideRows = 8;

StepKernel::StepKernel(RecurrencePlan &plan, StringRef name, int64_t values,
                       int64_t warps, int64_t lanes, int64_t chunk,
                       int64_t blocksPerSM)
    : plan(plan), values(values),
      k(plan.op, name,
        gdn_tile::KernelAttr::get(plan.op.getContext(), warps,
                                  gdn_tile::FragmentLayoutKind::Rows, lanes,
                                  chunk, blocksPerSM)),
      sequences(k, plan.getSequences()) {
  std::optional<int64_t> length = getConstantIntValue(plan.length);
  if (!plan.offsets && length && *length <= kMaxTokens)
    tokens = *length;
}

// The kernel takes `source` if it makes the operand of it itself.
Value StepKernel::argumentOr(Value source, Value operand) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  return k.argument(source ? flattenBatchAndTime(host, getWhole(source))
                           : operand);
}

void StepKernel::addArguments() {
  RecurrenceInputs &inputs = plan.inputs;
  auto inputOf = [](linalg::LinalgOp map) {
    return map ? map.getDpsInputs()[0] : Value();
  };
  q = argumentOr(inputs.qNorm ? inputs.qNorm.getX() : Value(), plan.q);
  key = argumentOr(inputs.kNorm ? inputs.kNorm.getX() : Value(), plan.k);
  v = k.argument(plan.v);
  gate = argumentOr(inputs.gate ? inputs.gate.getA() : inputOf(inputs.gateMap),
                    plan.gate);
  if (inputs.gate) {
    rate = k.argument(inputs.gate.getALog());
    bias = k.argument(inputs.gate.getBias());
  }
  beta = argumentOr(inputOf(inputs.betaMap), plan.beta);
  erase = k.argument(plan.erase);
  write = k.argument(plan.write);
  out = k.argument(plan.out);
  entries = k.argument(plan.entries);
  state = k.argument(plan.state);
  start = plan.start.source ? k.argument(plan.start.source) : state;
  checkpoints = k.argument(plan.checkpoints);
}

// The block's part of matrix `index` of the states in `memref`.
Access StepKernel::stateAccess(Value memref, Value index, Value bound) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  if (plan.isKFirst)
    return {memref, {index, head, zero, firstValue}, {2, 3}, {keySize, bound}};
  return {memref, {index, head, firstValue, zero}, {2, 3}, {bound, keySize}};
}

void StepKernel::store(Value value, const Access &access) {
  Type type = cast<MemRefType>(access.memref.getType()).getElementType();
  k.store(k.convert(value, type), access, plan.streaming);
}

Value StepKernel::loadState(Shape2 shape) {
  if (plan.start.isZero)
    return k.convert(k.broadcast(k.constant(0.0), shape),
                     plan.op.getStateType().getElementType());
  return k.load(stateAccess(start, entry.index, valuesLeft), shape,
                plan.streaming);
}

void StepKernel::storeState(Value value) {
  if (plan.updatesState)
    store(value, stateAccess(state, entry.index, valuesLeft));
}

void StepKernel::keepState(Value value, const Sequence &sequence, Value token) {
  Value every = k.index(plan.every), done = k.add(token, k.index(1));
  Value bound = valuesLeft;
  if (plan.every > 1) {
    Value isDue = k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                                k.rem(done, every), k.index(0));
    bound = k.createOrFold<arith::SelectOp>(isDue, bound, k.index(0));
  }
  Value place =
      k.sub(k.add(sequence.firstCheckpoint, k.div(done, every)), k.index(1));
  store(value, stateAccess(checkpoints, place, bound));
}

// o of a sequence without a state.
void StepKernel::storeZeros(const Sequence &sequence) {
  auto loop = scf::ForOp::create(k, k.index(0), sequence.length, k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value row = k.add(sequence.firstRow, loop.getInductionVar());
  Value zeros =
      k.convert(k.broadcast(k.constant(0.0), valueShape()), plan.outType);
  k.store(zeros, valueAccess(out, row));
}

void StepKernel::build(Value launched) {
  if (plan.overlap)
    gdn_tile::OverlapLaunchesOp::create(k);
  addArguments();
  int64_t blocks = llvm::divideCeil(plan.valueSize, values);
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  Value n = k.div(rest, k.index(plan.valueHeads));
  keyHead = k.div(head, k.index(plan.group));
  firstValue = k.mul(k.rem(k.blockId(), k.index(blocks)), k.index(values));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  entry = StateEntry::get(k, entries, n);
  Sequence sequence = sequences.at(n);
  if (tokens)
    loadTokens(sequence);
  if (entry.isLive) {
    auto branch = scf::IfOp::create(k, entry.isLive, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(branch.thenBlock());
    buildTokens(sequence);
    k.setInsertionPointToStart(branch.elseBlock());
    storeZeros(sequence);
  } else {
    buildTokens(sequence);
  }

  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value perSequence =
      arith::ConstantIndexOp::create(host, plan.valueHeads * blocks);
  k.launch(host.createOrFold<arith::MulIOp>(launched, perSequence));
}

static LogicalResult buildOne(RecurrencePlan &plan, StringRef name,
                              Value sequences) {
  return plan.chunk == kMaxTokens ? buildChunkStepKernel(plan, name, sequences)
                                  : buildTokenStepKernel(plan, name, sequences);
}

LogicalResult mlir::gdn::buildStepKernel(RecurrencePlan &plan) {
  if (!plan.wideFrom)
    return buildOne(plan, "step", plan.sequences);
  RecurrencePlan wide = plan;
  wide.valueBlock = plan.chunk == kMaxTokens ? 2 * plan.valueBlock : kWideRows;
  wide.warps = 1;
  wide.streaming = false;
  // Blocks of one warp with states of 16 bits lose a tenth by it.
  wide.overlap =
      plan.overlap && plan.op.getStateType().getElementType().isF32();
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value isWide = plan.isWide(host, plan.sequences, plan.valueHeads);
  if (std::optional<int64_t> known = getConstantIntValue(isWide))
    return buildOne(*known ? wide : plan, "step", plan.sequences);
  // A launch of no blocks is none.
  Value inWide = host.createOrFold<arith::MulIOp>(plan.sequences, isWide);
  Value others = host.createOrFold<arith::SubIOp>(plan.sequences, inWide);
  return success(succeeded(buildOne(plan, "step", others)) &&
                 succeeded(buildOne(wide, "step_wide", inWide)));
}
