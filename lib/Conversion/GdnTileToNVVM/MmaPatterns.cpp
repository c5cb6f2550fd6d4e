//===- MmaPatterns.cpp - matrix products ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"
#include "MatrixMoves.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// One mma.sync m16n8kK; the accumulator's four registers are replaced.
void emitMma(Emitter &e, int64_t k, NVVM::MMATypes type, ValueRange a,
             ValueRange b, MutableArrayRef<Value> acc) {
  SmallVector<Type> types(4, e.f32());
  Value product = NVVM::MmaOp::create(
      e.builder, e.loc,
      LLVM::LLVMStructType::getLiteral(e.builder.getContext(), types), a, b,
      ValueRange(acc), ArrayRef<int64_t>{16, 8, k}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  llvm::copy(e.extractAll(product), acc.begin());
}

/// The B operand in shared memory, K x N or (transposed) N x K.
struct TileOperand {
  SharedLayout layout;
  Value base;
  bool transposed;
  int64_t k, n;
};

/// 16-bit: the pairs of accumulator columns are the A operand as they stand;
/// one ldmatrix brings B for two column tiles of one k step of 16.
void emitHalfMma(Emitter &e, NVVM::MMATypes type, ValueRange a,
                 const TileOperand &b, MutableArrayRef<Value> acc,
                 int64_t numThreads) {
  // Lane bit 3 chooses the half of the 16 k's, bit 4 that of the 16 columns.
  SmallVector<ThreadTerm> ks{{3, 1, 8}}, ns{{4, 1, 8}};
  (b.transposed ? ns : ks).push_back({0, 7, 1});
  ThreadPart kPart = ThreadPart::get(e, ks, numThreads);
  ThreadPart nPart = ThreadPart::get(e, ns, numThreads);
  SharedAddress address(e, b.layout, b.base, b.transposed ? nPart : kPart,
                        b.transposed ? kPart : nPart);
  Type operandType = type == NVVM::MMATypes::f16
                         ? VectorType::get(2, e.builder.getF16Type())
                         : e.i32();
  for (int64_t k = 0; k < b.k; k += 16) {
    SmallVector<Value> left;
    for (Value pair : a.slice(k / 4, 4))
      left.push_back(e.bitcast(pair, operandType));
    for (int64_t n = 0; n < b.n; n += 16) {
      Value pointer = b.transposed ? address.at(n, k) : address.at(k, n);
      SmallVector<Value> right;
      for (Value word : loadMatrices(e, pointer, !b.transposed))
        right.push_back(e.bitcast(word, operandType));
      for (int64_t half : {0, 1})
        emitMma(e, 16, type, left, ArrayRef(right).slice(2 * half, 2),
                acc.slice((n + 8 * half) / 2, 4));
    }
  }
}

/// The parts of a float32 value as TF32 operands.
struct Parts {
  SmallVector<Value> high, low;
};

/// One pass: rounded to TF32. Three: high part cut off at TF32's mantissa and
/// the exact rest, of which the hardware again reads TF32's leading bits.
Parts splitOperand(Emitter &e, ValueRange values, int64_t passes) {
  Parts parts;
  for (Value value : values) {
    if (passes == 1) {
      parts.high.push_back(NVVM::ConvertFloatToTF32Op::create(
          e.builder, e.loc, e.i32(), value, NVVM::FPRoundingMode::RNA,
          NVVM::SaturationMode::NONE, false));
      continue;
    }
    Value high = e.andC(e.bitcast(value, e.i32()), ~int64_t(0x1fff));
    Value rest = e.fsub(value, e.bitcast(high, e.f32()));
    parts.high.push_back(high);
    parts.low.push_back(e.bitcast(rest, e.i32()));
  }
  return parts;
}

/// float32 as TF32 with permuted k: columns 2q and 2q + 1 of an accumulator
/// tile serve as the k slots q and q + 4, so B is read at rows 2q and 2q + 1.
void emitFloatMma(Emitter &e, int64_t passes, ValueRange a,
                  const TileOperand &b, MutableArrayRef<Value> acc,
                  int64_t numThreads) {
  ThreadPart kPart = ThreadPart::get(e, {{0, 3, 2}}, numThreads);
  ThreadPart nPart = ThreadPart::get(e, {{2, 7, 1}}, numThreads);
  SharedAddress address(e, b.layout, b.base, b.transposed ? nPart : kPart,
                        b.transposed ? kPart : nPart);
  for (int64_t k = 0; k < b.k; k += 8) {
    ValueRange tile = a.slice(k / 2, 4);
    Parts left = splitOperand(e, {tile[0], tile[2], tile[1], tile[3]}, passes);
    for (int64_t n = 0; n < b.n; n += 8) {
      SmallVector<Value> loaded;
      if (b.transposed) {
        for (Value word : e.loadWords(address.at(n, k), 2, Value()))
          loaded.push_back(e.bitcast(word, e.f32()));
      } else {
        loaded = {e.loadF32(address.at(k, n)), e.loadF32(address.at(k + 1, n))};
      }
      Parts right = splitOperand(e, loaded, passes);
      MutableArrayRef<Value> to = acc.slice(n / 2, 4);
      if (passes == 3) {
        emitMma(e, 8, NVVM::MMATypes::tf32, left.low, right.high, to);
        emitMma(e, 8, NVVM::MMATypes::tf32, left.high, right.low, to);
      }
      emitMma(e, 8, NVVM::MMATypes::tf32, left.high, right.high, to);
    }
  }
}

struct MmaPattern : TilePattern<MmaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto fragment = cast<VectorType>(op.getA().getType());
    auto tile = cast<MemRefType>(op.getB().getType());
    Type element = fragment.getElementType();
    bool transposed = op.getTransposeB();
    TileOperand b{SharedLayout(tile), adaptor.getB().front(), transposed,
                  tile.getDimSize(transposed ? 1 : 0),
                  tile.getDimSize(transposed ? 0 : 1)};
    SmallVector<Value> acc;
    if (op.getAcc())
      acc = SmallVector<Value>(adaptor.getAcc());
    else
      acc.assign(kernel.getLayout(op.getFragmentType()).getNumRegisters(),
                 e.cF32(0.0));
    if (element.isF32())
      emitFloatMma(e, op.getPasses(), adaptor.getA(), b, acc,
                   kernel.getNumThreads());
    else
      emitHalfMma(e,
                  element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16,
                  adaptor.getA(), b, acc, kernel.getNumThreads());
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }
};

} // namespace

void mlir::gdn::populateMmaPatterns(const KernelLowering &kernel,
                                    RewritePatternSet &patterns) {
  patterns.add<MmaPattern>(kernel, patterns.getContext());
}
