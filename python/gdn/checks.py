# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the arguments of a recurrence: shapes, types and options, before anything runs.

Nothing here looks at the content of a device array. Errors name the argument and the sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from . import arrays
from .build import PRECISIONS
from .launch import check_offsets
from .launch import check_slots as _check_slots
from .rule import STEP_TOKENS

_GATE_FORMS = ("log", "linear", "raw", "constant")
_BETA_FORMS = ("value", "sigmoid", "2sigmoid", "one")
CHUNKS = (16, 32, 64)
MAX_K = 256


class Call(NamedTuple):
    """A checked call. Arrays that are not there are None."""

    q: object
    k: object
    v: object
    gate: object
    A_log: object
    dt_bias: object
    beta: object
    erase: object
    write: object
    cu_seqlens: object
    state_indices: object
    initial_state: object
    out: object
    final_state: object
    checkpoints: object
    scale: float
    gate_form: str
    lower_bound: float | None
    beta_form: str | None
    qk_l2norm: bool
    v_first: bool
    chunk: int | None
    every: int | None
    precision: str
    out_dtype: str | None
    validate: bool


def shape_text(shape):
    return "[" + ", ".join(str(size) for size in shape) + "]"


def need_shape(name, x, expected, about):
    if tuple(x.shape) != tuple(expected):
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, but {about} is {shape_text(expected)}")


def need_float(name, x):
    dtype = arrays.dtype_name(x)
    if dtype not in ("bf16", "f16", "f32"):
        raise TypeError(f"{name} has element type {dtype}; expected bfloat16, float16 or float32")


def _check_qkv(q, k, v):
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise TypeError(f"{name} of type {type(x).__name__} is no array")
        if len(x.shape) != 4:
            raise ValueError(f"{name} has shape {shape_text(x.shape)}; expected rank 4, [B, T, heads, size]")
        need_float(name, x)
    need_shape("k", k, q.shape, "q")
    if tuple(v.shape[:2]) != tuple(q.shape[:2]):
        raise ValueError(f"v has shape {shape_text(v.shape)}, but q has B and T of {shape_text(q.shape)}")
    if not (q.dtype == k.dtype == v.dtype):
        raise TypeError(f"q, k and v must have one element type, but have {q.dtype}, {k.dtype} and {v.dtype}")
    heads, value_heads, K, V = q.shape[2], v.shape[2], q.shape[3], v.shape[3]
    if heads < 1 or value_heads < 1 or value_heads % heads:
        raise ValueError(f"v has HV = {value_heads} heads, which is no multiple of the H = {heads} heads of q and k")
    if not 1 <= K <= MAX_K:
        raise ValueError(f"q and k have K = {K} key channels; 1 to {MAX_K} are supported")
    if V < 1:
        raise ValueError(f"v has V = {V} value channels; at least 1 is needed")


def _check_gate(q, v, gate, form, A_log, dt_bias, lower_bound):
    """A_log and dt_bias in the shapes of the op."""
    if form not in _GATE_FORMS:
        raise ValueError(f"gate_form is '{form}'; expected one of {', '.join(_GATE_FORMS)}")
    if form != "raw":
        for name, x in (("A_log", A_log), ("dt_bias", dt_bias), ("lower_bound", lower_bound)):
            if x is not None:
                raise ValueError(f"{name} is given, but it belongs to gates computed in the kernel (gate_form 'raw')")
    if gate is None:
        if form != "log":
            raise ValueError(f"gate_form is '{form}', but there is no gate")
        return None, None
    if form == "constant":
        need_shape("the constant gate", gate, (v.shape[2],), "[HV]")
        need_float("the constant gate", gate)
        return None, None
    per_head = (*q.shape[:2], v.shape[2])
    shapes = (per_head, (*per_head, q.shape[3]))
    if tuple(gate.shape) not in shapes:
        raise ValueError(
            f"the gate has shape {shape_text(gate.shape)}; expected {shape_text(shapes[0])} (one per head) or "
            f"{shape_text(shapes[1])} (one per key channel)"
        )
    need_float("the gate", gate)
    if form != "raw":
        return None, None
    if lower_bound is not None and not -5 <= lower_bound < 0:
        raise ValueError(f"lower_bound is {lower_bound}; it must lie in [-5, 0)")
    if A_log is None and lower_bound is None:
        raise ValueError("A_log is needed for gates computed in the kernel, unless lower_bound is set")
    bias_shape = (v.shape[2], *gate.shape[3:])
    if A_log is not None:
        A_log = parameter("A_log", A_log, (v.shape[2],))
    if dt_bias is not None:
        dt_bias = parameter("dt_bias", dt_bias, bias_shape)
    return A_log, dt_bias


def parameter(name, x, shape):
    count = 1
    for size in x.shape:
        count *= size
    needed = 1
    for size in shape:
        needed *= size
    if count != needed:
        raise ValueError(f"{name} has shape {shape_text(x.shape)}; {shape_text(shape)} needs {needed} elements")
    need_float(name, x)
    return x if tuple(x.shape) == tuple(shape) else x.reshape(shape)


def _check_strength(q, v, beta, form, erase, write):
    per_head = (*q.shape[:2], v.shape[2])
    if (erase is None) != (write is None):
        raise ValueError("erase and write come together, but only one of them is given")
    if erase is not None:
        if beta is not None:
            raise ValueError("beta excludes erase and write")
        need_shape("erase", erase, (*per_head, q.shape[3]), "one value per head and key channel")
        need_shape("write", write, (*per_head, v.shape[3]), "one value per head and value channel")
        need_float("erase", erase)
        need_float("write", write)
    if form not in _BETA_FORMS:
        raise ValueError(f"beta_form is '{form}'; expected one of {', '.join(_BETA_FORMS)}")
    if beta is None:
        if form not in ("value", "one"):
            raise ValueError(f"beta_form is '{form}', but there is no beta")
        return form if form == "one" else None
    if form == "one":
        raise ValueError("beta is given, but beta_form is 'one'")
    if len(beta.shape) == 4 and tuple(beta.shape) == tuple(v.shape):
        raise NotImplementedError(
            f"beta has shape {shape_text(beta.shape)}, one value per value channel; only one per head is supported"
        )
    need_shape("beta", beta, per_head, "[B, T, HV]")
    need_float("beta", beta)
    return form


def check_sequences(q, cu_seqlens, cu_seqlens_cpu):
    """Number of sequences."""
    if cu_seqlens is None:
        if cu_seqlens_cpu is not None:
            raise ValueError("cu_seqlens_cpu is given without cu_seqlens")
        return q.shape[0]
    if q.shape[0] != 1:
        raise ValueError(
            f"The batch size is expected to be 1 rather than {q.shape[0]} when using `cu_seqlens`. "
            "Please flatten variable-length inputs before processing."
        )
    if len(cu_seqlens.shape) != 1 or cu_seqlens.shape[0] < 2:
        raise ValueError(f"cu_seqlens has shape {shape_text(cu_seqlens.shape)}; expected [N + 1] with N >= 1")
    dtype = arrays.dtype_name(cu_seqlens)
    if dtype not in ("i32", "i64"):
        raise TypeError(f"cu_seqlens has element type {dtype}; expected int32 or int64")
    if cu_seqlens_cpu is not None:
        starts = [int(start) for start in cu_seqlens_cpu]
        if len(starts) != cu_seqlens.shape[0]:
            raise ValueError(f"cu_seqlens_cpu has {len(starts)} entries, but cu_seqlens has {cu_seqlens.shape[0]}")
        check_starts("cu_seqlens_cpu", starts, q.shape[1])
    return cu_seqlens.shape[0] - 1


def check_starts(name, starts, tokens):
    try:
        check_offsets(starts, tokens)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def check_slots(name, slots, entries):
    try:
        _check_slots(slots, entries)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _check_pool(state_indices, sequences, pool, final_state):
    """The pool, which is the destination of the final states too."""
    need_shape("state_indices", state_indices, (sequences,), "one slot per sequence")
    dtype = arrays.dtype_name(state_indices)
    if dtype not in ("i32", "i64"):
        raise TypeError(f"state_indices has element type {dtype}; expected int32 or int64")
    if pool is None:
        raise ValueError("state_indices needs a pool of states as initial_state")
    if final_state is not None and final_state is not pool:
        raise ValueError("final_state cannot be given with state_indices: the pool is updated in place")
    return pool


def _check_states(q, v, sequences, v_first, initial_state, final_state):
    """`sequences` is None for a pool of any size."""
    K, V = q.shape[3], v.shape[3]
    if sequences is None:
        sequences = initial_state.shape[0]
    expected = (sequences, v.shape[2], *((V, K) if v_first else (K, V)))
    layout = "[N, HV, V, K]" if v_first else "[N, HV, K, V]"
    for name, x in (("initial_state", initial_state), ("final_state", final_state)):
        if x is None:
            continue
        if len(x.shape) == 4 and x.shape[0] != sequences:
            raise ValueError(
                f"{name} has {x.shape[0]} states; the number of initial states is expected to be equal to the number "
                f"of input sequences, {sequences}"
            )
        need_shape(name, x, expected, f"{layout} here")
        need_float(name, x)


def checkpoint_shape(q, v, v_first, every):
    K, V = q.shape[3], v.shape[3]
    return (q.shape[0], q.shape[1] // every, v.shape[2], *((V, K) if v_first else (K, V)))


def _check_checkpoints(q, v, v_first, every, checkpoints, chunk):
    if every is None:
        if checkpoints is not None:
            raise ValueError("checkpoints is given without checkpoint_every")
        return
    if type(every) is not int or every < 1:
        raise ValueError(f"checkpoint_every is {every}; expected a number of tokens, at least 1")
    if every % 64 and q.shape[1] > STEP_TOKENS:
        raise ValueError(
            f"checkpoint_every is {every}; calls of more than {STEP_TOKENS} tokens give states at multiples of 64"
        )
    if checkpoints is not None:
        need_shape("checkpoints", checkpoints, checkpoint_shape(q, v, v_first, every), "[B, T // every, ...] here")
        need_float("checkpoints", checkpoints)


def _check_out(v, out, out_dtype):
    """The element type of o, None where it is that of v."""
    own = arrays.dtype_name(v)
    if out is not None:
        need_shape("out", out, v.shape, "v")
        if arrays.dtype_name(out) not in (own, "f32"):
            raise TypeError(f"out has element type {out.dtype}; expected that of v, {v.dtype}, or float32")
    if out_dtype is not None:
        out_dtype = arrays.named_dtype(out_dtype)
        if out_dtype not in (own, "f32"):
            raise TypeError(f"out_dtype is {out_dtype}; expected that of v, {v.dtype}, or float32")
        if out is not None and arrays.dtype_name(out) != out_dtype:
            raise TypeError(f"out has element type {out.dtype}, but out_dtype is {out_dtype}")
    elif out is not None:
        out_dtype = arrays.dtype_name(out)
    return None if out_dtype == own else out_dtype


def check_call(
    q,
    k,
    v,
    gate=None,
    beta=None,
    erase=None,
    write=None,
    *,
    scale=None,
    initial_state=None,
    gate_form="log",
    A_log=None,
    dt_bias=None,
    lower_bound=None,
    beta_form="value",
    qk_l2norm=False,
    v_first=True,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    chunk=None,
    every=None,
    precision="default",
    out_dtype=None,
    out=None,
    final_state=None,
    checkpoints=None,
    state_indices=None,
    validate=False,
):
    """The call with what is implied written out; ValueError or TypeError where something does not fit."""
    _check_qkv(q, k, v)
    A_log, dt_bias = _check_gate(q, v, gate, gate_form, A_log, dt_bias, lower_bound)
    beta_form = _check_strength(q, v, beta, beta_form, erase, write)
    sequences = check_sequences(q, cu_seqlens, cu_seqlens_cpu)
    if state_indices is not None:
        final_state = _check_pool(state_indices, sequences, initial_state, final_state)
    _check_states(q, v, sequences if state_indices is None else None, v_first, initial_state, final_state)
    if chunk is not None and chunk not in CHUNKS:
        raise ValueError(f"chunk is {chunk}; expected 16, 32 or 64")
    _check_checkpoints(q, v, v_first, every, checkpoints, chunk)
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(PRECISIONS)}")
    out_dtype = _check_out(v, out, out_dtype)
    call = Call(
        q=q,
        k=k,
        v=v,
        gate=gate,
        A_log=A_log,
        dt_bias=dt_bias,
        beta=beta,
        erase=erase,
        write=write,
        cu_seqlens=cu_seqlens,
        state_indices=state_indices,
        initial_state=initial_state,
        out=out,
        final_state=final_state,
        checkpoints=checkpoints,
        scale=float(q.shape[3] ** -0.5 if scale is None else scale),
        gate_form=gate_form,
        lower_bound=None if lower_bound is None else float(lower_bound),
        beta_form=beta_form,
        qk_l2norm=bool(qk_l2norm),
        v_first=bool(v_first),
        chunk=chunk,
        every=every,
        precision=precision,
        out_dtype=out_dtype,
        validate=validate,
    )
    _check_places(call)
    return call


_ARRAYS = (
    "q",
    "k",
    "v",
    "gate",
    "A_log",
    "dt_bias",
    "beta",
    "erase",
    "write",
    "cu_seqlens",
    "state_indices",
    "initial_state",
    "out",
    "final_state",
    "checkpoints",
)


def _check_places(call):
    """All arrays are on one device."""
    place = arrays.place(call.q)
    for name, x in zip(_ARRAYS, call):
        if x is not None and arrays.place(x) != place:
            raise ValueError(f"{name} is on {arrays.place(x)}, but q is on {place}")
