//===- ResidentPrepare.cpp - T by blocks that stay ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As many blocks as run at once, each with a loop over chunks of single heads,
// the last first. Roles overlap its iterations: keys are copied several ahead,
// a warpgroup makes their products, and single warps, which take turns, invert.
// So memory is never idle while a block inverts, as it is where all blocks
// start to load at the same time.
//
//===----------------------------------------------------------------------===//

#include "WarpPrepareKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace mlir::gdn;

// Stages of keys, and warps that invert: as many as there is shared memory for
// beside which the first-level cache has some left. With three stages or six
// warps 4 to 10 % slower (H200).
constexpr int64_t kKeyStages = 4, kInverters = 5;

// The chunk and head of an item.
void WarpPrepareKernel::findItem(Value number) {
  // Tells LLVM what it does not see, that 32 bits are enough to divide it.
  number = arith::AndIOp::create(k, number,
                                 k.index(std::numeric_limits<int32_t>::max()));
  Value perSlot = k.index(plan.keyHeads), perCopy = k.index(copiedHeads);
  slot = k.div(number, perSlot);
  keyHead = k.rem(number, perSlot);
  firstHead = k.mul(k.div(keyHead, perCopy), perCopy);
  Chunk chunk = sequences.chunkAt(slot);
  row = chunk.row;
  // Slots between packed sequences may hold nothing: nobody reads what becomes
  // of them.
  rows = k.max(k.min(chunk.left, k.index(c)), k.index(0));
}

void WarpPrepareKernel::buildResident(Value count) {
  ImplicitLocOpBuilder host(plan.op.getLoc(), plan.op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(host, value);
  };
  Value perSlot = constant(plan.keyHeads);
  Value all = host.createOrFold<arith::MulIOp>(
      host.createOrFold<arith::MulIOp>(plan.slots, perSlot), count);
  Value grid =
      host.createOrFold<arith::MinUIOp>(all, constant(plan.residentBlocks));
  Value items = k.sizeArgument(all), step = k.sizeArgument(grid);
  allocateInputs();
  allocateProducts();
  Value first = k.sub(k.sub(items, k.index(1)), k.blockId());
  Value turns = k.ceilDiv(k.sub(items, k.blockId()), step);
  auto loop = scf::ForOp::create(k, k.index(0), turns, k.index(1));
  loop->setAttr(gdn_tile::kStagesAttrName, k.getI64IntegerAttr(kKeyStages));
  loop->setAttr(gdn_tile::kTeamsAttrName, k.getI64IntegerAttr(kInverters));
  {
    OpBuilder::InsertionGuard guard(k);
    k.setInsertionPointToStart(loop.getBody());
    findItem(k.sub(first, k.mul(loop.getInductionVar(), step)));
    copyTiles();
    auto ahead = gdn_tile::AheadOp::create(k, k.getI64IntegerAttr(1));
    {
      OpBuilder::InsertionGuard inner(k);
      k.setInsertionPointToStart(&ahead.getBody().emplaceBlock());
      gdn_tile::AheadEndOp::create(k);
      k.setInsertionPointToStart(&ahead.getBody().front());
      buildProducts();
    }
    Value column = k.sub(keyHead, firstHead);
    k.eachWarp(k.index(1), [&](Value) { buildTask(column); });
  }
  k.launch(grid);
}
