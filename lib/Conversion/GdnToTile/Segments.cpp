//===- Segments.cpp - sequences cut into segments in a kernel -------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;

static Value constant(ImplicitLocOpBuilder &host, int64_t value) {
  return arith::ConstantIndexOp::create(host, value);
}

static Value tokensOf(ImplicitLocOpBuilder &host, const SegmentsOf &of) {
  return host.createOrFold<arith::MulIOp>(of.chunks,
                                          constant(host, of.sequences.chunk));
}

// Of X tokens, and E more in the first segment: (length - 1 - E) / X.
Value SegmentsOf::boundariesOfEach(ImplicitLocOpBuilder &host) const {
  Value extra = host.createOrFold<arith::CeilDivUIOp>(
      chunks, constant(host, chunksPerExtra));
  Value first = host.createOrFold<arith::AddIOp>(
      host.createOrFold<arith::MulIOp>(extra, constant(host, sequences.chunk)),
      constant(host, 1));
  Value length = host.createOrFold<arith::MaxUIOp>(sequences.length, first);
  Value last = host.createOrFold<arith::SubIOp>(length, first);
  return host.createOrFold<arith::DivUIOp>(last, tokensOf(host, *this));
}

Value SegmentsOf::countBoundaries(ImplicitLocOpBuilder &host) const {
  if (sequences.offsets)
    return host.createOrFold<arith::DivUIOp>(sequences.length,
                                             tokensOf(host, *this));
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
    : k(k), sequences(k, of.sequences) {
  if (!of.chunks)
    return;
  ImplicitLocOpBuilder host(k.getLoc(), k.getHost());
  chunks = k.sizeArgument(of.chunks);
  extraChunks = k.ceilDiv(chunks, k.index(of.chunksPerExtra));
  tokens = k.mul(chunks, k.index(of.sequences.chunk));
  extraTokens = k.mul(extraChunks, k.index(of.sequences.chunk));
  if (!of.sequences.offsets)
    boundariesOfEach = k.sizeArgument(of.boundariesOfEach(host));
}

Segment SegmentMap::sequence(Value n) {
  Segment segment;
  segment.n = n;
  segment.rows = sequences.at(n);
  if (!chunks)
    return segment;
  if (boundariesOfEach) {
    segment.boundaries = boundariesOfEach;
    segment.firstBoundary = k.mul(n, boundariesOfEach);
    return segment;
  }
  Value first = k.add(extraTokens, k.index(1));
  Value last = k.sub(k.max(segment.rows.length, first), first);
  segment.boundaries = k.div(last, tokens);
  segment.firstBoundary = k.div(segment.rows.firstRow, tokens);
  return segment;
}

Segment SegmentMap::segmentOf(Value n, Value index) {
  Segment segment = sequence(n);
  segment.index = index;
  Value isLater = k.min(index, k.index(1));
  Value before = k.mul(isLater, extraTokens);
  segment.start = k.add(k.mul(index, tokens), before);
  Sequence &rows = segment.rows;
  Value left = k.max(k.sub(rows.length, segment.start), k.index(0));
  rows.firstRow = k.add(rows.firstRow, segment.start);
  rows.length = k.min(left, k.sub(k.add(tokens, extraTokens), before));
  rows.firstSlot = k.add(
      rows.firstSlot, k.add(k.mul(index, chunks), k.mul(isLater, extraChunks)));
  return segment;
}

Segment SegmentMap::at(Value place, Value isLater) {
  if (!chunks)
    return sequence(place);
  if (boundariesOfEach) {
    Value count = k.max(k.mul(isLater, boundariesOfEach), k.index(1));
    return segmentOf(k.div(place, count), k.add(k.rem(place, count), isLater));
  }
  Value isFirst = k.equal(isLater, k.index(0));
  auto placeOf = [&](Value start, Value n) -> Value {
    return arith::SelectOp::create(k, isFirst, n, k.div(start, tokens));
  };
  Value n = sequences.findPacked(place, placeOf);
  Value first = placeOf(sequences.at(n).firstRow, n);
  return segmentOf(n, k.add(k.sub(place, first), isLater));
}

Segment SegmentMap::inner(Value place) {
  if (boundariesOfEach) {
    Value one = k.index(1);
    Value count = k.max(k.sub(boundariesOfEach, one), one);
    return segmentOf(k.div(place, count), k.add(k.rem(place, count), one));
  }
  auto placeOf = [&](Value start, Value n) { return k.div(start, tokens); };
  Value n = sequences.findPacked(place, placeOf);
  Value first = k.div(sequences.at(n).firstRow, tokens);
  return segmentOf(n, k.sub(place, first));
}
