# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""T by blocks that stay, each of which takes many chunks of heads: on the CPU, and as PTX of sm_90a without a GPU."""

import numpy as np
import pytest

import cpu_support
import test_cpu_recurrence as recurrences
import test_ptx
import test_ptx_sm90
from cpu_support import read
from gdn import build, reference
from gdn import compile as compiler
from tool_paths import need_tool

HEADS, BLOCKS = 4, 3
SCHEDULE = dict(phases="split", chunk=64, value_block=128, stages=2, scores_ahead=True)
PACKED = (0, 1, 66, 66, 300, 300, 530)
# Ragged, so that 3 blocks have 9 to 14 items each and warps that invert more than one; packed with empty sequences and
# slots that hold no chunk; without gates; a chunk of one token.
CASES = {
    "dense": ("gated_delta", "bf16", dict(T=580, K=64, V=128)),
    "wide keys": ("gated_delta", "bf16", dict(T=300, K=128, V=72, B=2)),
    "packed": ("gated_delta", "f16", dict(T=530, K=64, V=64, offsets=PACKED)),
    "no gates": ("delta", "bf16", dict(T=400, K=64, V=64, offsets=(0, 250, 400), offset_type="i64")),
    "one chunk more": ("gated_delta", "bf16", dict(T=65, K=64, V=64)),
}


def text(model, dtype, form, resident_from=1):
    """With open lengths, so that the sizes of launches are expressions."""
    offsets = form.get("offsets")
    return build.recurrence(
        form.get("B", 1), None, HEADS, HEADS, form["K"], form["V"],
        N=len(offsets) - 1 if offsets else None,
        offsets=form.get("offset_type", "i32") if offsets else None,
        dtype=dtype,
        schedule=build.schedule(**SCHEDULE, resident_from=resident_from),
        **recurrences.MODELS[model],
    )  # fmt: skip


@pytest.fixture
def case(request, monkeypatch):
    """A case by name, its inputs and what becomes of them."""
    monkeypatch.setattr(recurrences, "HQK", HEADS)
    monkeypatch.setattr(recurrences, "HV", HEADS)
    model, dtype, form = CASES[request.param]
    x = recurrences.inputs(model, form, dtype, seed=len(request.param))
    return model, dtype, form, x, recurrences.expected(form, dtype, x)


def with_blocks(expression, count):
    """A size of a manifest with `count` in the place of all multiprocessors."""
    if isinstance(expression, dict):
        return {key: with_blocks(value, count) for key, value in expression.items()}
    if not isinstance(expression, list):
        return expression
    if len(expression) == 3 and expression[0] == "min" and expression[2] == 132:
        return ["min", with_blocks(expression[1], count), count]
    return [with_blocks(part, count) for part in expression]


def compiled(*case, **options):
    need_tool("gdn-compile")
    program = compiler.compile(text(*case, **options), "sm_90a", cache=False)
    before = str(program.manifest)
    program.manifest = with_blocks(program.manifest, BLOCKS)
    assert str(program.manifest) != before
    return program


def grids_of(program, x):
    """Blocks of each kernel."""
    shapes = [x[argument["name"]].shape for argument in program.manifest["arguments"] if argument["name"] in x]
    sizes = test_ptx.Sizes(program.manifest, shapes)
    return {entry["kernel"].split("_", 1)[1]: sizes.of(entry["grid"]) for entry in program.manifest["launches"]}


@pytest.mark.parametrize("path", ("tile", "pipelined-tile"))
@pytest.mark.parametrize("case", CASES, indirect=True)
def test_cpu(case, path):
    model, dtype, form, x, want = case
    if path == "pipelined-tile" and dtype == "f16":
        pytest.skip("the same program as with bf16")
    run = cpu_support.host_library(text(model, dtype, form), path)
    passed, results = recurrences.arguments(form, dtype, x, want)
    run("forward", passed)
    recurrences.check(form, dtype, x, results, want, dtype)


@pytest.mark.parametrize("case", CASES, indirect=True)
def test_ptx_of_roles(case):
    """The first warps ahead, and the last."""
    model, dtype, form, x, want = case
    program = compiled(model, dtype, form)
    grids = grids_of(program, x)
    assert grids["prepare_resident"] == BLOCKS and grids["prepare_inverse"] == 0
    assert {"prepare_resident", "scan"} <= test_ptx_sm90.uses(program, "try_wait")
    for reverse in (False, True):
        passed, results = recurrences.arguments(form, dtype, x, want)
        test_ptx.execute(program, passed, reverse=reverse)
        recurrences.check(form, dtype, x, results, want, dtype)


@pytest.mark.parametrize("case", ("dense",), indirect=True)
def test_bits_are_those_of_the_other_kernel(case):
    """Second parts included: equal keys in one chunk, beta up to 2 in another."""
    model, dtype, form, x, want = case
    x["k"][:, 100:128] = x["k"][:, 100:101]
    x["beta"][:, 100:128] = 1.9
    want = recurrences.expected(form, dtype, x)
    bits = []
    for resident_from in (1, 1000):
        program = compiled(model, dtype, form, resident_from=resident_from)
        assert (grids_of(program, x)["prepare_resident"] > 0) == (resident_from == 1)
        passed, results = recurrences.arguments(form, dtype, x, want)
        test_ptx.execute(program, passed)
        bits.append([result.copy() for result in results])
    assert all(np.array_equal(a, b) for a, b in zip(*bits))
    assert reference.ratio(read(bits[0][0], dtype), want[0]) < 5e-3
