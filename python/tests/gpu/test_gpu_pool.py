# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools of states: the entry that a slot names is updated in place, nothing else is touched."""

import math

import pytest

from gpu_support import DEVICE, MODELS, Problem, check, expected, inputs, load, run, same_bits, torch

# Sequences without a state are padding: whatever their rows hold must not reach a result.
DENSE = dict(B=4, slots=(5, -1, 0, 3), pool=7)
PACKED = dict(T=140, starts=(0, 66, 66, 75, 139, 140), slots=(2, 5, -3, 0, 1), pool=6, slot_type="i64")


def rows(p):
    """Batch and time of each sequence."""
    if p.starts:
        return [(0, slice(a, b)) for a, b in zip(p.starts, p.starts[1:])]
    return [(b, slice(None)) for b in range(p.B)]


def compare(p, kernel):
    x = inputs(p)
    for slot, place in zip(p.slots, rows(p)):
        if slot < 0:
            for name in set(x) - {"offsets", "slots", "state"}:
                x[name][place] = math.nan
    o, state = run(kernel, x)
    check(p, (o, state), expected(p, x))
    for slot, place in zip(p.slots, rows(p)):
        if slot < 0:
            assert (o[place] == 0).all(), f"o of the sequence with slot {slot} is not 0"
    named = {slot for slot, (_, time) in zip(p.slots, rows(p)) if slot >= 0 and len(range(p.T)[time])}
    for entry in range(p.pool):
        same = bool((state[entry] == x["state"][entry]).all())
        assert same == (entry not in named), f"entry {entry} of the pool"


@pytest.mark.parametrize("layout", ["v_first", "k_first"])
@pytest.mark.parametrize("tokens", [1, 4])
@pytest.mark.parametrize("model", MODELS)
def test_steps(model, tokens, layout):
    p = Problem(model, T=tokens, K=64, V=128, layout=layout, static=True, **DENSE)
    compare(p, *load(p.text()))


@pytest.mark.parametrize("state_dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_types(tokens, dtype, state_dtype):
    p = Problem("gated_delta", T=tokens, K=128, V=128, dtype=dtype, state_dtype=state_dtype, static=True, **DENSE)
    compare(p, *load(p.text()))


@pytest.mark.parametrize("layout", ["v_first", "k_first"])
@pytest.mark.parametrize("model", MODELS)
def test_packed(model, layout):
    p = Problem(model, K=32, V=96, layout=layout, **PACKED)
    compare(p, *load(p.text()))


@pytest.mark.parametrize("model", ["gated_delta", "gla"])
def test_packed_steps(model):
    p = Problem(model, T=4, starts=(0, 1, 2, 2, 4), slots=(1, -1, 3, 0), pool=5, phases="step", chunk=16)
    compare(p, *load(p.text()))


@pytest.mark.large
@pytest.mark.parametrize("tokens", [1, 70])
def test_d25_pool_of_many_states(tokens):
    """4200 states of 2 MiB: slots above 2^31 elements."""
    slots = (0, 4100, 4199, -1)
    p = Problem(
        "gated_delta", B=4, T=tokens, Hqk=16, Hv=32, K=128, V=128, slots=slots, pool=4200, slot_type="i64", static=True
    )
    (kernel,) = load(p.text())
    small = p.but(slots=(0, 1, 2, -1), pool=3)
    x = inputs(small)
    want_o, want_state = expected(small, x)
    pool = torch.zeros((4200, *x["state"].shape[1:]), device=DEVICE)
    for entry, slot in enumerate(slots[:3]):
        pool[slot] = x["state"][entry]
    o = torch.full_like(x["v"], math.nan)
    x["slots"] = torch.tensor(slots, device=DEVICE)
    kernel(**dict(x, state=pool), o=o)
    got = torch.stack([pool[slot] for slot in slots[:3]])
    check(small, (o, got), (want_o, want_state))
    assert same_bits(o[3], torch.zeros_like(o[3]))
    for slot in slots[:3]:
        pool[slot] = 0
    assert not pool.any()


def test_d28_graph_replays_with_other_slots():
    p = Problem("gated_delta", T=1, K=64, V=128, static=True, **DENSE)
    (kernel,) = load(p.text())
    x = inputs(p)
    pool, o = x["state"].clone(), torch.full_like(x["v"], math.nan)
    arguments = dict(x, state=pool, o=o)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernel.prepare(**arguments)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kernel(**arguments)
    for slots in (p.slots, (6, 0, -1, 2), (-1, -1, -1, -1)):
        x["slots"].copy_(torch.tensor(slots))
        pool.copy_(x["state"])
        graph.replay()
        torch.cuda.synchronize()
        check(p, (o, pool), expected(p, x), f" with slots {slots}")
