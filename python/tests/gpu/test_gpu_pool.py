# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools of states: the entry that a slot names is updated in place, nothing else is touched. Interior states."""

import math

import pytest

from gpu_support import (
    DEVICE,
    MODELS,
    Problem,
    arithmetic,
    check,
    expected,
    inputs,
    load,
    oracle_torch,
    run,
    same_bits,
    torch,
    torch_type,
)

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


# --- interior states, and states that are only read ----------------------------------


def run_kept(p, kernel, x):
    """o, the state and the checkpoints; all destinations start as NaN."""
    state, o = x["state"].clone(), torch.full_like(x["v"], math.nan)
    shape = (p.B, p.T // p.every, *state.shape[1:])
    kept = torch.full(shape, math.nan, dtype=torch_type(p.checkpoint_dtype), device=DEVICE)
    arguments = {name: value for name, value in x.items() if name != "state"}
    arguments["state" if p.update else "initial"] = state
    kernel(**arguments, o=o, checkpoints=kept)
    torch.cuda.synchronize()
    return o, state, kept


def compare_kept(p, kernel):
    x = inputs(p)
    o, state, kept = run_kept(p, kernel, x)
    want_o, want_state, want_kept = expected(p, x)
    check(p, (o, state if p.update else want_state.to(state.dtype)), (want_o, want_state))
    assert p.update or same_bits(state, x["state"]), "the initial state has changed"
    missing = want_kept.isnan()
    assert torch.equal(kept.isnan(), missing), "other checkpoints than the definition's are written"
    kind = "bf16" if p.checkpoint_dtype == "bf16" else arithmetic(p.dtype)
    oracle_torch.check("checkpoints", kept[~missing], want_kept[~missing], "state", kind, tokens=False)


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("layout", ["v_first", "k_first"])
@pytest.mark.parametrize("tokens", [2, 4, 8])
@pytest.mark.parametrize("model", MODELS)
def test_verify(model, tokens, layout, update):
    p = Problem(model, T=tokens, K=64, V=128, layout=layout, every=1, update=update, static=True, **DENSE)
    compare_kept(p, *load(p.text()))


@pytest.mark.parametrize("checkpoint_dtype", ["f32", "bf16"])
@pytest.mark.parametrize("state_dtype", ["f32", "bf16"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_verify_types(dtype, state_dtype, checkpoint_dtype):
    types = dict(dtype=dtype, state_dtype=state_dtype, checkpoint_dtype=checkpoint_dtype)
    p = Problem("gated_delta", T=4, K=128, V=128, every=1, update=False, static=True, **types, **DENSE)
    compare_kept(p, *load(p.text()))


@pytest.mark.parametrize("model", ["gated_delta", "kda", "ssd"])
@pytest.mark.parametrize("every", [64, 128])
def test_checkpoints_of_a_prefill(model, every):
    p = Problem(model, B=2, T=300, K=64, V=96, every=every)
    compare_kept(p, *load(p.text()))


@pytest.mark.parametrize("model", MODELS)
def test_checkpoints_of_two_warpgroups(model):
    p = Problem(model, B=2, T=200, K=128, V=200, every=64, state_dtype="bf16", value_block=128, chunk=32)
    (kernel,) = load(p.text())
    compare_kept(p, kernel)


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("every", [16, 24])
def test_checkpoints_of_packed_sequences(every, update):
    p = Problem("gated_delta", K=32, V=96, layout="k_first", every=every, update=update, **PACKED)
    compare_kept(p, *load(p.text()))


def test_d12_verify_and_roll_back():
    """State i of a verify step is the state after i decode steps; what is committed afterwards goes on from it."""
    p = Problem("gated_delta", B=4, T=4, K=128, V=128, every=1, update=False, static=True, slots=(2, 0, 5, 3), pool=6)
    one = p.but(T=1, every=None, update=True)
    verify, decode = load(p.text(), one.text())
    x = inputs(p)
    o, state, kept = run_kept(p, verify, x)
    assert same_bits(state, x["state"])
    pool = x["state"].clone()
    for token in range(4):
        tokens = {name: value for name, value in x.items() if name not in ("slots", "state")}
        part = {name: value[:, token : token + 1].contiguous() for name, value in tokens.items()}
        o_t = torch.full_like(part["v"], math.nan)
        decode(**part, slots=x["slots"], o=o_t, state=pool)
        stepped = pool[x["slots"].long()]
        assert oracle_torch.ratio(kept[:, token], stepped) <= 1e-5
        assert oracle_torch.ratio(o[:, token], o_t[:, 0]) <= 4e-3


def test_d12_prefill_stops():
    """The checkpoint behind 128 tokens is the state of a run of 128 tokens."""
    p = Problem("gated_delta", B=1, T=130, K=64, V=64, every=64)
    kept_kernel, kernel = load(p.text(), p.but(every=None).text())
    x = inputs(p)
    _, _, kept = run_kept(p, kept_kernel, x)
    for j, tokens in enumerate((64, 128)):
        part = {name: value if name == "state" else value[:, :tokens].contiguous() for name, value in x.items()}
        _, state = run(kernel, part)
        assert same_bits(kept[:, j], state)
