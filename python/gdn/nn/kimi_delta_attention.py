# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kimi Delta Attention: the linear token mixer of Kimi Linear."""

from __future__ import annotations

import torch
from torch import nn

from .mixer import (
    GatedNorm,
    JointConvolution,
    Mixer,
    ShortConvolution,
    init_decay,
    init_dt_bias,
    project_jointly,
)


class KimiDeltaAttention(Mixer):
    """Kimi Delta Attention (Kimi Team 2025, arXiv 2510.26692): Gated DeltaNet with a decay per key channel.

        q, k, v = silu(conv(W_q x)), silu(conv(W_k x)), silu(conv(W_v x));  q, k normalised per head
        f       = W_f2 (W_f1 x) + dt_bias                              [B, T, HV, K]
        g       = -exp(A_log) * softplus(f), or lower_bound * sigmoid(exp(A_log) * f)
        beta    = sigmoid(W_b x), or 2 sigmoid with allow_neg_eigval
        S       <- S diag(exp(g));  S <- S + beta (v - S k) k^T;  o = K^-1/2 S q
        y       = W_o (rmsnorm(o) * weight * sigmoid(W_g2 (W_g1 x)))

    hidden_size, num_heads, head_dim, num_v_heads, expand_v, conv_size: as in FLA's layer of this name;
    V = head_dim * expand_v. lower_bound: of the bounded gate, in [-5, 0); None for the softplus gate.

    Parameters have the names of FLA's layer (f_proj.0, f_proj.1, g_proj.0, g_proj.1, ...).
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        head_dim=128,
        *,
        num_v_heads=None,
        expand_v=1.0,
        conv_size=4,
        conv_bias=False,
        allow_neg_eigval=False,
        lower_bound=None,
        norm_eps=1e-5,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.hidden_size, self.num_heads, self.head_dim = hidden_size, num_heads, head_dim
        self.num_v_heads = num_v_heads or num_heads
        self.head_v_dim = int(head_dim * expand_v)
        if self.num_v_heads % num_heads:
            raise ValueError(f"num_v_heads = {self.num_v_heads} is no multiple of num_heads = {num_heads}")
        if lower_bound is not None and not -5.0 <= lower_bound < 0.0:
            raise ValueError(f"lower_bound = {lower_bound} is not in [-5, 0)")
        self.allow_neg_eigval, self.lower_bound = allow_neg_eigval, lower_bound
        self.state_shape = (self.num_v_heads, self.head_v_dim, head_dim)
        keys, values = num_heads * head_dim, self.num_v_heads * self.head_v_dim
        gates = self.num_v_heads * head_dim
        where = {"device": device, "dtype": dtype}
        self.q_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.k_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.v_proj = nn.Linear(hidden_size, values, bias=False, **where)
        self.q_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
        self.k_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
        self.v_conv1d = ShortConvolution(values, conv_size, conv_bias, **where)
        self._conv = JointConvolution(self.q_conv1d, self.k_conv1d, self.v_conv1d)
        self._sizes = [keys, keys, values]
        self.qk_heads = (2 * num_heads, head_dim)
        self.f_proj = nn.Sequential(
            nn.Linear(hidden_size, self.head_v_dim, bias=False, **where),
            nn.Linear(self.head_v_dim, gates, bias=False, **where),
        )
        self.b_proj = nn.Linear(hidden_size, self.num_v_heads, bias=False, **where)
        bounded = lower_bound is not None
        rates = torch.zeros(self.num_v_heads, device=device) if bounded else init_decay(self.num_v_heads, 1, 16, device)
        self.A_log = nn.Parameter(rates)
        self.dt_bias = nn.Parameter(init_dt_bias(gates, device=device))
        self.g_proj = nn.Sequential(
            nn.Linear(hidden_size, self.head_v_dim, bias=False, **where),
            nn.Linear(self.head_v_dim, values, bias=True, **where),
        )
        self.o_norm = GatedNorm(self.head_v_dim, norm_eps, activation="sigmoid", **where)
        self.o_proj = nn.Linear(values, hidden_size, bias=False, **where)

    def convolutions(self):
        return (self._conv,)

    def project(self, x):
        qkv = project_jointly(x, (self.q_proj, self.k_proj, self.v_proj))
        return [qkv], (self.f_proj(x), self.b_proj(x), self.g_proj(x))

    def rule_inputs(self, convolved, rest):
        q, k, v = convolved[0].split(self._sizes, dim=-1)
        f, b, _ = rest
        keys = (self.num_heads, self.head_dim)
        return {
            "q": q.unflatten(-1, keys),
            "k": k.unflatten(-1, keys),
            "v": v.unflatten(-1, (self.num_v_heads, self.head_v_dim)),
            "gate": f.unflatten(-1, (self.num_v_heads, self.head_dim)),
            "gate_form": "raw",
            "A_log": self.A_log,
            "dt_bias": self.dt_bias.view(self.num_v_heads, self.head_dim),
            "lower_bound": self.lower_bound,
            "beta": b,
            "beta_form": "2sigmoid" if self.allow_neg_eigval else "sigmoid",
            "qk_l2norm": True,
        }

    def finish(self, o, rest):
        return self.o_proj(self.o_norm(o, rest[2].view_as(o)).flatten(-2))
