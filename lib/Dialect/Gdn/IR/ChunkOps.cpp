//===- ChunkOps.cpp - cumsum, scores, tri_inverse -------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpVerification.h"

using namespace mlir;
using namespace mlir::gdn;

LogicalResult CumsumOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyF32(*this, "x", getX())))
    return failure();
  if (rankOf(getX()) < 1)
    return emitOpError(
        "expects 'x' to have rank 1 or more, but it is a scalar");
  if (failed(verifySameShape(*this, "out", getOut(), "x", getX())))
    return failure();
  return verifyF32(*this, "out", getOut());
}

LogicalResult ScoresOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyFloat(*this, "x", getX())) ||
      failed(verifyRank(*this, "x", getX(), 2)) ||
      failed(verifyStaticDim(*this, "x", getX(), 1, "head size")) ||
      failed(verifySameShape(*this, "y", getY(), "x", getX())) ||
      failed(verifyElementType(*this, "y", getY(), "x", getX())) ||
      failed(verifyStaticDim(*this, "y", getY(), 1, "head size")) ||
      failed(verifyRank(*this, "out", getOut(), 2)) ||
      failed(verifyF32(*this, "out", getOut())))
    return failure();
  SmallVector<NamedDim> chunk{{"x", getX(), 0},
                              {"y", getY(), 0},
                              {"out", getOut(), 0},
                              {"out", getOut(), 1}};
  if (Value gate = getGate()) {
    if (rankOf(gate) != 1 && rankOf(gate) != 2)
      return emitOpError("expects 'gate' to be [C] or [C, K], but its shape "
                         "is ")
             << shapeToString(gate);
    if (failed(verifyF32(*this, "gate", gate)))
      return failure();
    if (rankOf(gate) == 2 &&
        failed(verifyDimSize(*this, "gate", gate, 1, sizeOf(getX(), 1), "K")))
      return failure();
    chunk.push_back({"gate", gate, 0});
  }
  return verifyEqualSizes(*this, "C", chunk);
}

LogicalResult TriInverseOp::verify() {
  if (failed(verifyDestinationStyle(*this)) ||
      failed(verifyF32(*this, "x", getX())) ||
      failed(verifyRank(*this, "x", getX(), 2)) ||
      failed(verifyStaticDim(*this, "x", getX(), 0, "C")) ||
      failed(verifyDimSize(*this, "x", getX(), 1, sizeOf(getX(), 0), "C")) ||
      failed(verifySameShape(*this, "out", getOut(), "x", getX())) ||
      failed(verifyStaticDim(*this, "out", getOut(), 0, "C")) ||
      failed(verifyStaticDim(*this, "out", getOut(), 1, "C")))
    return failure();
  return verifyF32(*this, "out", getOut());
}
