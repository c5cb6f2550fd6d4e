# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of gdn.fla share: options of FLA in the terms of gdn.recurrence."""

from __future__ import annotations

import warnings


def refuse(**options):
    """Raises for the first option that is set."""
    reasons = {
        "chunk_indices": "the kernels find their chunks in cu_seqlens themselves; pass None",
        "cp_context": "context parallelism over several GPUs is not supported",
        "gv": "a gate per value channel is not supported",
        "reverse": "walking the tokens backwards is not supported; flip the inputs",
        "return_intermediate_states": "use checkpoint_every=64 for the states behind each chunk",
    }
    for name, value in options.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"`{name}` is not supported: {reasons[name]}")


def state_layout(state_v_first, transpose_state_layout):
    if transpose_state_layout is None:
        return state_v_first
    if state_v_first:
        raise ValueError("Cannot pass both `state_v_first` and the deprecated `transpose_state_layout`.")
    warnings.warn(
        "`transpose_state_layout` is deprecated and renamed to `state_v_first`.", DeprecationWarning, stacklevel=4
    )
    return transpose_state_layout


def no_head_first(head_first):
    if head_first is not None:
        raise DeprecationWarning("head_first has been removed. Inputs must be in `[B, T, H, ...]` format.")


def chunk_of(chunk_size, allowed, model):
    """The chunk for the compiler: None, its own choice, for FLA's default."""
    if chunk_size not in allowed:
        raise ValueError(f"`chunk_size` must be one of {allowed} for {model}, got {chunk_size}.")
    return None if chunk_size == 64 else chunk_size


def gate_form(use_gate_in_kernel, linear_gate, A_log, dt_bias, lower_bound=None):
    """gate_form and the arguments that belong to it."""
    if not use_gate_in_kernel:
        for name, value in (("A_log", A_log), ("dt_bias", dt_bias)):
            if value is not None:
                raise ValueError(f"`{name}` is given, but use_gate_in_kernel is False")
        return {"gate_form": "linear" if linear_gate else "log"}
    if linear_gate:
        raise ValueError("`linear_gate` and `use_gate_in_kernel` exclude one another")
    return {"gate_form": "raw", "A_log": A_log, "dt_bias": dt_bias, "lower_bound": lower_bound}


def beta_form(use_beta_sigmoid_in_kernel, allow_neg_eigval):
    if allow_neg_eigval and not use_beta_sigmoid_in_kernel:
        raise ValueError("`allow_neg_eigval=True` requires `use_beta_sigmoid_in_kernel=True`.")
    return ("2sigmoid" if allow_neg_eigval else "sigmoid") if use_beta_sigmoid_in_kernel else "value"


def need_rank(name, x, rank, text):
    if x is None:
        raise ValueError(f"`{name}` is needed: {text}")
    if len(x.shape) != rank:
        raise ValueError(f"`{name}` has shape {list(x.shape)}; expected {text}")


def beta_or_one(beta, form):
    if beta is not None:
        return form
    if form != "value":
        raise ValueError("`use_beta_sigmoid_in_kernel` needs `beta`")
    return "one"


def need_beta_per_head(beta):
    if len(beta.shape) == 4:
        raise NotImplementedError(
            f"`beta` of shape {list(beta.shape)} is not supported: a write strength per value channel; pass [B, T, H]"
        )
