//===- GdnTileToNVVM.cpp - tile programs to NVVM and PTX ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Pipelines/Pipelines.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::buildGdnTileToNVVMPipeline(OpPassManager &pm,
                                           const GpuPipelineOptions &options) {
  buildOverlapPipeline(pm, options);
  pm.addPass(createConvertGdnTileToNVVMPass({options.target}));
  // Inside the kernels only: the host function keeps its checks. By function,
  // so that threads can share them.
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>().nest<LLVM::LLVMFuncOp>();
  kernels.addPass(createSCFToControlFlowPass());
  ConvertToLLVMPassOptions toLLVM;
  toLLVM.filterDialects = {"arith", "cf", "ub"};
  kernels.addPass(createConvertToLLVMPass(toLLVM));
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
}

void mlir::gdn::buildGdnToPtxPipeline(OpPassManager &pm,
                                      const GpuPipelineOptions &options) {
  buildGdnToTilePipeline(pm, options);
  buildGdnTileToNVVMPipeline(pm, options);
  pm.addPass(createConvertNVVMToPtxPass());
}
