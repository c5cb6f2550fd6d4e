# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""export_ir: whole mixers as IR, executed on the host and compared with a float64 model."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cpu_support import host_library, read, store
from gdn import reference
from gdn.export import Geometry, export_ir, geometry, parameter_names
from mixer_model import model, parameters

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


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("dtype,limit", [("f32", 1e-5), ("bf16", 2e-2)])
@pytest.mark.parametrize("B,T,static", [(2, 37, (2, None)), (1, 5, (1, 5))])
def test_equals_the_model(name, dtype, limit, B, T, static):
    run_and_compare(SMALL[name], dtype, limit, B, T, static)


@pytest.mark.parametrize("config", [QWEN, KIMI], ids=["qwen3_5_0_8b", "kimi_linear"])
def test_examples_of_real_size_equal_the_model(config):
    run_and_compare(geometry(config), "bf16", 2e-2, 1, 5, (1, None))


def run_and_compare(g, dtype, limit, B, T, static):
    rng = np.random.default_rng(7)
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


def test_config_json_of_kimi_linear():
    """The file of the model has the sizes in a dictionary of their own."""
    own = {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4, "kda_layers": [1, 2, 3]}
    config = {"model_type": "kimi_linear", "hidden_size": 2304, "rms_norm_eps": 1e-5, "linear_attn_config": own}
    assert geometry(config) == geometry(KIMI)


def test_modules_without_a_form_are_refused():
    pytest.importorskip("torch")
    from gdn import nn

    refused = {
        "GatedDeltaNet with a bias in its convolutions": nn.GatedDeltaNet(32, 1, 16, conv_bias=True),
        "KimiDeltaAttention with a bias in its convolutions": nn.KimiDeltaAttention(32, 1, 16, conv_bias=True),
        "GatedDeltaNet with these": nn.GatedDeltaNet(32, 1, 16, conv_size=0),
        "DeltaNet with these": nn.DeltaNet(32, 2, use_beta=False),
        "Mamba2Mixer with these": nn.Mamba2Mixer(32, state_size=16, head_dim=16),
    }
    for message, module in refused.items():
        with pytest.raises(ValueError, match=f"no form for {message}"):
            export_ir(module)
