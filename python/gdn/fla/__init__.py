# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of flash-linear-attention (FLA 0.6.0) by name, argument, default and shape.

Two things differ. What FLA takes through **kwargs are keyword arguments here, so an argument that
does not exist is a TypeError instead of being ignored. And an option that is not supported raises
NotImplementedError with its name. All functions also take, by keyword:

    linear_gate   g is the decay itself, in [0, 1], instead of its natural logarithm
    out           destination of o
    final_state   destination of the final state; it may be initial_state (updated in place)
    state_indices slots of a pool of states: initial_state is the pool, updated in place; below 0 skips
    checkpoint_every  returns the states after every so many tokens as a third result
    checkpoints   destination of these states
    validate      reads cu_seqlens and state_indices back and checks them, which waits for the device

See `gdn.recurrence` for the formula, types and errors of all of them. States are [N, HV, K, V], or
[N, HV, V, K] with state_v_first.
"""

from .channel import chunk_gdn2, chunk_kda, fused_recurrent_gdn2, fused_recurrent_kda
from .delta import (
    chunk_delta_rule,
    chunk_gated_delta_rule,
    fused_recurrent_delta_rule,
    fused_recurrent_gated_delta_rule,
)
from .linear import chunk_gla, chunk_linear_attn, chunk_simple_gla, fused_recurrent_simple_gla

__all__ = [
    "chunk_delta_rule",
    "chunk_gated_delta_rule",
    "chunk_gdn2",
    "chunk_gla",
    "chunk_kda",
    "chunk_linear_attn",
    "chunk_simple_gla",
    "fused_recurrent_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gdn2",
    "fused_recurrent_kda",
    "fused_recurrent_simple_gla",
]
