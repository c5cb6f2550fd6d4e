# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DeltaNet and Gated DeltaNet."""

from __future__ import annotations

from ..core import recurrence
from .common import beta_form as beta_form_of
from .common import beta_or_one, chunk_of, gate_form, need_beta_per_head, need_rank, no_head_first, refuse, state_layout


def chunk_gated_delta_rule(
    q,
    k,
    v,
    g,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    chunk_indices=None,
    cp_context=None,
    *,
    use_gate_in_kernel=False,
    A_log=None,
    dt_bias=None,
    chunk_size=64,
    transpose_state_layout=None,
    head_first=None,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """Gated DeltaNet (arXiv:2412.06464): S <- exp(g) S; S <- S + beta (v - S k) k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, HV, V], g and beta [B, T, HV]. With `use_gate_in_kernel` g is the raw
    projection, and the decay exp(-exp(A_log) softplus(g + dt_bias)) with A_log, dt_bias [HV]. With
    `use_beta_sigmoid_in_kernel` beta are logits (2 sigmoid with `allow_neg_eigval`). `chunk_size` 64
    leaves the choice to the compiler. Returns o and the final state (float32) or None.
    """
    refuse(chunk_indices=chunk_indices, cp_context=cp_context)
    no_head_first(head_first)
    need_rank("g", g, 3, "[B, T, HV]")
    need_rank("beta", beta, 3, "[B, T, HV]")
    return recurrence(
        q,
        k,
        v,
        g,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        beta_form=beta_form_of(use_beta_sigmoid_in_kernel, allow_neg_eigval),
        state_v_first=state_layout(state_v_first, transpose_state_layout),
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        chunk=chunk_of(chunk_size, (16, 32, 64), "Gated Delta Rule"),
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias),
    )


def fused_recurrent_gated_delta_rule(
    q,
    k,
    v,
    g=None,
    gk=None,
    gv=None,
    beta=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    A_log=None,
    dt_bias=None,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
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
    """Gated DeltaNet for few tokens: as `chunk_gated_delta_rule`, with a choice of gates.

    g [B, T, HV] per head or gk [B, T, HV, K] per key channel, or none; beta defaults to 1. Up to 8 tokens
    (per packed sequence on average) are walked with the state in registers, longer calls run by chunks.
    """
    refuse(gv=gv)
    if g is not None and gk is not None:
        raise NotImplementedError("`g` and `gk` together are not supported; add them and pass the sum as `gk`")
    if g is not None:
        need_rank("g", g, 3, "[B, T, HV]")
    if gk is not None:
        need_rank("gk", gk, 4, "[B, T, HV, K]")
    if use_gate_in_kernel:
        if A_log is None:
            raise ValueError("`A_log` must be provided when `use_gate_in_kernel=True`.")
        if g is None:
            raise ValueError("`g` (raw pre-activation) must be provided when `use_gate_in_kernel=True`.")
    beta_form = beta_form_of(use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return recurrence(
        q,
        k,
        v,
        g if gk is None else gk,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        beta_form=beta_or_one(beta, beta_form),
        state_v_first=state_layout(state_v_first, transpose_state_layout),
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias),
    )


def chunk_delta_rule(
    q,
    k,
    v,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    *,
    chunk_size=64,
    head_first=None,
    state_v_first=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """DeltaNet (arXiv:2406.06484): S <- S + beta (v - S k) k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, H, V] (more value heads than key heads work too), beta [B, T, H]. float32
    works, which FLA refuses. Returns o and the final state (float32) or None.
    """
    no_head_first(head_first)
    need_rank("beta", beta, 3, "[B, T, H]")
    return recurrence(
        q,
        k,
        v,
        None,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        state_v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        chunk=chunk_of(chunk_size, (16, 32, 64), "the Delta Rule"),
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
    )


def fused_recurrent_delta_rule(
    q,
    k,
    v,
    beta=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    cu_seqlens=None,
    *,
    cu_seqlens_cpu=None,
    state_v_first=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """DeltaNet for few tokens: as `chunk_delta_rule`; beta defaults to 1."""
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be positive, got {scale}")
    if beta is not None:
        need_beta_per_head(beta)
    return recurrence(
        q,
        k,
        v,
        None,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        beta_form=beta_or_one(beta, "value"),
        state_v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
    )
