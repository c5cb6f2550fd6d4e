//===- GdnMixerOps.td - parts of a token mixer -------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNMIXEROPS_TD
#define GDN_DIALECT_GDN_IR_GDNMIXEROPS_TD

include "gdn/Dialect/Gdn/IR/GdnOpBase.td"

// One destination, one result.
class Gdn_MapOp<string mnemonic, list<Trait> traits = []>
    : Gdn_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]> {
  code initDeclaration = baseDeclaration # [{
    MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
  }];
}

def Gdn_L2NormOp : Gdn_MapOp<"l2norm"> {
  let summary = "l2 normalisation over the last dimension";
  let description = [{
    `y = x * rsqrt(sum(x^2) + eps)`, the sum over the last dimension in float32.

    x and out have one shape [..., K] and one element type (f16, bf16, f32); the
    last size is static. As on q and k of Qwen3-Next and of the FLA layers
    (eps 1e-6). A zero row gives zeros if eps is above 0.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$out,
                       DefaultValuedAttr<F64Attr, "1.0e-6">:$eps);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `:` type($x) `)` `outs` `(` $out `:` type($out) `)`
    attr-dict (`->` type($results)^)?
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = initDeclaration;
}

def Gdn_GateOp : Gdn_MapOp<"gate"> {
  let summary = "log decay of a token from the model's projection";
  let description = [{
    ```
    g = -exp(A_log) * softplus(a + dt_bias)                       softplus form
    g = lower_bound * sigmoid(exp(A_log) * (a + dt_bias))         bounded form, with `lower_bound`
    ```

    | operand | shape | meaning |
    |---|---|---|
    | a | [B, T, Hv] or [B, T, Hv, K] | projection, f16, bf16 or f32 |
    | A_log | [Hv] | log of the decay rate, f32 |
    | bias | [Hv] or [Hv, K], optional | dt_bias, f32; trailing dimensions of a |
    | out | as a | natural log of the decay, f32 |

    All arithmetic is float32. softplus(x) = max(x, 0) + log1p(exp(-|x|)): no
    jump, no overflow. `lower_bound` lies in [-5, 0). Sources: Mamba-2
    (arXiv:2405.21060), Gated DeltaNet (arXiv:2412.06464), Kimi Linear
    (arXiv:2510.26692; bounded form).
  }];
  let arguments = (ins Gdn_Shaped:$a, Gdn_Shaped:$A_log,
                       Optional<Gdn_Shaped>:$bias, Gdn_Shaped:$out,
                       OptionalAttr<F64Attr>:$lower_bound);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $a `,` $A_log `:` type($a) `,` type($A_log) `)`
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = initDeclaration;
}

def Gdn_ShortConvOp : Gdn_Op<"short_conv", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]> {
  let summary = "depthwise causal convolution with its state";
  let description = [{
    ```
    y[t, d] = act(bias[d] + sum_{i < W} w[d, i] * x[t - W + 1 + i, d])
    ```

    where x at negative times is the state: the last S >= W - 1 inputs before the
    sequence, oldest first (S = W is the format of transformers, S = W - 1 that of
    ONNX). The final state is the last S inputs including this call's.

    | operand | shape | meaning |
    |---|---|---|
    | x, out | [B, T, D] | inputs and outputs, f16, bf16 or f32 |
    | w | [D, W] | taps, the last one meets the current token; f32 or as x |
    | bias | [D], optional | f32 or as x |
    | offsets | [N + 1], optional | as in `gdn.recurrence`: packed sequences do not see each other |
    | state | [N, D, S] | initial state in, final state out; f32 or as x |

    Sums are float32. On memrefs the two destinations are different buffers
    that overlap no input.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$w,
                       Optional<Gdn_Shaped>:$bias,
                       Optional<Gdn_Shaped>:$offsets,
                       Gdn_Shaped:$out, Gdn_Shaped:$state,
                       DefaultValuedAttr<Gdn_ActivationAttr, "::mlir::gdn::Activation::None">:$activation);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `,` $w `:` type($x) `,` type($w) `)`
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`offsets` `(` $offsets^ `:` type($offsets) `)`)?
    `outs` `(` $out `,` $state `:` type($out) `,` type($state) `)`
    attr-dict (`->` type($results)^)?
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = baseDeclaration # [{
    MutableOperandRange getDpsInitsMutable() {
      return MutableOperandRange(*this, getNumOperands() - 2, 2);
    }
  }];
}

def Gdn_GatedRMSNormOp : Gdn_MapOp<"gated_rms_norm"> {
  let summary = "RMS normalisation times a gate";
  let description = [{
    `y = x * rsqrt(mean(x^2) + eps) * w * act(z)`, the mean over the last
    dimension; float32 to the end, rounded once.

    x, z and out have one shape [..., V] and one element type (f16, bf16, f32), w
    is [V], f32 or as x. `activation` is `silu` (Qwen3-Next, FLA) or `sigmoid`
    (Kimi Linear); `none` multiplies by z itself.
  }];
  let arguments = (ins Gdn_Shaped:$x, Gdn_Shaped:$z, Gdn_Shaped:$w,
                       Gdn_Shaped:$out,
                       DefaultValuedAttr<F64Attr, "1.0e-6">:$eps,
                       DefaultValuedAttr<Gdn_ActivationAttr, "::mlir::gdn::Activation::SiLU">:$activation);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $x `,` $z `,` $w `:` type($x) `,` type($z) `,` type($w) `)`
    `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = initDeclaration;
}

#endif // GDN_DIALECT_GDN_IR_GDNMIXEROPS_TD
