//===- RefineOp.cpp - second parts of a chunk's products ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::gdn_tile;

using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

RingOp RefineOp::getRing() { return getLow().getDefiningOp<RingOp>(); }

Value RefineOp::getLowBuffer() {
  if (isa<MemRefType>(getLow().getType()))
    return getLow();
  RingOp ring = getRing();
  return ring && ring.getBuffers().size() == 1 ? ring.getBuffers().front()
                                               : Value();
}

// Whether a tile, or its last two dimensions, is a right operand of `a` with as
// many rows as columns.
static bool isSquareOperand(Value tile, VectorType a, bool isStaged = false) {
  auto type = cast<MemRefType>(tile.getType());
  ArrayRef<int64_t> shape = type.getShape();
  if (isStaged && !shape.empty())
    shape = shape.drop_front();
  int64_t size = a.getDimSize(1);
  bool fits = shape.size() == 2 && (shape == ArrayRef<int64_t>{size, size} ||
                                    getPanelRows(shape, a) == size);
  return fits && isShared(type) && type.getElementType() == a.getElementType();
}

static LogicalResult verifyShapes(RefineOp op) {
  auto a = cast<VectorType>(op.getA().getType());
  auto state = cast<VectorType>(op.getState().getType());
  auto k = cast<MemRefType>(op.getK().getType());
  Type wide = a.clone(Float32Type::get(op.getContext()));
  Value low = op.getLowBuffer();
  if (!low ||
      (op.getRing() && op.getRing().getRing().getType().getStages() != 1))
    return op.emitOpError("expects a ring of one stage with one tile");
  if (a.getElementTypeBitWidth() != 16 || op.getAcc().getType() != wide ||
      op.getResult().getType() != wide || !isSquareOperand(op.getN(), a) ||
      !isSquareOperand(low, a, /*isStaged=*/op.getRing() != nullptr))
    return op.emitOpError("expects fragments MxC of 16 bits and of f32, and "
                          "tiles CxC, or their panels, but has ")
           << a << ", " << op.getAcc().getType() << ", " << op.getN().getType()
           << " and " << low.getType();
  if (!state.getElementType().isF32() || op.getNewState().getType() != state ||
      state.getDimSize(0) != a.getDimSize(0) || k.getRank() != 2 ||
      !isShared(k) || k.getElementType() != a.getElementType() ||
      k.getDimSize(0) != a.getDimSize(1) ||
      k.getDimSize(1) != state.getDimSize(1))
    return op.emitOpError("expects a state MxK of f32 and a tile CxK, but has ")
           << state << " and " << k << " beside " << a;
  bool hasOutput = op.getOutput() != nullptr;
  if (hasOutput != (op.getP() != nullptr) ||
      hasOutput != (op.getNewOutput() != nullptr) ||
      (hasOutput &&
       (op.getOutput().getType() != wide ||
        op.getNewOutput().getType() != wide || !isSquareOperand(op.getP(), a))))
    return op.emitOpError("expects an output MxC of f32, a result and a tile "
                          "CxC, or its panels, or none of them");
  if (op.getQ() && (!hasOutput || op.getQ().getType() != k || !op.getBeta() ||
                    !op.getFactor()))
    return op.emitOpError("expects beside scores an output, a tile of the type "
                          "of k, `beta` and `factor`, but has ")
           << op.getQ().getType() << " beside " << k;
  if (op.getScaled() && !op.getGrown())
    return op.emitOpError("expects `grown` beside `scaled`");
  return success();
}

LogicalResult RefineOp::verify() {
  if (failed(verifyShapes(*this)))
    return failure();
  auto a = cast<VectorType>(getA().getType());
  auto factors = cast<MemRefType>(getFactors().getType());
  if (factors.getRank() != 1 || !isShared(factors) ||
      !factors.getElementType().isF32() || !factors.hasStaticShape())
    return emitOpError("expects factors of f32 in shared memory, but has ")
           << factors;
  auto isInside = [&](std::optional<uint64_t> first, int64_t size) {
    int64_t at = first.value_or(0);
    return at >= 0 && at + size <= factors.getDimSize(0);
  };
  int64_t c = a.getDimSize(1);
  if (!isInside(getCount(), 1) || !isInside(getScale(), c) ||
      !isInside(getBeta(), c) || !isInside(getGrown(), c) ||
      !isInside(getScaled(), c))
    return emitOpError("expects an element and rows of ")
           << c << " in " << factors << ", but has element " << getCount()
           << " and rows at " << getScale() << ", " << getBeta().value_or(0)
           << ", " << getGrown().value_or(0) << " and "
           << getScaled().value_or(0);
  RingOp ring = getRing();
  if (!getCondition())
    return ring ? emitOpError("expects a condition beside a ring") : success();
  RoleOp role = getRole(*this);
  if (!role)
    return emitOpError("has a condition outside of a role");
  if (a.getDimSize(0) % 64 != 0 || a.getDimSize(1) % 64 != 0 ||
      cast<MemRefType>(getK().getType()).getDimSize(1) % 64 != 0)
    return emitOpError("expects multiples of 64 beside a condition, but has ")
           << a << " and " << getK().getType();
  if (getQ() && c != 64)
    return emitOpError("expects 64 columns beside a condition and scores, but "
                       "has ")
           << a;
  if (ring && role.getWarps() != ring.getConsumers())
    return emitOpError("expects to stand in a role whose warps are the ")
           << ring.getConsumers() << " consumers of the ring";
  return success();
}

void RefineOp::getEffects(Effects &effects) {
  auto add = [&](OpOperand &operand, MemoryEffects::Effect *effect) {
    effects.emplace_back(effect, &operand, SideEffects::DefaultResource::get());
  };
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()))
      add(operand, MemoryEffects::Read::get());
  if (getRing() || getQ())
    add(getLowMutable(), MemoryEffects::Write::get());
}

//===----------------------------------------------------------------------===//
// The ops that it stands for
//===----------------------------------------------------------------------===//

namespace {

/// Builds them in front of a refinement.
struct Expansion {
  explicit Expansion(RefineOp op)
      : op(op), b(op.getLoc(), op),
        narrow(cast<VectorType>(op.getA().getType())),
        wide(cast<VectorType>(op.getAcc().getType())) {}

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value constant(VectorType type, double value) {
    return arith::ConstantOp::create(
        b, SplatElementsAttr::get(type, FloatAttr::get(b.getF32Type(), value)));
  }
  /// `rows` x `columns` of the factors, one of them 1.
  Value load(int64_t first, int64_t rows, int64_t columns) {
    auto type = VectorType::get({rows, columns}, b.getF32Type());
    Value begin = index(first);
    return LoadOp::create(b, type, op.getFactors(), ValueRange{begin},
                          ArrayRef<int64_t>{0}, ValueRange());
  }
  Value iota(int64_t rows, int64_t columns) {
    return IotaOp::create(b, VectorType::get({rows, columns}, b.getI32Type()));
  }
  Value broadcast(Value value) {
    Type type = wide.clone(getElementTypeOrSelf(value.getType()));
    return vector::BroadcastOp::create(b, type, value);
  }
  /// Compares what is broadcast to the shape of the fragments.
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, broadcast(x), broadcast(y));
  }
  /// The first column that second parts enter.
  Value getFirst() {
    Value count = memref::LoadOp::create(b, op.getFactors(),
                                         ValueRange{index(op.getCount())});
    count = arith::FPToSIOp::create(b, b.getI32Type(), count);
    Value all = arith::ConstantIntOp::create(b, wide.getDimSize(1), 32);
    return arith::SubIOp::create(b, all, count);
  }
  Value multiply(Value a, Value tile, Value acc, bool transposeB) {
    Type type = acc ? acc.getType() : Type(wide);
    return MmaOp::create(b, type, a, tile, acc, transposeB, /*passes=*/3);
  }
  Value lacking(Value value, Value rounded) {
    Value back = arith::ExtFOp::create(b, wide, rounded);
    return arith::SubFOp::create(b, value, back);
  }
  Value round(Value value) { return arith::TruncFOp::create(b, narrow, value); }
  Value late(Value value) {
    Value isLate = compare(arith::CmpIPredicate::sge,
                           iota(1, wide.getDimSize(1)), getFirst());
    return arith::SelectOp::create(b, isLate, value, constant(wide, 0.0));
  }
  Value errorOf(Value value) { return lacking(value, round(value)); }
  void run();
  Value makeScores();
  void storeScores(Value tile, int64_t row);

  RefineOp op;
  ImplicitLocOpBuilder b;
  VectorType narrow, wide;
};

} // namespace

// Rows `row` and later of P^T, as many as there are rows of a fragment, without
// what `p` has of them: columns of the tile.
void Expansion::storeScores(Value tile, int64_t row) {
  int64_t m = wide.getDimSize(0), c = wide.getDimSize(1);
  auto keys = cast<MemRefType>(op.getK().getType());
  Value zero = index(0), first = index(row), left = index(c - row);
  Value rows = LoadOp::create(
      b, VectorType::get({m, keys.getDimSize(1)}, keys.getElementType()),
      op.getK(), ValueRange{first, zero}, ArrayRef<int64_t>{0, 1},
      ValueRange{left, index(keys.getDimSize(1))});
  Value exact = multiply(rows, op.getQ(), Value(), /*transposeB=*/true);
  // Factors of later rows than there are multiply zeros.
  auto ofRows = [&](int64_t begin) {
    auto type = VectorType::get({m, 1}, b.getF32Type());
    Value at = index(begin + row);
    return LoadOp::create(b, type, op.getFactors(), ValueRange{at},
                          ArrayRef<int64_t>{0}, ValueRange{left});
  };
  auto times = [&](Value x, Value y) {
    return arith::MulFOp::create(b, x, y).getResult();
  };
  auto column = VectorType::get({m, 1}, b.getF32Type());
  Value scaled = ofRows(*op.getBeta());
  if (!op.getScaled())
    scaled = times(scaled, constant(column, op.getFactor()->convertToDouble()));
  Value number = arith::AddIOp::create(
      b, iota(m, 1),
      vector::BroadcastOp::create(b, VectorType::get({m, 1}, b.getI32Type()),
                                  arith::ConstantIntOp::create(b, row, 32)));
  Value isKept = arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::sle, number, iota(1, c)),
      compare(arith::CmpIPredicate::sge, iota(1, c), getFirst()));
  if (op.getGrown()) {
    Value grown = load(op.getScaled().value_or(*op.getGrown()), 1, c);
    Value own = ofRows(*op.getGrown());
    auto line = cast<VectorType>(grown.getType());
    Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, grown,
                                          constant(line, kLeastGrown));
    isKept = arith::AndIOp::create(b, isKept, broadcast(isLarge));
    scaled = arith::DivFOp::create(b, scaled, own);
    exact = times(exact, broadcast(grown));
  }
  exact = times(exact, broadcast(scaled));
  // A product with the unit matrix reads any layout.
  Value isOne = compare(arith::CmpIPredicate::eq, number, iota(1, c));
  Value unit = round(arith::SelectOp::create(b, isOne, constant(wide, -1.0),
                                             constant(wide, 0.0)));
  Value lacking = multiply(unit, op.getP(), exact, /*transposeB=*/true);
  lacking = arith::SelectOp::create(b, isKept, lacking, constant(wide, 0.0));
  StoreOp::create(b, round(lacking), tile, ValueRange{zero, first},
                  ArrayRef<int64_t>{1, 0}, ValueRange{left, index(c)});
}

// What `p` lacks, in a tile of its own.
Value Expansion::makeScores() {
  int64_t m = wide.getDimSize(0), c = wide.getDimSize(1);
  OpBuilder entry = OpBuilder::atBlockBegin(
      &op->getParentOfType<FunctionOpInterface>().getFunctionBody().front());
  auto space = cast<MemRefType>(op.getP().getType()).getMemorySpace();
  auto type = MemRefType::get({c, c}, narrow.getElementType(),
                              MemRefLayoutAttrInterface(), space);
  Value tile = memref::AllocOp::create(entry, op.getLoc(), type);
  for (int64_t row = 0; row < c; row += m)
    storeScores(tile, row);
  BarrierOp::create(b);
  return tile;
}

void Expansion::run() {
  Value again = multiply(op.getA(), op.getN(), Value(), /*transposeB=*/true);
  Value d = arith::SubFOp::create(b, op.getAcc(), again);
  Value rest = round(late(lacking(d, op.getA())));
  // Kernels without warpgroup products have no registers to spare: behind the
  // barriers nothing is mixed with what is in front.
  BarrierOp::create(b);
  Value u = multiply(op.getA(), op.getLow(), op.getAcc(), /*transposeB=*/true);
  u = multiply(rest, op.getN(), u, /*transposeB=*/true);
  Value scaled = arith::MulFOp::create(
      b, u, broadcast(load(op.getScale(), 1, wide.getDimSize(1))));
  Value state = multiply(round(errorOf(scaled)), op.getK(), op.getState(),
                         /*transposeB=*/false);
  SmallVector<Value> results{u, state};
  if (op.getOutput()) {
    BarrierOp::create(b);
    Value output = multiply(round(late(errorOf(u))), op.getP(), op.getOutput(),
                            /*transposeB=*/true);
    if (op.getQ()) {
      BarrierOp::create(b);
      output = multiply(round(u), makeScores(), output, /*transposeB=*/true);
    }
    results.push_back(output);
  }
  op->replaceAllUsesWith(results);
  op.erase();
}

void mlir::gdn_tile::expandRefinement(RefineOp op) {
  assert(!op.getCondition() && "of a role");
  Expansion(op).run();
}

void mlir::gdn_tile::expandRefinements(Operation *root) {
  SmallVector<RefineOp> ops;
  root->walk([&](RefineOp op) {
    if (!op.getCondition())
      ops.push_back(op);
  });
  llvm::for_each(ops, expandRefinement);
}
