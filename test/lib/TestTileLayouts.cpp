//===- TestTileLayouts.cpp - prints where tiles live ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/FragmentLayout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

/// For each fragment that an op of a tile program makes: the elements that the
/// threads of the op's attribute `threads` hold, register by register, and how
/// many owners an element has. For each shared tile: the byte offsets of the
/// elements of the columns `columns`, row by row.
struct TestTileLayouts
    : PassWrapper<TestTileLayouts, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTileLayouts)

  StringRef getArgument() const final { return "test-gdn-tile-layouts"; }
  StringRef getDescription() const final {
    return "print the owners of fragments and the places of tiles";
  }

  void runOnOperation() override {
    KernelAttr kernel = getKernelAttr(getOperation());
    getOperation().walk([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        return printTile(alloc);
      if (op->getNumResults() == 1)
        if (auto type = dyn_cast<VectorType>(op->getResult(0).getType()))
          printFragment(op, kernel, type);
    });
  }

private:
  static void printFragment(Operation *op, KernelAttr kernel, VectorType type) {
    FailureOr<FragmentLayout> layout =
        FragmentLayout::get(kernel, type, [&] { return op->emitError(); });
    if (failed(layout))
      return;
    llvm::outs() << type << ": " << layout->getNumRegisters() << " registers\n";
    auto threads = op->getAttrOfType<DenseI64ArrayAttr>("threads");
    for (int64_t thread : threads.asArrayRef()) {
      llvm::outs() << "thread " << thread << ":";
      for (int64_t r = 0; r < layout->getNumRegisters(); ++r)
        llvm::outs() << " (" << layout->rowBase(thread) + layout->rowOffset(r)
                     << "," << layout->colBase(thread) + layout->colOffset(r)
                     << ")";
      llvm::outs() << "\n";
    }
    SmallVector<int64_t> owners(type.getNumElements(), 0);
    for (int64_t thread = 0; thread < 32 * kernel.getWarps(); ++thread)
      for (int64_t r = 0; r < layout->getNumRegisters(); ++r) {
        int64_t row = layout->rowBase(thread) + layout->rowOffset(r);
        int64_t col = layout->colBase(thread) + layout->colOffset(r);
        ++owners[row * type.getDimSize(1) + col];
      }
    llvm::outs() << "owners " << *llvm::min_element(owners) << " to "
                 << *llvm::max_element(owners) << ", replicated bits "
                 << layout->getReplicatedThreadBits() << "\n";
  }

  static void printTile(memref::AllocOp op) {
    MemRefType type = op.getType();
    SharedLayout layout(type);
    llvm::outs() << type.getShape().front() << " rows, " << layout.getBytes()
                 << " bytes, aligned to " << layout.getAlignment() << "\n";
    auto columns = op->getAttrOfType<DenseI64ArrayAttr>("columns");
    int64_t rows = type.getRank() == 1 ? 1 : type.getDimSize(0);
    for (int64_t row = 0; row < rows; ++row) {
      llvm::outs() << "row " << row << ":";
      for (int64_t col : columns.asArrayRef())
        llvm::outs() << " " << layout.getByteOffset(row, col);
      llvm::outs() << "\n";
    }
  }
};

} // namespace

namespace gdn_test {
void registerTileLayoutsPass() { PassRegistration<TestTileLayouts>(); }
} // namespace gdn_test
