//===- Passes.td - conversion passes -----------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_PASSES_TD
#define GDN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGdnToLoopsPass : Pass<"convert-gdn-to-loops"> {
  let summary = "lower gdn ops on memrefs to scalar loops";
  let description = [{
    Before: any gdn op on memrefs. After: `scf.for`, `memref.load` and
    `memref.store`, and scalar `arith` and `math` in float32; no gdn op is left.

    The reference implementation: each op is written down from its definition,
    token by token, every sum in ascending order, and nothing is chunked, fused or
    vectorized. The other lowerings are compared with it. A recurrence keeps the
    state of the current head in a local float32 buffer, whatever its layout and
    element type are, and rounds it once at the end. Destinations must not
    overlap inputs.

    An op on tensors is an error: bufferize first.

    ```mlir
    gdn.cumsum ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
    ```

    becomes

    ```mlir
    scf.for %i = %c0 to %c8 step %c1 {
      %first = arith.cmpi slt, %c0, %i : index
      %before = scf.if %first -> (f32) { ... memref.load %y[%i - 1] ... } else { 0.0 }
      %0 = memref.load %x[%i] : memref<8xf32>
      %1 = arith.addf %before, %0 : f32
      memref.store %1, %y[%i] : memref<8xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
