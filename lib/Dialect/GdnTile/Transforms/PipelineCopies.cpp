//===- PipelineCopies.cpp - gdn-tile-pipeline-copies ----------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopCopies.h"

#include "gdn/Dialect/GdnTile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::gdn_tile {
#define GEN_PASS_DEF_GDNTILEPIPELINECOPIESPASS
#include "gdn/Dialect/GdnTile/Transforms/Passes.h.inc"
} // namespace mlir::gdn_tile

using namespace mlir;
using namespace mlir::gdn_tile;

namespace {

//===----------------------------------------------------------------------===//
// The loop with copies ahead
//===----------------------------------------------------------------------===//

class Pipeliner {
public:
  Pipeliner(scf::ForOp loop, LoopCopies candidates, int64_t stages)
      : loop(loop), candidates(std::move(candidates)), stages(stages),
        b(loop.getLoc(), loop) {}

  void run();

private:
  void allocateBuffers();
  Value issue(Value iv, Value stage);
  SmallVector<Value> computeOperands(Value iv, Value isValid);
  Value nextStage(Value stage, bool forward);
  void buildBody(scf::ForOp pipelined);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }

  scf::ForOp loop;
  LoopCopies candidates;
  int64_t stages;
  ImplicitLocOpBuilder b;
  /// One allocation of `stages` tiles per copy.
  SmallVector<Value> buffers;
};

void Pipeliner::allocateBuffers() {
  for (CopyInOp copy : candidates.copies) {
    auto tile = cast<MemRefType>(copy.getTile().getType());
    SmallVector<int64_t> shape{stages};
    llvm::append_range(shape, tile.getShape());
    buffers.push_back(
        memref::AllocOp::create(b, MemRefType::get(shape, tile.getElementType(),
                                                   MemRefLayoutAttrInterface(),
                                                   tile.getMemorySpace())));
  }
}

// Indices and bounds of all copies for the iteration `iv`, which may not
// exist: what could fault runs only if it does.
SmallVector<Value> Pipeliner::computeOperands(Value iv, Value isValid) {
  SmallVector<Value> wanted;
  for (CopyInOp copy : candidates.copies) {
    llvm::append_range(wanted, copy.getIndices());
    llvm::append_range(wanted, copy.getValid());
  }
  auto clone = [&](OpBuilder &builder) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), iv);
    for (Operation *op : candidates.getSlice())
      builder.clone(*op, mapping);
    return llvm::map_to_vector(
        wanted, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  if (llvm::all_of(candidates.getSlice(),
                   [](Operation *op) { return isPure(op); }))
    return clone(b);
  SmallVector<Type> types(wanted.size(), b.getIndexType());
  Value zero = index(0);
  auto branch = scf::IfOp::create(b, types, isValid, /*withElseRegion=*/true);
  OpBuilder thenBuilder = branch.getThenBodyBuilder();
  scf::YieldOp::create(thenBuilder, b.getLoc(), clone(thenBuilder));
  OpBuilder elseBuilder = branch.getElseBodyBuilder();
  scf::YieldOp::create(elseBuilder, b.getLoc(),
                       SmallVector<Value>(wanted.size(), zero));
  return llvm::to_vector_of<Value>(branch.getResults());
}

// Issues the copies of iteration `iv` into `stage`, as one group. Behind the
// last iteration the tiles have no valid row, so nothing is read.
Value Pipeliner::issue(Value iv, Value stage) {
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult
                                         : arith::CmpIPredicate::slt;
  Value isValid = arith::CmpIOp::create(b, predicate, iv, loop.getUpperBound());
  SmallVector<Value> operands = computeOperands(iv, isValid);
  ArrayRef<Value> rest = operands;
  auto take = [&](size_t count) {
    ArrayRef<Value> front = rest.take_front(count);
    rest = rest.drop_front(count);
    return llvm::to_vector(front);
  };
  Value none = index(0);
  SmallVector<Value> tokens;
  for (auto [copy, buffer] : llvm::zip_equal(candidates.copies, buffers)) {
    b.setLoc(copy.getLoc());
    auto type = cast<MemRefType>(copy.getTile().getType());
    SmallVector<Value> indices = take(copy.getIndices().size());
    SmallVector<Value> valid = take(copy.getValid().size());
    if (valid.empty())
      for (int64_t size : type.getShape())
        valid.push_back(index(size));
    valid[0] = arith::SelectOp::create(b, isValid, valid[0], none);
    Value tile = StageOp::create(b, type, buffer, stage);
    auto issued =
        CopyInOp::create(b, TokenType::get(b.getContext()), copy.getSource(),
                         indices, copy.getDims(), valid, tile, copy.getLower());
    tokens.push_back(issued.getToken());
  }
  b.setLoc(loop.getLoc());
  return JoinOp::create(b, TokenType::get(b.getContext()), tokens);
}

// The stage after or before `stage`, around the ring.
Value Pipeliner::nextStage(Value stage, bool forward) {
  Value last = index(stages - 1), zero = index(0);
  Value isEnd = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, stage,
                                      forward ? last : zero);
  Value step = index(forward ? 1 : -1);
  Value moved = arith::AddIOp::create(b, stage, step);
  return arith::SelectOp::create(b, isEnd, forward ? zero : last, moved);
}

// wait for the oldest group; issue the group `stages - 1` iterations ahead into
// the stage that the previous iteration read; then the old body.
void Pipeliner::buildBody(scf::ForOp pipelined) {
  size_t numOld = loop.getInitArgs().size();
  ValueRange args = pipelined.getRegionIterArgs();
  ValueRange groups = args.drop_front(numOld).drop_back();
  Value stage = args.back(), iv = pipelined.getInductionVar();
  b.setInsertionPointToStart(pipelined.getBody());
  WaitOp::create(b, groups.front(), stages - 2);
  Value ahead = iv;
  for (int64_t i = 1; i < stages; ++i)
    ahead = arith::AddIOp::create(b, ahead, pipelined.getStep());
  Value issued = issue(ahead, nextStage(stage, /*forward=*/false));
  SmallVector<Value> carried(groups.drop_front());
  carried.push_back(issued);
  carried.push_back(nextStage(stage, /*forward=*/true));

  for (auto [copy, buffer] : llvm::zip_equal(candidates.copies, buffers)) {
    Value tile = StageOp::create(b, cast<MemRefType>(copy.getTile().getType()),
                                 buffer, stage);
    Operation *alloc = copy.getTile().getDefiningOp();
    copy.erase();
    for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    alloc->getResult(0).replaceAllUsesWith(tile);
    alloc->erase();
  }
  loop.getInductionVar().replaceAllUsesWith(iv);
  for (auto [from, to] :
       llvm::zip(loop.getRegionIterArgs(), args.take_front(numOld)))
    from.replaceAllUsesWith(to);
  pipelined.getBody()->getOperations().splice(pipelined.getBody()->end(),
                                              loop.getBody()->getOperations());
  auto yield = cast<scf::YieldOp>(pipelined.getBody()->getTerminator());
  yield->insertOperands(numOld, carried);
}

void Pipeliner::run() {
  allocateBuffers();
  SmallVector<Value> inits(loop.getInitArgs());
  Value iv = loop.getLowerBound();
  for (int64_t stage = 0; stage < stages - 1; ++stage) {
    if (stage > 0)
      iv = arith::AddIOp::create(b, iv, loop.getStep());
    inits.push_back(issue(iv, index(stage)));
  }
  inits.push_back(index(0));
  auto pipelined = scf::ForOp::create(
      b, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits,
      [](OpBuilder &, Location, Value, ValueRange) {}, loop.getUnsignedCmp());
  for (NamedAttribute attr : loop->getDiscardableAttrs())
    if (attr.getName() != kStagesAttrName)
      pipelined->setDiscardableAttr(attr.getName(), attr.getValue());
  {
    OpBuilder::InsertionGuard guard(b);
    buildBody(pipelined);
  }
  // The groups behind the last iteration still write zeros.
  WaitOp::create(b, *std::prev(pipelined.getResults().end(), 2), 0);
  for (auto [from, to] : llvm::zip(loop.getResults(), pipelined.getResults()))
    from.replaceAllUsesWith(to);
  loop.erase();
  // What computed the operands of the copies may have no other use.
  for (Operation *op : llvm::reverse(candidates.getSlice()))
    if (isOpTriviallyDead(op))
      op->erase();
}

class GdnTilePipelineCopiesPass
    : public gdn_tile::impl::GdnTilePipelineCopiesPassBase<
          GdnTilePipelineCopiesPass> {
public:
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->hasAttr(kStagesAttrName))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      loop->removeAttr(kTeamsAttrName); // None without roles.
      int64_t stages =
          loop->getAttrOfType<IntegerAttr>(kStagesAttrName).getInt();
      LoopCopies candidates = findLoopCopies(loop);
      if (stages > 1 && !candidates.copies.empty()) {
        Pipeliner(loop, std::move(candidates), stages).run();
        continue;
      }
      if (stages > 1)
        loop.emitRemark("has no copy that can run ahead");
      loop->removeAttr(kStagesAttrName);
    }
  }
};

} // namespace
