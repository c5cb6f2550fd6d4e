# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Float64 definitions of the gdn operations, token by token, in numpy.

Every function states one operation the way the dialect documents it; nothing here
is chunked or reordered, so a compiled kernel can be compared with it. Arrays of any
real type go in and float64 comes out. bfloat16 values travel as uint16 bit patterns,
because numpy has no such type; `from_bf16_bits` widens them.
"""

from __future__ import annotations

import numpy as np

F64 = np.float64


# --- number formats ---------------------------------------------------------------


def to_bf16_bits(x):
    """Bit patterns of x rounded to bfloat16, to nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    low = (bits >> np.uint32(16)) & np.uint32(1)
    with np.errstate(over="ignore"):
        rounded = (bits + np.uint32(0x7FFF) + low) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x0040)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, quiet, rounded).astype(np.uint16)


def from_bf16_bits(bits):
    """float32 values of bfloat16 bit patterns (exact)."""
    wide = np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32)
    return (wide << np.uint32(16)).view(np.float32)


def rounded(x, dtype):
    """x after one rounding to `dtype` ("bf16", "f16" or "f32"), as float32."""
    x = np.asarray(x, dtype=np.float32)
    if dtype == "bf16":
        return from_bf16_bits(to_bf16_bits(x))
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "f32":
        return x
    raise ValueError(f"unknown element type '{dtype}'; expected bf16, f16 or f32")


# --- scalar functions -------------------------------------------------------------


def softplus(x):
    """log(1 + exp(x)) without overflow and without a switch point."""
    x = np.asarray(x, F64)
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x):
    x = np.asarray(x, F64)
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def activation(x, name):
    x = np.asarray(x, F64)
    if name in (None, "none"):
        return x
    if name == "silu":
        return x * sigmoid(x)
    if name == "sigmoid":
        return sigmoid(x)
    raise ValueError(f"unknown activation '{name}'; expected none, silu or sigmoid")


# --- the recurrence ---------------------------------------------------------------


def _need(condition, message):
    if not condition:
        raise ValueError(message)


def _check_recurrence(q, k, v, gate, beta, erase, write, offsets, slots, state, v_first):
    _need(q.ndim == 4 and v.ndim == 4, f"q {q.shape} and v {v.shape} must have rank 4")
    _need(q.shape == k.shape, f"q {q.shape} and k {k.shape} must have one shape")
    batch, tokens, key_heads, key_size = q.shape
    heads, value_size = v.shape[2:]
    _need(v.shape[:2] == q.shape[:2], f"v {v.shape} must have B and T of q {q.shape}")
    _need(heads % key_heads == 0, f"Hv {heads} is not a multiple of Hqk {key_heads}")
    _need((erase is None) == (write is None), "erase and write come together")
    _need(beta is None or erase is None, "beta excludes erase and write")
    per_head = (batch, tokens, heads)
    per_key, per_value = per_head + (key_size,), per_head + (value_size,)
    for name, x, shapes in (
        ("gate", gate, (per_head, per_key)),
        ("beta", beta, (per_head,)),
        ("erase", erase, (per_key,)),
        ("write", write, (per_value,)),
    ):
        _need(x is None or x.shape in shapes, f"{name} has shape {getattr(x, 'shape', 0)}; expected {shapes}")
    sequences = batch
    if offsets is not None:
        _need(batch == 1, f"offsets need B = 1, but B = {batch}")
        check_offsets(offsets, tokens)
        sequences = len(offsets) - 1
    tail = (value_size, key_size) if v_first else (key_size, value_size)
    entries = sequences
    if slots is not None:
        _need(state is not None, "slots need a state, the pool")
        entries = state.shape[0]
        check_slots(slots, sequences, entries)
    expected = (entries, heads) + tail
    _need(
        state is None or state.shape == expected, f"state has shape {getattr(state, 'shape', 0)}; expected {expected}"
    )
    return expected


def check_slots(slots, sequences, entries):
    """Raises ValueError unless each sequence has a slot of its own in a pool of `entries`, or one below 0."""
    values = [int(x) for x in slots]
    _need(len(values) == sequences, f"there are {len(values)} slots for {sequences} sequences")
    taken = {}
    for n, slot in enumerate(values):
        _need(slot < entries, f"slot {slot} of sequence {n} is not in a pool of {entries} states")
        _need(slot not in taken, f"sequences {taken.get(slot)} and {n} have the same slot {slot}")
        if slot >= 0:
            taken[slot] = n


def check_offsets(offsets, tokens):
    """Raises ValueError unless offsets rise from 0 to `tokens` without a step back."""
    values = [int(x) for x in offsets]
    _need(len(values) >= 2, f"offsets have {len(values)} entries; at least 2 are needed")
    _need(values[0] == 0, f"offsets start at {values[0]}, not at 0")
    for i, (a, b) in enumerate(zip(values, values[1:])):
        _need(a <= b, f"offsets decrease from {a} to {b} at entry {i + 1}")
    _need(values[-1] == tokens, f"offsets end at {values[-1]}, but there are {tokens} tokens")


def recurrence(
    q,
    k,
    v,
    gate=None,
    beta=None,
    erase=None,
    write=None,
    offsets=None,
    slots=None,
    state=None,
    scale=None,
    state_layout="v_first",
    every=None,
):
    """o [B, T, Hv, V] and the final state of `gdn.recurrence`, in float64.

    Without `state` the initial state is zero. The final state has the layout of
    `state_layout`: "v_first" [N, Hv, V, K] or "k_first" [N, Hv, K, V]. With `slots` the
    state is a pool, sequence n has entry slots[n]; below 0 it has none and its o is 0.

    With `every` there is a third result, the checkpoints [B, T // every, Hv, V, K] (or
    K, V): the state of sequence n after (j + 1) * every of its tokens at
    [0, offsets[n] // every + j], without offsets at [n, j]. Others are NaN.
    """
    _need(state_layout in ("v_first", "k_first"), f"unknown state layout '{state_layout}'")
    v_first = state_layout == "v_first"
    q, k, v = (np.asarray(x) for x in (q, k, v))
    gate, beta, erase, write, state = (None if x is None else np.asarray(x) for x in (gate, beta, erase, write, state))
    shape = _check_recurrence(q, k, v, gate, beta, erase, write, offsets, slots, state, v_first)
    S = np.zeros(shape, F64) if state is None else state.astype(F64)
    if not v_first:
        S = np.ascontiguousarray(S.swapaxes(2, 3))
    if scale is None:
        scale = q.shape[3] ** -0.5
    o = np.zeros(v.shape, F64)
    checkpoints = None
    if every is not None:
        _need(every >= 1, f"every is {every}; a checkpoint needs at least 1 token")
        checkpoints = np.full((q.shape[0], q.shape[1] // every) + S.shape[1:], np.nan)
    args = (q, k, v, gate, beta, erase, write)
    if offsets is None and slots is None:
        _token_loop(*args, S, o, scale, checkpoints, every)
    else:
        for n, place in enumerate(_places(q, offsets)):
            entry = n if slots is None else int(slots[n])
            if entry < 0:
                continue
            part = [None if x is None else x[place] for x in args]
            kept = None
            if every is not None:
                first = 0 if offsets is None else int(offsets[n]) // every
                kept = checkpoints[place[0], first : first + part[0].shape[1] // every]
            _token_loop(*part, S[entry : entry + 1], o[place], scale, kept, every)
    final = S if v_first else np.ascontiguousarray(S.swapaxes(2, 3))
    if every is None:
        return o, final
    return o, final, (checkpoints if v_first else np.ascontiguousarray(checkpoints.swapaxes(3, 4)))


def _places(q, offsets):
    """The batch and time of each sequence."""
    if offsets is None:
        return [(slice(b, b + 1), slice(None)) for b in range(q.shape[0])]
    starts = [int(x) for x in offsets]
    return [(slice(None), slice(a, b)) for a, b in zip(starts, starts[1:])]


def _token_loop(q, k, v, gate, beta, erase, write, S, o, scale, checkpoints, every):
    """Walks the tokens of all sequences and heads at once; updates S, fills o and checkpoints."""
    group = v.shape[2] // q.shape[2]

    def row(x, t):
        return x[:, t].astype(F64)

    for t in range(q.shape[1]):
        kt = np.repeat(row(k, t), group, axis=1)
        qt = np.repeat(row(q, t), group, axis=1)
        ut = row(v, t)
        if gate is not None:
            decay = np.exp(row(gate, t))
            S *= decay[:, :, None, None] if decay.ndim == 2 else decay[:, :, None, :]
        if beta is not None:
            error = ut - _times(S, kt)
            ut = row(beta, t)[:, :, None] * error
        elif erase is not None:
            ut = row(write, t) * ut - _times(S, row(erase, t) * kt)
        S += ut[:, :, :, None] * kt[:, :, None, :]
        o[:, t] = scale * _times(S, qt)
        if every is not None and (t + 1) % every == 0:
            checkpoints[:, t // every] = S


def _times(S, x):
    return np.matmul(S, x[:, :, :, None])[:, :, :, 0]


# --- parts of a token mixer -------------------------------------------------------


def l2norm(x, eps=1e-6):
    """x / sqrt(sum over the last dimension of x^2 + eps)."""
    x = np.asarray(x, F64)
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + eps)


def gate(a, A_log, dt_bias=None, lower_bound=None):
    """Log decay from the projection a; A_log [Hv], dt_bias [Hv] or [Hv, K]."""
    a, A_log = np.asarray(a, F64), np.asarray(A_log, F64)
    _need(a.ndim in (3, 4), f"a {a.shape} must have rank 3 or 4")
    rate = np.exp(A_log) if a.ndim == 3 else np.exp(A_log)[:, None]
    x = a if dt_bias is None else a + np.asarray(dt_bias, F64)
    if lower_bound is None:
        return -rate * softplus(x)
    _need(-5.0 <= lower_bound < 0.0, f"lower_bound {lower_bound} is not in [-5, 0)")
    return lower_bound * sigmoid(rate * x)


def short_conv(x, w, bias=None, offsets=None, state=None, act=None):
    """y [B, T, D] and the last S inputs [N, D, S], oldest first; x [B, T, D], w [D, W]."""
    x, w = np.asarray(x, F64), np.asarray(w, F64)
    batch, tokens, channels = x.shape
    width = w.shape[1]
    if offsets is None:
        sequences = [(b, 0, tokens) for b in range(batch)]
    else:
        _need(batch == 1, f"offsets need B = 1, but B = {batch}")
        check_offsets(offsets, tokens)
        starts = [int(t) for t in offsets]
        sequences = [(0, a, b) for a, b in zip(starts, starts[1:])]
    if state is None:
        state = np.zeros((len(sequences), channels, width - 1))
    kept = state.shape[2]
    _need(kept >= width - 1, f"state holds {kept} inputs; {width} taps need at least {width - 1}")
    expected = (len(sequences), channels, kept)
    _need(state.shape == expected, f"state has shape {state.shape}; expected {expected}")
    y, final = np.empty_like(x), np.array(state, F64)
    for n, (b, start, end) in enumerate(sequences):
        inputs = np.concatenate([final[n].T, x[b, start:end]], axis=0)
        for t in range(end - start):
            window = inputs[kept + t - width + 1 : kept + t + 1]
            total = np.sum(window * w.T, axis=0)
            y[b, start + t] = total if bias is None else total + np.asarray(bias, F64)
        final[n] = inputs[end - start :].T
    return activation(y, act), final


def gated_rms_norm(x, z, w, eps=1e-6, act="silu"):
    """x / sqrt(mean over the last dimension of x^2 + eps) * w * act(z)."""
    x = np.asarray(x, F64)
    mean = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean + eps) * np.asarray(w, F64) * activation(z, act)


# --- parts of a chunk -------------------------------------------------------------


def cumsum(g):
    """Inclusive sum along dimension 0."""
    return np.cumsum(np.asarray(g, F64), axis=0)


def scores(x, y, gate=None, strict=False):
    """A_ij = sum_c x_ic y_jc exp(G_ic - G_jc) for i >= j (i > j if strict), else 0.

    `gate` is the inclusive cumulative sum G, [C] or [C, K]. Exponents of the pairs
    that are 0 anyway are never formed.
    """
    x, y = np.asarray(x, F64), np.asarray(y, F64)
    rows, columns = np.tril_indices(x.shape[0], -1 if strict else 0)
    A = np.zeros((x.shape[0], x.shape[0]))
    products = x[rows] * y[columns]
    if gate is not None:
        G = np.asarray(gate, F64)
        factor = np.exp(G[rows] - G[columns])
        products = products * (factor[:, None] if G.ndim == 1 else factor)
    A[rows, columns] = np.sum(products, axis=1)
    return A


def tri_inverse(L):
    """(I + strictly lower part of L)^-1 by forward substitution."""
    L = np.tril(np.asarray(L, F64), -1)
    X = np.eye(L.shape[0])
    for i in range(1, L.shape[0]):
        X[i, :i] = -L[i, :i] @ X[:i, :i]
    return X


# --- error measures ---------------------------------------------------------------

# Largest allowed (whole ratio, block ratio) by quantity and arithmetic. "f32" means
# products in full float32, "tf32" float32 data with TF32 products.
LIMITS = {
    "o": {"bf16": (8e-3, 1.5e-2), "f16": (3e-3, 6e-3), "f32": (2e-5, 2e-5), "tf32": (2e-3, 2e-3)},
    "state": {"bf16": (1e-2, None), "f16": (3e-3, None), "f32": (2e-5, None), "tf32": (2e-3, None)},
    "o correlated": {"bf16": (2e-2, 4e-2), "f16": (4e-3, 8e-3), "f32": (2e-5, 2e-5), "tf32": (5e-3, 1e-2)},
    "state correlated": {"bf16": (5e-2, None), "f16": (1e-2, None), "f32": (2e-5, None), "tf32": (1e-2, None)},
}


def rms(x):
    x = np.asarray(x, F64)
    return float(np.sqrt(np.mean(x * x))) if x.size else 0.0


def ratio(x, r):
    """rms(x - r) / rms(r) of whole tensors; rms(x) where the reference is zero."""
    x, r = np.asarray(x, F64), np.asarray(r, F64)
    _need(x.shape == r.shape, f"cannot compare shapes {x.shape} and {r.shape}")
    scale = rms(r)
    return rms(x - r) / scale if scale else rms(x)


def block_ratio(x, r, block=16):
    """Largest ratio over blocks of `block` tokens of one head; x and r [B, T, H, ...].

    A block whose reference rms is under 1e-3 of the tensor's is compared with the
    tensor's rms.
    """
    x, r = np.asarray(x, F64), np.asarray(r, F64)
    _need(x.shape == r.shape, f"cannot compare shapes {x.shape} and {r.shape}")
    if not x.size:
        return 0.0
    whole = rms(r)
    starts = np.arange(0, x.shape[1], block)
    counts = np.diff(np.append(starts, x.shape[1])) * int(np.prod(x.shape[3:]))

    def block_rms(y):
        squares = np.sum((y * y).reshape(y.shape[:3] + (-1,)), axis=3)
        return np.sqrt(np.add.reduceat(squares, starts, axis=1) / counts[None, :, None])

    reference = block_rms(r)
    reference = np.where(reference < 1e-3 * whole, whole, reference)
    errors = block_rms(x - r)
    if not whole:
        return float(np.max(errors))
    return float(np.max(errors / reference))


def check(name, x, r, kind, arithmetic, factor=1.0, tokens=True):
    """Asserts that x is finite and within LIMITS[kind][arithmetic] of r; returns the ratios.

    `tokens` says that dimension 1 counts tokens, so that blocks make sense.
    """
    x, r = np.asarray(x, F64), np.asarray(r, F64)
    bad = int(np.size(x) - np.count_nonzero(np.isfinite(x)))
    assert bad == 0, f"{name}: {bad} of {x.size} values are not finite"
    limit, block_limit = LIMITS[kind][arithmetic]
    whole = ratio(x, r)
    assert whole <= factor * limit, f"{name}: error {whole:.3e} is above {factor * limit:.1e} ({kind}, {arithmetic})"
    worst = 0.0
    if tokens and block_limit is not None:
        worst = block_ratio(x, r)
        assert worst <= factor * block_limit, (
            f"{name}: error of a block {worst:.3e} is above {factor * block_limit:.1e} ({kind}, {arithmetic})"
        )
    return whole, worst
