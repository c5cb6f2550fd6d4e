# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX of sm_90a without a GPU: scans whose warps have roles, with products of warpgroups.

test_ptx has what all targets share. Here are descriptors and swizzles, tensor maps, rings of barriers and
their parities, and the order of the roles: each case runs with the first warps ahead or with the last ones.
"""

import pytest

import ptx_machine
import test_cpu_recurrence as recurrences
import test_ptx
from cpu_support import read
from gdn import build, reference
from gdn import compile as compiler
from tool_paths import need_tool

SCHEDULES = {
    "split 64": dict(phases="split", value_block=64, stages=2),
    "split 64 or 128": dict(phases="split", value_block=64, stages=2, wide_from=16),
    "split 128": dict(phases="split", value_block=128, stages=2),
    "ahead": dict(phases="split", value_block=128, stages=2, scores_ahead=True),
    "ahead 64 or 128": dict(phases="split", value_block=64, stages=2, wide_from=16, scores_ahead=True),
    "fused": dict(phases="fused", value_block=64, stages=2),
    "segmented": dict(phases="segmented", value_block=64, stages=2, segments=2),
    "segmented, short": dict(phases="segmented", value_block=64, stages=2, segments=100),
    "step": dict(phases="step", value_block=16, warps=2),
    "high": dict(phases="split", value_block=64, stages=2, precision="high"),
}
PACKED, SLOTS = (0, 1, 66, 66, 210), (3, 0, 1, -1)
# More sequences than a warp has lanes, some of them empty.
MANY = tuple(sum(7 * j % 10 for j in range(i)) for i in range(41))
# (schedule, model, type, form): T leaves the last chunk short, of 2 to 4, and of so many that rings go round twice.
CASES = [
    ("split 64", "gated_delta", "bf16", dict(T=150, K=128, V=128)),
    ("split 64", "gated_delta", "bf16", dict(T=400, K=64, V=64)),
    ("split 64", "gated_delta", "f16", dict(T=130, K=64, V=64, B=2, state_layout="k_first")),
    ("split 64", "gated_delta", "bf16", dict(T=210, K=64, V=64, offsets=PACKED)),
    ("split 64", "gated_delta", "bf16", dict(T=210, K=128, V=64, offsets=PACKED, slots=SLOTS, pool=4)),
    ("split 64", "gated_delta", "bf16", dict(T=192, K=64, V=64, every=64, state_dtype="bf16")),
    ("split 64", "delta", "bf16", dict(T=75, K=64, V=128)),
    ("split 64", "delta", "f16", dict(T=200, K=128, V=64)),
    ("split 64", "ssd", "bf16", dict(T=150, K=128, V=64)),
    ("split 64", "ssd", "f16", dict(T=210, K=64, V=128, offsets=PACKED)),
    ("split 64", "gated_delta", "bf16", dict(T=180, K=64, V=64, offsets=MANY)),
    ("split 64", "gated_delta", "bf16", dict(T=180, K=64, V=64, offsets=MANY, offset_type="i64")),
    ("split 64", "kda", "bf16", dict(T=150, K=64, V=64)),
    ("split 64", "kda", "f16", dict(T=100, K=128, V=128)),
    ("split 64", "gdn2", "bf16", dict(T=100, K=64, V=64)),
    ("split 64 or 128", "gated_delta", "bf16", dict(T=130, K=64, V=128, B=2)),
    ("split 128", "gated_delta", "bf16", dict(T=150, K=128, V=128)),
    ("split 128", "gated_delta", "f16", dict(T=210, K=64, V=136, offsets=PACKED)),
    ("split 128", "delta", "bf16", dict(T=130, K=64, V=128, state_layout="k_first")),
    ("split 128", "ssd", "f16", dict(T=150, K=128, V=128)),
    ("split 128", "kda", "bf16", dict(T=150, K=64, V=128)),
    ("ahead", "gated_delta", "bf16", dict(T=150, K=128, V=128)),
    ("ahead", "gated_delta", "bf16", dict(T=400, K=64, V=128)),
    ("ahead", "gated_delta", "f16", dict(T=210, K=64, V=72, offsets=PACKED, slots=SLOTS, pool=4)),
    ("ahead", "delta", "bf16", dict(T=130, K=56, V=136, state_layout="k_first")),
    ("ahead 64 or 128", "gated_delta", "bf16", dict(T=130, K=64, V=128, B=2)),
    ("fused", "gated_delta", "bf16", dict(T=150, K=128, V=72, B=2)),
    ("fused", "gated_delta", "bf16", dict(T=400, K=64, V=64)),
    ("fused", "gated_delta", "f16", dict(T=210, K=56, V=64, offsets=PACKED, state_layout="k_first")),
    ("fused", "delta", "bf16", dict(T=192, K=64, V=64, every=64)),
    ("segmented", "gated_delta", "bf16", dict(T=600, K=64, V=64)),
    ("segmented, short", "gated_delta", "bf16", dict(T=300, K=128, V=128)),
    ("segmented, short", "gated_delta", "f16", dict(T=300, K=64, V=64, offsets=(0, 1, 66, 66, 300))),
    ("segmented, short", "gdn2", "bf16", dict(T=300, K=64, V=64)),
    ("segmented", "ssd", "bf16", dict(T=200, K=64, V=64)),
    ("segmented", "kda", "bf16", dict(T=200, K=64, V=64)),
    ("step", "gated_delta", "bf16", dict(T=3, K=128, V=128)),
    ("high", "gated_delta", "bf16", dict(T=100, K=64, V=64)),
]


def name_of(case):
    schedule, model, dtype, form = case
    return f"{schedule}, {model}, {dtype}, " + ", ".join(f"{key} {value}" for key, value in form.items())


def compiled(schedule, model, dtype, form):
    need_tool("gdn-compile")
    offsets = form.get("offsets")
    text = build.recurrence(
        form.get("B", 1), form["T"], recurrences.HQK, recurrences.HV, form["K"], form["V"],
        N=len(offsets) - 1 if offsets else None,
        offsets=form.get("offset_type", "i32") if offsets else None,
        slots="i32" if "slots" in form else None,
        S=form.get("pool"),
        every=form.get("every"),
        dtype=dtype,
        state_dtype=form.get("state_dtype", "f32"),
        state_layout=form.get("state_layout", "v_first"),
        schedule=build.schedule(**SCHEDULES[schedule]),
        **recurrences.MODELS[model],
    )  # fmt: skip
    return compiler.compile(text, "sm_90a", cache=False)


def uses(program, word):
    """The kernels that have a word in their code."""
    kernels = ptx_machine.parse(program.ptx).values()
    return {k.name.split("_", 1)[1] for k in kernels if any(word in opcode for _, _, opcode, _ in k.code)}


@pytest.mark.parametrize("at", range(len(CASES)), ids=map(name_of, CASES))
def test_recurrence(at):
    schedule, model, dtype, form = CASES[at]
    program = compiled(schedule, model, dtype, form)
    assert schedule == "step" or "scan" in uses(program, "wgmma") & uses(program, "try_wait")
    x = recurrences.inputs(model, form, dtype, seed=at)
    want = recurrences.expected(form, dtype, x)
    passed, results = recurrences.arguments(form, dtype, x, want)
    test_ptx.execute(program, passed, reverse=at % 2 == 1)
    recurrences.check(form, dtype, x, results, want, dtype)


@pytest.mark.parametrize("model", ("gated_delta", "delta"))
@pytest.mark.parametrize("schedule", ("split 64", "split 128", "ahead", "fused", "segmented"))
def test_second_parts(schedule, model):
    """Of the inverse, of P and of what both are multiplied with: equal keys in one chunk; in the last one beta up to 2
    and a gate behind which exp(G) is 0."""
    form = dict(T=150, K=64, V=128)
    program = compiled(schedule, model, "bf16", form)
    x = recurrences.inputs(model, form, "bf16", seed=1)
    hard, wide = slice(100, 128), slice(128, 150)
    x["beta"] /= 4
    x["beta"][:, wide] *= 8
    x["k"][:, hard] = x["k"][:, 100:101]
    x["beta"][:, hard] = 1.9
    if "gate" in x:
        x["gate"][:, hard] = 0
        x["gate"][:, 129, 0] = -100
    want = recurrences.expected(form, "bf16", x)
    passed, results = recurrences.arguments(form, "bf16", x, want)
    test_ptx.execute(program, passed, reverse=schedule in ("split 128", "fused"))
    for result, exact, dtype, limit in zip(results, want, ("bf16", "f32"), (2.4e-3, 2e-3)):
        assert reference.ratio(read(result, dtype), exact) < limit


@pytest.mark.parametrize("schedule", ("split 64", "fused"))
def test_later_tokens_change_no_bit(schedule):
    """Of o in front of the first split row: beta up to 2 from there on, or not."""
    form = dict(T=150, K=64, V=128)
    program = compiled(schedule, "gated_delta", "bf16", form)
    x = recurrences.inputs("gated_delta", form, "bf16", seed=1)
    outputs = []
    for factor in (0.25, 2):
        beta = x["beta"] / 4
        beta[:, 100:] = x["beta"][:, 100:] * factor
        one = dict(x, beta=beta)
        want = recurrences.expected(form, "bf16", one)
        passed, results = recurrences.arguments(form, "bf16", one, want)
        test_ptx.execute(program, passed)
        outputs.append(results[0])
    same = (outputs[0] == outputs[1]).all((0, 2, 3))
    assert same[:100].all() and not same[100:].any()


@pytest.mark.parametrize("form", (dict(T=150, K=128, V=128), dict(T=210, K=64, V=128, offsets=PACKED)))
@pytest.mark.parametrize("schedule", ("split 64", "ahead"))
def test_one_value_head_for_each_key_head(schedule, form, monkeypatch):
    """Two key heads in a block of the kernel that makes T alone."""
    monkeypatch.setattr(recurrences, "HQK", recurrences.HV)
    program = compiled(schedule, "gated_delta", "bf16", form)
    assert schedule != "ahead" or "prepare_inverse" in uses(program, "mma")
    x = recurrences.inputs("gated_delta", form, "bf16", seed=2)
    want = recurrences.expected(form, "bf16", x)
    passed, results = recurrences.arguments(form, "bf16", x, want)
    test_ptx.execute(program, passed, reverse=schedule == "ahead")
    recurrences.check(form, "bf16", x, results, want, "bf16")
