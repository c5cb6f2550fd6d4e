//===- StepKernel.cpp - token by token, the state in registers ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per sequence, value head and block of value channels reads its part
// of the state once, walks the tokens and writes the state back: the recurrence
// of the op's definition, at the speed of the memory. The state lies in the
// `rows` layout, its contiguous dimension along the lanes. What runs along the
// key channels is a row for a v_first state and a column for a k_first state;
// what runs along the value channels is the other.
//
//===----------------------------------------------------------------------===//

#include "RecurrencePlan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

constexpr double kLog2E = 1.4426950408889634;
// Of a thread, on every target. A larger state would live in local memory and
// take seconds to compile.
constexpr int64_t kRegisters = 255;

/// Shape of the state of one block and its place in the lanes.
struct StepShape {
  int64_t lanes, elementsPerChunk, keys, values;
};

StepShape getStepShape(RecurrencePlan &plan) {
  StepShape shape;
  Type stateType = plan.op.getStateType().getElementType();
  shape.elementsPerChunk = 128 / stateType.getIntOrFloatBitWidth();
  int64_t e = shape.elementsPerChunk;
  if (plan.isKFirst) {
    shape.lanes = 4;
    shape.values = e * shape.lanes;
    shape.keys = llvm::alignTo(plan.keySize, 32 / shape.lanes);
    return shape;
  }
  // Lanes that divide the row's chunks waste no registers; few lanes would
  // waste coalescing.
  int64_t chunks = llvm::divideCeil(plan.keySize, e);
  shape.lanes = 16;
  while (shape.lanes > 4 && chunks % shape.lanes != 0)
    shape.lanes /= 2;
  if (chunks % shape.lanes != 0)
    shape.lanes = std::min<int64_t>(16, llvm::PowerOf2Ceil(chunks));
  shape.keys = llvm::alignTo(plan.keySize, e * shape.lanes);
  shape.values = llvm::alignTo(plan.valueBlock, 32 / shape.lanes);
  return shape;
}

class StepKernel {
public:
  StepKernel(RecurrencePlan &plan)
      : plan(plan), shape(getStepShape(plan)),
        k(plan.op, "step",
          gdn_tile::KernelAttr::get(plan.op.getContext(), /*warps=*/1,
                                    gdn_tile::FragmentLayoutKind::Rows,
                                    shape.lanes, shape.elementsPerChunk,
                                    /*blocksPerSM=*/0)),
        sequences(k, plan.getSequences()) {}

  void build();

private:
  void addArguments();
  void buildTokens(const Sequence &sequence);
  void storeZeros(const Sequence &sequence);
  Value buildToken(Value state, Value row);
  Value decayed(Value state, Value row);
  Access stateAccess(Value memref, Value index, Value values);
  void storeState(Value value, const Access &access);
  void keepState(Value value, const Sequence &sequence, Value token);

  /// A vector along the key channels, f32.
  Value alongKeys(Value memref, Value row, Value head) {
    Access access{
        memref, {row, head, k.index(0)}, {2}, {k.index(plan.keySize)}};
    return k.loadF32(access, plan.isKFirst ? Shape2{shape.keys, 1}
                                           : Shape2{1, shape.keys});
  }
  Shape2 valueShape() {
    return plan.isKFirst ? Shape2{1, shape.values} : Shape2{shape.values, 1};
  }
  Access valueAccess(Value memref, Value row) {
    return {memref, {row, head, firstValue}, {2}, {valuesLeft}};
  }
  Value scalar(Value memref, Value row) {
    Value value = memref::LoadOp::create(k, memref, ValueRange{row, head});
    return k.convert(value, k.getF32Type());
  }

  RecurrencePlan &plan;
  StepShape shape;
  KernelBuilder k;
  SequenceMap sequences;
  Value q, key, v, gate, beta, erase, write, out, entries, state, start,
      checkpoints;
  Value head, keyHead, firstValue, valuesLeft;
  StateEntry entry;
};

} // namespace

void StepKernel::addArguments() {
  q = k.argument(plan.q);
  key = k.argument(plan.k);
  v = k.argument(plan.v);
  gate = k.argument(plan.gate);
  beta = k.argument(plan.beta);
  erase = k.argument(plan.erase);
  write = k.argument(plan.write);
  out = k.argument(plan.out);
  entries = k.argument(plan.entries);
  state = k.argument(plan.state);
  start = plan.start.source ? k.argument(plan.start.source) : state;
  checkpoints = k.argument(plan.checkpoints);
}

// The block's part of matrix `index` of the states in `memref`.
Access StepKernel::stateAccess(Value memref, Value index, Value values) {
  Value zero = k.index(0), keySize = k.index(plan.keySize);
  if (plan.isKFirst)
    return {memref, {index, head, zero, firstValue}, {2, 3}, {keySize, values}};
  return {memref, {index, head, firstValue, zero}, {2, 3}, {values, keySize}};
}

Value StepKernel::decayed(Value stateValue, Value row) {
  if (!gate)
    return stateValue;
  Value log = plan.gateKind == GateKind::Channel ? alongKeys(gate, row, head)
                                                 : scalar(gate, row);
  return k.fmul(stateValue, k.exp2(k.fmul(log, k.constant(kLog2E))));
}

Value StepKernel::buildToken(Value stateValue, Value row) {
  Value keys = alongKeys(key, row, keyHead);
  Value queries = alongKeys(q, row, keyHead);
  Value update = k.loadF32(valueAccess(v, row), valueShape());
  Value factor = beta ? scalar(beta, row) : Value();
  stateValue = decayed(stateValue, row);
  if (write)
    update = k.fmul(update, k.loadF32(valueAccess(write, row), valueShape()));
  if (plan.isDelta) {
    Value erased = erase ? k.fmul(keys, alongKeys(erase, row, head)) : keys;
    Value read = k.sum(k.fmul(stateValue, erased), valueShape());
    update = k.fsub(update, read);
    if (factor)
      update = k.fmul(update, factor);
  }
  stateValue = k.fadd(stateValue, k.fmul(update, keys));
  Value o = k.fmul(k.sum(k.fmul(stateValue, queries), valueShape()),
                   k.constant(plan.op.getScaleValue()));
  k.store(k.convert(o, plan.type), valueAccess(out, row));
  return stateValue;
}

void StepKernel::buildTokens(const Sequence &sequence) {
  Shape2 stateShape = plan.isKFirst ? Shape2{shape.keys, shape.values}
                                    : Shape2{shape.values, shape.keys};
  Value initial =
      plan.start.isZero
          ? k.broadcast(k.constant(0.0), stateShape)
          : k.loadF32(stateAccess(start, entry.index, valuesLeft), stateShape);
  auto loop = scf::ForOp::create(k, k.index(0), sequence.length, k.index(1),
                                 ValueRange{initial});
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value row = k.add(sequence.firstRow, loop.getInductionVar());
    Value next = buildToken(loop.getRegionIterArg(0), row);
    if (checkpoints)
      keepState(next, sequence, loop.getInductionVar());
    scf::YieldOp::create(k, ValueRange{next});
  }
  if (plan.updatesState)
    storeState(loop.getResult(0), stateAccess(state, entry.index, valuesLeft));
}

void StepKernel::storeState(Value value, const Access &access) {
  Type type = cast<MemRefType>(access.memref.getType()).getElementType();
  k.store(k.convert(value, type), access);
}

// The state behind a token, if it is a checkpoint.
void StepKernel::keepState(Value value, const Sequence &sequence, Value token) {
  Value every = k.index(plan.every), done = k.add(token, k.index(1));
  Value values = valuesLeft;
  if (plan.every > 1) {
    Value isDue = k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                                k.rem(done, every), k.index(0));
    values = arith::SelectOp::create(k, isDue, values, k.index(0));
  }
  Value place =
      k.sub(k.add(sequence.firstCheckpoint, k.div(done, every)), k.index(1));
  storeState(value, stateAccess(checkpoints, place, values));
}

// o of a sequence without a state.
void StepKernel::storeZeros(const Sequence &sequence) {
  auto loop = scf::ForOp::create(k, k.index(0), sequence.length, k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(loop.getBody());
  Value row = k.add(sequence.firstRow, loop.getInductionVar());
  Value zeros =
      k.convert(k.broadcast(k.constant(0.0), valueShape()), plan.type);
  k.store(zeros, valueAccess(out, row));
}

void StepKernel::build() {
  addArguments();
  int64_t blocks = llvm::divideCeil(plan.valueSize, shape.values);
  Value rest = k.div(k.blockId(), k.index(blocks));
  head = k.rem(rest, k.index(plan.valueHeads));
  Value n = k.div(rest, k.index(plan.valueHeads));
  keyHead = k.div(head, k.index(plan.group));
  firstValue =
      k.mul(k.rem(k.blockId(), k.index(blocks)), k.index(shape.values));
  valuesLeft = k.sub(k.index(plan.valueSize), firstValue);
  Sequence sequence = sequences.at(n);

  entry = StateEntry::get(k, entries, n);
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
  k.launch(host.createOrFold<arith::MulIOp>(plan.sequences, perSequence));
}

LogicalResult mlir::gdn::buildStepKernel(RecurrencePlan &plan) {
  StepShape shape = getStepShape(plan);
  int64_t registers = shape.keys * shape.values / 32;
  if (registers >= kRegisters)
    return plan.op.emitOpError("step phases keep the state of a block in the "
                               "registers of one warp, but value_block = ")
           << plan.valueBlock << " with K = " << plan.keySize << " needs "
           << registers << " of the " << kRegisters << " of a thread";
  StepKernel(plan).build();
  return success();
}
