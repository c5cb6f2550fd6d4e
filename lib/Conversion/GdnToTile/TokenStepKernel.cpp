//===- TokenStepKernel.cpp - token by token, the state in registers -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The recurrence of the op's definition, for every model. The state lies in the
// `rows` layout, its contiguous dimension along the lanes. What runs along the
// key channels is a row for a v_first state and a column for a k_first state;
// what runs along the value channels is the other.
//
// The output needs the state behind the update, S' q = d S q + u (k . q): both
// sums over the state are taken of the state in front of it, in one pass.
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

// Of a thread, on every target. A larger state would live in local memory and
// take seconds to compile.
constexpr int64_t kRegisters = 255;
// Of a thread, for what belongs to tokens and is loaded in front of the state.
constexpr int64_t kTokenRegisters = 64;

/// Shape of the state of one block and its place in the threads.
struct StepShape {
  int64_t warps, lanes, elementsPerChunk, keys, values;
};

StepShape getStepShape(RecurrencePlan &plan) {
  StepShape shape;
  shape.warps = plan.warps;
  Type stateType = plan.op.getStateType().getElementType();
  shape.elementsPerChunk = 128 / stateType.getIntOrFloatBitWidth();
  int64_t e = shape.elementsPerChunk;
  if (plan.isKFirst) {
    // Warps share the key channels, lanes of a row the value channels.
    shape.lanes = shape.warps > 1 ? 16 : 4;
    shape.values = e * shape.lanes;
    shape.keys = llvm::alignTo(plan.keySize, shape.warps * (32 / shape.lanes));
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
  shape.values =
      llvm::alignTo(plan.valueBlock, shape.warps * (32 / shape.lanes));
  return shape;
}

/// What belongs to one token, as loaded; null where the model has it not.
struct Token {
  Value row;
  Value queries, keys, gate, erase; // along the key channels, or one gate
  Value values, write;              // along the value channels
  Value beta;
  Value rate, bias; // of the gate, if the kernel computes it
};

class TokenStepKernel : public StepKernel {
public:
  TokenStepKernel(RecurrencePlan &plan, StringRef name, const StepShape &shape)
      : StepKernel(plan, name, shape.values, shape.warps, shape.lanes,
                   shape.elementsPerChunk),
        shape(shape) {
    if (tokens * registersOfToken() > kTokenRegisters)
      tokens = 0;
  }

protected:
  void loadTokens(const Sequence &sequence) override;
  void buildTokens(const Sequence &sequence) override;

private:
  int64_t registersOfToken();
  Shape2 keyShape() {
    return plan.isKFirst ? Shape2{shape.keys, 1} : Shape2{1, shape.keys};
  }
  Value loadKeys(Value memref, Value row, Value ofHead);
  Value loadValues(Value memref, Value row);
  Value loadScalar(Value memref, Value row);
  void loadGateParameters(Token &token);
  Token loadToken(Value row);
  Value toF32(Value value) {
    return value ? k.convert(value, k.getF32Type()) : value;
  }
  Value normalized(Value x, L2NormOp norm);
  Value buildToken(Value state, const Token &token);

  StepShape shape;
  SmallVector<Token> loaded;
};

} // namespace

// Of q, k and a gate or erase per channel.
int64_t TokenStepKernel::registersOfToken() {
  int64_t perVector =
      plan.isKFirst ? shape.keys * shape.lanes / 32 : shape.keys / shape.lanes;
  int64_t halves = plan.type.getIntOrFloatBitWidth() == 16 ? 1 : 2;
  int64_t wide = 2 * ((plan.gateKind == GateKind::Channel) + plan.hasErase);
  return perVector * (2 * halves + wide) / 2;
}

Value TokenStepKernel::loadKeys(Value memref, Value row, Value ofHead) {
  if (!memref)
    return memref;
  return k.load(
      {memref, {row, ofHead, k.index(0)}, {2}, {k.index(plan.keySize)}},
      keyShape());
}

Value TokenStepKernel::loadValues(Value memref, Value row) {
  return memref ? k.load(valueAccess(memref, row), valueShape()) : memref;
}

Value TokenStepKernel::loadScalar(Value memref, Value row) {
  if (!memref)
    return memref;
  return memref::LoadOp::create(k, memref, ValueRange{row, head});
}

Token TokenStepKernel::loadToken(Value row) {
  Token token;
  token.row = row;
  token.keys = loadKeys(key, row, keyHead);
  token.queries = loadKeys(q, row, keyHead);
  token.gate = plan.gateKind == GateKind::Channel ? loadKeys(gate, row, head)
                                                  : loadScalar(gate, row);
  token.erase = loadKeys(erase, row, head);
  token.values = loadValues(v, row);
  token.write = loadValues(write, row);
  token.beta = loadScalar(beta, row);
  loadGateParameters(token);
  return token;
}

void TokenStepKernel::loadGateParameters(Token &token) {
  if (rate)
    token.rate = memref::LoadOp::create(k, rate, ValueRange{head});
  if (!bias)
    return;
  if (plan.gateKind == GateKind::Channel)
    token.bias = k.load(
        {bias, {head, k.index(0)}, {1}, {k.index(plan.keySize)}}, keyShape());
  else
    token.bias = memref::LoadOp::create(k, bias, ValueRange{head});
}

// x / sqrt(sum of x^2 + eps).
Value TokenStepKernel::normalized(Value x, L2NormOp norm) {
  if (!norm)
    return x;
  return k.fmul(x, emitNormFactor(k, k.sum(k.fmul(x, x), {1, 1}), norm));
}

Value TokenStepKernel::buildToken(Value stateValue, const Token &token) {
  Value keys = normalized(toF32(token.keys), plan.inputs.kNorm);
  Value queries = normalized(toF32(token.queries), plan.inputs.qNorm);
  Value update = toF32(token.values), decay, readKeys = keys,
        readQueries = queries;
  if (token.gate)
    decay = k.exp2(
        k.fmul(plan.inputs.emitGate(k, token.gate, token.rate, token.bias),
               k.constant(kLog2E)));
  if (token.erase)
    readKeys = k.fmul(keys, toF32(token.erase));
  bool perChannel = plan.gateKind == GateKind::Channel;
  if (perChannel) {
    readKeys = k.fmul(readKeys, decay);
    readQueries = k.fmul(queries, decay);
  }
  auto readWith = [&](Value vector) {
    Value sum = k.sum(k.fmul(stateValue, vector), valueShape());
    return decay && !perChannel ? k.fmul(sum, decay) : sum;
  };
  if (token.write)
    update = k.fmul(update, toF32(token.write));
  if (plan.isDelta)
    update = k.fsub(update, readWith(readKeys));
  if (token.beta)
    update = k.fmul(update, plan.inputs.emitBeta(k, token.beta));
  Value inner = k.sum(k.fmul(keys, queries), {1, 1});
  Value o = k.fadd(readWith(readQueries), k.fmul(update, inner));
  o = k.fmul(o, k.constant(plan.op.getScaleValue()));
  k.store(k.convert(o, plan.outType), valueAccess(out, token.row));
  if (decay)
    stateValue = k.fmul(stateValue, decay);
  return k.fadd(stateValue, k.fmul(update, keys));
}

void TokenStepKernel::loadTokens(const Sequence &sequence) {
  for (int64_t t = 0; t < tokens; ++t)
    loaded.push_back(loadToken(k.add(sequence.firstRow, k.index(t))));
}

void TokenStepKernel::buildTokens(const Sequence &sequence) {
  Shape2 stateShape = plan.isKFirst ? Shape2{shape.keys, shape.values}
                                    : Shape2{shape.values, shape.keys};
  Value stateValue = loadState(stateShape);
  if (!loaded.empty()) {
    auto [keys, queries] = k.afterLoads(loaded[0].keys, loaded[0].queries);
    loaded[0].keys = keys;
    loaded[0].queries = queries;
  }
  stateValue = toF32(stateValue);
  for (auto [t, token] : llvm::enumerate(loaded)) {
    stateValue = buildToken(stateValue, token);
    if (checkpoints)
      keepState(stateValue, sequence, k.index(t));
  }
  if (loaded.empty()) {
    auto loop = scf::ForOp::create(k, k.index(0), sequence.length, k.index(1),
                                   ValueRange{stateValue});
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value row = k.add(sequence.firstRow, loop.getInductionVar());
    Value next = buildToken(loop.getRegionIterArg(0), loadToken(row));
    if (checkpoints)
      keepState(next, sequence, loop.getInductionVar());
    scf::YieldOp::create(k, ValueRange{next});
    stateValue = loop.getResult(0);
  }
  storeState(stateValue);
}

LogicalResult mlir::gdn::buildTokenStepKernel(RecurrencePlan &plan,
                                              StringRef name, Value sequences) {
  StepShape shape = getStepShape(plan);
  int64_t registers = shape.keys * shape.values / (32 * shape.warps);
  if (registers >= kRegisters)
    return plan.op.emitOpError("step phases keep the state of a block in the "
                               "registers of one block, but value_block = ")
           << plan.valueBlock << " with K = " << plan.keySize << " needs "
           << registers << " of the " << kRegisters << " of a thread";
  TokenStepKernel(plan, name, shape).build(sequences);
  return success();
}
