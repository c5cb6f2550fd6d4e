//===- Sequences.cpp - dense or packed sequences in a kernel --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sequences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

Value SequencesOf::countSlots(ImplicitLocOpBuilder &host) const {
  Value size = arith::ConstantIndexOp::create(host, chunk);
  if (offsets) {
    Value full = host.createOrFold<arith::DivUIOp>(length, size);
    return host.createOrFold<arith::AddIOp>(full, sequences);
  }
  Value perSequence = host.createOrFold<arith::CeilDivUIOp>(length, size);
  return host.createOrFold<arith::MulIOp>(sequences, perSequence);
}

StateEntry StateEntry::get(KernelBuilder &k, Value entries, Value n) {
  if (!entries)
    return {n, Value()};
  Value zero = k.index(0);
  Value entry = k.loadIndex(entries, n);
  Value isLive =
      k.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, entry, zero);
  return {k.createOrFold<arith::MaxSIOp>(entry, zero), isLive};
}

Value StateEntry::bound(KernelBuilder &k, Value count) const {
  if (!isLive)
    return count;
  return arith::SelectOp::create(k, isLive, count, k.index(0));
}

SequenceMap::SequenceMap(KernelBuilder &k, const SequencesOf &of)
    : k(k), chunk(of.chunk), every(of.every) {
  if (of.offsets) {
    offsets = k.argument(of.offsets);
    sequences = k.argument(of.sequences);
  } else {
    length = k.sizeArgument(of.length);
  }
}

Value SequenceMap::firstSlot(Value start, Value n) {
  if (offsets)
    return k.add(k.div(start, k.index(chunk)), n);
  return k.mul(n, k.ceilDiv(length, k.index(chunk)));
}

Sequence SequenceMap::at(Value n) {
  if (!offsets)
    return {k.mul(n, length), length, firstSlot(Value(), n),
            every ? k.mul(n, k.div(length, k.index(every))) : Value()};
  Value start = k.loadSize(offsets, n);
  Value end = k.loadSize(offsets, k.add(n, k.index(1)));
  return {start, k.sub(end, start), firstSlot(start, n),
          every ? k.div(start, k.index(every)) : Value()};
}

Value SequenceMap::find(Value slot) {
  if (!offsets)
    return k.div(slot, k.ceilDiv(length, k.index(chunk)));
  return gdn_tile::FindSequenceOp::create(k, k.getIndexType(), slot, offsets,
                                          sequences,
                                          k.getI64IntegerAttr(chunk));
}

Value SequenceMap::findPacked(Value place,
                              function_ref<Value(Value, Value)> placeOf) {
  // By bisection.
  auto loop = scf::WhileOp::create(
      k, TypeRange{k.getIndexType(), k.getIndexType()},
      ValueRange{k.index(0), sequences},
      [&](OpBuilder &, Location, ValueRange range) {
        Value width = k.sub(range[1], range[0]);
        scf::ConditionOp::create(k, k.less(k.index(1), width), range);
      },
      [&](OpBuilder &, Location, ValueRange range) {
        Value middle = k.div(k.add(range[0], range[1]), k.index(2));
        Value first = placeOf(k.loadSize(offsets, middle), middle);
        Value behind = k.less(place, first);
        Value low = arith::SelectOp::create(k, behind, range[0], middle);
        Value high = arith::SelectOp::create(k, behind, middle, range[1]);
        scf::YieldOp::create(k, ValueRange{low, high});
      });
  return loop.getResult(0);
}

Chunk SequenceMap::chunkAt(Value slot) {
  Value n = find(slot);
  Sequence sequence = at(n);
  Value start = k.mul(k.sub(slot, sequence.firstSlot), k.index(chunk));
  return {n, start, k.add(sequence.firstRow, start),
          k.sub(sequence.length, start)};
}
