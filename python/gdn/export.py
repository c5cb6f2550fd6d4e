# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole token mixer as level-0 IR: `export_ir`.

Projections are linalg.matmul, everything between them gdn ops: short_conv, l2norm, gate, recurrence,
gated_rms_norm. Parameters are arguments of the function, under the names of the module.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import build
from . import export_mamba2 as mamba2
from .export_writer import SIGMOID, SILU, ModuleWriter


@dataclass(frozen=True)
class Geometry:
    """What decides the IR of a mixer. Sizes count channels; `low_rank` those between two projections."""

    hidden: int
    key_heads: int
    value_heads: int
    K: int
    V: int
    taps: int  # 0: no convolutions, only SiLU
    gate: str | None  # None, "head" or "channel"
    beta: str = "sigmoid"  # or "2sigmoid", or the constants "one" and "two"
    lower_bound: float | None = None
    low_rank: int | None = None  # of the decay's and of the output gate's projection (KDA)
    gate_bias: bool = False  # of the second projection of the output gate
    conv_bias: bool = False
    output_gate: str | None = "silu"  # activation, or None for a plain norm
    eps: float = 1e-6

    @property
    def keys(self):
        return self.key_heads * self.K

    @property
    def values(self):
        return self.value_heads * self.V


def _from_config(config):
    get = config.get if isinstance(config, dict) else lambda name, default=None: getattr(config, name, default)
    text = get("text_config")
    if text is not None:
        return _from_config(text)
    kind = str(get("model_type", ""))
    if kind == "kimi_linear":
        # config.json has the sizes in a dictionary of their own, transformers' object beside the others.
        own = get("linear_attn_config") or {}
        heads, size = own.get("num_heads", get("linear_num_heads")), own.get("head_dim", get("linear_head_dim"))
        taps = own.get("short_conv_kernel_size", get("linear_conv_kernel_dim"))
        return Geometry(
            get("hidden_size"), heads, heads, size, size, taps, "channel",
            low_rank=size, output_gate="sigmoid", eps=get("rms_norm_eps"),
        )  # fmt: skip
    if not kind.startswith(("qwen3_next", "qwen3_5", "olmo_hybrid")):
        known = "qwen3_next, qwen3_5, qwen3_5_moe, olmo_hybrid, kimi_linear"
        raise ValueError(f"no mixer is known for model_type '{kind}'; known: {known}")
    olmo = kind == "olmo_hybrid"
    return Geometry(
        get("hidden_size"), get("linear_num_key_heads"), get("linear_num_value_heads"), get("linear_key_head_dim"),
        get("linear_value_head_dim"), get("linear_conv_kernel_dim"), "head",
        beta="2sigmoid" if olmo and get("linear_allow_neg_eigval", True) else "sigmoid",
        eps=1e-5 if olmo else get("rms_norm_eps"),
    )  # fmt: skip


def _from_module(module):
    kind = type(module).__name__
    if kind == "Mamba2Mixer":
        return mamba2.from_module(module)
    beta = "2sigmoid" if getattr(module, "allow_neg_eigval", False) else "sigmoid"
    conv = getattr(module, "q_conv1d", None)
    taps, bias = (conv.taps, conv.bias is not None) if conv is not None else (0, False)
    if kind == "GatedDeltaNet":
        return Geometry(
            module.hidden_size, module.num_heads, module.num_v_heads, module.head_dim, module.head_v_dim,
            taps, "head", beta=beta, output_gate="silu" if module.use_gate else None, eps=module.norm_eps,
            conv_bias=bias,
        )  # fmt: skip
    if kind == "KimiDeltaAttention":
        return Geometry(
            module.hidden_size, module.num_heads, module.num_v_heads, module.head_dim, module.head_v_dim,
            taps, "channel", beta=beta, lower_bound=module.lower_bound, low_rank=module.head_v_dim,
            gate_bias=True, output_gate="sigmoid", eps=module.o_norm.eps, conv_bias=bias,
        )  # fmt: skip
    if kind == "DeltaNet":
        if not module.use_beta:
            beta = "two" if module.allow_neg_eigval else "one"
        return Geometry(
            module.hidden_size, module.num_heads, module.num_heads, module.head_k_dim, module.head_v_dim,
            taps, None, beta=beta, output_gate="silu" if module.use_gate else None, eps=module.o_norm.eps,
            conv_bias=bias,
        )  # fmt: skip
    raise ValueError(f"export_ir has no form for {kind}")


def geometry(source):
    """The `Geometry` of a gdn.nn mixer, or of a transformers configuration (object or dict)."""
    if isinstance(source, (Geometry, mamba2.Mamba2Geometry)):
        return source
    if isinstance(source, dict) or hasattr(source, "model_type"):
        return _from_config(source)
    return _from_module(source)


class _Writer(ModuleWriter):
    def parameters(self):
        """Name, shape and element type of the parameters, in order."""
        g, d = self.g, self.dtype
        weights = [("q_proj", g.keys), ("k_proj", g.keys), ("v_proj", g.values)]
        for name, size in weights:
            yield f"{name}.weight", (size, g.hidden), d
        for name, size in (("q_conv1d", g.keys), ("k_conv1d", g.keys), ("v_conv1d", g.values)) if g.taps else ():
            yield f"{name}.weight", (size, g.taps), d
            if g.conv_bias:
                yield f"{name}.bias", (size,), d
        if g.gate == "head":
            yield "a_proj.weight", (g.value_heads, g.hidden), d
        if g.gate == "channel":
            yield "f_proj.0.weight", (g.low_rank, g.hidden), d
            yield "f_proj.1.weight", (g.value_heads * g.K, g.low_rank), d
        if g.gate:
            yield "A_log", (g.value_heads,), "f32"
            yield "dt_bias", (g.value_heads,) + ((g.K,) if g.gate == "channel" else ()), "f32"
        if g.beta in SIGMOID:
            yield "b_proj.weight", (g.value_heads, g.hidden), d
        if g.output_gate and g.low_rank:
            yield "g_proj.0.weight", (g.low_rank, g.hidden), d
            yield "g_proj.1.weight", (g.values, g.low_rank), d
            if g.gate_bias:
                yield "g_proj.1.bias", (g.values,), d
        elif g.output_gate:
            yield "g_proj.weight", (g.values, g.hidden), d
        yield "o_norm.weight", (g.V,), d
        yield "o_proj.weight", (g.hidden, g.values), d

    def convolved(self, part, heads, size):
        """Projection, convolution with SiLU, and its new state, of q, k or v."""
        D = heads * size
        x = self.project(f"{part}_x", self.name(f"{part}_proj.weight"), (D,))
        if self.g.taps:
            bias = f"{part}_conv1d_bias" if self.g.conv_bias else None
            self.convolve(f"{part}_y", x, f"{part}_conv1d_weight", bias, f"{part}_conv", D)
        else:
            self.generic(f"{part}_y", [x], ["d0, d1, d2"], (self.B, self.T, D), self.dtype, x, SILU)
        return self.reshape(part, f"{part}_y", (self.B, self.T, heads, size), "[[0], [1], [2, 3]]", "expand")

    # --- the mixer ---

    def write(self):
        self.add_arguments()
        f, g = self.f, self.g
        self.open()
        q = self.normalized(self.convolved("q", g.key_heads, g.K))
        k = self.normalized(self.convolved("k", g.key_heads, g.K))
        v = self.convolved("v", g.value_heads, g.V)
        decay, beta = self.decay(), self.strength()
        o = f.empty_like("o_empty", v, (self.B, self.T, g.value_heads, g.V), self.dtype)
        f.op(
            ["o", "state_final"], "recurrence", [("ins", [q, k, v]), ("gate", [decay]), ("beta", [beta])], [o, "state"]
        )
        self.output()
        states = [f"{part}_conv_final" for part in "qkv"] if g.taps else []
        return f.module(["y", *states, "state_final"])

    def add_arguments(self):
        f, g = self.f, self.g
        f.argument("x", (self.B, self.T, g.hidden), self.dtype)
        for name, shape, dtype in self.parameters():
            f.argument(self.name(name), shape, dtype)
        f.destination("out", (self.B, self.T, g.hidden), self.dtype)
        for part, size in (("q", g.keys), ("k", g.keys), ("v", g.values)) if g.taps else ():
            f.destination(f"{part}_conv_state", (self.B, size, g.taps - 1), self.dtype)
        f.destination("state", (self.B, g.value_heads, g.V, g.K), "f32")

    def normalized(self, part):
        f, g = self.f, self.g
        empty = f.empty_like(f"{part}_norm_empty", part, (self.B, self.T, g.key_heads, g.K), self.dtype)
        f.op([f"{part}_norm"], "l2norm", [("ins", [part])], [empty], ["eps = 1.0e-06"])
        return f"{part}_norm"

    def low_rank(self, result, prefix, tail, bias=None):
        """Two projections in a row."""
        g = self.g
        inner = self.matmul(f"{result}_inner", "x_rows", self.name(f"{prefix}.0.weight"), g.low_rank, self.dtype)
        size = tail[0] * tail[1]
        rows = self.matmul(f"{result}_rows", inner, self.name(f"{prefix}.1.weight"), size, self.dtype)
        if bias:
            maps = ["d0, d1", "d1"]
            lines = ["arith.addf %0, %1 : f32"]
            rows = self.generic(f"{result}_biased", [rows, bias], maps, (self.tokens, size), self.dtype, rows, lines)
        return self.unflatten(result, rows, tail)

    def decay(self):
        f, g = self.f, self.g
        if g.gate is None:
            return None
        shape = (self.B, self.T, g.value_heads) + ((g.K,) if g.gate == "channel" else ())
        if g.gate == "head":
            a = self.project("a_x", "a_proj_weight", (g.value_heads,))
        else:
            a = self.low_rank("a_x", "f_proj", (g.value_heads, g.K))
        if self.dtype != "f32":
            dims = ", ".join(f"d{i}" for i in range(len(shape)))
            a = self.generic("a_f32", [a], [dims], shape, "f32", a, [])
        empty = f.empty_like("decay_empty", a, shape, "f32")
        bound = "" if g.lower_bound is None else f"lower_bound = {build.real(g.lower_bound)}"
        f.op(["decay"], "gate", [("ins", [a, "A_log"]), ("bias", ["dt_bias"])], [empty], [bound])
        return "decay"

    def strength(self):
        g, shape = self.g, (self.B, self.T, self.g.value_heads)
        if g.beta not in SIGMOID:
            return self.filled("strength", shape, "f32", {"one": "1.0", "two": "2.0"}[g.beta], "x")
        b = self.project("b_x", "b_proj_weight", (g.value_heads,))
        return self.generic("strength", [b], ["d0, d1, d2"], shape, "f32", b, SIGMOID[g.beta])

    def output(self):
        f, g = self.f, self.g
        shape = (self.B, self.T, g.value_heads, g.V)
        tail = (g.value_heads, g.V)
        activation = g.output_gate
        if activation and g.low_rank:
            z = self.low_rank("z", "g_proj", tail, "g_proj_1_bias" if g.gate_bias else None)
        elif activation:
            z = self.project("z", "g_proj_weight", tail)
        else:
            activation, z = "none", self.filled("z", shape, self.dtype, "1.0", "o")
        empty = f.empty_like("normed_empty", "o", shape, self.dtype)
        f.op(
            ["normed"], "gated_rms_norm", [("ins", ["o", z, "o_norm_weight"])], [empty],
            [f"eps = {build.real(g.eps)}", f"activation = #gdn.activation<{activation}>"],
        )  # fmt: skip
        rows = self.reshape("normed_rows", "normed", (self.tokens, g.values), "[[0, 1], [2, 3]]", "collapse")
        self.last_projection(rows, "o_proj_weight")


def export_ir(source, B=1, T=None, *, dtype="bf16", name="forward"):
    """The whole mixer as the text of a module at level 0, for gdn-opt and gdn-compile.

    source   a mixer of gdn.nn, or the configuration of a transformers model (object, or dict as in
             config.json) whose linear-attention layers are meant: qwen3_next, qwen3_5, qwen3_5_moe,
             olmo_hybrid, kimi_linear
    B, T     sizes; None: dynamic
    dtype    of x, the weights and the output: "bf16", "f16" or "f32"

    The function takes x [B, T, hidden], the parameters under the module's names with `_` for `.`
    (convolution weights as [D, W]; every projection separate, whatever the model packs together), and
    the destinations out [B, T, hidden], q_conv_state, k_conv_state, v_conv_state [B, D, W - 1] (Mamba2Mixer:
    one conv_state; none without convolutions) and state [B, HV, V, K] f32, which hold the initial states and
    then the final ones. It returns all destinations. Raises ValueError for a module or model type it does not know.
    """
    if dtype not in build.ELEMENT_TYPES:
        raise ValueError(f"dtype is '{dtype}'; expected one of {', '.join(build.ELEMENT_TYPES)}")
    return _writer(source, B, T, dtype, name).write()


def _writer(source, *arguments):
    of = geometry(source)
    return (mamba2.Writer if isinstance(of, mamba2.Mamba2Geometry) else _Writer)(of, *arguments)


def parameter_names(source):
    """Names of the parameters that `export_ir` makes arguments, in order, as in the module's state dict."""
    return [name for name, *_ in _writer(source, 1, None, "f32", "forward").parameters()]
