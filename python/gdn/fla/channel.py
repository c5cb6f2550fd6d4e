# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The delta rule with a decay per key channel: Kimi Delta Attention and Gated DeltaNet-2."""

from __future__ import annotations

from ..core import recurrence
from .common import beta_form as beta_form_of
from .common import chunk_of, gate_form, need_beta_per_head, need_rank, refuse, state_layout


def _check_safe_gate(safe_gate, use_gate_in_kernel, lower_bound):
    if safe_gate and use_gate_in_kernel and lower_bound is None:
        raise ValueError("`lower_bound` must be specified when `safe_gate=True` and `use_gate_in_kernel=True`.")
    if lower_bound is not None and not use_gate_in_kernel:
        raise ValueError("`lower_bound` is given, but use_gate_in_kernel is False")


def _check_graph(use_graph, max_num_seqs, cu_seqlens):
    """Every call can be captured, so `use_graph` changes nothing but this check."""
    if max_num_seqs is None:
        return
    if cu_seqlens is None:
        raise ValueError("`max_num_seqs` is given without `cu_seqlens`")
    if cu_seqlens.shape[0] - 1 != max_num_seqs:
        raise ValueError(
            f"`max_num_seqs` is {max_num_seqs}, but cu_seqlens has {cu_seqlens.shape[0] - 1} sequences; pad it with "
            "empty ones"
        )


def chunk_kda(
    q,
    k,
    v,
    g,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    safe_gate=False,
    lower_bound=None,
    disable_recompute=False,
    return_intermediate_states=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    cp_context=None,
    use_graph=False,
    max_num_seqs=None,
    *,
    A_log=None,
    dt_bias=None,
    chunk_size=64,
    transpose_state_layout=None,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """Kimi Delta Attention (arXiv:2510.26692): S <- S diag(exp(g)); S <- S + beta (v - S k) k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, HV, V], g [B, T, HV, K], beta [B, T, HV]. With `use_gate_in_kernel` g is
    the raw projection; the gate is -exp(A_log) softplus(g + dt_bias), or lower_bound sigmoid(exp(A_log)
    (g + dt_bias)) where `lower_bound` in [-5, 0) is set (A_log may be None then); A_log [HV], dt_bias
    [HV * K]. `safe_gate` only asks for a lower bound; `disable_recompute` concerns gradients, `use_graph`
    nothing: every call can be captured into a CUDA graph. Returns o and the final state (float32) or None.
    """
    refuse(cp_context=cp_context, return_intermediate_states=return_intermediate_states)
    _check_safe_gate(safe_gate, use_gate_in_kernel, lower_bound)
    _check_graph(use_graph, max_num_seqs, cu_seqlens)
    need_rank("g", g, 4, "[B, T, HV, K]")
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
        chunk=chunk_of(chunk_size, (32, 64), "KDA"),
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias, lower_bound),
    )


def fused_recurrent_kda(
    q,
    k,
    v,
    g,
    beta,
    A_log=None,
    dt_bias=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    lower_bound=None,
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
    """Kimi Delta Attention for few tokens: as `chunk_kda`."""
    _check_safe_gate(False, use_gate_in_kernel, lower_bound)
    need_rank("g", g, 4, "[B, T, HV, K]")
    need_beta_per_head(beta)
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
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias, lower_bound),
    )


def chunk_gdn2(
    q,
    k,
    v,
    g,
    b,
    w,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    safe_gate=False,
    lower_bound=None,
    disable_recompute=False,
    return_intermediate_states=False,
    state_v_first=False,
    cp_context=None,
    *,
    A_log=None,
    dt_bias=None,
    chunk_size=64,
    transpose_state_layout=None,
    linear_gate=False,
    out=None,
    final_state=None,
    state_indices=None,
    checkpoint_every=None,
    checkpoints=None,
    validate=False,
):
    """Gated DeltaNet-2: S <- S diag(exp(g)); S <- S + (w o v - S (b o k)) k^T; o = scale S q.

    q, k [B, T, H, K], v [B, T, HV, V], g and the erase gate b [B, T, HV, K], the write gate w [B, T, HV, V].
    Gates in the kernel as in `chunk_kda`. Returns o and the final state (float32) or None.
    """
    refuse(cp_context=cp_context, return_intermediate_states=return_intermediate_states)
    _check_safe_gate(safe_gate, use_gate_in_kernel, lower_bound)
    if chunk_size != 64:
        raise ValueError(f"`chunk_size` must be 64 for GDN-2, got {chunk_size}.")
    return _gdn2(
        q,
        k,
        v,
        g,
        b,
        w,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        state_v_first=state_layout(state_v_first, transpose_state_layout),
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias, lower_bound),
    )


def _gdn2(q, k, v, g, b, w, **options):
    need_rank("g", g, 4, "[B, T, HV, K]")
    need_rank("b", b, 4, "[B, T, HV, K]")
    need_rank("w", w, 4, "[B, T, HV, V]")
    return recurrence(q, k, v, g, None, b, w, **options)


def fused_recurrent_gdn2(
    q,
    k,
    v,
    g,
    b,
    w,
    A_log=None,
    dt_bias=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    lower_bound=None,
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
    """Gated DeltaNet-2 for few tokens: as `chunk_gdn2`."""
    _check_safe_gate(False, use_gate_in_kernel, lower_bound)
    return _gdn2(
        q,
        k,
        v,
        g,
        b,
        w,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        qk_l2norm=use_qk_l2norm_in_kernel,
        state_v_first=state_layout(state_v_first, transpose_state_layout),
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        checkpoint_every=checkpoint_every,
        checkpoints=checkpoints,
        validate=validate,
        **gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias, lower_bound),
    )
