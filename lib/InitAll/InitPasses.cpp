//===- InitPasses.cpp - registration of passes and pipelines --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"

#include "mlir/InitAllPasses.h"

void mlir::gdn::registerPasses() {}

void mlir::gdn::registerAllPasses() {
  mlir::registerAllPasses();
  registerPasses();
}
