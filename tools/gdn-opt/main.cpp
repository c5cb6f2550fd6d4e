//===- main.cpp - gdn-opt -------------------------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tools.h"

int main(int argc, char **argv) { return gdn_tools::runOpt(argc, argv); }
