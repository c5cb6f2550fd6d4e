//===- gdn-opt.cpp - pass driver ------------------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tools.h"

#include "gdn/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace gdn_test {
void registerTileLayoutsPass();
} // namespace gdn_test

int gdn_tools::runOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::gdn::registerAllDialects(registry);
  mlir::gdn::registerAllPasses();
  gdn_test::registerTileLayoutsPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "gdn: compiler for delta-rule recurrences\n", registry));
}
