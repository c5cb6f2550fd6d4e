//===- gdn-plugin.cpp - dialects and passes for stock mlir-opt ------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=gdn-plugin.so --load-pass-plugin=gdn-plugin.so
//   --pass-pipeline='builtin.module(...)' in.mlir
//
// Only the project's own dialects and passes are registered here: the host has
// the upstream ones, and a pass that is registered twice is a fatal error.
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gdn", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            mlir::gdn::registerDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gdn", LLVM_VERSION_STRING,
          []() { mlir::gdn::registerPasses(); }};
}
