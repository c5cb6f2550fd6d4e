//===- GdnChunkOps.td - chunk-level parts of a recurrence --*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNCHUNKOPS_TD
#define GDN_DIALECT_GDN_IR_GDNCHUNKOPS_TD

include "gdn/Dialect/Gdn/IR/GdnMixerOps.td"

def Gdn_CumsumOp : Gdn_MapOp<"cumsum"> {
  let summary = "inclusive prefix sum along the first dimension";
  let description = [{
    `out[i, ...] = sum_{j <= i} x[j, ...]`. x is [C, ...], out has its shape; f32.
    Used for the log gates of a chunk. The order of the sum is fixed: i ascending.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$out);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `:` type($x) `)` `outs` `(` $out `:` type($out) `)`
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = initDeclaration;
}

def Gdn_ScoresOp : Gdn_MapOp<"scores"> {
  let summary = "causal scores with gate differences";
  let description = [{
    ```
    out[i, j] = sum_c x[i, c] * y[j, c] * exp(G[i, c] - G[j, c])     i >= j, or i > j if `strict`; else 0
    ```

    x, y are [C, K] (f16, bf16, f32), gate is the *inclusive cumulative sum* of
    the log gates, [C] (one per token) or [C, K] (one per key channel), f32;
    without gate the factor is 1. out is [C, C], f32. The sums must be finite: a
    difference of two infinities has no value, so a gate of -inf is clamped before
    it is summed (exp(-104) is 0 in float32).

    This is the one numerically delicate step of the chunk form, so it has a
    name: differences are taken before the exponent and masked pairs are never
    exponentiated, so for gates <= 0 no exponent is above 0. A gate per key
    channel is split in sub-blocks of 16 tokens, each anchored at its first row,
    never at a later token.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$y,
                       Optional<Gdn_Shaped>:$gate, Gdn_Shaped:$out,
                       UnitAttr:$strict);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `,` $y `:` type($x) `,` type($y) `)`
    (`gate` `(` $gate^ `:` type($gate) `)`)?
    `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = initDeclaration;
}

def Gdn_TriInverseOp : Gdn_MapOp<"tri_inverse"> {
  let summary = "inverse of a unit lower triangular matrix";
  let description = [{
    `out = (I + strictlower(x))^-1` for x [C, C], f32; C static. Only the strictly
    lower part of x is read. out is lower triangular with a unit diagonal, its
    upper part is written with zeros. Forward substitution by rows in float32.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$out);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `:` type($x) `)` `outs` `(` $out `:` type($out) `)`
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = initDeclaration;
}

#endif // GDN_DIALECT_GDN_IR_GDNCHUNKOPS_TD
