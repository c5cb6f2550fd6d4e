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
    | `gdn.recurrence`, `phases = split` | `prepare` (per chunk and value head: T, P and the gates' sums) and `scan` (per sequence, value head and value block: the chunks in order) |
    | `gdn.recurrence`, `phases = fused` | `scan` with what `prepare` does in a `gdn_tile.ahead` |
    | `gdn.recurrence`, `phases = segmented` | `prepare`; `scan` of the first segment of each sequence; beside it `segments` (per segment between two boundaries, value head and block of rows: the state behind the segment from zero, and the transition matrix as more rows of the state); `scan_later`, of all other segments, each block of which walks from the first boundary to the one in front of its segment. Without `roles`, in float32, with erase or write, with more than 128 key channels, in high precision with key channels that are no multiple of 64, or with a `value_block` other than 64, `combine` (per sequence, value head and block of rows: the state at each boundary in order) and `scan` again, which starts from these |
    | `gdn.recurrence`, `phases = step` | `step` (token by token, the state in registers) |
    | `gdn.l2norm`, `gdn.gated_rms_norm`, `gdn.gate` | one each |
    | `linalg.fill` with a constant, `memref.copy`, elementwise linalg, on floats | one each |
    | `gdn.short_conv` | `short_conv` and, for the first W - 1 tokens and the state, `short_conv_edge` |

    Blocks of `prepare` take the chunks from the last to the first. Each kernel behind it but
    `segments` is launched `beside` the launch in front: its blocks find what they work on and
    then wait (`gdn_tile.await_launch`). Blocks of 128 rows, right behind `prepare`, also read
    their states before; those of segments behind boundaries are launched in order.
    `segments` with roles lets the launch behind it start when its last copies are issued.

    The loop over the chunks of `scan` and `segments` carries `gdn_tile.stages` when
    the schedule asks for more than one stage. Sizes that must be equal and are dynamic are
    compared by `cf.assert`.

    A fill of the state's destination right in front of a recurrence, by zeros or
    by another state, has no program: the kernel starts from zero or reads the
    other state itself. Likewise a `step` kernel does the work of `gdn.l2norm`,
    `gdn.gate` and elementwise linalg on q, k, gate and beta whose results nothing
    else reads; these are not rounded in between. So does `prepare`, of 16-bit inputs:
    with gates per head or none and no erase all of it, but `gdn.l2norm` only in bf16;
    with gates per channel all but the gates, and `gdn.l2norm` with at most 128 channels
    and `precision = default`. It normalises both of q and k or none: their elements stay
    as they are, and what normalises a token is a factor of products, of copies and of the
    rows that the scan reads (where eps is 1e-12 or more). The kernels of `gdn.short_conv`
    normalise the first heads of their result if `gdn.l2norm` would do it in place
    next.
  }];
  let options = [
    Option<"multiprocessors", "multiprocessors", "int64_t", /*default=*/"1",
           "blocks of a kernel whose blocks stay: as many as run at once">,
    Option<"lowScores", "low-scores", "int64_t", /*default=*/"1",
           "in chunks with split rows P has a second part too where the chunk, K and the rows of a "
           "block are multiples of this (0: nowhere): without products of warpgroups, which take "
           "multiples of 64, the registers do not suffice for it">,
    Option<"roles", "roles", "bool", /*default=*/"false",
           "loops of copies and products get warp roles (gdn-tile-specialize-warps): scans walk to the "
           "boundaries in front of their segments themselves">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::cf::ControlFlowDialect",
    "mlir::gdn_tile::GdnTileDialect",
    "mlir::math::MathDialect", "mlir::memref::MemRefDialect",
    "mlir::scf::SCFDialect", "mlir::vector::VectorDialect"
  ];
}

def ConvertGdnTileToVectorPass
    : Pass<"convert-gdn-tile-to-vector", "::mlir::ModuleOp"> {
  let summary = "lower tile programs to loops over vectors, for the CPU";
  let description = [{
    Before: tile programs (functions with `gdn_tile.kernel`) and `gdn_tile.launch`, with or
    without asynchronous copies and barriers. After: one function per tile program
    that runs one block, sequentially, and loops over the grid; no gdn_tile op is
    left.

    * The number of the block becomes a new first argument of type index.
    * Shared tiles become buffers on the heap in the default memory space, in plain
      row-major order, allocated at function entry.
    * A fragment becomes such a buffer too, and arithmetic on it a loop over
      vectors of at most 16 elements of a row.
    * Copies and products become loop nests. Asynchronous copies happen at once;
      tokens, waits, barriers and tensor maps disappear. Products of any type are
      computed in float32, whatever `passes` says.

    Errors: an op that a tile program must not contain.

    ```mlir
    gdn_tile.launch @scale grid(%n) (%x : memref<?x64xf32>)
    ```

    becomes

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      func.call @scale(%i, %x) : (index, memref<?x64xf32>) -> ()
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ConvertGdnTileToNVVMPass
    : Pass<"convert-gdn-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "lower tile programs to kernels in the NVVM dialect";
  let description = [{
    Before: tile programs (functions with `gdn_tile.kernel`) with their barriers, and
    `gdn_tile.launch`. After: a `gpu.module @kernels` with one `llvm.func` per tile
    program, control flow still in `scf`, and `gpu.launch_func`.

    * Memref arguments become `!llvm.ptr<1>` (16-byte aligned), index values i64, tensor
      maps 128 bytes by value in the parameters.
    * A fragment becomes the registers that a thread holds of it, as
      `FragmentLayout` says: scalars, or `vector<2xbf16>` for two neighbouring
      columns of a 16-bit type. A rounded accumulator thus is the A operand of the
      next product.
    * Allocations become places in one external shared-memory variable `@smem`
      as `SharedLayout` says. The kernel's `gdn.shared_bytes` has their sum, and
      each launch passes it.
    * Products become `mma.sync`, 16-bit operands in shared memory go through
      `ldmatrix`, `stmatrix` (sm_90 and later) or `movmatrix`; asynchronous
      copies become `cp.async` and tokens disappear. Copies with a tensor map become one
      `cp.async.bulk.tensor` where the whole tile is valid, and stay what they are where it is not.
      A copy of `lower` into a stage is one `cp.async.bulk` for each column of blocks; the zeros
      above the diagonal are written once, by all threads where the ring starts.
    * In roles of fewer than 224 registers products read left operands that are whole stages
      from shared memory.
    * exp, log, sqrt and the like are the hardware's approximations; nothing calls
      libdevice.

    Errors: an op, type or layout that has no lowering; more shared memory than
    `target` has.
  }];
  let options = [
    Option<"target", "target", "std::string", [{"sm_90a"}],
           "the GPU, as gdn-select-schedule">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ConvertNVVMToPtxPass : Pass<"convert-nvvm-to-ptx", "::mlir::ModuleOp"> {
  let summary = "compile modules of kernels to PTX, kernels side by side";
  let description = [{
    Before: a `gpu.module` with one target, of kernels in the LLVM and NVVM dialects.
    After: a `gpu.binary` of its name with the text of all its kernels.

    As `gpu-module-to-binary{format=isa}`, which takes a module as a whole. Here each
    kernel is a module of its own, with the declarations of the module, and the
    threads of the context compile them side by side. A module with a function that
    is no kernel, or with the definition of a variable, is compiled as a whole.

    Errors: no target, or several; what LLVM cannot compile.
  }];
  let dependentDialects = [
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
