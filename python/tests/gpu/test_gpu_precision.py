# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`precision = high` with o in float32, on the device: errors by families of inputs and by models."""

import pytest

import test_precision as precision
from gpu_support import MODELS, Problem, expected, inputs, load, oracle_torch, put_stored, run, torch

HIGH = {"precision": "high", "out_dtype": "f32"}
SCHEDULES = {
    "split": {"static": True},
    "segmented": {},
    "short": {"chunk": 16},
    "segments of 16": {"chunk": 16, "segments": 5},
    "128 rows": {"chunk": 32, "value_block": 128, "stages": 3},
}


def errors(kernel, p, x):
    o = torch.full(x["v"].shape, float("nan"), device=x["v"].device)
    want = expected(p, x)
    return [oracle_torch.ratio(a, b) for a, b in zip(run(kernel, x, o), want)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_families(schedule):
    """A quarter of FLA's errors, of which the default precision has a half at best."""
    p = Problem(T=precision.T, Hqk=precision.HQK, Hv=precision.HV, K=precision.K, V=128, **HIGH, **SCHEDULES[schedule])
    (kernel,) = load(p.text())
    failures = []
    for family, limits in precision.FLA.items():
        x = {name: put_stored(value) for name, value in precision.inputs(family, V=p.V).items()}
        found = errors(kernel, p, x)
        if not all(error <= limit / 4 for error, limit in zip(found, limits)):
            failures.append(f"{family}: o {found[0]:.1e}, state {found[1]:.1e}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", ("bf16", "f16"))
@pytest.mark.parametrize("tokens", (200, 4))
def test_models(tokens, dtype):
    """Long and, with a static length, as steps; 3e-4 is what one rounding too many leaves."""
    problems = [
        Problem(model, B=2, T=tokens, K=128, V=128, dtype=dtype, layout=layout, static=tokens < 8, **HIGH)
        for model in MODELS
        for layout in ("v_first", "k_first")
    ]
    failures = []
    for p, kernel in zip(problems, load(*(p.text() for p in problems))):
        found = errors(kernel, p, inputs(p))
        if not max(found) <= 1e-4:
            failures.append(f"{p.model} {p.layout}: o {found[0]:.1e}, state {found[1]:.1e}")
    assert not failures, "\n".join(failures)


def test_steps_of_eight_keep_a_float32_state():
    """In two TF32 parts new values lose 2^-21; in two of bfloat16 the state would be 2e-6 away."""
    p = Problem(B=3, T=8, K=128, V=64, static=True)
    (kernel,) = load(p.text())
    x = inputs(p)
    x["state"].zero_()
    assert oracle_torch.ratio(run(kernel, x)[1], expected(p, x)[1]) < 1e-6


def test_the_default_keeps_o_in_float32():
    """The kernels of both precisions take a float32 o; only its rounding to bf16 goes."""
    p = Problem(T=100, K=64, V=64, out_dtype="f32")
    rounded, kept = load(p.but(out_dtype=None).text(), p.text())
    x = inputs(p)
    o, state = run(kept, x, torch.full(x["v"].shape, float("nan"), device=x["v"].device))
    same, same_state = run(rounded, x)
    assert torch.equal(o.bfloat16(), same) and torch.equal(state, same_state)
