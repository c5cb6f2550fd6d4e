//===- GdnAttrs.td - gdn attributes ------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNATTRS_TD
#define GDN_DIALECT_GDN_IR_GDNATTRS_TD

include "gdn/Dialect/Gdn/IR/GdnBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Gdn_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::gdn";
  let genSpecializedAttr = 0;
}

def Gdn_StateLayout : Gdn_Enum<"StateLayout", "order of the last two state dimensions", [
  I32EnumAttrCase<"VFirst", 0, "v_first">,
  I32EnumAttrCase<"KFirst", 1, "k_first">
]>;

def Gdn_StateLayoutAttr : EnumAttr<Gdn_Dialect, Gdn_StateLayout, "state_layout"> {
  let summary = "`v_first`: state [N, Hv, V, K]; `k_first`: state [N, Hv, K, V]";
  let assemblyFormat = "`<` $value `>`";
}

def Gdn_Activation : Gdn_Enum<"Activation", "elementwise activation function", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"SiLU", 1, "silu">,
  I32EnumAttrCase<"Sigmoid", 2, "sigmoid">
]>;

def Gdn_ActivationAttr : EnumAttr<Gdn_Dialect, Gdn_Activation, "activation"> {
  let summary = "`none`: x; `silu`: x / (1 + exp(-x)); `sigmoid`: 1 / (1 + exp(-x))";
  let assemblyFormat = "`<` $value `>`";
}

def Gdn_Phases : Gdn_Enum<"Phases", "how a recurrence is cut into kernels", [
  I32EnumAttrCase<"Fused", 0, "fused">,
  I32EnumAttrCase<"Split", 1, "split">,
  I32EnumAttrCase<"Step", 2, "step">,
  I32EnumAttrCase<"Segmented", 3, "segmented">,
  I32EnumAttrCase<"Auto", 4, "auto">
]>;

def Gdn_Precision : Gdn_Enum<"Precision", "how operands of products are rounded on the GPU", [
  I32EnumAttrCase<"Default", 0, "default">,
  I32EnumAttrCase<"High", 1, "high">
]>;

// MLIR has default values of parameters for other kinds of enums only.
class Gdn_DefaultEnumParameter<EnumInfo info, string value> : EnumParameter<info> {
  let defaultValue = value;
}

def Gdn_ScheduleAttr : AttrDef<Gdn_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how one recurrence is executed";
  let description = [{
    The only tuning attribute of the compiler. `gdn-select-schedule` writes it
    where it is absent, every later pass only reads it.

    | field | meaning |
    |---|---|
    | `phases` | `fused`: chunkwise, one program (CPU; GPU: see below); `split`: a chunk-parallel *prepare* kernel and a serial *scan* kernel (GPU); `segmented`: split, with the chunks of a sequence cut into segments that run side by side (GPU); `step`: the state in registers for all tokens (decode, verify) |
    | `chunk` | tokens per chunk: a power of two, 16 to 64; `step` phases on the GPU: 8 = eight tokens at a time by products, else token by token |
    | `value_block` | rows of the state (value index) per work item, a multiple of 16 on the GPU (`step` phases token by token: of the rows that its warps hold at once) |
    | `stages` | buffers per shared-memory tile of the scan: 1 (synchronous) or more |
    | `segments` | with `segmented`, and only then: segments that one sequence is cut into, at most; several share those behind the first |
    | `segment_chunks` | with `segmented`: least number of chunks of a segment, 1 unless given |
    | `wide_from` | with `split` and `segmented`: blocks of the scan from which they have twice `value_block` rows each; with `step`: sequences times value heads from which a warp has more rows (see below); 0, never, unless given |
    | `scores_ahead` | with `split` and `segmented`: blocks of 128 rows make P themselves (see below) |
    | `resident_from` | with `scores_ahead`: chunks of a sequence, in the mean, from which the blocks that make T stay (see below); 0, never, unless given |
    | `warps` | `step` phases token by token: warps of a block, 1 to 16 |
    | `streaming` | `step` phases: the caches need not keep the state; pays while all states together are small |
    | `overlap` | `step` phases: launches in front and behind may overlap with this one (programmatic dependent launch; sm_90 and later) |
    | `precision` | `default` or `high`: see below |

    With `segmented` a segment has L chunks, the first of a sequence E = M + ceil(L / X)
    more, the last fewer; M = floor(`segment_chunks` / 3) and X = 6, or 0 and 3 with
    `segments` = 3. L is computed when the function is called, so one compiled function
    cuts a single long sequence into `segments` pieces and leaves a large batch whole,
    without the kernels that segments need. Of N sequences with C chunks each may have
    G = 1 + floor((`segments` - 1) / N) segments:

        L = max(`segment_chunks`, ceil(X (C - M) / (X G + 1)))   if G >= 3, C > 2 L + E,
                                                                 C > 4 `segment_chunks` and
                                                                 (G - 2) C > 11 (`segment_chunks` - 1)
        L = C + 1                                                otherwise: nothing is cut

    The lengths of packed sequences are not known then, only that of all together, T
    tokens. If it is more than 4 `segment_chunks` chunks, of several sequences 8, and G >= 3, there are `segments` - 1
    places for segments behind another one, one for every ceil(T / (`segments` - 1)) tokens,
    and a sequence of t tokens and C chunks has as many as that fits into it: so there are
    never more, whatever the lengths. It has an L of its own, which the kernels find from
    the offsets:

        G = 1 + floor(t / ceil(T / (`segments` - 1)))
        L as above                                  if G >= 2, C > 4 `segment_chunks` and
                                                    max(G - 2, 1) C > 11 (`segment_chunks` - 1)
        L = C + 1                                   otherwise: it is not cut

    A transition matrix carries the state over each segment; nothing is truncated. On the
    CPU (level 1) `segmented` means the same as `fused`.

    The first segments are scanned, with their output, beside the slower kernel that makes
    the transition matrices and local states of the others (but for the last of each
    sequence, which no other follows). Then all other segments are scanned. Each block finds the
    state in front of its segment by itself: from that behind the first segment it walks the boundaries,
    one product with a transition matrix and one sum each. With float32 inputs, erase or write, more than 128 key channels,
    a `value_block` other than 64, one stage or on targets without warpgroup products a kernel in between finds the states at all boundaries.

    Products of 16-bit inputs run on 16-bit tensor cores. With `precision = default`
    what is computed inside of a chunk (the state, the errors W, the new values U,
    the scores P, with a gate per channel the decayed copies of q and k) is rounded
    to 16 bits where it is an operand; from the first row on in which T has a large
    entry (above 0.4 below its diagonal, as near-equal keys have with little decay)
    or beta is above 1, T, W, U and P (not with a gate per channel, nor without
    products of warpgroups) have a second part in the rest of the chunk, whose scan
    then takes 2.2 to 3.2 times as long. The inverse enters its own products as TF32, and
    where T has a second part, or two parts everywhere (with erase and write), as two
    bfloat16 parts.
    With `precision = high` each of them is a pair of 16-bit numbers, the second
    what the first has left, and a product is the sum of two or three: all but the
    last part by the last. So no operand is rounded by more than 2^-16 (bf16; f16
    2^-21 where it does not underflow), and the errors of the final state are those
    of float32 sums. Of o the rounding to its own type is left, 1.7e-3 of the norm
    for bf16: ask for an `out` of float32. A scan has twice as many products and
    fewer stages, scores take twice the memory. The step phases token by token,
    float32 inputs (three TF32 passes) and the CPU levels compute in about float32
    with either.

    With `phases = auto`, the default, only `precision` is asked for and
    `gdn-select-schedule` chooses the rest: `#gdn.schedule<precision = high>`.

    With `wide_from` there are two scan kernels, and which one runs is decided when
    the function is called: that with blocks of twice as many rows if the sequences
    (or the segments behind boundaries, where a kernel in between finds their states) give
    `wide_from` blocks of `value_block` rows or more. Where blocks find the state in front of
    their segment by themselves, sequences that get those of twice as many rows stay whole. Both compute
    the same bits. So it is with `step`: from `wide_from` states on blocks have twice
    `value_block` rows (chunk = 8), or one warp with eight rows, and the caches are
    not streamed past (token by token).

    With `scores_ahead` four more warps of a block of 128 rows (`value_block` 128, or 64 with
    `wide_from`) make P of the next chunks beside those that scan, and the prepare kernel,
    which then makes only T, reads no q: for the delta rule with 16-bit inputs, a gate per
    head or none, no erase or write, `precision = default`, chunks of 64 and more than one of
    them, two stages or more and at most 128 key channels, on targets with warpgroup
    products. With `wide_from` the prepare kernel too is chosen when the function is called.
    The bits are the same. It pays where memory is what bounds both kernels: one or two
    value heads per key head.

    With `resident_from` as well, and sequences of so many chunks or more in the mean, T is made by as many blocks as
    run at once, which take one chunk and head after the other and have roles: a warpgroup for the products of the keys, single
    warps that invert. Which kernel runs is decided when the function is called, and the bits are the same. For one value head per key
    head, heads in fours, 64 or 128 key channels, and q, k, gate and beta as they are (raw ones are the other kernel's). Chunks at the end of a sequence take
    such blocks longer, so it pays for long sequences.

    On the GPU `fused` is one kernel, in which eight more warps of each block make T and P of the next chunks while
    four scan: for 16-bit inputs with a gate per head or none, `precision = default`, chunks of 64, a `value_block`
    of 64 and two stages or more, on targets with warpgroup products. It reads and writes least, but T and P of a chunk
    take too long beside the scan to be selected: python/benchmarks/NOTES.md has the measurement.

    Example: `#gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>`.
  }];
  let parameters = (ins
    Gdn_DefaultEnumParameter<Gdn_Phases, "Phases::Auto">:$phases,
    DefaultValuedParameter<"int64_t", "0">:$chunk,
    DefaultValuedParameter<"int64_t", "0">:$value_block,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "0">:$segments,
    DefaultValuedParameter<"int64_t", "1">:$segment_chunks,
    DefaultValuedParameter<"int64_t", "1">:$warps,
    DefaultValuedParameter<"bool", "false">:$streaming,
    DefaultValuedParameter<"bool", "false">:$overlap,
    Gdn_DefaultEnumParameter<Gdn_Precision, "Precision::Default">:$precision,
    DefaultValuedParameter<"int64_t", "0">:$wide_from,
    DefaultValuedParameter<"bool", "false">:$scores_ahead,
    DefaultValuedParameter<"int64_t", "0">:$resident_from);
  let builders = [
    AttrBuilder<(ins "::mlir::gdn::Phases":$phases, "int64_t":$chunk,
                     "int64_t":$valueBlock, "int64_t":$stages,
                     CArg<"::mlir::gdn::Precision", "::mlir::gdn::Precision::Default">:$precision), [{
      return $_get($_ctxt, phases, chunk, valueBlock, stages, /*segments=*/0,
                   /*segment_chunks=*/1, /*warps=*/1, /*streaming=*/false,
                   /*overlap=*/false, precision, /*wide_from=*/0,
                   /*scores_ahead=*/false, /*resident_from=*/0);
    }]>
  ];
  let extraClassDeclaration = [{
    bool isHigh() const { return getPrecision() == ::mlir::gdn::Precision::High; }
  }];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNATTRS_TD
