//===- GdnBase.td - gdn dialect ----------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNBASE_TD
#define GDN_DIALECT_GDN_IR_GDNBASE_TD

include "mlir/IR/OpBase.td"

def Gdn_Dialect : Dialect {
  let name = "gdn";
  let cppNamespace = "::mlir::gdn";
  let summary = "Delta-rule recurrences and the parts of a token mixer around them";
  let description = [{
    The `gdn` dialect says *what* a delta-rule layer computes: linear attention,
    Mamba-2, GLA, DeltaNet, Gated DeltaNet, Kimi Delta Attention and Gated
    DeltaNet-2 are one op, `gdn.recurrence`, which of its operands are present
    selects the model. Beside it stand the other parts of a token mixer
    (`gdn.short_conv`, `gdn.l2norm`, `gdn.gate`, `gdn.gated_rms_norm`) and the
    chunk-level parts that its decomposition needs (`gdn.cumsum`,
    `gdn.scores`, `gdn.tri_inverse`).

    All ops are destination style and work on tensors or, after bufferization,
    on memrefs. Nothing in this dialect decides *how*: that is the attribute
    `#gdn.schedule`, which the pass `gdn-select-schedule` writes and which can be
    written by hand.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let hasRegionArgAttrVerify = 0;
}

#endif // GDN_DIALECT_GDN_IR_GDNBASE_TD
