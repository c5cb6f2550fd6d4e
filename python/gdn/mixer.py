# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a token mixer around the recurrence, on arrays: l2norm, gate, short_conv, gated_rms_norm.

Arrays and errors as in `gdn.recurrence`: float32, bfloat16 or float16, contiguous or copied, arithmetic
in float32, destinations by `out`.
"""

from __future__ import annotations

from typing import NamedTuple

from . import arrays, backend, build
from .checks import check_sequences, need_float, need_shape, parameter, shape_text


class L2Norm(NamedTuple):
    size: int
    dtype: str
    eps: float

    def ir(self):
        return build.l2norm((None, self.size), dtype=self.dtype, eps=self.eps)


class GatedNorm(NamedTuple):
    size: int
    dtype: str
    weight_dtype: str
    eps: float
    activation: str

    def ir(self):
        return build.gated_rms_norm(
            (None, self.size),
            dtype=self.dtype,
            weight_dtype=self.weight_dtype,
            eps=self.eps,
            activation=self.activation,
        )


class Gate(NamedTuple):
    heads: int
    size: int | None
    dtype: str
    rate_dtype: str
    bias_dtype: str | None
    lower_bound: float | None

    def ir(self):
        return build.gate(
            None,
            None,
            self.heads,
            self.size,
            dtype=self.dtype,
            rate_dtype=self.rate_dtype,
            bias=self.bias_dtype is not None,
            bias_dtype=self.bias_dtype,
            lower_bound=self.lower_bound,
        )


class ShortConv(NamedTuple):
    channels: int
    width: int
    kept: int
    dtype: str
    weight_dtype: str
    state_dtype: str
    bias: bool
    offsets: str | None
    activation: str
    initial: str | None
    tokens: int | None  # static T, of steps
    row: int | None  # channels of x in memory, if they are more
    norm: tuple | None  # heads and their size that are normalised

    def ir(self):
        return build.short_conv(
            1 if self.offsets else None,
            self.tokens,
            self.channels,
            self.width,
            S=self.kept,
            dtype=self.dtype,
            weight_dtype=self.weight_dtype,
            state_dtype=self.state_dtype,
            bias=self.bias,
            offsets=self.offsets,
            activation=self.activation,
            initial=self.initial,
            row=self.row,
            norm=self.norm,
        )


def _write(key):
    return key.ir()


def _run(key, names, inputs, destinations, row=None):
    """`row`: the first input is a slice of rows of so many channels."""
    values = [x if row and not i else arrays.dense(x, names[i]) for i, x in enumerate(inputs)] + list(destinations)
    shapes = [tuple(x.shape) for x in values]
    if row:
        shapes[0] = (*shapes[0][:-1], row)
    backend.run(key, _write, names, values, shapes if row else None)


def _destination(out, x, shape, dtype, name="out"):
    if out is None:
        return arrays.empty_like(x, shape, dtype)
    need_shape(name, out, shape, "the result")
    if arrays.dtype_name(out) != dtype:
        raise TypeError(f"{name} has element type {arrays.dtype_name(out)}, but the result has {dtype}")
    return out


def _rows(x):
    return x if len(x.shape) == 2 else x.reshape(-1, x.shape[-1])


def _need_same_place(q, **others):
    place = arrays.place(q)
    for name, x in others.items():
        if x is not None and arrays.place(x) != place:
            raise ValueError(f"{name} is on {arrays.place(x)}, but the first argument is on {place}")


def run_l2norm(x, eps, out):
    _run(L2Norm(x.shape[-1], arrays.dtype_name(x), eps), ("x", "y"), [_rows(arrays.dense(x, "x"))], [_rows(out)])


def l2norm(x, eps=1e-6, *, out=None):
    """x / sqrt(sum of x^2 over the last dimension + eps), of x's type."""
    need_float("x", x)
    if len(x.shape) < 1 or x.shape[-1] < 1:
        raise ValueError(f"x has shape {shape_text(x.shape)}; the last dimension must not be empty")
    out = _destination(out, x, tuple(x.shape), arrays.dtype_name(x))
    backend.dispatch("l2norm", run_l2norm, x, float(eps), out)
    return out


def run_gate(a, A_log, dt_bias, lower_bound, out):
    key = Gate(
        heads=a.shape[2],
        size=a.shape[3] if len(a.shape) == 4 else None,
        dtype=arrays.dtype_name(a),
        rate_dtype=arrays.dtype_name(A_log),
        bias_dtype=None if dt_bias is None else arrays.dtype_name(dt_bias),
        lower_bound=lower_bound,
    )
    inputs = [a, A_log] + ([] if dt_bias is None else [dt_bias])
    names = ("a", "A_log", *(() if dt_bias is None else ("dt_bias",)), "g")
    _run(key, names, inputs, [out])


def gate(a, A_log, dt_bias=None, lower_bound=None, *, out=None):
    """The log decay from the projection a: -exp(A_log) softplus(a + dt_bias), float32.

    With `lower_bound` in [-5, 0): lower_bound * sigmoid(exp(A_log) (a + dt_bias)). a is [B, T, HV] or
    [B, T, HV, K]; A_log has HV elements; dt_bias HV, or HV * K for a gate per channel.
    """
    if len(a.shape) not in (3, 4):
        raise ValueError(f"a has shape {shape_text(a.shape)}; expected [B, T, HV] or [B, T, HV, K]")
    need_float("a", a)
    if lower_bound is not None and not -5 <= lower_bound < 0:
        raise ValueError(f"lower_bound is {lower_bound}; it must lie in [-5, 0)")
    _need_same_place(a, A_log=A_log, dt_bias=dt_bias)
    A_log = parameter("A_log", A_log, (a.shape[2],))
    if dt_bias is not None:
        dt_bias = parameter("dt_bias", dt_bias, tuple(a.shape[2:]))
    bound = None if lower_bound is None else float(lower_bound)
    out = _destination(out, a, tuple(a.shape), "f32")
    backend.dispatch("gate", run_gate, a, A_log, dt_bias, bound, out)
    return out


def run_gated_rms_norm(x, z, weight, eps, activation, out):
    key = GatedNorm(x.shape[-1], arrays.dtype_name(x), arrays.dtype_name(weight), eps, activation)
    _run(key, ("x", "z", "w", "y"), [_rows(arrays.dense(x, "x")), _rows(arrays.dense(z, "z")), weight], [_rows(out)])


def gated_rms_norm(x, z, weight, eps=1e-6, activation="silu", *, out=None):
    """x / sqrt(mean of x^2 + eps) * weight * act(z) over the last dimension, of x's type.

    x and z have one shape and type, weight the last size of x, float32 or x's type. `activation` is
    "silu" (Qwen3-Next, FLA), "sigmoid" (Kimi Linear) or "none".
    """
    need_float("x", x)
    need_shape("z", z, x.shape, "x")
    if x.dtype != z.dtype:
        raise TypeError(f"z has element type {z.dtype}, but x has {x.dtype}")
    need_shape("weight", weight, x.shape[-1:], "the last dimension of x")
    if arrays.dtype_name(weight) not in ("f32", arrays.dtype_name(x)):
        raise TypeError(f"weight has element type {weight.dtype}; expected float32 or {x.dtype}")
    _need_activation(activation)
    _need_same_place(x, z=z, weight=weight)
    out = _destination(out, x, tuple(x.shape), arrays.dtype_name(x))
    backend.dispatch("gated_rms_norm", run_gated_rms_norm, x, z, weight, float(eps), activation, out)
    return out


def _need_activation(activation):
    if activation not in ("none", "silu", "sigmoid"):
        raise ValueError(f"activation is '{activation}'; expected none, silu or sigmoid")


def run_short_conv(
    x, weight, bias, activation, initial_state, cu_seqlens, out, final_state, in_place, norm_heads, norm_size
):
    initial = None if initial_state is None else arrays.dtype_name(initial_state)
    key = ShortConv(
        channels=x.shape[2],
        width=weight.shape[1],
        kept=final_state.shape[2],
        dtype=arrays.dtype_name(x),
        weight_dtype=arrays.dtype_name(weight),
        state_dtype=arrays.dtype_name(final_state),
        bias=bias is not None,
        offsets=None if cu_seqlens is None else arrays.dtype_name(cu_seqlens),
        activation=activation,
        initial="in_place" if in_place else initial,
        tokens=x.shape[1] if cu_seqlens is None and 0 < x.shape[1] < weight.shape[1] else None,
        row=arrays.row_of(x),
        norm=(norm_heads, norm_size) if norm_heads else None,
    )
    operands = {"x": x, "w": weight, "bias": bias, "offsets": cu_seqlens, "initial": initial_state}
    inputs = {name: operand for name, operand in operands.items() if operand is not None}
    _run(key, (*inputs, "y", "state"), list(inputs.values()), [out, final_state], key.row)


def can_normalize(size, x):
    """True if short_conv can normalise heads of this size on the way: a warp holds one."""
    return size in (32, 64, 128, 256) and size * arrays.ITEM_SIZES[arrays.dtype_name(x)] <= 512


def short_conv(
    x,
    weight,
    bias=None,
    *,
    activation="silu",
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    l2norm_heads=None,
    out=None,
    final_state=None,
):
    """Depthwise causal convolution: y[t, d] = act(bias[d] + sum_i weight[d, i] x[t - W + 1 + i, d]).

    x [B, T, D], weight [D, W], bias [D]. States are [N, D, S] with S >= W - 1: the last S inputs of a
    sequence, oldest first (transformers keeps S = W of them); zeros in front by default. Packed
    sequences (cu_seqlens, B = 1) do not see each other. Returns y and the final state or None;
    `final_state` may be `initial_state` itself. `l2norm_heads`, a number of heads and their size, divides the
    first channels of y, head by head, by sqrt(sum of y^2 + 1e-6), as gdn.recurrence does with `qk_l2norm`;
    sizes: see `can_normalize`.
    """
    if len(x.shape) != 3:
        raise ValueError(f"x has shape {shape_text(x.shape)}; expected [B, T, D]")
    need_float("x", x)
    if len(weight.shape) != 2 or weight.shape[0] != x.shape[2]:
        raise ValueError(f"weight has shape {shape_text(weight.shape)}; expected [D, W] with D = {x.shape[2]}")
    if bias is not None:
        need_shape("bias", bias, x.shape[2:], "[D]")
        if bias.dtype != weight.dtype:
            raise TypeError(f"bias has element type {bias.dtype}, but weight has {weight.dtype}")
    for name, operand in (("weight", weight), ("initial_state", initial_state), ("final_state", final_state)):
        if operand is not None and arrays.dtype_name(operand) not in ("f32", arrays.dtype_name(x)):
            raise TypeError(f"{name} has element type {operand.dtype}; expected float32 or {x.dtype}")
    _need_activation(activation)
    heads, size = (0, 0) if l2norm_heads is None else l2norm_heads
    if heads and not can_normalize(size, x):
        raise ValueError(f"l2norm_heads has heads of {size} {x.dtype}; expected 32, 64, 128 or 256 that fit 512 bytes")
    if heads * size > x.shape[2]:
        raise ValueError(f"l2norm_heads are {heads} heads of {size}, but x has {x.shape[2]} channels")
    sequences = check_sequences(x, cu_seqlens, cu_seqlens_cpu)
    for name, state in (("initial_state", initial_state), ("final_state", final_state)):
        if state is not None and (
            len(state.shape) != 3
            or tuple(state.shape[:2]) != (sequences, x.shape[2])
            or state.shape[2] < weight.shape[1] - 1
        ):
            raise ValueError(
                f"{name} has shape {shape_text(state.shape)}; expected [{sequences}, {x.shape[2]}, S] with S at least "
                f"{weight.shape[1] - 1}"
            )
    _need_same_place(
        x, weight=weight, bias=bias, cu_seqlens=cu_seqlens, initial_state=initial_state, final_state=final_state
    )
    given = final_state if initial_state is None else initial_state
    shape = (sequences, x.shape[2], weight.shape[1] - 1 if given is None else given.shape[2])
    wanted = output_final_state or final_state is not None
    y = _destination(out, x, tuple(x.shape), arrays.dtype_name(x))
    if final_state is None:
        final_state = arrays.empty_like(x, shape, arrays.dtype_name(x if initial_state is None else initial_state))
    elif tuple(final_state.shape) != shape:
        need_shape("final_state", final_state, shape, "initial_state")
    in_place = initial_state is not None and arrays.same_memory(initial_state, final_state)
    initial = None if in_place else initial_state
    backend.dispatch(
        "short_conv",
        run_short_conv,
        x,
        weight,
        bias,
        activation,
        initial,
        cu_seqlens,
        y,
        final_state,
        in_place,
        heads,
        size,
    )
    return y, (final_state if wanted else None)
