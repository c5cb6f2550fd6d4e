//===- GdnTile.h - gdn_tile dialect -----------------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILE_H
#define GDN_DIALECT_GDNTILE_IR_GDNTILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "gdn/Dialect/GdnTile/IR/GdnTileDialect.h.inc"
#include "gdn/Dialect/GdnTile/IR/GdnTileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileTypes.h.inc"
#define GET_OP_CLASSES
#include "gdn/Dialect/GdnTile/IR/GdnTileOps.h.inc"

namespace mlir::gdn_tile {

/// Name of the attribute that marks a function as a tile program.
constexpr llvm::StringLiteral kKernelAttrName = "gdn_tile.kernel";
/// Of a gpu.launch_func: a unit attribute, `beside` of a gdn_tile.launch.
constexpr llvm::StringLiteral kBesideAttrName = "gdn_tile.beside";
/// The same of a kernel with a gdn_tile.overlap_launches.
constexpr llvm::StringLiteral kOverlapsAttrName = "gdn_tile.overlaps";

/// Name of the attribute of a loop that says how many tiles each of its copies
/// may fill ahead, for gdn-tile-pipeline-copies.
constexpr llvm::StringLiteral kStagesAttrName = "gdn_tile.stages";

/// Attribute of an scf.for with stages and a gdn_tile.ahead: the number of
/// warps that take turns with the rest of its iterations, all of which is of
/// single warps.
constexpr llvm::StringLiteral kTeamsAttrName = "gdn_tile.teams";

/// Teams of a role that take turns, at most: each has a named barrier.
constexpr int64_t kMaxTeams = 8;

/// The kernel attribute of a function, or null.
inline KernelAttr getKernelAttr(Operation *func) {
  return func->getAttrOfType<KernelAttr>(kKernelAttrName);
}

/// True for memrefs in shared (workgroup) memory.
bool isShared(Type type);

/// The buffers that the ring of a ring op guards are its own: `memref` is one
/// of them, or a stage of one.
bool isGuardedByRing(Value memref);

/// The role that an op stands in, or null.
RoleOp getRole(Operation *op);

/// Whether an op stands in the region of a gdn_tile.each_warp: one warp runs
/// it.
bool isInWarp(Operation *op);

/// \name Matrices in panels of 16 columns, and lower triangular ones as blocks
///
/// A matrix NxK of 16-bit elements is memref<(N*K/8)x8>, with element (n, k) in
/// row (k / 16) 2 N + (n / 8) 16 + (k % 16 xor 8) and column n % 8. So a matrix
/// of 8x8 is 128 contiguous bytes (a core matrix of wgmma without swizzle), its
/// transpose in the registers of a warp is these bytes in the order of lanes,
/// and blocks of 16x16 are 32 rows, one below the other. Columns 8 to 15 come
/// first, which above the diagonal hold nothing: so the panel of a lower
/// triangular matrix is one piece, without its first matrix of 8x8, which is
/// nowhere else. A product takes its left operand's columns in that order.
/// @{
constexpr int64_t kPanelColumns = 16, kPanelWidth = 8, kBlockRows = 32;
constexpr int64_t kMatrixRows = 8;
/// The row of column k in its eight rows n of a panel.
inline int64_t getRowOfColumn(int64_t k) {
  return k % kPanelColumns ^ kMatrixRows;
}
/// The row of the memref where a block begins, given its first row n and first
/// column k in a matrix of `rows` rows.
inline int64_t getPanelRow(int64_t n, int64_t k, int64_t rows) {
  return (k / kPanelColumns * rows + n) * kPanelColumns / kPanelWidth;
}
/// Rows of a right operand of `a` in panels, given the shape of its tile; 0 if
/// that is in no panels.
int64_t getPanelRows(ArrayRef<int64_t> shape, VectorType a);
/// The shape of a square matrix in panels, and of its blocks on and below the
/// diagonal.
SmallVector<int64_t> getPanelShape(int64_t size);
SmallVector<int64_t> getLowerShape(int64_t size);
/// Rows and columns of a square matrix in panels, a power of two; 0 if the tile
/// is none.
int64_t getLowerSize(MemRefType panels);
/// The row where a block begins among those, of a matrix of `blocks` rows of
/// blocks: one column of blocks follows the other. The blocks on the diagonal
/// are three matrices of 8x8.
int64_t getLowerRow(int64_t row, int64_t column, int64_t blocks);
/// The row in its panel where a column of blocks begins, and its rows.
int64_t getFirstLowerRow(int64_t column);
int64_t getLowerRows(int64_t column, int64_t blocks);
/// @}

/// Whether a product of a kernel can run as warpgroup products (wgmma): 64 rows
/// for each warpgroup, or for the one of a role, 16-bit operands, and a tile in
/// panels of 128 bytes or, transposed, in panels of 16 columns.
bool fitsWarpgroup(MmaOp op, KernelAttr kernel);
/// The same, for the kernel that the product stands in.
bool fitsWarpgroup(MmaOp op);

/// exp(G) above which second parts of P are made.
constexpr double kLeastGrown = 1e-30;
/// Replaces a refinement without a condition by the ops that its description
/// says, and all of an op's.
void expandRefinement(RefineOp op);
void expandRefinements(Operation *root);

} // namespace mlir::gdn_tile

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILE_H
