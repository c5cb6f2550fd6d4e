# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated DeltaNet: the linear token mixer of Qwen3-Next, Qwen3.5 and OLMo-Hybrid."""

from __future__ import annotations

from torch import nn

from .mixer import (
    GatedNorm,
    JointConvolution,
    Mixer,
    Norm,
    ShortConvolution,
    init_decay,
    init_dt_bias,
    project_jointly,
)


class GatedDeltaNet(Mixer):
    """Gated DeltaNet (Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464).

        q, k, v = silu(conv(W_q x)), silu(conv(W_k x)), silu(conv(W_v x))
        q, k    = q / ||q||, k / ||k||                                 per head, eps 1e-6
        g       = -exp(A_log) * softplus(W_a x + dt_bias)              per value head, float32
        beta    = sigmoid(W_b x), or 2 sigmoid with allow_neg_eigval
        S       <- exp(g) S;  S <- S + beta (v - S k) k^T;  o = K^-1/2 S q
        y       = W_o (rmsnorm(o) * weight * silu(W_g x))

    hidden_size       width of x and y
    num_heads         key heads; num_v_heads (default: num_heads) a multiple of it
    head_dim          key channels K per head; head_v_dim (default: head_dim) value channels V
    conv_size         taps of the convolutions; 0 for none (silu alone)
    use_gate          False: plain rmsnorm, no W_g
    norm_eps          of the output norm

    Parameters have the names of FLA's layer (q_proj, q_conv1d, A_log, dt_bias, o_norm, ...), so its
    checkpoints load; conv weights are [D, 1, conv_size].
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        head_dim,
        *,
        num_v_heads=None,
        head_v_dim=None,
        conv_size=4,
        conv_bias=False,
        use_gate=True,
        allow_neg_eigval=False,
        norm_eps=1e-6,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.hidden_size, self.num_heads, self.head_dim = hidden_size, num_heads, head_dim
        self.num_v_heads = num_v_heads or num_heads
        self.head_v_dim = head_v_dim or head_dim
        if self.num_v_heads % num_heads:
            raise ValueError(f"num_v_heads = {self.num_v_heads} is no multiple of num_heads = {num_heads}")
        self.allow_neg_eigval, self.norm_eps, self.use_gate = allow_neg_eigval, norm_eps, use_gate
        self.state_shape = (self.num_v_heads, self.head_v_dim, head_dim)
        keys, values = num_heads * head_dim, self.num_v_heads * self.head_v_dim
        where = {"device": device, "dtype": dtype}
        self.q_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.k_proj = nn.Linear(hidden_size, keys, bias=False, **where)
        self.v_proj = nn.Linear(hidden_size, values, bias=False, **where)
        self.a_proj = nn.Linear(hidden_size, self.num_v_heads, bias=False, **where)
        self.b_proj = nn.Linear(hidden_size, self.num_v_heads, bias=False, **where)
        self.A_log = nn.Parameter(init_decay(self.num_v_heads, 0.0, 16.0, device))
        self.dt_bias = nn.Parameter(init_dt_bias(self.num_v_heads, device=device))
        if conv_size:
            self.q_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
            self.k_conv1d = ShortConvolution(keys, conv_size, conv_bias, **where)
            self.v_conv1d = ShortConvolution(values, conv_size, conv_bias, **where)
            self._conv = JointConvolution(self.q_conv1d, self.k_conv1d, self.v_conv1d)
        self._sizes = [keys, keys, values]
        self.qk_heads = (2 * num_heads, head_dim)
        self.conv_size = conv_size
        if use_gate:
            self.g_proj = nn.Linear(hidden_size, values, bias=False, **where)
            self.o_norm = GatedNorm(self.head_v_dim, norm_eps, **where)
        else:
            self.o_norm = Norm(self.head_v_dim, norm_eps, **where)
        self.o_proj = nn.Linear(values, hidden_size, bias=False, **where)

    def convolutions(self):
        return (self._conv,) if self.conv_size else ()

    def project(self, x):
        qkv = project_jointly(x, (self.q_proj, self.k_proj, self.v_proj))
        if not self.conv_size:
            qkv = nn.functional.silu(qkv)
        gate = self.g_proj(x) if self.use_gate else None
        return [qkv], (self.a_proj(x), self.b_proj(x), gate)

    def rule_inputs(self, convolved, rest):
        q, k, v = convolved[0].split(self._sizes, dim=-1)
        a, b, _ = rest
        keys, values = (self.num_heads, self.head_dim), (self.num_v_heads, self.head_v_dim)
        return {
            "q": q.unflatten(-1, keys),
            "k": k.unflatten(-1, keys),
            "v": v.unflatten(-1, values),
            "gate": a,
            "gate_form": "raw",
            "A_log": self.A_log,
            "dt_bias": self.dt_bias,
            "beta": b,
            "beta_form": "2sigmoid" if self.allow_neg_eigval else "sigmoid",
            "qk_l2norm": True,
        }

    def finish(self, o, rest):
        gate = rest[2]
        o = self.o_norm(o, gate.view_as(o)) if self.use_gate else self.o_norm(o)
        return self.o_proj(o.flatten(-2))
