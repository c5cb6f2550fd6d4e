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
        return reference.short_conv(
            linear(x, f"{part}_proj.weight"), p[f"{part}_conv1d.weight"], state=conv[part], act="silu"
        )

    (q, q_state), (k, k_state), (v, v_state) = convolved("q"), convolved("k"), convolved("v")
    q = reference.l2norm(q.reshape(B, T, g.key_heads, g.K))
    k = reference.l2norm(k.reshape(B, T, g.key_heads, g.K))
    gate = None
    if g.gate == "head":
        gate = reference.gate(linear(x, "a_proj.weight"), p["A_log"], p["dt_bias"])
    elif g.gate == "channel":
        f = linear(linear(x, "f_proj.0.weight"), "f_proj.1.weight").reshape(B, T, g.value_heads, g.K)
        gate = reference.gate(f, p["A_log"], p["dt_bias"], lower_bound=g.lower_bound)
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
