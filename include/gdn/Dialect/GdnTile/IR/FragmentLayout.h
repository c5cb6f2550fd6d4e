//===- FragmentLayout.h - where tiles live ----------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two functions of types: which element of a fragment a register of a thread
// holds, and at which byte of shared memory an element of a tile lies.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_FRAGMENTLAYOUT_H
#define GDN_DIALECT_GDNTILE_IR_FRAGMENTLAYOUT_H

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

namespace mlir::gdn_tile {

/// The part ((thread >> shift) & mask) * scale of a coordinate.
struct ThreadTerm {
  int64_t shift;
  int64_t mask;
  int64_t scale;
};

/// Distribution of a fragment over the registers of a block. Register r of a
/// thread holds row rowBase(thread) + rowOffset(r) and column
/// colBase(thread) + colOffset(r).
///
/// `vector<Mx1>` and `vector<1xN>` hold only the distinct rows or columns that
/// the registers of an MxN fragment of the thread touch; register r of the MxN
/// fragment goes with register rowRegister(r) of the first and colRegister(r)
/// of the second.
///
/// In the accumulator layout 16 rows are the fragment of one warp, whichever it
/// is: in the region of a gdn_tile.each_warp each warp has its own.
class FragmentLayout {
public:
  /// The layout of `type` in a kernel, or failure with an error that names the
  /// sizes that do not fit.
  static FailureOr<FragmentLayout>
  get(KernelAttr kernel, VectorType type,
      function_ref<InFlightDiagnostic()> emitError);

  int64_t getNumRegisters() const { return rows.size() * cols.size(); }
  ArrayRef<int64_t> getRowOffsets() const { return rows; }
  ArrayRef<int64_t> getColOffsets() const { return cols; }
  ArrayRef<ThreadTerm> getRowTerms() const { return rowTerms; }
  ArrayRef<ThreadTerm> getColTerms() const { return colTerms; }

  int64_t rowRegister(int64_t r) const;
  int64_t colRegister(int64_t r) const;
  /// The register of an MxN fragment at a distinct row and column.
  int64_t getRegister(int64_t rowRegister, int64_t colRegister) const;
  int64_t rowOffset(int64_t r) const { return rows[rowRegister(r)]; }
  int64_t colOffset(int64_t r) const { return cols[colRegister(r)]; }
  int64_t rowBase(int64_t thread) const;
  int64_t colBase(int64_t thread) const;

  /// Bits of the thread number on which no coordinate depends: threads that
  /// differ only in these hold the same elements.
  int64_t getReplicatedThreadBits() const;

  /// Registers 2p and 2p + 1 are neighbours in one row, for every p.
  bool hasColumnPairs() const { return pairs; }

private:
  bool accumulatorOrder = false;
  bool pairs = false;
  int64_t threads = 0;
  SmallVector<int64_t> rows, cols;
  SmallVector<ThreadTerm, 2> rowTerms, colTerms;
};

/// Registers of 32 bits that a thread needs for a value of a kernel; 1 for what
/// is no fragment.
int64_t countRegisters(KernelAttr kernel, Type type);

/// Byte addresses of a tile in shared memory. Rank 1 is plain. Rank 2: panels
/// of 128, 64 or 32 bytes (the largest that divides a row), one after the
/// other; in a panel row the 16-byte chunk c lies at c xor ((row >> shift) &
/// (chunks - 1)), with shift 0, 1, 2 for 8, 4, 2 chunks. Rows that are no
/// multiple of 32 bytes are stored one after the other, each padded to 16
/// bytes. A tile of rank 3 is a sequence of stages of rank 2.
class SharedLayout {
public:
  explicit SharedLayout(MemRefType type);

  int64_t getByteOffset(int64_t row, int64_t col) const;

  bool isSwizzled() const { return panelBytes != 0; }
  int64_t getPanelBytes() const { return panelBytes; }
  /// Bytes from one row to the next (in a panel, if swizzled).
  int64_t getPitch() const { return pitch; }
  /// Bytes from one panel to the next.
  int64_t getPanelStride() const { return numRows * panelBytes; }
  int64_t getSwizzleShift() const { return swizzleShift; }
  int64_t getElementBytes() const { return elementBytes; }
  /// Bytes of one stage; the whole tile unless it has rank 3.
  int64_t getStageBytes() const { return stageBytes; }
  int64_t getBytes() const { return stageBytes * numStages; }
  /// 8 rows of a swizzled tile repeat the pattern: 1024, 512 or 256; else 16.
  int64_t getAlignment() const { return isSwizzled() ? 8 * panelBytes : 16; }

private:
  int64_t elementBytes, numStages = 1, numRows = 1, pitch = 0;
  int64_t panelBytes = 0, swizzleShift = 0, stageBytes = 0;
};

} // namespace mlir::gdn_tile

#endif // GDN_DIALECT_GDNTILE_IR_FRAGMENTLAYOUT_H
