//===- FragmentLayout.cpp - where tiles live ------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn_tile;

constexpr int64_t kGroupWarps = 4, kGroupRows = 16 * kGroupWarps;

//===----------------------------------------------------------------------===//
// FragmentLayout
//===----------------------------------------------------------------------===//

static int64_t evaluate(ArrayRef<ThreadTerm> terms, int64_t thread) {
  int64_t sum = 0;
  for (const ThreadTerm &term : terms)
    sum += ((thread >> term.shift) & term.mask) * term.scale;
  return sum;
}

/// The bits of the thread number that tell the warps of a block apart.
static int64_t getWarpMask(KernelAttr kernel) {
  return static_cast<int64_t>(llvm::PowerOf2Ceil(kernel.getWarps())) - 1;
}

FailureOr<FragmentLayout>
FragmentLayout::get(KernelAttr kernel, VectorType type,
                    function_ref<InFlightDiagnostic()> emitError) {
  assert(type.getRank() == 2 && "fragments have rank 2");
  int64_t numRows = type.getDimSize(0), numCols = type.getDimSize(1);
  int64_t warps = kernel.getWarps(), warpMask = getWarpMask(kernel);
  FragmentLayout layout;
  layout.threads = 32 * static_cast<int64_t>(llvm::PowerOf2Ceil(warps));

  if (kernel.getLayout() == FragmentLayoutKind::Accumulator) {
    layout.accumulatorOrder = true;
    if (numRows == 1) {
      layout.rows = {0};
    } else if (numRows == 16 * warps) {
      layout.rows = {0, 8};
      layout.rowTerms = {{5, warpMask, 16}, {2, 7, 1}};
    } else if (numRows == kGroupRows && warps == 2 * kGroupWarps) {
      // Of one warpgroup, in a role of its own.
      layout.rows = {0, 8};
      layout.rowTerms = {{5, kGroupWarps - 1, 16}, {2, 7, 1}};
      layout.threads = 32 * kGroupWarps;
    } else if (numRows == 16) {
      layout.rows = {0, 8};
      layout.rowTerms = {{2, 7, 1}};
      layout.threads = 32;
    } else {
      return emitError() << "fragment " << type << " has " << numRows
                         << " rows, but " << warps << " warps hold "
                         << 16 * warps << " in the accumulator layout";
    }
    if (numCols == 1) {
      layout.cols = {0};
    } else if (numCols % 8 == 0) {
      for (int64_t tile = 0; tile < numCols; tile += 8)
        layout.cols.append({tile, tile + 1});
      layout.colTerms = {{0, 3, 2}};
      layout.pairs = true;
    } else {
      return emitError() << "fragment " << type << " has " << numCols
                         << " columns, no multiple of 8, in the accumulator "
                            "layout";
    }
    return layout;
  }

  int64_t lanes = kernel.getLanes(), chunk = kernel.getChunk();
  int64_t rowsPerWarp = 32 / lanes, laneBits = llvm::Log2_64(lanes);
  if (numRows == 1) {
    layout.rows = {0};
  } else if (numRows % (warps * rowsPerWarp) == 0) {
    for (int64_t row = 0; row < numRows; row += warps * rowsPerWarp)
      layout.rows.push_back(row);
    layout.rowTerms = {{5, warpMask, rowsPerWarp},
                       {laneBits, rowsPerWarp - 1, 1}};
  } else {
    return emitError() << "fragment " << type << " has " << numRows
                       << " rows, no multiple of the " << warps * rowsPerWarp
                       << " that " << warps << " warps with " << lanes
                       << " lanes a row hold";
  }
  if (numCols == 1) {
    layout.cols = {0};
    return layout;
  }
  // With four lanes the accumulator of mma.sync.
  if (numCols == 2 * lanes)
    chunk = 2;
  int64_t colLanes = std::min(lanes, numCols / chunk);
  if (numCols % chunk != 0 || !llvm::isPowerOf2_64(colLanes) ||
      numCols % (colLanes * chunk) != 0)
    return emitError() << "fragment " << type << " has " << numCols
                       << " columns, neither a multiple of " << lanes * chunk
                       << " (" << lanes << " lanes of " << chunk
                       << " elements) nor that over a power of two";
  for (int64_t col = 0; col < numCols; col += colLanes * chunk)
    for (int64_t element = 0; element < chunk; ++element)
      layout.cols.push_back(col + element);
  layout.colTerms = {{0, colLanes - 1, chunk}};
  layout.pairs = chunk % 2 == 0;
  return layout;
}

// In the accumulator layout a register number is (8-column tile, row half,
// column parity); in the rows layout (row, column).
int64_t FragmentLayout::rowRegister(int64_t r) const {
  if (accumulatorOrder && cols.size() > 1)
    return rows.size() == 1 ? 0 : (r / 2) % 2;
  return r / cols.size();
}

int64_t FragmentLayout::colRegister(int64_t r) const {
  if (accumulatorOrder && cols.size() > 1)
    return rows.size() == 1 ? r : 2 * (r / 4) + r % 2;
  return r % cols.size();
}

int64_t FragmentLayout::getRegister(int64_t rowRegister,
                                    int64_t colRegister) const {
  if (accumulatorOrder && cols.size() > 1 && rows.size() > 1)
    return 4 * (colRegister / 2) + 2 * rowRegister + colRegister % 2;
  return rowRegister * cols.size() + colRegister;
}

int64_t FragmentLayout::rowBase(int64_t thread) const {
  return evaluate(rowTerms, thread);
}

int64_t FragmentLayout::colBase(int64_t thread) const {
  return evaluate(colTerms, thread);
}

int64_t FragmentLayout::getReplicatedThreadBits() const {
  int64_t used = 0;
  for (ArrayRef<ThreadTerm> terms : {ArrayRef(rowTerms), ArrayRef(colTerms)})
    for (const ThreadTerm &term : terms)
      used |= term.mask << term.shift;
  return (threads - 1) & ~used;
}

int64_t mlir::gdn_tile::countRegisters(KernelAttr kernel, Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getFragment();
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getRank() != 2)
    return 1;
  auto layout = FragmentLayout::get(kernel, vector, [&] {
    InFlightDiagnostic none;
    return none;
  });
  // A fragment without layout, which another pass will refuse.
  if (failed(layout))
    return vector.getNumElements();
  int64_t bits = layout->getNumRegisters() * vector.getElementTypeBitWidth();
  return llvm::divideCeil(bits, 32);
}

//===----------------------------------------------------------------------===//
// SharedLayout
//===----------------------------------------------------------------------===//

SharedLayout::SharedLayout(MemRefType type) {
  ArrayRef<int64_t> shape = type.getShape();
  elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  if (shape.size() == 1) {
    stageBytes = llvm::alignTo(shape[0] * elementBytes, 16);
    return;
  }
  if (shape.size() == 3) {
    numStages = shape[0];
    shape = shape.drop_front();
  }
  numRows = shape[0];
  int64_t rowBytes = shape[1] * elementBytes;
  for (int64_t bytes : {128, 64, 32})
    if (rowBytes % bytes == 0 && panelBytes == 0) {
      panelBytes = pitch = bytes;
      swizzleShift = llvm::Log2_64(128 / bytes);
    }
  if (!isSwizzled())
    pitch = llvm::alignTo(rowBytes, 16);
  stageBytes = isSwizzled() ? numRows * rowBytes : numRows * pitch;
}

int64_t SharedLayout::getByteOffset(int64_t row, int64_t col) const {
  int64_t byte = col * elementBytes;
  if (!isSwizzled())
    return row * pitch + byte;
  int64_t panel = byte / panelBytes, inPanel = byte % panelBytes;
  int64_t swizzle = (row >> swizzleShift) & (panelBytes / 16 - 1);
  return panel * getPanelStride() + row * pitch + (inPanel ^ (swizzle << 4));
}
