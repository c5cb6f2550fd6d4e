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

/// Registers the project's dialects and their interface implementations.
void registerDialects(DialectRegistry &registry);

/// Registers the project's passes and pipelines.
void registerPasses();

/// The project's dialects and all upstream dialects and extensions.
void registerAllDialects(DialectRegistry &registry);

/// The project's passes and all upstream passes.
void registerAllPasses();

} // namespace gdn
} // namespace mlir

#endif // GDN_INITALL_H
