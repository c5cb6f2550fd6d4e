//===- InitAll.h - registration of everything -------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_INITALL_H
#define GDN_INITALL_H

namespace mlir {
class DialectRegistry;
namespace gdn {

/// Registers the project's dialects, the upstream dialects that its passes
/// produce, and their interface implementations.
void registerAllDialects(DialectRegistry &registry);

/// Registers the project's passes and pipelines, and the upstream passes that
/// lit tests and pipelines written by hand need.
void registerAllPasses();

} // namespace gdn
} // namespace mlir

#endif // GDN_INITALL_H
