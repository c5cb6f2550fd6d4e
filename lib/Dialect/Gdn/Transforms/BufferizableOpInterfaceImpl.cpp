//===- BufferizableOpInterfaceImpl.cpp - bufferization of gdn ops ---------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Gdn/Transforms/BufferizableOpInterfaceImpl.h"

#include "gdn/Dialect/Gdn/IR/Gdn.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::bufferization;

namespace {

/// Every gdn op becomes itself on buffers and writes its destinations in place.
template <typename OpTy>
struct GdnOpInterface
    : DstBufferizableOpInterfaceExternalModel<GdnOpInterface<OpTy>, OpTy> {
  // A state (the second destination) is read; every other destination is
  // overwritten as a whole: if it has another user it needs a new buffer, but
  // no copy.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &state) const {
    auto dpsOp = cast<DestinationStyleOpInterface>(op);
    return !dpsOp.isDpsInit(&operand) || &operand != dpsOp.getDpsInitOperand(0);
  }

  // Every lowering reads a row as a whole before it writes it, so the two may
  // be one.
  bool bufferizesToElementwiseAccess(Operation *op, const AnalysisState &state,
                                     ArrayRef<OpOperand *> operands) const {
    return isa<L2NormOp>(op);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    Operation *buffered =
        mlir::clone(rewriter, op, /*newResultTypes=*/TypeRange(), buffers);
    auto inits = cast<DestinationStyleOpInterface>(buffered).getDpsInits();
    replaceOpWithBufferizedValues(rewriter, op, SmallVector<Value>(inits));
    return success();
  }
};

template <typename... Ops>
void attachAll(MLIRContext *context) {
  (Ops::template attachInterface<GdnOpInterface<Ops>>(*context), ...);
}

} // namespace

void mlir::gdn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GdnDialect *dialect) {
    attachAll<RecurrenceOp, L2NormOp, GateOp, ShortConvOp, GatedRMSNormOp,
              CumsumOp, ScoresOp, TriInverseOp>(context);
  });
}
