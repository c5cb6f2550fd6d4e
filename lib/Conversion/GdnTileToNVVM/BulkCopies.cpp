//===- BulkCopies.cpp - copies of whole tiles by one instruction ----------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

Value mlir::gdn::isWholeTile(Emitter &e, const AccessInfo &access,
                             MemRefType tile, ArrayRef<ValueRange> valid) {
  Value whole;
  for (auto [d, bound] : llvm::enumerate(valid)) {
    int64_t size = tile.getDimSize(d);
    if (access.leastValid[d] < size)
      whole = e.both(whole, e.lessThan(e.c64(size - 1), bound.front()));
  }
  return whole;
}

// A coordinate is 32 bits wide, as a size is.
static Value getCoordinate(Emitter &e, const TensorMapDim &dim,
                           MemRefType source, ArrayRef<ValueRange> indices) {
  Value linear;
  for (int64_t d : dim.sourceDims) {
    if (linear)
      linear = e.mulC(linear, source.getDimSize(d));
    linear = e.add(linear, indices[d].front());
  }
  if (!linear)
    return e.c32(0);
  return LLVM::TruncOp::create(e.builder, e.loc, e.i32(), linear);
}

BulkCopy::BulkCopy(Emitter &emitter, ThreadSet threads, TensorMapType type,
                   Value map, Value tile, ArrayRef<ValueRange> indices)
    : e(emitter), threads(threads), source(map), tile(tile),
      bytes(type.getBox()[0] * type.getBox()[1] *
            type.getSource().getElementTypeBitWidth() / 8) {
  for (const TensorMapDim &dim : getTensorMapDims(type))
    coordinates.push_back(getCoordinate(e, dim, type.getSource(), indices));
}

BulkCopy::BulkCopy(Emitter &emitter, ThreadSet threads, Value source,
                   Value tile, int64_t bytes)
    : e(emitter), threads(threads), source(source), tile(tile), bytes(bytes) {}

static void inOneThread(Emitter &e, ThreadSet threads,
                        function_ref<void()> body) {
  auto ifOp = scf::IfOp::create(e.builder, e.loc, e.equalsC(threads.id, 0),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(e.builder);
  e.builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

void BulkCopy::issueLoad(Value barrier) {
  // Shared memory of the block is part of that of its cluster; the form for the
  // block alone needs PTX 8.6.
  Value target = LLVM::AddrSpaceCastOp::create(
      e.builder, e.loc, LLVM::LLVMPointerType::get(e.builder.getContext(), 7),
      tile);
  if (coordinates.empty()) {
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        e.builder, e.loc, target, source, barrier, e.c32(bytes),
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value());
    return;
  }
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      e.builder, e.loc, target, source, coordinates, barrier,
      /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
      /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
      /*group=*/nullptr, /*predicate=*/Value());
}

void BulkCopy::load(Value barrier) {
  load(e, threads, bytes, barrier,
       [&](SmallVectorImpl<BulkCopy> &copies) { copies.push_back(*this); });
}

void BulkCopy::load(Emitter &e, ThreadSet threads, int64_t bytes, Value barrier,
                    function_ref<void(SmallVectorImpl<BulkCopy> &)> build) {
  inOneThread(e, threads, [&] {
    NVVM::MBarrierExpectTxOp::create(e.builder, e.loc, barrier, e.c32(bytes),
                                     NVVM::MemScopeKind::CTA);
    SmallVector<BulkCopy> copies;
    build(copies);
    for (BulkCopy &copy : copies)
      copy.issueLoad(barrier);
  });
}

void BulkCopy::loadAndWait(Value scratch, function_ref<void()> barrier) {
  inOneThread(e, threads, [&] {
    NVVM::MBarrierInitOp::create(e.builder, e.loc, scratch, e.c32(1),
                                 /*predicate=*/Value());
    NVVM::FenceMbarrierInitOp::create(e.builder, e.loc);
    // Whatever the threads did to the tile before comes first.
    e.proxyFence();
    NVVM::MBarrierArriveExpectTxOp::create(
        e.builder, e.loc, Type(), scratch, e.c32(bytes),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    issueLoad(scratch);
  });
  barrier();
  e.waitForParity(scratch, e.c32(0));
  // A barrier of one phase: nobody has to know how often the copy has run.
  barrier();
  inOneThread(e, threads, [&] {
    NVVM::MBarrierInvalOp::create(e.builder, e.loc, scratch);
  });
}

void BulkCopy::store() {
  inOneThread(e, threads, [&] {
    // What other threads have written, this one has waited for.
    e.proxyFence();
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        e.builder, e.loc, source, tile, coordinates, /*l2CacheHint=*/Value(),
        NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
    NVVM::CpAsyncBulkCommitGroupOp::create(e.builder, e.loc);
    NVVM::CpAsyncBulkWaitGroupOp::create(e.builder, e.loc, /*group=*/0,
                                         e.builder.getUnitAttr());
  });
}
