//===- Ptxas.h - NVIDIA's assembler as a check ------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_COMPILE_PTXAS_H
#define GDN_TOOLS_GDN_COMPILE_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace gdn_compile {

/// Assembles the PTX with the ptxas on the PATH and prints one line per kernel
/// with its registers, spilled bytes and static shared memory, and ptxas's
/// warnings.
llvm::Error reportPtxas(llvm::StringRef ptx, llvm::StringRef target,
                        llvm::raw_ostream &stream);

} // namespace gdn_compile

#endif // GDN_TOOLS_GDN_COMPILE_PTXAS_H
