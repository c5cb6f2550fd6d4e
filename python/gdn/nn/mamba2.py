# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mamba-2: a decay per head, no delta rule."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .. import mixer as parts
from .mixer import Mixer, ShortConvolution, init_decay, init_dt_bias


class Mamba2Mixer(Mixer):
    """Mamba-2 / SSD with scalar decay (Dao, Gu 2024, arXiv 2405.21060).

        z, x, B, C, dt = W_in u;  x, B, C = silu(conv(x, B, C))
        dt     = softplus(dt + dt_bias);  g = -exp(A_log) * dt             per head, float32
        S      <- exp(g) S + (dt x) B^T;  y = S C + D x                    S is [P, N] per head
        out    = W_out (rmsnorm(y * silu(z)) * norm.weight)

    hidden_size     width of u; d_inner = expand * hidden_size = num_heads * head_dim
    state_size      N; B and C have n_groups heads of it, shared by num_heads / n_groups heads each
    conv_size       taps of the one convolution over x, B and C (with bias)

    Parameters have the names of the original (in_proj, conv1d, A_log, D, dt_bias, norm, out_proj).
    """

    def __init__(
        self,
        hidden_size,
        *,
        state_size=128,
        head_dim=64,
        expand=2,
        n_groups=1,
        conv_size=4,
        conv_bias=True,
        norm_eps=1e-5,
        device=None,
        dtype=None,
    ):
        super().__init__()
        inner = expand * hidden_size
        if inner % head_dim:
            raise ValueError(f"expand * hidden_size = {inner} is no multiple of head_dim = {head_dim}")
        self.hidden_size, self.inner_size, self.head_dim = hidden_size, inner, head_dim
        self.num_heads, self.n_groups, self.state_size = inner // head_dim, n_groups, state_size
        if self.num_heads % n_groups:
            raise ValueError(f"{self.num_heads} heads do not divide into n_groups = {n_groups}")
        self.norm_eps = norm_eps
        self.state_shape = (self.num_heads, head_dim, state_size)
        self.grouped = n_groups * state_size
        channels = inner + 2 * self.grouped
        where = {"device": device, "dtype": dtype}
        self.in_proj = nn.Linear(hidden_size, inner + channels + self.num_heads, bias=False, **where)
        self.conv1d = ShortConvolution(channels, conv_size, conv_bias, **where)
        self.A_log = nn.Parameter(init_decay(self.num_heads, 1.0, 16.0, device))
        self.D = nn.Parameter(torch.ones(self.num_heads, device=device))
        self.dt_bias = nn.Parameter(init_dt_bias(self.num_heads, device=device))
        self.norm = nn.Module()
        self.norm.weight = nn.Parameter(torch.ones(inner, **where))
        self.out_proj = nn.Linear(inner, hidden_size, bias=False, **where)

    def convolutions(self):
        return (self.conv1d,)

    def project(self, x):
        sizes = [self.inner_size, self.inner_size + 2 * self.grouped, self.num_heads]
        z, convolved, dt = self.in_proj(x).split(sizes, dim=-1)
        return [convolved], [z, dt.contiguous(), None]

    def rule_inputs(self, convolved, rest):
        x, B, C = convolved[0].split([self.inner_size, *[self.grouped] * 2], dim=-1)
        x = x.unflatten(-1, (self.num_heads, self.head_dim))
        rest[2] = x
        dt = F.softplus(rest[1].float() + self.dt_bias)
        groups = (self.n_groups, self.state_size)
        return {
            "q": C.unflatten(-1, groups),
            "k": B.unflatten(-1, groups),
            "v": (x * dt.unsqueeze(-1)).to(x.dtype),
            "gate": parts.gate(rest[1], self.A_log, self.dt_bias),
            "scale": 1.0,
        }

    def finish(self, o, rest):
        z, _, x = rest
        y = (o.float() + self.D.view(-1, 1) * x.float()).flatten(-2)
        y = y * F.silu(z.float())
        y = F.rms_norm(y, (self.inner_size,), self.norm.weight.float(), self.norm_eps)
        return self.out_proj(y.to(z.dtype))
