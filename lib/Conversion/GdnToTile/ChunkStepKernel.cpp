//===- ChunkStepKernel.cpp - eight tokens at a time, the state in registers
//-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Token by token, four tokens cost more instructions than the memory gives time
// for. As products they do not: with K, Q of eight tokens, G the running sum of
// the gates and D_ts = exp(G_t - G_s) for s <= t (S has rows of value
// channels),
//
//   W = beta o (V^T - exp(G) o (S K^T))        U (I + strictlower(beta D o K
//   K^T))^T = W O^T = scale (exp(G) o (S Q^T) + U (D o Q K^T)^T) S  <- exp(G_8)
//   S + (exp(G_8 - G) o U) K
//
// Tokens behind the end have zero keys, values and gates and change nothing.
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

constexpr int64_t kTokens = 8;
constexpr int64_t kLanes = 4;
// Key channels of two products of 16-bit operands.
constexpr int64_t kKeys = 32;
// Of a thread, for the state: more leave none for the rest.
constexpr int64_t kStateRegisters = 128;

/// Elements in 16 bytes of the state.
int64_t getChunk(RecurrencePlan &plan) {
  return 128 / plan.op.getStateType().getElementTypeBitWidth();
}

/// Five warps on each scheduler, 96 registers, hide more of the memory's
/// latency than four (H200, 88 % of a copy instead of 85), and four more than
/// three: so many the products of f16, in two parts of TF32, allow. With more
/// to keep, fewer registers spill.
int64_t getBlocksPerSM(RecurrencePlan &plan) {
  std::optional<int64_t> length = getConstantIntValue(plan.length);
  bool isShort = length && *length <= kTokens / 2 && !plan.offsets;
  bool isLean = !plan.checkpoints && !plan.isHigh && !plan.inputs.kNorm &&
                !plan.inputs.qNorm;
  bool isStored = plan.op.getStateType().getElementType() == plan.type;
  if (!isShort || !isLean || !isStored || plan.valueBlock != 16)
    return 0;
  return plan.type.isBF16() ? 20 : 16;
}

class ChunkStepKernel : public StepKernel {
public:
  ChunkStepKernel(RecurrencePlan &plan, StringRef name)
      : StepKernel(plan, name, plan.valueBlock, /*warps=*/1, kLanes,
                   getChunk(plan), getBlocksPerSM(plan)),
        keys(llvm::alignTo(plan.keySize, kKeys)) {}

protected:
  void loadTokens(const Sequence &sequence) override;
  void buildTokens(const Sequence &sequence) override;

private:
  /// Eight tokens as loaded.
  struct Tokens {
    Value row, count;    // the first, and how many there are
    Value keys, queries; // [8, K]
    Value values;        // [V, 8]
    Value gateRow, gateCol, betaRow, betaCol; // [1, 8] and [8, 1]
    // Factors that normalise keys and queries, null if they are normalised.
    Value keyNormRow, keyNormCol, queryNormRow, queryNormCol;
  };
  /// What follows from the gates: exponents are sums of log2 gates.
  struct Gates {
    Value col;   // [8, 1]: the gates
    Value pairs; // [8, 8]: D
    Value grown; // [1, 8]: exp(G)
  };

  Tokens loadChunk(Value row, Value count);
  Value loadKeys(Value memref, const Tokens &x);
  Value loadFactor(Value memref, const Tokens &x, Shape2 shape);
  Value loadGate(const Tokens &x, Shape2 shape);
  Value loadBeta(const Tokens &x, Shape2 shape);
  std::pair<Value, Value> norms(Value rows, L2NormOp norm);
  Value times(Value a, Value factor) { return factor ? k.fmul(a, factor) : a; }
  Gates prepareGates(const Tokens &x);
  /// Tokens s against tokens t, the rows: s compared with t.
  Value mask(arith::CmpIPredicate predicate);
  Value zeroUnless(Value condition, Value value);
  Value keyProducts(const Tokens &x, const Gates &gates);
  Value queryProducts(const Tokens &x, const Gates &gates);
  Value newValues(const Tokens &x, const Gates &gates, Value inner, Value read);
  bool isStacked();
  Value tokenOfColumn();
  std::pair<Value, Value> multiply(Value state, const Tokens &x,
                                   const Gates &gates);
  std::pair<Value, Value> multiplyStacked(Value state, Tokens &x,
                                          const Gates &gates);
  Value decayTo(Value last, const Gates &gates);
  Value stateBehind(Value state, const Tokens &x, const Gates &gates, Value u,
                    std::optional<int64_t> last);
  Value buildChunk(Value state, Tokens x, const Sequence &sequence);

  int64_t keys;
  Tokens loaded;
};

} // namespace

Value ChunkStepKernel::loadKeys(Value memref, const Tokens &x) {
  return k.load({memref,
                 {x.row, keyHead, k.index(0)},
                 {0, 2},
                 {x.count, k.index(plan.keySize)}},
                {kTokens, keys});
}

Value ChunkStepKernel::loadFactor(Value memref, const Tokens &x, Shape2 shape) {
  return k.load({memref, {x.row, head}, {0}, {x.count}}, shape);
}

// Tokens behind the end have the gate 0, whatever the gate of a projection of 0
// is.
Value ChunkStepKernel::loadGate(const Tokens &x, Shape2 shape) {
  if (!gate)
    return gate;
  auto parameter = [&](Value memref) -> Value {
    if (!memref)
      return memref;
    return memref::LoadOp::create(k, memref, ValueRange{head});
  };
  Value log = plan.inputs.emitGate(k, loadFactor(gate, x, shape),
                                   parameter(rate), parameter(bias));
  if (!plan.inputs.makesGate())
    return log;
  Value count =
      arith::IndexCastOp::create(k, k.getI32Type(), x.count).getResult();
  Value isToken = k.compare(arith::CmpIPredicate::slt, k.iota(shape), count);
  return zeroUnless(isToken, log);
}

Value ChunkStepKernel::loadBeta(const Tokens &x, Shape2 shape) {
  return beta ? plan.inputs.emitBeta(k, loadFactor(beta, x, shape)) : beta;
}

// Normalised keys and queries would have to be rounded to be operands, and the
// state with them: their factors go into the products instead. The sums of
// squares are the diagonal of a product, in float32.
std::pair<Value, Value> ChunkStepKernel::norms(Value rows, L2NormOp norm) {
  if (!norm)
    return {};
  Value squares =
      zeroUnless(mask(arith::CmpIPredicate::eq), k.dot(rows, rows)[0]);
  return {emitNormFactor(k, k.sum(squares, {1, kTokens}), norm),
          emitNormFactor(k, k.sum(squares, {kTokens, 1}), norm)};
}

ChunkStepKernel::Tokens ChunkStepKernel::loadChunk(Value row, Value count) {
  Tokens x;
  x.row = row;
  x.count = count;
  x.keys = loadKeys(key, x);
  x.queries = loadKeys(q, x);
  x.gateRow = loadGate(x, {1, kTokens});
  x.gateCol = loadGate(x, {kTokens, 1});
  x.betaRow = loadBeta(x, {1, kTokens});
  x.betaCol = loadBeta(x, {kTokens, 1});
  x.values = k.load({v, {row, head, firstValue}, {2, 0}, {valuesLeft, count}},
                    {values, kTokens});
  return x;
}

Value ChunkStepKernel::mask(arith::CmpIPredicate predicate) {
  return k.compare(predicate, k.iota({1, kTokens}), k.iota({kTokens, 1}));
}

Value ChunkStepKernel::zeroUnless(Value condition, Value value) {
  return k.select(condition, value, k.constant(0.0));
}

ChunkStepKernel::Gates ChunkStepKernel::prepareGates(const Tokens &x) {
  Gates gates;
  auto toLog2 = [&](Value log) {
    return k.fmul(k.fmax(log, k.constant(kMinGate)), k.constant(kLog2E));
  };
  Value row = toLog2(x.gateRow);
  gates.col = toLog2(x.gateCol);
  Value notLater = mask(arith::CmpIPredicate::sle);
  Value sums = k.sum(zeroUnless(notLater, row), {kTokens, 1});
  Value notBefore = k.compare(arith::CmpIPredicate::sge, tokenOfColumn(),
                              k.iota({kTokens, 1}));
  Value sumsRow = k.sum(zeroUnless(notBefore, gates.col), {1, kTokens});
  // Masked in front of the exponent: no sum of later tokens is formed.
  Value exponents = zeroUnless(notLater, k.fsub(sums, sumsRow));
  gates.pairs = zeroUnless(notLater, k.exp2(exponents));
  gates.grown = k.exp2(sumsRow);
  return gates;
}

// beta D o K K^T, but for beta of the rows.
Value ChunkStepKernel::keyProducts(const Tokens &x, const Gates &gates) {
  if (!plan.isDelta)
    return Value();
  Value inner =
      k.fmul(k.dot(x.keys, x.keys)[0], times(x.betaCol, x.keyNormCol));
  return times(times(inner, x.keyNormRow), gates.pairs);
}

// D o Q K^T.
Value ChunkStepKernel::queryProducts(const Tokens &x, const Gates &gates) {
  Value scores =
      times(times(k.dot(x.queries, x.keys)[0], x.queryNormCol), x.keyNormRow);
  return gates.pairs ? k.fmul(scores, gates.pairs)
                     : zeroUnless(mask(arith::CmpIPredicate::sle), scores);
}

// U; inner as keyProducts gives it, read = S K^T.
Value ChunkStepKernel::newValues(const Tokens &x, const Gates &gates,
                                 Value inner, Value read) {
  Value update = k.convert(x.values, k.getF32Type());
  if (!plan.isDelta)
    return update;
  read = times(times(read, x.keyNormRow), gates.grown);
  update = k.fmul(k.fsub(update, read), x.betaRow);
  return k.triSolve(inner, update, tokens ? tokens : kTokens);
}

// exp of the gates behind each token s up to token `last`, all if null. [1, 8]
Value ChunkStepKernel::decayTo(Value last, const Gates &gates) {
  // Rows are the tokens whose gates are added up.
  Value counted = mask(arith::CmpIPredicate::slt);
  if (last)
    counted = k.both(counted, k.compare(arith::CmpIPredicate::sle,
                                        k.iota({kTokens, 1}), last));
  return k.exp2(k.sum(zeroUnless(counted, gates.col), {1, kTokens}));
}

// The state behind token `last` of the chunk, or behind all of them.
Value ChunkStepKernel::stateBehind(Value stateValue, const Tokens &x,
                                   const Gates &gates, Value u,
                                   std::optional<int64_t> last) {
  Value lastToken, decay;
  if (last) {
    lastToken = k.integer(*last);
    Value known =
        k.compare(arith::CmpIPredicate::sle, k.iota({1, kTokens}), lastToken);
    u = k.select(k.broadcast(known, {values, kTokens}), u, k.constant(0.0));
  }
  if (gates.col) {
    u = k.fmul(u, decayTo(lastToken, gates));
    Value all = gates.col;
    if (last)
      all = zeroUnless(
          k.compare(arith::CmpIPredicate::sle, k.iota({kTokens, 1}), lastToken),
          all);
    decay = k.exp2(k.sum(all, {1, 1}));
  }
  u = times(u, x.keyNormRow);
  bool exact = plan.isHigh || plan.op.getStateType().getElementType().isF32();
  return k.outer(u, x.keys, stateValue, decay, exact);
}

/// U, and O but for the scale.
std::pair<Value, Value> ChunkStepKernel::multiply(Value stateValue,
                                                  const Tokens &x,
                                                  const Gates &gates) {
  SmallVector<Value> read = k.dot(stateValue, {x.keys, x.queries});
  Value u = newValues(x, gates, keyProducts(x, gates), read[0]);
  Value o = times(times(read[1], x.queryNormRow), gates.grown);
  return {u, k.fadd(o, k.dot(u, queryProducts(x, gates))[0])};
}

// Up to four tokens known in advance: rows 0 .. 3 of one operand are the keys,
// the others the queries, and columns of its products likewise.
// With states of bfloat16, whose products are few, it does not pay.
bool ChunkStepKernel::isStacked() {
  bool isStored = plan.op.getStateType().getElementType() == plan.type;
  return tokens && tokens <= kTokens / 2 && !plan.inputs.kNorm &&
         !plan.inputs.qNorm && !(isStored && plan.type.isBF16());
}

// Of the columns of products with a stacked operand, else of those with
// tokens. [1, 8]
Value ChunkStepKernel::tokenOfColumn() {
  Value column = k.iota({1, kTokens});
  if (!isStacked())
    return column;
  Value last = k.broadcastLike(k.integer(kTokens / 2 - 1), column);
  return arith::AndIOp::create(k, column, last);
}

// The same from half as many products, with G = [K; Q] [K; Q]^T. The matrix E
// takes G, which is symmetric, to the products of the queries, and beside them
// it takes what the queries read of the state to their tokens.
std::pair<Value, Value> ChunkStepKernel::multiplyStacked(Value stateValue,
                                                         Tokens &x,
                                                         const Gates &gates) {
  Value half = k.integer(kTokens / 2), one = k.constant(1.0);
  Value isKey =
      k.compare(arith::CmpIPredicate::slt, k.iota({1, kTokens}), half);
  Value row = k.iota({kTokens, 1});
  Value queryOfRow = arith::AddIOp::create(k, row, k.broadcastLike(half, row));
  Value isOwnQuery =
      k.compare(arith::CmpIPredicate::eq, k.iota({1, kTokens}), queryOfRow);
  Value both = k.stack(x.keys, x.queries);
  Value read = times(k.dot(stateValue, both)[0], gates.grown);
  Value products = k.dot(both, both)[0];
  Value inner;
  if (plan.isDelta)
    inner = times(times(products, x.betaCol), gates.pairs);
  Value u = newValues(x, Gates(), inner, read);

  Value toQueries = zeroUnless(isOwnQuery, one);
  Value scores = k.dot(toQueries, products)[0];
  scores = gates.pairs ? k.fmul(scores, gates.pairs)
                       : zeroUnless(mask(arith::CmpIPredicate::sle), scores);
  scores = k.select(k.broadcast(isKey, {kTokens, kTokens}), scores, toQueries);
  Value left = k.select(k.broadcast(isKey, {values, kTokens}), u, read);
  // A query that is no number is none of the state's business.
  auto type = cast<VectorType>(both.getType());
  x.keys = k.stack(both, k.zero({kTokens, keys}, type.getElementType()));
  return {u, k.dot(left, scores)[0]};
}

Value ChunkStepKernel::buildChunk(Value stateValue, Tokens x,
                                  const Sequence &sequence) {
  std::tie(x.keyNormRow, x.keyNormCol) = norms(x.keys, plan.inputs.kNorm);
  std::tie(x.queryNormRow, x.queryNormCol) =
      norms(x.queries, plan.inputs.qNorm);
  Gates gates;
  if (gate)
    gates = prepareGates(x);
  Value inF32 = k.convert(stateValue, k.getF32Type());
  // As it is stored its products are exact and half as many.
  bool isStored =
      cast<VectorType>(stateValue.getType()).getElementType() == plan.type;
  Value left = isStored ? stateValue : inF32;
  auto [u, o] =
      isStacked() ? multiplyStacked(left, x, gates) : multiply(left, x, gates);
  o = k.fmul(o, k.constant(plan.op.getScaleValue()));
  k.store(k.convert(o, plan.outType),
          {out, {x.row, head, firstValue}, {2, 0}, {valuesLeft, x.count}});

  if (checkpoints)
    for (int64_t t = 0; t < tokens; ++t)
      if ((t + 1) % plan.every == 0)
        keepState(stateBehind(inF32, x, gates, u, t), sequence, k.index(t));
  return stateBehind(stateValue, x, gates, u, std::nullopt);
}

void ChunkStepKernel::loadTokens(const Sequence &sequence) {
  loaded = loadChunk(sequence.firstRow, k.index(tokens));
}

void ChunkStepKernel::buildTokens(const Sequence &sequence) {
  Value stateValue = loadState({values, keys});
  if (tokens) {
    std::tie(loaded.keys, loaded.queries) =
        k.afterLoads(loaded.keys, loaded.queries);
    return storeState(buildChunk(stateValue, loaded, sequence));
  }
  // Between chunks the state is float32 whatever it is stored as.
  stateValue = k.convert(stateValue, k.getF32Type());
  Value chunks = k.ceilDiv(sequence.length, k.index(kTokens));
  auto loop = scf::ForOp::create(k, k.index(0), chunks, k.index(1),
                                 ValueRange{stateValue});
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    Value start = k.mul(loop.getInductionVar(), k.index(kTokens));
    Value count = k.min(k.sub(sequence.length, start), k.index(kTokens));
    Tokens x = loadChunk(k.add(sequence.firstRow, start), count);
    Value next = buildChunk(loop.getRegionIterArg(0), x, sequence);
    scf::YieldOp::create(k, ValueRange{next});
  }
  storeState(loop.getResult(0));
}

static LogicalResult verifyChunkForm(RecurrencePlan &plan) {
  RecurrenceOp op = plan.op;
  StringRef reason;
  if (plan.isKFirst)
    reason = "a v_first state";
  else if (plan.gateKind == GateKind::Channel || plan.hasErase)
    reason = "no gate and no erase per channel";
  else if (plan.type.isF32())
    reason = "q, k and v of f16 or bf16";
  else if (plan.every && (plan.offsets || !getConstantIntValue(plan.length)))
    reason = "a known number of tokens to store checkpoints";
  if (!reason.empty())
    return op.emitOpError("step phases in chunks of 8 tokens need ")
           << reason << "; with another chunk they go token by token";
  return success();
}

LogicalResult mlir::gdn::buildChunkStepKernel(RecurrencePlan &plan,
                                              StringRef name, Value sequences) {
  if (failed(verifyChunkForm(plan)))
    return failure();
  int64_t registers = plan.valueBlock * llvm::alignTo(plan.keySize, kKeys) / 32;
  if (plan.valueBlock % 16 != 0 || registers > kStateRegisters)
    return plan.op.emitOpError("step phases in chunks of 8 tokens need a "
                               "value_block that is a multiple of 16 and a "
                               "state of at most ")
           << kStateRegisters
           << " registers a thread, but value_block = " << plan.valueBlock
           << " with K = " << plan.keySize << " needs " << registers;
  ChunkStepKernel(plan, name).build(sequences);
  return success();
}
