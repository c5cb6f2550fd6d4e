//===- GdnTileBase.td - gdn_tile dialect, attributes, types *- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILEBASE_TD
#define GDN_DIALECT_GDNTILE_IR_GDNTILEBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def GdnTile_Dialect : Dialect {
  let name = "gdn_tile";
  let cppNamespace = "::mlir::gdn_tile";
  let summary = "Tile programs: fragments in registers, tiles in shared memory, copies, mma";
  let description = [{
    A *tile program* is a `func.func` with the attribute `gdn_tile.kernel`. One
    block of `warps` warps runs it; `gdn_tile.block_id` tells which. Its values
    are:

    * **fragments**: vectors of rank 2, `vector<MxNxT>`, spread over the registers of
      the block in the kernel's layout. `vector<Mx1xT>` holds one value per row,
      `vector<1xNxT>` one per column, replicated where the layout needs them;
      `vector.broadcast` expands them. All elementwise work is plain `arith` and
      `math` on fragments.
    * **global memory**: memrefs in the default memory space.
    * **shared memory**: `memref.alloc` results in
      `#gpu.address_space<workgroup>`, rank 1 or 2, static shapes; with one more
      leading dimension they are several tiles, of which `gdn_tile.stage` selects
      one. A rank-2 tile
      is stored in panels of 128, 64 or 32 bytes (the largest that divides a
      row), one panel after the other, each with its 16-byte chunks xor-swizzled
      by the row: exactly the 128-, 64- and 32-byte modes of TMA and wgmma. The
      layout is a function of the type, so there are no layout attributes.
    * **tensor maps**: descriptors of global memory for the copy engine, made by
      the host (`gdn_tile.make_tensor_map`) and passed by value.

    Without tokens a tile program is an ordinary sequential program over vectors
    and memrefs: `convert-gdn-tile-to-vector` runs it on the CPU. Asynchrony is in
    SSA: an asynchronous copy returns a token, `gdn_tile.wait` takes it; an
    asynchronous product returns a pending fragment, `gdn_tile.mma_wait` gives it.
    Barriers are inserted by one pass, `gdn-tile-insert-barriers`. The attribute
    `gdn_tile.stages = n` on an `scf.for` asks for n buffers per tile: copies run
    n - 1 iterations ahead (`gdn-tile-pipeline-copies`), or in warps of their own
    (`gdn-tile-specialize-warps`).

    Warps of a block may have different *roles* (`gdn_tile.roles`): one role computes,
    others copy. Roles exchange tiles through *rings*: a ring guards one or more
    allocations of n tiles. Its producers acquire a stage, fill it and commit
    it; its consumers wait for it, read it and release it. Nothing else
    orders the warps of two roles.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect"
  ];
}

def GdnTile_Layout : I32EnumAttr<"FragmentLayoutKind", "register layout of the fragments of a kernel", [
  I32EnumAttrCase<"Accumulator", 0, "accumulator">,
  I32EnumAttrCase<"Rows", 1, "rows">
]> {
  let cppNamespace = "::mlir::gdn_tile";
  let genSpecializedAttr = 0;
}

def GdnTile_KernelAttr : AttrDef<GdnTile_Dialect, "Kernel"> {
  let mnemonic = "kernel";
  let summary = "marks a function as a tile program";
  let description = [{
    | field | meaning |
    |---|---|
    | `warps` | warps per block, 1 to 16; with `gdn_tile.roles` those of the first role |
    | `layout` | `accumulator`: a fragment of M rows lies in the layout of the mma.sync m16n8 and wgmma accumulator, 16 rows per warp, M = 16 * warps; `rows`: each row lies in `lanes` neighbouring lanes, 16 bytes per lane in turn, for row sums and streaming |
    | `lanes` | lanes per row of the `rows` layout: 1, 2, 4, 8, 16 or 32 |
    | `blocks` | blocks that one SM shall hold at least: bounds the registers of a thread; absent = no bound |

    `accumulator`, for M = 16 * warps and N a multiple of 8: register r of lane l in warp w
    holds row 16 w + l/4 + 8 ((r/2) % 2) and column 8 (r/4) + 2 (l % 4) + r % 2.

    `rows` with L lanes, for M a multiple of warps * 32/L and N a multiple of E L
    or N = E * (a divisor of L), E = 16 bytes / element size of the state's type as
    `chunk` says: register r = (i, j, e) of lane l in warp w holds row
    (w + warps i) (32/L) + l / L and column (l % L) E + j E L + e. For N = 2 L it is
    E = 2: with 4 lanes and 8 columns that is the accumulator of mma.sync.
  }];
  let parameters = (ins
    "int64_t":$warps,
    EnumParameter<GdnTile_Layout>:$layout,
    DefaultValuedParameter<"int64_t", "0">:$lanes,
    DefaultValuedParameter<"int64_t", "4">:$chunk,
    DefaultValuedParameter<"int64_t", "0">:$blocks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def GdnTile_Token : TypeDef<GdnTile_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a group of asynchronous copies in flight";
}

def GdnTile_Pending : TypeDef<GdnTile_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "a fragment that a product in flight will have written";
  let description = [{
    `!gdn_tile.pending<vector<64x64xf32>>`: the result of an asynchronous
    `gdn_tile.mma`. Only `gdn_tile.mma_wait` turns it into a fragment; a further
    product may continue it as its accumulator without waiting.
  }];
  let parameters = (ins "::mlir::VectorType":$fragment);
  let assemblyFormat = "`<` $fragment `>`";
}

def GdnTile_Ring : TypeDef<GdnTile_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "stages of shared tiles that warps of different roles exchange";
  let description = [{
    `!gdn_tile.ring<n>`, n >= 1: n stages. Stage i mod n serves iteration i. A stage
    has two barriers in shared memory: *full*, when its producers have committed
    it and their copies have landed, and *empty*, when its consumers have released it.
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
}

def GdnTile_Slot : TypeDef<GdnTile_Dialect, "Slot"> {
  let mnemonic = "slot";
  let summary = "one stage of a ring that its producers fill";
}

def GdnTile_TensorMap : TypeDef<GdnTile_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "how the copy engine (TMA) finds tiles in a memref";
  let description = [{
    `!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>`: a
    descriptor of a memref in global memory of which one instruction moves a tile of
    `box` rows and columns, to or from a tile in shared memory of that shape and of the memref's
    element type. Dimension d of the tile runs along dimension `dims[d]` of the memref.

    The descriptor has up to five dimensions, the innermost first: columns, rows,
    the panels of the shared tile (if it has several), and what lies between rows
    and columns and in front of the rows in the memref, each as one dimension. Its
    swizzle is that of the panels: 128, 64 or 32 bytes. So any tile is one box.

    Elements are f16, bf16 or f32; the columns are contiguous; rows and all other
    dimensions are multiples of 16 bytes apart; a tile has a multiple of 8 rows, at most 256, and
    rows of a multiple of 32 bytes.
  }];
  let parameters = (ins "::mlir::MemRefType":$source,
                        ArrayRefParameter<"int64_t">:$dims,
                        ArrayRefParameter<"int64_t">:$box);
  let assemblyFormat = [{
    `<` $source `,` `dims` `=` `[` $dims `]` `,` `box` `=` `[` $box `]` `>`
  }];
  let genVerifyDecl = 1;
}

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILEBASE_TD
