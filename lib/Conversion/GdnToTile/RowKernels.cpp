//===- RowKernels.cpp - kernels that map rows to rows ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gdn.l2norm, gdn.gated_rms_norm and gdn.gate read each element once and write
// it once. A block takes some rows in the `rows` layout.
//
//===----------------------------------------------------------------------===//

#include "RowKernels.h"

#include "KernelBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

constexpr int64_t kWarps = 4;
// A row lies in the registers of one warp. Longer ones would only spill, and
// compile for minutes.
constexpr int64_t kMaxRowSize = 16384;

int64_t lastDim(Value value) {
  return cast<MemRefType>(value.getType()).getShape().back();
}

Type elementType(Value value) {
  return cast<MemRefType>(value.getType()).getElementType();
}

} // namespace

RowShape::RowShape(int64_t size, Type type) {
  warps = kWarps;
  elementsPerChunk = 128 / type.getIntOrFloatBitWidth();
  int64_t chunks = llvm::divideCeil(size, elementsPerChunk);
  lanes = std::min<int64_t>(32, llvm::PowerOf2Ceil(chunks));
  cols = llvm::alignTo(size, elementsPerChunk * lanes);
  // Two register groups keep enough loads in flight.
  rows = 2 * warps * (32 / lanes);
}

RowShape RowShape::singleRow(Type type) {
  RowShape shape;
  shape.warps = 1;
  shape.rows = 1;
  shape.lanes = 32;
  shape.elementsPerChunk = 128 / type.getIntOrFloatBitWidth();
  shape.cols = shape.lanes * shape.elementsPerChunk;
  return shape;
}

gdn_tile::KernelAttr RowShape::getKernelAttr(MLIRContext *context) const {
  return gdn_tile::KernelAttr::get(context, warps,
                                   gdn_tile::FragmentLayoutKind::Rows, lanes,
                                   elementsPerChunk, /*blocksPerSM=*/0);
}

LogicalResult mlir::gdn::verifyRowsForm(Operation *op, Value input) {
  for (Value operand : op->getOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    if (!memref)
      return op->emitOpError("has no tile form on tensors; bufferize first");
    if (!memref.getLayout().isIdentity() &&
        (operand != input || !getWhole(operand)))
      return op->emitOpError("has no tile form for the strided operand ")
             << memref;
  }
  return success();
}

static LogicalResult verifyRowSize(Operation *op, int64_t size) {
  if (size <= kMaxRowSize)
    return success();
  return op->emitOpError("has no tile form for rows of ")
         << size << " elements; the limit is " << kMaxRowSize;
}

Value mlir::gdn::activate(KernelBuilder &k, Activation activation, Value x) {
  if (activation == Activation::None)
    return x;
  // 1 / (1 + exp(-x)): exp overflows to infinity, its reciprocal is 0.
  Value power = k.exp2(k.fmul(x, k.constant(-kLog2E)));
  Value sigmoid = k.fdiv(k.constant(1.0), k.fadd(k.constant(1.0), power));
  return activation == Activation::SiLU ? k.fmul(x, sigmoid) : sigmoid;
}

Value mlir::gdn::flattenRows(ImplicitLocOpBuilder &b, Value value,
                             int64_t keep) {
  auto type = cast<MemRefType>(value.getType());
  int64_t rank = type.getRank();
  if (rank == keep) {
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), 1);
    SmallVector<ReassociationIndices> groups = {{0, 1}};
    for (int64_t dim = 1; dim < rank; ++dim)
      groups.push_back({dim + 1});
    return memref::ExpandShapeOp::create(b, shape, value, groups);
  }
  if (rank == keep + 1)
    return value;
  SmallVector<ReassociationIndices> groups(1);
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim >= rank - keep)
      groups.push_back({dim});
    else
      groups[0].push_back(dim);
  }
  return memref::CollapseShapeOp::create(b, value, groups);
}

Value mlir::gdn::rowGrid(ImplicitLocOpBuilder &host, Value flat, int64_t rows,
                         int64_t factor) {
  Value size = memref::DimOp::create(host, flat, 0);
  Value perBlock = arith::ConstantIndexOp::create(host, rows);
  Value blocks = arith::CeilDivUIOp::create(host, size, perBlock);
  if (factor == 1)
    return blocks;
  Value times = arith::ConstantIndexOp::create(host, factor);
  return arith::MulIOp::create(host, blocks, times);
}

// Rows of the first heads of a slice have others between them: there a block
// takes rows of one head.
LogicalResult mlir::gdn::buildL2NormKernel(L2NormOp op) {
  if (failed(verifyRowsForm(op, op.getX())) ||
      failed(verifyRowSize(op, lastDim(op.getX()))))
    return failure();
  ImplicitLocOpBuilder host(op.getLoc(), op);
  int64_t size = lastDim(op.getX());
  RowShape shape(size, elementType(op.getX()));
  auto type = cast<MemRefType>(op.getX().getType());
  bool perHead = !type.getLayout().isIdentity() && type.getRank() == 4;
  int64_t keep = perHead ? 2 : 1, heads = perHead ? type.getDimSize(2) : 1;
  Value in = flattenRows(host, getWhole(op.getX()), keep);
  Value out = flattenRows(host, op.getOut(), keep);
  Value count = memref::DimOp::create(host, in, 0);
  KernelBuilder k(op, "l2norm", shape.getKernelAttr(op.getContext()));
  Value inArg = k.argument(in), outArg = k.argument(out);
  Value countArg = k.argument(count);
  Value head = k.rem(k.blockId(), k.index(heads));
  Value row = k.mul(k.div(k.blockId(), k.index(heads)), k.index(shape.rows));
  auto access = [&](Value memref) -> Access {
    SmallVector<Value> indices = {row, k.index(0)};
    if (perHead)
      indices.insert(indices.begin() + 1, head);
    return {memref, indices, {0, keep}, {k.sub(countArg, row), k.index(size)}};
  };
  Value x = k.loadF32(access(inArg), {shape.rows, shape.cols});
  Value sum = k.sum(k.fmul(x, x), {shape.rows, 1});
  Value factor = math::RsqrtOp::create(
      k, k.fadd(sum, k.constant(op.getEps().convertToDouble())));
  k.store(k.convert(k.fmul(x, factor), elementType(op.getOut())),
          access(outArg));
  k.launch(rowGrid(host, in, shape.rows, heads));
  return success();
}

LogicalResult mlir::gdn::buildGatedRMSNormKernel(GatedRMSNormOp op) {
  if (failed(verifyRowsForm(op)) ||
      failed(verifyRowSize(op, lastDim(op.getX()))))
    return failure();
  ImplicitLocOpBuilder host(op.getLoc(), op);
  int64_t size = lastDim(op.getX());
  RowShape shape(size, elementType(op.getX()));
  Value in = flattenRows(host, op.getX(), 1);
  Value z = flattenRows(host, op.getZ(), 1);
  Value out = flattenRows(host, op.getOut(), 1);
  Value count = memref::DimOp::create(host, in, 0);
  KernelBuilder k(op, "gated_rms_norm", shape.getKernelAttr(op.getContext()));
  Value inArg = k.argument(in), zArg = k.argument(z);
  Value weightArg = k.argument(op.getW()), outArg = k.argument(out);
  Value countArg = k.argument(count);
  Value row = k.mul(k.blockId(), k.index(shape.rows));
  auto access = [&](Value memref) -> Access {
    return {memref,
            {row, k.index(0)},
            {0, 1},
            {k.sub(countArg, row), k.index(size)}};
  };
  Shape2 block{shape.rows, shape.cols};
  Value x = k.loadF32(access(inArg), block);
  Value gate = activate(k, op.getActivation(), k.loadF32(access(zArg), block));
  Value weight = k.loadF32({weightArg, {k.index(0)}, {0}, {k.index(size)}},
                           {1, shape.cols});
  Value mean = k.fmul(k.sum(k.fmul(x, x), {shape.rows, 1}),
                      k.constant(1.0 / static_cast<double>(size)));
  Value factor = math::RsqrtOp::create(
      k, k.fadd(mean, k.constant(op.getEps().convertToDouble())));
  Value y = k.fmul(k.fmul(k.fmul(x, factor), weight), gate);
  k.store(k.convert(y, elementType(op.getOut())), access(outArg));
  k.launch(rowGrid(host, in, shape.rows, 1));
  return success();
}

// exp(x) to about 2^-22 for any x: the part of x * log2(e) that its rounding
// loses would cost |x| 2^-24.
static Value preciseExp(KernelBuilder &k, Value x) {
  constexpr double log2ERest = 1.925963033500011e-08; // log2(e) - f32(log2(e))
  Value log2E = k.constant(kLog2E);
  Value exponent = k.fmul(x, log2E);
  Value rest = k.fma(x, log2E, k.fsub(k.constant(0.0), exponent));
  rest = k.fma(x, k.constant(log2ERest), rest);
  // 2^rest = 1 + rest ln 2; x = -inf leaves rest = NaN.
  Value power = k.exp2(exponent);
  Value correction =
      k.fmul(k.fmul(power, rest), k.constant(0.6931471805599453));
  Value isZero = arith::CmpFOp::create(k, arith::CmpFPredicate::OEQ, power,
                                       k.broadcastLike(k.constant(0.0), power));
  return arith::SelectOp::create(k, isZero, power, k.fadd(power, correction));
}

// log(1 + p) for p in [0, 1] as 2 atanh(p / (2 + p)): the argument is at most
// 1/3, so eight terms of the series reach float32, and small p keep all their
// bits, which 1 + p would not.
static Value log1pOfUnit(KernelBuilder &k, Value p) {
  Value s = k.fdiv(p, k.fadd(p, k.constant(2.0)));
  Value square = k.fmul(s, s);
  Value sum = k.constant(1.0 / 15);
  for (int64_t term = 13; term >= 1; term -= 2)
    sum = k.fma(sum, square, k.constant(1.0 / static_cast<double>(term)));
  return k.fmul(k.fadd(s, s), sum);
}

// softplus(x) = max(x, 0) + log1p(exp(-|x|)): no jump, no overflow.
static Value softplus(KernelBuilder &k, Value x) {
  Value zero = k.constant(0.0);
  Value magnitude = k.fmax(x, k.fsub(zero, x));
  Value power = preciseExp(k, k.fsub(zero, magnitude));
  return k.fadd(k.fmax(x, zero), log1pOfUnit(k, power));
}

Value mlir::gdn::emitLogGate(KernelBuilder &k, Value x, Value logRate,
                             std::optional<APFloat> bound) {
  Value rate = preciseExp(k, logRate);
  if (bound)
    return k.fmul(activate(k, Activation::Sigmoid, k.fmul(x, rate)),
                  k.constant(bound->convertToDouble()));
  return k.fmul(softplus(k, x), k.fsub(k.constant(0.0), rate));
}

// One block takes rows (batch, time) of one head, or of all heads at once if
// the gate has one value per head: then the heads are the columns.
LogicalResult mlir::gdn::buildGateKernel(GateOp op) {
  if (failed(verifyRowsForm(op, op.getA())) ||
      failed(verifyRowSize(op, lastDim(op.getA()))))
    return failure();
  ImplicitLocOpBuilder host(op.getLoc(), op);
  bool perChannel = cast<MemRefType>(op.getA().getType()).getRank() == 4;
  int64_t keep = perChannel ? 2 : 1;
  int64_t size = lastDim(op.getA());
  int64_t heads =
      perChannel ? cast<MemRefType>(op.getA().getType()).getDimSize(2) : 1;
  RowShape shape(size, host.getF32Type());
  Value in = flattenRows(host, getWhole(op.getA()), keep);
  Value out = flattenRows(host, op.getOut(), keep);
  Value count = memref::DimOp::create(host, in, 0);
  KernelBuilder k(op, "gate", shape.getKernelAttr(op.getContext()));
  Value inArg = k.argument(in), rateArg = k.argument(op.getALog());
  Value biasArg = k.argument(op.getBias());
  Value outArg = k.argument(out), countArg = k.argument(count);
  Value head = k.rem(k.blockId(), k.index(heads));
  Value row = k.mul(k.div(k.blockId(), k.index(heads)), k.index(shape.rows));
  auto access = [&](Value memref) -> Access {
    SmallVector<Value> indices = {row};
    if (perChannel)
      indices.push_back(head);
    indices.push_back(k.index(0));
    return {memref, indices, {0, keep}, {k.sub(countArg, row), k.index(size)}};
  };
  Shape2 columns{1, shape.cols};
  Value x = k.loadF32(access(inArg), {shape.rows, shape.cols});
  if (biasArg) {
    SmallVector<Value> indices = {k.index(0)};
    if (perChannel)
      indices.insert(indices.begin(), head);
    x = k.fadd(
        x, k.load({biasArg, indices, {keep - 1}, {k.index(size)}}, columns));
  }
  Value logRate;
  if (perChannel)
    logRate = memref::LoadOp::create(k, rateArg, ValueRange{head});
  else
    logRate = k.load({rateArg, {k.index(0)}, {0}, {k.index(size)}}, columns);
  Value g = emitLogGate(k, x, logRate, op.getLowerBound());
  k.store(g, access(outArg));
  k.launch(rowGrid(host, in, shape.rows, heads));
  return success();
}
