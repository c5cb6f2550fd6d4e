//===- GdnTileToNVVM.cpp - tile programs to NVVM --------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "gdn/Conversion/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTILETONVVMPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

constexpr StringLiteral kModuleName = "kernels";

/// What the host side of a launch needs to know.
struct KernelInfo {
  int64_t numThreads;
  int64_t sharedBytes;
  bool overlaps;
};

/// A kernel that is converted where no other thread is: in a module of its own.
struct Part {
  OwningOpRef<gpu::GPUModuleOp> module;
  func::FuncOp func;
  KernelInfo info;
};

bool awaitsLaunch(func::FuncOp kernel) {
  // None for a kernel of a nested module, which convertLaunch refuses.
  return kernel &&
         kernel.walk([](AwaitLaunchOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

/// True for what reads more than integers, which no tile program writes.
bool readsData(Operation &op) {
  auto result = op.walk([](Operation *nested) {
    if (auto load = dyn_cast<memref::LoadOp>(nested))
      return isa<FloatType>(load.getType()) ? WalkResult::interrupt()
                                            : WalkResult::advance();
    return isa<LoadOp, CopyInOp, CopySumsOp>(nested) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// True if a kernel waits for the launch in front before it reads data.
bool awaitsFirst(func::FuncOp kernel) {
  if (!awaitsLaunch(kernel))
    return false;
  auto result = kernel.walk([&](AwaitLaunchOp await) {
    for (Operation *op = await; op != kernel; op = op->getParentOp())
      for (Operation &before : *op->getBlock()) {
        if (&before == op)
          break;
        // Roles run side by side.
        if (!isa<RoleOp>(before) && readsData(before))
          return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

struct ConvertGdnTileToNVVMPass
    : gdn::impl::ConvertGdnTileToNVVMPassBase<ConvertGdnTileToNVVMPass> {
  using ConvertGdnTileToNVVMPassBase::ConvertGdnTileToNVVMPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<GpuTarget> gpu = lookUpGpuTarget(target);
    if (!gpu) {
      module.emitError("unknown target '")
          << target << "': expected one of " << listGpuTargets();
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> kernels;
    for (auto func : module.getOps<func::FuncOp>())
      if (gdn_tile::getKernelAttr(func))
        kernels.push_back(func);
    // A function with nothing to compute needs a module too: an empty one.
    if (module.getOps<func::FuncOp>().empty())
      return;
    llvm::StringMap<KernelInfo> infos;
    gpu::GPUModuleOp gpuModule = createGpuModule(module, *gpu);
    if (gpu->hasDependentLaunches() && failed(findOverlaps()))
      return signalPassFailure();
    if (failed(convertKernels(kernels, *gpu, gpuModule, infos)))
      return signalPassFailure();
    WalkResult walk = module.walk([&](LaunchOp launch) -> WalkResult {
      return convertLaunch(launch, infos);
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

private:
  gpu::GPUModuleOp createGpuModule(ModuleOp module, const GpuTarget &gpu);
  LogicalResult convertKernels(ArrayRef<func::FuncOp> kernels,
                               const GpuTarget &gpu, gpu::GPUModuleOp gpuModule,
                               llvm::StringMap<KernelInfo> &infos);
  LogicalResult convertKernel(Part &part, const GpuTarget &gpu);
  LogicalResult convertLaunch(LaunchOp launch,
                              const llvm::StringMap<KernelInfo> &infos);
  LogicalResult findOverlaps();

  /// Kernels beside which the next one is launched, those of them for which it
  /// waits soon, and those launched so; of these those that read nothing before
  /// they have waited.
  llvm::StringSet<> startsNext, isAwaited, startsEarly, waitsFirst;
};

LogicalResult ConvertGdnTileToNVVMPass::findOverlaps() {
  startsNext.clear();
  isAwaited.clear();
  startsEarly.clear();
  waitsFirst.clear();
  auto lookUp = [&](LaunchOp launch) {
    return getOperation().lookupSymbol<func::FuncOp>(launch.getKernel());
  };
  auto awaits = [&](LaunchOp launch) { return awaitsLaunch(lookUp(launch)); };
  // Launches of a block so far. One without blocks does not run: then that in
  // front of it is the one in front.
  SmallVector<LaunchOp> before;
  WalkResult walk = getOperation().walk([&](LaunchOp launch) -> WalkResult {
    if (!before.empty() && before.back()->getBlock() != launch->getBlock())
      before.clear();
    if (launch.getBeside() && !before.empty()) {
      LaunchOp last = before.back();
      // It would start while the launch in front of both runs.
      if (last.getBeside() && !awaits(last) && !awaits(launch))
        return launch.emitOpError("is beside @")
               << last.getKernel()
               << ", which is beside another launch and does not await it";
      (awaits(launch) ? isAwaited : startsNext).insert(last.getKernel());
      startsEarly.insert(launch.getKernel());
      if (awaitsFirst(lookUp(launch))) {
        waitsFirst.insert(launch.getKernel());
        for (LaunchOp front : llvm::reverse(before)) {
          isAwaited.insert(front.getKernel());
          if (std::optional<int64_t> blocks =
                  getConstantIntValue(front.getGrid());
              blocks && *blocks != 0)
            break;
        }
      }
    }
    before.push_back(launch);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

gpu::GPUModuleOp
ConvertGdnTileToNVVMPass::createGpuModule(ModuleOp module,
                                          const GpuTarget &gpu) {
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  Location loc = module.getLoc();
  // movmatrix needs more than LLVM's default for the chip.
  StringRef features = gpu.hasStMatrix() ? "" : "+ptx78";
  auto target = NVVM::NVVMTargetAttr::get(
      builder.getContext(), /*O=*/3, "nvptx64-nvidia-cuda", gpu.name, features);
  auto gpuModule = gpu::GPUModuleOp::create(builder, loc, kModuleName,
                                            ArrayRef<Attribute>{target});
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  builder.getUnitAttr());
  builder.setInsertionPointToStart(gpuModule.getBody());
  // gpu.dynamic_shared_memory becomes an internal variable of 16-byte alignment
  // that ptxas may place behind others; swizzled tiles need 1024.
  auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, loc, bytes, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedName, Attribute(),
                         /*alignment=*/1024, /*addrSpace=*/3);
  return gpuModule;
}

LogicalResult ConvertGdnTileToNVVMPass::convertKernels(
    ArrayRef<func::FuncOp> kernels, const GpuTarget &gpu,
    gpu::GPUModuleOp gpuModule, llvm::StringMap<KernelInfo> &infos) {
  OpBuilder builder(&getContext());
  SmallVector<Part> parts;
  for (func::FuncOp func : kernels) {
    auto module =
        gpu::GPUModuleOp::create(builder, func.getLoc(), func.getName());
    func->moveBefore(module.getBody(), module.getBody()->end());
    parts.push_back({module, func, {}});
  }
  if (failed(failableParallelForEach(&getContext(), parts, [&](Part &part) {
        return convertKernel(part, gpu);
      })))
    return failure();
  Block &body = *gpuModule.getBody();
  for (Part &part : parts) {
    infos[part.module->getName()] = part.info;
    body.getOperations().splice(body.end(),
                                part.module->getBody()->getOperations());
  }
  return success();
}

LogicalResult ConvertGdnTileToNVVMPass::convertKernel(Part &part,
                                                      const GpuTarget &gpu) {
  expandRefinements(part.func);
  KernelLowering kernel(part.func, gpu);
  kernel.startsNext = startsNext.contains(part.func.getName());
  kernel.isAwaited = isAwaited.contains(part.func.getName());
  kernel.startsEarly = startsEarly.contains(part.func.getName());
  kernel.awaitsLaunch = awaitsLaunch(part.func);
  if (failed(kernel.analyze()))
    return failure();
  part.info = {kernel.getBlockThreads(), kernel.getSharedBytes(),
               !part.func.getOps<OverlapLaunchesOp>().empty()};

  RewritePatternSet patterns(&getContext());
  populateStructurePatterns(kernel, patterns);
  populateRolePatterns(kernel, patterns);
  populateElementwisePatterns(kernel, patterns);
  populateMathPatterns(kernel, patterns);
  populateAccessPatterns(kernel, patterns);
  populateCopyPatterns(kernel, patterns);
  populateCopySumsPatterns(kernel, patterns);
  populateMmaPatterns(kernel, patterns);
  populateWarpgroupPatterns(kernel, patterns);
  populateRefinePatterns(kernel, patterns);
  populateRegisterProductPatterns(kernel, patterns);
  populateSumPatterns(kernel, patterns);
  populateCumsumPatterns(kernel, patterns);
  populateTriInversePatterns(kernel, patterns);
  populateScoresPatterns(kernel, patterns);
  populateSequencePatterns(kernel, patterns);
  populatePrefetchPatterns(kernel, patterns);
  populateWarpPatterns(kernel, patterns);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(kernel.converter, patterns);
  ConversionTarget target(getContext());
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  scf::populateSCFStructuralTypeConversionsAndLegality(kernel.converter,
                                                       patterns, target);
  if (failed(applyFullConversion(part.func, target, std::move(patterns))))
    return failure();
  kernel.useHiddenThreadIds();
  return success();
}

LogicalResult ConvertGdnTileToNVVMPass::convertLaunch(
    LaunchOp launch, const llvm::StringMap<KernelInfo> &infos) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  auto found = infos.find(launch.getKernel());
  if (found == infos.end() ||
      launch->getParentOfType<ModuleOp>() != getOperation())
    return launch.emitOpError("launches a tile program of a nested module");
  const KernelInfo &info = found->second;
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value threads = arith::ConstantIndexOp::create(builder, loc, info.numThreads);
  Value shared =
      arith::ConstantIntOp::create(builder, loc, info.sharedBytes, 32);
  auto kernel = SymbolRefAttr::get(
      builder.getContext(), kModuleName,
      {FlatSymbolRefAttr::get(builder.getContext(), launch.getKernel())});
  auto converted = gpu::LaunchFuncOp::create(
      builder, loc, kernel, gpu::KernelDim3{launch.getGrid(), one, one},
      gpu::KernelDim3{threads, one, one}, shared, launch.getArgs());
  bool isBeside =
      launch.getBeside() && startsEarly.contains(launch.getKernel());
  if (info.overlaps || (isBeside && waitsFirst.contains(launch.getKernel())))
    converted->setAttr(kOverlapsAttrName, builder.getUnitAttr());
  else if (isBeside)
    converted->setAttr(kBesideAttrName, builder.getUnitAttr());
  launch.erase();
  return success();
}

} // namespace
