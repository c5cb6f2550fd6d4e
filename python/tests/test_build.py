# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts of the builders: exact forms, refusals, and acceptance by gdn-opt."""

import subprocess
from pathlib import Path

import pytest

from gdn import build

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "qwen3_5_35b_delta_rule.mlir"

MODELS = {
    "linear": {},
    "ssd": {"gate": "head"},
    "gla": {"gate": "channel"},
    "delta": {"beta": True},
    "gated_delta": {"gate": "head", "beta": True},
    "kda": {"gate": "channel", "beta": True},
    "gdn2": {"gate": "channel", "erase_write": True},
}
FORMS = {
    "static": {"B": 2, "T": 75},
    "dynamic": {"B": None, "T": None},
    "packed": {"B": 1, "T": None, "offsets": "i32"},
    "packed_static": {"B": 1, "T": 69, "N": 5, "offsets": "i64", "state_layout": "k_first"},
    "pool": {"B": None, "T": 1, "slots": "i32"},
    "pool_packed": {"B": 1, "T": None, "offsets": "i32", "slots": "i64", "S": 40},
    "verify": {"B": None, "T": 4, "slots": "i32", "update_state": False, "every": 1, "checkpoint_dtype": "bf16"},
    "checkpoints": {"B": 1, "T": None, "offsets": "i32", "every": 64},
    "typed": {"B": 1, "T": 8, "dtype": "f16", "gate_dtype": "f16", "beta_dtype": "f16", "state_dtype": "f16"},
    "tuned": {"B": 1, "T": 8, "scale": 1e-5, "schedule": build.schedule("split", 32, 16, 2)},
}


def recurrence(model, form):
    options = dict(MODELS[model], **FORMS[form])
    return build.recurrence(options.pop("B"), options.pop("T"), 2, 4, 16, 32, **options)


OTHERS = {
    "layer": build.delta_rule_layer(1, 8192, 16, 32, 128, 128),
    "layer_kda": build.delta_rule_layer(None, None, 4, 4, 64, 64, gate="channel", lower_bound=-5.0),
    "l2norm": build.l2norm((1, None, 16, 128)),
    "gate": build.gate(1, None, 32),
    "gate_channel": build.gate(1, 77, 4, 64, lower_bound=-5.0, dtype="bf16"),
    "gate_plain": build.gate(2, 5, 4, bias=False),
    "conv": build.short_conv(2, None, 100, state_dtype="f32"),
    "conv_packed": build.short_conv(1, 90, 100, 4, S=4, N=3, bias=True, offsets="i64", weight_dtype="f32"),
    "conv_plain": build.short_conv(1, 9, 8, 3, dtype="f32", activation="none"),
    "rms": build.gated_rms_norm((1, 9, 4, 128), weight_dtype="f32"),
    "rms_sigmoid": build.gated_rms_norm((None, 64), dtype="f32", eps=1e-5, activation="sigmoid"),
    "cumsum": build.cumsum((64, 32)),
    "scores": build.scores(64, 32),
    "scores_head": build.scores(64, 32, gate="head", strict=True),
    "scores_channel": build.scores(64, 32, gate="channel", dtype="bf16"),
    "tri_inverse": build.tri_inverse(64),
}


def test_exact_text():
    text = build.recurrence(1, None, 2, 4, 16, 8, gate="head", beta=True, scale=0.25, name="prefill")
    assert text == (
        "module {\n"
        '  func.func @prefill(%q: tensor<1x?x2x16xbf16> {gdn.name = "q"},\n'
        '                     %k: tensor<1x?x2x16xbf16> {gdn.name = "k"},\n'
        '                     %v: tensor<1x?x4x8xbf16> {gdn.name = "v"},\n'
        '                     %gate: tensor<1x?x4xf32> {gdn.name = "gate"},\n'
        '                     %beta: tensor<1x?x4xf32> {gdn.name = "beta"},\n'
        '                     %o: tensor<1x?x4x8xbf16> {gdn.name = "o", bufferization.writable = true},\n'
        '                     %state: tensor<1x4x8x16xf32> {gdn.name = "state", bufferization.writable = true})\n'
        "      -> (tensor<1x?x4x8xbf16>, tensor<1x4x8x16xf32>) {\n"
        "    %y, %final = gdn.recurrence ins(%q, %k, %v : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, "
        "tensor<1x?x4x8xbf16>) gate(%gate : tensor<1x?x4xf32>) beta(%beta : tensor<1x?x4xf32>) "
        "outs(%o, %state : tensor<1x?x4x8xbf16>, tensor<1x4x8x16xf32>) {scale = 0.25} "
        "-> tensor<1x?x4x8xbf16>, tensor<1x4x8x16xf32>\n"
        "    return %y, %final : tensor<1x?x4x8xbf16>, tensor<1x4x8x16xf32>\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0.125, "0.125"), (1, "1.0"), (1e-6, "1.0e-06"), (2.5e-7, "2.5e-07"), (1e30, "1.0e+30")]
)
def test_reals_read_back(value, text):
    assert build.real(value) == text
    assert float(text) == value


def test_example_is_what_the_builder_writes():
    body = "".join(line for line in EXAMPLE.read_text().splitlines(keepends=True) if not line.startswith("//"))
    assert body == build.delta_rule_layer(1, 8192, 16, 32, 128, 128)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate": "row"}, "gate is 'row'"),
        ({"state_layout": "vk"}, "state_layout is 'vk'"),
        ({"dtype": "f64"}, "q, k, v cannot have element type 'f64'"),
        ({"gate": "head", "gate_dtype": "i32"}, "gate cannot have element type 'i32'"),
        ({"offsets": "i16"}, "offsets cannot have element type 'i16'"),
        ({"slots": "f32"}, "slots cannot have element type 'f32'"),
        ({"S": 4}, "S = 4 counts the entries of a pool, which needs slots"),
        ({"every": 0}, "every is 0; a checkpoint needs at least 1 token"),
        ({"every": 4, "checkpoint_dtype": "i8"}, "checkpoints cannot have element type 'i8'"),
        ({"state_dtype": "f8"}, "state cannot have element type 'f8'"),
        ({"name": "a b"}, "'a b' is no function name"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        build.recurrence(1, 8, 2, 4, 16, 8, **options)


def parse(gdn_opt, text):
    done = subprocess.run([gdn_opt, "-"], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return done.stdout


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
def test_gdn_opt_accepts_recurrences(gdn_opt, model, form):
    assert "gdn.recurrence" in parse(gdn_opt, recurrence(model, form))


@pytest.mark.parametrize("name", OTHERS)
def test_gdn_opt_accepts(gdn_opt, name):
    parse(gdn_opt, OTHERS[name])


def test_gdn_opt_keeps_the_scale(gdn_opt):
    assert "scale = 1.000000e-05" in parse(gdn_opt, recurrence("kda", "tuned"))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (build.recurrence(1, 8, 2, 3, 16, 8, beta=True), ["3", "2"]),
        (build.recurrence(2, 8, 2, 4, 16, 8, beta=True, N=3, offsets="i32"), ["2"]),
        (build.recurrence(1, 8, 2, 4, 16, 8, beta=True, erase_write=True), []),
        (build.gate(1, 8, 4, lower_bound=-6.0), ["-6"]),
    ],
)
def test_gdn_opt_refuses(gdn_opt, text, sizes):
    done = subprocess.run([gdn_opt, "-"], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "error:" in done.stderr
    message = done.stderr.split("error:")[1].splitlines()[0]
    assert all(size in message for size in sizes), message


@pytest.mark.parametrize(
    ("size", "error"), ((-1, ValueError), (1 << 63, ValueError), ("x", TypeError), (1.5, TypeError))
)
def test_bad_sizes(size, error):
    with pytest.raises(error):
        build.recurrence(1, size, 2, 4, 16, 16)


@pytest.mark.parametrize("scale", (float("nan"), float("inf")))
def test_bad_scale(scale):
    with pytest.raises(ValueError, match="no finite number"):
        build.recurrence(1, 8, 2, 4, 16, 16, scale=scale)
