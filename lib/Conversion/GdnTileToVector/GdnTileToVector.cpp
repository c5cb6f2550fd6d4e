//===- GdnTileToVector.cpp - convert-gdn-tile-to-vector -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTILETOVECTORPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile_to_vector;

static bool isTensorMap(Value value) {
  return isa<gdn_tile::TensorMapType>(value.getType());
}

// Replaces a tile program by the function that runs one block of it; the
// number of the block is a new first argument, that of all blocks the second.
static LogicalResult lowerKernel(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("a tile program has a body of one block");
  gdn_tile::expandRefinements(kernel);
  OpBuilder builder(kernel);
  // The memref itself comes beside its tensor map.
  auto arguments = llvm::make_filter_range(
      kernel.getArguments(), [](Value value) { return !isTensorMap(value); });
  SmallVector<Type> inputs(2, builder.getIndexType());
  for (Value argument : arguments)
    inputs.push_back(argument.getType());
  auto target = func::FuncOp::create(builder, kernel.getLoc(), kernel.getName(),
                                     builder.getFunctionType(inputs, {}));
  target.setVisibility(kernel.getVisibility());
  Block *block = target.addEntryBlock();
  auto abandon = [&] {
    target.erase();
    return failure();
  };
  Lowering lowering(target, block->getArgument(0), block->getArgument(1));
  for (auto [from, to] :
       llvm::zip(arguments, block->getArguments().drop_front(2)))
    lowering.map(from, to);
  if (failed(lowering.lowerBlock(kernel.getBody().front())))
    return abandon();
  lowering.freeBuffers();
  func::ReturnOp::create(lowering.b);
  kernel.erase();
  return success();
}

// Runs the blocks of the grid one after the other.
static void lowerLaunch(gdn_tile::LaunchOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, zero, op.getGrid(), one);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> args{loop.getInductionVar(), op.getGrid()};
  llvm::copy_if(op.getArgs(), std::back_inserter(args),
                [](Value value) { return !isTensorMap(value); });
  func::CallOp::create(b, op.getKernel(), TypeRange(), args);
  op.erase();
}

namespace {
class ConvertGdnTileToVectorPass
    : public gdn::impl::ConvertGdnTileToVectorPassBase<
          ConvertGdnTileToVectorPass> {
public:
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (gdn_tile::getKernelAttr(func))
        kernels.push_back(func);
    for (func::FuncOp kernel : kernels)
      if (failed(lowerKernel(kernel)))
        return signalPassFailure();
    getOperation().walk(lowerLaunch);
    getOperation().walk([](gdn_tile::MakeTensorMapOp op) { op.erase(); });
  }
};
} // namespace
