//===- WarpOps.cpp - gdn_tile ops of single warps -------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn_tile;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

bool mlir::gdn_tile::isInWarp(Operation *op) {
  return static_cast<bool>(op->getParentOfType<EachWarpOp>());
}

//===----------------------------------------------------------------------===//
// EachWarpOp
//===----------------------------------------------------------------------===//

void EachWarpOp::build(OpBuilder &builder, OperationState &state, Value count) {
  OpBuilder::InsertionGuard guard(builder);
  state.addOperands(count);
  Region *body = state.addRegion();
  builder.createBlock(body, {}, builder.getIndexType(), state.location);
  EachWarpOp::ensureTerminator(*body, builder, state.location);
}

ParseResult EachWarpOp::parse(OpAsmParser &parser, OperationState &result) {
  Type index = parser.getBuilder().getIndexType();
  OpAsmParser::Argument item;
  OpAsmParser::UnresolvedOperand count;
  if (parser.parseLParen() || parser.parseArgument(item) ||
      parser.parseRParen() || parser.parseKeyword("in") ||
      parser.parseLParen() || parser.parseOperand(count) ||
      parser.parseRParen() ||
      parser.resolveOperand(count, index, result.operands))
    return failure();
  item.type = index;
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, item) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  EachWarpOp::ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void EachWarpOp::print(OpAsmPrinter &printer) {
  printer << " (" << getItem() << ") in (" << getCount() << ") ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs());
}

void EachWarpOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &regions) {
  // The item is set by the op itself.
  regions.emplace_back(&getBody());
  regions.emplace_back(getOperation(), getOperation()->getResults());
}

static LogicalResult verifyFragments(Operation *op) {
  if (isa<OwnRowsOp>(op))
    return success();
  auto verify = [&](Type type) -> LogicalResult {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector || vector.getRank() != 2 || vector.getDimSize(0) == 1 ||
        vector.getDimSize(0) == 16)
      return success();
    return op->emitOpError("has a fragment of type ")
           << type << ", but a fragment of one warp has 1 or 16 rows";
  };
  for (Type type : op->getOperandTypes())
    if (failed(verify(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(verify(type)))
      return failure();
  return success();
}

static bool isWarpOp(Operation *op) {
  if (auto copy = dyn_cast<CopyInOp>(op))
    return !copy.getToken();
  if (auto cumsum = dyn_cast<CumsumOp>(op))
    return cast<MemRefType>(cumsum.getTile().getType()).getRank() == 1;
  // Sums over rows meet in memory that the block has.
  if (auto sum = dyn_cast<SumOp>(op))
    return cast<VectorType>(sum.getResult().getType()).getDimSize(1) == 1;
  return isa<AnyOp, BarrierOp, BlockIdOp, BlockInverseOp, CopyOutOp, DecaysOp,
             FreeOp, IotaOp, LoadBlockOp, LoadOp, OwnRowsOp, StageOp,
             StoreBlockOp, StoreOp, SumSquaresOp, WarpEndOp, WarpMmaOp>(op) ||
         !isa<GdnTileDialect>(op->getDialect());
}

LogicalResult EachWarpOp::verifyRegions() {
  auto func = (*this)->getParentOfType<FunctionOpInterface>();
  KernelAttr kernel = func ? gdn_tile::getKernelAttr(func) : KernelAttr();
  if (kernel && kernel.getLayout() != FragmentLayoutKind::Accumulator)
    return emitOpError("needs a kernel of the accumulator layout");
  if (getBody().getNumArguments() != 1 || !getItem().getType().isIndex())
    return emitOpError("expects a region with one index argument, the item");
  WalkResult walk = getBody().walk([&](Operation *op) {
    if (!isWarpOp(op)) {
      op->emitOpError("is not an op of a single warp");
      return WalkResult::interrupt();
    }
    if (failed(verifyFragments(op)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// FreeOp
//===----------------------------------------------------------------------===//

LogicalResult FreeOp::verify() {
  auto alloc = getTile().getDefiningOp<memref::AllocOp>();
  if (!isShared(getTile().getType()) || !alloc ||
      alloc->getBlock() != (*this)->getBlock())
    return emitOpError("expects a shared-memory allocation of its own block");
  for (Operation *user : getTile().getUsers()) {
    Operation *inBlock = (*this)->getBlock()->findAncestorOpInBlock(*user);
    // For the CPU a tile is an allocation like any other and deallocated.
    if (user != *this && isa<GdnTileDialect>(user->getDialect()) && inBlock &&
        (*this)->isBeforeInBlock(inBlock))
      return emitOpError("frees a tile that is used behind it");
  }
  return success();
}

void FreeOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getTileMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// WarpMmaOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyInWarp(Operation *op) {
  if (isInWarp(op))
    return success();
  return op->emitOpError("stands outside of gdn_tile.each_warp");
}

LogicalResult WarpMmaOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  auto result = cast<VectorType>(getResult().getType());
  Type element = a.getElementType();
  if (!(element.isF32() || element.isBF16() || element.isF16()) ||
      a.getDimSize(0) != 16 || a.getDimSize(1) % 16 != 0 ||
      result != VectorType::get({16, 16}, Float32Type::get(getContext())))
    return emitOpError("expects operands vector<16xKxT>, K a multiple of 16, T "
                       "= f32, bf16 or f16, and a result vector<16x16xf32>, "
                       "but has ")
           << a << " and " << result;
  bool isExact = getPrecision() == ProductPrecision::Exact;
  if (isExact == element.isF32())
    return emitOpError("takes operands of ")
           << (isExact ? "16 bits" : "f32") << " with precision "
           << stringifyProductPrecision(getPrecision()) << ", but has " << a;
  if (getAcc() && getAcc().getType() != result)
    return emitOpError("expects 'acc' to have the type of the result, but it "
                       "is ")
           << getAcc().getType();
  return verifyInWarp(*this);
}

//===----------------------------------------------------------------------===//
// OwnRowsOp
//===----------------------------------------------------------------------===//

LogicalResult OwnRowsOp::verify() {
  auto value = cast<VectorType>(getValue().getType());
  auto result = cast<VectorType>(getResult().getType());
  int64_t column = getColumn(), columns = result.getDimSize(1);
  if (value.getElementType() != result.getElementType() ||
      result.getDimSize(0) != 16 || value.getDimSize(0) % 16 != 0 ||
      value.getDimSize(1) % 16 != 0 || columns % 16 != 0 || column % 16 != 0 ||
      column < 0 || column + columns > value.getDimSize(1))
    return emitOpError("cannot take ")
           << result << " at column " << column << " of " << value
           << ": it takes 16 rows and a multiple of 16 columns from one on";
  auto warps = (*this)->getParentOfType<EachWarpOp>();
  if (!warps)
    return verifyInWarp(*this);
  int64_t count = value.getDimSize(0) / 16;
  if (getConstantIntValue(warps.getCount()) != count)
    return emitOpError("needs a gdn_tile.each_warp of ")
           << count << " items, one for every 16 rows of " << value;
  return success();
}

//===----------------------------------------------------------------------===//
// StoreBlockOp
//===----------------------------------------------------------------------===//

template <typename OpT>
static LogicalResult verifyBlockAccess(OpT op, StringRef verb) {
  auto value = cast<VectorType>(op.getValue().getType());
  auto memref = cast<MemRefType>(op.getMemref().getType());
  ValueRange indices = op.getIndices();
  int64_t rank = memref.getRank();
  if (value != VectorType::get({16, 16}, value.getElementType()) ||
      value.getElementTypeBitWidth() != 16 || isShared(memref) || rank < 2 ||
      memref.getElementType() != value.getElementType() ||
      memref.getDimSize(rank - 1) != kPanelWidth)
    return op.emitOpError()
           << verb << " rows of " << kPanelWidth
           << " in global memory, but has " << value << " and " << memref;
  if (static_cast<int64_t>(indices.size()) != rank)
    return op.emitOpError("expects ") << rank << " indices for " << memref
                                      << ", but has " << indices.size();
  std::optional<int64_t> row = getConstantIntValue(indices[rank - 2]);
  if (getConstantIntValue(indices[rank - 1]) != 0 ||
      (row && *row % kMatrixRows != 0))
    return op.emitOpError("expects a block to begin in column 0 of a row that "
                          "is a multiple of ")
           << kMatrixRows;
  return verifyInWarp(op);
}

LogicalResult StoreBlockOp::verify() {
  return verifyBlockAccess(*this, "stores 16x16 elements of 16 bits to");
}

LogicalResult LoadBlockOp::verify() {
  return verifyBlockAccess(*this, "loads 16x16 elements of 16 bits from");
}

void LoadBlockOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getMemrefMutable(),
                       SideEffects::DefaultResource::get());
}

void StoreBlockOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getMemrefMutable(),
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// AnyOp
//===----------------------------------------------------------------------===//

LogicalResult AnyOp::verify() {
  auto value = cast<VectorType>(getValue().getType());
  Type i1 = IntegerType::get(getContext(), 1);
  Type columns = VectorType::get({1, value.getDimSize(1)}, i1);
  if (value.getElementType() != i1 ||
      (getResult().getType() != i1 && getResult().getType() != columns))
    return emitOpError("expects a fragment of i1 and a result i1 or ")
           << columns << ", but has " << value << " and "
           << getResult().getType();
  auto func = (*this)->getParentOfType<FunctionOpInterface>();
  KernelAttr kernel = func ? gdn_tile::getKernelAttr(func) : KernelAttr();
  if (kernel && kernel.getWarps() > 1 && value.getDimSize(0) > 1 &&
      !isInWarp(*this))
    return emitOpError("needs a fragment that each warp holds as a whole, but "
                       "the rows of ")
           << value << " lie in " << kernel.getWarps() << " warps";
  return success();
}

//===----------------------------------------------------------------------===//
// BlockInverseOp
//===----------------------------------------------------------------------===//

constexpr int64_t kBlockSize = 16;

void BlockInverseOp::build(OpBuilder &builder, OperationState &state,
                           Value products, Value scale, Value scratch,
                           ProductPrecision precision) {
  int64_t blocks = cast<MemRefType>(scale.getType()).getDimSize(0) / kBlockSize;
  auto type = VectorType::get({kBlockSize, kBlockSize}, builder.getF32Type());
  build(builder, state, SmallVector<Type>(2 * blocks, type), products, scale,
        scratch, precision);
}

LogicalResult BlockInverseOp::verify() {
  if (getPrecision() != ProductPrecision::TF32 &&
      getPrecision() != ProductPrecision::BF16x3)
    return emitOpError("expects products of tf32 or bf16x3, but has ")
           << stringifyProductPrecision(getPrecision());
  auto scale = cast<MemRefType>(getScale().getType());
  auto products = cast<MemRefType>(getProducts().getType());
  auto scratch = cast<MemRefType>(getScratch().getType());
  for (MemRefType type : {products, scale, scratch})
    if (!isShared(type) || !type.hasStaticShape() ||
        !type.getLayout().isIdentity() || !type.getElementType().isF32())
      return emitOpError("expects static shared-memory tiles of f32, but has ")
             << type;
  int64_t chunk = scale.getRank() == 1 ? scale.getDimSize(0) : 0;
  if ((chunk != 16 && chunk != 32 && chunk != 64) || products.getRank() != 2 ||
      products.getDimSize(0) < chunk || products.getDimSize(1) < chunk ||
      scratch.getNumElements() < 12 * chunk)
    return emitOpError("expects products of at least C rows and columns, scale "
                       "of C and scratch of at least 12 C elements, C = 16, 32 "
                       "or 64, but has ")
           << products << ", " << scale << " and " << scratch;
  int64_t count = 2 * chunk / kBlockSize;
  auto type = VectorType::get({kBlockSize, kBlockSize}, scale.getElementType());
  if (getNumResults() != count ||
      llvm::any_of(getResultTypes(), [&](Type t) { return t != type; }))
    return emitOpError("expects ")
           << count << " results of " << type << " for " << chunk << " tokens";
  return verifyInWarp(*this);
}

void BlockInverseOp::getEffects(Effects &effects) {
  SideEffects::Resource *resource = SideEffects::DefaultResource::get();
  effects.emplace_back(MemoryEffects::Read::get(), &getProductsMutable(),
                       resource);
  effects.emplace_back(MemoryEffects::Read::get(), &getScaleMutable(),
                       resource);
  effects.emplace_back(MemoryEffects::Write::get(), &getScratchMutable(),
                       resource);
}

//===----------------------------------------------------------------------===//
// DecaysOp
//===----------------------------------------------------------------------===//

LogicalResult DecaysOp::verify() {
  auto sums = cast<MemRefType>(getSums().getType());
  auto rows = cast<MemRefType>(getRows().getType());
  int64_t chunk = sums.getRank() == 1 ? sums.getShape()[0] : 0;
  bool isFlat =
      rows.getRank() == 1 && rows.hasStaticShape() &&
      rows.getNumElements() >= 3 * chunk + (getKeys() ? kLastSize : 0);
  bool areAlike = getKeys() || !getQueries();
  for (Value factors : {getBeta(), getKeys(), getQueries()})
    areAlike &= !factors || factors.getType() == sums;
  for (MemRefType type : {sums, rows})
    isFlat &= isShared(type) && type.getLayout().isIdentity() &&
              type.getElementType().isF32();
  if (!isFlat || (chunk != 16 && chunk != 32 && chunk != 64) || !areAlike) {
    InFlightDiagnostic error =
        emitOpError("expects shared-memory tiles of f32, sums, beta, keys "
                    "and beside them queries of C and rows of at least 3 C "
                    "elements, with keys 3 C + 8, C = 16, 32 or 64, but has ")
        << sums;
    for (Value factors : {getBeta(), getKeys(), getQueries()})
      if (factors)
        error << ", " << factors.getType();
    return error << " and " << rows;
  }
  return success();
}

void DecaysOp::getEffects(Effects &effects) {
  SideEffects::Resource *resource = SideEffects::DefaultResource::get();
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (&operand != &getRowsMutable())
      effects.emplace_back(MemoryEffects::Read::get(), &operand, resource);
  effects.emplace_back(MemoryEffects::Write::get(), &getRowsMutable(),
                       resource);
}
