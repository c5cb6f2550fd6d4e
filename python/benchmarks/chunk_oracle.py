# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated delta rule in float64 by chunks, for sequences that a token loop would take minutes for.

Written for numpy and torch alike, so that it is compared with the token loop where there is no
GPU. It is an oracle by that comparison alone: nothing is rounded, all sequences and heads
go through each product together, and only the state is walked in order.
"""


def recurrence(q, k, v, gate=None, beta=None, starts=None, state=None, scale=None, chunk=128):
    """o [B, T, Hv, V] and the final state [N, Hv, V, K] in float64.

    q, k [B, T, Hqk, K]; gate, beta [B, T, Hv] or None; `starts`, a sequence of ints, cuts B = 1
    into packed sequences.
    """
    xp = _library(q)
    if scale is None:
        scale = q.shape[3] ** -0.5
    if starts is None:
        starts = [i * q.shape[1] for i in range(q.shape[0] + 1)]
        packed = [None if x is None else x.reshape(1, -1, *x.shape[2:]) for x in (q, k, v, gate, beta)]
    else:
        packed = [q, k, v, gate, beta]
    lengths = [b - a for a, b in zip(starts, starts[1:])]
    chunks = max(1, -(-max(lengths, default=0) // chunk))
    parts = [None if x is None else _to_chunks(xp, x[0], starts, chunks, chunk) for x in packed]
    heads = v.shape[2]
    o, S = _walk(xp, *[_grouped(xp, x, heads) for x in parts], _initial(xp, state, v, q, len(lengths)), scale)
    # [chunks, N, Hv, chunk, V] to the packed order of tokens
    o = xp.moveaxis(o, 0, 2).reshape(len(lengths), heads, chunks * chunk, v.shape[3])
    o = xp.moveaxis(o, 1, 2)
    pieces = [o[n, :length] for n, length in enumerate(lengths)]
    result = xp.concatenate(pieces, 0) if pieces else v[0, :0]
    return result.reshape(v.shape), S


def _library(x):
    if type(x).__module__.split(".")[0] == "torch":
        import torch

        return torch
    import numpy

    return numpy


def _zeros(xp, shape, like):
    options = {} if xp.__name__ == "numpy" else {"device": like.device}
    return xp.zeros(shape, dtype=xp.float64, **options)


def _initial(xp, state, v, q, sequences):
    S = _zeros(xp, (sequences, v.shape[2], v.shape[3], q.shape[3]), v)
    if state is not None:
        S[...] = state
    return S


def _to_chunks(xp, x, starts, chunks, chunk):
    """[T, H, ...] packed -> [chunks, N, H, chunk, ...] in float64; zeros behind each sequence."""
    out = _zeros(xp, (len(starts) - 1, chunks * chunk, *x.shape[1:]), x)
    for n, (a, b) in enumerate(zip(starts, starts[1:])):
        out[n, : b - a] = x[a:b]
    out = out.reshape(len(starts) - 1, chunks, chunk, *x.shape[1:])
    return xp.moveaxis(xp.moveaxis(out, 1, 0), 2, 3)


def _grouped(xp, x, heads):
    """Each key head once for every value head that uses it."""
    if x is None or x.shape[2] == heads:
        return x
    group = heads // x.shape[2]
    if xp.__name__ == "numpy":
        return x.repeat(group, axis=2)
    return x.repeat_interleave(group, dim=2)


def _walk(xp, q, k, v, gate, beta, S, scale):
    """All chunks: what needs no state at once, then the state from chunk to chunk."""
    chunk = q.shape[3]
    total = _zeros(xp, k.shape[:4], k) if gate is None else xp.cumsum(gate, 3)
    o = _zeros(xp, v.shape, v)
    ones = _zeros(xp, (chunk, chunk), k) + 1.0
    lower, strictly = xp.tril(ones), xp.tril(ones, -1)
    for n in range(q.shape[0]):
        G = total[n]
        # The mask comes in front of exp: no exponent above 0 is formed.
        decay = xp.exp((G[..., :, None] - G[..., None, :]) * lower) * lower
        into, out = xp.exp(G)[..., None], xp.exp(G[..., -1:] - G)[..., None]
        K, Q, keysT = k[n], q[n], xp.swapaxes(k[n], -1, -2)
        U = v[n]
        if beta is not None:
            b = beta[n][..., None]
            W = b * (U - into * (K @ xp.swapaxes(S, -1, -2)))
            U = _solve(xp, strictly * decay * (b * (K @ keysT)) + xp.tril(xp.triu(ones)), W)
        o[n] = scale * (into * (Q @ xp.swapaxes(S, -1, -2)) + (decay * (Q @ keysT)) @ U)
        S = xp.exp(G[..., -1])[..., None, None] * S + xp.swapaxes(out * U, -1, -2) @ K
    return o, S


def _solve(xp, lower, right):
    if xp.__name__ == "numpy":
        return xp.linalg.solve(lower, right)
    return xp.linalg.solve_triangular(lower, right, upper=False, unitriangular=True)
