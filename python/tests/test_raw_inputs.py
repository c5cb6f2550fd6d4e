# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill kernels that take raw q and k, projections of gates and logits of beta, as the layers have them.

The oracle normalises in float64. Keys and queries have norms from 0 to 100, the last chunk is short, and value heads
share key heads. Each case runs as tile programs on the host, and as the PTX of sm_90a or of sm_80.
"""

import numpy as np
import pytest

import test_cpu_rules as rules
import test_ptx
from gdn import build, rule
from gdn import compile as compiler
from tool_paths import need_tool

# P made beside the scan.
AHEAD = dict(phases="split", value_block=128, stages=2, scores_ahead=True)
AHEAD_OR_NOT = dict(phases="split", value_block=64, stages=2, wide_from=9, scores_ahead=True)
SPLIT = dict(phases="split", value_block=64, stages=2)
LAYER = {
    "gate": "head",
    "gate_form": "raw",
    "gate_dtype": "bf16",
    "rate_dtype": "f32",
    "bias_dtype": "f32",
    "beta": "2sigmoid",
    "beta_dtype": "bf16",
    "qk_l2norm": True,
    "initial": "f32",
}
CHANNELS = {**LAYER, "gate": "channel", "gate_dtype": "f32", "lower_bound": -3.0}
ERASE = {
    **{key: value for key, value in CHANNELS.items() if key not in ("beta", "beta_dtype", "lower_bound")},
    "erase_dtype": "bf16",
    "write_dtype": "bf16",
}
NORMS_ALONE = {"beta": "value", "beta_dtype": "f32", "qk_l2norm": True, "initial": "f32"}
# (schedule, heads, K, V, T, the rule's options)
CASES = {
    "layer": (SPLIT, (1, 2), 64, 64, 150, LAYER),
    "four heads of a key head": (SPLIT, (1, 4), 128, 64, 75, LAYER),
    "five heads of a key head": (SPLIT, (1, 5), 64, 64, 75, LAYER),
    "one head of a key head": (SPLIT, (2, 2), 64, 64, 150, LAYER),
    "blocks of 128 rows": (dict(SPLIT, value_block=128), (1, 2), 128, 136, 150, LAYER),
    "blocks of 64 or 128 rows": (dict(SPLIT, wide_from=9), (1, 2), 64, 128, 150, LAYER),
    "segments": (dict(SPLIT, phases="segmented", segments=100), (1, 2), 64, 64, 330, LAYER),
    "packed": (SPLIT, (1, 2), 64, 64, rules.STARTS[-1], dict(LAYER, offsets="i32")),
    "high": (dict(SPLIT, precision="high"), (1, 2), 64, 64, 75, LAYER),
    "no gates": (SPLIT, (1, 2), 64, 64, 150, NORMS_ALONE),
    "no delta rule": (SPLIT, (1, 2), 64, 64, 150, dict(LAYER, beta=None, beta_dtype=None)),
    "linear gates": (SPLIT, (1, 2), 64, 64, 150, dict(LAYER, gate_form="linear", rate_dtype=None, bias_dtype=None)),
    "ahead": (AHEAD, (1, 2), 128, 128, 150, LAYER),
    "ahead, one head of a key head": (AHEAD, (2, 2), 64, 136, 210, LAYER),
    "ahead, no gates": (AHEAD, (2, 2), 64, 128, 150, NORMS_ALONE),
    "ahead, gates alone": (AHEAD, (2, 2), 64, 128, 150, dict(LAYER, qk_l2norm=False)),
    "ahead or not, wide": (AHEAD_OR_NOT, (4, 4), 64, 128, 75, LAYER),
    "ahead or not, usual": (AHEAD_OR_NOT, (1, 1), 64, 128, 150, LAYER),
    "odd sizes": (SPLIT, (1, 2), 56, 72, 150, LAYER),
}
HOST_CASES = {**CASES, "chunks of 16": (dict(phases="split", chunk=16, value_block=16), (1, 2), 24, 40, 50, LAYER)}
# With gates per channel their kernel stays, and that of a norm of more channels than a block has at once.
CHANNEL_CASES = {
    "channels": (SPLIT, (2, 2), 64, 64, 150, CHANNELS),
    "channels, shared keys": (SPLIT, (1, 2), 128, 72, 75, CHANNELS),
    "channels, segments": (dict(SPLIT, phases="segmented", segments=100), (1, 2), 64, 64, 330, CHANNELS),
    "channels, no delta rule": (SPLIT, (1, 2), 56, 64, 75, dict(CHANNELS, beta=None, beta_dtype=None)),
    "channels, erase and write": (SPLIT, (1, 2), 64, 64, 75, ERASE),
}
HOST_CASES.update(CHANNEL_CASES)
# The separate kernels stay, or some of them, and the result is the same.
REST = {
    "f16": ("layer", dict(dtype="f16")),
    "fused": ("layer", dict(phases="fused")),
    "high, channels": ("channels", dict(precision="high")),
}


def case(name, dtype="bf16", **changes):
    schedule, heads, K, V, tokens, options = HOST_CASES[name]
    schedule = build.schedule(**{**schedule, **changes})
    return rule.Rule(*heads, K, V, dtype, 0.3, schedule=schedule, **options), tokens


def raw(x):
    """Of a model's size; some tokens have no key or no query, some tiny or large ones."""
    for name, first in (("q", 3), ("k", 5)):
        x[name] *= 4
        x[name][:, first] = 0
        x[name][:, first + 2 :: 11] *= 1e-3
        x[name][:, first + 3 :: 13] *= 30


def by_ptx(target, **options):
    def execute(r, arrays):
        test_ptx.execute(compiled(r, target), arrays, **options)

    return execute


def compiled(r, target):
    need_tool("gdn-compile")
    return compiler.compile(rule.ir(r), target, cache=False)


def kernels(program):
    return {entry["kernel"].split("_", 1)[1] for entry in program.manifest["launches"]}


@pytest.mark.parametrize("name", HOST_CASES)
def test_on_the_host(name):
    r, tokens = case(name)
    rules.run(r, tokens, change=raw)


@pytest.mark.parametrize("at, name", enumerate(CASES))
def test_by_ptx(at, name):
    """No kernel but those of the recurrence."""
    r, tokens = case(name)
    assert not kernels(compiled(r, "sm_90a")) & {"l2norm", "gate", "map"}
    rules.run(r, tokens, by_ptx("sm_90a", reverse=at % 2 == 1), raw)


@pytest.mark.parametrize("dtype", ("bf16", "f16"))
@pytest.mark.parametrize("name", CHANNEL_CASES)
def test_channels_by_ptx(name, dtype):
    r, tokens = case(name, dtype)
    assert kernels(compiled(r, "sm_90a")) & {"l2norm", "gate"} == {"gate"}
    rules.run(r, tokens, by_ptx("sm_90a", reverse=dtype == "f16"), raw)


@pytest.mark.parametrize("name", ("layer", "no gates", "channels"))
def test_by_ptx_of_sm_80(name):
    r, tokens = case(name)
    rules.run(r, tokens, by_ptx("sm_80"), raw)


@pytest.mark.parametrize("name", REST)
def test_kernels_that_stay(name):
    of, changes = REST[name]
    r, tokens = case(of, **changes)
    assert "l2norm" in kernels(compiled(r, "sm_90a"))
    rules.run(r, tokens, by_ptx("sm_90a"), raw)


@pytest.mark.parametrize(
    "name", ("layer", "blocks of 128 rows", "no gates", "segments", "ahead", "ahead, no gates", "channels")
)
def test_second_parts(name):
    """Rows with large entries: equal directions of keys of any size, and beta near 2."""

    def change(x):
        raw(x)
        hard = slice(100, 128)
        sizes = 2.0 ** (np.arange(28) % 5 - 1)[None, :, None, None]
        x["k"][:, hard] = x["k"][:, 100:101] * sizes
        x["beta"][:, hard] = 3 if r.beta == "2sigmoid" else 1.9
        if x["gate"] is not None:
            x["gate"][:, hard] = -30
            x["gate"][:, 129, 0] = 80

    r, tokens = case(name)
    # P has no second part with gates per channel.
    assert rules.run(r, tokens, by_ptx("sm_90a"), change) < (4e-3 if r.gate == "channel" else 3e-3)


def test_a_result_with_another_use():
    """The function returns k's norm too: the kernels that make the norms of both stay."""
    need_tool("gdn-compile")
    text = build.delta_rule_layer(1, 75, 1, 2, 64, 64, schedule=build.schedule(**SPLIT))
    norm = "tensor<1x75x1x64xbf16>"
    text = text.replace("      -> (", f"      -> ({norm}, ")
    text = text.replace("return ", "return %k_norm, ").replace("%final : ", f"%final : {norm}, ")
    program = compiler.compile(text, "sm_90a", cache=False)
    assert "l2norm" in kernels(program) and "gate" not in kernels(program)
