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
from gdn.export_mamba2 import Mamba2Geometry
from mixer_model import mamba2_model, mamba2_parameters, model, parameters

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
    "no convolutions": Geometry(24, 1, 2, 16, 8, 0, "head"),
    "convolutions with bias": Geometry(24, 2, 2, 16, 8, 4, "channel", low_rank=8, conv_bias=True),
    "beta 1": Geometry(24, 2, 2, 16, 16, 4, None, beta="one"),
    "beta 2": Geometry(24, 2, 2, 16, 16, 3, None, beta="two", output_gate=None),
}
MAMBA2 = {
    "one group": Mamba2Geometry(24, 4, 16, 1, 16, 4),
    "two groups": Mamba2Geometry(24, 4, 8, 2, 16, 3, eps=1e-6),
    "no bias": Mamba2Geometry(24, 2, 24, 1, 8, 4, conv_bias=False),
}
CASES = pytest.mark.parametrize("B,T,static,dtype,limit", [
    (2, 37, (2, None), "f32", 1e-5), (2, 37, (2, None), "bf16", 2e-2), (1, 5, (1, 5), "bf16", 2e-2),
    (3, 9, (None, None), "f32", 1e-5),
])  # fmt: skip
FLOATS = ("A_log", "D", "dt_bias")


@pytest.mark.parametrize("name", SMALL)
@CASES
def test_equals_the_model(name, dtype, limit, B, T, static):
    run_and_compare(SMALL[name], dtype, limit, B, T, static)


@pytest.mark.parametrize("config", [QWEN, KIMI], ids=["qwen3_5_0_8b", "kimi_linear"])
def test_examples_of_real_size_equal_the_model(config):
    run_and_compare(geometry(config), "bf16", 2e-2, 1, 5, (1, None))


def run_and_compare(g, dtype, limit, B, T, static):
    rng = np.random.default_rng(7)
    sizes = {"q": g.keys, "k": g.keys, "v": g.values} if g.taps else {}
    conv = {part: rng.normal(size=(B, size, g.taps - 1)) for part, size in sizes.items()}
    state = rng.normal(0, 0.3, size=(B, g.value_heads, g.V, g.K)).astype(np.float32)
    execute(g, model, parameters(g, rng), dtype, limit, T, static, rng, conv, state)


@pytest.mark.parametrize("name", MAMBA2)
@CASES
def test_mamba2_equals_the_model(name, dtype, limit, B, T, static):
    g, rng = MAMBA2[name], np.random.default_rng(11)
    conv = {"xbc": rng.normal(size=(B, g.channels, g.taps - 1))}
    state = rng.normal(0, 0.3, size=(B, g.heads, g.P, g.N)).astype(np.float32)

    def with_one_state(g, x, weights, conv, state):
        y, last, state = mamba2_model(g, x, weights, conv["xbc"], state)
        return y, {"xbc": last}, state

    execute(g, with_one_state, mamba2_parameters(g, rng), dtype, limit, T, static, rng, conv, state)


def execute(g, oracle, weights, dtype, limit, T, static, rng, conv, state):
    """The exported module against `oracle`, on the same rounded values."""
    x = reference.rounded(rng.normal(size=(state.shape[0], T, g.hidden)), dtype)
    weights = {key: value if key in FLOATS else reference.rounded(value, dtype) for key, value in weights.items()}
    conv = {part: reference.rounded(value, dtype) for part, value in conv.items()}
    expected, conv_expected, state_expected = oracle(g, np.asarray(x, np.float64), weights, conv, state)

    stored = [store(weights[key], "f32" if key in FLOATS else dtype) for key in parameter_names(g)]
    out = store(np.full(x.shape, np.nan), dtype)
    conv_states = {part: store(value, dtype) for part, value in conv.items()}
    final = state.copy()
    library = host_library(export_ir(g, *static, dtype=dtype), "linalg")
    library("forward", [store(x, dtype), *stored, out, *conv_states.values(), final], results=2 + len(conv))
    for result, value in [
        (read(out, dtype), expected),
        (final, state_expected),
        *((read(mine, dtype), conv_expected[part]) for part, mine in conv_states.items()),
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
    with pytest.raises(ValueError, match="dtype is 'f64'"):
        export_ir(QWEN, dtype="f64")
    with pytest.raises(ValueError, match="no form for int"):
        export_ir(3)


def test_config_json_of_kimi_linear():
    """The file of the model has the sizes in a dictionary of their own."""
    own = {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4, "kda_layers": [1, 2, 3]}
    config = {"model_type": "kimi_linear", "hidden_size": 2304, "rms_norm_eps": 1e-5, "linear_attn_config": own}
    assert geometry(config) == geometry(KIMI)


def modules():
    """Mixers with every option that changes the form, and the number of their convolution states."""
    from gdn import nn

    return {
        "gated delta net": (nn.GatedDeltaNet(32, 1, 16, num_v_heads=2, conv_bias=True, allow_neg_eigval=True), 3),
        "without convolutions": (nn.GatedDeltaNet(32, 1, 16, conv_size=0, use_gate=False), 0),
        "kimi": (nn.KimiDeltaAttention(32, 2, 16, conv_bias=True), 3),
        "delta net": (nn.DeltaNet(32, 2, use_beta=False), 3),
        "beta of 2": (nn.DeltaNet(32, 2, use_beta=False, allow_neg_eigval=True, use_gate=True), 3),
        "mamba 2": (nn.Mamba2Mixer(32, state_size=16, head_dim=16, n_groups=2), 1),
        "mamba 2 without bias": (nn.Mamba2Mixer(32, state_size=16, head_dim=16, conv_bias=False), 1),
    }


@pytest.mark.parametrize("name", [
    "gated delta net", "without convolutions", "kimi", "delta net", "beta of 2", "mamba 2", "mamba 2 without bias",
])  # fmt: skip
def test_equals_the_module(name):
    """Two calls in a row, the second from the states that the first has left; the module runs on the CPU too."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    module, convolutions = modules()[name]
    for parameter in module.parameters():
        if parameter.dim() < 2:
            torch.nn.init.normal_(parameter, std=0.4)
    weights = module.state_dict()
    stored = [weights[key].squeeze(1).numpy().copy() if "conv" in key and key.endswith("weight") else
              weights[key].numpy().copy() for key in parameter_names(module)]  # fmt: skip
    assert len(weights) == len(stored)
    library = host_library(export_ir(module, 2, None, dtype="f32"), "linalg")
    g = geometry(module)
    sizes = {0: [], 1: [getattr(g, "channels", 0)], 3: [getattr(g, "keys", 0)] * 2 + [getattr(g, "values", 0)]}
    conv = [np.zeros((2, size, g.taps - 1), np.float32) for size in sizes[convolutions]]
    state = np.zeros((2, *module.state_shape), np.float32)
    cache = module.new_cache(2)
    for T in (9, 4):
        x = torch.randn(2, T, module.hidden_size)
        with torch.no_grad():
            expected = module(x, cache)
        out = np.full(expected.shape, np.nan, np.float32)
        library("forward", [x.numpy(), *stored, out, *conv, state], results=2 + convolutions)
        assert reference.ratio(out, expected.numpy()) < 1e-5
        assert reference.ratio(state, cache.recurrent.numpy()) < 1e-5
        if conv:
            assert reference.ratio(np.concatenate(conv, axis=1), cache.conv[0].numpy()) < 1e-6
