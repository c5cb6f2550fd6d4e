//===- GdnRecurrenceOp.td - the recurrence -----------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNRECURRENCEOP_TD
#define GDN_DIALECT_GDN_IR_GDNRECURRENCEOP_TD

include "gdn/Dialect/Gdn/IR/GdnOpBase.td"

def Gdn_RecurrenceOp : Gdn_Op<"recurrence", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition"]>]> {
  let summary = "delta-rule recurrence over time";
  let description = [{
    Per sequence and value head, for the tokens t in order (S is V x K; decay
    first, then the error, then the read):

    ```
    S <- S * exp(g_t)                per head, or per column of S for a gate per key channel
    S <- S + (w_t o v_t - S (e_t o k_t)) k_t^T      with e = w = beta, or erase and write
    S <- S + v_t k_t^T                              without beta, erase and write
    o_t = scale * S q_t
    ```

    Which optional operands are present selects the model:

    | gate | beta | model | source |
    |---|---|---|---|
    | - | - | linear attention | arXiv:2006.16236 |
    | per head | - | Mamba-2 / SSD, RetNet, lightning attention (dt folded into v) | arXiv:2405.21060 |
    | per key channel | - | GLA | arXiv:2312.06635 |
    | - | yes | DeltaNet | arXiv:2406.06484 |
    | per head | yes | Gated DeltaNet | arXiv:2412.06464 |
    | per key channel | yes | Kimi Delta Attention | arXiv:2510.26692 |
    | per key channel | `erase` and `write` | Gated DeltaNet-2 | |

    | operand | shape | element type | meaning |
    |---|---|---|---|
    | q, k | [B, T, Hqk, K] | f16, bf16 or f32 | queries, keys |
    | v | [B, T, Hv, V] | as q | values; Hv is a multiple of Hqk, value head h uses key head h / (Hv / Hqk) |
    | gate | [B, T, Hv] or [B, T, Hv, K] | f32 or as q | natural log of the decay; at most 0 in practice, above 0 (growth) is computed as given |
    | beta | [B, T, Hv] | f32 or as q | write strength, 0..1, or 0..2 with negative eigenvalues |
    | erase, write | [B, T, Hv, K], [B, T, Hv, V] | f32 or as q | both or none, not together with beta |
    | offsets | [N + 1] | i32 or i64 | cumulative sequence starts (cu_seqlens) of N sequences packed in one row: B = 1, offsets[0] = 0, offsets[N] = T, not decreasing |
    | slots | [N] | i32 or i64 | entry of the state that each sequence has; without it sequence n has entry n |
    | initial | as state | as state | initial state that stays as it is, in place of the destination `state` |
    | out | [B, T, Hv, V] | f32 or as q | destination of o |
    | state | [N, Hv, V, K] or [N, Hv, K, V] (`state_layout`), with slots [S, ...] | f32, bf16 or f16 | initial state in, final state out; N = B without offsets |
    | checkpoints | [B, floor(T / every), Hv, V, K] or [..., K, V] | f32, bf16 or f16 | destination of the states after every `every` tokens |

    Any K, V, T; B, T and N may be dynamic, the other sizes are static. `scale`
    is K^-1/2 when absent. An empty sequence is legal: its final state is its
    initial state. Decode is this op with T = 1. Sums and the state inside one
    call are float32 whatever the element types are; the final state is rounded
    to the state's element type once.

    With `slots` the state is a pool of S entries, S static or dynamic and
    independent of N, as an inference engine keeps it: sequence n starts from
    entry slots[n] and leaves its final state there. All other entries keep their
    values, bit by bit. A slot below 0 (padding of a batch) means no state:
    nothing of the pool is read or written for that sequence and its o is 0,
    whatever its q, k, v and factors hold. Two sequences with the same slot of 0
    or above, and a slot of S or above, are undefined behaviour: the op cannot
    see them, callers and `Kernel(..., validate=True)` of the Python package can.

    Where the states go is two independent choices. With `initial` in place of the
    destination `state` nothing is updated: a verify step that may have to take
    tokens back, or a prefill whose final state nobody needs. With `checkpoints`
    and the attribute `every` the states inside the sequence are kept as well:

    ```
    checkpoints[b, j] = S after the first (j + 1) * every tokens           without offsets
    checkpoints[0, offsets[n] / every + j] = the same of sequence n        with offsets; / rounds down
    ```

    for all j with (j + 1) * every at most the number of tokens of the sequence.
    `every = 1` gives the state after each token, of which a server commits the
    one behind the last accepted token. Elements of `checkpoints` that belong to
    no such j, or to a sequence without a state, keep their values. Each is
    rounded to its element type once; the recurrence goes on with the float32 state.

    On memrefs the destinations are different buffers that overlap no input.

    "No initial state" is an initial state of zeros (`arith.constant`,
    `linalg.fill` or `tensor.splat` of 0): the op has no second form for it, and
    canonicalization keeps it. A pass that gains from it asks `hasZeroState()`.
    A gate that is zero in this way is dropped. An op on 0 tokens folds to its
    destinations.

    Tiling: the iteration domain is (sequence, value head, value channel, time).
    The first three are parallel; time is sequential (declared as a reduction, to
    be tiled in order only). With offsets, a tile of one sequence reads the time
    slice [offsets[n], offsets[n + 1]) and has no offsets itself. With slots, a
    tile of one sequence has a pool of its own: entry slots[n] with slot 0, or no
    entry with slot -1, so that tiles write disjoint parts. With checkpoints,
    time is not tiled through the interface. A tile of value
    heads lies within one group of key heads or covers whole groups.

    Decomposition: the op on one block (B = Hqk = Hv = 1) and one chunk (T static)
    becomes the chunk form, where G is the inclusive cumulative sum of the gates,
    e and w the erase and write factors:

    ```
    X = (I + scores(e o k, k, G, strict))^-1       P = scores(scale q, k, G)
    U = X (w o v - (e o k o exp(G)) S)             without beta, erase, write: U = v
    o = (scale q o exp(G)) S + P U
    S <- exp(G_C) o S + (k o exp(G_C - G))^T U     G_C: the last row of G; S is K x V here
    ```

    ```mlir
    %o, %s = gdn.recurrence ins(%q, %k, %v : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>)
        gate(%g : tensor<1x?x32xf32>) beta(%b : tensor<1x?x32xf32>)
        outs(%o0, %s0 : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>)
        -> tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
    ```
  }];
  let arguments = (ins
    Gdn_Shaped:$q, Gdn_Shaped:$k, Gdn_Shaped:$v,
    Optional<Gdn_Shaped>:$gate, Optional<Gdn_Shaped>:$beta,
    Optional<Gdn_Shaped>:$erase, Optional<Gdn_Shaped>:$write,
    Optional<Gdn_Shaped>:$offsets, Optional<Gdn_Shaped>:$slots,
    Optional<Gdn_Shaped>:$initial,
    Gdn_Shaped:$out, Optional<Gdn_Shaped>:$state,
    Optional<Gdn_Shaped>:$checkpoints,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<I64Attr>:$every,
    DefaultValuedAttr<Gdn_StateLayoutAttr, "::mlir::gdn::StateLayout::VFirst">:$state_layout,
    OptionalAttr<Gdn_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    (`gate` `(` $gate^ `:` type($gate) `)`)?
    (`beta` `(` $beta^ `:` type($beta) `)`)?
    (`erase` `(` $erase^ `:` type($erase) `)`)?
    (`write` `(` $write^ `:` type($write) `)`)?
    (`offsets` `(` $offsets^ `:` type($offsets) `)`)?
    (`slots` `(` $slots^ `:` type($slots) `)`)?
    (`initial` `(` $initial^ `:` type($initial) `)`)?
    `outs` `(` $out (`,` $state^)? `:` type($out) (`,` type($state)^)? `)`
    (`checkpoints` `(` $checkpoints^ `:` type($checkpoints) `)`)?
    attr-dict (`->` type($results)^)?
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = baseDeclaration # [{
    MutableOperandRange getDpsInitsMutable() {
      // Behind the inputs: out, then state and checkpoints where they are.
      unsigned first = getOutMutable().getOperandNumber();
      return MutableOperandRange(*this, first, getNumOperands() - first);
    }
    /// The initial state: of the destination, or the one that is only read.
    Value getInitialState() { return getState() ? getState() : getInitial(); }
    ShapedType getQType() { return cast<ShapedType>(getQ().getType()); }
    ShapedType getVType() { return cast<ShapedType>(getV().getType()); }
    ShapedType getStateType() {
      return cast<ShapedType>(getInitialState().getType());
    }
    /// N, or the dynamic size.
    int64_t getNumSequences() {
      return getSlots() ? cast<ShapedType>(getSlots().getType()).getDimSize(0)
                        : getStateType().getDimSize(0);
    }
    /// Static sizes: key heads, value heads, key and value channels.
    int64_t getNumKeyHeads() { return getQType().getDimSize(2); }
    int64_t getNumValueHeads() { return getVType().getDimSize(2); }
    int64_t getKeySize() { return getQType().getDimSize(3); }
    int64_t getValueSize() { return getVType().getDimSize(3); }
    /// Value heads per key head.
    int64_t getGroupSize() { return getNumValueHeads() / getNumKeyHeads(); }
    /// Tokens from one checkpoint to the next; 0 without checkpoints.
    int64_t getCheckpointDistance() { return getEvery().value_or(0); }
    bool isKFirst() { return getStateLayout() == StateLayout::KFirst; }
    /// True if the state is corrected by the delta rule (beta, or erase and write).
    bool isDelta() { return getBeta() || getErase(); }
    bool hasChannelGate() {
      return getGate() && cast<ShapedType>(getGate().getType()).getRank() == 4;
    }
    /// True if the initial state is known to be zero.
    bool hasZeroState();
    /// The factor on q: the attribute, or K^-1/2.
    double getScaleValue();
    /// True if gdn-select-schedule has nothing to choose.
    bool isScheduled() {
      return getSchedule() && getSchedule()->getPhases() != Phases::Auto;
    }
    /// True if products of 16-bit inputs take operands in two parts.
    bool isHighPrecision() { return getSchedule() && getSchedule()->isHigh(); }
  }];
}

#endif // GDN_DIALECT_GDN_IR_GDNRECURRENCEOP_TD
