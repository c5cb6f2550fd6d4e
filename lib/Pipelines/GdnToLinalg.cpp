//===- GdnToLinalg.cpp - gdn ops to chunkwise linalg ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/Passes.h"
#include "gdn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::buildGdnToLinalgPipeline(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createGdnNormalizePass());
  pm.addNestedPass<func::FuncOp>(createGdnSelectSchedulePass());
  pm.addNestedPass<func::FuncOp>(createGdnTileBlocksPass());
  // The slices of a block are computed once for the op and once for its
  // results; bufferization sees that they agree only when they are one value.
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createGdnTileChunksPass());
  pm.addNestedPass<func::FuncOp>(createGdnDecomposePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
