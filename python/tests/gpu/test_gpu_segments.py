# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences cut into segments: kernels with roles, states at boundaries, and the rule of when to cut."""

import pytest

from gpu_support import MODELS, Problem, check, expected, inputs, load, run, same_bits, torch

# Whole chunks, tails, an empty sequence and some of one segment.
STARTS = (0, 700, 701, 765, 765, 1265, 1598)
MANY = dict(chunk=64, segments=100)


def launched(kernel, x):
    """Names of the kernels that a call runs."""
    shapes = [tuple(value.shape) for value in kernel_arguments(kernel, x)]
    return {launch.kernel.rsplit("_", 1)[-1] for launch in kernel._plan.launches if launch.grid(shapes)}


def kernel_arguments(kernel, x):
    arguments = dict(x, o=x["v"])
    return [arguments[name] for name in kernel._plan.names]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [64, 128])
def test_dense(model, size):
    p = Problem(model, B=2, T=650, K=size, V=size, **MANY)
    (kernel,) = load(p.text())
    x = inputs(p)
    assert "segments" in launched(kernel, x)
    first, again = run(kernel, x), run(kernel, x)
    check(p, first, expected(p, x))
    assert all(same_bits(a, b) for a, b in zip(first, again))


@pytest.mark.parametrize("model", MODELS)
def test_packed(model):
    p = Problem(model, T=STARTS[-1], K=128, V=128, starts=STARTS, **MANY)
    (kernel,) = load(p.text())
    x = inputs(p)
    assert "segments" in launched(kernel, x)
    first, again = run(kernel, x), run(kernel, x)
    check(p, first, expected(p, x))
    assert all(same_bits(a, b) for a, b in zip(first, again))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("static", [False, True])
def test_a_long_sequence_is_cut_by_default(dtype, static):
    p = Problem("gated_delta", T=3000, Hqk=1, Hv=2, K=128, V=128, dtype=dtype, static=static)
    (kernel,) = load(p.text())
    x = inputs(p)
    # Little decay: what is lost at a boundary stays lost.
    x["gate"] = x["gate"] / 64
    assert launched(kernel, x) == {"prepare", "segments", "scan", "later"}
    check(p, run(kernel, x), expected(p, x))


def test_short_and_many_sequences_stay_whole():
    p = Problem("gated_delta", B=40, T=3000, Hqk=1, Hv=2, K=128, V=128)
    (kernel,) = load(p.text())
    for batch, tokens, cut in ((1, 3000, True), (1, 1200, False), (40, 3000, False)):
        x = {name: value[:batch] for name, value in inputs(p.but(T=tokens)).items()}
        assert ("segments" in launched(kernel, x)) == cut, f"{batch} sequences of {tokens} tokens"


@pytest.mark.parametrize(
    "starts",
    [(0, 30, 3000, 3064), (0, 3000, 6000), (0, 2700, 2701, 2701, 5801)],
    ids=("one among short ones", "two equal ones", "two with others between them"),
)
def test_long_packed_sequences_are_cut(starts):
    """Each has segments of its own length."""
    p = Problem("gated_delta", T=starts[-1], Hqk=1, Hv=2, K=128, V=128, starts=starts)
    (kernel,) = load(p.text())
    x = inputs(p)
    assert "segments" in launched(kernel, x)
    check(p, run(kernel, x), expected(p, x))


def test_near_equal_keys_without_decay():
    """The matrices between boundaries are nearly the identity: their last bits count."""
    p = Problem("gated_delta", T=1280, K=128, V=128, **MANY)
    cut, whole = load(p.text(), p.but(segments=0).text())
    x = inputs(p)
    generator = torch.Generator().manual_seed(1)
    one = torch.randn(1, 1, p.Hqk, p.K, generator=generator)
    keys = one + 0.05 * torch.randn(1, p.T, p.Hqk, p.K, generator=generator)
    x["k"] = (keys / keys.norm(dim=-1, keepdim=True)).to(x["k"])
    x["gate"] = torch.zeros_like(x["gate"])
    x["beta"] = torch.full_like(x["beta"], 0.99)
    want = expected(p, x)
    error = [float((run(k, x)[1].double() - want[1]).norm() / want[1].norm()) for k in (cut, whole)]
    assert error[0] <= 1.25 * error[1], f"{error[0]:.1e} in segments, {error[1]:.1e} whole"
