# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DeltaNet: the delta rule without decay."""

from __future__ import annotations

import torch
from torch import nn

from .mixer import GatedNorm, JointConvolution, Mixer, Norm, ShortConvolution, project_jointly


class DeltaNet(Mixer):
    """DeltaNet (Yang et al. 2024, arXiv 2406.06484).

        q, k, v = silu(conv(W_q x)), silu(conv(W_k x)), silu(conv(W_v x));  q, k normalised per head
        beta    = sigmoid(W_b x), 2 sigmoid with allow_neg_eigval, or 1 without use_beta
        S       <- S + beta (v - S k) k^T;  o = K^-1/2 S q
        y       = W_o (rmsnorm(o) * weight), times silu(W_g x) in front of W_o with use_gate

    hidden_size, num_heads, expand_k, expand_v: K = hidden * expand_k / heads, V likewise. Parameters have
    the names of FLA's layer.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        *,
        expand_k=1.0,
        expand_v=1.0,
        conv_size=4,
        conv_bias=False,
        use_beta=True,
        use_gate=False,
        allow_neg_eigval=False,
        norm_eps=1e-5,
        device=None,
        dtype=None,
    ):
        super().__init__()
        keys, values = int(hidden_size * expand_k), int(hidden_size * expand_v)
        for name, size in (("key", keys), ("value", values)):
            if size % num_heads:
                raise ValueError(f"{size} {name} channels do not divide into {num_heads} heads")
        self.hidden_size, self.num_heads = hidden_size, num_heads
        self.head_k_dim, self.head_v_dim = keys // num_heads, values // num_heads
        self.use_beta, self.use_gate, self.allow_neg_eigval = use_beta, use_gate, allow_neg_eigval
        self.state_shape = (num_heads, self.head_v_dim, self.head_k_dim)
        where = {"device": device, "dtype": dtype}
        self.q_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.k_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.v_proj = nn.Linear(hidden_size, values, bias=False, **where)
        if use_beta:
            self.b_proj = nn.Linear(hidden_size, num_heads, bias=False, **where)
        self.q_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
        self.k_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
        self.v_conv1d = ShortConvolution(values, conv_size, conv_bias, **where)
        self._conv = JointConvolution(self.q_conv1d, self.k_conv1d, self.v_conv1d)
        self._sizes = [keys, keys, values]
        self.qk_heads = (2 * num_heads, self.head_k_dim)
        if use_gate:
            self.g_proj = nn.Linear(hidden_size, values, bias=False, **where)
            self.o_norm = GatedNorm(self.head_v_dim, norm_eps, **where)
        else:
            self.o_norm = Norm(self.head_v_dim, norm_eps, **where)
        self.o_proj = nn.Linear(values, hidden_size, bias=False, **where)

    def convolutions(self):
        return (self._conv,)

    def project(self, x):
        beta = self.b_proj(x) if self.use_beta else None
        gate = self.g_proj(x) if self.use_gate else None
        return [project_jointly(x, (self.q_proj, self.k_proj, self.v_proj))], (beta, gate)

    def rule_inputs(self, convolved, rest):
        q, k, v = convolved[0].split(self._sizes, dim=-1)
        beta, form = rest[0], "2sigmoid" if self.allow_neg_eigval else "sigmoid"
        if beta is None:
            strength = 2.0 if self.allow_neg_eigval else 1.0
            beta, form = torch.full((*q.shape[:2], self.num_heads), strength, device=q.device), "value"
        keys = (self.num_heads, self.head_k_dim)
        return {
            "q": q.unflatten(-1, keys),
            "k": k.unflatten(-1, keys),
            "v": v.unflatten(-1, (self.num_heads, self.head_v_dim)),
            "beta": beta,
            "beta_form": form,
            "qk_l2norm": True,
        }

    def finish(self, o, rest):
        o = self.o_norm(o, rest[1].view_as(o)) if self.use_gate else self.o_norm(o)
        return self.o_proj(o.flatten(-2))
