//===- GdnTileOps.cpp - gdn_tile ops --------------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn_tile;

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static void addRead(Effects &effects, OpOperand &operand) {
  effects.emplace_back(MemoryEffects::Read::get(), &operand,
                       SideEffects::DefaultResource::get());
}

static void addWrite(Effects &effects, OpOperand &operand) {
  effects.emplace_back(MemoryEffects::Write::get(), &operand,
                       SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

// What a launch can pass: a number, the address of a global array whose strides
// are known, or its tensor map.
static bool isLaunchOperand(Type type) {
  if (isa<TensorMapType>(type))
    return true;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return type.isIndex();
  return !memref.getMemorySpace() && memref.getLayout().isIdentity() &&
         llvm::none_of(memref.getShape().drop_front(memref.getRank() > 0),
                       ShapedType::isDynamic);
}

LogicalResult LaunchOp::verify() {
  for (auto [i, type] : llvm::enumerate(getArgs().getTypes()))
    if (!isLaunchOperand(type))
      return emitOpError("expects argument ")
             << i
             << " to be an index, a tensor map or a memref in the default "
                "memory space and layout with static sizes behind the first, "
                "but it is "
             << type;
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto func = symbolTable.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getKernelAttr());
  if (!func || !gdn_tile::getKernelAttr(func))
    return emitOpError("'")
           << getKernel() << "' does not name a tile program (a function with "
           << kKernelAttrName << ")";
  if (llvm::equal(func.getArgumentTypes(), getArgs().getTypes()))
    return success();
  return emitOpError("operand types do not match the arguments of '")
         << getKernel() << "'";
}

void LaunchOp::getEffects(Effects &effects) {
  for (OpOperand &operand : getArgsMutable())
    if (isa<MemRefType>(operand.get().getType())) {
      addRead(effects, operand);
      addWrite(effects, operand);
    }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// Checks indices, dims and bounds against a memref that is accessed along
// `dims`.
static LogicalResult verifyAccess(Operation *op, MemRefType memref,
                                  size_t numIndices, ArrayRef<int64_t> dims,
                                  size_t numValid) {
  if (static_cast<int64_t>(numIndices) != memref.getRank())
    return op->emitOpError("expects ")
           << memref.getRank() << " indices, but has " << numIndices;
  for (int64_t dim : dims)
    if (dim < 0 || dim >= memref.getRank())
      return op->emitOpError("dims names dimension ")
             << dim << " of a memref of rank " << memref.getRank();
  if (dims.size() == 2 && dims[0] == dims[1])
    return op->emitOpError("dims names dimension ") << dims[0] << " twice";
  if (numValid != 0 && numValid != dims.size())
    return op->emitOpError("expects one valid bound per entry of dims (")
           << dims.size() << "), but has " << numValid;
  return success();
}

static LogicalResult verifySharedTile(Operation *op, Type type) {
  auto memref = cast<MemRefType>(type);
  if (!isShared(memref) || !memref.hasStaticShape() || memref.getRank() < 1 ||
      memref.getRank() > 2 || !memref.getLayout().isIdentity())
    return op->emitOpError("expects a static shared-memory tile of rank 1 or "
                           "2, but has ")
           << type;
  if (memref.getNumElements() == 0 || !memref.getElementType().isIntOrFloat())
    return op->emitOpError("expects a shared-memory tile of integers or "
                           "floats that is not empty, but has ")
           << type;
  return success();
}

static bool isF16BF16OrF32(Type type) {
  return type.isF16() || type.isBF16() || type.isF32();
}

static LogicalResult verifyF32Tile(Operation *op, StringRef name, Value tile) {
  if (failed(verifySharedTile(op, tile.getType())))
    return failure();
  auto type = cast<MemRefType>(tile.getType());
  if (!type.getElementType().isF32())
    return op->emitOpError("expects the elements of '")
           << name << "' to be f32, but they are " << type.getElementType();
  return success();
}

static LogicalResult verifyChunk(Operation *op, int64_t chunk) {
  if (chunk == 16 || chunk == 32 || chunk == 64)
    return success();
  return op->emitOpError("expects a chunk of 16, 32 or 64 tokens, but has ")
         << chunk;
}

Value StageOp::getViewSource() { return getBuffers(); }

LogicalResult StageOp::verify() {
  auto buffers = cast<MemRefType>(getBuffers().getType());
  auto tile = cast<MemRefType>(getResult().getType());
  if (failed(verifySharedTile(*this, tile)))
    return failure();
  if (!isShared(buffers) || !buffers.hasStaticShape() ||
      !buffers.getLayout().isIdentity() ||
      buffers.getElementType() != tile.getElementType() ||
      buffers.getRank() != tile.getRank() + 1 ||
      buffers.getShape().drop_front() != tile.getShape())
    return emitOpError("cannot take a tile ") << tile << " from " << buffers;
  if (std::optional<int64_t> stage = getConstantIntValue(getStage());
      stage && (*stage < 0 || *stage >= buffers.getDimSize(0)))
    return emitOpError("takes stage ")
           << *stage << " of " << buffers.getDimSize(0);
  return success();
}

static LogicalResult verifyMap(Operation *op, Value map, MemRefType global,
                               MemRefType tile, ArrayRef<int64_t> dims) {
  if (!map)
    return success();
  auto type = cast<TensorMapType>(map.getType());
  if (type.getSource() == global && type.getDims() == dims &&
      type.getBox() == tile.getShape() &&
      global.getElementType() == tile.getElementType())
    return success();
  return op->emitOpError("moves ")
         << tile << " along dims [" << dims << "] of " << global
         << ", which its map does not describe: " << type;
}

static LogicalResult verifyCopy(Operation *op, Type tileType, Type globalType,
                                size_t numIndices, ArrayRef<int64_t> dims,
                                size_t numValid, Value map) {
  auto global = cast<MemRefType>(globalType);
  auto tile = cast<MemRefType>(tileType);
  if (failed(verifySharedTile(op, tileType)))
    return failure();
  if (isShared(global))
    return op->emitOpError("expects a memref in global memory, but has ")
           << globalType;
  if (static_cast<int64_t>(dims.size()) != tile.getRank())
    return op->emitOpError("expects one entry of dims per tile dimension (")
           << tile.getRank() << "), but has " << dims.size();
  if (failed(verifyMap(op, map, global, tile, dims)))
    return failure();
  return verifyAccess(op, global, numIndices, dims, numValid);
}

// All rows of the last two dimensions, along which the tile runs.
static bool hasWholeRows(MemRefType tile, MemRefType global,
                         ArrayRef<int64_t> dims, ValueRange indices) {
  int64_t rank = global.getRank();
  return tile.getRank() == 2 && rank >= 2 && dims[0] == rank - 2 &&
         dims[1] == rank - 1 &&
         tile.getElementType() == global.getElementType() &&
         tile.getElementTypeBitWidth() == 16 &&
         getConstantIntValue(indices[rank - 1]) == 0;
}

static LogicalResult verifyLower(CopyInOp op, MemRefType tile,
                                 MemRefType source) {
  int64_t size = getLowerSize(tile);
  auto admitsAllOrNone = [&](Value bound, int64_t all) {
    std::optional<int64_t> value = getConstantIntValue(bound);
    return !value || *value <= 0 || *value >= all;
  };
  bool isWhole =
      llvm::all_of(llvm::zip(op.getValid(), tile.getShape()), [&](auto bound) {
        return admitsAllOrNone(std::get<0>(bound), std::get<1>(bound));
      });
  if (size != 0 && isWhole && !op.getMap() &&
      hasWholeRows(tile, source, op.getDims(), op.getIndices()) &&
      source.getShape().take_back(2) == ArrayRef<int64_t>(getLowerShape(size)))
    return success();
  return op.emitOpError("copies all blocks of a lower triangular matrix into "
                        "panels of 16 columns of 16 bits, or none, but moves ")
         << tile << " along dims [" << op.getDims() << "] of " << source;
}

static LogicalResult verifySlot(Operation *op, Value slot) {
  if (slot.getDefiningOp<RingAcquireOp>())
    return success();
  return op->emitOpError("expects the slot of a gdn_tile.ring_acquire");
}

LogicalResult CopyInOp::verify() {
  if (failed(verifyCopy(*this, getTile().getType(), getSource().getType(),
                        getIndices().size(), getDims(), getValid().size(),
                        getMap())))
    return failure();
  auto source = cast<MemRefType>(getSource().getType());
  auto tile = cast<MemRefType>(getTile().getType());
  if (getLower() && failed(verifyLower(*this, tile, source)))
    return failure();
  Type from = source.getElementType(), to = tile.getElementType();
  if (from != to && !(to.isF32() && isa<FloatType>(from)))
    return emitOpError("expects equal element types or an f32 tile, but has ")
           << from << " to " << to;
  if ((getToken() || getSlot()) && from != to)
    return emitOpError("an asynchronous copy cannot convert ")
           << from << " to " << to;
  if (getToken() && getMap())
    return emitOpError("a copy with a tensor map gives no token");
  if (!getSlot())
    return success();
  if (getToken())
    return emitOpError("cannot both signal a slot and return a token");
  if (failed(verifySlot(*this, getSlot())))
    return failure();
  Value ring = getSlot().getDefiningOp<RingAcquireOp>().getRing();
  if (auto stage = getTile().getDefiningOp<StageOp>())
    if (auto op = ring.getDefiningOp<RingOp>();
        op && llvm::is_contained(op.getBuffers(), stage.getBuffers()))
      return success();
  return emitOpError("signals a slot of a ring that does not hold its tile");
}

LogicalResult PrefetchOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  if (isShared(source))
    return emitOpError("prefetches shared memory");
  if (getDims().size() != 2 || getShape().size() != 2 ||
      getDims().back() != source.getRank() - 1 || getShape()[0] < 1 ||
      getShape()[1] < 1)
    return emitOpError("expects two dims, the second the last of the source, "
                       "and two sizes of at least 1");
  return verifyAccess(*this, source, getIndices().size(), getDims(),
                      getValid().size());
}

void CopyInOp::getEffects(Effects &effects) {
  addRead(effects, getSourceMutable());
  addWrite(effects, getTileMutable());
}

LogicalResult CopyOutOp::verify() {
  if (failed(verifyCopy(*this, getTile().getType(), getDestination().getType(),
                        getIndices().size(), getDims(), getValid().size(),
                        getMap())))
    return failure();
  auto tile = cast<MemRefType>(getTile().getType());
  auto destination = cast<MemRefType>(getDestination().getType());
  Type from = tile.getElementType(), to = destination.getElementType();
  if (from != to)
    return emitOpError("expects equal element types, but has ")
           << from << " to " << to;
  return success();
}

void CopyOutOp::getEffects(Effects &effects) {
  addRead(effects, getTileMutable());
  addWrite(effects, getDestinationMutable());
}

LogicalResult CopySumsOp::verify() {
  if (failed(verifyCopy(*this, getTile().getType(), getSource().getType(),
                        getIndices().size(), getDims(), getValid().size(),
                        Value())) ||
      failed(verifyF32Tile(*this, "tile", getTile())))
    return failure();
  auto source = cast<MemRefType>(getSource().getType());
  auto tile = cast<MemRefType>(getTile().getType());
  if (!isF16BF16OrF32(source.getElementType()))
    return emitOpError("expects a source of f16, bf16 or f32, but has ")
           << source;
  if (tile.getRank() != 2)
    return emitOpError("expects a tile of rank 2, but has ") << tile;
  int64_t columns = getColumnsAttr().getInt();
  if (columns < 1 || columns > tile.getDimSize(1))
    return emitOpError("sums ")
           << columns << " columns of a tile of " << tile.getDimSize(1);
  // Rows that do not exist count as zeros.
  if (getLeast().convertToDouble() > 0)
    return emitOpError("expects 'least' to be at most 0, but it is ")
           << getLeast().convertToDouble();
  return verifyChunk(*this, tile.getDimSize(0) - 1);
}

void CopySumsOp::getEffects(Effects &effects) {
  addRead(effects, getSourceMutable());
  addWrite(effects, getTileMutable());
}

LogicalResult WaitOp::verify() {
  if (int64_t pending = getPendingAttr().getInt(); pending < 0)
    return emitOpError("cannot leave ") << pending << " groups pending";
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

static LogicalResult verifyFragmentAccess(Operation *op, VectorType fragment,
                                          Type memrefType, size_t numIndices,
                                          ArrayRef<int64_t> dims,
                                          size_t numValid) {
  auto memref = cast<MemRefType>(memrefType);
  if (isShared(memref) && failed(verifySharedTile(op, memref)))
    return failure();
  if (fragment.getElementType() != memref.getElementType())
    return op->emitOpError("expects equal element types, but has ")
           << fragment.getElementType() << " and " << memref.getElementType();
  bool isVector = fragment.getDimSize(0) == 1 || fragment.getDimSize(1) == 1;
  if (dims.size() != 2 && !(isVector && dims.size() == 1))
    return op->emitOpError("expects dims with ")
           << (isVector ? "1 or 2 entries" : "2 entries") << ", but has "
           << dims.size();
  return verifyAccess(op, memref, numIndices, dims, numValid);
}

LogicalResult LoadOp::verify() {
  return verifyFragmentAccess(*this, cast<VectorType>(getResult().getType()),
                              getMemref().getType(), getIndices().size(),
                              getDims(), getValid().size());
}

void LoadOp::getEffects(Effects &effects) {
  addRead(effects, getMemrefMutable());
}

LogicalResult StoreOp::verify() {
  return verifyFragmentAccess(*this, cast<VectorType>(getValue().getType()),
                              getMemref().getType(), getIndices().size(),
                              getDims(), getValid().size());
}

void StoreOp::getEffects(Effects &effects) {
  addWrite(effects, getMemrefMutable());
}

LogicalResult MmaOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  VectorType result = getFragmentType();
  auto b = cast<MemRefType>(getB().getType());
  if (failed(verifySharedTile(*this, b)))
    return failure();
  if (b.getRank() != 2)
    return emitOpError("expects 'b' to have rank 2, but has ") << b;
  int64_t k = b.getDimSize(getTransposeB() ? 1 : 0);
  int64_t n = b.getDimSize(getTransposeB() ? 0 : 1);
  if (hasPanels()) {
    k = a.getDimSize(1);
    n = getPanelRows(b.getShape(), a);
  }
  if (a.getDimSize(1) != k || a.getDimSize(0) != result.getDimSize(0) ||
      n != result.getDimSize(1))
    return emitOpError("shapes do not fit: ")
           << a.getDimSize(0) << "x" << a.getDimSize(1) << " times " << k << "x"
           << n << " into " << result.getDimSize(0) << "x"
           << result.getDimSize(1);
  Type type = a.getElementType();
  if (!isF16BF16OrF32(type))
    return emitOpError("expects f16, bf16 or f32 operands, but has ") << type;
  int64_t columns = type.isF32() ? 8 : 16;
  if (k % 16 != 0 || n % columns != 0)
    return emitOpError("expects K a multiple of 16 and N a multiple of ")
           << columns << " for " << type << ", but has K = " << k
           << " and N = " << n;
  if (b.getElementType() != type)
    return emitOpError("expects operands of one type, but has ")
           << type << " and " << b.getElementType();
  if (!result.getElementType().isF32() ||
      (getAcc() && getAcc().getType() != result &&
       getAcc().getType() != getResult().getType()))
    return emitOpError("accumulates in f32: 'acc' and the result must have one "
                       "f32 type");
  if (isAsync() && !fitsWarpgroup(*this))
    return emitOpError("is no warpgroup product, so it cannot be asynchronous");
  if (getPasses() != 1 && getPasses() != 3)
    return emitOpError("expects 1 or 3 passes, but has ") << getPasses();
  return success();
}

bool MmaOp::hasPanels() {
  auto b = cast<MemRefType>(getB().getType());
  return getTransposeB() &&
         getPanelRows(b.getShape(), cast<VectorType>(getA().getType())) != 0;
}

int64_t mlir::gdn_tile::getPanelRows(ArrayRef<int64_t> shape, VectorType a) {
  int64_t k = a.getDimSize(1);
  if (k == 0 || k % kPanelColumns != 0 || a.getElementTypeBitWidth() != 16 ||
      shape.size() != 2 || shape[1] != kPanelWidth ||
      shape[0] * kPanelWidth % k != 0)
    return 0;
  return shape[0] * kPanelWidth / k;
}

SmallVector<int64_t> mlir::gdn_tile::getPanelShape(int64_t size) {
  return {size * size / kPanelWidth, kPanelWidth};
}

SmallVector<int64_t> mlir::gdn_tile::getLowerShape(int64_t size) {
  int64_t blocks = size / kPanelColumns;
  return {getLowerRow(blocks, blocks, blocks), kPanelWidth};
}

int64_t mlir::gdn_tile::getLowerSize(MemRefType panels) {
  for (int64_t size = kPanelColumns; size * size <= panels.getNumElements();
       size *= 2)
    if (panels.getShape() == ArrayRef<int64_t>(getPanelShape(size)))
      return size;
  return 0;
}

int64_t mlir::gdn_tile::getFirstLowerRow(int64_t column) {
  return column * kBlockRows + kMatrixRows;
}

int64_t mlir::gdn_tile::getLowerRows(int64_t column, int64_t blocks) {
  return blocks * kBlockRows - getFirstLowerRow(column);
}

int64_t mlir::gdn_tile::getLowerRow(int64_t row, int64_t column,
                                    int64_t blocks) {
  int64_t first = 0;
  for (int64_t i = 0; i < column; ++i)
    first += getLowerRows(i, blocks);
  return row == column ? first
                       : first + row * kBlockRows - getFirstLowerRow(column);
}

bool mlir::gdn_tile::fitsWarpgroup(MmaOp op) {
  auto func = op->getParentOfType<FunctionOpInterface>();
  return func && fitsWarpgroup(op, gdn_tile::getKernelAttr(func));
}

bool mlir::gdn_tile::fitsWarpgroup(MmaOp op, KernelAttr kernel) {
  auto a = cast<VectorType>(op.getA().getType());
  auto b = cast<MemRefType>(op.getB().getType());
  // Each warpgroup makes its own 64 rows of the product.
  int64_t warps = kernel ? kernel.getWarps() : 0, rows = a.getDimSize(0);
  return (warps == 4 || warps == 8) && (rows == 64 || rows == 16 * warps) &&
         a.getElementTypeBitWidth() == 16 && a.getDimSize(1) % 16 == 0 &&
         (op.hasPanels() ? a.getDimSize(1) : b.getDimSize(1)) % 64 == 0 &&
         op.getFragmentType().getDimSize(1) <= 256;
}

void MmaOp::getEffects(Effects &effects) { addRead(effects, getBMutable()); }

LogicalResult SumOp::verify() {
  auto from = cast<VectorType>(getValue().getType());
  auto to = cast<VectorType>(getResult().getType());
  bool overColumns =
      to.getDimSize(0) == from.getDimSize(0) && to.getDimSize(1) == 1;
  bool overRows =
      to.getDimSize(0) == 1 && to.getDimSize(1) == from.getDimSize(1);
  if (from.getElementType() != to.getElementType() ||
      !from.getElementType().isF32() || (!overColumns && !overRows))
    return emitOpError("cannot sum ") << from << " to " << to;
  return success();
}

LogicalResult IotaOp::verify() {
  auto type = cast<VectorType>(getResult().getType());
  if (!type.getElementType().isInteger(32) ||
      (type.getDimSize(0) != 1 && type.getDimSize(1) != 1))
    return emitOpError("expects vector<Mx1xi32> or vector<1xNxi32>, but has ")
           << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Ops on shared tiles
//===----------------------------------------------------------------------===//

LogicalResult CumsumOp::verify() {
  auto type = dyn_cast<MemRefType>(getTile().getType());
  if (failed(verifyF32Tile(*this, "tile", getTile())))
    return failure();
  bool hasSource = static_cast<bool>(getSource());
  if (hasSource != getLeast().has_value() ||
      hasSource != getFactor().has_value())
    return emitOpError("expects 'least' and 'factor' with a source, and only "
                       "then");
  if (hasSource) {
    auto source = cast<MemRefType>(getSource().getType());
    if (failed(verifyF32Tile(*this, "source", getSource())))
      return failure();
    if (type.getRank() != 1 || source.getRank() != 1 + !!getColumn() ||
        source.getDimSize(0) != type.getDimSize(0))
      return emitOpError(
                 "expects a tile of C elements and a source of as many, "
                 "or a column of a source of C rows, but has ")
             << type << " and " << source;
  } else if (getColumn()) {
    return emitOpError("has a column, but no source");
  }
  return verifyChunk(*this,
                     cast<MemRefType>(getTile().getType()).getDimSize(0));
}

void CumsumOp::getEffects(Effects &effects) {
  if (!getSource())
    addRead(effects, getTileMutable());
  for (OpOperand &source : getSourceMutable())
    addRead(effects, source);
  addWrite(effects, getTileMutable());
}

LogicalResult ScoresOp::verify() {
  if (failed(verifySharedTile(*this, getK().getType())) ||
      failed(verifyF32Tile(*this, "sums", getSums())))
    return failure();
  auto k = cast<MemRefType>(getK().getType());
  if (!isF16BF16OrF32(k.getElementType()))
    return emitOpError("expects f16, bf16 or f32 operands, but has ")
           << k.getElementType();
  if (k.getRank() != 2 || getQ().getType() != k ||
      (getLeft() && getLeft().getType() != k))
    return emitOpError("expects q, k and left of one type CxK, but has ")
           << getQ().getType() << " and " << k << (getLeft() ? " and " : "")
           << (getLeft() ? getLeft().getType() : Type());
  auto sums = cast<MemRefType>(getSums().getType());
  int64_t chunk = k.getDimSize(0);
  if (sums.getRank() != 2 || sums.getDimSize(0) != chunk + 1 ||
      sums.getDimSize(1) < k.getDimSize(1))
    return emitOpError("expects sums of ")
           << chunk + 1 << " rows and at least " << k.getDimSize(1)
           << " columns, but has " << sums;
  auto fragment =
      VectorType::get({chunk, chunk}, Float32Type::get(getContext()));
  auto isFragment = [&](Value value) {
    return !value || value.getType() == fragment;
  };
  if (static_cast<bool>(getStrict()) != static_cast<bool>(getLeft()))
    return emitOpError("has two results with 'left' and one without it");
  if (!isFragment(getAcc()) || !isFragment(getStrictAcc()) ||
      !isFragment(getScores()) || !isFragment(getStrict()))
    return emitOpError("expects accumulators and results ") << fragment;
  return verifyChunk(*this, chunk);
}

void ScoresOp::getEffects(Effects &effects) {
  addRead(effects, getQMutable());
  addRead(effects, getKMutable());
  addRead(effects, getSumsMutable());
  for (OpOperand &left : getLeftMutable())
    addRead(effects, left);
}

LogicalResult TriInverseOp::verify() {
  if (failed(verifyF32Tile(*this, "tile", getTile())))
    return failure();
  auto type = cast<MemRefType>(getTile().getType());
  if (type.getRank() != 2 || type.getDimSize(0) != type.getDimSize(1))
    return emitOpError("expects a square tile, but has ") << type;
  return verifyChunk(*this, type.getDimSize(0));
}

void TriInverseOp::getEffects(Effects &effects) {
  addRead(effects, getTileMutable());
  addWrite(effects, getTileMutable());
}
