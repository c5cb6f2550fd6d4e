//===- ConvertGdnToLoops.cpp - gdn to scalar loops ------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTOLOOPSPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

class ConvertGdnToLoopsPass
    : public gdn::impl::ConvertGdnToLoopsPassBase<ConvertGdnToLoopsPass> {
public:
  void runOnOperation() override;
};

} // namespace

void ConvertGdnToLoopsPass::runOnOperation() {
  SmallVector<Operation *> ops;
  bool anyTensor = false;
  getOperation()->walk([&](Operation *op) {
    if (!isa_and_nonnull<GdnDialect>(op->getDialect()))
      return;
    ops.push_back(op);
    if (cast<DestinationStyleOpInterface>(op).hasPureBufferSemantics())
      return;
    anyTensor = true;
    op->emitOpError("convert-gdn-to-loops works on memrefs; bufferize first");
  });
  if (anyTensor)
    return signalPassFailure();
  for (Operation *op : ops) {
    OpBuilder builder(op);
    LoopEmitter emit(builder, op->getLoc());
    llvm::TypeSwitch<Operation *>(op)
        .Case<RecurrenceOp, L2NormOp, GateOp, ShortConvOp, GatedRMSNormOp,
              CumsumOp, ScoresOp, TriInverseOp>(
            [&](auto concrete) { lowerToLoops(concrete, emit); });
    op->erase();
  }
}
