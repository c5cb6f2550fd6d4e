//===- SpecializeWarps.cpp - gdn-tile-specialize-warps -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Specializer.h"

#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILESPECIALIZEWARPSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {
class GdnTileSpecializeWarpsPass
    : public gdn_tile::impl::GdnTileSpecializeWarpsPassBase<
          GdnTileSpecializeWarpsPass> {
public:
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    KernelAttr kernel = getKernelAttr(func);
    if (!kernel || func.isExternal() || !func.getBody().hasOneBlock() ||
        kernel.getLayout() != FragmentLayoutKind::Accumulator)
      return;
    if (std::optional<RoleCandidate> candidate = findRoleCandidate(func))
      // Loops that do not fit are left to gdn-tile-pipeline-copies.
      (void)Specializer(func, std::move(*candidate)).run();
  }
};

} // namespace
