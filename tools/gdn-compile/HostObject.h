//===- HostObject.h - object code for this processor ------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_COMPILE_HOSTOBJECT_H
#define GDN_TOOLS_GDN_COMPILE_HOSTOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace gdn_compile {

/// A relocatable ELF object of a module in the LLVM dialect: position
/// independent, for the processor this runs on. `features` are added to the
/// processor's own, in LLVM's notation: "-avx512bf16,...".
llvm::Expected<std::string> emitHostObject(mlir::ModuleOp module,
                                           llvm::StringRef features);

} // namespace gdn_compile

#endif // GDN_TOOLS_GDN_COMPILE_HOSTOBJECT_H
