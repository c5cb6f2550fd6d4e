# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR of gdn.nn.Mamba2Mixer, for `export_ir`: one projection, one convolution, a norm behind the output gate."""

from __future__ import annotations

from dataclasses import dataclass

from . import build
from .export_writer import SILU, ModuleWriter

# log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); x = %0 + %1 in line 0.
_SOFTPLUS = [
    "arith.addf %0, %1 : f32",
    "math.absf %@0 : f32",
    "arith.negf %@1 : f32",
    "math.exp %@2 : f32",
    "math.log1p %@3 : f32",
    "arith.constant 0.0 : f32",
    "arith.maximumf %@0, %@5 : f32",
    "arith.addf %@6, %@4 : f32",
]


@dataclass(frozen=True)
class Mamba2Geometry:
    """What decides the IR of a Mamba-2 mixer: `heads` of P channels, B and C of `groups` heads of N channels."""

    hidden: int
    heads: int
    P: int
    groups: int
    N: int
    taps: int
    conv_bias: bool = True
    eps: float = 1e-5

    @property
    def inner(self):
        return self.heads * self.P

    @property
    def grouped(self):
        return self.groups * self.N

    @property
    def channels(self):
        return self.inner + 2 * self.grouped


def from_module(module):
    return Mamba2Geometry(
        module.hidden_size, module.num_heads, module.head_dim, module.n_groups, module.state_size,
        module.conv1d.taps, module.conv1d.bias is not None, module.norm_eps,
    )  # fmt: skip


class Writer(ModuleWriter):
    def parameters(self):
        """Name, shape and element type of the parameters, in order."""
        g, d = self.g, self.dtype
        yield "in_proj.weight", (g.inner + g.channels + g.heads, g.hidden), d
        yield "conv1d.weight", (g.channels, g.taps), d
        if g.conv_bias:
            yield "conv1d.bias", (g.channels,), d
        yield "A_log", (g.heads,), "f32"
        yield "D", (g.heads,), "f32"
        yield "dt_bias", (g.heads,), "f32"
        yield "norm.weight", (g.inner,), d
        yield "out_proj.weight", (g.hidden, g.inner), d

    def write(self):
        f, g = self.f, self.g
        f.argument("x", (self.B, self.T, g.hidden), self.dtype)
        for name, shape, dtype in self.parameters():
            f.argument(self.name(name), shape, dtype)
        f.destination("out", (self.B, self.T, g.hidden), self.dtype)
        f.destination("conv_state", (self.B, g.channels, g.taps - 1), self.dtype)
        f.destination("state", (self.B, g.heads, g.P, g.N), "f32")
        self.open()
        z = self.part_of_projection("z", 0, (g.heads, g.P))
        joint = self.part_of_projection("xbc_x", g.inner, (g.channels,))
        dt = self.part_of_projection("dt_x", g.inner + g.channels, (g.heads,))
        self.convolve("xbc", joint, "conv1d_weight", "conv1d_bias" if g.conv_bias else None, "conv", g.channels)
        u = self.part_of_convolution("u", 0, (g.heads, g.P))
        k = self.part_of_convolution("k", g.inner, (g.groups, g.N))
        q = self.part_of_convolution("q", g.inner + g.grouped, (g.groups, g.N))
        self.recurrence(q, k, u, dt)
        self.output(u, z)
        return f.module(["y", "conv_final", "state_final"])

    def part_of_projection(self, result, start, tail):
        """x times the rows of in_proj's weight from `start` on."""
        f, g = self.f, self.g
        size = tail[0] * (tail[1] if len(tail) > 1 else 1)
        weight, kind = f"{result}_weight", build.tensor((size, g.hidden), self.dtype)
        f.line(
            f"%{weight} = tensor.extract_slice %in_proj_weight[{start}, 0] [{size}, {g.hidden}] [1, 1] "
            f": {f.types['in_proj_weight']} to {kind}"
        )
        f.types[weight] = kind
        return self.project(result, weight, tail)

    def part_of_convolution(self, result, start, tail):
        """Channels from `start` on, as heads."""
        f, size = self.f, tail[0] * tail[1]
        kind = build.tensor((self.B, self.T, size), self.dtype)
        sizes = ", ".join([*("%" + n if s is None else str(s) for n, s in (("B", self.B), ("T", self.T))), str(size)])
        f.line(
            f"%{result}_channels = tensor.extract_slice %xbc[0, 0, {start}] [{sizes}] [1, 1, 1] "
            f": {f.types['xbc']} to {kind}"
        )
        f.types[f"{result}_channels"] = kind
        shape = (self.B, self.T, *tail)
        return self.reshape(result, f"{result}_channels", shape, "[[0], [1], [2, 3]]", "expand")

    def recurrence(self, q, k, u, dt):
        """o and the final state: a decay per head, dt folded into the values, no delta rule."""
        f, g = self.f, self.g
        heads = (self.B, self.T, g.heads)
        values = (*heads, g.P)
        step = self.generic("step", [dt, "dt_bias"], ["d0, d1, d2", "d2"], heads, "f32", dt, _SOFTPLUS)
        lines = ["arith.mulf %0, %1 : f32"]
        v = self.generic("v", [u, step], ["d0, d1, d2, d3", "d0, d1, d2"], values, self.dtype, u, lines)
        a = self.generic("a_f32", [dt], ["d0, d1, d2"], heads, "f32", dt, []) if self.dtype != "f32" else dt
        empty = f.empty_like("decay_empty", a, heads, "f32")
        f.op(["decay"], "gate", [("ins", [a, "A_log"]), ("bias", ["dt_bias"])], [empty])
        o = f.empty_like("o_empty", v, values, self.dtype)
        groups = [("ins", [q, k, v]), ("gate", ["decay"])]
        f.op(["o", "state_final"], "recurrence", groups, [o, "state"], ["scale = 1.0"])

    def output(self, u, z):
        """(o + D u) silu(z), normalised over all channels, times the last weight."""
        f, g = self.f, self.g
        values = (self.B, self.T, g.heads, g.P)
        each = "d0, d1, d2, d3"
        lines = ["arith.mulf %1, %2 : f32", "arith.addf %0, %@0 : f32"]
        skipped = self.generic("skipped", ["o", u, "D"], [each, each, "d2"], values, "f32", "o", lines)
        gate = self.generic("gate", [z], [each], values, "f32", z, SILU)
        gated = self.generic("gated", [skipped, gate], [each, each], values, "f32", "o", ["arith.mulf %0, %1 : f32"])
        whole = self.reshape("gated_rows", gated, (self.tokens, g.inner), "[[0, 1], [2, 3]]", "collapse")
        ones = self.filled("ones", (self.tokens, g.inner), "f32", "1.0", whole)
        weight = "norm_weight"
        if self.dtype != "f32":
            weight = self.generic("norm_f32", [weight], ["d0"], (g.inner,), "f32", weight, [])
        empty = f.empty_like("normed_empty", whole, (self.tokens, g.inner), "f32")
        f.op(
            ["normed"], "gated_rms_norm", [("ins", [whole, ones, weight])], [empty],
            [f"eps = {build.real(g.eps)}", "activation = #gdn.activation<none>"],
        )  # fmt: skip
        rows = "normed"
        if self.dtype != "f32":
            rows = self.generic("normed_rounded", [rows], ["d0, d1"], (self.tokens, g.inner), self.dtype, rows, [])
        self.last_projection(rows, "out_proj_weight")
