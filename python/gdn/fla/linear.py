# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear attention without the delta rule: with a decay per head, per key channel or none."""

from __future__ import annotations

from .. import arrays, backend
from ..checks import check_call, need_float, need_shape
from ..core import recurrence
from .common import gate_form, need_rank, no_head_first, refuse, state_layout


def _head_gate(g, g_gamma, linear_gate):
    """The gate of simple GLA, g [B, T, H] or the constant g_gamma [H] for all tokens, and its form."""
    if g_gamma is not None:
        if g is not None:
            raise ValueError("Only one of `g` and `g_gamma` may be given")
        if linear_gate:
            raise ValueError("`linear_gate` belongs to `g`; `g_gamma` is a logarithm")
        return g_gamma, {"gate_form": "constant"}
    if g is None:
        return None, {}
    need_rank("g", g, 3, "[B, T, H]")
    return g, gate_form(False, linear_gate, None, None)


def chunk_simple_gla(
    q,
    k,
    v,
    g=None,
    g_gamma=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    *,
    chunk_size=None,
    head_first=None,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """Linear attention with a decay per head (Mamba-2, arXiv:2405.21060; RetNet): S <- exp(g) S + v k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, HV, V]; g [B, T, HV], or g_gamma [HV], one decay for all tokens, or none.
    """
    no_head_first(head_first)
    if chunk_size not in (None, 16, 32, 64):
        raise ValueError(f"`chunk_size` must be 16, 32 or 64, got {chunk_size}.")
    gate, form = _head_gate(g, g_gamma, linear_gate)
    return recurrence(
        q,
        k,
        v,
        gate,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        chunk=None if chunk_size == 64 else chunk_size,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **form,
    )


def fused_recurrent_simple_gla(
    q,
    k,
    v,
    g=None,
    g_gamma=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    reverse=False,
    state_v_first=False,
    cu_seqlens=None,
    *,
    cu_seqlens_cpu=None,
    transpose_state_layout=None,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """`chunk_simple_gla` for few tokens."""
    refuse(reverse=reverse)
    gate, form = _head_gate(g, g_gamma, linear_gate)
    return recurrence(
        q,
        k,
        v,
        gate,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_layout(state_v_first, transpose_state_layout),
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **form,
    )


def chunk_gla(
    q,
    k,
    v,
    g,
    scale=None,
    initial_state=None,
    output_final_state=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    *,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """Gated linear attention (arXiv:2312.06635), a decay per key channel: S <- S diag(exp(g)) + v k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, HV, V], g [B, T, HV, K].
    """
    need_rank("g", g, 4, "[B, T, H, K]")
    return recurrence(
        q,
        k,
        v,
        g,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(False, linear_gate, None, None),
    )


def chunk_linear_attn(
    q,
    k,
    v,
    scale=None,
    initial_state=None,
    output_final_state=False,
    normalize=True,
    cu_seqlens=None,
    *,
    cu_seqlens_cpu=None,
    out=None,
    final_state=None,
    validate=False,
):
    """Linear attention (arXiv:2006.16236): S <- S + v k^T; o = scale S q, divided by scale z q + 1e-10 if `normalize`.

    z is the running sum of the keys. With `normalize` the states are pairs (S [N, H, K, V], z [N, 1, H, K]),
    in and out; S is None in the result without `output_final_state`. q, k, v [B, T, H, ...].
    """
    sums = None
    if normalize and isinstance(initial_state, tuple):
        initial_state, sums = initial_state
    if not normalize:
        return recurrence(
            q,
            k,
            v,
            scale=scale,
            initial_state=initial_state,
            output_final_state=output_final_state,
            state_v_first=False,
            cu_seqlens=cu_seqlens,
            cu_seqlens_cpu=cu_seqlens_cpu,
            out=out,
            final_state=final_state,
            validate=validate,
        )
    if final_state is not None:
        raise NotImplementedError("`final_state` is not supported together with `normalize`")
    if v.shape[2] != q.shape[2]:
        raise ValueError(f"normalize needs as many value heads as key heads, but v has {v.shape[2]}, q {q.shape[2]}")
    q, k, v = arrays.autocast(q, k, v)
    call = check_call(
        q,
        k,
        v,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        validate=validate,
        v_first=False,
    )
    N, H, K = backend.state_shape(call)[:3]
    if sums is not None:
        need_shape("the sum of keys in initial_state", sums, (N, 1, H, K), "[N, 1, H, K]")
        need_float("the sum of keys in initial_state", sums)
        sums = sums.reshape(N, H, 1, K)
    o = arrays.empty_like(q, tuple(v.shape), arrays.dtype_name(v)) if out is None else out
    state = arrays.empty_like(q, backend.state_shape(call), "f32")
    final_sums = arrays.empty_like(q, (N, H, 1, K), "f32")
    backend.dispatch(
        "linear_attn",
        backend.run_linear_attn,
        q,
        k,
        v,
        cu_seqlens,
        initial_state,
        sums,
        o,
        state,
        final_sums,
        call.scale,
    )
    return o, (state if output_final_state else None, final_sums.reshape(N, 1, H, K))
