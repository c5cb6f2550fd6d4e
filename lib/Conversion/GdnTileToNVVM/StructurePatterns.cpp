//===- StructurePatterns.cpp - functions, scalars, barriers ---------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addressing.h"
#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

// Of a CUtensorMap.
constexpr int64_t kTensorMapBytes = 128;
constexpr int64_t kTensorMapAlignment = 64;

// Waves of blocks up to which the next kernel may start as soon as all of them
// have, if it waits for their end. Measured on an H200: 1 to 5 % of short
// functions; of four waves nothing, and 0.5 % less where scans take all
// multiprocessors.
constexpr int64_t kEarlyWaves = 2;

namespace {

struct FuncPattern : TilePattern<func::FuncOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(func::FuncOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MLIRContext *context = op.getContext();
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(typeConverter->convertSignatureArgs(op.getArgumentTypes(),
                                                   signature)))
      return failure();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            signature.getConvertedTypes());
    auto kernelFunc =
        LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getName(), type);
    kernelFunc->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                        rewriter.getUnitAttr());
    kernelFunc->setAttr("gpu.kernel", rewriter.getUnitAttr());
    kernelFunc->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                        rewriter.getDenseI32ArrayAttr(
                            {static_cast<int32_t>(kernel.getBlockThreads())}));
    // Without a bound ptxas spills rather than give up a third block.
    kernelFunc->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                        rewriter.getI32IntegerAttr(
                            std::max<int64_t>(1, kernel.kernel.getBlocks())));
    kernelFunc->setAttr("gdn.shared_bytes",
                        rewriter.getI64IntegerAttr(kernel.getSharedBytes()));
    rewriter.inlineRegionBefore(op.getBody(), kernelFunc.getBody(),
                                kernelFunc.end());
    if (failed(rewriter.convertRegionTypes(&kernelFunc.getBody(),
                                           *typeConverter, &signature)))
      return failure();
    for (auto [i, argument] : llvm::enumerate(op.getArgumentTypes()))
      setArgumentAttrs(kernelFunc, i, argument);
    if (kernel.startsNext && !kernel.awaitsLaunch) {
      rewriter.setInsertionPointToStart(&kernelFunc.getBody().front());
      NVVM::GriddepcontrolOp::create(
          rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    }
    if (kernel.isAwaited && !kernel.startsNext && !kernel.startsEarly) {
      // Blocks that wait for the end of many others would take their places.
      rewriter.setInsertionPointToStart(&kernelFunc.getBody().front());
      Emitter e(rewriter, op.getLoc());
      Value count = NVVM::GridDimXOp::create(rewriter, e.loc, e.i32());
      int64_t blocks = std::max<int64_t>(1, kernel.kernel.getBlocks()) *
                       kernel.target.multiprocessors;
      Value areFew =
          LLVM::ICmpOp::create(rewriter, e.loc, LLVM::ICmpPredicate::ule, count,
                               e.c32(kEarlyWaves * blocks));
      scf::IfOp::create(
          rewriter, e.loc, areFew, [&](OpBuilder &b, Location loc) {
            NVVM::GriddepcontrolOp::create(
                b, loc, NVVM::GridDepActionKind::launch_dependents);
            scf::YieldOp::create(b, loc);
          });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void setArgumentAttrs(LLVM::LLVMFuncOp func, unsigned i, Type type) {
    OpBuilder b(func.getContext());
    StringRef align = LLVM::LLVMDialect::getAlignAttrName();
    if (isa<MemRefType>(type))
      func.setArgAttr(i, align, b.getI64IntegerAttr(16));
    if (!isa<TensorMapType>(type))
      return;
    // By value: the copy engine reads it where the launch has put it.
    auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), kTensorMapBytes);
    func.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(bytes));
    func.setArgAttr(i, align, b.getI64IntegerAttr(kTensorMapAlignment));
    func.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                    b.getUnitAttr());
  }
};

struct ReturnPattern : TilePattern<func::ReturnOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(func::ReturnOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // What is launched behind this kernel waits for it alone: so its last block
    // waits for the kernel in front. Others make room for further blocks.
    if (kernel.startsEarly && !kernel.awaitsLaunch) {
      Emitter e(rewriter, op.getLoc());
      Value id = NVVM::BlockIdXOp::create(rewriter, e.loc, e.i32());
      Value count = NVVM::GridDimXOp::create(rewriter, e.loc, e.i32());
      Value last = LLVM::SubOp::create(rewriter, e.loc, count, e.c32(1));
      Value isLast = LLVM::ICmpOp::create(rewriter, e.loc,
                                          LLVM::ICmpPredicate::eq, id, last);
      scf::IfOp::create(rewriter, e.loc, isLast,
                        [&](OpBuilder &b, Location loc) {
                          e.awaitLaunch();
                          scf::YieldOp::create(b, loc);
                        });
    }
    if (kernel.isAwaited && !kernel.awaitsLaunch && !kernel.startsEarly)
      NVVM::GriddepcontrolOp::create(
          rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

struct BlockIdPattern : TilePattern<BlockIdOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(BlockIdOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value id = NVVM::BlockIdXOp::create(rewriter, op.getLoc(), e.i32());
    if (op.getFromEnd()) {
      Value count = NVVM::GridDimXOp::create(rewriter, e.loc, e.i32());
      Value next = LLVM::AddOp::create(rewriter, e.loc, id, e.c32(1));
      // LLVM would make it count + ~id, and ptxas compute all that follows from
      // a complement in each thread.
      id = e.inlineAsm(e.i32(), "sub.u32 $0, $1, $2;", "=r,r,r", {count, next});
    }
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, e.i64(), id);
    return success();
  }
};

struct BarrierPattern : TilePattern<gdn_tile::BarrierOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(gdn_tile::BarrierOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    // What the threads wrote before the barrier, wgmma may read behind it.
    if (kernel.usesWarpgroupProducts() && kernel.needsProxyFence(op))
      e.proxyFence();
    kernel.emitBarrier(e, op);
    rewriter.eraseOp(op);
    return success();
  }
};

// Dependents may start at once: where they have room, there is none to lose.
struct OverlapLaunchesPattern : TilePattern<OverlapLaunchesOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(OverlapLaunchesOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::GriddepcontrolOp::create(rewriter, op.getLoc(),
                                   NVVM::GridDepActionKind::launch_dependents);
    Emitter(rewriter, op.getLoc()).awaitLaunch();
    rewriter.eraseOp(op);
    return success();
  }
};

// Older targets launch in order. The kernel behind, which does not wait for the
// one in front of this one, starts when that has ended.
struct AwaitLaunchPattern : TilePattern<AwaitLaunchOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AwaitLaunchOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (kernel.startsEarly)
      Emitter(rewriter, op.getLoc()).awaitLaunch();
    if (kernel.startsNext || kernel.isAwaited)
      NVVM::GriddepcontrolOp::create(
          rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AllocPattern : TilePattern<memref::AllocOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(memref::AllocOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value base = kernel.getSharedBase(e, kernel.getSharedOffset(op));
    if (int64_t stride = kernel.getTileStride(op)) {
      Value owner;
      if (Value item = kernel.getOwner(op))
        owner = LLVM::TruncOp::create(rewriter, e.loc, e.i32(),
                                      rewriter.getRemappedValue(item));
      else
        owner = kernel.isInWarp(op) ? kernel.getWarpInRole(e, op)
                                    : kernel.getTeam(e, op);
      base = e.advance(base, e.mulC(owner, stride));
    }
    rewriter.replaceOp(op, base);
    return success();
  }
};

struct StagePattern : TilePattern<StageOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StageOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SharedLayout layout(cast<MemRefType>(op.getResult().getType()));
    Value stage = getStage(e, op, adaptor.getStage().front());
    rewriter.replaceOp(op, e.advance(adaptor.getBuffers().front(),
                                     e.mulC(stage, layout.getStageBytes())));
    return success();
  }

private:
  // In 32 bits, as the barriers of a ring find theirs: a remainder of 64 bits
  // takes thirty instructions.
  static Value getStage(Emitter &e, StageOp op, Value converted) {
    auto narrow = [&](Value value) {
      return LLVM::TruncOp::create(e.builder, e.loc, e.i32(), value);
    };
    auto rem = op.getStage().getDefiningOp<arith::RemUIOp>();
    std::optional<int64_t> stages =
        rem ? getConstantIntValue(rem.getRhs()) : std::nullopt;
    if (!stages)
      return narrow(converted);
    Value iteration =
        static_cast<ConversionPatternRewriter &>(e.builder).getRemappedValue(
            rem.getLhs());
    return LLVM::URemOp::create(e.builder, e.loc, narrow(iteration),
                                e.c32(*stages));
  }
};

Value getElementAddress(Emitter &e, MemRefType type, Value base,
                        ValueRange indices) {
  return isShared(type) ? getSharedElement(e, base, type, indices)
                        : getGlobalAddress(e, base, type, indices);
}

struct ScalarLoadPattern : TilePattern<memref::LoadOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(memref::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value address =
        getElementAddress(e, op.getMemRefType(), adaptor.getMemref().front(),
                          flatten(adaptor.getIndices()));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(
        op, typeConverter->convertType(op.getType()), address);
    return success();
  }
};

/// All threads hold the same scalar: the first of them stores it.
struct ScalarStorePattern : TilePattern<memref::StoreOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(memref::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value address =
        getElementAddress(e, op.getMemRefType(), adaptor.getMemref().front(),
                          flatten(adaptor.getIndices()));
    Value value = adaptor.getValue().front();
    scf::IfOp::create(rewriter, op.getLoc(),
                      e.equalsC(kernel.getThreads(e, op).id, 0),
                      [&](OpBuilder &builder, Location loc) {
                        LLVM::StoreOp::create(builder, loc, value, address);
                        scf::YieldOp::create(builder, loc);
                      });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mlir::gdn::populateStructurePatterns(const KernelLowering &kernel,
                                          RewritePatternSet &patterns) {
  patterns.add<FuncPattern, ReturnPattern, BlockIdPattern, BarrierPattern,
               OverlapLaunchesPattern, AwaitLaunchPattern, AllocPattern,
               StagePattern, ScalarLoadPattern, ScalarStorePattern>(
      kernel, patterns.getContext());
}
