//===- GdnTileWarpOps.td - work of single warps ------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILEWARPOPS_TD
#define GDN_DIALECT_GDNTILE_IR_GDNTILEWARPOPS_TD

include "mlir/Interfaces/ControlFlowInterfaces.td"

def GdnTile_Precision : I32EnumAttr<"ProductPrecision", "how operands enter a product of tensor cores", [
  I32EnumAttrCase<"TF32", 0, "tf32">,
  I32EnumAttrCase<"BF16x3", 1, "bf16x3">,
  I32EnumAttrCase<"TF32x3", 2, "tf32x3">,
  I32EnumAttrCase<"Exact", 3, "exact">
]> {
  let cppNamespace = "::mlir::gdn_tile";
  let genSpecializedAttr = 0;
}

def GdnTile_EachWarpOp : GdnTile_Op<"each_warp", [
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>,
    SingleBlockImplicitTerminator<"WarpEndOp">]> {
  let summary = "items that the warps of a block share out among themselves";
  let description = [{
    Runs the region for the items 0 .. count - 1: warp w of W runs the items w, w + W, ...
    in this order. Items of different warps run side by side. In the region

    * fragments belong to one warp: they have 16 rows (or one) and the layout of a kernel of one
      warp, so that a fragment is both operands of `gdn_tile.warp_mma` as it stands; of a
      fragment of all warps `gdn_tile.own_rows` takes a part;
    * a tile that is allocated there is the warp's own and lives as long as the item; `gdn_tile.free`
      ends its life earlier;
    * of the tiles of the block an item writes only what no other item reads or writes;
    * `gdn_tile.barrier` orders the lanes of the warp, not the block.

    ```mlir
    gdn_tile.each_warp (%head) in (%heads) {
      %x = gdn_tile.load %products[%c0, %c16] dims [0, 1] : memref<64x72xf32, #shared>, vector<16x16xf32>
      ...
    }
    ```
  }];
  let arguments = (ins Index:$count);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "Value":$count)>];
  let extraClassDeclaration = [{
    Value getItem() { return getBody().getArgument(0); }
  }];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def GdnTile_WarpEndOp : GdnTile_Op<"warp_end", [
    HasParent<"EachWarpOp">, Pure, ReturnLike, Terminator]> {
  let summary = "end of an item";
  let assemblyFormat = "attr-dict";
}

def GdnTile_FreeOp : GdnTile_Op<"free", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "end the life of a shared tile";
  let description = [{
    `tile` is a `memref.alloc` of the same block, and no op behind uses it: allocations
    behind may take its bytes. The effect is that of a write, so everything that
    reads the tile is done before.
  }];
  let arguments = (ins AnyMemRef:$tile);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

def GdnTile_WarpMmaOp : GdnTile_Op<"warp_mma", [
    Pure, AllTypesMatch<["a", "b"]>]> {
  let summary = "product of a fragment and the transpose of another, in one warp";
  let description = [{
    `result = a * b^T + acc` (without acc: `a * b^T`): `a` and `b` are `vector<16xKxT>`,
    K a multiple of 16, T = f32, bf16 or f16, the result is `vector<16x16xf32>`. Only in the
    region of a `gdn_tile.each_warp`. The operands enter as

    | `precision` | T | operands | error of a product, relative |
    |---|---|---|---|
    | `tf32` | f32 | rounded to TF32 | 2^-10 |
    | `bf16x3` | f32 | two bfloat16 parts each; low times low is left out | 2^-16 |
    | `tf32x3` | f32 | two TF32 parts each; low times low is left out | 2^-21 |
    | `exact` | bf16, f16 | as they are | 0 |

    ```mlir
    %y = gdn_tile.warp_mma %z, %l acc(%y0) bf16x3 : vector<16x16xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$a, GdnTile_Fragment:$b,
                       Optional<GdnTile_Fragment>:$acc,
                       EnumProp<GdnTile_Precision>:$precision);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` `(` $acc^ `:` type($acc) `)`)? $precision attr-dict `:` type($a) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GdnTile_OwnRowsOp : GdnTile_Op<"own_rows", [Pure]> {
  let summary = "a block of the rows that an item's warp holds";
  let description = [{
    Rows 16 w to 16 w + 15 and columns `column` to `column` + N - 1 of a fragment of all W warps,
    `vector<(16 W)xMxT>` to `vector<16xNxT>`, w = item of the enclosing `gdn_tile.each_warp`,
    whose count is W: item w is warp w's there. Nothing moves: the elements lie in these
    registers of the warp. `column`, M and N are multiples of 16.

    ```mlir
    gdn_tile.each_warp (%w) in (%c4) {
      %y = gdn_tile.own_rows %x[16] : vector<64x64xf32> to vector<16x16xf32>
    }
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$value, I64Attr:$column);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = [{
    $value `[` $column `]` attr-dict `:` type($value) `to` type($result)
  }];
  let hasVerifier = 1;
}

def GdnTile_StoreBlockOp : GdnTile_Op<"store_block", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "store a transposed block of a matrix in panels, by one warp";
  let description = [{
    `value`, `vector<16x16xT>` of 16-bit elements, is the transpose of a block of a matrix in panels
    (see `gdn_tile.mma`): its element (k, n) goes to row r + (n / 8) 16 + (k xor 8) and column n % 8 of the last
    two dimensions of `memref`, in global memory; `indices` lead to row r and column 0. With `diagonal`
    the elements with k >= 8 and n < 8 are not stored, and all others 8 rows higher. As a warp
    holds the block, its stores are of 128 contiguous bytes each; it is for a kernel behind, so they are
    streaming (see `gdn_tile.store`). Only in the region of a
    `gdn_tile.each_warp`.

    ```mlir
    gdn_tile.store_block %z, %t[%slot, %head, %c24, %c0] : vector<16x16xbf16>, memref<?x4x288x8xbf16>
    gdn_tile.store_block %d, %t[%slot, %head, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x4x288x8xbf16>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$value, AnyMemRef:$memref,
                       Variadic<Index>:$indices, UnitAttr:$diagonal);
  let assemblyFormat = [{
    $value `,` $memref `[` $indices `]` attr-dict `:` type($value) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def GdnTile_LoadBlockOp : GdnTile_Op<"load_block", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "load a transposed block of a matrix in panels, by one warp";
  let description = [{
    What `gdn_tile.store_block` has stored, with the same operands; with `diagonal` the elements that are not stored are
    zero. Each lane reads what the same lane stores, so nothing has to be waited for in between. Only in the region of a
    `gdn_tile.each_warp`.

    ```mlir
    %z = gdn_tile.load_block %t[%slot, %head, %c24, %c0] : memref<?x4x288x8xbf16> -> vector<16x16xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, UnitAttr:$diagonal);
  let results = (outs GdnTile_Fragment:$value);
  let assemblyFormat = [{
    $memref `[` $indices `]` attr-dict `:` type($memref) `->` type($value)
  }];
  let hasVerifier = 1;
}

def GdnTile_AnyOp : GdnTile_Op<"any", [Pure]> {
  let summary = "whether a condition holds anywhere in a fragment or in its columns";
  let description = [{
    `vector<MxNxi1>` to `i1`, or to `vector<1xNxi1>`: for each column. Each warp decides for itself, by
    a vote of its lanes, so the fragment is one that a warp holds as a whole: of a kernel of one
    warp, of the region of a `gdn_tile.each_warp`, or with one row. As a scalar the result is
    uniform: a branch on it does not part the lanes.

    ```mlir
    %large = gdn_tile.any %isLarge : vector<16x16xi1> to i1
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$value);
  let results = (outs AnyTypeOf<[I1, GdnTile_Fragment]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def GdnTile_BlockInverseOp : GdnTile_Op<"block_inverse", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "inverses of unit triangular 16x16 blocks, by one warp";
  let description = [{
    For each block b of 16 tokens, with s = `scale` and M = `products`:

        X_b = (I + strictlower(M_ij s_j))^-1,  i, j in 16 b .. 16 b + 15

    For C tokens the results are the C / 16 transposes of these and then the C / 16 inverses themselves,
    `vector<16x16xf32>` each. Of `products` only what lies below the diagonal inside the blocks is used.

    The two blocks of 8x8 on the diagonal are inverted by forward substitution in float32. With
    A and D their inverses and B the block of M below the diagonal, that of X_b is -D (B diag(s)) A, in two
    products whose operands enter as `precision` says, `tf32` or `bf16x3` as of `gdn_tile.warp_mma`; the CPU
    substitutes in all 16 rows.

    `scale` is `memref<Cxf32>`, C = 16, 32 or 64; `products` has at least C rows and columns; `scratch` is any tile of at
    least 12 C elements, for what the lanes exchange, and undefined afterwards. Only in the region of a
    `gdn_tile.each_warp`. In tiles of 32 bytes a panel row, whose rows are odd in number, the reads of eight blocks
    on the diagonal meet no bank of shared memory twice.

    ```mlir
    %x:8 = gdn_tile.block_inverse %products, %beta in %scratch tf32
        : memref<65x72xf32, #shared>, memref<64xf32, #shared>, memref<768xf32, #shared>
        -> vector<16x16xf32>, ...
    ```
  }];
  let arguments = (ins AnyMemRef:$products, AnyMemRef:$scale, AnyMemRef:$scratch,
                       EnumProp<GdnTile_Precision>:$precision);
  let results = (outs Variadic<GdnTile_Fragment>:$inverses);
  let builders = [OpBuilder<(ins "Value":$products, "Value":$scale, "Value":$scratch,
                                 "ProductPrecision":$precision)>];
  let assemblyFormat = [{
    $products `,` $scale `in` $scratch $precision attr-dict `:` type($products) `,` type($scale) `,` type($scratch)
    `->` type($inverses)
  }];
  let hasVerifier = 1;
}

def GdnTile_DecaysOp : GdnTile_Op<"decays", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "factors of tokens that follow from the sums of their gates";
  let description = [{
    With s = `sums`, in log2 units, and b = `beta`, 1 without it, the first elements of `rows` become, i = 0 .. C - 1:

        rows[i] = 2^s_i,  rows[C + i] = 2^(s_(C-1) - s_i) b_i,  rows[2 C + i] = scale 2^s_i

    Where the keys, and queries, that these factors multiply are not normalised, `keys` and `queries`, p and r, are what
    normalises them, r being 1 without `queries`. Then the first elements of `rows` become

        rows[i] = p_i 2^s_i,  rows[C + i] = p_i 2^(s_(C-1) - s_i) b_i,  rows[2 C + i] = r_i scale 2^s_i

    and 8 more behind them 2^s_(C-1) each.

    `sums`, `beta`, `keys` and `queries` are `memref<Cxf32>`, C = 16, 32 or 64, `rows` a tile of rank 1 with at least 3 C
    elements, or 3 C + 8, all in shared memory. By one warp, a token or two in each lane.

    ```mlir
    gdn_tile.decays %sums times %beta to %rows {scale = 0.125}
        : memref<64xf32, #shared> times memref<64xf32, #shared> to memref<192xf32, #shared>
    ```
  }];
  let arguments = (ins AnyMemRef:$sums, Optional<AnyMemRef>:$beta, Optional<AnyMemRef>:$keys,
                       Optional<AnyMemRef>:$queries, AnyMemRef:$rows, F64Attr:$scale);
  let extraClassDeclaration = [{
    /// Elements of 2^s_(C-1).
    static constexpr int64_t kLastSize = 8;
  }];
  let assemblyFormat = [{
    $sums (`times` $beta^)? (`keys` $keys^)? (`queries` $queries^)? `to` $rows attr-dict `:` type($sums)
    (`times` type($beta)^)? (`keys` type($keys)^)? (`queries` type($queries)^)? `to` type($rows)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILEWARPOPS_TD
