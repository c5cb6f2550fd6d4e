//===- Gdn.h - gdn dialect --------------------------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDN_H
#define GDN_DIALECT_GDN_IR_GDN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "gdn/Dialect/Gdn/IR/GdnDialect.h.inc"
#include "gdn/Dialect/Gdn/IR/GdnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/Gdn/IR/GdnAttrs.h.inc"

namespace mlir::gdn::detail {

/// Read effects on the inputs, read and write effects on the destinations.
void getDestinationStyleEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects);

/// The result shapes are the shapes of the destinations.
LogicalResult
reifyDestinationShapes(OpBuilder &builder, DestinationStyleOpInterface op,
                       ReifiedRankedShapedTypeDims &reifiedReturnShapes);

} // namespace mlir::gdn::detail

using mlir::linalg::AggregatedOpInterface;
#define GET_OP_CLASSES
#include "gdn/Dialect/Gdn/IR/GdnOps.h.inc"

namespace mlir::gdn {

/// True if all elements of a tensor are known to be 0: a constant, or a
/// linalg.fill or tensor.splat of one, also behind a tensor.cast.
bool isZero(Value value);

} // namespace mlir::gdn

#endif // GDN_DIALECT_GDN_IR_GDN_H
