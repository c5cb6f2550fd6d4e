//===- SequencePatterns.cpp - looking for packed sequences ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// The lanes look at sequences that lie evenly in a range; those that are not
/// behind the slot are the first ones, and the range becomes what lies between
/// the last of them and the next.
struct FindSequencePattern : TilePattern<FindSequenceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(FindSequenceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto truncate = [&](ValueRange index) -> Value {
      return LLVM::TruncOp::create(rewriter, e.loc, e.i32(), index.front());
    };
    Value slot = truncate(adaptor.getSlot());
    Value offsets = adaptor.getOffsets().front();
    int64_t shift = llvm::Log2_64(op.getChunk());
    // Of 64 bits the lower half, which comes first.
    int64_t width =
        cast<MemRefType>(op.getOffsets().getType()).getElementTypeBitWidth();
    auto loop = scf::WhileOp::create(
        rewriter, e.loc, TypeRange{e.i32(), e.i32()},
        ValueRange{e.c32(0), truncate(adaptor.getCount())},
        [&](OpBuilder &b, Location loc, ValueRange range) {
          Value isOpen = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ugt,
                                              range[1], e.c32(1));
          scf::ConditionOp::create(b, loc, isOpen, range);
        },
        [&](OpBuilder &b, Location loc, ValueRange range) {
          Emitter inner(b, loc);
          scf::YieldOp::create(b, loc,
                               narrow(inner, slot, offsets, width / 8, shift,
                                      range[0], range[1]));
        });
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, e.i64(), loop.getResult(0));
    return success();
  }

private:
  static SmallVector<Value> narrow(Emitter &e, Value slot, Value offsets,
                                   int64_t distance, int64_t shift, Value first,
                                   Value count) {
    constexpr int64_t lanes = 32;
    Value stride = e.shrC(e.addC(count, lanes - 1), llvm::Log2_64(lanes));
    auto multiply = [&](Value a, Value b) -> Value {
      return LLVM::MulOp::create(e.builder, e.loc, a, b);
    };
    Value own = multiply(e.laneId(), stride), isIn = e.lessThan(own, count);
    Value n = e.add(first, own);
    Value bytes = LLVM::ZExtOp::create(e.builder, e.loc, e.i64(), n);
    Value start =
        e.loadWords(e.advance(offsets, e.mulC(bytes, distance)), 1, isIn)
            .front();
    Value place = e.add(e.shrC(start, shift), n);
    Value isNotBehind = LLVM::ICmpOp::create(
        e.builder, e.loc, LLVM::ICmpPredicate::ule, place, slot);
    Value found = e.intrinsic("llvm.nvvm.vote.ballot.sync", e.i32(),
                              {e.c32(-1), e.both(isIn, isNotBehind)});
    // The first one counts in any case.
    found = LLVM::OrOp::create(e.builder, e.loc, found, e.c32(1));
    found = LLVM::CtPopOp::create(e.builder, e.loc, found);
    Value skipped = multiply(e.addC(found, -1), stride);
    Value left = e.sub(count, skipped);
    left = LLVM::UMinOp::create(e.builder, e.loc, stride, left);
    return {e.add(first, skipped), left};
  }
};

} // namespace

void mlir::gdn::populateSequencePatterns(const KernelLowering &kernel,
                                         RewritePatternSet &patterns) {
  patterns.add<FindSequencePattern>(kernel, patterns.getContext());
}
