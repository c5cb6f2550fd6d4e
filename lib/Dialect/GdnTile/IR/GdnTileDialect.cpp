//===- GdnTileDialect.cpp - gdn_tile dialect ------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn_tile;

#include "gdn/Dialect/GdnTile/IR/GdnTileDialect.cpp.inc"
#include "gdn/Dialect/GdnTile/IR/GdnTileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileOps.cpp.inc"

void GdnTileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/GdnTile/IR/GdnTileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "gdn/Dialect/GdnTile/IR/GdnTileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GdnTile/IR/GdnTileOps.cpp.inc"
      >();
}

bool mlir::gdn_tile::isShared(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return false;
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(memref.getMemorySpace());
  return space && space.getValue() == gpu::AddressSpace::Workgroup;
}

LogicalResult KernelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t warps, FragmentLayoutKind layout,
                                 int64_t lanes, int64_t elementsPerChunk,
                                 int64_t blocksPerSM) {
  if (warps < 1 || warps > 16)
    return emitError() << "kernel: warps must lie in 1..16, but is " << warps;
  if (elementsPerChunk < 1 || elementsPerChunk > 8 ||
      !llvm::isPowerOf2_64(elementsPerChunk))
    return emitError() << "kernel: chunk must be 1, 2, 4 or 8, but is "
                       << elementsPerChunk;
  bool isRows = layout == FragmentLayoutKind::Rows;
  if (isRows && (lanes < 1 || lanes > 32 || !llvm::isPowerOf2_64(lanes)))
    return emitError()
           << "kernel: lanes must be a power of two in 1..32, but is " << lanes;
  if (!isRows && lanes != 0)
    return emitError() << "kernel: lanes is for the rows layout only";
  if (blocksPerSM < 0 || blocksPerSM > 32)
    return emitError() << "kernel: blocks must lie in 1..32, but is "
                       << blocksPerSM;
  return success();
}

LogicalResult
GdnTileDialect::verifyOperationAttribute(Operation *op,
                                         NamedAttribute attribute) {
  if (attribute.getName() == kStagesAttrName) {
    auto stages = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<scf::ForOp>(op) || !stages || !stages.getType().isInteger(64) ||
        stages.getInt() < 1)
      return op->emitOpError() << "'" << kStagesAttrName
                               << "' must be a positive i64 on an scf.for";
    return success();
  }
  if (attribute.getName() == kTeamsAttrName) {
    auto teams = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!op->hasAttr(kStagesAttrName) || !teams ||
        !teams.getType().isInteger(64) || teams.getInt() < 1 ||
        teams.getInt() > kMaxTeams)
      return op->emitOpError()
             << "'" << kTeamsAttrName << "' must be an i64 in 1.." << kMaxTeams
             << " on an scf.for with '" << kStagesAttrName << "'";
    return success();
  }
  if (attribute.getName() != kKernelAttrName)
    return success();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func || !isa<KernelAttr>(attribute.getValue()))
    return op->emitOpError() << "'" << kKernelAttrName
                             << "' must be a #gdn_tile.kernel on a function";
  if (func.getNumResults() != 0)
    return op->emitOpError("a tile program has no results, but has ")
           << func.getNumResults();
  return success();
}
