//===- MatrixMoves.cpp - 8x8 matrices of 16-bit elements ------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixMoves.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;

static NVVM::MMALayout getOrder(bool transpose) {
  return transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row;
}

SmallVector<Value> mlir::gdn::loadMatrices(Emitter &e, Value address,
                                           bool transpose) {
  MLIRContext *context = e.builder.getContext();
  SmallVector<Type> types(4, e.i32());
  Value loaded = NVVM::LdMatrixOp::create(
      e.builder, e.loc, LLVM::LLVMStructType::getLiteral(context, types),
      address, /*num=*/4, getOrder(transpose),
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltType::B16);
  return e.extractAll(loaded);
}

void mlir::gdn::storeMatrices(Emitter &e, Value address, ValueRange matrices,
                              bool transpose) {
  NVVM::StMatrixOp::create(
      e.builder, e.loc, address, matrices, getOrder(transpose),
      NVVM::LdStMatrixShapeAttr::get(e.builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
}

Value mlir::gdn::transposeMatrix(Emitter &e, Value matrix) {
  // MLIR 22 has no op for movmatrix.
  return LLVM::InlineAsmOp::create(
             e.builder, e.loc, TypeRange(e.i32()), ValueRange(matrix),
             "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(e.builder.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getResult(0);
}
