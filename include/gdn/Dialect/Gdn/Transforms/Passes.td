//===- Passes.td - gdn passes ------------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GdnDecomposePass : InterfacePass<"gdn-decompose", "mlir::FunctionOpInterface"> {
  let summary = "gdn ops to linalg";
  let description = [{
    Replaces every gdn op on tensors by its decomposition into linalg, scf, arith
    and math, until none is left: a recurrence on one block and one chunk becomes
    products, elementwise ops and chunk ops, those become linalg in turn. All
    arithmetic is float32; the formulas stand at the ops.

    It is an error at the op when one cannot be decomposed, for example a
    recurrence that is not yet tiled.
  }];
  let options = [
    ListOption<"ops", "ops", "std::string",
               "names of the ops to decompose, such as gdn.recurrence; all when empty">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def GdnHoistBuffersPass : InterfacePass<"gdn-hoist-buffers", "mlir::FunctionOpInterface"> {
  let summary = "allocations out of loops and branches";
  let description = [{
    An allocation moves in front of every loop and branch around it, as far as its
    sizes are known there, so that each buffer is allocated once per call.
    Buffers that a loop or branch hands on stay where they are.

    In place of `buffer-hoisting` and `buffer-loop-hoisting`, which leave the
    buffers of a branch inside of it, and so inside the loops around it.
  }];
}

def GdnLowerCopiesPass : InterfacePass<"gdn-lower-copies", "mlir::FunctionOpInterface"> {
  let summary = "strided memref.copy to linalg.generic";
  let description = [{
    A copy whose source or target is strided becomes an elementwise op, and so
    loops. Upstream's lowering calls `memrefCopy` of MLIR's runtime library for
    it, which a machine without LLVM does not have. Dense copies stay.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def GdnLowerVectorsPass : InterfacePass<"gdn-lower-vectors", "mlir::FunctionOpInterface"> {
  let summary = "vector ops on memrefs to one-dimensional ones";
  let description = [{
    Contractions become outer products and those multiply-adds of rows, transfers
    become loads and stores of rows, transposes shuffles, and `math.exp` a
    polynomial. Sums within a vector may be taken in any order.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def GdnNormalizePass : InterfacePass<"gdn-normalize", "mlir::FunctionOpInterface"> {
  let summary = "one way to write each gdn op";
  let description = [{
    Writes what is implied and drops what has no effect, so that later passes
    meet one form:

    - `scale` is explicit;
    - offsets of a single sequence are dropped (they are 0 and T);
    - without sequences or without tokens (N = 0 or T = 0, static) the results
      are the destinations;
    - a gdn op on memrefs becomes one on tensors whose results are materialized
      in the memrefs. A destination may be an input; views that overlap in part
      may not be passed.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def GdnSelectSchedulePass : InterfacePass<"gdn-select-schedule", "mlir::FunctionOpInterface"> {
  let summary = "write #gdn.schedule on each recurrence that has none, or none but its precision";
  let description = [{
    Before: `gdn.recurrence` with or without a schedule. After: each carries one whose `phases` are not `auto`.
    The only place that decides; every later pass reads the attribute.

    | target | phases | chunk | value_block | stages |
    |---|---|---|---|---|
    | `cpu`, static T <= 8 | `step` | 16 (not used) | V, at most 256 | 1 |
    | `cpu`, else | `fused` | 32, less for a shorter static T | V, at most 256 | 1 |
    | GPU, static T <= 8 without offsets | `step` | 8 (two tokens and more, 16-bit q, k and v, a v_first state, no gate per channel), else 16 (not used) | 8 to 32 | 1 |
    | GPU, else | `split` | the largest of 64 (32 where K > 128), 32, 16 that fits | V rounded up to 16, at most 64 | 2, or 1 where no chunk fits with 2 |

    On sm_90a with 16-bit inputs, V a multiple of 128, K <= 128 and no checkpoints the
    scan has blocks of 128 rows of the state where blocks of 64 would need more than
    one wave of 132, and tiles of that size fit as many stages. With a static number of
    sequences that is `value_block`, else `wide_from`. Of the delta rule with a gate per head
    or none and one value head for each key head such blocks make P themselves
    (`scores_ahead`), but not where T is static and one chunk. Few states of decode steps have
    more warps and go past the caches, and those of more tokens blocks of 16 rows
    instead of 32; which is decided in the same two ways.

    A chunk fits when the tiles of the prepare and of the scan kernel fit the
    target's shared memory per block. It is an error when none does. With
    `precision = high`, by the attribute of an op or for all of them by the option,
    the longest chunk of 16-bit inputs is half as long: what has two parts takes
    twice the registers.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "cpu, sm_80, sm_86, sm_89, sm_90a, sm_100 or sm_120">,
    Option<"precision", "precision", "std::string", "\"default\"",
           "default or high: least precision of the schedules that are written">
  ];
}

def GdnTileBlocksPass : InterfacePass<"gdn-tile-blocks", "mlir::FunctionOpInterface"> {
  let summary = "a parallel loop over sequences, heads and value blocks";
  let description = [{
    Each recurrence becomes an `scf.forall` over (sequence, value head, block of
    value channels) around a recurrence on one block: B = Hqk = Hv = 1 and V is
    the schedule's `value_block`. A V that it does not divide gives a second loop
    for the rest. With offsets the block is the time slice of its sequence.

    It is an error when the recurrence has no schedule.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def GdnTileChunksPass : InterfacePass<"gdn-tile-chunks", "mlir::FunctionOpInterface"> {
  let summary = "a sequential loop over the chunks of a block";
  let description = [{
    Each recurrence on one block becomes an `scf.for` over time that carries out
    and state; the body is a recurrence on `chunk` tokens (one token when
    `phases` is `step`). Tokens left over are padded with zeros to a full chunk,
    which is neutral: key, value, gate and beta are 0. They are handled behind
    the loop, under a condition when T is dynamic; a T that is a multiple of the
    chunk has no such part.

    The loop carries the state as float32 and k_first, whatever the op stores,
    so that it is rounded once and every product reads it by rows.

    It is an error when the recurrence has no schedule or is not on one block.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def GdnTileLinalgPass : InterfacePass<"gdn-tile-linalg", "mlir::FunctionOpInterface"> {
  let summary = "linalg ops on tensors to tiles of vector registers";
  let description = [{
    Products become loops over tiles of 8 x 32 results with the sum over single
    columns inside, so that the tile stays in registers, and with the fill of
    the accumulator in the loops; elementwise ops become rows of 64, transposes
    16 x 16, sums rows of up to 256; loops of dynamic size become single steps. A size
    that has no divisor near these limits is split into two ops, so no tile is
    ragged.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def GdnVectorizeLinalgPass : InterfacePass<"gdn-vectorize-linalg", "mlir::FunctionOpInterface"> {
  let summary = "linalg tiles on tensors to vector ops";
  let description = [{
    Every static linalg op of at most 4096 points becomes vector transfers and
    arithmetic on vectors; the others stay. A tile that all iterations of a loop
    read and write, such as the result of a product, becomes a vector carried by
    the loop.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"
  ];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
