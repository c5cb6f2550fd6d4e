//===- FormTensorMaps.cpp - gdn-tile-form-tensor-maps ---------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GdnTile/IR/TensorMap.h"
#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEFORMTENSORMAPSPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

/// The tensor maps of one tile program.
class KernelMaps {
public:
  KernelMaps(func::FuncOp kernel, ArrayRef<LaunchOp> launches)
      : kernel(kernel), launches(launches) {}

  void form();

private:
  template <typename Op>
  void formFor(Op copy, Value global);
  Value getMap(BlockArgument global, TensorMapType type);

  func::FuncOp kernel;
  ArrayRef<LaunchOp> launches;
  DenseMap<std::pair<unsigned, Type>, Value> maps;
};

} // namespace

Value KernelMaps::getMap(BlockArgument global, TensorMapType type) {
  unsigned number = global.getArgNumber();
  Value &map = maps[{number, type}];
  if (map)
    return map;
  unsigned last = kernel.getNumArguments();
  (void)kernel.insertArgument(last, type, DictionaryAttr(), global.getLoc());
  for (LaunchOp launch : launches) {
    OpBuilder b(launch);
    launch.getArgsMutable().append(
        MakeTensorMapOp::create(b, launch.getLoc(), type,
                                launch.getArgs()[number])
            .getResult());
  }
  map = kernel.getArgument(last);
  return map;
}

template <typename Op>
void KernelMaps::formFor(Op copy, Value global) {
  auto argument = dyn_cast<BlockArgument>(global);
  if (copy.getMap() || !argument ||
      argument.getOwner() != &kernel.getBody().front())
    return;
  if (TensorMapType type =
          getTensorMapFor(cast<MemRefType>(argument.getType()),
                          cast<MemRefType>(copy.getTile().getType()),
                          copy.getDims(), copy.getValid()))
    copy.getMapMutable().assign(getMap(argument, type));
}

void KernelMaps::form() {
  kernel.walk([&](Operation *op) {
    if (auto copy = dyn_cast<CopyInOp>(op);
        copy && copy.getSlot() && !copy.getLower())
      formFor(copy, copy.getSource());
    if (auto copy = dyn_cast<CopyOutOp>(op); copy && getRole(copy))
      formFor(copy, copy.getDestination());
  });
}

namespace {
struct FormTensorMapsPass
    : public gdn_tile::impl::GdnTileFormTensorMapsPassBase<FormTensorMapsPass> {
  void runOnOperation() override {
    llvm::StringMap<SmallVector<LaunchOp>> launches;
    getOperation().walk(
        [&](LaunchOp op) { launches[op.getKernel()].push_back(op); });
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (getKernelAttr(func) && !func.isDeclaration())
        KernelMaps(func, launches[func.getName()]).form();
  }
};
} // namespace
