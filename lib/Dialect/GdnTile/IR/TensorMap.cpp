//===- TensorMap.cpp - descriptors of the copy engine ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/TensorMap.h"
#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn_tile;

// Limits of a box side and of a distance in memory (CUDA driver API,
// cuTensorMapEncodeTiled).
constexpr int64_t kMaxBox = 256;
constexpr int64_t kAlignment = 16;
constexpr int64_t kMaxSpan = int64_t(1) << 31;

static SharedLayout getSharedLayout(MemRefType source, ArrayRef<int64_t> box) {
  return SharedLayout(MemRefType::get(box, source.getElementType()));
}

static int64_t getElementBytes(MemRefType source) {
  return source.getElementTypeBitWidth() / 8;
}

// Bytes between neighbours along a dimension of an identity layout.
static int64_t getStrideBytes(MemRefType source, int64_t dim) {
  int64_t stride = getElementBytes(source);
  for (int64_t d = source.getRank() - 1; d > dim; --d)
    stride *= source.getDimSize(d);
  return stride;
}

static LogicalResult verifySource(function_ref<InFlightDiagnostic()> emitError,
                                  MemRefType source) {
  Type element = source.getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return emitError() << "tensor_map: expects elements of type f16, bf16 or "
                          "f32, but has "
                       << source;
  if (source.getRank() < 2 || source.getMemorySpace() ||
      !source.getLayout().isIdentity() ||
      llvm::is_contained(source.getShape().drop_front(), ShapedType::kDynamic))
    return emitError() << "tensor_map: expects a contiguous memref of rank 2 "
                          "or more in global memory with static sizes behind "
                          "the first, but has "
                       << source;
  return success();
}

static LogicalResult verifyBox(function_ref<InFlightDiagnostic()> emitError,
                               MemRefType source, ArrayRef<int64_t> box) {
  if (box.size() != 2 || box[0] < 1 || box[1] < 1 || box[1] > kMaxSpan)
    return emitError() << "tensor_map: expects a box of rows and columns, but "
                          "has ["
                       << box << "]";
  SharedLayout layout = getSharedLayout(source, box);
  int64_t bytes = box[1] * layout.getElementBytes();
  if (box[0] % 8 != 0 || box[0] > kMaxBox || !layout.isSwizzled() ||
      bytes / layout.getPanelBytes() > kMaxBox)
    return emitError() << "tensor_map: expects a multiple of 8 rows, at most "
                       << kMaxBox
                       << ", and rows of a multiple of 32 bytes, at most "
                       << kMaxBox << " panels, but the box has " << box[0]
                       << " rows of " << bytes << " bytes";
  return success();
}

LogicalResult
TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError,
                      MemRefType source, ArrayRef<int64_t> dims,
                      ArrayRef<int64_t> box) {
  if (failed(verifySource(emitError, source)))
    return failure();
  int64_t last = source.getRank() - 1;
  if (dims.size() != 2 || dims[0] < 0 || dims[0] >= last || dims[1] != last)
    return emitError() << "tensor_map: expects dims [d, " << last
                       << "] with d < " << last
                       << ", the columns contiguous, but has [" << dims << "]";
  if (failed(verifyBox(emitError, source, box)))
    return failure();
  for (int64_t d = 0; d < last; ++d) {
    int64_t stride = getStrideBytes(source, d);
    // A size of 1 is never stepped over.
    if (source.getDimSize(d) != 1 &&
        (stride % kAlignment != 0 || stride > kMaxSpan))
      return emitError() << "tensor_map: dimension " << d << " of " << source
                         << " steps by " << stride
                         << " bytes, but a map needs a multiple of "
                         << kAlignment << " up to " << kMaxSpan;
  }
  return success();
}

SmallVector<TensorMapDim> mlir::gdn_tile::getTensorMapDims(TensorMapType type) {
  MemRefType source = type.getSource();
  SharedLayout layout = getSharedLayout(source, type.getBox());
  int64_t row = type.getDims()[0], column = type.getDims()[1];
  int64_t panel = layout.getPanelBytes() / layout.getElementBytes();
  SmallVector<TensorMapDim> dims;
  dims.push_back({{column}, layout.getElementBytes(), panel});
  dims.push_back({{row}, getStrideBytes(source, row), type.getBox()[0]});
  // Panels overlap the columns: they are where the tile's first column is, plus
  // a panel each.
  if (int64_t panels = type.getBox()[1] / panel; panels > 1)
    dims.push_back({{}, layout.getPanelBytes(), panels});
  auto addOthers = [&](int64_t begin, int64_t end) {
    int64_t size = 1;
    TensorMapDim dim{{}, 0, 1};
    for (int64_t d = begin; d < end; ++d) {
      dim.sourceDims.push_back(d);
      if (source.getDimSize(d) != 1)
        size = 2;
    }
    if (size == 1)
      return;
    dim.strideBytes = getStrideBytes(source, end - 1);
    dims.push_back(dim);
  };
  addOthers(row + 1, column);
  addOthers(0, row);
  return dims;
}

int64_t mlir::gdn_tile::getSwizzleBytes(TensorMapType type) {
  return getSharedLayout(type.getSource(), type.getBox()).getPanelBytes();
}

// Whether a tile can be valid as a whole.
static bool mayBeWhole(MemRefType tile, ValueRange valid) {
  for (auto [bound, size] : llvm::zip(valid, tile.getShape()))
    if (std::optional<int64_t> constant = getConstantIntValue(bound);
        constant && *constant < size)
      return false;
  return true;
}

TensorMapType mlir::gdn_tile::getTensorMapFor(MemRefType global,
                                              MemRefType tile,
                                              ArrayRef<int64_t> dims,
                                              ValueRange valid) {
  if (global.getElementType() != tile.getElementType() ||
      !mayBeWhole(tile, valid))
    return TensorMapType();
  MLIRContext *context = global.getContext();
  // Nobody is to be told why a memref has no map.
  ScopedDiagnosticHandler silent(context,
                                 [](Diagnostic &) { return success(); });
  return TensorMapType::getChecked(
      [&] { return mlir::emitError(UnknownLoc::get(context)); }, context,
      global, dims, tile.getShape());
}

bool mlir::gdn_tile::isBulkRow(CopyInOp copy) {
  auto global = cast<MemRefType>(copy.getSource().getType());
  auto tile = cast<MemRefType>(copy.getTile().getType());
  int64_t last = global.getRank() - 1;
  if (global.getElementType() != tile.getElementType() || tile.getRank() != 1 ||
      copy.getDims().front() != last || !mayBeWhole(tile, copy.getValid()))
    return false;
  int64_t bytes = getElementBytes(global);
  auto isAligned = [](int64_t offset) { return offset % kAlignment == 0; };
  for (int64_t d = 0; d < last; ++d)
    if (!isAligned(getStrideBytes(global, d)))
      return false;
  std::optional<int64_t> first = getConstantIntValue(copy.getIndices().back());
  return first && isAligned(*first * bytes) &&
         isAligned(tile.getDimSize(0) * bytes);
}
