//===- Addressing.cpp - addresses of elements -----------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

//===----------------------------------------------------------------------===//
// ThreadPart
//===----------------------------------------------------------------------===//

ThreadPart ThreadPart::get(Emitter &e, ArrayRef<ThreadTerm> terms,
                           int64_t numThreads) {
  ThreadPart part;
  part.value = e.threadCoordinate(terms, numThreads);
  for (const ThreadTerm &term : terms) {
    int64_t bits = term.mask * term.scale;
    bool exact = llvm::isPowerOf2_64(term.scale) && (bits & part.bits) == 0;
    part.bits = exact && part.bits != -1 ? part.bits | bits : -1;
  }
  return part;
}

ThreadPart ThreadPart::add(Emitter &e, const ThreadPart &other) const {
  if (!value || !other.value)
    return value ? *this : other;
  bool disjoint = bits != -1 && other.bits != -1 && (bits & other.bits) == 0;
  return {e.add(value, other.value), disjoint ? bits | other.bits : -1};
}

ThreadPart ThreadPart::scale(Emitter &e, int64_t factor) const {
  if (!value)
    return *this;
  bool exact = bits != -1 && llvm::isPowerOf2_64(factor);
  return {e.mulC(value, factor), exact ? bits * factor : -1};
}

//===----------------------------------------------------------------------===//
// SharedAddress
//===----------------------------------------------------------------------===//

SharedAddress::SharedAddress(Emitter &emitter, SharedLayout layout, Value base,
                             ThreadPart row, ThreadPart col)
    : e(emitter), layout(layout), base(base), row(row),
      colBytes(col.scale(emitter, layout.getElementBytes())),
      offset(getThreadOffset(row, colBytes)) {}

Value SharedAddress::getThreadOffset(const ThreadPart &row,
                                     const ThreadPart &colBytes) {
  Value rowPart = row.value && layout.getPitch()
                      ? e.mulC(row.value, layout.getPitch())
                      : Value();
  if (!layout.isSwizzled())
    return e.add(rowPart, colBytes.value);
  int64_t panelBytes = layout.getPanelBytes();
  Value inPanel = colBytes.value, panel;
  bool manyPanels = layout.getStageBytes() > layout.getPanelStride();
  bool mayCross = (colBytes.bits & ~(panelBytes - 1)) != 0;
  if (inPanel && manyPanels && mayCross) {
    panel = e.mulC(e.shrC(inPanel, llvm::Log2_64(panelBytes)),
                   layout.getPanelStride());
    inPanel = e.andC(inPanel, panelBytes - 1);
  }
  if (row.value && (row.bits == -1 || (row.bits & 7) != 0)) {
    Value swizzle = e.shlC(e.andC(e.shrC(row.value, layout.getSwizzleShift()),
                                  panelBytes / 16 - 1),
                           4);
    inPanel = inPanel ? LLVM::XOrOp::create(e.builder, e.loc, inPanel, swizzle)
                            .getResult()
                      : swizzle;
  }
  return e.add(e.add(rowPart, panel), inPanel);
}

Value SharedAddress::at(int64_t rowConst, int64_t colConst) {
  int64_t colConstBytes = colConst * layout.getElementBytes();
  if (!layout.isSwizzled())
    return e.advance(e.advance(base, offset),
                     rowConst * layout.getPitch() + colConstBytes);
  int64_t rowBits = row.value ? row.bits : 0;
  int64_t colBits = colBytes.value ? colBytes.bits : 0;
  bool splits = (rowBits & rowConst & 7) == 0 &&
                (colConstBytes == 0 || (colBits & colConstBytes) == 0);
  if (!splits) {
    Value fullRow = row.value ? e.addC(row.value, rowConst) : e.c32(rowConst);
    Value fullCol = colBytes.value ? e.addC(colBytes.value, colConstBytes)
                                   : e.c32(colConstBytes);
    return e.advance(base, getThreadOffset({fullRow, -1}, {fullCol, -1}));
  }
  int64_t panelBytes = layout.getPanelBytes();
  int64_t swizzle =
      (rowConst >> layout.getSwizzleShift()) & (panelBytes / 16 - 1);
  int64_t toggle = (colConstBytes % panelBytes) ^ (swizzle << 4);
  int64_t constant = rowConst * layout.getPitch() +
                     colConstBytes / panelBytes * layout.getPanelStride();
  if (!offset)
    return e.advance(base, toggle + constant);
  auto [it, isNew] = swizzled.try_emplace(toggle);
  if (isNew)
    it->second = e.advance(base, e.xorC(offset, toggle));
  return e.advance(it->second, constant);
}

//===----------------------------------------------------------------------===//
// Single elements
//===----------------------------------------------------------------------===//

SmallVector<Value> mlir::gdn::flatten(ArrayRef<ValueRange> operands) {
  SmallVector<Value> values;
  for (ValueRange range : operands)
    llvm::append_range(values, range);
  return values;
}

Value mlir::gdn::getGlobalAddress(Emitter &e, Value base, MemRefType type,
                                  ValueRange indices) {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value offset;
  for (auto [index, stride] : llvm::zip_equal(indices, getStaticStrides(type)))
    offset = e.add(offset, e.mulC(index, stride * bytes));
  return e.advance(base, offset);
}

Value mlir::gdn::getSharedElement(Emitter &e, Value base, MemRefType type,
                                  ValueRange indices) {
  SmallVector<ThreadPart> parts;
  for (Value index : indices)
    parts.push_back(
        {LLVM::TruncOp::create(e.builder, e.loc, e.i32(), index), -1});
  if (parts.size() == 1)
    parts.insert(parts.begin(), ThreadPart());
  return SharedAddress(e, SharedLayout(type), base, parts[0], parts[1])
      .at(0, 0);
}

//===----------------------------------------------------------------------===//
// FragmentAddress
//===----------------------------------------------------------------------===//

FragmentAddress::FragmentAddress(Emitter &emitter, const KernelLowering &kernel,
                                 MemRefType memref, Value base,
                                 ValueRange indices, const AccessInfo &access,
                                 ArrayRef<int64_t> dims, VectorType fragment,
                                 const FragmentLayout &layout)
    : e(emitter), memref(memref) {
  if (dims.size() == 2) {
    fragmentDims[0] = dims[0];
    fragmentDims[1] = dims[1];
  } else {
    fragmentDims[fragment.getDimSize(1) != 1] = dims[0];
  }
  if (isShared(memref))
    initShared(kernel, base, indices, access, layout);
  else
    initGlobal(kernel, base, indices, layout);
}

void FragmentAddress::initGlobal(const KernelLowering &kernel, Value base,
                                 ValueRange indices,
                                 const FragmentLayout &layout) {
  int64_t bytes = memref.getElementTypeBitWidth() / 8;
  SmallVector<int64_t> strides = getStaticStrides(memref);
  Value threadOffset;
  if (int64_t dim = fragmentDims[0]; dim >= 0) {
    rowBytes = strides[dim] * bytes;
    if (Value row = kernel.getRowBase(e, layout))
      threadOffset = e.mulC(row, rowBytes);
  }
  if (int64_t dim = fragmentDims[1]; dim >= 0) {
    colBytes = strides[dim] * bytes;
    if (Value col = kernel.getColBase(e, layout))
      threadOffset = e.add(threadOffset, e.mulC(col, colBytes));
  }
  pointer = getGlobalAddress(e, base, memref, indices);
  if (threadOffset)
    pointer = e.advance(
        pointer, LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), threadOffset));
}

void FragmentAddress::initShared(const KernelLowering &kernel, Value base,
                                 ValueRange indices, const AccessInfo &access,
                                 const FragmentLayout &layout) {
  ThreadPart parts[2];
  int64_t rank = memref.getRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t slot = dim + (2 - rank); // rank 1 has columns only
    ThreadPart part;
    if (dim == fragmentDims[0])
      part = ThreadPart::get(e, layout.getRowTerms(), kernel.getEndThread());
    if (dim == fragmentDims[1])
      part = ThreadPart::get(e, layout.getColTerms(), kernel.getEndThread());
    if (access.indices[dim])
      tileConst[slot] = *access.indices[dim];
    else
      part = part.add(
          e,
          {LLVM::TruncOp::create(e.builder, e.loc, e.i32(), indices[dim]), -1});
    // A constant that meets the bits of the swizzle would be added anew at
    // every access.
    if (slot == 0 && part.value && (tileConst[0] & 7)) {
      part = part.add(e, {e.c32(tileConst[0]), -1});
      tileConst[0] = 0;
    }
    parts[slot] = part;
  }
  shared.emplace(e, SharedLayout(memref), base, parts[0], parts[1]);
}

Value FragmentAddress::at(int64_t row, int64_t col) {
  if (!shared)
    return e.advance(pointer, row * rowBytes + col * colBytes);
  int64_t position[2] = {tileConst[0], tileConst[1]};
  int64_t shift = 2 - memref.getRank();
  if (fragmentDims[0] >= 0)
    position[fragmentDims[0] + shift] += row;
  if (fragmentDims[1] >= 0)
    position[fragmentDims[1] + shift] += col;
  return shared->at(position[0], position[1]);
}
