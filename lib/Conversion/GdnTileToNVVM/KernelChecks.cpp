//===- KernelChecks.cpp - what the GPU lowering refuses -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All errors come from here, before the conversion: patterns do not fail.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

/// LLVM ends the process on a name that PTX does not have.
LogicalResult KernelLowering::checkName() {
  StringRef name = func.getName();
  auto isFollowing = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$';
  };
  bool startsWell =
      !name.empty() && (llvm::isAlpha(name.front()) ||
                        (name.size() > 1 && !llvm::isDigit(name.front())));
  if (startsWell && llvm::all_of(name, isFollowing))
    return success();
  return func.emitOpError("names a kernel '")
         << name
         << "', but names in PTX have letters, digits, _ and $ only and start "
            "with no digit";
}

LogicalResult KernelLowering::checkArguments() {
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (isa<TensorMapType>(type) && !target.hasTensorMaps())
      return func.emitOpError("argument ")
             << i << " is a tensor map, but " << target.name
             << " has no copy engine for it";
    if (type.isIndex() || isa<TensorMapType>(type))
      continue;
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return func.emitOpError("argument ")
             << i << " has type " << type
             << ", but a kernel takes memrefs, tensor maps and index values";
    if (!memref.getLayout().isIdentity() || isShared(memref) ||
        llvm::is_contained(memref.getShape().drop_front(memref.getRank() > 0),
                           ShapedType::kDynamic))
      return func.emitOpError("argument ")
             << i << " has type " << type
             << ", but only the outermost dimension of a contiguous memref in "
                "global memory may be dynamic";
  }
  return success();
}

LogicalResult KernelLowering::checkType(Operation *op, Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getFragment();
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return success();
  if (!isFragment(type))
    return op->emitOpError("has a vector of type ")
           << type << ", but fragments have rank 2";
  Type element = vector.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16() &&
      !element.isInteger(32) && !element.isInteger(1))
    return op->emitOpError("has a fragment of type ")
           << type << ", but the GPU lowering has f32, f16, bf16, i32 and i1";
  // Constants of a warp's region stand at the function's entry.
  int64_t rows = vector.getDimSize(0), warps = kernel.getWarps();
  if (kernel.getLayout() == FragmentLayoutKind::Accumulator && rows == 16 &&
      warps > 1 && !isInWarp(op) && !isa<arith::ConstantOp>(op))
    return op->emitOpError()
           << "fragment " << type << " has 16 rows, but " << warps
           << " warps hold " << 16 * warps << " in the accumulator layout";
  if (RoleOp role = getRole(op))
    warps = role.getWarpsOfTeam();
  if (kernel.getLayout() == FragmentLayoutKind::Accumulator && rows > 16 &&
      rows != 16 * warps && !isInWarp(op) && !isa<arith::ConstantOp>(op))
    return op->emitOpError()
           << "fragment " << type << " has " << rows << " rows, but the "
           << warps << " warps that it stands in hold " << 16 * warps;
  return FragmentLayout::get(kernel, vector, [&] { return op->emitOpError(); });
}

static bool isSupported(Operation *op) {
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp,
          func::ReturnOp, func::FuncOp, memref::AllocOp, memref::LoadOp,
          memref::StoreOp, vector::BroadcastOp>(op))
    return true;
  if (isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::Log1pOp,
          math::RsqrtOp, math::SqrtOp, math::AbsFOp, math::FmaOp>(op))
    return true;
  if (isa<LaunchOp, MakeTensorMapOp>(op))
    return false;
  return isa<arith::ArithDialect, GdnTileDialect>(op->getDialect());
}

/// Offsets inside a tile are 32 bits wide.
static LogicalResult checkSpan(Operation *op, MemRefType memref,
                               ArrayRef<int64_t> dims,
                               ArrayRef<int64_t> shape) {
  if (isShared(memref))
    return success();
  SmallVector<int64_t> strides = getStaticStrides(memref);
  int64_t span = 1;
  for (auto [dim, size] : llvm::zip_equal(dims, shape))
    span += (size - 1) * strides[dim];
  span *= memref.getElementTypeBitWidth() / 8;
  if (span <= std::numeric_limits<int32_t>::max())
    return success();
  return op->emitOpError("moves a tile that spans ")
         << span << " bytes of global memory, more than 2^31 - 1";
}

static VectorType getFragment(LoadOp op) {
  return cast<VectorType>(op.getResult().getType());
}

static VectorType getFragment(StoreOp op) {
  return cast<VectorType>(op.getValue().getType());
}

template <typename Op>
static LogicalResult checkAccess(Op op, VectorType fragment) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  if (memref.getElementTypeBitWidth() < 16)
    return op.emitOpError("cannot move elements of type ")
           << memref.getElementType();
  SmallVector<int64_t, 2> shape(fragment.getShape());
  if (op.getDims().size() == 1)
    shape = {std::max(shape[0], shape[1])};
  return checkSpan(op, memref, op.getDims(), shape);
}

static LogicalResult checkScores(ScoresOp op) {
  int64_t channels = cast<MemRefType>(op.getK().getType()).getDimSize(1);
  if (channels % 16 == 0)
    return success();
  return op.emitOpError("has ")
         << channels
         << " channels, but the GPU lowering needs a multiple of 16";
}

/// The hardware's functions and our division are for float32.
static LogicalResult checkMath(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (element.isF32())
    return success();
  return op->emitOpError("is lowered for f32 only, but has ") << element;
}

/// Ops whose GPU form is for the first warps of a block or has its barriers in
/// it.
static bool meetsAllWarps(Operation *op) {
  if (isa<CumsumOp, DecaysOp, ScoresOp, TriInverseOp, RingOp>(op))
    return true;
  auto sum = dyn_cast<SumOp>(op);
  return sum && cast<VectorType>(sum.getResult().getType()).getDimSize(0) == 1;
}

/// The other warps of the block hold no part of a fragment.
LogicalResult KernelLowering::checkRoles(RolesOp roles) {
  WalkResult walk = func.walk([&](Operation *op) {
    if (op != func && !getRole(op) && !isa<RolesOp, arith::ConstantOp>(op) &&
        llvm::any_of(op->getResultTypes(), isFragment)) {
      op->emitOpError("holds a fragment in front of the roles");
      return WalkResult::interrupt();
    }
    if (getRole(op) && !isInWarp(op) && meetsAllWarps(op)) {
      op->emitOpError("needs all warps of the block, but stands in a role");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  // setmaxnreg comes with the architecture-specific features.
  bool setsRegisters =
      llvm::any_of(roles.getBody().front().getOps<RoleOp>(),
                   [](RoleOp role) { return role.getRegisters().has_value(); });
  if (!setsRegisters || target.hasWarpgroupMma())
    return success();
  return roles.emitOpError("sets registers, which ")
         << target.name << " cannot";
}

// The lanes of a row must hold what a step of mma.sync takes from them.
static LogicalResult checkRegisterProduct(Operation *op, KernelAttr kernel) {
  if (kernel.getLayout() == FragmentLayoutKind::Rows &&
      kernel.getLanes() == 4 && kernel.getWarps() == 1 &&
      kernel.getChunk() % 4 == 0)
    return success();
  return op->emitOpError("needs a kernel of one warp in the rows layout with 4 "
                         "lanes a row and chunks of 4 elements or more");
}

// Hints are of loads and stores in global memory.
template <typename Op>
static LogicalResult checkStreaming(Op op) {
  if (!op.getStreaming() || !isShared(op.getMemref().getType()))
    return success();
  return op.emitOpError("cannot be streaming: it moves shared memory");
}

LogicalResult KernelLowering::checkOp(Operation *op) {
  if (isa<AheadOp>(op))
    return op->emitOpError("has no roles that run it; they need products of "
                           "warpgroups and a loop of two stages or more");
  if (!isSupported(op))
    return op->emitOpError("is not supported in a tile program for the GPU");
  if (isa<RingOp, OverlapLaunchesOp>(op) && target.computeCapability < 90)
    return op->emitOpError("needs sm_90 or later, but the target is ")
           << target.name;
  if (auto roles = dyn_cast<RolesOp>(op))
    return checkRoles(roles);
  for (Type type : op->getResultTypes())
    if (failed(checkType(op, type)))
      return failure();
  for (Value operand : op->getOperands())
    if (failed(checkType(op, operand.getType())))
      return failure();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (isFragment(constant.getType()) &&
        !isa<SplatElementsAttr>(constant.getValue()))
      return op->emitOpError("a fragment constant must be a splat");
  if (isa<arith::DivFOp>(op) || isa<math::MathDialect>(op->getDialect()))
    return checkMath(op);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<LoadOp, StoreOp>([&](auto access) {
        accesses[op] = analyzeAccess(
            cast<MemRefType>(access.getMemref().getType()), access.getIndices(),
            access.getDims(), access.getValid());
        return success(succeeded(checkAccess(access, getFragment(access))) &&
                       succeeded(checkStreaming(access)));
      })
      .Case([&](PrefetchOp prefetch) {
        return checkSpan(op, cast<MemRefType>(prefetch.getSource().getType()),
                         prefetch.getDims(), prefetch.getShape());
      })
      .Case([&](CopyInOp copy) {
        auto source = cast<MemRefType>(copy.getSource().getType());
        accesses[op] = analyzeAccess(source, copy.getIndices(), copy.getDims(),
                                     copy.getValid());
        return checkSpan(op, source, copy.getDims(),
                         cast<MemRefType>(copy.getTile().getType()).getShape());
      })
      .Case([&](CopyOutOp copy) {
        auto destination = cast<MemRefType>(copy.getDestination().getType());
        accesses[op] = analyzeAccess(destination, copy.getIndices(),
                                     copy.getDims(), copy.getValid());
        return checkSpan(op, destination, copy.getDims(),
                         cast<MemRefType>(copy.getTile().getType()).getShape());
      })
      .Case([&](CopySumsOp copy) -> LogicalResult {
        auto source = cast<MemRefType>(copy.getSource().getType());
        ArrayRef<int64_t> shape =
            cast<MemRefType>(copy.getTile().getType()).getShape();
        accesses[op] = analyzeAccess(source, copy.getIndices(), copy.getDims(),
                                     copy.getValid());
        if (shape[0] - 1 > 16 * kernel.getWarps())
          return copy.emitOpError("sums ")
                 << shape[0] - 1 << " rows, but " << kernel.getWarps()
                 << " warps have 16 each";
        return checkSpan(op, source, copy.getDims(), shape);
      })
      .Case([&](MmaOp mma) -> LogicalResult {
        if (kernel.getLayout() == FragmentLayoutKind::Accumulator)
          return success();
        return mma.emitOpError("needs a kernel of the accumulator layout");
      })
      .Case<DotOp, OuterOp, StackOp, TriSolveOp>(
          [&](auto) { return checkRegisterProduct(op, kernel); })
      .Case([&](ScoresOp scores) -> LogicalResult {
        if (kernel.getLayout() == FragmentLayoutKind::Accumulator)
          return checkScores(scores);
        return scores.emitOpError("needs a kernel of the accumulator layout");
      })
      .Default(success());
}
