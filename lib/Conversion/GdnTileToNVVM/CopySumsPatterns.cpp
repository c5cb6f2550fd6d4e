//===- CopySumsPatterns.cpp - running sums of global memory ---------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// A warp has 16 rows, a lane four neighbouring columns of them, and all loads
/// are in flight before the first sum. Each warp leaves the sum of its rows
/// where the last of them will be, for the warps behind.
class ColumnSums {
public:
  ColumnSums(Emitter &emitter, const KernelLowering &kernel, CopySumsOp op,
             CopySumsOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor);

  void emit();

private:
  static constexpr int64_t kRows = 16, kColumns = 4;

  Value getBound(int64_t d, int64_t size);
  SmallVector<Value> load(bool checksRows);
  SmallVector<Value> loadChecked();
  SmallVector<Value> loadRow(Value pointer, Value exists);
  void emitGroup();
  SmallVector<Value> sumBefore();
  void store(ValueRange sums, SharedAddress &address, int64_t row);

  Emitter &e;
  const KernelLowering &kernel;
  CopySumsOp op;
  CopySumsOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor;
  MemRefType source, tile;
  SharedLayout layout;
  const AccessInfo &access;
  int64_t columns, blocks, width = 1;
  Value lane, block, rowBound, columnBound;
  // The group of columns: the first one of lane 0 and of the lane, and whether
  // the lane has any (null: all have).
  int64_t first = 0;
  Value column, exists;
};

} // namespace

ColumnSums::ColumnSums(Emitter &emitter, const KernelLowering &kernel,
                       CopySumsOp op,
                       CopySumsOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor)
    : e(emitter), kernel(kernel), op(op), adaptor(adaptor),
      source(cast<MemRefType>(op.getSource().getType())),
      tile(cast<MemRefType>(op.getTile().getType())), layout(tile),
      access(kernel.getAccess(op)), columns(op.getColumnsAttr().getInt()),
      blocks((tile.getDimSize(0) - 1) / kRows) {
  Value thread = e.opaqueThreadId();
  lane = e.andC(thread, 31);
  block = e.shrC(thread, 5);
  rowBound = getBound(0, kRows * blocks);
  columnBound = getBound(1, columns);
  int64_t granularity = access.alignment * 8 / source.getElementTypeBitWidth();
  if (columnBound)
    granularity = std::gcd(granularity, access.validMultiples[1]);
  if (getStaticStrides(source)[op.getDims()[1]] != 1)
    granularity = 1;
  while (width < kColumns && granularity % (2 * width) == 0)
    width *= 2;
}

/// The bound of dimension d as an i32; null where all is inside.
Value ColumnSums::getBound(int64_t d, int64_t size) {
  if (op.getValid().empty() || access.leastValid[d] >= size)
    return Value();
  return e.clamp(adaptor.getValid()[d].front(), size);
}

/// Four neighbours of a row, zero where nothing exists.
SmallVector<Value> ColumnSums::loadRow(Value pointer, Value exists) {
  int64_t bits = source.getElementTypeBitWidth();
  int64_t stride = getStaticStrides(source)[op.getDims()[1]] * bits / 8;
  SmallVector<Value> values;
  for (int64_t c = 0; c < kColumns; c += width) {
    Value inside = exists;
    if (columnBound)
      inside = e.both(inside, e.lessThan(e.addC(column, c), columnBound));
    for (Value word : e.loadWords(e.advance(pointer, c * stride),
                                  width * bits / 32, inside)) {
      if (bits == 32)
        values.push_back(e.bitcast(word, e.f32()));
      else if (width > 1)
        llvm::append_range(values, e.extendPair(word, source.getElementType()));
      else
        values.push_back(
            LLVM::FPExtOp::create(e.builder, e.loc, e.f32(),
                                  e.bitcast(word, source.getElementType())));
    }
  }
  return values;
}

SmallVector<Value> ColumnSums::load(bool checksRows) {
  SmallVector<Value> indices;
  for (ValueRange range : adaptor.getIndices())
    indices.push_back(range.front());
  int64_t bytes = source.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides = getStaticStrides(source);
  int64_t rowBytes = strides[op.getDims()[0]] * bytes;
  Value row = e.mulC(block, kRows);
  Value offset = e.add(e.mulC(row, rowBytes),
                       e.mulC(column, strides[op.getDims()[1]] * bytes));
  Value pointer = e.advance(
      getGlobalAddress(e, adaptor.getSource().front(), source, indices),
      LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), offset));
  SmallVector<Value> values;
  for (int64_t i = 0; i < kRows; ++i) {
    Value inside = exists;
    if (checksRows)
      inside = e.both(inside, e.lessThan(e.addC(row, i), rowBound));
    llvm::append_range(values,
                       loadRow(e.advance(pointer, i * rowBytes), inside));
  }
  return values;
}

/// Whole chunks are the rule: their loads need no predicates.
SmallVector<Value> ColumnSums::loadChecked() {
  if (!rowBound)
    return load(/*checksRows=*/false);
  SmallVector<Type> types(kRows * kColumns, e.f32());
  Value isPartial = e.lessThanC(rowBound, kRows * blocks);
  auto branch = scf::IfOp::create(e.builder, e.loc, types, isPartial,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(e.builder);
  for (bool checksRows : {true, false}) {
    e.builder.setInsertionPointToStart(checksRows ? branch.thenBlock()
                                                  : branch.elseBlock());
    scf::YieldOp::create(e.builder, e.loc, load(checksRows));
  }
  return SmallVector<Value>(branch.getResults());
}

void ColumnSums::store(ValueRange sums, SharedAddress &address, int64_t row) {
  SmallVector<Value> words;
  for (Value sum : sums)
    words.push_back(e.bitcast(sum, e.i32()));
  e.storeWords(address.at(row, first), words, exists);
}

/// The sum of the rows of the warps in front; zero for the first one.
SmallVector<Value> ColumnSums::sumBefore() {
  SharedAddress address(e, layout, adaptor.getTile().front(), ThreadPart(),
                        ThreadPart{lane, 31}.scale(e, kColumns));
  SmallVector<Value> sums(kColumns, e.cF32(0.0));
  for (int64_t before = 0; before + 1 < blocks; ++before) {
    Value isBefore = LLVM::ICmpOp::create(
        e.builder, e.loc, LLVM::ICmpPredicate::sgt, block, e.c32(before));
    SmallVector<Value> words =
        e.loadWords(address.at(kRows * (before + 1), first), kColumns,
                    e.both(isBefore, exists));
    for (auto [sum, word] : llvm::zip_equal(sums, words))
      sum = e.fadd(sum, e.bitcast(word, e.f32()));
  }
  return sums;
}

void ColumnSums::emitGroup() {
  SmallVector<Value> values = loadChecked();
  Value least = e.cF32(op.getLeast().convertToDouble());
  Value factor = e.cF32(op.getFactor().convertToDouble());
  for (size_t i = 0; i < values.size(); ++i) {
    Value kept = LLVM::MaximumOp::create(e.builder, e.loc, values[i], least);
    values[i] = i < kColumns ? e.fmul(kept, factor)
                             : e.fma(kept, factor, values[i - kColumns]);
  }
  // Row 0 of the tile is in front of the first one.
  ThreadPart row{e.addC(e.mulC(block, kRows), 1), -1};
  SharedAddress address(e, layout, adaptor.getTile().front(), row,
                        ThreadPart{lane, 31}.scale(e, kColumns));
  if (blocks > 1) {
    store(ValueRange(values).take_back(kColumns), address, kRows - 1);
    kernel.emitBarrier(e, op);
    SmallVector<Value> before = sumBefore();
    kernel.emitBarrier(e, op);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = e.fadd(before[i % kColumns], values[i]);
  }
  for (int64_t i = 0; i < kRows; ++i)
    store(ValueRange(values).slice(kColumns * i, kColumns), address, i);
}

void ColumnSums::emit() {
  for (first = 0; first < columns; first += 32 * kColumns) {
    column = e.addC(e.mulC(lane, kColumns), first);
    int64_t lanes = llvm::divideCeil(columns - first, kColumns);
    exists = lanes < 32 ? e.lessThanC(lane, lanes) : Value();
    if (32 * blocks < kernel.getNumThreads())
      exists = e.both(exists, e.lessThanC(block, blocks));
    emitGroup();
    SharedAddress zeros(e, layout, adaptor.getTile().front(), ThreadPart(),
                        ThreadPart{lane, 31}.scale(e, kColumns));
    SmallVector<Value> zero(kColumns, e.cF32(0.0));
    exists = e.both(exists, e.equalsC(block, 0));
    store(zero, zeros, 0);
  }
}

namespace {
struct CopySumsPattern : TilePattern<CopySumsOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(CopySumsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    ColumnSums(e, kernel, op, adaptor).emit();
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void mlir::gdn::populateCopySumsPatterns(const KernelLowering &kernel,
                                         RewritePatternSet &patterns) {
  patterns.add<CopySumsPattern>(kernel, patterns.getContext());
}
