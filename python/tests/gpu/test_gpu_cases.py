# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named cases of the forward: exact results, strong decay, correlated keys, tails, sizes, number range.

A test's name starts with the case's; D10 to D12, D17, D18, D20, D22 to D24 and D26 to D30 are elsewhere or
belong to operations that these kernels do not have.
"""

import math
import re

import pytest

import gdn
import gpu_support
from gdn import build
from gdn.compile import CompileError
from gpu_support import (
    DEVICE,
    F32,
    F,
    Problem,
    arithmetic,
    check,
    expected,
    inputs,
    load,
    normalised,
    oracle_torch,
    run,
    same_bits,
    torch,
    torch_type,
)

CHUNKS = [16, 32, 64]


def normal(shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def uniform(shape, low, high, seed=0):
    return torch.empty(shape).uniform_(low, high, generator=torch.Generator().manual_seed(seed))


def put(x, dtype="f32"):
    return x.to(torch_type(dtype)).to(DEVICE)


# --- D01: two operations, one answer ----------------------------------------------


@pytest.mark.parametrize("tokens", [200, 4096])
def test_d01_zero_gates_are_no_gates(tokens):

    p = Problem("gated_delta", B=2, T=tokens, Hqk=2, Hv=2)
    gated, plain = load(p.text(), p.but(model="delta").text())
    x = inputs(p)
    x["gate"] = torch.zeros_like(x["gate"])
    o1, s1 = run(gated, x)
    del x["gate"]
    o2, s2 = run(plain, x)
    assert oracle_torch.block_ratio(o1, o2) <= 2e-3
    assert oracle_torch.ratio(s1, s2) <= 2e-3
    want = expected(p, x)
    check(p, (o1, s1), want)
    check(p, (o2, s2), want)
    first, last = (oracle_torch.ratio(o1[:, part], o2[:, part]) for part in (slice(256), slice(-256, None)))
    assert last <= max(2 * first, 5e-4), f"the difference grows from {first:.1e} to {last:.1e}"


def test_d01_equal_channel_gates_are_a_head_gate():
    p = Problem("gated_delta", T=193, dtype="f32")
    head, channel = load(p.text(), p.but(model="kda").text())
    x = inputs(p)
    o1, s1 = run(head, x)
    x["gate"] = x["gate"][..., None].expand(-1, -1, -1, p.K).contiguous()
    o2, s2 = run(channel, x)
    limit = 2e-5 if F32 == "f32" else 2e-3
    assert oracle_torch.block_ratio(o1, o2) <= limit
    assert oracle_torch.ratio(s1, s2) <= limit


# --- D02: an exact lookup table ---------------------------------------------------


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_d02_lookup_table(chunk, dtype):
    p = Problem("gated_delta", T=64, Hqk=1, Hv=1, dtype=dtype, chunk=chunk, scale=1.0)
    (kernel,) = load(p.text())
    x = inputs(p)
    unit = torch.eye(64)
    x["k"] = put(unit[None, :, None, :], dtype)
    x["q"] = put(unit[torch.arange(64) // 2][None, :, None, :], dtype)
    x["v"] = put(torch.randint(-8, 9, (1, 64, 1, 64), generator=torch.Generator().manual_seed(0)).float(), dtype)
    x["beta"], x["gate"] = torch.full_like(x["beta"], 0.75), torch.zeros_like(x["gate"])
    x["state"] = torch.zeros_like(x["state"])
    o, state = run(kernel, x)
    assert same_bits(o, 0.75 * x["v"][:, torch.arange(64, device=DEVICE) // 2])
    assert same_bits(state[0, 0], 0.75 * x["v"][0, :, 0].float().T)


# --- D03: strong decay, ragged tail -----------------------------------------------


@pytest.mark.parametrize("initial", ["state", "zero"])
@pytest.mark.parametrize("model", ["gated_delta", "kda", "ssd", "gla"])
@pytest.mark.parametrize(("dtype", "tokens"), [("f16", 75), ("bf16", 333)])
def test_d03_strong_decay(model, dtype, tokens, initial):
    p = Problem(model, B=2, T=tokens, Hqk=4, Hv=4, dtype=dtype)
    (kernel,) = load(p.text())
    x = inputs(p)
    shape = tuple(x["gate"].shape)
    if dtype == "f16":
        x["gate"] = put(F.logsigmoid(uniform(shape, 0, 1)) / 0.01)
    else:
        x["gate"] = put(-16 * F.softplus(2 * normal(shape) + 1))
    if initial == "zero":
        x["state"] = torch.zeros_like(x["state"])
    check(p, run(kernel, x), expected(p, x))


# --- D04: a reset token -----------------------------------------------------------


@pytest.mark.parametrize("model", ["gated_delta", "ssd", "kda", "gla", "gdn2"])
def test_d04_reset(model):
    p = Problem(model, T=130, Hqk=2, Hv=2)
    (kernel,) = load(p.text())
    x = inputs(p)
    for reset in (-1e3, -1e4, -1e6, -math.inf):
        x["gate"] = torch.full_like(x["gate"], -0.05)
        x["gate"][:, 70] = reset
        o, state = run(kernel, x)
        later = {name: value[:, 70:].clone() for name, value in x.items() if name != "state"}
        later["gate"][:, 0] = 0
        zero = torch.zeros_like(x["state"])
        check(p, (o[:, 70:], state), expected(p, dict(later, state=zero)), f" after {reset}")
        check(p, (o, state), expected(p, x), f" with {reset}")


# --- D05: pure decay and a frozen state -------------------------------------------


def test_d05_decay():
    p = Problem("gated_delta", T=1000, Hqk=1, Hv=1, K=16, V=16)
    prefill, step = load(p.text(), p.but(T=1, static=True).text())
    x = inputs(p)
    x["beta"] = torch.zeros_like(x["beta"])
    x["gate"] = torch.full_like(x["gate"], -1e-3)
    x["state"] = torch.ones_like(x["state"])
    o, state = run(prefill, x)
    check(p, (o, state), expected(p, x))
    assert (state - math.exp(-1)).abs().max() <= 1e-4
    token = {name: value if name == "state" else value[:, :1].contiguous() for name, value in x.items()}
    for _ in range(1000):
        _, token["state"] = run(step, token, poisoned=False)
    assert (token["state"] - math.exp(-1)).abs().max() <= 1e-4


# --- D06, D07: correlated keys ----------------------------------------------------


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("beta", [1.0, 1.9])
@pytest.mark.parametrize("gates", ["none", "random"])
def test_d06_equal_keys(gates, beta, dtype):

    p = Problem("gated_delta", Hqk=2, Hv=2, dtype=dtype)
    (kernel,) = load(p.text())
    key = normal((64,), seed=3)
    for tokens in (64, 65, 256):
        p = p.but(T=tokens)
        x = inputs(p)
        x["k"] = put((key / key.norm()).expand(1, tokens, 2, 64), dtype).contiguous()
        x["beta"] = torch.full_like(x["beta"], beta)
        x["gate"] = put(torch.zeros(1, tokens, 2) if gates == "none" else uniform((1, tokens, 2), -3, 0))
        x["state"] = torch.zeros_like(x["state"])
        got = run(kernel, x)
        if beta == 1.0:
            factor = state_factor = 1.0
            inner = (x["q"].double() * x["k"].double()).sum(-1, keepdim=True) / 8
            oracle_torch.check("o", got[0], inner * x["v"].double(), "o correlated", arithmetic(dtype))
        elif dtype == "bf16":
            factor, state_factor = 1.5, 1.0
        else:
            factor = state_factor = 1.0 if arithmetic(dtype) == "f32" else 3.0
        label = f" at T {tokens}"
        check(p, got, expected(p, x), label, correlated=True, factor=factor, state_factor=state_factor)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("model", ["gated_delta", "kda", "gdn2"])
def test_d07_near_collinear_keys(model, dtype):
    p = Problem(model, T=256, Hqk=4, Hv=4, K=128, V=128, dtype=dtype)
    (kernel,) = load(p.text())
    x = inputs(p)
    center = normal((1, 1, 4, 128), seed=3)
    noise = normal((1, 256, 4, 128), seed=4) * 0.1 / math.sqrt(128)
    x["k"] = put(normalised(normalised(center) + noise), dtype)
    shape = tuple(x["gate"].shape)
    x["gate"] = put(uniform(shape, -2e-3, 0) if len(shape) == 4 else -1e-3 + 0 * uniform(shape, 0, 1))
    for name in ("beta", "erase", "write"):
        if name in x:
            x[name].fill_(0.95)
    check(p, run(kernel, x), expected(p, x), correlated=True)


# --- D08: every length ------------------------------------------------------------

LENGTHS = (1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 57, 59, 61, 63, 64, 65, 127, 128, 129)
BEHIND = 70


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("model", ["ssd", "delta", "gated_delta", "kda", "gdn2"])
def test_d08_every_length(model, chunk):
    """Rows behind T are NaN in every input and must stay untouched in the output."""

    p = Problem(model, V=128, chunk=chunk)
    (kernel,) = load(p.text())
    for tokens in LENGTHS:
        p = p.but(T=tokens)
        x = inputs(p)
        state = x.pop("state")
        behind = {name: value.new_full((1, BEHIND, *value.shape[2:]), math.nan) for name, value in x.items()}
        longer = {name: torch.cat([value, behind[name]], dim=1) for name, value in x.items()}
        views = {name: value[:, :tokens] for name, value in longer.items()}
        buffer = torch.full((1, tokens + BEHIND, 4, 128), 7.0, dtype=x["v"].dtype, device=DEVICE)
        o = buffer[:, :tokens].fill_(math.nan)
        got = run(kernel, dict(views, state=state), o=o)
        check(p, got, expected(p, dict(x, state=state)), f" at T {tokens}")
        assert (buffer[:, tokens:] == 7).all(), f"rows behind T {tokens} were written"


# --- D09: empty sequences ---------------------------------------------------------


@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_d09_empty_sequences(model):
    starts = (0, 0, 5, 5, 69, 69)
    p = Problem(model, T=69, starts=starts)
    one = p.but(starts=None)
    packed, single = load(p.text(), one.text())
    x = inputs(p)
    o, state = run(packed, x)
    check(p, (o, state), expected(p, x))
    for n, (a, b) in enumerate(zip(starts, starts[1:])):
        part = {name: v[:, a:b].contiguous() for name, v in x.items() if name not in ("state", "offsets")}
        part["state"] = x["state"][n : n + 1].clone()
        o_n, state_n = run(single, part)
        want = o_n.double(), state_n.double()
        check(one, (o[:, a:b], state[n : n + 1]), want, f" of sequence {n}")
        if a == b:
            assert same_bits(state[n], x["state"][n])
            assert tuple(o_n.shape) == (1, 0, 4, 64)
            assert same_bits(state_n, part["state"])


def test_d09_ragged_batch():
    lengths = (1238, 1199, 1240, 1216, 1187, 1203, 519)
    starts = tuple(sum(lengths[:i]) for i in range(len(lengths) + 1))
    p = Problem("gated_delta", T=starts[-1], Hqk=16, Hv=48, K=128, V=128, starts=starts)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


# --- D13: grouped value heads -----------------------------------------------------


@pytest.mark.parametrize(("key_heads", "heads"), [(16, 48), (16, 32), (16, 64), (2, 8)])
@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_d13_groups(model, key_heads, heads):
    p = Problem(model, T=130, Hqk=key_heads, Hv=heads, K=128, V=128)
    grouped, repeated = load(p.text(), p.but(Hqk=heads).text())
    x = inputs(p)
    o1, s1 = run(grouped, x)
    check(p, (o1, s1), expected(p, x))
    for name in ("q", "k"):
        x[name] = x[name].repeat_interleave(heads // key_heads, dim=2)
    o2, s2 = run(repeated, x)
    assert oracle_torch.ratio(o1, o2) <= 1e-3
    assert oracle_torch.ratio(s1, s2) <= 1e-3


# --- D14: head sizes --------------------------------------------------------------

SIZES = [
    (16, 8),
    (32, 16),
    (60, 60),
    (100, 100),
    (64, 128),
    (96, 192),
    (192, 384),
    (200, 400),
    (256, 256),
    (256, 512),
]


def load_or_refusal(p, *more):
    """Kernels, or a skip where the compiler says which size it does not support."""
    try:
        return load(p.text(), *more)
    except CompileError as error:
        if gpu_support.forced:
            raise
        message = str(error)
        assert "error:" in message, message
        assert re.search(rf"\b({p.K}|{p.V})\b", message), f"the refusal names neither K {p.K} nor V {p.V}: {message}"
        pytest.skip(f"refused at compile time: {message.splitlines()[-1]}")


@pytest.mark.parametrize(("K", "V"), SIZES)
@pytest.mark.parametrize("model", ["gated_delta", "kda", "gla"])
def test_d14_head_sizes(model, K, V):
    p = Problem(model, T=75, K=K, V=V)
    (kernel,) = load_or_refusal(p)
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize(("K", "V"), SIZES)
def test_d14_head_sizes_of_steps(K, V):
    p = Problem("gated_delta", B=3, T=2, K=K, V=V, static=True)
    (kernel,) = load_or_refusal(p)
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


def test_d14_halves_of_v():
    p = Problem("gated_delta", T=75, K=64, V=128)
    whole, half = load(p.text(), p.but(V=64).text())
    x = inputs(p)
    o, state = run(whole, x)
    parts = []
    for columns in (slice(0, 64), slice(64, 128)):
        part = dict(x, v=x["v"][..., columns].contiguous(), state=x["state"][:, :, columns].contiguous())
        parts.append(run(half, part))
    joined = torch.cat([o_n for o_n, _ in parts], dim=3), torch.cat([s_n for _, s_n in parts], dim=2)
    check(p, (o, state), (joined[0].double(), joined[1].double()))


def test_d14_zero_key_channels():
    narrow = Problem("gated_delta", T=75, K=100, V=64, scale=0.1)
    wide = narrow.but(K=128)
    small, large = load_or_refusal(narrow, wide.text())
    x = inputs(narrow)
    got = run(small, x)
    padded = dict(x, **{name: F.pad(x[name], (0, 28)).contiguous() for name in ("q", "k", "state")})
    o, state = run(large, padded)
    check(narrow, got, (o.double(), state[..., :100].double()))
    assert not state[..., 100:].any()


# --- D15: state layout and type ---------------------------------------------------


@pytest.mark.parametrize("sizes", [(3, 100, 4, 64, 128), (2, 4, 2, 16, 8)])
@pytest.mark.parametrize("state_dtype", ["f32", "bf16"])
def test_d15_layouts_are_transposes(state_dtype, sizes):
    B, T, heads, K, V = sizes
    p = Problem("gated_delta", B=B, T=T, Hqk=heads, Hv=heads, K=K, V=V, state_dtype=state_dtype, static=True)
    other = p.but(layout="k_first")
    v_first, k_first = load_or_refusal(p, other.text())
    x = inputs(p)
    o1, s1 = run(v_first, x)
    check(p, (o1, s1), expected(p, x))
    x["state"] = x["state"].transpose(2, 3).contiguous()
    o2, s2 = run(k_first, x)
    s2 = s2.transpose(2, 3)
    if T > 8 and "phases = step" not in p.text():
        assert same_bits(o1, o2)
        assert same_bits(s1, s2)
    else:
        # Token by token, sums over K follow the lanes that hold the contiguous dimension.
        check(p, (o2, s2), expected(p, dict(x, state=x["state"].transpose(2, 3))))


# --- D16: range of the staging types ----------------------------------------------


@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_d16_large_states(model):
    p = Problem(model, T=40, Hqk=1, Hv=1, K=128, V=128)
    (kernel,) = load(p.text())
    x = inputs(p)
    x["gate"] = torch.full_like(x["gate"], -0.1)
    x["state"] = torch.zeros_like(x["state"])
    x["state"][0, 0, 3, 5] = 65536
    x["state"][0, 0, 100, 77] = 1e6
    check(p, run(kernel, x), expected(p, x))


# --- D19: refusals ----------------------------------------------------------------


def test_d19_refusals_before_any_launch():
    p = Problem("gated_delta", B=2, T=40)
    packed = p.but(B=1, starts=(0, 10, 40))
    kernel, packed_kernel = load(p.text(), packed.text())
    x = dict(inputs(p))
    x["o"] = torch.zeros_like(x["v"])

    def refused(message, error=ValueError, **changes):
        with pytest.raises(error, match=message):
            kernel(**dict(x, **changes))

    refused("'state'.*3", state=torch.zeros(3, 4, 64, 64, device=DEVICE))
    refused(r"'state' has shape \[2, 4, 64, 32\]", state=torch.zeros(2, 4, 64, 32, device=DEVICE))
    refused(r"'gate' has shape \[2, 40, 4, 64\]", gate=torch.zeros(2, 40, 4, 64, device=DEVICE))
    refused("'gate' has element type bf16", TypeError, gate=x["gate"].bfloat16())
    refused("39", gate=x["gate"][:, :39].contiguous())
    refused("not contiguous", v=x["v"].transpose(0, 1).contiguous().transpose(0, 1))
    refused("'beta' is on device 'cpu'", TypeError, beta=x["beta"].cpu())
    refused("overlaps 'v'", o=x["v"])
    flat = torch.zeros(2 * 40 * 4 + 1, device=DEVICE)
    refused("alignment", gate=flat[1:].view(2, 40, 4))
    y = dict(inputs(packed))
    y["o"] = torch.zeros_like(y["v"])
    for starts, message in (((0, 10, 39), "end at 39"), ((0, 41, 40), "decrease from 41 to 40")):
        with pytest.raises(ValueError, match=message):
            packed_kernel(**dict(y, offsets=torch.tensor(starts, dtype=torch.int32, device=DEVICE)), validate=True)
    assert not x["o"].any()
    assert not y["o"].any()


@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_d19_growth_is_computed(model):
    p = Problem(model, T=100)
    (kernel,) = load(p.text())
    x = inputs(p)
    x["gate"] = put(uniform(tuple(x["gate"].shape), -0.02, 0.02))
    check(p, run(kernel, x), expected(p, x))


# --- D21: gates at the edges ------------------------------------------------------


def gate_inputs():
    rates = torch.tensor([-math.inf, -20.0, 0.0, math.log(16.0)])
    values = torch.tensor([-100.0, -20.0, 0.0, 20.0, 20.001, 100.0])
    a = values[None, :, None].expand(1, 6, 4).contiguous() - 1.0
    return a.to(DEVICE), rates.to(DEVICE), torch.ones(4, device=DEVICE)


def test_d21_softplus_gates():
    (kernel,) = load(build.gate(1, 6, 4))
    a, rates, bias = gate_inputs()
    g = torch.full((1, 6, 4), math.nan, device=DEVICE)
    kernel(a, rates, bias, g)
    x = (a + bias).double()
    want = -rates.double().exp() * (x.clamp(min=0) + torch.log1p(torch.exp(-x.abs())))
    assert torch.isfinite(g).all()
    assert (g[..., 0] == 0).all()
    # Below the smallest normal number float32 has no relative precision.
    error = (g.double() - want).abs() - 1e-37
    assert (error <= 1e-6 * want.abs()).all(), (error / want.abs()).max()


def test_d21_softplus_has_no_jump():
    (kernel,) = load(build.gate(1, 4096, 1, bias=False))
    a = torch.linspace(19.9, 20.1, 4096, device=DEVICE).view(1, -1, 1)
    g = torch.empty_like(a)
    kernel(a, torch.zeros(1, device=DEVICE), g)
    steps = (g[0, 1:, 0] - g[0, :-1, 0]).double()
    assert (steps <= 0).all()
    assert (steps.abs() <= 0.2 / 4095 + 4e-6).all()


def test_d21_bounded_gates():
    (kernel,) = load(build.gate(1, 6, 4, lower_bound=-5.0))
    a, _, bias = gate_inputs()
    rates = torch.tensor([-20.0, 0.0, 20.0, 20.0], device=DEVICE)
    g = torch.full((1, 6, 4), math.nan, device=DEVICE)
    kernel(a, rates, bias, g)
    want = -5 * torch.sigmoid(rates.double().exp() * (a + bias).double())
    assert torch.isfinite(g).all()
    error = (g.double() - want).abs() - 1e-37
    assert (error <= 1e-6 * want.abs()).all(), (error / want.abs()).max()


# --- D25: large indices -----------------------------------------------------------


@pytest.mark.large
def test_d25_many_states():
    """4200 states of 2 MiB: offsets above 2^31 elements."""

    p = Problem("gated_delta", B=4200, T=1, Hqk=16, Hv=32, K=128, V=128, static=True)
    (kernel,) = load(p.text())
    small = inputs(p.but(B=5))
    x = {name: value[:1].expand(4200, *value.shape[1:]).contiguous() for name, value in small.items()}
    places = torch.tensor([0, 1, 2100, 4100, 4199], device=DEVICE)
    for name, value in small.items():
        x[name][places] = value
    o = torch.full_like(x["v"], math.nan)
    kernel(**x, o=o)
    check(p, (o[places], x["state"][places]), expected(p, small))
    plain = torch.ones(4200, dtype=torch.bool, device=DEVICE)
    plain[places] = False
    assert (o[plain] == o[0]).all()
    assert (x["state"][plain].flatten(1) == x["state"][0].flatten()).all()


@pytest.mark.large
def test_d25_many_tokens():
    """131077 tokens of 128 heads: offsets above 2^31 elements."""

    p = Problem("gated_delta", T=131077, Hqk=128, Hv=128, K=128, V=128)
    (kernel,) = load(p.text())
    torch.manual_seed(0)
    x = {}
    for name in ("q", "k", "v"):
        x[name] = torch.empty(1, p.T, 128, 128, dtype=torch.bfloat16, device=DEVICE).normal_()
        if name != "v":
            for part in x[name].split(8192, dim=1):
                part.copy_(normalised(part.float()))
    x["beta"] = torch.rand(1, p.T, 128, device=DEVICE)
    x["gate"] = torch.full((1, p.T, 128), -0.05, device=DEVICE)
    x["gate"][:, -64] = -1e4
    x["state"] = torch.randn(1, 128, 128, 128, device=DEVICE)
    o, state = run(kernel, x, poisoned=False)
    end = {name: value[:, -64:].clone() for name, value in x.items() if name != "state"}
    end["gate"][:, 0] = 0
    end["state"] = torch.zeros_like(x["state"])
    check(p, (o[:, -64:], state), expected(p, end))
    start = {name: value if name == "state" else value[:, :64].contiguous() for name, value in x.items()}
    want_o, _ = expected(p, start)

    oracle_torch.check("the first rows", o[:, :64], want_o, "o", "bf16")
    assert torch.isfinite(o).all()


def test_d25_many_documents():
    starts = tuple(16 * n for n in range(2101))
    p = Problem("gated_delta", T=starts[-1], Hqk=32, Hv=32, K=32, V=32, starts=starts)
    batch = p.but(starts=None, B=2100, T=16)
    packed, batched = load(p.text(), batch.text())
    x = inputs(p)
    o, state = run(packed, x)
    y = {name: v if name == "state" else v.view(2100, 16, *v.shape[2:]) for name, v in x.items() if name != "offsets"}
    o2, state2 = run(batched, y)
    check(batch, (o.view_as(o2), state), (o2.double(), state2.double()))
    check(batch, (o2, state2), expected(batch, y))


def test_no_device_error_is_left():
    """The driver reports errors of earlier kernels here at the latest."""

    load()
    torch.cuda.synchronize()
    assert gdn.device_target()
