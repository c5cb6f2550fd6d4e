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

def ConvertGdnToTilePass : Pass<"convert-gdn-to-tile", "mlir::ModuleOp"> {
  let summary = "convert gdn ops on memrefs to tile programs and their launches";
  let description = [{
    Before: functions with `gdn` ops on memrefs of identity layout, recurrences
    with a schedule. After: the same functions with workspaces and
    `gdn_tile.launch` ops, and beside each function its tile programs, synchronous
    and without barriers:

    | op | tile programs |
    |---|---|
    | `gdn.recurrence`, `phases = split` | `prepare` (per chunk and key head: T, P and the gates' sums) and `scan` (per sequence, value head and value block: the chunks in order) |
    | `gdn.recurrence`, `phases = step` | `step` (token by token, the state in registers) |
    | `gdn.l2norm`, `gdn.gated_rms_norm`, `gdn.gate` | one each |

    The loop over the chunks of the scan carries `gdn_tile.stages` when the schedule
    asks for more than one stage.
  }];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::gdn_tile::GdnTileDialect",
    "mlir::math::MathDialect", "mlir::memref::MemRefDialect",
    "mlir::scf::SCFDialect", "mlir::vector::VectorDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
