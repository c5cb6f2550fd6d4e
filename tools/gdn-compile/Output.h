//===- Output.h - files that appear whole or not at all ---------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_COMPILE_OUTPUT_H
#define GDN_TOOLS_GDN_COMPILE_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace gdn_compile {

struct OutputFile {
  std::string name;
  std::string text;
};

/// Writes all files into `directory`, which is made if it is not there: each to
/// a temporary name, and when all are on disk, to its own. An error leaves none
/// of them behind.
llvm::Error writeFiles(llvm::StringRef directory,
                       const std::vector<OutputFile> &files);

/// Writes to standard output.
llvm::Error writeStdout(llvm::StringRef text);

} // namespace gdn_compile

#endif // GDN_TOOLS_GDN_COMPILE_OUTPUT_H
