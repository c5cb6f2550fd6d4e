//===- InitDialects.cpp - registration of dialects ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"
#include "gdn/Dialect/Gdn/Transforms/BufferizableOpInterfaceImpl.h"
#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/InitAll.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void mlir::gdn::registerDialects(DialectRegistry &registry) {
  registry.insert<gdn::GdnDialect, gdn_tile::GdnTileDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  // gdn-tile-to-nvvm converts these by interface.
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
}

void mlir::gdn::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerAllGPUToLLVMIRTranslations(registry);
  registerDialects(registry);
}
