//===- Tools.h - entry points of the tools ----------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_TOOLS_H
#define GDN_TOOLS_TOOLS_H

namespace gdn_tools {

int runOpt(int argc, char **argv);
int runCompile(int argc, char **argv);

} // namespace gdn_tools

#endif // GDN_TOOLS_TOOLS_H
