//===- ShortConvKernels.cpp - gdn.short_conv ------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two kernels. `short_conv` takes the tokens from W - 1 on, whose inputs all
// lie in x: a warp walks a block of tokens with the last inputs and the taps in
// registers. (With many taps rows are tokens, and taps loads shifted by a row.)
// `short_conv_edge`, one block per sequence and channel block, takes the first
// W - 1 tokens, which read the state, and then writes the final state.
// Sequences that are known to have no more tokens, as in decoding, need it
// alone. Both may also normalise heads of what they store; then a block takes
// the channels of one head.
//
//===----------------------------------------------------------------------===//

#include "RowKernels.h"
#include "Sequences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

// Channels of one block of the inner kernel with many taps.
constexpr int64_t kBlockChannels = 128;
// Taps up to which inputs and taps stay in registers.
constexpr int64_t kMaxRegisterTaps = 8;
// Tokens that a warp walks, and those whose loads are in flight at once.
constexpr int64_t kBlockTokens = 64;
constexpr int64_t kTokensAtOnce = 8;
// More would take the registers of other warps.
constexpr int64_t kChannelsOfThread = 4;
// Both are unrolled.
constexpr int64_t kMaxTaps = 64;
constexpr int64_t kMaxStored = 256;

/// What both kernels need.
struct ConvPlan {
  ShortConvOp op;
  L2NormOp norm;
  Value x, out, length, sequences;
  int64_t channels, taps, stored;
  RowShape shape;

  ConvPlan(ShortConvOp op, L2NormOp norm, RowShape shape)
      : op(op), norm(norm),
        channels(cast<ShapedType>(op.getX().getType()).getDimSize(2)),
        taps(cast<ShapedType>(op.getW().getType()).getDimSize(1)),
        stored(cast<ShapedType>(op.getState().getType()).getDimSize(2)),
        shape(shape) {
    ImplicitLocOpBuilder host(op.getLoc(), op);
    SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
    x = memref::CollapseShapeOp::create(host, getWhole(op.getX()), groups);
    out = memref::CollapseShapeOp::create(host, op.getOut(), groups);
    length = host.createOrFold<memref::DimOp>(op.getX(), 1);
    sequences = host.createOrFold<memref::DimOp>(op.getState(), 0);
  }

  SequencesOf getSequences() const {
    Value offsets = const_cast<ShortConvOp &>(op).getOffsets();
    return {offsets, length, sequences, shape.rows};
  }
  int64_t channelBlocks() const {
    return llvm::divideCeil(channels, shape.cols);
  }
  /// Tokens of each sequence, if that is known.
  std::optional<int64_t> knownLength() const {
    if (const_cast<ShortConvOp &>(op).getOffsets())
      return std::nullopt;
    return getConstantIntValue(length);
  }
};

/// Loads shared by both kernels.
class ConvKernel {
public:
  ConvKernel(ConvPlan &plan, StringRef name)
      : plan(plan),
        k(plan.op, name, plan.shape.getKernelAttr(plan.op.getContext())),
        sequences(k, plan.getSequences()) {
    x = k.argument(plan.x);
    w = k.argument(plan.op.getW());
    bias = k.argument(plan.op.getBias());
    out = k.argument(plan.out);
    Value blocks = k.index(plan.channelBlocks());
    channel = k.mul(k.rem(k.blockId(), blocks), k.index(plan.shape.cols));
    rest = k.div(k.blockId(), blocks);
    channelsLeft = k.sub(k.index(plan.channels), channel);
  }

  /// One value per channel.
  Value tap(int64_t i) {
    return k.loadF32({w, {channel, k.index(i)}, {0}, {channelsLeft}}, row());
  }
  Value start() {
    if (!bias)
      return k.constant(0.0);
    return k.loadF32({bias, {channel}, {0}, {channelsLeft}}, row());
  }
  Shape2 row() const { return {1, plan.shape.cols}; }

  /// What is stored of rows `y` of the convolution: activated and, in the
  /// channels that have one, divided by the norm of the head.
  Value result(Value y) {
    y = activate(k, plan.op.getActivation(), y);
    if (plan.norm)
      y = normalized(y);
    return k.convert(y, cast<MemRefType>(plan.out.getType()).getElementType());
  }

  Value normalized(Value y) {
    auto heads = cast<MemRefType>(plan.norm.getX().getType());
    int64_t rows = cast<VectorType>(y.getType()).getDimSize(0);
    Value squares = k.sum(k.fmul(y, y), {rows, 1});
    Value factor = math::RsqrtOp::create(
        k, k.fadd(squares, k.constant(plan.norm.getEps().convertToDouble())));
    Value left =
        k.sub(k.index(heads.getDimSize(2) * heads.getDimSize(3)), channel);
    left = arith::IndexCastOp::create(k, k.getI32Type(), left);
    Value has = k.compare(arith::CmpIPredicate::slt, k.iota(row()), left);
    return k.select(k.broadcast(has, {rows, plan.shape.cols}),
                    k.fmul(y, factor), y);
  }

  ConvPlan &plan;
  KernelBuilder k;
  SequenceMap sequences;
  Value x, w, bias, out, channel, channelsLeft, rest;
};

} // namespace

namespace {

/// A warp on the inner tokens of a block, with the last inputs in registers.
class WalkKernel : public ConvKernel {
public:
  WalkKernel(ConvPlan &plan) : ConvKernel(plan, "short_conv") {}

  void build() {
    chunk = sequences.chunkAt(rest);
    count = k.min(k.sub(chunk.left, k.index(plan.taps - 1)),
                  k.index(plan.shape.rows));
    auto guarded = scf::IfOp::create(k, k.less(k.index(0), count));
    {
      OpBuilder::InsertionGuard guard(k);
      k.setInsertionPointToStart(guarded.thenBlock());
      walk();
    }
    ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
    Value blocks = arith::ConstantIndexOp::create(host, plan.channelBlocks());
    k.launch(host.createOrFold<arith::MulIOp>(
        plan.getSequences().countSlots(host), blocks));
  }

private:
  void walk() {
    for (int64_t i = 0; i < plan.taps; ++i)
      taps.push_back(tap(i));
    first = start();
    SmallVector<Value> inputs;
    for (int64_t i = 0; i < plan.taps - 1; ++i)
      inputs.push_back(load(k.index(i), channelsLeft));
    auto loop = scf::ForOp::create(k, k.index(0), count, k.index(kTokensAtOnce),
                                   inputs);
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    inputs = llvm::to_vector_of<Value>(loop.getRegionIterArgs());
    SmallVector<Value> bounds;
    for (int64_t t = 0; t < kTokensAtOnce; ++t) {
      Value token = k.add(loop.getInductionVar(), k.index(t));
      bounds.push_back(arith::SelectOp::create(k, k.less(token, count),
                                               channelsLeft, k.index(0)));
      inputs.push_back(
          load(k.add(token, k.index(plan.taps - 1)), bounds.back()));
    }
    for (auto [t, bound] : llvm::enumerate(bounds)) {
      Value row = k.add(k.add(chunk.row, k.index(t + plan.taps - 1)),
                        loop.getInductionVar());
      k.store(result(output(ArrayRef<Value>(inputs).slice(t, plan.taps))),
              {out, {row, channel}, {1}, {bound}});
    }
    scf::YieldOp::create(k, ArrayRef<Value>(inputs).take_back(plan.taps - 1));
  }

  Value load(Value token, Value bound) {
    return k.load({x, {k.add(chunk.row, token), channel}, {1}, {bound}}, row());
  }

  Value output(ArrayRef<Value> inputs) {
    Value y = first;
    for (auto [weight, input] : llvm::zip_equal(taps, inputs))
      y = k.fadd(y, k.fmul(weight, k.convert(input, k.getF32Type())));
    return y;
  }

  Chunk chunk;
  /// Tokens of this block.
  Value count;
  /// One row each: the taps and what the sums start from.
  SmallVector<Value> taps;
  Value first;
};

} // namespace

static void buildShiftedKernel(ConvPlan &plan) {
  ConvKernel kernel(plan, "short_conv");
  KernelBuilder &k = kernel.k;
  Chunk chunk = kernel.sequences.chunkAt(kernel.rest);
  Value skipped = k.index(plan.taps - 1);
  Value rows = k.sub(chunk.left, skipped);
  auto guarded = scf::IfOp::create(k, k.less(k.index(0), rows));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(guarded.thenBlock());
    auto access = [&](Value memref, int64_t shift) -> Access {
      return {memref,
              {k.add(chunk.row, k.index(shift)), kernel.channel},
              {0, 1},
              {rows, kernel.channelsLeft}};
    };
    Value y = kernel.start();
    for (int64_t i = 0; i < plan.taps; ++i)
      y = k.fadd(y, k.fmul(kernel.tap(i),
                           k.loadF32(access(kernel.x, i),
                                     {plan.shape.rows, plan.shape.cols})));
    k.store(kernel.result(y), access(kernel.out, plan.taps - 1));
  }
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  Value blocks = arith::ConstantIndexOp::create(host, plan.channelBlocks());
  k.launch(host.createOrFold<arith::MulIOp>(
      plan.getSequences().countSlots(host), blocks));
}

namespace {

/// The edge kernel: inputs by their position p in the sequence, those before it
/// from the state.
class EdgeKernel : public ConvKernel {
public:
  EdgeKernel(ConvPlan &plan) : ConvKernel(plan, "short_conv_edge") {
    state = k.argument(plan.op.getState());
    sequence = sequences.at(rest);
  }

  void build() {
    // All reads of the old state stand in front of the first write.
    SmallVector<Value> next;
    for (int64_t s = 0; s < plan.stored; ++s)
      next.push_back(finalInput(s));
    SmallVector<Value> outputs;
    int64_t tokens = plan.taps - 1;
    if (std::optional<int64_t> length = plan.knownLength())
      tokens = std::min(tokens, *length);
    for (int64_t t = 0; t < tokens; ++t)
      outputs.push_back(output(t));
    for (auto [t, y] : llvm::enumerate(outputs))
      k.store(y, {out,
                  {k.add(sequence.firstRow, k.index(t)), channel},
                  {1},
                  {boundIf(k.less(k.index(t), sequence.length))}});
    Type type = cast<MemRefType>(state.getType()).getElementType();
    for (auto [s, value] : llvm::enumerate(next))
      k.store(k.convert(value, type),
              {state, {rest, channel, k.index(s)}, {1}, {channelsLeft}});
    ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
    Value blocks = arith::ConstantIndexOp::create(host, plan.channelBlocks());
    k.launch(host.createOrFold<arith::MulIOp>(plan.sequences, blocks));
  }

private:
  // The channel bound, or none where `condition` does not hold.
  Value boundIf(Value condition) {
    return arith::SelectOp::create(k, condition, channelsLeft, k.index(0));
  }

  Value inputAt(Value position, Value condition = {}) {
    return k.loadF32({x,
                      {k.add(sequence.firstRow, position), channel},
                      {1},
                      {condition ? boundIf(condition) : channelsLeft}},
                     row());
  }

  Value oldInput(int64_t column) {
    return k.loadF32(
        {state, {rest, channel, k.index(column)}, {1}, {channelsLeft}}, row());
  }

  // Column s of the final state: the input at position length - S + s, which
  // for short sequences is a column of the old state.
  Value finalInput(int64_t s) {
    Value column = k.add(sequence.length, k.index(s));
    if (std::optional<int64_t> length = plan.knownLength())
      return *length + s < plan.stored
                 ? oldInput(*length + s)
                 : inputAt(k.index(*length + s - plan.stored));
    Value isOld = k.less(column, k.index(plan.stored));
    Value isNew = k.less(k.index(plan.stored - 1), column);
    Value old = k.loadF32(
        {state, {rest, channel, column}, {1}, {boundIf(isOld)}}, row());
    return k.fadd(old, inputAt(k.sub(column, k.index(plan.stored)), isNew));
  }

  Value output(int64_t t) {
    Value isToken = k.less(k.index(t), sequence.length);
    Value y = start();
    for (int64_t i = 0; i < plan.taps; ++i) {
      int64_t position = t - plan.taps + 1 + i;
      Value input = position < 0 ? oldInput(plan.stored + position)
                                 : inputAt(k.index(position), isToken);
      y = k.fadd(y, k.fmul(tap(i), input));
    }
    return result(y);
  }

  Value state;
  Sequence sequence;
};

} // namespace

static bool startsWhole(memref::SubViewOp view, Value whole) {
  return view.getSource() == whole && getWhole(view) == whole;
}

/// A warp holds one head, a few neighbouring elements in each thread.
static bool fitsWarp(MemRefType heads) {
  int64_t size = heads.getDimSize(3), chunk = size / 32;
  return size % 32 == 0 && llvm::isPowerOf2_64(chunk) &&
         chunk * heads.getElementTypeBitWidth() <= 128;
}

/// The norm, in place, of the heads that `view` shows; null if there is more
/// than that.
static L2NormOp findNormOfHeads(memref::SubViewOp view) {
  if (!view->hasOneUse())
    return {};
  auto heads = dyn_cast<memref::ExpandShapeOp>(*view->user_begin());
  if (!heads || heads.getResultType().getRank() != 4 ||
      !llvm::hasNItems(heads->getUses(), 2))
    return {};
  auto norm = dyn_cast<L2NormOp>(*heads->user_begin());
  bool isInPlace =
      norm && norm.getX() == norm.getOut() && norm.getX() == heads.getResult();
  return isInPlace && fitsWarp(heads.getResultType()) ? norm : L2NormOp();
}

L2NormOp mlir::gdn::findConvNorm(ShortConvOp op) {
  if (!isa<MemRefType>(op.getOut().getType()))
    return {};
  for (Operation *user : op.getOut().getUsers()) {
    auto view = dyn_cast<memref::SubViewOp>(user);
    L2NormOp norm = view && startsWhole(view, op.getOut())
                        ? findNormOfHeads(view)
                        : L2NormOp();
    if (!norm || norm->getBlock() != op->getBlock() ||
        !op->isBeforeInBlock(norm))
      continue;
    bool isUsedBetween =
        llvm::any_of(op.getOut().getUsers(), [&](Operation *other) {
          return other != op && other != view && !isa<memref::DimOp>(other) &&
                 (other->getBlock() != op->getBlock() ||
                  (op->isBeforeInBlock(other) && other->isBeforeInBlock(norm)));
        });
    if (!isUsedBetween)
      return norm;
  }
  return {};
}

LogicalResult mlir::gdn::buildShortConvKernels(ShortConvOp op, L2NormOp norm) {
  if (failed(verifyRowsForm(op, op.getX())))
    return failure();
  auto type = cast<MemRefType>(op.getX().getType());
  int64_t taps = cast<MemRefType>(op.getW().getType()).getDimSize(1);
  int64_t stored = cast<MemRefType>(op.getState().getType()).getDimSize(2);
  if (taps > kMaxTaps || stored > kMaxStored)
    return op.emitOpError("has no tile form for ")
           << taps << " taps and " << stored
           << " inputs in the state; the limits are " << kMaxTaps << " and "
           << kMaxStored;
  int64_t channels = std::min(type.getDimSize(2), kBlockChannels);
  RowShape edgeShape = RowShape::singleRow(type.getElementType());
  if (norm) {
    channels = cast<MemRefType>(norm.getX().getType()).getDimSize(3);
    edgeShape.cols = channels;
    edgeShape.elementsPerChunk = channels / edgeShape.lanes;
  }
  ConvPlan edge(op, norm, edgeShape);
  std::optional<int64_t> length = edge.knownLength();
  if (!length || *length >= taps) {
    if (taps <= kMaxRegisterTaps) {
      RowShape shape = edgeShape;
      shape.rows = kBlockTokens;
      if (!norm) {
        shape.elementsPerChunk = kChannelsOfThread;
        shape.cols = shape.lanes * kChannelsOfThread;
      }
      ConvPlan inner(op, norm, shape);
      WalkKernel(inner).build();
    } else {
      ConvPlan inner(op, norm, RowShape(channels, type.getElementType()));
      buildShiftedKernel(inner);
    }
  }
  EdgeKernel(edge).build();
  return success();
}
