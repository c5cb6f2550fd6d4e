//===- KernelBuilder.cpp - builds one tile program ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;

KernelBuilder::KernelBuilder(Operation *op, StringRef name,
                             gdn_tile::KernelAttr attr)
    : ImplicitLocOpBuilder(op->getLoc(), op->getContext()), host(op) {
  auto function = op->getParentOfType<func::FuncOp>();
  auto module = function->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  setInsertionPoint(function);
  kernel = func::FuncOp::create(*this, (function.getName() + "_" + name).str(),
                                getFunctionType({}, {}));
  kernel->setAttr(gdn_tile::kKernelAttrName, attr);
  // Renames on a clash with a kernel of an op of the same kind.
  symbols.insert(kernel, Block::iterator(function));
  setInsertionPointToStart(kernel.addEntryBlock());
}

Value KernelBuilder::argument(Value value) {
  if (!value)
    return value;
  operands.push_back(value);
  return kernel.getBody().front().addArgument(value.getType(), getLoc());
}

Value KernelBuilder::sizeArgument(Value size) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return index(*known);
  return argument(size);
}

void KernelBuilder::launch(Value grid, bool beside) {
  Block &body = kernel.getBody().front();
  setInsertionPointToEnd(&body);
  func::ReturnOp::create(*this);
  kernel.setFunctionType(getFunctionType(body.getArgumentTypes(), {}));
  gdn_tile::LaunchOp::create(host, getLoc(), kernel.getName(), grid, operands,
                             beside);
}

void KernelBuilder::launchAgain(Value grid, Value old, Value value,
                                bool beside) {
  SmallVector<Value> others = operands;
  llvm::replace(others, old, value);
  gdn_tile::LaunchOp::create(host, getLoc(), kernel.getName(), grid, others,
                             beside);
}

Value KernelBuilder::blockId() {
  if (!id)
    id = gdn_tile::BlockIdOp::create(*this, startsAtEnd);
  return id;
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}
Value KernelBuilder::add(Value a, Value b) {
  return createOrFold<arith::AddIOp>(a, b);
}
Value KernelBuilder::sub(Value a, Value b) {
  return createOrFold<arith::SubIOp>(a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return createOrFold<arith::MulIOp>(a, b);
}
Value KernelBuilder::div(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value KernelBuilder::rem(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value KernelBuilder::ceilDiv(Value a, Value b) {
  return createOrFold<arith::CeilDivUIOp>(a, b);
}
Value KernelBuilder::min(Value a, Value b) {
  return createOrFold<arith::MinSIOp>(a, b);
}
Value KernelBuilder::max(Value a, Value b) {
  return createOrFold<arith::MaxSIOp>(a, b);
}
Value KernelBuilder::less(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::equal(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::onlyIf(Value condition, Value value) {
  return createOrFold<arith::SelectOp>(condition, value, index(0));
}

Value KernelBuilder::loadIndex(Value memref, Value position) {
  Value value = memref::LoadOp::create(*this, memref, ValueRange{position});
  return arith::IndexCastOp::create(*this, getIndexType(), value);
}

Value KernelBuilder::loadSize(Value memref, Value position) {
  Value value = memref::LoadOp::create(*this, memref, ValueRange{position});
  return arith::IndexCastUIOp::create(*this, getIndexType(), value);
}

//===----------------------------------------------------------------------===//
// Shared memory and fragments
//===----------------------------------------------------------------------===//

Value KernelBuilder::tile(ArrayRef<int64_t> shape, Type elementType) {
  auto space =
      gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Workgroup);
  return memref::AllocOp::create(
      *this,
      MemRefType::get(shape, elementType, MemRefLayoutAttrInterface(), space));
}

Value KernelBuilder::stage(Value tiles, Value number) {
  auto type = cast<MemRefType>(tiles.getType());
  auto one =
      MemRefType::get(type.getShape().drop_front(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  return gdn_tile::StageOp::create(*this, one, tiles, number);
}

void KernelBuilder::free(Value tile) { gdn_tile::FreeOp::create(*this, tile); }

void KernelBuilder::copyIn(const Access &from, Value tile, bool isLower) {
  gdn_tile::CopyInOp::create(*this, Type(), from.memref, from.indices,
                             from.dims, from.valid, tile, isLower);
}

void KernelBuilder::prefetch(const Access &from, Shape2 shape) {
  gdn_tile::PrefetchOp::create(*this, from.memref, from.indices, from.dims,
                               ArrayRef<int64_t>{shape.rows, shape.cols},
                               from.valid);
}

void KernelBuilder::copyOut(Value tile, const Access &to) {
  gdn_tile::CopyOutOp::create(*this, tile, to.memref, to.indices, to.dims,
                              to.valid);
}

void KernelBuilder::storeBlock(Value block, Value memref, ValueRange indices,
                               bool isDiagonal) {
  gdn_tile::StoreBlockOp::create(*this, block, memref, indices, isDiagonal);
}

Value KernelBuilder::loadBlock(Value memref, ValueRange indices,
                               bool isDiagonal) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return gdn_tile::LoadBlockOp::create(
      *this, VectorType::get({16, 16}, element), memref, indices, isDiagonal);
}

Value KernelBuilder::load(const Access &from, Shape2 shape, bool streaming) {
  Type element = cast<MemRefType>(from.memref.getType()).getElementType();
  return gdn_tile::LoadOp::create(
      *this, VectorType::get({shape.rows, shape.cols}, element), from.memref,
      from.indices, from.dims, from.valid, streaming);
}

Value KernelBuilder::loadF32(const Access &from, Shape2 shape) {
  return convert(load(from, shape), getF32Type());
}

void KernelBuilder::store(Value fragment, const Access &to, bool streaming) {
  gdn_tile::StoreOp::create(*this, fragment, to.memref, to.indices, to.dims,
                            to.valid, streaming);
}

Value KernelBuilder::mma(Value a, Value b, Value acc, bool transposeB) {
  auto tile = cast<MemRefType>(b.getType());
  auto left = cast<VectorType>(a.getType());
  int64_t rows = left.getDimSize(0);
  int64_t cols = tile.getDimSize(transposeB ? 0 : 1);
  if (int64_t panelRows = gdn_tile::getPanelRows(tile.getShape(), left);
      panelRows && transposeB)
    cols = panelRows;
  return gdn_tile::MmaOp::create(*this,
                                 VectorType::get({rows, cols}, getF32Type()), a,
                                 b, acc, transposeB, /*passes=*/3);
}

SmallVector<Value> KernelBuilder::split(Value fragment, Type type,
                                        int64_t parts) {
  SmallVector<Value> result;
  for (int64_t part = 0; part < parts; ++part) {
    if (part > 0)
      fragment = roundingError(fragment, result.back());
    result.push_back(convert(fragment, type));
  }
  return result;
}

Value KernelBuilder::product(ValueRange a, ValueRange b, Value acc,
                             bool transposeB) {
  size_t parts = std::max(a.size(), b.size());
  // The last part of `a` first: it is made of the others, which nothing may
  // read while products with them are in flight.
  for (size_t i = a.size(); i-- > 0;)
    for (auto [j, right] : llvm::enumerate(b))
      if (i + j < parts)
        acc = mma(a[i], right, acc, transposeB);
  return acc;
}

Value KernelBuilder::warpMma(Value a, Value b, Value acc,
                             gdn_tile::ProductPrecision precision) {
  return gdn_tile::WarpMmaOp::create(
      *this, VectorType::get({16, 16}, getF32Type()), a, b, acc, precision);
}

Value KernelBuilder::ownRows(Value fragment, int64_t column) {
  auto element = cast<VectorType>(fragment.getType()).getElementType();
  return gdn_tile::OwnRowsOp::create(*this, VectorType::get({16, 16}, element),
                                     fragment, column);
}

Value KernelBuilder::sum(Value fragment, Shape2 shape) {
  return gdn_tile::SumOp::create(
      *this, VectorType::get({shape.rows, shape.cols}, getF32Type()), fragment);
}

Value KernelBuilder::sumSquares(Value fragment) {
  int64_t rows = cast<VectorType>(fragment.getType()).getDimSize(0);
  return gdn_tile::SumSquaresOp::create(
      *this, VectorType::get({rows, 1}, getF32Type()), fragment);
}

Value KernelBuilder::any(Value condition) {
  return gdn_tile::AnyOp::create(*this, getI1Type(), condition);
}

Value KernelBuilder::anyOfColumns(Value condition) {
  auto type = cast<VectorType>(condition.getType());
  return gdn_tile::AnyOp::create(
      *this, VectorType::get({1, type.getDimSize(1)}, getI1Type()), condition);
}

void KernelBuilder::eachWarp(Value count,
                             function_ref<void(Value item)> build) {
  auto warps = gdn_tile::EachWarpOp::create(*this, count);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&warps.getBody().front());
  build(warps.getItem());
}

void KernelBuilder::onlyIn(Value condition, function_ref<void()> build) {
  auto branch = scf::IfOp::create(*this, condition);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  build();
}

Value KernelBuilder::ifElse(Value condition, function_ref<Value()> then,
                            Value otherwise) {
  auto branch =
      scf::IfOp::create(*this, TypeRange{otherwise.getType()}, condition,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(*this, then());
  setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(*this, otherwise);
  return branch.getResult(0);
}

Value KernelBuilder::zero(Shape2 shape, Type elementType) {
  auto type = VectorType::get({shape.rows, shape.cols}, elementType);
  return arith::ConstantOp::create(*this, cast<TypedAttr>(getZeroAttr(type)));
}

SmallVector<Value> KernelBuilder::dot(Value a, ValueRange rights) {
  int64_t rows = cast<VectorType>(a.getType()).getDimSize(0);
  SmallVector<Type> types;
  for (Value right : rights)
    types.push_back(VectorType::get(
        {rows, cast<VectorType>(right.getType()).getDimSize(0)}, getF32Type()));
  auto op = gdn_tile::DotOp::create(*this, types, a, rights);
  return llvm::to_vector_of<Value>(op.getResults());
}

Value KernelBuilder::outer(Value a, Value b, Value acc, Value scale,
                           bool exact) {
  return gdn_tile::OuterOp::create(*this, acc.getType(), a, b, acc, scale,
                                   exact);
}

Value KernelBuilder::stack(Value a, Value b) {
  return gdn_tile::StackOp::create(*this, a, b);
}

Value KernelBuilder::triSolve(Value l, Value rhs, int64_t count) {
  return gdn_tile::TriSolveOp::create(*this, l, rhs, count);
}

std::pair<Value, Value> KernelBuilder::afterLoads(Value a, Value b) {
  auto op = gdn_tile::AfterLoadsOp::create(
      *this, TypeRange{a.getType(), b.getType()}, ValueRange{a, b});
  return {op.getResult(0), op.getResult(1)};
}

Value KernelBuilder::iota(Shape2 shape) {
  return gdn_tile::IotaOp::create(
      *this, VectorType::get({shape.rows, shape.cols}, getI32Type()));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static constexpr arith::FastMathFlags kContract =
    arith::FastMathFlags::contract;

Value KernelBuilder::constant(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

Value KernelBuilder::broadcast(Value value, Shape2 shape) {
  auto type = VectorType::get({shape.rows, shape.cols},
                              getElementTypeOrSelf(value.getType()));
  if (value.getType() == type)
    return value;
  return vector::BroadcastOp::create(*this, type, value);
}

std::pair<Value, Value> KernelBuilder::unify(Value a, Value b) {
  auto typeA = dyn_cast<VectorType>(a.getType());
  auto typeB = dyn_cast<VectorType>(b.getType());
  if (!typeA && !typeB)
    return {a, b};
  auto size = [](VectorType type, int64_t dim) {
    return type ? type.getDimSize(dim) : 1;
  };
  Shape2 shape{std::max(size(typeA, 0), size(typeB, 0)),
               std::max(size(typeA, 1), size(typeB, 1))};
  return {broadcast(a, shape), broadcast(b, shape)};
}

Value KernelBuilder::fmul(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::MulFOp::create(*this, a, b, kContract);
}
Value KernelBuilder::fadd(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::AddFOp::create(*this, a, b, kContract);
}
Value KernelBuilder::fsub(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::SubFOp::create(*this, a, b, kContract);
}
Value KernelBuilder::roundingError(Value value, Value rounded) {
  return arith::SubFOp::create(
      *this, value, convert(rounded, getElementTypeOrSelf(value.getType())));
}
Value KernelBuilder::fdiv(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::DivFOp::create(*this, a, b);
}
Value KernelBuilder::fmax(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::MaximumFOp::create(*this, a, b);
}
Value KernelBuilder::exp2(Value a) { return math::Exp2Op::create(*this, a); }

Value KernelBuilder::fma(Value a, Value b, Value c) {
  std::tie(a, b) = unify(a, b);
  std::tie(a, c) = unify(a, c);
  std::tie(b, c) = unify(b, c);
  return math::FmaOp::create(*this, a, b, c);
}

Value KernelBuilder::broadcastLike(Value scalar, Value other) {
  auto type = dyn_cast<VectorType>(other.getType());
  if (!type)
    return scalar;
  return broadcast(scalar, {type.getDimSize(0), type.getDimSize(1)});
}

Value KernelBuilder::select(Value condition, Value a, Value b) {
  auto type = cast<VectorType>(condition.getType());
  Shape2 shape{type.getDimSize(0), type.getDimSize(1)};
  return arith::SelectOp::create(*this, condition, broadcast(a, shape),
                                 broadcast(b, shape));
}

Value KernelBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::CmpIOp::create(*this, predicate, a, b);
}

Value KernelBuilder::greater(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
}

Value KernelBuilder::abs(Value a) { return math::AbsFOp::create(*this, a); }

Value KernelBuilder::both(Value a, Value b) {
  std::tie(a, b) = unify(a, b);
  return arith::AndIOp::create(*this, a, b);
}

Value KernelBuilder::integer(int64_t value) {
  return arith::ConstantOp::create(
      *this, getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value KernelBuilder::convert(Value value, Type type) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == type)
    return value;
  Type to = type;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = vector.clone(type);
  if (type.isF32())
    return arith::ExtFOp::create(*this, to, value);
  return arith::TruncFOp::create(*this, to, value);
}

Access mlir::gdn::whole(KernelBuilder &k, Value tile) {
  int64_t rank = cast<MemRefType>(tile.getType()).getRank();
  return {tile,
          SmallVector<Value>(rank, k.index(0)),
          llvm::to_vector(llvm::seq<int64_t>(0, rank)),
          {}};
}

Access mlir::gdn::transposed(KernelBuilder &k, Value tile) {
  Access access = whole(k, tile);
  std::swap(access.dims[0], access.dims[1]);
  return access;
}

// True if `view` has size `dim` of its source.
static bool hasWholeDim(memref::SubViewOp view, int64_t dim) {
  OpFoldResult size = view.getMixedSizes()[dim];
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return *known == view.getSourceType().getDimSize(dim);
  auto sizeOf = cast<Value>(size).getDefiningOp<memref::DimOp>();
  return sizeOf && sizeOf.getSource() == view.getSource() &&
         sizeOf.getConstantIndex() == dim;
}

Value mlir::gdn::getWhole(Value value) {
  auto type = cast<MemRefType>(value.getType());
  if (type.getLayout().isIdentity())
    return value;
  auto view = value.getDefiningOp<memref::SubViewOp>();
  if (!view || view.getSourceType().getRank() != type.getRank() ||
      !view.getSourceType().getLayout().isIdentity())
    return Value();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!isConstantIntValue(view.getMixedOffsets()[dim], 0) ||
        !isConstantIntValue(view.getMixedStrides()[dim], 1) ||
        (dim != 2 && !hasWholeDim(view, dim)))
      return Value();
  return view.getSource();
}
