# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token mixers in float64 numpy, from their geometry and parameters."""

import numpy as np

from gdn import reference
from gdn.export import parameter_names


def parameters(g, rng):
    """Random parameters of a geometry, in float32."""
    shapes = {
        "q_proj.weight": (g.keys, g.hidden),
        "k_proj.weight": (g.keys, g.hidden),
        "v_proj.weight": (g.values, g.hidden),
        "q_conv1d.weight": (g.keys, g.taps),
        "k_conv1d.weight": (g.keys, g.taps),
        "v_conv1d.weight": (g.values, g.taps),
        "q_conv1d.bias": (g.keys,),
        "k_conv1d.bias": (g.keys,),
        "v_conv1d.bias": (g.values,),
        "a_proj.weight": (g.value_heads, g.hidden),
        "f_proj.0.weight": (g.low_rank, g.hidden),
        "f_proj.1.weight": (g.value_heads * g.K, g.low_rank),
        "A_log": (g.value_heads,),
        "dt_bias": (g.value_heads, g.K) if g.gate == "channel" else (g.value_heads,),
        "b_proj.weight": (g.value_heads, g.hidden),
        "g_proj.weight": (g.values, g.hidden),
        "g_proj.0.weight": (g.low_rank, g.hidden),
        "g_proj.1.weight": (g.values, g.low_rank),
        "g_proj.1.bias": (g.values,),
        "o_norm.weight": (g.V,),
        "o_proj.weight": (g.hidden, g.values),
    }
    return {name: rng.normal(0, 0.4, shapes[name]).astype(np.float32) for name in parameter_names(g)}


def model(g, x, p, conv, state):
    """The mixer in float64: output, convolution states, recurrent state."""
    p = {name: np.asarray(value, np.float64) for name, value in p.items()}
    B, T, _ = x.shape

    def linear(value, name):
        return value @ p[name].T

    def convolved(part):
        y = linear(x, f"{part}_proj.weight")
        if not g.taps:
            return y * reference.sigmoid(y), None
        weight, bias = p[f"{part}_conv1d.weight"], p.get(f"{part}_conv1d.bias")
        return reference.short_conv(y, weight, bias=bias, state=conv[part], act="silu")

    (q, q_state), (k, k_state), (v, v_state) = convolved("q"), convolved("k"), convolved("v")
    q = reference.l2norm(q.reshape(B, T, g.key_heads, g.K))
    k = reference.l2norm(k.reshape(B, T, g.key_heads, g.K))
    gate = None
    if g.gate == "head":
        gate = reference.gate(linear(x, "a_proj.weight"), p["A_log"], p["dt_bias"])
    elif g.gate == "channel":
        f = linear(linear(x, "f_proj.0.weight"), "f_proj.1.weight").reshape(B, T, g.value_heads, g.K)
        gate = reference.gate(f, p["A_log"], p["dt_bias"], lower_bound=g.lower_bound)
    if g.beta in ("one", "two"):
        beta = np.full((B, T, g.value_heads), 1.0 if g.beta == "one" else 2.0)
    else:
        beta = reference.sigmoid(linear(x, "b_proj.weight")) * (2 if g.beta == "2sigmoid" else 1)
    v = v.reshape(B, T, g.value_heads, g.V)
    o, state = reference.recurrence(q, k, v, gate=gate, beta=beta, state=state)
    if g.output_gate is None:
        z, activation = np.ones_like(o), "none"
    elif g.low_rank:
        z, activation = linear(linear(x, "g_proj.0.weight"), "g_proj.1.weight"), g.output_gate
        z = (z + p.get("g_proj.1.bias", 0)).reshape(o.shape)
    else:
        z, activation = linear(x, "g_proj.weight").reshape(o.shape), g.output_gate
    y = reference.gated_rms_norm(o, z, p["o_norm.weight"], eps=g.eps, act=activation)
    return linear(y.reshape(B, T, -1), "o_proj.weight"), {"q": q_state, "k": k_state, "v": v_state}, state


def mamba2_parameters(g, rng):
    shapes = {
        "in_proj.weight": (g.inner + g.channels + g.heads, g.hidden),
        "conv1d.weight": (g.channels, g.taps),
        "conv1d.bias": (g.channels,),
        "A_log": (g.heads,),
        "D": (g.heads,),
        "dt_bias": (g.heads,),
        "norm.weight": (g.inner,),
        "out_proj.weight": (g.hidden, g.inner),
    }
    return {name: rng.normal(0, 0.4, shapes[name]).astype(np.float32) for name in parameter_names(g)}


def mamba2_model(g, x, p, conv, state):
    """Mamba-2 in float64, token by token: output, convolution state, recurrent state."""
    p = {name: np.asarray(value, np.float64) for name, value in p.items()}
    B, T, _ = x.shape
    z, xbc, dt = np.split(x @ p["in_proj.weight"].T, [g.inner, g.inner + g.channels], axis=-1)
    xbc, conv = reference.short_conv(xbc, p["conv1d.weight"], bias=p.get("conv1d.bias"), state=conv, act="silu")
    u, b, c = np.split(xbc, [g.inner, g.inner + g.grouped], axis=-1)
    dt = np.log1p(np.exp(dt + p["dt_bias"]))
    decay = np.exp(-np.exp(p["A_log"]) * dt)
    u = u.reshape(B, T, g.heads, g.P)
    b, c = (np.repeat(part.reshape(B, T, g.groups, g.N), g.heads // g.groups, axis=2) for part in (b, c))
    state, y = np.array(state, np.float64), np.empty_like(u)
    for t in range(T):
        state = state * decay[:, t, :, None, None] + np.einsum("bhp,bhn->bhpn", u[:, t] * dt[:, t, :, None], b[:, t])
        y[:, t] = np.einsum("bhpn,bhn->bhp", state, c[:, t]) + p["D"][:, None] * u[:, t]
    y = y.reshape(B, T, g.inner) * z * reference.sigmoid(z)
    y = y / np.sqrt(np.mean(y**2, axis=-1, keepdims=True) + g.eps) * p["norm.weight"]
    return y @ p["out_proj.weight"].T, conv, state
