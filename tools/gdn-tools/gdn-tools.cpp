//===- gdn-tools.cpp - all tools in one program ---------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the wheel holds: gdn-opt and gdn-compile share one static copy of MLIR.
// The name under which the program is called picks the tool, or its first
// argument does.
//
//===----------------------------------------------------------------------===//

#include "Tools.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using Tool = int (*)(int, char **);

static Tool lookUp(llvm::StringRef name) {
  if (name == "gdn-opt")
    return gdn_tools::runOpt;
  if (name == "gdn-compile")
    return gdn_tools::runCompile;
  return nullptr;
}

int main(int argc, char **argv) {
  if (argc > 0)
    if (Tool tool = lookUp(llvm::sys::path::stem(argv[0])))
      return tool(argc, argv);
  if (argc > 1)
    if (Tool tool = lookUp(argv[1]))
      return tool(argc - 1, argv + 1);
  llvm::errs() << "usage: gdn-tools gdn-opt|gdn-compile [argument...]\n";
  return 1;
}
