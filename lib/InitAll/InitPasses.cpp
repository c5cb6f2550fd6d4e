//===- InitPasses.cpp - registration of passes and pipelines --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Gdn/Transforms/Passes.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"
#include "gdn/InitAll.h"
#include "gdn/Pipelines/Pipelines.h"

#include "mlir/InitAllPasses.h"

void mlir::gdn::registerPasses() {
  registerGdnConversionPasses();
  registerGdnTransformsPasses();
  gdn_tile::registerGdnTileTransformsPasses();
  registerPipelines();
}

void mlir::gdn::registerAllPasses() {
  mlir::registerAllPasses();
  registerPasses();
}
