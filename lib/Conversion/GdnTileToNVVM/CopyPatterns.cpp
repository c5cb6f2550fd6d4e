//===- CopyPatterns.cpp - copies between global and shared memory ---------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "BulkCopies.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// Copies between a tile and global memory: each thread moves pieces of
/// neighbouring elements, neighbouring threads neighbouring pieces.
class TileCopy {
public:
  /// `isLower`: the blocks of a lower triangular matrix to its panels.
  TileCopy(Emitter &emitter, const KernelLowering &kernel, Operation *op,
           MemRefType global, MemRefType tile, ArrayRef<int64_t> dims,
           Value globalBase, Value tileBase, ArrayRef<ValueRange> indices,
           ArrayRef<ValueRange> valid, bool isLower = false);

  /// `inLoop` for tiles that are rarely moved this way: little code and few
  /// registers.
  void emitIn(bool isAsync, bool inLoop = false);
  void emitOut(bool inLoop = false);

private:
  /// Piece of a thread: coordinates of its first element in the tile.
  struct Piece {
    ThreadPart row, col;  // those of the thread
    int64_t rowConst = 0; // plus this
    Value exists;         // null: for all threads
  };

  void initPieces();
  void forEachPiece(bool inLoop, function_ref<void(const Piece &)> body);
  Value getGlobal(const Piece &piece);
  Value getShared(const Piece &piece);
  std::pair<Value, Value> splitLowerRow(const Piece &piece);
  Value getBound(int64_t tileDim);
  /// Whether the piece lies inside; null if it always does.
  Value isInside(const Piece &piece);
  void copyAsync(const Piece &piece);
  void copyIn(const Piece &piece);
  void copyOut(const Piece &piece);

  int64_t globalBytes() const { return global.getElementTypeBitWidth() / 8; }
  int64_t stride(int64_t tileDim) const {
    return getStaticStrides(global)[dims[tileDim - (2 - dims.size())]];
  }

  Emitter &e;
  MemRefType global, tile;
  SmallVector<int64_t> dims;
  bool isLower;
  SharedLayout layout;
  const AccessInfo &access;
  ThreadSet threads;
  Value origin, tileBase;
  SmallVector<Value> validValues;
  int64_t rows = 1, cols = 0;
  int64_t width = 1; // elements of a piece
  Value limits[2];   // i32 bounds of rows and columns; null where static
};

TileCopy::TileCopy(Emitter &emitter, const KernelLowering &kernel,
                   Operation *op, MemRefType global, MemRefType tile,
                   ArrayRef<int64_t> dims, Value globalBase, Value tileBase,
                   ArrayRef<ValueRange> indices, ArrayRef<ValueRange> valid,
                   bool isLower)
    : e(emitter), global(global), tile(tile), dims(dims), isLower(isLower),
      layout(tile), access(kernel.getAccess(op)),
      threads(kernel.getThreads(emitter, op)), tileBase(tileBase) {
  validValues = flatten(valid);
  origin = getGlobalAddress(e, globalBase, global, flatten(indices));
  cols = tile.getShape().back();
  if (tile.getRank() == 2)
    rows = tile.getDimSize(0);
  limits[0] = getBound(0);
  limits[1] = getBound(1);
  initPieces();
}

/// The bound of the tile's rows (0) or columns (1), unless all of them are
/// inside.
Value TileCopy::getBound(int64_t tileDim) {
  int64_t slot = tileDim - (2 - tile.getRank());
  if (validValues.empty() || slot < 0)
    return Value();
  int64_t size = tile.getDimSize(slot);
  if (access.leastValid[slot] >= size)
    return Value();
  if (std::optional<int64_t> constant = access.valid[slot])
    return e.c32(std::max<int64_t>(*constant, 0));
  return e.clamp(validValues[slot], size);
}

/// As many elements as alignment, rows and column bound allow, at most 16 bytes
/// on either side.
void TileCopy::initPieces() {
  if (stride(1) != 1)
    return;
  int64_t tileBytes = layout.getElementBytes();
  int64_t granularity =
      std::gcd(cols, std::max<int64_t>(access.alignment / globalBytes(), 1));
  if (limits[1])
    granularity = std::gcd(granularity, access.validMultiples.back());
  int64_t widest = std::max(tileBytes, globalBytes());
  while (granularity % (width * 2) == 0 && width * 2 * widest <= 16)
    width *= 2;
}

void TileCopy::forEachPiece(bool inLoop,
                            function_ref<void(const Piece &)> body) {
  int64_t perRow = cols / width, total = rows * perRow;
  // Columns that are far apart in memory are better walked rows first.
  bool rowsFirst = rows > 1 && stride(1) != 1 && stride(0) == 1;
  int64_t inner = rowsFirst ? rows : perRow;
  int64_t numSteps = llvm::divideCeil(total, threads.count);
  auto getPiece = [&](Value index, int64_t bits) {
    Piece piece;
    ThreadPart first, second;
    if (inner == 1) {
      first.value = index;
      first.bits = bits;
    } else if (llvm::isPowerOf2_64(inner)) {
      first = {e.shrC(index, llvm::Log2_64(inner)),
               bits == -1 ? -1 : bits >> llvm::Log2_64(inner)};
      second = {e.andC(index, inner - 1), inner - 1};
    } else {
      Value divisor = e.c32(inner);
      first = {LLVM::UDivOp::create(e.builder, e.loc, index, divisor), -1};
      second = {LLVM::URemOp::create(e.builder, e.loc, index, divisor), -1};
    }
    piece.row = rowsFirst ? second : first;
    piece.col = (rowsFirst ? first : second).scale(e, width);
    if (inner == total && !rowsFirst) { // a single row
      piece.col = ThreadPart{index, bits}.scale(e, width);
      piece.row = ThreadPart();
    }
    return piece;
  };
  bool exact = threads.count % inner == 0 && !rowsFirst;
  int64_t threadBits = llvm::PowerOf2Ceil(threads.count) - 1;
  constexpr int64_t maxUnrolled = 32;
  if (numSteps <= maxUnrolled && !inLoop) {
    Piece first = getPiece(threads.id, threadBits);
    for (int64_t step = 0; step < numSteps; ++step) {
      Piece piece = first;
      int64_t start = step * threads.count;
      if (exact && inner != total)
        piece.rowConst = start / inner;
      else if (step != 0)
        piece = getPiece(e.addC(threads.id, start), -1);
      if (start + threads.count > total)
        piece.exists = e.lessThanC(threads.id, total - start);
      body(piece);
    }
    return;
  }
  Value thread = LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), threads.id);
  scf::ForOp::create(
      e.builder, e.loc, thread, e.c64(total), e.c64(threads.count),
      ValueRange(), [&](OpBuilder &, Location loc, Value index, ValueRange) {
        body(getPiece(LLVM::TruncOp::create(e.builder, loc, e.i32(), index),
                      -1));
        scf::YieldOp::create(e.builder, loc);
      });
}

/// The panel of a piece, which is a column of blocks, and its row in it.
std::pair<Value, Value> TileCopy::splitLowerRow(const Piece &piece) {
  int64_t panelRows = getPanelRow(0, kPanelColumns, getLowerSize(tile));
  Value row = piece.row.value ? piece.row.value : e.c32(0);
  row = e.addC(row, piece.rowConst);
  return {e.shrC(row, llvm::Log2_64(panelRows)), e.andC(row, panelRows - 1)};
}

Value TileCopy::getGlobal(const Piece &piece) {
  if (isLower) {
    // Blocks before the panel's, times 32 rows, and those of its own, without
    // a matrix of 8 rows in its panel and each before.
    auto [panel, row] = splitLowerRow(piece);
    int64_t panels = getLowerSize(tile) / kPanelColumns;
    Value rest =
        LLVM::SubOp::create(e.builder, e.loc, e.c32(2 * panels - 1), panel);
    Value before = e.mulC(LLVM::MulOp::create(e.builder, e.loc, panel, rest),
                          kBlockRows / 2);
    before = LLVM::SubOp::create(e.builder, e.loc, before,
                                 e.mulC(e.addC(panel, 1), kMatrixRows));
    // Rows that are not inside may lie in front of the source.
    row = LLVM::SMaxOp::create(e.builder, e.loc, e.add(before, row), e.c32(0));
    Value offset = e.mulC(row, cols * layout.getElementBytes());
    if (piece.col.value)
      offset = e.add(offset, e.mulC(piece.col.value, layout.getElementBytes()));
    return e.advance(origin,
                     LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), offset));
  }
  Value offset;
  int64_t rowBytes = rows > 1 ? stride(0) * globalBytes() : 0;
  if (piece.row.value)
    offset = e.mulC(piece.row.value, rowBytes);
  if (piece.col.value)
    offset = e.add(offset, e.mulC(piece.col.value, stride(1) * globalBytes()));
  Value pointer = origin;
  if (offset)
    pointer = e.advance(
        pointer, LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), offset));
  return e.advance(pointer, piece.rowConst * rowBytes);
}

Value TileCopy::getShared(const Piece &piece) {
  return SharedAddress(e, layout, tileBase, piece.row, piece.col)
      .at(piece.rowConst, 0);
}

Value TileCopy::isInside(const Piece &piece) {
  Value inside;
  Value zero = e.c32(0);
  if (isLower) {
    auto [panel, row] = splitLowerRow(piece);
    Value first = e.addC(e.mulC(panel, kBlockRows), kMatrixRows);
    inside = LLVM::ICmpOp::create(e.builder, e.loc, LLVM::ICmpPredicate::uge,
                                  row, first);
  }
  if (limits[0])
    inside = e.both(inside,
                    e.lessThan(e.addC(piece.row.value ? piece.row.value : zero,
                                      piece.rowConst),
                               limits[0]));
  if (limits[1])
    inside = e.both(inside, e.lessThan(piece.col.value ? piece.col.value : zero,
                                       limits[1]));
  return inside;
}

void TileCopy::copyAsync(const Piece &piece) {
  int64_t bytes = width * globalBytes();
  Value inside = isInside(piece), size;
  if (inside)
    size = e.select(inside, e.c32(bytes), e.c32(0));
  NVVM::CpAsyncOp::create(e.builder, e.loc, getShared(piece), getGlobal(piece),
                          bytes,
                          bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                      : NVVM::LoadCacheModifierKind::CA,
                          size);
}

void TileCopy::copyIn(const Piece &piece) {
  int64_t words = width * globalBytes() / 4;
  SmallVector<Value> loaded =
      e.loadWords(getGlobal(piece), words, isInside(piece));
  Value shared = getShared(piece);
  if (global.getElementType() == tile.getElementType()) {
    e.storeWords(shared, loaded, Value());
    return;
  }
  // 16-bit elements become float32.
  Type half = global.getElementType();
  SmallVector<Value> extended;
  for (Value word : loaded) {
    Type unit = words == 0 ? half : VectorType::get(2, half);
    Value value = e.bitcast(word, unit);
    for (int64_t i = 0; i < (words == 0 ? 1 : 2); ++i) {
      Value element = words == 0 ? value : e.extractElement(value, i);
      Value wide = LLVM::FPExtOp::create(e.builder, e.loc, e.f32(), element);
      extended.push_back(e.bitcast(wide, e.i32()));
    }
  }
  e.storeWords(shared, extended, Value());
}

void TileCopy::copyOut(const Piece &piece) {
  int64_t words = width * globalBytes() / 4;
  SmallVector<Value> loaded = e.loadWords(getShared(piece), words, Value());
  e.storeWords(getGlobal(piece), loaded, isInside(piece));
}

/// Runs `body` where the piece exists.
static void guard(Emitter &e, Value exists, function_ref<void()> body) {
  if (!exists) {
    body();
    return;
  }
  auto ifOp = scf::IfOp::create(e.builder, e.loc, exists,
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(e.builder);
  e.builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

void TileCopy::emitIn(bool isAsync, bool inLoop) {
  bool hasPieces = width * globalBytes() >= 4;
  forEachPiece(inLoop, [&](const Piece &piece) {
    guard(e, piece.exists,
          [&] { isAsync &&hasPieces ? copyAsync(piece) : copyIn(piece); });
  });
}

void TileCopy::emitOut(bool inLoop) {
  forEachPiece(inLoop, [&](const Piece &piece) {
    guard(e, piece.exists, [&] { copyOut(piece); });
  });
}

/// Runs `body`, but `otherwise` on what is no whole tile.
static void ifWhole(Emitter &e, Value whole, function_ref<void()> body,
                    function_ref<void()> otherwise) {
  if (!whole)
    return body();
  auto ifOp = scf::IfOp::create(e.builder, e.loc, whole,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard insertion(e.builder);
  e.builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
  e.builder.setInsertionPointToStart(ifOp.elseBlock());
  otherwise();
}

struct CopyInPattern : TilePattern<CopyInOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CopyInOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    bool isAsync = op.getToken() || op.getSlot();
    if (op.getMap() || kernel.isBulkCopy(op)) {
      auto tile = cast<MemRefType>(op.getTile().getType());
      ifWhole(
          e, isWholeTile(e, kernel.getAccess(op), tile, adaptor.getValid()),
          [&] { copyInBulk(e, op, adaptor); },
          [&] {
            getCopy(e, op, adaptor).emitIn(isAsync, /*inLoop=*/true);
            if (op.getSlot())
              finish(e, op);
          });
    } else {
      getCopy(e, op, adaptor).emitIn(isAsync);
    }
    if (op.getToken())
      rewriter.replaceOpWithMultiple(op, {ValueRange()});
    else
      rewriter.eraseOp(op);
    return success();
  }

private:
  TileCopy getCopy(Emitter &e, CopyInOp op, Adaptor adaptor) const {
    return TileCopy(e, kernel, op, cast<MemRefType>(op.getSource().getType()),
                    cast<MemRefType>(op.getTile().getType()), op.getDims(),
                    adaptor.getSource().front(), adaptor.getTile().front(),
                    adaptor.getIndices(), adaptor.getValid(), op.getLower());
  }

  /// Column after column of blocks to its place in a panel; what lies above
  /// holds zeros, whatever has been copied before.
  void copyInLower(Emitter &e, CopyInOp op, Adaptor adaptor) const {
    auto tile = cast<MemRefType>(op.getTile().getType());
    auto global = cast<MemRefType>(op.getSource().getType());
    int64_t size = getLowerSize(tile), panels = size / kPanelColumns;
    int64_t rowBytes = SharedLayout(tile).getPitch();
    ThreadSet threads = kernel.getThreads(e, op);
    auto build = [&](SmallVectorImpl<BulkCopy> &copies) {
      Value source = getGlobalAddress(e, adaptor.getSource().front(), global,
                                      flatten(adaptor.getIndices()));
      for (int64_t panel = 0; panel < panels; ++panel) {
        int64_t first = getLowerRow(panel, panel, panels);
        int64_t row = getPanelRow(0, panel * kPanelColumns, size) +
                      getFirstLowerRow(panel);
        copies.emplace_back(
            e, threads, e.advance(source, first * rowBytes),
            e.advance(adaptor.getTile().front(), row * rowBytes),
            getLowerRows(panel, panels) * rowBytes);
      }
    };
    BulkCopy::load(e, threads, getLowerShape(size)[0] * rowBytes,
                   adaptor.getSlot().front(), build);
  }

  void copyInBulk(Emitter &e, CopyInOp op, Adaptor adaptor) const {
    if (op.getLower())
      return copyInLower(e, op, adaptor);
    BulkCopy copy = getBulkCopy(e, op, adaptor);
    if (op.getSlot())
      copy.load(adaptor.getSlot().front());
    else
      copy.loadAndWait(kernel.getScratch(e, op),
                       [&] { kernel.emitBarrier(e, op); });
  }

  BulkCopy getBulkCopy(Emitter &e, CopyInOp op, Adaptor adaptor) const {
    ThreadSet threads = kernel.getThreads(e, op);
    Value tile = adaptor.getTile().front();
    if (op.getMap())
      return BulkCopy(e, threads, op.getMap().getType(),
                      adaptor.getMap().front(), tile, adaptor.getIndices());
    SmallVector<Value> indices = flatten(adaptor.getIndices());
    Value source =
        getGlobalAddress(e, adaptor.getSource().front(),
                         cast<MemRefType>(op.getSource().getType()), indices);
    SharedLayout layout(cast<MemRefType>(op.getTile().getType()));
    return BulkCopy(e, threads, source, tile, layout.getBytes());
  }

  /// One lane of a warp may arrive for all behind it, and products read what
  /// they have copied. A barrier of warps orders that too, but racecheck takes
  /// it for none where copies are asynchronous.
  void finish(Emitter &e, CopyInOp op) const {
    NVVM::CpAsyncCommitGroupOp::create(e.builder, e.loc);
    NVVM::CpAsyncWaitGroupOp::create(e.builder, e.loc, 0);
    e.proxyFence();
    kernel.emitBarrier(e, op);
  }
};

struct CopyOutPattern : TilePattern<CopyOutOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CopyOutOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto tile = cast<MemRefType>(op.getTile().getType());
    auto copyByThreads = [&] {
      TileCopy copy(
          e, kernel, op, cast<MemRefType>(op.getDestination().getType()), tile,
          op.getDims(), adaptor.getDestination().front(),
          adaptor.getTile().front(), adaptor.getIndices(), adaptor.getValid());
      copy.emitOut(/*inLoop=*/static_cast<bool>(op.getMap()));
    };
    if (op.getMap()) {
      BulkCopy bulk(e, kernel.getThreads(e, op), op.getMap().getType(),
                    adaptor.getMap().front(), adaptor.getTile().front(),
                    adaptor.getIndices());
      ifWhole(
          e, isWholeTile(e, kernel.getAccess(op), tile, adaptor.getValid()),
          [&] { bulk.store(); }, copyByThreads);
    } else {
      copyByThreads();
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct JoinPattern : TilePattern<JoinOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(JoinOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncCommitGroupOp::create(rewriter, op.getLoc());
    rewriter.replaceOpWithMultiple(op, {ValueRange()});
    return success();
  }
};

struct WaitPattern : TilePattern<WaitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WaitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncWaitGroupOp::create(rewriter, op.getLoc(), op.getPending());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mlir::gdn::populateCopyPatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns) {
  patterns.add<CopyInPattern, CopyOutPattern, JoinPattern, WaitPattern>(
      kernel, patterns.getContext());
}
