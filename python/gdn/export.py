# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole token mixer as level-0 IR: `export_ir`.

Projections are linalg.matmul, everything between them gdn ops: short_conv, l2norm, gate, recurrence,
gated_rms_norm. Parameters are arguments of the function, under the names of the module.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import build


@dataclass(frozen=True)
class Geometry:
    """What decides the IR of a mixer. Sizes count channels; `low_rank` those between two projections."""

    hidden: int
    key_heads: int
    value_heads: int
    K: int
    V: int
    taps: int
    gate: str | None  # None, "head" or "channel"
    beta: str = "sigmoid"  # or "2sigmoid"
    lower_bound: float | None = None
    low_rank: int | None = None  # of the decay's and of the output gate's projection (KDA)
    gate_bias: bool = False  # of the second projection of the output gate
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
    if getattr(getattr(module, "q_conv1d", None), "bias", None) is not None:
        raise ValueError(f"export_ir has no form for {kind} with a bias in its convolutions")
    beta = "2sigmoid" if getattr(module, "allow_neg_eigval", False) else "sigmoid"
    if kind == "GatedDeltaNet" and module.conv_size:
        return Geometry(
            module.hidden_size, module.num_heads, module.num_v_heads, module.head_dim, module.head_v_dim,
            module.conv_size, "head", beta=beta, output_gate="silu" if module.use_gate else None, eps=module.norm_eps,
        )  # fmt: skip
    if kind == "KimiDeltaAttention":
        return Geometry(
            module.hidden_size, module.num_heads, module.num_v_heads, module.head_dim, module.head_v_dim,
            module.q_conv1d.taps, "channel", beta=beta, lower_bound=module.lower_bound, low_rank=module.head_v_dim,
            gate_bias=True, output_gate="sigmoid", eps=module.o_norm.eps,
        )  # fmt: skip
    if kind == "DeltaNet" and module.use_beta:
        return Geometry(
            module.hidden_size, module.num_heads, module.num_heads, module.head_k_dim, module.head_v_dim,
            module.q_conv1d.taps, None, beta=beta, output_gate="silu" if module.use_gate else None,
            eps=module.o_norm.eps,
        )  # fmt: skip
    raise ValueError(f"export_ir has no form for {kind} with these options")


def geometry(source):
    """The `Geometry` of a gdn.nn mixer, or of a transformers configuration (object or dict)."""
    if isinstance(source, Geometry):
        return source
    if isinstance(source, dict) or hasattr(source, "model_type"):
        return _from_config(source)
    return _from_module(source)


class _Writer:
    def __init__(self, geometry, B, T, dtype, name):
        self.g, self.B, self.T, self.dtype = geometry, B, T, dtype
        self.f = build.Function(name)

    def parameters(self):
        """Name, shape and element type of the parameters, in order."""
        g, d = self.g, self.dtype
        weights = [("q_proj", g.keys), ("k_proj", g.keys), ("v_proj", g.values)]
        for name, size in weights:
            yield f"{name}.weight", (size, g.hidden), d
        for name, size in (("q_conv1d", g.keys), ("k_conv1d", g.keys), ("v_conv1d", g.values)):
            yield f"{name}.weight", (size, g.taps), d
        if g.gate == "head":
            yield "a_proj.weight", (g.value_heads, g.hidden), d
        if g.gate == "channel":
            yield "f_proj.0.weight", (g.low_rank, g.hidden), d
            yield "f_proj.1.weight", (g.value_heads * g.K, g.low_rank), d
        if g.gate:
            yield "A_log", (g.value_heads,), "f32"
            yield "dt_bias", (g.value_heads,) + ((g.K,) if g.gate == "channel" else ()), "f32"
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

    # --- pieces ---

    def generic(self, result, inputs, maps, shape, dtype, like, lines, into=None):
        """Elementwise `lines` over %0, %1, ... (float32) into a tensor of `dtype`; `maps` as of d0, d1, ..."""
        f, rank = self.f, len(shape)
        into = into or f.empty_like(f"{result}_empty", like, shape, dtype)
        dims = ", ".join(f"d{i}" for i in range(rank))
        texts = [f"affine_map<({dims}) -> ({m})>" for m in [*maps, dims]]
        kinds = ", ".join(['"parallel"'] * rank)
        sources = ", ".join("%" + name for name in inputs)
        types = ", ".join(f.types[name] for name in inputs)
        f.line(
            f"%{result} = linalg.generic {{indexing_maps = [{', '.join(texts)}], iterator_types = [{kinds}]}} "
            f"ins({sources} : {types}) outs(%{into} : {f.types[into]}) {{"
        )
        elements = [f.types[name].rsplit("x", 1)[1].rstrip(">") for name in inputs]
        arguments = [f"%{result}_in{i}: {element}" for i, element in enumerate(elements)]
        f.line(f"^bb0({', '.join(arguments)}, %{result}_old: {dtype}):")
        values = []
        for i, element in enumerate(elements):
            values.append(f"{result}_in{i}")
            if element != "f32":
                f.line(f"  %{result}_x{i} = arith.extf %{values[-1]} : {element} to f32")
                values[-1] = f"{result}_x{i}"
        value = values[0]
        for number, line in enumerate(lines):
            for i, name in enumerate(values):
                line = line.replace(f"%{i} ", f"%{name} ").replace(f"%{i},", f"%{name},")
            f.line(f"  %{result}_{number} = " + line.replace("%@", f"%{result}_"))
            value = f"{result}_{number}"
        if dtype != "f32":
            f.line(f"  %{result}_y = arith.truncf %{value} : f32 to {dtype}")
            value = f"{result}_y"
        f.line(f"  linalg.yield %{value} : {dtype}")
        f.line(f"}} -> {f.types[into]}")
        f.types[result] = f.types[into]
        return result

    def reshape(self, result, source, shape, groups, op):
        """tensor.collapse_shape or expand_shape."""
        f = self.f
        f.types[result] = build.tensor(shape, f.types[source].rsplit("x", 1)[1].rstrip(">"))
        text = f"%{result} = tensor.{op}_shape %{source} {groups} "
        if op == "expand":
            sizes = [
                str(size) if size is not None else f"%{'B' if axis == 0 else 'T'}" for axis, size in enumerate(shape)
            ]
            text += f"output_shape [{', '.join(sizes)}] "
        f.line(text + f": {f.types[source]} into {f.types[result]}")
        return result

    @property
    def tokens(self):
        return None if self.B is None or self.T is None else self.B * self.T

    def matmul(self, result, rows, weight, size, dtype, into=None):
        """[B * T, in] times the transposed weight [size, in], accumulated in float32; into `into` if f32."""
        f = self.f
        zero = into or f.empty_like(f"{result}_acc", rows, (self.tokens, size), "f32")
        f.line(f"%{result}_zero = linalg.fill ins(%zero : f32) outs(%{zero} : {f.types[zero]}) -> {f.types[zero]}")
        maps = "[affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]"
        f.line(
            f"%{result}_sum = linalg.matmul indexing_maps = {maps} ins(%{rows}, %{weight} : {f.types[rows]}, "
            f"{f.types[weight]}) outs(%{result}_zero : {f.types[zero]}) -> {f.types[zero]}"
        )
        f.types[f"{result}_sum"] = f.types[zero]
        if dtype == "f32":
            f.types[result] = f.types[zero]
            f.lines[-1] = f.lines[-1].replace(f"%{result}_sum =", f"%{result} =", 1)
            return result
        return self.generic(result, [f"{result}_sum"], ["d0, d1"], (self.tokens, size), dtype, rows, [])

    def project(self, result, weight, tail):
        """x times a weight, as [B, T, *tail]."""
        size = tail[0] * (tail[1] if len(tail) > 1 else 1)
        flat = self.matmul(f"{result}_rows", "x_rows", weight, size, self.dtype)
        return self.unflatten(result, flat, tail)

    def unflatten(self, result, flat, tail):
        groups = "[[0, 1], [2]]" if len(tail) == 1 else "[[0, 1], [2, 3]]"
        return self.reshape(result, flat, (self.B, self.T, *tail), groups, "expand")

    def convolved(self, part, heads, size):
        """Projection, convolution with SiLU, and its new state, of q, k or v."""
        f, D = self.f, heads * size
        x = self.project(f"{part}_x", self.name(f"{part}_proj.weight"), (D,))
        empty = f.empty_like(f"{part}_y_empty", x, (self.B, self.T, D), self.dtype)
        state = f"{part}_conv_state"
        f.op(
            [f"{part}_y", f"{part}_conv_final"], "short_conv", [("ins", [x, self.name(f"{part}_conv1d.weight")])],
            [empty, state], ["activation = #gdn.activation<silu>"],
        )  # fmt: skip
        return self.reshape(part, f"{part}_y", (self.B, self.T, heads, size), "[[0], [1], [2, 3]]", "expand")

    @staticmethod
    def name(parameter):
        return parameter.replace(".", "_")

    # --- the mixer ---

    def write(self):
        self.add_arguments()
        f, g = self.f, self.g
        f.line("%zero = arith.constant 0.0 : f32")
        for axis, name in enumerate("BT"):
            f.line(f"%axis{axis} = arith.constant {axis} : index")
            f.line(f"%{name} = tensor.dim %x, %axis{axis} : {f.types['x']}")
        self.reshape("x_rows", "x", (self.tokens, g.hidden), "[[0, 1], [2]]", "collapse")
        q = self.normalized(self.convolved("q", g.key_heads, g.K))
        k = self.normalized(self.convolved("k", g.key_heads, g.K))
        v = self.convolved("v", g.value_heads, g.V)
        decay, beta = self.decay(), self.strength()
        o = f.empty_like("o_empty", v, (self.B, self.T, g.value_heads, g.V), self.dtype)
        f.op(
            ["o", "state_final"], "recurrence", [("ins", [q, k, v]), ("gate", [decay]), ("beta", [beta])], [o, "state"]
        )
        self.output()
        return f.module(["y", "q_conv_final", "k_conv_final", "v_conv_final", "state_final"])

    def add_arguments(self):
        f, g = self.f, self.g
        f.argument("x", (self.B, self.T, g.hidden), self.dtype)
        for name, shape, dtype in self.parameters():
            f.argument(self.name(name), shape, dtype)
        f.destination("out", (self.B, self.T, g.hidden), self.dtype)
        for part, size in (("q", g.keys), ("k", g.keys), ("v", g.values)):
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
        g = self.g
        b = self.project("b_x", "b_proj_weight", (g.value_heads,))
        top = "2.0" if g.beta == "2sigmoid" else "1.0"
        lines = [
            "arith.negf %0 : f32",
            "math.exp %@0 : f32",
            "arith.constant 1.0 : f32",
            "arith.addf %@1, %@2 : f32",
            f"arith.constant {top} : f32",
            "arith.divf %@4, %@3 : f32",
        ]
        shape = (self.B, self.T, g.value_heads)
        return self.generic("strength", [b], ["d0, d1, d2"], shape, "f32", b, lines)

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
            activation, empty = "none", f.empty_like("z_empty", "o", shape, self.dtype)
            f.line(f"%one = arith.constant 1.0 : {self.dtype}")
            f.line(f"%z = linalg.fill ins(%one : {self.dtype}) outs(%{empty} : {f.types[empty]}) -> {f.types[empty]}")
            f.types["z"], z = f.types[empty], "z"
        empty = f.empty_like("normed_empty", "o", shape, self.dtype)
        f.op(
            ["normed"], "gated_rms_norm", [("ins", ["o", z, "o_norm_weight"])], [empty],
            [f"eps = {build.real(g.eps)}", f"activation = #gdn.activation<{activation}>"],
        )  # fmt: skip
        rows = self.reshape("normed_rows", "normed", (self.tokens, g.values), "[[0, 1], [2, 3]]", "collapse")
        whole = (self.B, self.T, g.hidden)
        into = self.reshape("out_rows", "out", (self.tokens, g.hidden), "[[0, 1], [2]]", "collapse")
        sums = self.matmul("y_rows", rows, "o_proj_weight", g.hidden, "f32", into if self.dtype == "f32" else None)
        if self.dtype != "f32":
            sums = self.generic("y_rounded", [sums], ["d0, d1"], (self.tokens, g.hidden), self.dtype, rows, [], into)
        self.reshape("y", sums, whole, "[[0, 1], [2]]", "expand")


def export_ir(source, B=1, T=None, *, dtype="bf16", name="forward"):
    """The whole mixer as the text of a module at level 0, for gdn-opt and gdn-compile.

    source   a mixer of gdn.nn (GatedDeltaNet, KimiDeltaAttention, DeltaNet), or the configuration of a
             transformers model (object, or dict as in config.json) whose linear-attention layers are
             meant: qwen3_next, qwen3_5, qwen3_5_moe, olmo_hybrid, kimi_linear
    B, T     sizes; one of them may be None, dynamic
    dtype    of x, the weights and the output: "bf16", "f16" or "f32"

    The function takes x [B, T, hidden], the parameters under the module's names with `_` for `.`
    (convolution weights as [D, W]; every projection separate, whatever the model packs together), and
    the destinations out [B, T, hidden], q_conv_state, k_conv_state, v_conv_state [B, D, W - 1] and
    state [B, HV, V, K] f32, which hold the initial states and then the final ones. It returns all five.
    Raises ValueError for a module or model type it does not know (Mamba2Mixer), and for one without convolutions,
    with a bias in them, or without beta.
    """
    if B is None and T is None:
        # MLIR 22.1 fails on tensor.expand_shape of one dynamic size into two.
        raise ValueError("B and T cannot both be dynamic: give one of them a size")
    if dtype not in build.ELEMENT_TYPES:
        raise ValueError(f"dtype is '{dtype}'; expected one of {', '.join(build.ELEMENT_TYPES)}")
    return _Writer(geometry(source), B, T, dtype, name).write()


def parameter_names(source):
    """Names of the parameters that `export_ir` makes arguments, in order, as in the module's state dict."""
    return [name for name, *_ in _Writer(geometry(source), 1, None, "f32", "forward").parameters()]
