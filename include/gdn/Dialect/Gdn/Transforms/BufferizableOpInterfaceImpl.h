//===- BufferizableOpInterfaceImpl.h - bufferization of gdn ops -*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
namespace gdn {

/// Registers the bufferization of all gdn ops.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace gdn
} // namespace mlir

#endif // GDN_DIALECT_GDN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
