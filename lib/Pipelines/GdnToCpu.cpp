//===- GdnToCpu.cpp - gdn to the LLVM dialect for the host ----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"
#include "gdn/Pipelines/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::buildBufferizePipeline(OpPassManager &pm,
                                       bool loopsMayAllocate) {
  bufferization::OneShotBufferizePassOptions options;
  options.allowReturnAllocsFromLoops = loopsMayAllocate;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(bufferization::createDropEquivalentBufferResultsPass());
}

/// Releases the buffers that bufferization allocated. A function that returns
/// one of its arguments returns a copy behind this: the host has no launcher
/// that knows the two are one.
static void buildDeallocatePipeline(OpPassManager &pm) {
  bufferization::buildBufferDeallocationPipeline(pm);
  pm.addPass(createConvertBufferizationToMemRefPass());
}

/// Linalg on tensors to one-dimensional vectors on buffers that are allocated
/// once per call.
static void buildVectorizePipeline(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createGdnTileLinalgPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createGdnVectorizeLinalgPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  // A loop of the user's around a recurrence with K = V = 1: no copy is left of
  // its state that could be made in place.
  buildBufferizePipeline(pm, /*loopsMayAllocate=*/true);
  // One core runs the blocks one after another; buffers leave scf.for only.
  pm.addNestedPass<func::FuncOp>(createForallToForLoopPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // What a loop handed on is an argument only now.
  pm.addPass(bufferization::createDropEquivalentBufferResultsPass());
  pm.addNestedPass<func::FuncOp>(createGdnHoistBuffersPass());
  buildDeallocatePipeline(pm);
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createGdnLowerVectorsPass());
}

void mlir::gdn::buildLowerToLLVMPipeline(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createGdnLowerCopiesPass());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(createSCFToControlFlowPass());
  // LLVM turns bf16 conversions into calls that a JIT cannot resolve on hosts
  // without such instructions; expanded they round the same way everywhere.
  arith::ArithExpandOpsPassOptions expandOptions;
  expandOptions.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expandOptions));
  // log(1 + x) loses the gates of strongly negative projections.
  ConvertMathToLLVMPassOptions mathOptions;
  mathOptions.approximateLog1p = false;
  pm.addPass(createConvertMathToLLVMPass(mathOptions));
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  // In the one walk for all other dialects memref.reshape would stay.
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::gdn::buildGdnToCpuPipeline(OpPassManager &pm,
                                      const GdnToCpuOptions &options) {
  // Elementwise arithmetic on tensors around the gdn ops.
  pm.addPass(createConvertElementwiseToLinalgPass());
  // The deallocation passes refuse the local buffers of the loops and of the
  // tile programs, so they come first.
  switch (options.path) {
  case CpuPath::Linalg:
    buildGdnToLinalgPipeline(pm);
    buildVectorizePipeline(pm);
    break;
  case CpuPath::Loops:
    pm.addPass(createCanonicalizerPass());
    buildBufferizePipeline(pm);
    buildDeallocatePipeline(pm);
    pm.addPass(createConvertGdnToLoopsPass());
    break;
  case CpuPath::Tile:
  case CpuPath::PipelinedTile:
  case CpuPath::RotatedTile: {
    GpuPipelineOptions gpuOptions;
    gpuOptions.target = options.target;
    buildGdnToTilePipeline(pm, gpuOptions);
    buildDeallocatePipeline(pm);
    if (options.path == CpuPath::PipelinedTile)
      buildOverlapPipeline(pm, gpuOptions, /*roles=*/false);
    if (options.path == CpuPath::RotatedTile)
      pm.addNestedPass<func::FuncOp>(
          gdn_tile::createGdnTilePipelineProductsPass());
    pm.addPass(createConvertGdnTileToVectorPass());
    break;
  }
  }
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  buildLowerToLLVMPipeline(pm);
}
