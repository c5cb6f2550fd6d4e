//===- MemoryOps.cpp - copies, loads and stores of tiles on the CPU -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

// The whole of a tile.
static View wholeOf(Lowering &lowering, Value memref) {
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  return {memref, SmallVector<Value>(rank, lowering.index(0)),
          llvm::to_vector(llvm::seq<int64_t>(0, rank))};
}

// Zeros, then column after column of blocks to its place in a panel.
static void copyLower(Lowering &lowering, gdn_tile::CopyInOp op) {
  constexpr int64_t columns = gdn_tile::kPanelWidth;
  Value tile = lowering.get(op.getTile());
  auto type = cast<MemRefType>(op.getTile().getType());
  ImplicitLocOpBuilder &b = lowering.b;
  auto rowType = VectorType::get(columns, type.getElementType());
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(rowType));
  lowering.loop(type.getDimSize(0), 1, [&](Value row) {
    vector::StoreOp::create(b, zeros, tile, ValueRange{row, lowering.index(0)});
  });
  SmallVector<Value> indices = lowering.get(op.getIndices());
  Value firstRow = indices[indices.size() - 2];
  int64_t size = gdn_tile::getLowerSize(type);
  int64_t panels = size / gdn_tile::kPanelColumns;
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t first = gdn_tile::getLowerRow(panel, panel, panels);
    int64_t row =
        gdn_tile::getPanelRow(0, panel * gdn_tile::kPanelColumns, size) +
        gdn_tile::getFirstLowerRow(panel);
    indices[indices.size() - 2] =
        arith::AddIOp::create(b, firstRow, lowering.index(first));
    View from{lowering.get(op.getSource()), indices,
              llvm::to_vector(op.getDims())};
    View to{tile, {lowering.index(row), lowering.index(0)}, {0, 1}};
    lowering.copy(from, to, {gdn_tile::getLowerRows(panel, panels), columns},
                  lowering.get(op.getValid()), /*zeroFill=*/false);
  }
}

LogicalResult mlir::gdn::tile_to_vector::lowerCopyIn(Lowering &lowering,
                                                     gdn_tile::CopyInOp op) {
  if (op.getLower()) {
    copyLower(lowering, op);
    return success();
  }
  View from{lowering.get(op.getSource()), lowering.get(op.getIndices()),
            llvm::to_vector(op.getDims())};
  View to = wholeOf(lowering, lowering.get(op.getTile()));
  lowering.copy(from, to, cast<MemRefType>(op.getTile().getType()).getShape(),
                lowering.get(op.getValid()), /*zeroFill=*/true);
  return success();
}

// Copies behind the row of zeros, then sums in place.
LogicalResult
mlir::gdn::tile_to_vector::lowerCopySums(Lowering &lowering,
                                         gdn_tile::CopySumsOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value tile = lowering.get(op.getTile());
  auto type = cast<MemRefType>(tile.getType());
  int64_t rows = type.getDimSize(0) - 1;
  int64_t columns = op.getColumnsAttr().getInt();
  Value zeroIndex = lowering.index(0), one = lowering.index(1);
  View from{lowering.get(op.getSource()), lowering.get(op.getIndices()),
            llvm::to_vector(op.getDims())};
  lowering.copy(from, {tile, {one, zeroIndex}, {0, 1}}, {rows, columns},
                lowering.get(op.getValid()), /*zeroFill=*/true);
  auto f32 = b.getF32Type();
  Value least = lowering.splat(op.getLeast().convertToDouble(), f32);
  Value factor = lowering.splat(op.getFactor().convertToDouble(), f32);
  lowering.loop(columns, 1, [&](Value c) {
    Value zero = lowering.splat(0.0, f32);
    memref::StoreOp::create(b, zero, tile, ValueRange{zeroIndex, c});
    lowering.loop(rows, 1, [&](Value i) {
      Value next = arith::AddIOp::create(b, i, one);
      Value before = memref::LoadOp::create(b, tile, ValueRange{i, c});
      Value value = memref::LoadOp::create(b, tile, ValueRange{next, c});
      Value kept = arith::MaximumFOp::create(b, value, least);
      Value sum = arith::AddFOp::create(b, before,
                                        arith::MulFOp::create(b, kept, factor));
      memref::StoreOp::create(b, sum, tile, ValueRange{next, c});
    });
  });
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerCopyOut(Lowering &lowering,
                                                      gdn_tile::CopyOutOp op) {
  View from = wholeOf(lowering, lowering.get(op.getTile()));
  View to{lowering.get(op.getDestination()), lowering.get(op.getIndices()),
          llvm::to_vector(op.getDims())};
  lowering.copy(from, to, cast<MemRefType>(op.getTile().getType()).getShape(),
                lowering.get(op.getValid()), /*zeroFill=*/false);
  return success();
}

// The part of a fragment's buffer that an access with `numDims` entries in
// `dims` names, and its shape.
static std::pair<View, SmallVector<int64_t>>
partOf(Lowering &lowering, Value memref, VectorType type, size_t numDims) {
  View view = wholeOf(lowering, memref);
  if (numDims == 2)
    return {view, llvm::to_vector(type.getShape())};
  int64_t running = type.getDimSize(1) == 1 ? 0 : 1;
  view.dims = {running};
  return {view, {type.getDimSize(running)}};
}

LogicalResult mlir::gdn::tile_to_vector::lowerLoad(Lowering &lowering,
                                                   gdn_tile::LoadOp op) {
  VectorType type = getFragmentType(op.getResult());
  Value memref = lowering.allocateFragment(type);
  auto [to, shape] = partOf(lowering, memref, type, op.getDims().size());
  View from{lowering.get(op.getMemref()), lowering.get(op.getIndices()),
            llvm::to_vector(op.getDims())};
  lowering.copy(from, to, shape, lowering.get(op.getValid()),
                /*zeroFill=*/true);
  lowering.setBuffer(op.getResult(), memref);
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerStore(Lowering &lowering,
                                                    gdn_tile::StoreOp op) {
  auto [from, shape] =
      partOf(lowering, lowering.buffer(op.getValue()),
             getFragmentType(op.getValue()), op.getDims().size());
  View to{lowering.get(op.getMemref()), lowering.get(op.getIndices()),
          llvm::to_vector(op.getDims())};
  lowering.copy(from, to, shape, lowering.get(op.getValid()),
                /*zeroFill=*/false);
  return success();
}

LogicalResult mlir::gdn::tile_to_vector::lowerStage(Lowering &lowering,
                                                    gdn_tile::StageOp op) {
  OpBuilder &b = lowering.b;
  auto tile = cast<MemRefType>(op.getResult().getType());
  SmallVector<OpFoldResult> offsets{lowering.get(op.getStage())};
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1)};
  for (int64_t size : tile.getShape()) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(size));
  }
  SmallVector<OpFoldResult> strides(offsets.size(), b.getIndexAttr(1));
  Value buffers = lowering.get(op.getBuffers());
  auto type = memref::SubViewOp::inferRankReducedResultType(
      tile.getShape(), cast<MemRefType>(buffers.getType()), offsets, sizes,
      strides);
  Value view = memref::SubViewOp::create(lowering.b, cast<MemRefType>(type),
                                         buffers, offsets, sizes, strides);
  lowering.map(op.getResult(), view);
  return success();
}
