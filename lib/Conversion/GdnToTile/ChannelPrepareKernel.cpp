//===- ChannelPrepareKernel.cpp - prepare kernel with channel gates -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block per slot and value head. With a gate per key channel the decay
// stands inside the products, so the scores are gated sums, T = A o beta_j, and
// the decayed copies of q and k that the scan needs are written too:
//
//   P_ij = scale sum_c q_ic k_jc exp(G_ic - G_jc)                    i >= j
//   A    = (I + beta_i sum_c left_ic k_jc exp(G_ic - G_jc))^-1       i > j
//   scale exp(G) o Q;  exp(G) o left;  exp(G_C - G) o K;  exp(G_C)
//
// left is k, or erase o k. Raw q and k are normalised by factors of all of
// these, rsqrt(sum(k^2) + eps) of each token. The channels are walked in
// pieces, with P and what is inverted for A as accumulators: all the rest of
// the work on a channel stays in shared memory.
//
//===----------------------------------------------------------------------===//

#include "PrepareKernel.h"
#include "WarpInverse.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

class ChannelPrepareKernel {
public:
  ChannelPrepareKernel(RecurrencePlan &plan);

  void build();

private:
  static int64_t getBlocksPerSM(const RecurrencePlan &plan);
  /// Channels of a piece, all of one size.
  static int64_t getPieceSize(int64_t channels, int64_t most);

  void addArguments();
  void allocateTiles();
  void buildChunk();
  SmallVector<Value> buildPieces();
  void buildPiece(SmallVectorImpl<Value> &accs);
  void copyPiece();
  void findNorms();
  Value loadBeta(Shape2 shape);
  Value normalised(Value products, Value ofRows);
  Value times(Value x, Value factor) { return factor ? k.fmul(x, factor) : x; }
  SmallVector<Value> addScores(ValueRange accs);
  void writeDecayedCopies();
  Value columnsOf(Value tile, int64_t first);
  void writeKeys(Value tile, Value workspace,
                 function_ref<Value(int64_t first)> values);
  void storeKeys(Value tile, Value workspace, int64_t part,
                 function_ref<Value(int64_t first)> values);
  void writeTile(Value fragment, Value workspace, ArrayRef<Value> position);
  void writeScores(Value products);
  void writeInverse(Value products);
  void writeExactInverse(Value products);

  Access rowsOf(Value memref, Value head) {
    return {memref, {row, head, channel}, {0, 2}, {rows, channelsLeft}};
  }

  RecurrencePlan &plan;
  int64_t c;
  /// Of the tiles: those of 16 bits would enter products rounded to TF32, those
  /// of f32 enter in two parts.
  Type tileType;
  int64_t piece;
  Shape2 slice;
  KernelBuilder k;
  SequenceMap sequences;
  // Arguments.
  Value q, key, gate, beta, erase, inverse, scores, gates, decayedQ, decayedK,
      restK, decay;
  // Shared tiles.
  Value qTile, kTile, leftTile, sums, betaTile;
  // The chunk, its beta, the piece of its channels, and what normalises its
  // queries and keys, columns; null if they are normalised.
  Value slot, head, row, rows, factors, channel, channelsLeft, ofQueries,
      ofKeys;
};

} // namespace

ChannelPrepareKernel::ChannelPrepareKernel(RecurrencePlan &plan)
    : plan(plan), c(plan.chunk),
      tileType(plan.isHigh ? Float32Type::get(plan.op.getContext())
                           : plan.type),
      piece(getPieceSize(plan.keyPad, tileType.isF32() ? 64 : 128)),
      slice{plan.chunk, getPieceSize(piece, 32)},
      k(plan.op, "prepare",
        gdn_tile::KernelAttr::get(plan.op.getContext(), plan.chunk / 16,
                                  gdn_tile::FragmentLayoutKind::Accumulator, 0,
                                  4, getBlocksPerSM(plan))),
      sequences(k, plan.getSequences()) {}

// As many as shared memory admits: twelve warps of one piece of 16-bit
// channels, eight where erase o k is a tile of its own. Of the other forms LLVM
// would keep too much in registers.
int64_t ChannelPrepareKernel::getBlocksPerSM(const RecurrencePlan &plan) {
  if (plan.type.isF32() || plan.isHigh || plan.keyPad > 128)
    return 0;
  return (plan.hasErase ? 8 : 12) * 16 / plan.chunk;
}

int64_t ChannelPrepareKernel::getPieceSize(int64_t channels, int64_t most) {
  for (int64_t size = most; size > 16; size -= 16)
    if (channels % size == 0)
      return size;
  return 16;
}

void ChannelPrepareKernel::addArguments() {
  q = k.argument(plan.q);
  key = k.argument(plan.k);
  gate = k.argument(plan.gate);
  beta = k.argument(plan.beta);
  erase = k.argument(plan.erase);
  inverse = k.argument(plan.inverse);
  scores = k.argument(plan.scores);
  gates = k.argument(plan.gates);
  decayedQ = k.argument(plan.decayedQ);
  decayedK = k.argument(plan.decayedK);
  restK = k.argument(plan.restK);
  decay = k.argument(plan.decay);
}

void ChannelPrepareKernel::allocateTiles() {
  qTile = k.tile({c, piece}, tileType);
  kTile = k.tile({c, piece}, tileType);
  leftTile = erase ? k.tile({c, piece}, tileType) : kTile;
  // A row of 32 bytes more or less than a multiple of 64: in panels of 32 bytes
  // the warps find the rows of a fragment in different banks.
  sums = k.tile({c + 1, piece + 8}, k.getF32Type());
}

void ChannelPrepareKernel::copyPiece() {
  Value keyHead = k.div(head, k.index(plan.group));
  k.copyIn(rowsOf(key, keyHead), kTile);
  k.copyIn(rowsOf(q, keyHead), qTile);
  Access gates = rowsOf(gate, head);
  gdn_tile::CopySumsOp::create(k, gates.memref, gates.indices, gates.dims,
                               gates.valid, sums, piece,
                               llvm::APFloat(kMinGate), llvm::APFloat(kLog2E));
  if (!erase)
    return;
  Value factor = k.loadF32(rowsOf(erase, head), {c, piece});
  Value keys = k.loadF32(whole(k, kTile), {c, piece});
  k.store(k.convert(k.fmul(keys, factor), tileType), whole(k, leftTile));
}

// The keys' factors are a row, too: in the tile of the sums, behind its
// columns.
void ChannelPrepareKernel::findNorms() {
  if (!plan.normalises)
    return;
  auto factorsOf = [&](Value tile, L2NormOp norm) {
    Value all = k.load(whole(k, tile), {c, piece});
    return emitNormFactor(k, k.sumSquares(all), norm);
  };
  ofQueries = factorsOf(qTile, plan.inputs.qNorm);
  ofKeys = factorsOf(kTile, plan.inputs.kNorm);
  k.store(ofKeys, {sums, {k.index(0), k.index(piece)}, {0}, {}});
}

Value ChannelPrepareKernel::loadBeta(Shape2 shape) {
  Value raw = k.load({beta, {row, head}, {0}, {rows}}, shape);
  Value made = plan.inputs.emitBeta(k, raw);
  return plan.inputs.makesBeta() ? RecurrenceInputs::emitTokens(k, made, rows)
                                 : made;
}

// Products with keys, of rows with factors.
Value ChannelPrepareKernel::normalised(Value products, Value ofRows) {
  if (!plan.normalises)
    return products;
  Value ofColumns =
      k.load({sums, {k.index(0), k.index(piece)}, {0}, {}}, {1, c});
  return k.fmul(k.fmul(products, ofRows), ofColumns);
}

SmallVector<Value> ChannelPrepareKernel::addScores(ValueRange accs) {
  Value left, strictAcc;
  Type fragment = accs[0].getType(), strictType;
  if (plan.isDelta) {
    left = leftTile;
    strictAcc = accs[1];
    strictType = fragment;
  }
  auto op = gdn_tile::ScoresOp::create(k, fragment, strictType, qTile, kTile,
                                       sums, accs[0], left, strictAcc);
  SmallVector<Value> results(op.getResults());
  results[0] = normalised(results[0], ofQueries);
  if (plan.isDelta)
    results[1] = normalised(results[1], ofKeys);
  return results;
}

// Columns of a tile from a constant one on, f32 or as they are stored.
Value ChannelPrepareKernel::columnsOf(Value tile, int64_t first) {
  return k.load({tile, {k.index(0), k.index(first)}, {0, 1}, {}}, slice);
}

// Writes tile = values(columns), a slice of columns after the other: as few
// registers as possible, and one barrier.
void ChannelPrepareKernel::writeKeys(
    Value tile, Value workspace, function_ref<Value(int64_t first)> values) {
  if (!plan.isHigh)
    return storeKeys(tile, workspace, 0, values);
  // Of another type than the tiles.
  for (int64_t part = 0; part < plan.parts; ++part) {
    Value staged = k.tile({c, piece}, plan.type);
    storeKeys(staged, workspace, part, values);
    k.free(staged);
  }
}

void ChannelPrepareKernel::storeKeys(
    Value tile, Value workspace, int64_t part,
    function_ref<Value(int64_t first)> values) {
  for (int64_t first = 0; first < piece; first += slice.cols)
    k.store(k.split(values(first), plan.type, part + 1).back(),
            {tile, {k.index(0), k.index(first)}, {0, 1}, {}});
  SmallVector<Value> indices = partOf(k, slot, head, part, plan.parts);
  int64_t rank = indices.size();
  indices.append({k.index(0), channel});
  k.copyOut(tile,
            {workspace, indices, {rank, rank + 1}, {k.index(c), channelsLeft}});
}

// The copies take the places of what they are made of, that of k to the end of
// the chunk the one of q, once its copy is written.
void ChannelPrepareKernel::writeDecayedCopies() {
  Value zero = k.index(0);
  Value last = k.load({sums, {k.index(c), zero}, {1}, {}}, {1, piece});
  k.store(k.exp2(last), {decay, {slot, head, channel}, {2}, {channelsLeft}});
  auto sumsTo = [&](int64_t first) {
    return k.load({sums, {k.index(1), k.index(first)}, {0, 1}, {}}, slice);
  };
  auto loadAll = [&](Value tile) {
    SmallVector<Value> slices;
    for (int64_t first = 0; first < piece; first += slice.cols)
      slices.push_back(columnsOf(tile, first));
    return slices;
  };
  auto extend = [&](ArrayRef<Value> slices, int64_t first) {
    return k.convert(slices[first / slice.cols], k.getF32Type());
  };
  SmallVector<Value> queries = loadAll(qTile);
  writeKeys(qTile, decayedQ, [&](int64_t first) {
    Value scaled = k.fmul(times(extend(queries, first), ofQueries),
                          k.constant(plan.op.getScaleValue()));
    return k.fmul(scaled, k.exp2(sumsTo(first)));
  });
  SmallVector<Value> keys = loadAll(kTile);
  SmallVector<Value> left;
  if (plan.isDelta)
    left = erase ? loadAll(leftTile) : keys;
  writeKeys(qTile, restK, [&](int64_t first) {
    Value end =
        k.load({sums, {k.index(c), k.index(first)}, {1}, {}}, {1, slice.cols});
    return k.fmul(times(extend(keys, first), ofKeys),
                  k.exp2(k.fsub(end, sumsTo(first))));
  });
  if (plan.isDelta)
    writeKeys(leftTile, decayedK, [&](int64_t first) {
      return k.fmul(times(extend(left, first), ofKeys), k.exp2(sumsTo(first)));
    });
}

// Through shared memory: a fragment's own rows of 16 bytes would write half
// sectors.
void ChannelPrepareKernel::writeTile(Value fragment, Value workspace,
                                     ArrayRef<Value> position) {
  Value staged = k.tile({c, c}, plan.type);
  k.store(fragment, whole(k, staged));
  SmallVector<Value> indices(position);
  int64_t rank = position.size();
  indices.append({k.index(0), k.index(0)});
  k.copyOut(staged, {workspace, indices, {rank, rank + 1}, {}});
  k.free(staged);
}

void ChannelPrepareKernel::writeScores(Value products) {
  Value scaled = k.fmul(products, k.constant(plan.op.getScaleValue()));
  if (plan.isUnit)
    scaled = k.fmul(scaled, loadBeta({1, c}));
  for (auto [part, fragment] :
       llvm::enumerate(k.split(scaled, plan.type, plan.parts)))
    writeTile(fragment, scores, partOf(k, slot, head, part, plan.parts));
}

// T of what is strictly lower triangular.
void ChannelPrepareKernel::writeInverse(Value products) {
  for (Value tile : {qTile, kTile, sums})
    k.free(tile);
  if (leftTile != kTile)
    k.free(leftTile);
  betaTile = k.tile({c}, k.getF32Type());
  k.store(factors, {betaTile, {k.index(0)}, {0}, {}});
  if (plan.type.isF32())
    return writeExactInverse(products);
  Value matrix =
      k.tile({c + WarpInverse::kProductRowPad, c + WarpInverse::kProductPad},
             k.getF32Type());
  k.store(products, {matrix, {k.index(0), k.index(0)}, {0, 1}, {}});
  auto warps = gdn_tile::EachWarpOp::create(k, k.index(1));
  OpBuilder::InsertionGuard guard(k);
  k.setInsertionPointToStart(&warps.getBody().front());
  WarpInverse result(k, c, matrix, betaTile, plan.getInversePrecision());
  InverseWriter writer(k, plan, result, betaTile, /*betaRow=*/betaTile, inverse,
                       gates, slot, head, /*decayOf=*/{});
  for (int64_t i = 0; i < c / WarpInverse::kBlock; ++i) {
    result.substitute(i);
    for (int64_t j = 0; j <= i; ++j)
      writer.store(i, j, /*decay=*/Value());
    writer.finishRow(i);
  }
  writer.finish();
  result.free();
}

void ChannelPrepareKernel::writeExactInverse(Value products) {
  Value matrix = k.tile({c, c}, k.getF32Type());
  k.store(k.fmul(products, factors), whole(k, matrix));
  gdn_tile::TriInverseOp::create(k, matrix, /*exact=*/true);
  Value columnFactor = k.load(whole(k, betaTile), {1, c});
  Value result = k.fmul(k.load(whole(k, matrix), {c, c}), columnFactor);
  writeTile(result, inverse, {slot, head, k.index(0)});
}

// With all channels in one piece the accumulator of P ends before the copies
// begin: it would take the registers of another block on the SM.
void ChannelPrepareKernel::buildPiece(SmallVectorImpl<Value> &accs) {
  bool isOnly = piece == plan.keyPad;
  channelsLeft = plan.keySize % piece == 0
                     ? k.index(piece)
                     : k.sub(k.index(plan.keySize), channel);
  copyPiece();
  findNorms();
  accs = addScores(accs);
  if (isOnly)
    writeScores(accs[0]);
  writeDecayedCopies();
}

SmallVector<Value> ChannelPrepareKernel::buildPieces() {
  auto fragment = VectorType::get({c, c}, k.getF32Type());
  Value zero = arith::ConstantOp::create(
      k, DenseElementsAttr::get(fragment, k.getF32FloatAttr(0.0).getValue()));
  SmallVector<Value> accs(plan.isDelta ? 2 : 1, zero);
  if (piece == plan.keyPad) {
    channel = k.index(0);
    buildPiece(accs);
    return accs;
  }
  auto loop = scf::ForOp::create(k, k.index(0), k.index(plan.keyPad),
                                 k.index(piece), accs);
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    channel = loop.getInductionVar();
    accs.assign(loop.getRegionIterArgs().begin(),
                loop.getRegionIterArgs().end());
    buildPiece(accs);
    scf::YieldOp::create(k, accs);
  }
  writeScores(loop.getResult(0));
  return SmallVector<Value>(loop.getResults());
}

void ChannelPrepareKernel::buildChunk() {
  allocateTiles();
  // Early, but in registers: a tile would be too much for the third block on an
  // SM. With erase nothing is left for beta to do.
  if (beta)
    factors = loadBeta({c, 1});
  else if (plan.isDelta)
    factors = k.broadcast(k.constant(1.0), {c, 1});
  SmallVector<Value> products = buildPieces();
  if (plan.isDelta)
    writeInverse(products[1]);
}

void ChannelPrepareKernel::build() {
  addArguments();
  k.startAtEnd();
  slot = k.div(k.blockId(), k.index(plan.valueHeads));
  head = k.rem(k.blockId(), k.index(plan.valueHeads));
  Chunk chunk = sequences.chunkAt(slot);
  row = chunk.row;
  rows = k.min(chunk.left, k.index(plan.chunk));
  // Slots between packed sequences may hold nothing.
  auto guarded = scf::IfOp::create(k, k.less(k.index(0), chunk.left));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(guarded.thenBlock());
    buildChunk();
  }
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value heads = arith::ConstantIndexOp::create(host, plan.valueHeads);
  k.launch(host.createOrFold<arith::MulIOp>(plan.slots, heads));
}

void mlir::gdn::buildChannelPrepareKernel(RecurrencePlan &plan) {
  ChannelPrepareKernel(plan).build();
}
