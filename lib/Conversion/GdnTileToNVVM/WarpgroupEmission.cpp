//===- WarpgroupEmission.cpp - the text of wgmma
//----------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupEmission.h"

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

// Shared memory descriptors count in 16 bytes (PTX ISA, "Matrix Descriptor
// Format"); 8 rows of 128 bytes repeat the swizzle.
constexpr int64_t kUnit = 16;
constexpr int64_t kRowsOfGroup = 8;
constexpr int64_t kSwizzle128 = int64_t(1) << 62;

SharedOperand::SharedOperand(Emitter &e, MemRefType tile, bool isTransposed,
                             Value base, int64_t panelRows)
    : layout(tile), isKMajor(isTransposed && !panelRows), panelRows(panelRows) {
  // K-major panels follow one another along k, MN-major ones along n: the
  // leading dimension offset of the latter.
  int64_t leading = isKMajor ? 0 : layout.getPanelStride();
  int64_t group = kRowsOfGroup * layout.getPanelBytes();
  constant = kSwizzle128;
  // Core matrices of 8 rows k: the second 8, and those of the next 8 n.
  if (panelRows) {
    leading = kRowsOfGroup * layout.getPitch();
    group = kPanelColumns * layout.getPitch();
    constant = 0;
  }
  constant |= (group / kUnit) << 32 | (leading / kUnit) << 16;
  if (!base)
    return;
  Value address = LLVM::PtrToIntOp::create(e.builder, e.loc, e.i32(), base);
  Value start = e.shrC(e.andC(address, 0x3FFFF), 4);
  start = LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), start);
  descriptor = LLVM::OrOp::create(e.builder, e.loc, start, e.c64(constant));
}

std::string SharedOperand::getDescriptor(StringRef to, StringRef address,
                                         StringRef scratch) const {
  return llvm::formatv("bfe.u32 {1}, {2}, 4, 14; cvt.u64.u32 {0}, {1}; "
                       "or.b64 {0}, {0}, {3}; ",
                       to, scratch, address, constant)
      .str();
}

int64_t SharedOperand::stepOffset(int64_t k, int64_t firstRow) const {
  if (panelRows)
    return getPanelRow(firstRow, k, panelRows) * layout.getPitch() / kUnit;
  if (!isKMajor)
    return k * 128 / kUnit;
  return (k / 64 * layout.getPanelStride() + k % 64 * 2 + firstRow * 128) /
         kUnit;
}

std::string mlir::gdn::getRegisters(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

std::pair<std::string, std::string>
mlir::gdn::getAccumulatorConstraints(int64_t count) {
  std::string outputs, ties;
  for (int64_t i = 0; i < count; ++i) {
    outputs += (i ? ",=f" : "=f");
    ties += "," + std::to_string(i);
  }
  return {outputs, ties};
}

std::string mlir::gdn::getWait(int64_t pending) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";";
}

SmallVector<Value> mlir::gdn::emitAsm(Emitter &e, StringRef text,
                                      StringRef constraints, int64_t count,
                                      ValueRange operands) {
  SmallVector<Type> types(count, e.f32());
  Type result = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), types);
  return e.extractAll(e.inlineAsm(result, text, constraints, operands));
}

std::string mlir::gdn::getProducts(VectorType a, const SharedOperand &right,
                                   int64_t n, const ProductNames &names,
                                   bool startsFromZero,
                                   const SharedOperand *left) {
  std::string type = a.getElementType().isBF16() ? "bf16" : "f16";
  std::string product = "wgmma.mma_async.sync.aligned.m64n" +
                        std::to_string(n) + "k16.f32." + type + "." + type +
                        " ";
  int64_t k = a.getDimSize(1);
  std::string text = "wgmma.fence.sync.aligned; ";
  // Panels have columns 8 to 15 of 16 in front.
  auto leftOf = [&](int64_t step) {
    std::string registers;
    for (int64_t i = 0; i < 4; ++i)
      registers += (i ? ", " : "{") +
                   names.left(step / 4 + (right.panelRows ? i ^ 2 : i));
    return registers + "}";
  };
  for (int64_t step = 0; step < k; step += 16) {
    bool starts = step == 0 && startsFromZero;
    int64_t offset = right.stepOffset(step, names.firstRow);
    text +=
        "add.s64 d, " + names.descriptor + ", " + std::to_string(offset) + "; ";
    if (left)
      text += "add.s64 l, " + names.leftDescriptor + ", " +
              std::to_string(left->stepOffset(step)) + "; ";
    text += product + names.acc + ", " + (left ? "l" : leftOf(step)) + ", d, " +
            (starts ? "none" : "all") + ", 1, 1, " + (left ? "0, " : "") +
            (right.isKMajor ? "0" : "1") + "; ";
  }
  return text + "wgmma.commit_group.sync.aligned; ";
}
