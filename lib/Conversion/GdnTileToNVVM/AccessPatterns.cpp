//===- AccessPatterns.cpp - loads and stores of fragments -----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"
#include "MatrixMoves.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// What a load and a store have in common: which registers move together, where
/// they lie, and under which predicate.
class FragmentAccess {
public:
  FragmentAccess(Emitter &emitter, const KernelLowering &kernel, Operation *op,
                 MemRefType memref, VectorType fragment, Value base,
                 ArrayRef<ValueRange> indices, ArrayRef<int64_t> dims,
                 ArrayRef<ValueRange> valid);

  /// Elements that one access moves: neighbours in memory and registers.
  int64_t getWidth() const { return width; }
  Value getAddress(int64_t row, int64_t col) { return address->at(row, col); }
  /// True (null), or whether the element and its neighbours may be touched.
  Value getPredicate(int64_t row, int64_t col);

  const FragmentLayout &getLayout() const { return layout; }

private:
  struct Bound {
    Value limit; // i32; null where nothing can lie outside
    Value base;  // first coordinate of the thread
    std::map<int64_t, Value> predicates;
  };
  void initBound(bool columns, VectorType fragment, ArrayRef<ValueRange> valid,
                 ArrayRef<int64_t> dims);
  void initWidth(MemRefType memref, ArrayRef<ValueRange> valid,
                 ArrayRef<int64_t> dims);
  Value getPredicate(Bound &bound, int64_t offset);

  Emitter &e;
  const KernelLowering &kernel;
  const AccessInfo &access;
  FragmentLayout layout;
  std::optional<FragmentAddress> address;
  Bound bounds[2];
  int64_t width = 1;
};

FragmentAccess::FragmentAccess(Emitter &emitter, const KernelLowering &kernel,
                               Operation *op, MemRefType memref,
                               VectorType fragment, Value base,
                               ArrayRef<ValueRange> indices,
                               ArrayRef<int64_t> dims,
                               ArrayRef<ValueRange> valid)
    : e(emitter), kernel(kernel), access(kernel.getAccess(op)),
      layout(kernel.getLayout(fragment)) {
  SmallVector<Value> indexValues;
  for (ValueRange range : indices)
    indexValues.push_back(range.front());
  address.emplace(e, kernel, memref, base, indexValues, access, dims, fragment,
                  layout);
  initBound(/*columns=*/false, fragment, valid, dims);
  initBound(/*columns=*/true, fragment, valid, dims);
  initWidth(memref, valid, dims);
}

void FragmentAccess::initBound(bool columns, VectorType fragment,
                               ArrayRef<ValueRange> valid,
                               ArrayRef<int64_t> dims) {
  int64_t dim = address->getDim(columns);
  if (valid.empty() || dim < 0)
    return;
  int64_t slot = llvm::find(dims, dim) - dims.begin();
  int64_t size = fragment.getDimSize(columns);
  if (access.leastValid[slot] >= size)
    return;
  std::optional<int64_t> constant = access.valid[slot];
  Bound &bound = bounds[columns];
  bound.limit = constant ? e.c32(std::max<int64_t>(*constant, 0))
                         : e.clamp(valid[slot].front(), size);
  bound.base =
      columns ? kernel.getColBase(e, layout) : kernel.getRowBase(e, layout);
  if (!bound.base)
    bound.base = e.c32(0);
}

/// The widest access: as wide as the run of neighbouring columns that a thread
/// holds, the alignment of the address and the granularity of the bound allow.
void FragmentAccess::initWidth(MemRefType memref, ArrayRef<ValueRange> valid,
                               ArrayRef<int64_t> dims) {
  int64_t dim = address->getDim(/*columns=*/true);
  if (dim != memref.getRank() - 1 || !layout.hasColumnPairs())
    return;
  int64_t bytes = memref.getElementTypeBitWidth() / 8;
  int64_t alignment = access.alignment;
  if (isShared(memref))
    // Rows of shared tiles start at multiples of 16 bytes.
    alignment = std::gcd<int64_t>(16, access.indexMultiples[dim] * bytes);
  ArrayRef<int64_t> cols = layout.getColOffsets();
  int64_t run = 1;
  while (run < static_cast<int64_t>(cols.size()) && cols[run] == run)
    ++run;
  int64_t granularity = alignment / bytes;
  if (bounds[1].limit) {
    int64_t slot = llvm::find(dims, dim) - dims.begin();
    granularity = std::gcd(granularity, access.validMultiples[slot]);
  }
  // A run of a thread starts at a multiple of its length, or, with fewer
  // columns than a run has, at zero.
  while (width * 2 * bytes <= 16 && granularity % (width * 2) == 0 &&
         run % (width * 2) == 0)
    width *= 2;
}

Value FragmentAccess::getPredicate(Bound &bound, int64_t offset) {
  if (!bound.limit)
    return Value();
  Value &predicate = bound.predicates[offset];
  if (!predicate)
    predicate = e.lessThan(e.addC(bound.base, offset), bound.limit);
  return predicate;
}

Value FragmentAccess::getPredicate(int64_t row, int64_t col) {
  return e.both(getPredicate(bounds[0], row), getPredicate(bounds[1], col));
}

/// A fragment of 16-bit pairs that ldmatrix and stmatrix can move: its 8x8
/// matrices are whole rows of 16 bytes in the tile.
bool hasMatrices(const KernelLowering &kernel, Operation *op, MemRefType memref,
                 VectorType fragment, ArrayRef<int64_t> dims) {
  if (kernel.kernel.getLayout() != FragmentLayoutKind::Accumulator ||
      !kernel.isPacked(fragment) || !isShared(memref) ||
      memref.getRank() != 2 || dims.size() != 2 ||
      fragment.getDimSize(0) == 1 || fragment.getDimSize(1) % 16 != 0)
    return false;
  const AccessInfo &access = kernel.getAccess(op);
  for (auto [i, least] : llvm::enumerate(access.leastValid))
    if (least < fragment.getDimSize(i))
      return false;
  return access.indexMultiples[1] % 8 == 0;
}

/// The part of a row that the number of the warp makes.
SmallVector<ThreadTerm> getWarpTerms(const FragmentLayout &layout) {
  return llvm::to_vector(
      llvm::make_filter_range(layout.getRowTerms(), [](const ThreadTerm &term) {
        return term.shift >= 5;
      }));
}

/// Address that a lane gives for a group of four matrices: the 16x16 block of
/// the warp at fragment column `col`, in register order (row halves, then
/// column halves).
class MatrixAddress {
public:
  MatrixAddress(Emitter &e, const KernelLowering &kernel, MemRefType memref,
                Value base, VectorType fragment, ArrayRef<ValueRange> indices,
                const AccessInfo &access, bool transpose)
      : transpose(transpose) {
    int64_t threads = kernel.getEndThread();
    // Lane bit 3 chooses the half of the fragment's rows, bit 4 that of its
    // columns; the low bits run along the rows of a matrix in memory.
    SmallVector<ThreadTerm> rows = getWarpTerms(kernel.getLayout(fragment));
    rows.push_back({3, 1, 8});
    SmallVector<ThreadTerm> cols{{4, 1, 8}};
    (transpose ? cols : rows).push_back({0, 7, 1});
    ThreadPart parts[2] = {ThreadPart::get(e, rows, threads),
                           ThreadPart::get(e, cols, threads)};
    if (transpose)
      std::swap(parts[0], parts[1]);
    for (int64_t d : {0, 1}) {
      if (access.indices[d]) {
        origin[d] = *access.indices[d];
        continue;
      }
      Value index =
          LLVM::TruncOp::create(e.builder, e.loc, e.i32(), indices[d].front());
      parts[d] = parts[d].add(e, {index, -1});
    }
    address.emplace(e, SharedLayout(memref), base, parts[0], parts[1]);
  }

  Value at(int64_t col) {
    return transpose ? address->at(origin[0] + col, origin[1])
                     : address->at(origin[0], origin[1] + col);
  }

private:
  bool transpose;
  int64_t origin[2] = {0, 0};
  std::optional<SharedAddress> address;
};

struct LoadPattern : TilePattern<LoadOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto fragment = cast<VectorType>(op.getResult().getType());
    auto memref = cast<MemRefType>(op.getMemref().getType());
    Value base = adaptor.getMemref().front();
    SmallVector<Value> registers;
    if (kernel.isOnlySharedLeft(op)) {
      SmallVector<Type> types;
      if (failed(kernel.converter.convertType(fragment, types)))
        return failure();
      for (Type type : types)
        registers.push_back(
            LLVM::PoisonOp::create(rewriter, op.getLoc(), type));
    } else if (hasMatrices(kernel, op, memref, fragment, op.getDims())) {
      bool transpose = op.getDims()[0] == 1;
      MatrixAddress address(e, kernel, memref, base, fragment,
                            adaptor.getIndices(), kernel.getAccess(op),
                            transpose);
      auto pair = VectorType::get(2, fragment.getElementType());
      for (int64_t col = 0; col < fragment.getDimSize(1); col += 16)
        for (Value word : loadMatrices(e, address.at(col), transpose))
          registers.push_back(e.bitcast(word, pair));
    } else {
      FragmentAccess access(e, kernel, op, memref, fragment, base,
                            adaptor.getIndices(), op.getDims(),
                            adaptor.getValid());
      registers = loadElements(e, access, fragment, op.getStreaming());
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  SmallVector<Value> loadElements(Emitter &e, FragmentAccess &access,
                                  VectorType fragment, bool streaming) const {
    const FragmentLayout &layout = access.getLayout();
    Type element = fragment.getElementType();
    bool isHalf = element.getIntOrFloatBitWidth() == 16;
    bool packed = kernel.isPacked(fragment);
    int64_t width = access.getWidth();
    int64_t words = isHalf ? width / 2 : width;
    Type unit = isHalf && width > 1 ? VectorType::get(2, element) : element;
    int64_t numRows = layout.getRowOffsets().size();
    int64_t numCols = layout.getColOffsets().size();
    SmallVector<Value> registers(packed && width > 1 ? numRows * numCols / 2
                                                     : numRows * numCols);
    for (int64_t row = 0; row < numRows; ++row)
      for (int64_t col = 0; col < numCols; col += width) {
        int64_t rowOffset = layout.getRowOffsets()[row];
        int64_t colOffset = layout.getColOffsets()[col];
        SmallVector<Value> loaded =
            e.loadWords(access.getAddress(rowOffset, colOffset), words,
                        access.getPredicate(rowOffset, colOffset), streaming);
        int64_t perWord = width / loaded.size();
        for (auto [i, word] : llvm::enumerate(loaded)) {
          int64_t r = layout.getRegister(row, col + i * perWord);
          registers[r / perWord] = e.bitcast(word, unit);
        }
      }
    return packed && width == 1 ? kernel.pack(e, fragment, registers)
                                : registers;
  }
};

struct StorePattern : TilePattern<StoreOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto fragment = cast<VectorType>(op.getValue().getType());
    auto memref = cast<MemRefType>(op.getMemref().getType());
    Value base = adaptor.getMemref().front();
    bool transpose = op.getDims().size() == 2 && op.getDims()[0] == 1;
    ValueRange value = adaptor.getValue();
    if (hasMatrices(kernel, op, memref, fragment, op.getDims()) &&
        (transpose || kernel.target.hasStMatrix())) {
      MatrixAddress address(e, kernel, memref, base, fragment,
                            adaptor.getIndices(), kernel.getAccess(op),
                            transpose);
      if (kernel.target.hasStMatrix())
        storeWithStMatrix(e, address, fragment, value, transpose);
      else
        storeTransposed(e, op, adaptor, memref, fragment);
    } else {
      FragmentAccess access(e, kernel, op, memref, fragment, base,
                            adaptor.getIndices(), op.getDims(),
                            adaptor.getValid());
      storeElements(e, kernel.getThreads(e, op), access, fragment, value,
                    op.getStreaming());
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void storeWithStMatrix(Emitter &e, MatrixAddress &address,
                                VectorType fragment, ValueRange value,
                                bool transpose) {
    for (int64_t col = 0; col < fragment.getDimSize(1); col += 16) {
      SmallVector<Value> words;
      for (Value pair : value.slice(col / 4, 4))
        words.push_back(e.bitcast(pair, e.i32()));
      storeMatrices(e, address.at(col), words, transpose);
    }
  }

  /// Without stmatrix: transpose each 8x8 matrix in registers; a lane then
  /// holds two neighbours of a row of the tile.
  void storeTransposed(Emitter &e, StoreOp op, Adaptor adaptor,
                       MemRefType memref, VectorType fragment) const {
    int64_t threads = kernel.getEndThread();
    FragmentLayout layout = kernel.getLayout(fragment);
    // Of the matrix at (row, col) of the fragment, now transposed, lane l
    // holds tile row col + l / 4 and tile columns row + 2 (l % 4) + {0, 1}.
    SmallVector<ThreadTerm> rows = getWarpTerms(layout);
    rows.push_back({0, 3, 2});
    ThreadPart parts[2] = {ThreadPart::get(e, {{2, 7, 1}}, threads),
                           ThreadPart::get(e, rows, threads)};
    const AccessInfo &access = kernel.getAccess(op);
    int64_t origin[2] = {0, 0};
    for (int64_t d : {0, 1}) {
      if (access.indices[d]) {
        origin[d] = *access.indices[d];
        continue;
      }
      Value index = LLVM::TruncOp::create(e.builder, e.loc, e.i32(),
                                          adaptor.getIndices()[d].front());
      parts[d] = parts[d].add(e, {index, -1});
    }
    SharedAddress address(e, SharedLayout(memref), adaptor.getMemref().front(),
                          parts[0], parts[1]);
    for (auto [p, pair] : llvm::enumerate(adaptor.getValue())) {
      Value word = transposeMatrix(e, e.bitcast(pair, e.i32()));
      int64_t row = 8 * (p % 2), col = 8 * (p / 2);
      e.storeWords(address.at(origin[0] + col, origin[1] + row), word, Value());
    }
  }

  void storeElements(Emitter &e, ThreadSet threads, FragmentAccess &access,
                     VectorType fragment, ValueRange value,
                     bool streaming) const {
    const FragmentLayout &layout = access.getLayout();
    Type element = fragment.getElementType();
    bool isHalf = element.getIntOrFloatBitWidth() == 16;
    int64_t width = access.getWidth();
    bool inPairs = kernel.isPacked(fragment) && width > 1;
    SmallVector<Value> registers =
        inPairs ? SmallVector<Value>(value) : kernel.unpack(e, fragment, value);
    Type unit = isHalf && !inPairs ? e.i16() : e.i32();
    int64_t perWord = inPairs ? 2 : 1;
    // Of threads that hold the same element one stores it.
    Value owner;
    int64_t bits = layout.getReplicatedThreadBits() &
                   (llvm::PowerOf2Ceil(threads.count) - 1);
    if (bits & (threads.count - 1))
      owner = e.equalsC(e.andC(threads.id, bits), 0);
    for (auto [row, rowOffset] : llvm::enumerate(layout.getRowOffsets()))
      for (int64_t col = 0, n = layout.getColOffsets().size(); col < n;
           col += width) {
        int64_t colOffset = layout.getColOffsets()[col];
        SmallVector<Value> words;
        for (int64_t i = 0; i < width; i += perWord)
          words.push_back(e.bitcast(
              registers[layout.getRegister(row, col + i) / perWord], unit));
        e.storeWords(access.getAddress(rowOffset, colOffset), words,
                     e.both(owner, access.getPredicate(rowOffset, colOffset)),
                     streaming);
      }
  }
};

} // namespace

void mlir::gdn::populateAccessPatterns(const KernelLowering &kernel,
                                       RewritePatternSet &patterns) {
  patterns.add<LoadPattern, StorePattern>(kernel, patterns.getContext());
}
