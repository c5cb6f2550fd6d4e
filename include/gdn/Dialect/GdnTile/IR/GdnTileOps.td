//===- GdnTileOps.td - gdn_tile ops ------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILEOPS_TD
#define GDN_DIALECT_GDNTILE_IR_GDNTILEOPS_TD

include "gdn/Dialect/GdnTile/IR/GdnTileBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def GdnTile_Fragment : FixedVectorOfRankAndType<[2], [AnyType]>;

class GdnTile_Op<string mnemonic, list<Trait> traits = []>
    : Op<GdnTile_Dialect, mnemonic, traits>;

def GdnTile_LaunchOp : GdnTile_Op<"launch", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a tile program on a one-dimensional grid";
  let description = [{
    Runs the tile program `kernel` with `grid` blocks (0 = nothing) and these
    operands: index values, memrefs in the default memory space and layout
    whose sizes behind the first are static (numbers and addresses, nothing else), and
    tensor maps. Launches of one function run in order.

    A launch with `beside` may run beside the one in front of it, if that has any blocks: neither
    reads or writes what the other writes, but behind a `gdn_tile.await_launch`. What comes behind
    sees the results of both; so no launch is `beside` one that is `beside` another itself, unless one
    of the two has a `gdn_tile.await_launch`. A kernel that reads nothing but integers in front of it
    may run beside the last launch that has blocks, whichever that is.

    ```mlir
    gdn_tile.launch @scan grid(%blocks) (%q, %t : memref<?x16x128xbf16>, index)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Index:$grid,
                       Variadic<AnyType>:$args, UnitAttr:$beside);
  let assemblyFormat = [{
    $kernel `grid` `(` $grid `)` `(` ($args^ `:` type($args))? `)` attr-dict
  }];
  let hasVerifier = 1;
}

def GdnTile_MakeTensorMapOp : GdnTile_Op<"make_tensor_map", [
    Pure, TypesMatchWith<"source is the memref of the map", "result", "source",
                         "::llvm::cast<TensorMapType>($_self).getSource()">]> {
  let summary = "descriptor of a memref for the copy engine (TMA)";
  let description = [{
    The descriptor that `result`'s type describes, of the memref `source`. Made on the
    host, for a launch; its copies inside of the tile program name it beside the memref.

    ```mlir
    %map = gdn_tile.make_tensor_map %k : !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
    gdn_tile.launch @scan grid(%blocks) (%k, %map : memref<?x16x128xbf16>, !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>)
    ```
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs GdnTile_TensorMap:$result);
  let assemblyFormat = "$source attr-dict `:` type($result)";
}

def GdnTile_BlockIdOp : GdnTile_Op<"block_id", [Pure]> {
  let summary = "index of this block in the grid";
  let description = [{
    From 0 in the order in which blocks start on a GPU, or `from_end`, from the number of
    blocks less one down to 0.

    ```mlir
    %i = gdn_tile.block_id : index
    %j = gdn_tile.block_id from_end : index
    ```
  }];
  let arguments = (ins UnitAttr:$from_end);
  let results = (outs Index:$result);
  let assemblyFormat = "(`from_end` $from_end^)? attr-dict `:` type($result)";
}

def GdnTile_FindSequenceOp : GdnTile_Op<"find_sequence", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "packed sequence that a slot of a chunk belongs to";
  let description = [{
    Sequences are packed along time: n has the tokens from offsets[n] on, and its chunks of `chunk` tokens have the slots
    from offsets[n] floordiv `chunk` + n on. The result is the last n in 0 .. `count` - 1 whose first
    slot is not behind `slot`, 0 where there is none. Offsets are i32 or i64, and below 2^31.

    On a GPU each warp looks for itself, and its lanes at 32 sequences at a time: one read for up to 32 sequences,
    two for up to 1024, where bisection takes five and ten, each of which waits for the one before.

    ```mlir
    %n = gdn_tile.find_sequence %slot in %offsets count %sequences chunk 64 : memref<?xi32>
    ```
  }];
  let arguments = (ins Index:$slot, AnyMemRef:$offsets, Index:$count, I64Attr:$chunk);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $slot `in` $offsets `count` $count `chunk` $chunk attr-dict `:` type($offsets)
  }];
  let hasVerifier = 1;
}

def GdnTile_StageOp : GdnTile_Op<"stage", [
    Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface, ["getViewSource"]>]> {
  let summary = "one tile of a multi-buffered tile";
  let description = [{
    `buffers` is a shared-memory allocation of n tiles, `memref<nxRxC>` or
    `memref<nxC>`; the result is tile number `stage` of it, `memref<RxC>` or
    `memref<C>`, in the layout of its own type. It starts at byte `stage` times the
    size of a tile. `stage` must be in 0..n-1. Every other op takes the tile like
    any other one.

    ```mlir
    %buffers = memref.alloc() : memref<2x64x128xbf16, #gpu.address_space<workgroup>>
    %tile = gdn_tile.stage %buffers[%i] : memref<2x64x128xbf16, #gpu.address_space<workgroup>> to memref<64x128xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffers, Index:$stage);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $buffers `[` $stage `]` attr-dict `:` type($buffers) `to` type($result)
  }];
  let hasVerifier = 1;
}

class GdnTile_CopyOp<string mnemonic>
    : GdnTile_Op<mnemonic, [
        AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let hasVerifier = 1;
}

def GdnTile_CopyInOp : GdnTile_CopyOp<"copy_in"> {
  let summary = "copy a tile from global to shared memory";
  let description = [{
    Copies the tile of `source` that starts at `indices` into the whole of `tile`.
    Dimension d of the tile runs along dimension `dims[d]` of the source, with
    the element's own size as step. Elements at or behind `valid[d]` in dimension
    d are not read: zeros are written in their place. If the element types
    differ the value is extended to float32 on the way.

    With a token result the copy is asynchronous (`cp.async`): the tile may be
    read only behind a `gdn_tile.wait` on the token. With a slot of a ring it
    is asynchronous too: the stage is full only when the copy has landed.

    With a `map` of the source a tile that is valid as a whole is moved by the copy engine, in
    one instruction of one thread; other tiles are moved and filled as without it.

    With `lower` the tile is a lower triangular matrix of C columns, a power of two, in
    panels (see `gdn_tile.mma`), and the source holds its C / 16 = m columns of blocks of
    16x16, each from the diagonal on, where columns 8 to 15 of the first 8 rows are left out:
    8 m (2 m + 1) rows of 8 elements, whole rows of the last two dimensions, which
    `gdn_tile.store_block` has written. What lies above is zero.
    A bound of rows counts those of the tile, all of them or none; one of columns
    admits all 8 or none.

    ```mlir
    gdn_tile.copy_in %k[%row, %head, %c0] dims [0, 2] valid(%rows, %c128) to %tile
        : memref<?x16x128xbf16> to memref<64x128xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, Variadic<Index>:$valid,
                       AnyMemRef:$tile, Optional<GdnTile_Slot>:$slot,
                       Optional<GdnTile_TensorMap>:$map, UnitAttr:$lower);
  let results = (outs Optional<GdnTile_Token>:$token);
  let builders = [OpBuilder<(ins "Type":$token, "Value":$source,
      "ValueRange":$indices, "ArrayRef<int64_t>":$dims, "ValueRange":$valid,
      "Value":$tile, "bool":$lower, CArg<"Value", "Value()">:$slot), [{
    build($_builder, $_state, token, source, indices, dims, valid, tile, slot, Value(), lower);
  }]>];
  let assemblyFormat = [{
    $source `[` $indices `]` `dims` $dims (`valid` `(` $valid^ `)`)? `to` $tile
    (`map` `(` $map^ `:` type($map) `)`)? (`signal` `(` $slot^ `)`)? attr-dict
    `:` type($source) `to` type($tile) (`->` type($token)^)?
  }];
}

def GdnTile_CopyOutOp : GdnTile_CopyOp<"copy_out"> {
  let summary = "copy a tile from shared to global memory";
  let description = [{
    The reverse of `gdn_tile.copy_in`: elements at or behind `valid[d]` in dimension d
    are not written. Element types are equal. With a `map` of the destination the copy
    engine moves tiles that are valid as a whole; it has read them behind the op.

    ```mlir
    gdn_tile.copy_out %tile to %o[%row, %head, %c0] dims [0, 2] valid(%rows, %c64)
        : memref<64x64xbf16, #gpu.address_space<workgroup>> to memref<?x32x128xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$tile, AnyMemRef:$destination,
                       Variadic<Index>:$indices, DenseI64ArrayAttr:$dims,
                       Variadic<Index>:$valid, Optional<GdnTile_TensorMap>:$map);
  let builders = [OpBuilder<
    (ins "Value":$tile, "Value":$destination, "ValueRange":$indices,
         "ArrayRef<int64_t>":$dims, "ValueRange":$valid),
    [{ build($_builder, $_state, tile, destination, indices, dims, valid, Value()); }]>];
  let assemblyFormat = [{
    $tile `to` $destination `[` $indices `]` `dims` $dims (`valid` `(` $valid^ `)`)?
    (`map` `(` $map^ `:` type($map) `)`)?
    attr-dict `:` type($tile) `to` type($destination)
  }];
}

def GdnTile_PrefetchOp : GdnTile_Op<"prefetch", [
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "bring a tile of global memory to the second-level cache";
  let description = [{
    A hint without effect on values: the tile of `shape` that a `gdn_tile.copy_in` with these
    `indices`, `dims` and `valid` would read will be read soon, by any block. The last
    dimension runs along the last one of the source.

    ```mlir
    gdn_tile.prefetch %k[%row, %head, %c0] dims [0, 2] shape [64, 128] valid(%rows, %c128) : memref<?x16x128xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$shape,
                       Variadic<Index>:$valid);
  let assemblyFormat = [{
    $source `[` $indices `]` `dims` $dims `shape` $shape (`valid` `(` $valid^ `)`)? attr-dict
    `:` type($source)
  }];
  let hasVerifier = 1;
}

def GdnTile_WaitOp : GdnTile_Op<"wait"> {
  let summary = "wait until asynchronous copies have landed";
  let description = [{
    Behind it the copies of `token` and all older ones are complete for the
    threads that issued them; at most `pending` younger groups of copies are
    still in flight. The other threads see the data behind the next barrier.
  }];
  let arguments = (ins GdnTile_Token:$token, DefaultValuedAttr<I64Attr, "0">:$pending);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

def GdnTile_JoinOp : GdnTile_Op<"join"> {
  let summary = "close a group of asynchronous copies";
  let description = [{
    One token for several copies that are waited for together (one
    `cp.async.commit_group`). Every asynchronous copy belongs to exactly one join.
  }];
  let arguments = (ins Variadic<GdnTile_Token>:$tokens);
  let results = (outs GdnTile_Token:$result);
  let assemblyFormat = "$tokens attr-dict";
}

def GdnTile_BarrierOp : GdnTile_Op<"barrier"> {
  let summary = "all warps of the block wait for each other; shared memory is visible";
  let assemblyFormat = "attr-dict";
}

def GdnTile_OverlapLaunchesOp : GdnTile_Op<"overlap_launches", [
    HasParent<"::mlir::func::FuncOp">, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the launches in front and behind may overlap with this one";
  let description = [{
    What stands in front of this op may run while the kernel in front has not ended;
    the op waits for its end and for everything that it wrote. From here on the kernel
    behind may start, if it has such an op too: it will wait in turn. So the time that
    a launch takes is hidden (programmatic dependent launch, sm_90 and later). In all
    threads of the block.

    ```mlir
    gdn_tile.overlap_launches
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def GdnTile_AwaitLaunchOp : GdnTile_Op<"await_launch", [
    HasParent<"::mlir::func::FuncOp, ::mlir::gdn_tile::RoleOp">,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the launch in front";
  let description = [{
    In a kernel that is launched `beside` the launch in front: what stands in front of
    this op may run while that has not ended, and neither reads nor writes what that
    writes, nor writes what that reads; the op waits for its end and for everything that it
    wrote (programmatic dependent launch, sm_90 and later; launched in order, nothing is left
    to wait for). In front of the roles of a kernel, each of them waits.

    ```mlir
    gdn_tile.await_launch
    ```
  }];
  let assemblyFormat = "attr-dict";
}

class GdnTile_AccessOp<string mnemonic>
    : GdnTile_Op<mnemonic, [
        AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let hasVerifier = 1;
}

def GdnTile_LoadOp : GdnTile_AccessOp<"load"> {
  let summary = "load a fragment from global or shared memory";
  let description = [{
    Row index i runs along dimension `dims[0]` of the memref, column index j along
    `dims[1]`, both from `indices`; so `dims [1, 0]` loads a transposed tile. A
    fragment with a single row or column names only its one running dimension.
    Elements at or behind `valid` (one bound per entry of dims) are zero and not
    read. `streaming` says of global memory that nobody reads it again soon: it
    does not stay in the L1 cache.

    ```mlir
    %s = gdn_tile.load %state[%n, %h, %v0, %c0] dims [2, 3] valid(%rows, %c128)
        : memref<?x32x128x128xf32>, vector<64x128xf32>
    %g = gdn_tile.load %gate[%c0] dims [0] : memref<64xf32, #gpu.address_space<workgroup>>, vector<1x64xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, Variadic<Index>:$valid,
                       UnitAttr:$streaming);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = [{
    $memref `[` $indices `]` `dims` $dims (`valid` `(` $valid^ `)`)? attr-dict `:`
    type($memref) `,` type($result)
  }];
}

def GdnTile_StoreOp : GdnTile_AccessOp<"store"> {
  let summary = "store a fragment to global or shared memory";
  let description = [{
    The reverse of `gdn_tile.load`; elements at or behind `valid` are not written.
    `streaming` data is the first to leave the caches.
  }];
  let arguments = (ins GdnTile_Fragment:$value, AnyMemRef:$memref,
                       Variadic<Index>:$indices, DenseI64ArrayAttr:$dims,
                       Variadic<Index>:$valid, UnitAttr:$streaming);
  let assemblyFormat = [{
    $value `,` $memref `[` $indices `]` `dims` $dims (`valid` `(` $valid^ `)`)?
    attr-dict `:` type($value) `,` type($memref)
  }];
}

def GdnTile_MmaOp : GdnTile_Op<"mma", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "matrix product: fragment times shared tile, into a fragment";
  let description = [{
    `result = a * b + acc` (without acc: `a * b`), accumulated in float32. `a` is a
    fragment `vector<MxKxT>`; `b` a tile in shared memory, `memref<KxNxT>`, or
    `memref<NxKxT>` with `transpose_b`. T is f16, bf16 or f32; f32 products run in
    `passes` TF32 passes: 1 (10-bit mantissas) or 3 (both operands split in two
    parts, about float32).

    With a `!gdn_tile.pending` result the product is asynchronous (`wgmma`): the
    fragment is there behind a `gdn_tile.mma_wait`. Its accumulator may be pending
    itself, when it is the result of the product before.

    With `transpose_b` and 16-bit types `b` may also be in panels of 16 columns, one after the other:
    `memref<(N*K/8)x8xT>`, element (n, k) in row (k / 16) 2 N + (n / 8) 16 + (k % 16 xor 8) and column n % 8.

    Only in kernels of the `accumulator` layout; a fragment rounded to T is the
    operand `a` of the next product without any data movement. M = 16 * warps, K a
    multiple of 16, N a multiple of 8 (16 for 16-bit types).

    ```mlir
    %r = gdn_tile.mma %s, %k {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #gpu.address_space<workgroup>> -> vector<64x64xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$a, AnyMemRef:$b,
                       Optional<AnyTypeOf<[GdnTile_Fragment, GdnTile_Pending]>>:$acc,
                       UnitAttr:$transpose_b,
                       DefaultValuedAttr<I64Attr, "3">:$passes);
  let results = (outs AnyTypeOf<[GdnTile_Fragment, GdnTile_Pending]>:$result);
  let extraClassDeclaration = [{
    bool isAsync() { return isa<PendingType>(getResult().getType()); }
    /// Whether `b` is in panels of 16 columns.
    bool hasPanels();
    /// Type of the fragment, now or behind the wait.
    VectorType getFragmentType() {
      if (auto pending = dyn_cast<PendingType>(getResult().getType()))
        return pending.getFragment();
      return cast<VectorType>(getResult().getType());
    }
  }];
  let assemblyFormat = [{
    $a `,` $b (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GdnTile_MmaWaitOp : GdnTile_Op<"mma_wait", [
    TypesMatchWith<"result is the pending fragment", "value", "result",
                   "::llvm::cast<PendingType>($_self).getFragment()">]> {
  let summary = "wait for an asynchronous product";
  let description = [{
    Gives the fragment of `value` once at most `pending` younger products of the
    block are still in flight. Products complete in the order of their issue.
  }];
  let arguments = (ins GdnTile_Pending:$value, DefaultValuedAttr<I64Attr, "0">:$pending);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def GdnTile_SumOp : GdnTile_Op<"sum", [Pure]> {
  let summary = "sum of a fragment over its rows or columns";
  let description = [{
    `vector<MxNxf32>` to `vector<Mx1xf32>` (over the columns) or `vector<1xNxf32>` (over the
    rows). The order of the sum is fixed by the layout.
  }];
  let arguments = (ins GdnTile_Fragment:$value);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def GdnTile_SumSquaresOp : GdnTile_Op<"sum_squares", [Pure]> {
  let summary = "sums of the squares of the rows of a fragment";
  let description = [{
    `vector<MxK>` of f16 or bf16 to `vector<Mx1xf32>`, K a multiple of 16: squares are exact, and
    sums those of a product. In the accumulator layout: the registers of a fragment are both
    operands of its product with itself, of which the diagonal is kept.

    ```mlir
    %squares = gdn_tile.sum_squares %k : vector<64x128xbf16> to vector<64x1xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$value);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def GdnTile_IotaOp : GdnTile_Op<"iota", [Pure]> {
  let summary = "row numbers (vector<Mx1xi32>) or column numbers (vector<1xNxi32>)";
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

class GdnTile_SharedOp<string mnemonic>
    : GdnTile_Op<mnemonic, [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let hasVerifier = 1;
}

def GdnTile_CumsumOp : GdnTile_Op<"cumsum", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "inclusive prefix sum of a shared tile along dimension 0";
  let description = [{
    `memref<Cxf32>` or `memref<CxNxf32>` in shared memory, C = 16, 32 or 64, in place. Of a
    source, `memref<Cxf32>` or a column of a `memref<CxNxf32>`, into a `memref<Cxf32>`: the sums of
    factor * max(source[i], least). The combination order is fixed.

    ```mlir
    gdn_tile.cumsum %sums of %gates column %head {least = -104.0, factor = 1.44}
        : memref<64xf32, #shared> of memref<64x4xf32, #shared>
    ```
  }];
  let arguments = (ins AnyMemRef:$tile, Optional<AnyMemRef>:$source, Optional<Index>:$column,
                       OptionalAttr<F64Attr>:$least, OptionalAttr<F64Attr>:$factor);
  let assemblyFormat = [{
    $tile (`of` $source^)? (`column` $column^)? attr-dict `:` type($tile) (`of` type($source)^)?
  }];
  let hasVerifier = 1;
}

def GdnTile_CopySumsOp : GdnTile_CopyOp<"copy_sums"> {
  let summary = "running sums of a tile of global memory, into shared memory";
  let description = [{
    With x(i, c) the element of `source` that `gdn_tile.copy_in` would copy to row i and
    column c, the first `columns` columns of the tile of C + 1 rows get

        tile[0, c] = 0,  tile[i + 1, c] = tile[i, c] + factor * max(x(i, c), least)

    in float32; what lies behind them is left alone. Sums of 16 rows are formed on their
    own and added to those in front. Rows at or behind `valid[0]` add nothing, columns at
    or behind `valid[1]` are zero. C = 16, 32 or 64. Row b of the tile is the sum in front
    of row b of the source, so the tile holds the anchors that `gdn_tile.scores` needs.

    ```mlir
    gdn_tile.copy_sums %gate[%row, %head, %c0] dims [0, 2] valid(%rows, %c64) to %sums {columns = 64 : i64, least = -104.0, factor = 1.44}
        : memref<?x16x128xf32> to memref<65x72xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, Variadic<Index>:$valid,
                       AnyMemRef:$tile, I64Attr:$columns, F64Attr:$least,
                       F64Attr:$factor);
  let assemblyFormat = [{
    $source `[` $indices `]` `dims` $dims (`valid` `(` $valid^ `)`)? `to` $tile
    attr-dict `:` type($source) `to` type($tile)
  }];
}

def GdnTile_ScoresOp : GdnTile_Op<"scores", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "causal scores with a gate per key channel";
  let description = [{
    With G[i, c] = sums[i + 1, c], the running sum of the log2 gates of a chunk of C tokens:

        scores[i, j] = acc[i, j]        + sum_c q[i, c]    k[j, c] 2^(G[i, c] - G[j, c])   for i >= j
        strict[i, j] = strict_acc[i, j] + sum_c left[i, c] k[j, c] 2^(G[i, c] - G[j, c])   for i > j

    and the accumulators as they are elsewhere. q, k and left are `memref<CxK>` tiles of one
    type, sums is `memref<(C+1)xNxf32>` with N >= K, as `gdn_tile.copy_sums` fills it; the
    fragments are `vector<CxCxf32>`. Of 16-bit tiles the operands of products are rounded to
    TF32, float32 ones enter in two TF32 parts.

    The GPU form has blocks of 16 tokens. Rows of a block get the factor 2^(G[i] - a),
    columns 2^(a - G[j]), with the anchor a = sums in front of the rows' block: neither
    looks at a later token, and in front of the block neither exceeds 1. On the diagonal
    the second one grows, which is safe while the gates of a block sum up to no less
    than -160; rows behind that are computed by halves of the block, halves of these and so on,
    each with the anchor between the two halves. So no gates lead to infinities, and a
    score never depends on the gates of later tokens.

    ```mlir
    %p, %a = gdn_tile.scores %q, %k, %sums acc(%p0) strict(%k acc %a0)
        : (memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<65x72xf32, #shared>, vector<64x64xf32>,
           memref<64x64xbf16, #shared>, vector<64x64xf32>) -> (vector<64x64xf32>, vector<64x64xf32>)
    ```
  }];
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$sums,
                       GdnTile_Fragment:$acc, Optional<AnyMemRef>:$left,
                       Optional<GdnTile_Fragment>:$strict_acc);
  let results = (outs GdnTile_Fragment:$scores,
                      Optional<GdnTile_Fragment>:$strict);
  let assemblyFormat = [{
    $q `,` $k `,` $sums `acc` `(` $acc `)` (`strict` `(` $left^ `acc` $strict_acc `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def GdnTile_TriInverseOp : GdnTile_SharedOp<"tri_inverse"> {
  let summary = "inverse of I + strictly lower part of a shared tile, in place";
  let description = [{
    `memref<CxCxf32>` in shared memory, C = 16, 32 or 64: replaces the tile by
    (I + strictlower(tile))^-1, upper part zero. Forward substitution in float32 in
    blocks of up to 32 tokens; between them products of operands split in two TF32
    parts (errors of about 2^-22 of each), or in float32 if `exact`.
  }];
  let arguments = (ins AnyMemRef:$tile, UnitAttr:$exact);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

include "gdn/Dialect/GdnTile/IR/GdnTileRoleOps.td"

include "gdn/Dialect/GdnTile/IR/GdnTileRegisterOps.td"

include "gdn/Dialect/GdnTile/IR/GdnTileWarpOps.td"

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILEOPS_TD
