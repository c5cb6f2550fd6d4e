//===- SizeChecks.cpp - run-time checks of dynamic sizes ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifiers compare static sizes. What they cannot see, because it is
// dynamic, becomes a cf.assert in front of the launches: on the host it stops
// the program, in a manifest it is a check that the launcher makes before any
// kernel reads out of bounds.
//
//===----------------------------------------------------------------------===//

#include "SizeChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// A named operand; absent ones are skipped.
struct Operand {
  StringRef name;
  Value value;
};

class Checker {
public:
  Checker(Operation *op) : b(op->getLoc(), op) {}

  /// Size `dim` of `a` equals size `otherDim` of `other` minus `less`.
  void sameSize(Operand a, int64_t dim, Operand other, int64_t otherDim,
                int64_t less = 0) {
    if (!a.value || !isDynamic(a.value, dim, other.value, otherDim))
      return;
    std::string text =
        ("size of dimension " + Twine(dim) + " of '" + a.name +
         "' must be that of dimension " + Twine(otherDim) + " of '" +
         other.name + "'" + (less ? " - " + Twine(less) : Twine()))
            .str();
    Value expected = size(other.value, otherDim);
    if (less)
      expected = b.createOrFold<arith::SubIOp>(
          expected, arith::ConstantIndexOp::create(b, less).getResult());
    require(size(a.value, dim), expected, text);
  }

  void sameSizes(ArrayRef<Operand> operands, ArrayRef<int64_t> dims,
                 Operand other) {
    for (Operand operand : operands)
      for (int64_t dim : dims)
        sameSize(operand, dim, other, dim);
  }

  /// N, the first size of `perSequence`, is B of `batched`, or with offsets
  /// their number, and then B is 1.
  void sequences(Operand perSequence, Value offsets, Operand batched) {
    if (!offsets)
      return sameSize(perSequence, 0, batched, 0);
    sameSize(perSequence, 0, {"offsets", offsets}, 0, /*less=*/1);
    if (cast<MemRefType>(batched.value.getType()).isDynamicDim(0))
      require(size(batched.value, 0), arith::ConstantIndexOp::create(b, 1),
              ("B of '" + batched.name + "' must be 1 with 'offsets'").str());
  }

  /// [B, T / every] of `checkpoints`.
  void checkpoints(Operand checkpoints, Operand batched, int64_t every) {
    sameSize(checkpoints, 0, batched, 0);
    if (!isDynamic(checkpoints.value, 1, batched.value, 1))
      return;
    Value divisor = arith::ConstantIndexOp::create(b, every);
    Value count =
        b.createOrFold<arith::DivUIOp>(size(batched.value, 1), divisor);
    require(size(checkpoints.value, 1), count,
            ("size of dimension 1 of 'checkpoints' must be that of dimension "
             "1 of '" +
             batched.name + "' / " + Twine(every))
                .str());
  }

private:
  static bool isDynamic(Value a, int64_t dim, Value other, int64_t otherDim) {
    if (a == other && dim == otherDim)
      return false;
    return cast<MemRefType>(a.getType()).isDynamicDim(dim) ||
           cast<MemRefType>(other.getType()).isDynamicDim(otherDim);
  }

  Value size(Value memref, int64_t dim) {
    return b.createOrFold<memref::DimOp>(memref, dim);
  }

  void require(Value a, Value expected, StringRef text) {
    Value equal =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, expected);
    cf::AssertOp::create(b, equal, text);
  }

  ImplicitLocOpBuilder b;
};

} // namespace

static void checkRecurrence(RecurrenceOp op) {
  Checker check(op);
  Operand q{"q", op.getQ()};
  check.sameSizes({{"k", op.getK()},
                   {"v", op.getV()},
                   {"gate", op.getGate()},
                   {"beta", op.getBeta()},
                   {"erase", op.getErase()},
                   {"write", op.getWrite()},
                   {"out", op.getOut()}},
                  {0, 1}, q);
  // A pool of slots has any number of entries.
  Operand perSequence{op.getState() ? "state" : "initial",
                      op.getInitialState()};
  if (op.getSlots())
    perSequence = {"slots", op.getSlots()};
  check.sequences(perSequence, op.getOffsets(), q);
  if (op.getCheckpoints())
    check.checkpoints({"checkpoints", op.getCheckpoints()}, q,
                      op.getCheckpointDistance());
}

static void checkShortConv(ShortConvOp op) {
  Checker check(op);
  Operand x{"x", op.getX()};
  check.sameSizes({{"out", op.getOut()}}, {0, 1}, x);
  check.sequences({"state", op.getState()}, op.getOffsets(), x);
}

static void checkSameShape(Operation *op, ArrayRef<Operand> operands,
                           Operand other) {
  Checker check(op);
  int64_t rank = cast<MemRefType>(other.value.getType()).getRank();
  check.sameSizes(operands, llvm::to_vector(llvm::seq<int64_t>(0, rank)),
                  other);
}

void mlir::gdn::checkDynamicSizes(Operation *op) {
  // The conversion itself reports ops on tensors.
  if (!llvm::all_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
    return;
  llvm::TypeSwitch<Operation *>(op)
      .Case(checkRecurrence)
      .Case(checkShortConv)
      .Case([](L2NormOp norm) {
        checkSameShape(norm, {{"out", norm.getOut()}}, {"x", norm.getX()});
      })
      .Case([](GateOp gate) {
        checkSameShape(gate, {{"out", gate.getOut()}}, {"a", gate.getA()});
      })
      .Case([](GatedRMSNormOp norm) {
        checkSameShape(norm, {{"z", norm.getZ()}, {"out", norm.getOut()}},
                       {"x", norm.getX()});
      });
}
