//===- SequenceOps.cpp - packed sequences on the CPU ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn::tile_to_vector;

// By bisection.
LogicalResult
mlir::gdn::tile_to_vector::lowerFindSequence(Lowering &lowering,
                                             gdn_tile::FindSequenceOp op) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value slot = lowering.get(op.getSlot());
  Value offsets = lowering.get(op.getOffsets());
  Value one = lowering.index(1), two = lowering.index(2);
  Value chunk = lowering.index(op.getChunk());
  Type index = b.getIndexType();
  auto loop = scf::WhileOp::create(
      b, TypeRange{index, index},
      ValueRange{lowering.index(0), lowering.get(op.getCount())},
      [&](OpBuilder &, Location, ValueRange range) {
        Value width = arith::SubIOp::create(b, range[1], range[0]);
        Value isOpen =
            arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, width, one);
        scf::ConditionOp::create(b, isOpen, range);
      },
      [&](OpBuilder &, Location, ValueRange range) {
        Value middle = arith::DivUIOp::create(
            b, arith::AddIOp::create(b, range[0], range[1]), two);
        Value start = arith::IndexCastOp::create(
            b, index, memref::LoadOp::create(b, offsets, middle));
        Value first = arith::AddIOp::create(
            b, arith::DivUIOp::create(b, start, chunk), middle);
        Value isBehind =
            arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, first, slot);
        Value low = arith::SelectOp::create(b, isBehind, range[0], middle);
        Value high = arith::SelectOp::create(b, isBehind, middle, range[1]);
        scf::YieldOp::create(b, ValueRange{low, high});
      });
  lowering.map(op.getResult(), loop.getResult(0));
  return success();
}
