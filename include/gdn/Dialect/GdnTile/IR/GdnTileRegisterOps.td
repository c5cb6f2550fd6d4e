//===- GdnTileRegisterOps.td - products in registers -------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products whose operands are all fragments of the `rows` layout with 4 lanes a
// row: eight tokens against a state that streams through the registers. No data
// passes through shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILEREGISTEROPS_TD
#define GDN_DIALECT_GDNTILE_IR_GDNTILEREGISTEROPS_TD

def GdnTile_DotOp : GdnTile_Op<"dot", [Pure]> {
  let summary = "products of a fragment with transposed fragments, all in registers";
  let description = [{
    `result[i, j] = sum_c a[i, c] * b[j, c]` for each right operand `b`, accumulated
    in float32. `a` is `vector<MxKxS>`, M = 8 or a multiple of 16; each `b` is
    `vector<8xKxT>`, each result `vector<Mx8xf32>`. The element types are

    | S | T | products |
    |---|---|---|
    | f16 or bf16 | S | exact |
    | f32 | f16 or bf16 | `a` in two TF32 parts (relative error about 2^-21) |
    | f32 | f32 | both in two TF32 parts, the product of the small ones is left out |

    Only in kernels of one warp in the `rows` layout with 4 lanes: a lane holds
    the same columns of a row of `a` and of `b`, and the order of a sum is free, so
    registers are operands of mma.sync as they are. K is a multiple of 32 with
    16-bit `a`, of 8 with f32.

    Several right operands share the parts of `a`.

    ```mlir
    %sk, %sq = gdn_tile.dot %state times(%k, %q) : vector<16x128xf32>, vector<8x128xbf16>, vector<8x128xbf16>
        -> vector<16x8xf32>, vector<16x8xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$a, Variadic<GdnTile_Fragment>:$b);
  let results = (outs Variadic<GdnTile_Fragment>:$results);
  let assemblyFormat = [{
    $a `times` `(` $b `)` attr-dict `:` type($a) `,` type($b) `->` type($results)
  }];
  let hasVerifier = 1;
}

def GdnTile_OuterOp : GdnTile_Op<"outer", [Pure,
    AllTypesMatch<["acc", "result"]>]> {
  let summary = "add the product of eight columns and eight rows, all in registers";
  let description = [{
    `result[i, c] = scale * acc[i, c] + sum_j a[i, j] * b[j, c]`, without `scale`, of
    `vector<1x1xf32>`, 1: `a` is `vector<Mx8xf32>`, `b` `vector<8xKxT>` with T f16 or
    bf16, `acc` and the result `vector<MxKxS>`, M a multiple of 16, S f32, f16 or bf16.
    The sum is float32, and rounded eight columns at a time, so that no more of it is
    in registers. `a` takes part in two parts: of bf16 (relative error about 2^-17)
    with `b` of bf16, or, if `exact` or `b` is of f16, of TF32 (2^-21).

    Only in kernels of one warp in the `rows` layout with 4 lanes; K as in
    `gdn_tile.dot`.

    ```mlir
    %next = gdn_tile.outer %u, %k acc(%s) scale(%decay : vector<1x1xf32>) {exact} : vector<16x8xf32>, vector<8x128xbf16>, vector<16x128xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$a, GdnTile_Fragment:$b,
                       GdnTile_Fragment:$acc,
                       Optional<GdnTile_Fragment>:$scale, UnitAttr:$exact);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = [{
    $a `,` $b `acc` `(` $acc `)` (`scale` `(` $scale^ `:` type($scale) `)`)? attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def GdnTile_StackOp : GdnTile_Op<"stack", [Pure,
    AllTypesMatch<["a", "b", "result"]>]> {
  let summary = "four rows of one fragment in front of four of another";
  let description = [{
    Rows 0 to 3 of the result are those of `a`, rows 4 to 7 are rows 0 to 3 of `b`. Of
    `vector<8xKxT>` with T f16 or bf16: one right operand of `gdn_tile.dot` instead of
    two that are half empty. Only in kernels of one warp in the `rows` layout with 4
    lanes: a lane passes registers to the one 16 further on.

    ```mlir
    %kq = gdn_tile.stack %k, %q : vector<8x128xbf16>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$a, GdnTile_Fragment:$b);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def GdnTile_TriSolveOp : GdnTile_Op<"tri_solve", [Pure,
    AllTypesMatch<["rhs", "result"]>]> {
  let summary = "solve with a unit lower triangular matrix from the right";
  let description = [{
    The x with `x (I + strictlower(l))^T = rhs`:

    ```
    x[i, t] = rhs[i, t] - sum_{s < t} l[t, s] * x[i, s]      t < count
    ```

    and 0 for t >= count. `l` is `vector<8x8xf32>`, of which only the strictly lower
    part of the first `count` rows is read, `rhs` and the result `vector<Mx8xf32>`;
    forward substitution in float32. Only in kernels of one warp in the `rows` layout
    with 4 lanes.

    ```mlir
    %u = gdn_tile.tri_solve %l, %w {count = 4 : i64} : vector<8x8xf32>, vector<16x8xf32>
    ```
  }];
  let arguments = (ins GdnTile_Fragment:$l, GdnTile_Fragment:$rhs,
                       DefaultValuedAttr<I64Attr, "8">:$count);
  let results = (outs GdnTile_Fragment:$result);
  let assemblyFormat = [{
    $l `,` $rhs attr-dict `:` type($l) `,` type($rhs)
  }];
  let hasVerifier = 1;
}

def GdnTile_AfterLoadsOp : GdnTile_Op<"after_loads", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "values that are ready once all loads in front have been issued";
  let description = [{
    The results are the operands, unchanged. What uses them stays behind the loads
    that stand in front of this op: ptxas sinks loads behind arithmetic that does
    not need them, up to where all registers are in use, and each load that is
    issued late waits for memory a second time. A block-wide vote on nothing
    (bar.red), whose result is 0, is or-ed into the values: no compiler moves a load
    across it, nor arithmetic on the values in front of it. All warps of the block
    must reach it.

    ```mlir
    %k1, %q1 = gdn_tile.after_loads %k, %q : vector<8x128xbf16>, vector<8x128xbf16>
    ```
  }];
  let arguments = (ins Variadic<GdnTile_Fragment>:$values);
  let results = (outs Variadic<GdnTile_Fragment>:$results);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILEREGISTEROPS_TD
