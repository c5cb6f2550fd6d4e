//===- GdnDialect.cpp - gdn dialect ---------------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

#include "gdn/Dialect/Gdn/IR/GdnDialect.cpp.inc"
#include "gdn/Dialect/Gdn/IR/GdnEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/Gdn/IR/GdnAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "gdn/Dialect/Gdn/IR/GdnOps.cpp.inc"

void GdnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/Gdn/IR/GdnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/Gdn/IR/GdnOps.cpp.inc"
      >();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Phases phases, int64_t chunk,
                                   int64_t valueBlock, int64_t stages,
                                   int64_t segments, int64_t segmentChunks,
                                   int64_t warps, bool streaming, bool overlap,
                                   Precision precision, int64_t wideFrom,
                                   bool scoresAhead, int64_t residentFrom) {
  if (phases == Phases::Auto) {
    if (chunk == 0 && valueBlock == 0 && stages == 1 && segments == 0 &&
        segmentChunks == 1 && warps == 1 && !streaming && !overlap &&
        wideFrom == 0 && !scoresAhead && residentFrom == 0)
      return success();
    return emitError() << "schedule: with phases = auto only precision can be "
                          "asked for; the other fields need phases";
  }
  bool isStepChunk = chunk == 8 && phases == Phases::Step;
  if (chunk != 16 && chunk != 32 && chunk != 64 && !isStepChunk)
    return emitError() << "schedule: chunk must be 16, 32 or 64, but is "
                       << chunk;
  if (valueBlock < 1 || valueBlock > 512)
    return emitError() << "schedule: value_block must lie in 1..512, but is "
                       << valueBlock;
  if (stages < 1 || stages > 4)
    return emitError() << "schedule: stages must lie in 1..4, but is "
                       << stages;
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (phases == Phases::Segmented) {
    if (segments < 1 || segments > limit)
      return emitError() << "schedule: segmented phases need segments in 1.."
                         << limit << ", but segments is " << segments;
    if (segmentChunks < 1 || segmentChunks > limit)
      return emitError() << "schedule: segment_chunks must lie in 1.." << limit
                         << ", but is " << segmentChunks;
  } else if (segments != 0 || segmentChunks != 1) {
    return emitError() << "schedule: segments and segment_chunks belong to "
                          "segmented phases, but phases is "
                       << stringifyPhases(phases);
  }
  if (wideFrom < 0 || wideFrom > limit)
    return emitError() << "schedule: wide_from must lie in 0.." << limit
                       << ", but is " << wideFrom;
  if (wideFrom && phases == Phases::Fused)
    return emitError() << "schedule: wide_from belongs to split, segmented and "
                          "step phases, but phases is "
                       << stringifyPhases(phases);
  if (scoresAhead && phases != Phases::Split && phases != Phases::Segmented)
    return emitError() << "schedule: scores_ahead belongs to split and "
                          "segmented phases, but phases is "
                       << stringifyPhases(phases);
  if (residentFrom < 0 || residentFrom > limit)
    return emitError() << "schedule: resident_from must lie in 0.." << limit
                       << ", but is " << residentFrom;
  if (residentFrom && !scoresAhead)
    return emitError() << "schedule: resident_from belongs to scores_ahead";
  if (warps < 1 || warps > 16)
    return emitError() << "schedule: warps must lie in 1..16, but is " << warps;
  if (phases != Phases::Step && (warps != 1 || streaming || overlap))
    return emitError()
           << "schedule: warps, streaming and overlap are of step phases";
  return success();
}
