//===- RefineOp.cpp - second parts of a chunk's products ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

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
  return success();
}

LogicalResult RefineOp::verify() {
  if (failed(verifyShapes(*this)))
    return failure();
  auto a = cast<VectorType>(getA().getType());
  auto factors = cast<MemRefType>(getFactors().getType());
  auto rows = std::minmax<int64_t>(getMask(), getScale());
  if (factors.getRank() != 1 || !isShared(factors) ||
      !factors.getElementType().isF32() || !factors.hasStaticShape() ||
      rows.first < 0 || rows.second + a.getDimSize(1) > factors.getDimSize(0))
    return emitOpError("expects factors of f32 in shared memory that hold the "
                       "rows at ")
           << getMask() << " and " << getScale() << ", but has " << factors;
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
  if (getRing())
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

  Value factors(int64_t first) {
    Value index = arith::ConstantIndexOp::create(b, first);
    auto row = VectorType::get({1, wide.getDimSize(1)}, b.getF32Type());
    Value load = LoadOp::create(b, row, op.getFactors(), ValueRange{index},
                                ArrayRef<int64_t>{0}, ValueRange());
    return vector::BroadcastOp::create(b, wide, load);
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
  Value masked(Value value, Value mask) {
    return mask ? arith::MulFOp::create(b, value, mask).getResult() : value;
  }
  Value errorOf(Value value, Value mask) {
    return round(masked(lacking(value, round(value)), mask));
  }
  void run();

  RefineOp op;
  ImplicitLocOpBuilder b;
  VectorType narrow, wide;
};

} // namespace

void Expansion::run() {
  Value mask = factors(op.getMask());
  Value again = multiply(op.getA(), op.getN(), Value(), /*transposeB=*/true);
  Value d = arith::SubFOp::create(b, op.getAcc(), again);
  Value rest = round(masked(lacking(d, op.getA()), mask));
  // Kernels without warpgroup products have no registers to spare: behind the
  // barriers nothing is mixed with what is in front, and the mask is loaded
  // anew.
  BarrierOp::create(b);
  Value u = multiply(op.getA(), op.getLow(), op.getAcc(), /*transposeB=*/true);
  u = multiply(rest, op.getN(), u, /*transposeB=*/true);
  Value scaled = arith::MulFOp::create(b, u, factors(op.getScale()));
  Value state = multiply(errorOf(scaled, Value()), op.getK(), op.getState(),
                         /*transposeB=*/false);
  SmallVector<Value> results{u, state};
  if (op.getOutput()) {
    BarrierOp::create(b);
    results.push_back(multiply(errorOf(u, factors(op.getMask())), op.getP(),
                               op.getOutput(), /*transposeB=*/true));
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
