//===- Segments.cpp - sequences cut into segments in a kernel -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

static Value constant(ImplicitLocOpBuilder &host, int64_t value) {
  return arith::ConstantIndexOp::create(host, value);
}

// Of X tokens, and E more in the first segment: (length - 1 - E) / X.
Value SegmentsOf::boundariesOfEach(ImplicitLocOpBuilder &host) const {
  if (sequences.offsets)
    return countBoundaries(host);
  Value share = host.createOrFold<arith::CeilDivUIOp>(
      chunks, constant(host, extra.chunksPerOne));
  Value more =
      host.createOrFold<arith::AddIOp>(share, constant(host, extra.always));
  Value size = constant(host, sequences.chunk);
  Value first = host.createOrFold<arith::AddIOp>(
      host.createOrFold<arith::MulIOp>(more, size), constant(host, 1));
  Value length = host.createOrFold<arith::MaxUIOp>(sequences.length, first);
  Value last = host.createOrFold<arith::SubIOp>(length, first);
  return host.createOrFold<arith::DivUIOp>(
      last, host.createOrFold<arith::MulIOp>(chunks, size));
}

Value SegmentsOf::countBoundaries(ImplicitLocOpBuilder &host) const {
  if (sequences.offsets)
    return host.createOrFold<arith::DivUIOp>(sequences.length, spacing);
  return host.createOrFold<arith::MulIOp>(sequences.sequences,
                                          boundariesOfEach(host));
}

Value SegmentsOf::countInner(ImplicitLocOpBuilder &host) const {
  if (sequences.offsets)
    return countBoundaries(host);
  Value one = constant(host, 1);
  Value most = host.createOrFold<arith::MaxUIOp>(boundariesOfEach(host), one);
  return host.createOrFold<arith::MulIOp>(
      sequences.sequences, host.createOrFold<arith::SubIOp>(most, one));
}

SegmentMap::SegmentMap(KernelBuilder &k, const SegmentsOf &of)
    : k(k), sequences(k, of.sequences), chunk(of.sequences.chunk),
      extra(of.extra), leastChunks(of.leastChunks) {
  if (of.spacing)
    spacing = k.sizeArgument(of.spacing);
  if (!of.chunks)
    return;
  ImplicitLocOpBuilder host(k.getLoc(), k.getHost());
  each = withExtra(k.sizeArgument(of.chunks));
  boundariesOfEach = k.sizeArgument(of.boundariesOfEach(host));
}

SegmentMap::Lengths SegmentMap::withExtra(Value chunks) {
  Lengths lengths;
  lengths.chunks = chunks;
  lengths.extraChunks = k.add(k.ceilDiv(chunks, k.index(extra.chunksPerOne)),
                              k.index(extra.always));
  lengths.tokens = k.mul(chunks, k.index(chunk));
  lengths.extraTokens = k.mul(lengths.extraChunks, k.index(chunk));
  return lengths;
}

// Numbers of tokens fit 32 bits, as the sizes of tensor maps do. Of 64 bits
// ptxas makes a call, and spills around it.
Value SegmentMap::divide(Value a, Value b) {
  auto narrow = [&](Value value) {
    return k.createOrFold<arith::IndexCastUIOp>(k.getI32Type(), value);
  };
  Value quotient = k.createOrFold<arith::DivUIOp>(narrow(a), narrow(b));
  return k.createOrFold<arith::IndexCastUIOp>(k.getIndexType(), quotient);
}

// Equal shares for one boundary every `spacing` tokens, the first of which
// counts as more than one; more chunks than there are where nothing is cut.
SegmentMap::Lengths SegmentMap::cut(Value length) {
  Value one = k.index(1), perOne = k.index(extra.chunksPerOne);
  Value all = k.ceilDiv(length, k.index(chunk));
  Value places = divide(length, spacing);
  Value inner = k.max(k.sub(places, one), one);
  Value gains =
      k.less(k.index(kLeastGain * (leastChunks - 1)), k.mul(all, inner));
  Value isLong = k.less(k.index(kLeastChunks * leastChunks), all);
  places = k.onlyIf(gains, k.onlyIf(isLong, places));
  Value shares = k.add(k.mul(k.add(places, one), perOne), one);
  Value shared = k.mul(k.sub(all, k.index(extra.always)), perOne);
  Value last = k.add(shared, k.sub(shares, one));
  Value chunks = k.max(divide(last, shares), k.index(leastChunks));
  return withExtra(arith::SelectOp::create(k, k.less(k.index(0), places),
                                           chunks, k.add(all, one)));
}

Value SegmentMap::countBoundaries(Value length, const Lengths &lengths) {
  Value first = k.add(lengths.extraTokens, k.index(1));
  return divide(k.sub(k.max(length, first), first), lengths.tokens);
}

Segment SegmentMap::sequence(Value n, Lengths &lengths) {
  Segment segment;
  segment.n = n;
  segment.rows = sequences.at(n);
  if (boundariesOfEach) {
    lengths = each;
    segment.boundaries = boundariesOfEach;
  } else if (spacing) {
    lengths = cut(segment.rows.length);
    segment.boundaries = countBoundaries(segment.rows.length, lengths);
  }
  return segment;
}

Segment SegmentMap::sequence(Value n) {
  Lengths lengths;
  return sequence(n, lengths);
}

Segment SegmentMap::segmentOf(Value n, Value index) {
  Lengths lengths;
  Segment segment = sequence(n, lengths);
  Sequence &rows = segment.rows;
  segment.index = index;
  Value isLater = k.min(index, k.index(1));
  Value before = k.mul(isLater, lengths.extraTokens);
  segment.start = k.add(k.mul(index, lengths.tokens), before);
  Value left = k.max(k.sub(rows.length, segment.start), k.index(0));
  rows.firstRow = k.add(rows.firstRow, segment.start);
  rows.length =
      k.min(left, k.sub(k.add(lengths.tokens, lengths.extraTokens), before));
  rows.firstSlot =
      k.add(rows.firstSlot, k.add(k.mul(index, lengths.chunks),
                                  k.mul(isLater, lengths.extraChunks)));
  if (!spacing) {
    segment.isLast = k.equal(index, segment.boundaries);
    return segment;
  }
  // What is left from its start is all its own. Without the boundaries, which
  // take a division; a place behind the last segment has nothing left.
  Value exists =
      k.less(k.index(0), k.max(rows.length, k.sub(k.index(1), isLater)));
  segment.isLast =
      k.createOrFold<arith::AndIOp>(exists, k.equal(left, rows.length));
  return segment;
}

Value SegmentMap::firstBoundary(const Segment &segment) {
  if (boundariesOfEach)
    return k.mul(segment.n, boundariesOfEach);
  return divide(sequences.at(segment.n).firstRow, spacing);
}

Value SegmentMap::isFirstOfSeveral(const Segment &segment, Value isLater) {
  if (!spacing)
    return k.less(isLater, k.min(segment.boundaries, k.index(1)));
  Value isFirst = k.equal(isLater, k.index(0));
  return arith::SelectOp::create(
      k, segment.isLast, arith::ConstantOp::create(k, k.getBoolAttr(false)),
      isFirst);
}

Segment SegmentMap::at(Value place, Value isLater) {
  if (!isLater)
    return sequence(place);
  if (isConstantIntValue(isLater, 0))
    return segmentOf(place, isLater);
  if (boundariesOfEach) {
    Value count = k.max(k.mul(isLater, boundariesOfEach), k.index(1));
    Value n = divide(place, count);
    return segmentOf(n, k.add(k.sub(place, k.mul(n, count)), isLater));
  }
  Value isFirst = k.equal(isLater, k.index(0));
  auto placeOf = [&](Value start, Value n) -> Value {
    return arith::SelectOp::create(k, isFirst, n, divide(start, spacing));
  };
  Value n = sequences.findPacked(place, placeOf);
  Value first = placeOf(sequences.at(n).firstRow, n);
  return segmentOf(n, k.add(k.sub(place, first), isLater));
}

Segment SegmentMap::inner(Value place) {
  if (boundariesOfEach) {
    Value one = k.index(1);
    Value count = k.max(k.sub(boundariesOfEach, one), one);
    Value n = divide(place, count);
    return segmentOf(n, k.add(k.sub(place, k.mul(n, count)), one));
  }
  auto placeOf = [&](Value start, Value n) { return divide(start, spacing); };
  Value n = sequences.findPacked(place, placeOf);
  Value first = divide(sequences.at(n).firstRow, spacing);
  return segmentOf(n, k.sub(place, first));
}
