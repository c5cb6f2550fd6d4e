//===- GdnToTile.cpp - gdn to tile programs -------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"
#include "gdn/Pipelines/Pipelines.h"
#include "gdn/Target/GpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void mlir::gdn::buildGdnToTilePipeline(OpPassManager &pm,
                                       const GpuPipelineOptions &options) {
  pm.addPass(createCanonicalizerPass());
  // Before bufferization: the message of a shape without schedule still names
  // the user's types.
  pm.addNestedPass<func::FuncOp>(
      createGdnSelectSchedulePass({options.target, options.precision}));
  buildBufferizePipeline(pm);
  std::optional<GpuTarget> target = lookUpGpuTarget(options.target);
  pm.addPass(
      createConvertGdnToTilePass({target ? target->multiprocessors : 1,
                                  target ? 64 * target->hasWarpgroupMma() : 1,
                                  target && target->hasWarpgroupMma()}));
  // Folds the sizes that are known and merges equal loads and broadcasts.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void mlir::gdn::buildOverlapPipeline(OpPassManager &pm,
                                     const GpuPipelineOptions &options,
                                     bool roles) {
  std::optional<GpuTarget> target = lookUpGpuTarget(options.target);
  bool hasWarpgroups = target && target->hasWarpgroupMma();
  OpPassManager &functions = pm.nest<func::FuncOp>();
  if (hasWarpgroups && roles)
    functions.addPass(gdn_tile::createGdnTileSpecializeWarpsPass());
  // The loops that have no roles.
  functions.addPass(gdn_tile::createGdnTilePipelineCopiesPass());
  // Before barriers tie iterations down.
  if (hasWarpgroups) {
    functions.addPass(gdn_tile::createGdnTilePipelineProductsPass());
    functions.addPass(createCanonicalizerPass());
    functions.addPass(createCSEPass());
  }
  // What the loops have left.
  functions.addPass(gdn_tile::createGdnTileBatchCopiesPass());
  // Behind the copies: only now is it known which tiles are in flight.
  functions.addPass(gdn_tile::createGdnTileInsertBarriersPass());
  // Other products (mma.sync) are done when they are issued: issuing them early
  // only makes registers live longer.
  if (!hasWarpgroups)
    return;
  // Behind the barriers, which products must not cross.
  functions.addPass(gdn_tile::createGdnTileOverlapProductsPass());
  // Last: the other passes need not know of maps.
  pm.addPass(gdn_tile::createGdnTileFormTensorMapsPass());
}
