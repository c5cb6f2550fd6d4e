# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""export_ir: whole mixers as IR, executed on the host and compared with a float64 model."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cpu_support import host_library, read, store
from gdn import reference
from gdn.export import Geometry, export_ir, parameter_names

QWEN = {
    "model_type": "qwen3_5_text",
    "hidden_size": 1024,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "rms_norm_eps": 1e-6,
}
KIMI = {
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "linear_num_heads": 32,
    "linear_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "rms_norm_eps": 1e-5,
}
SMALL = {
    "gated_delta_net": Geometry(24, 1, 2, 16, 8, 4, "head", beta="2sigmoid"),
    "kimi": Geometry(24, 2, 2, 16, 8, 4, "channel", low_rank=8, gate_bias=True, output_gate="sigmoid", eps=1e-5),
    "bounded": Geometry(24, 1, 2, 16, 16, 3, "channel", lower_bound=-5.0, low_rank=8, output_gate="sigmoid"),
    "delta_net": Geometry(24, 2, 2, 16, 16, 4, None, output_gate=None),
}


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


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("dtype,limit", [("f32", 1e-5), ("bf16", 2e-2)])
@pytest.mark.parametrize("B,T,static", [(2, 37, (2, None)), (1, 5, (1, 5))])
def test_equals_the_model(name, dtype, limit, B, T, static):
    g, rng = SMALL[name], np.random.default_rng(7)
    x = reference.rounded(rng.normal(size=(B, T, g.hidden)), dtype)
    weights = parameters(g, rng)
    for key, value in weights.items():
        if key not in ("A_log", "dt_bias"):
            weights[key] = reference.rounded(value, dtype)
    conv = {part: reference.rounded(rng.normal(size=(B, size, g.taps - 1)), dtype)
            for part, size in (("q", g.keys), ("k", g.keys), ("v", g.values))}  # fmt: skip
    state = rng.normal(0, 0.3, size=(B, g.value_heads, g.V, g.K)).astype(np.float32)
    expected, conv_expected, state_expected = model(g, np.asarray(x, np.float64), weights, conv, state)

    stored = [store(weights[key], "f32" if key in ("A_log", "dt_bias") else dtype) for key in parameter_names(g)]
    out = store(np.full((B, T, g.hidden), np.nan), dtype)
    conv_states = [store(conv[part], dtype) for part in "qkv"]
    final = state.copy()
    library = host_library(export_ir(g, *static, dtype=dtype), "linalg")
    library("forward", [store(x, dtype), *stored, out, *conv_states, final], results=5)
    for result, value in [
        (read(out, dtype), expected),
        (final, state_expected),
        *((read(mine, dtype), conv_expected[part]) for mine, part in zip(conv_states, "qkv")),
    ]:
        assert np.linalg.norm(result - value) <= limit * np.linalg.norm(value)


@pytest.mark.parametrize("config,heads", [(QWEN, 16), (KIMI, 32)])
def test_models(config, heads, gdn_opt):
    text = export_ir(config)
    assert text.count("linalg.matmul") == (7 if config is QWEN else 9)
    assert f"tensor<1x?x{heads}x128xbf16>" in text
    done = subprocess.run([gdn_opt, "-", "--gdn-to-linalg"], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "gdn.recurrence" not in done.stdout


@pytest.mark.parametrize("file,config", [("qwen3_5_0_8b_mixer", QWEN), ("kimi_linear_mixer", KIMI)])
def test_examples_are_what_export_ir_writes(file, config):
    example = Path(__file__).resolve().parents[2] / "examples" / f"{file}.mlir"
    lines = [line for line in example.read_text().splitlines() if not line.startswith("//")]
    assert lines == export_ir(config, 1, None).splitlines()


def test_names_what_it_does_not_know():
    with pytest.raises(ValueError, match="model_type 'llama'"):
        export_ir({"model_type": "llama"})
    with pytest.raises(ValueError, match="cannot both be dynamic"):
        export_ir(QWEN, None, None)
    with pytest.raises(ValueError, match="dtype is 'f64'"):
        export_ir(QWEN, dtype="f64")
    with pytest.raises(ValueError, match="no form for int"):
        export_ir(3)
