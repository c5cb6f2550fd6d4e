# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The float64 oracle against scalar loops, identities that need no oracle, and the chunk algebra."""

import math

import numpy as np
import pytest

from gdn import reference as ref

MODELS = {
    "linear": {},
    "ssd": {"gate": "head"},
    "gla": {"gate": "channel"},
    "delta": {"beta": True},
    "gated_delta": {"gate": "head", "beta": True},
    "kda": {"gate": "channel", "beta": True},
    "gdn2": {"gate": "channel", "erase_write": True},
}


def inputs(model, B=2, T=11, Hqk=2, Hv=4, K=6, V=5, seed=0):
    rng = np.random.default_rng(seed)
    options = MODELS[model]
    x = {
        "q": ref.l2norm(rng.normal(size=(B, T, Hqk, K))),
        "k": ref.l2norm(rng.normal(size=(B, T, Hqk, K))),
        "v": rng.normal(size=(B, T, Hv, V)),
        "state": rng.normal(size=(B, Hv, V, K)),
    }
    if options.get("gate"):
        tail = (K,) if options["gate"] == "channel" else ()
        x["gate"] = -ref.softplus(rng.normal(size=(B, T, Hv) + tail))
    if options.get("beta"):
        x["beta"] = ref.sigmoid(rng.normal(size=(B, T, Hv)))
    if options.get("erase_write"):
        x["erase"] = ref.sigmoid(rng.normal(size=(B, T, Hv, K)))
        x["write"] = ref.sigmoid(rng.normal(size=(B, T, Hv, V)))
    return x


def scalar_recurrence(x, scale):
    """The definition with scalar loops only."""
    B, T, Hv, V = x["v"].shape
    K = x["q"].shape[3]
    group = Hv // x["q"].shape[2]
    S, o = x["state"].copy(), np.zeros((B, T, Hv, V))
    for b in range(B):
        for h in range(Hv):
            for t in range(T):
                q, k, s = x["q"][b, t, h // group], x["k"][b, t, h // group], S[b, h]
                for i in range(V):
                    for c in range(K):
                        if "gate" in x:
                            g = x["gate"][b, t, h]
                            s[i, c] *= math.exp(g[c] if np.ndim(g) else g)
                    u = x["v"][b, t, h, i]
                    if "beta" in x:
                        u = x["beta"][b, t, h] * (u - sum(s[i, c] * k[c] for c in range(K)))
                    if "erase" in x:
                        read = sum(s[i, c] * x["erase"][b, t, h, c] * k[c] for c in range(K))
                        u = x["write"][b, t, h, i] * u - read
                    for c in range(K):
                        s[i, c] += u * k[c]
                    o[b, t, h, i] = scale * sum(s[i, c] * q[c] for c in range(K))
    return o, S


@pytest.mark.parametrize("model", MODELS)
def test_recurrence_is_its_definition(model):
    x = inputs(model, T=5)
    o, S = ref.recurrence(**x, scale=0.3)
    expected_o, expected_S = scalar_recurrence(x, 0.3)
    np.testing.assert_allclose(o, expected_o, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(S, expected_S, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("model", MODELS)
def test_layouts_are_transposes(model):
    x = inputs(model)
    o, S = ref.recurrence(**x)
    x["state"] = x["state"].swapaxes(2, 3)
    o2, S2 = ref.recurrence(**x, state_layout="k_first")
    assert np.array_equal(o, o2)
    assert np.array_equal(S, S2.swapaxes(2, 3))


def test_inputs_are_not_changed():
    x = inputs("kda")
    before = {name: value.copy() for name, value in x.items()}
    ref.recurrence(**x)
    assert all(np.array_equal(before[name], x[name]) for name in x)


@pytest.mark.parametrize("model", MODELS)
def test_offsets_are_separate_runs(model):
    starts = [0, 0, 3, 3, 9, 9]
    x = inputs(model, B=1, T=9)
    state = np.random.default_rng(1).normal(size=(5, 4, 5, 6))
    x["state"] = state
    o, S = ref.recurrence(**x, offsets=np.array(starts, np.int32))
    for n, (a, b) in enumerate(zip(starts, starts[1:])):
        part = {name: value if name == "state" else value[:, a:b] for name, value in x.items()}
        part["state"] = state[n : n + 1]
        o_n, S_n = ref.recurrence(**part)
        assert np.array_equal(o[:, a:b], o_n)
        assert np.array_equal(S[n : n + 1], S_n)
        if a == b:
            assert np.array_equal(S[n], state[n])


@pytest.mark.parametrize("starts", (None, [0, 0, 3, 9]))
def test_slots_name_entries_of_a_pool(starts):
    x = inputs("kda", B=3 if starts is None else 1, T=9)
    slots = [4, -1, 0] if starts is None else [1, -1, 3]
    pool = x["state"] = np.random.default_rng(1).normal(size=(5, 4, 5, 6))
    o, S = ref.recurrence(**x, offsets=starts, slots=slots)
    for n, slot in enumerate(slots):
        place = (slice(n, n + 1),) if starts is None else (slice(None), slice(starts[n], starts[n + 1]))
        if slot < 0:
            assert not o[place].any()
            continue
        part = {name: value if name == "state" else value[place] for name, value in x.items()}
        part["state"] = pool[slot : slot + 1]
        o_n, S_n = ref.recurrence(**part)
        assert np.array_equal(o[place], o_n)
        assert np.array_equal(S[slot : slot + 1], S_n)
    for entry in set(range(5)) - set(slots):
        assert np.array_equal(S[entry], pool[entry])


@pytest.mark.parametrize("layout", ("v_first", "k_first"))
@pytest.mark.parametrize("starts", (None, [0, 5, 5, 7, 11]))
def test_checkpoints_are_states_of_shorter_runs(starts, layout):
    x = inputs("kda", B=2 if starts is None else 1, T=11)
    x["state"] = np.random.default_rng(1).normal(size=(2 if starts is None else 4, 4, 5, 6))
    if layout == "k_first":
        x["state"] = x["state"].swapaxes(2, 3)
    o, S, kept = ref.recurrence(**x, offsets=starts, every=2, state_layout=layout)
    o2, S2 = ref.recurrence(**x, offsets=starts, state_layout=layout)
    assert np.array_equal(o, o2) and np.array_equal(S, S2)
    assert kept.shape == (o.shape[0], 5) + S.shape[1:]
    written = np.zeros(kept.shape[:2], bool)
    sequences = [(n, 0, 11) for n in range(2)] if starts is None else [(0, a, b) for a, b in zip(starts, starts[1:])]
    for n, (row, a, b) in enumerate(sequences):
        for j in range((b - a) // 2):
            part = {name: value[row : row + 1, a : a + 2 * j + 2] for name, value in x.items() if name != "state"}
            _, want = ref.recurrence(**part, state=x["state"][n : n + 1], state_layout=layout)
            assert np.array_equal(kept[row, a // 2 + j], want[0])
            written[row, a // 2 + j] = True
    assert np.isnan(kept[~written]).all()
    with pytest.raises(ValueError, match="every is 0"):
        ref.recurrence(**x, offsets=starts, every=0, state_layout=layout)


def test_split_in_time():
    x = inputs("kda", T=10)
    o, S = ref.recurrence(**x)
    first = {name: value if name == "state" else value[:, :4] for name, value in x.items()}
    rest = {name: value[:, 4:] for name, value in x.items() if name != "state"}
    o1, S1 = ref.recurrence(**first)
    o2, S2 = ref.recurrence(**rest, state=S1)
    assert np.array_equal(o, np.concatenate([o1, o2], axis=1))
    assert np.array_equal(S, S2)


def test_no_tokens():
    x = inputs("gated_delta", T=0)
    o, S = ref.recurrence(**x)
    assert o.shape == (2, 0, 4, 5)
    assert np.array_equal(S, x["state"])


# identities of the forward


def test_values_and_state_enter_linearly():
    x, y = inputs("kda"), inputs("kda", seed=7)
    mixed = dict(x, v=2 * x["v"] - 3 * y["v"], state=2 * x["state"] - 3 * y["state"])
    shared = {name: x[name] for name in x if name not in ("v", "state")}
    o1, S1 = ref.recurrence(**x)
    o2, S2 = ref.recurrence(**shared, v=y["v"], state=y["state"])
    o, S = ref.recurrence(**mixed)
    np.testing.assert_allclose(o, 2 * o1 - 3 * o2, atol=1e-12)
    np.testing.assert_allclose(S, 2 * S1 - 3 * S2, atol=1e-12)


def test_equal_channel_gates_are_a_head_gate():
    x = inputs("gated_delta")
    wide = dict(x, gate=np.repeat(x["gate"][..., None], 6, axis=3))
    for a, b in zip(ref.recurrence(**x), ref.recurrence(**wide)):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_erase_and_write_equal_to_beta():
    x = inputs("gated_delta")
    beta = x.pop("beta")
    split = dict(x, erase=np.repeat(beta[..., None], 6, 3), write=np.repeat(beta[..., None], 5, 3))
    for a, b in zip(ref.recurrence(**x, beta=beta), ref.recurrence(**split)):
        np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("model", MODELS)
def test_groups_are_repeated_heads(model):
    x = inputs(model)
    repeated = dict(x, q=np.repeat(x["q"], 2, axis=2), k=np.repeat(x["k"], 2, axis=2))
    for a, b in zip(ref.recurrence(**x), ref.recurrence(**repeated)):
        assert np.array_equal(a, b)


def test_value_columns_are_independent():
    x = inputs("kda")
    o, S = ref.recurrence(**x)
    half = dict(x, v=x["v"][..., 2:], state=x["state"][:, :, 2:])
    o2, S2 = ref.recurrence(**half)
    np.testing.assert_allclose(o[..., 2:], o2, atol=1e-14)
    np.testing.assert_allclose(S[:, :, 2:], S2, atol=1e-14)


def test_zero_key_channels_change_nothing():
    x = inputs("gated_delta")
    pad = [(0, 0)] * 3 + [(0, 3)]
    wide = dict(x, q=np.pad(x["q"], pad), k=np.pad(x["k"], pad), state=np.pad(x["state"], pad))
    o, S = ref.recurrence(**x, scale=0.4)
    o2, S2 = ref.recurrence(**wide, scale=0.4)
    np.testing.assert_allclose(o, o2, atol=1e-14)
    np.testing.assert_allclose(S, S2[..., :6], atol=1e-14)
    assert not S2[..., 6:].any()


def test_equal_keys_read_the_last_value():
    x = inputs("gated_delta")
    key = x["k"][:, :1, :1] / np.linalg.norm(x["k"][:, :1, :1], axis=-1, keepdims=True)
    x["k"] = np.broadcast_to(key, x["k"].shape)
    x["beta"] = np.ones_like(x["beta"])
    x["state"] = np.zeros_like(x["state"])
    o, _ = ref.recurrence(**x, scale=0.7)
    inner = np.repeat(np.sum(x["q"] * x["k"], axis=3), 2, axis=2)
    np.testing.assert_allclose(o, 0.7 * inner[..., None] * x["v"], atol=1e-12)


def test_one_hot_keys_make_a_table():
    T = 8
    k = np.eye(T)[None, :, None, :]
    q = np.eye(T)[np.arange(T) // 2][None, :, None, :]
    v = np.random.default_rng(0).integers(-8, 9, size=(1, T, 1, 3)).astype(float)
    o, S = ref.recurrence(q, k, v, beta=np.full((1, T, 1), 0.75), scale=1.0)
    assert np.array_equal(o, 0.75 * v[:, np.arange(T) // 2])
    assert np.array_equal(S[0, 0], 0.75 * v[0, :, 0].T)


def test_reset_forgets():
    x = inputs("gated_delta", T=12)
    x["gate"][:, 5] = -np.inf
    o, S = ref.recurrence(**x)
    later = {name: value[:, 5:] for name, value in x.items() if name != "state"}
    o2, S2 = ref.recurrence(**later)
    assert np.isfinite(o).all()
    np.testing.assert_allclose(o[:, 5:], o2, atol=1e-14)
    np.testing.assert_allclose(S, S2, atol=1e-14)


def test_outputs_depend_on_the_past_only():
    x = inputs("gdn2")
    o, _ = ref.recurrence(**x)
    changed = {name: value.copy() for name, value in x.items()}
    for name in changed:
        if name != "state":
            changed[name][:, 6:] = -0.25
    o2, _ = ref.recurrence(**changed)
    assert np.array_equal(o[:, :6], o2[:, :6])
    assert not np.array_equal(o[:, 6:], o2[:, 6:])


# the chunk algebra, made of the chunk-level operations


@pytest.mark.parametrize("model", ["delta", "gated_delta", "kda", "gdn2"])
def test_chunk_algebra_is_the_recurrence(model):
    x = inputs(model, B=1, T=13, Hqk=1, Hv=1)
    o, S = ref.recurrence(**x, scale=0.5)
    q, k, v = (x[name][0, :, 0] for name in ("q", "k", "v"))
    S0 = x["state"][0, 0]
    g = x["gate"][0, :, 0] if "gate" in x else np.zeros(13)
    G = ref.cumsum(g)
    decay = np.exp(G) if G.ndim == 2 else np.exp(G)[:, None]
    if "beta" in x:
        erase = np.repeat(x["beta"][0, :, 0][:, None], 6, 1)
        write = np.repeat(x["beta"][0, :, 0][:, None], 5, 1)
    else:
        erase, write = x["erase"][0, :, 0], x["write"][0, :, 0]
    inverse = ref.tri_inverse(ref.scores(erase * k, k, G, strict=True))
    U = inverse @ (write * v - (decay * erase * k) @ S0.T)
    O = 0.5 * ((decay * q) @ S0.T + ref.scores(q, k, G) @ U)
    last = np.exp(G[-1] - G) if G.ndim == 2 else np.exp(G[-1] - G)[:, None]
    S1 = S0 * decay[-1] + U.T @ (last * k)
    np.testing.assert_allclose(O, o[0, :, 0], atol=1e-12)
    np.testing.assert_allclose(S1, S[0, 0], atol=1e-12)


def test_scores_are_their_definition():
    rng = np.random.default_rng(3)
    x, y, G = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), np.cumsum(-rng.random((5, 3)), axis=0)
    for strict in (False, True):
        A = ref.scores(x, y, G, strict=strict)
        for i in range(5):
            for j in range(5):
                inside = i > j if strict else i >= j
                value = sum(x[i, c] * y[j, c] * math.exp(G[i, c] - G[j, c]) for c in range(3)) if inside else 0
                assert A[i, j] == pytest.approx(value, abs=1e-13)


def test_scores_form_no_exponent_of_a_masked_pair():
    G = np.array([0.0, -2e4])
    with np.errstate(over="raise"):
        A = ref.scores(np.ones((2, 1)), np.ones((2, 1)), G)
    assert np.array_equal(A, [[1, 0], [0, 1]])


def test_tri_inverse_reads_the_strictly_lower_part():
    L = np.random.default_rng(0).normal(size=(7, 7))
    X = ref.tri_inverse(L)
    np.testing.assert_allclose(X @ (np.eye(7) + np.tril(L, -1)), np.eye(7), atol=1e-12)
    assert np.array_equal(np.triu(X, 1), np.zeros((7, 7)))


# parts of a mixer


def test_l2norm():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(ref.l2norm(x, eps=0.75), [[3 / 25.75**0.5, 4 / 25.75**0.5], [0, 0]])


@pytest.mark.parametrize("x", [-800.0, -20.0, 0.0, 19.999, 20.0, 20.001, 800.0])
def test_softplus_has_no_jump(x):
    exact = math.log1p(math.exp(x)) if x < 30 else x
    assert float(ref.softplus(x)) == pytest.approx(exact, rel=1e-14)


def test_gate_forms():
    a = np.array([[[-100.0, 20.001]]])
    rate = np.array([math.log(16.0), 0.0])
    bias = np.array([1.0, 0.0])
    g = ref.gate(a, rate, bias)
    np.testing.assert_allclose(g[0, 0], [-16 * math.exp(-99), -20.001 - math.log1p(math.exp(-20.001))], rtol=1e-13)
    bounded = ref.gate(a, rate, bias, lower_bound=-5.0)
    np.testing.assert_allclose(bounded[0, 0], [0, -5 / (1 + math.exp(-20.001))], atol=1e-300, rtol=1e-14)
    assert np.array_equal(ref.gate(a, np.full(2, -np.inf), bias), np.zeros((1, 1, 2)))
    wide = ref.gate(np.zeros((1, 1, 2, 3)), rate, np.zeros((2, 3)))
    np.testing.assert_allclose(wide[0, 0, :, 0], [-16 * math.log(2), -math.log(2)])
    with pytest.raises(ValueError, match="lower_bound -6"):
        ref.gate(a, rate, bias, lower_bound=-6.0)


@pytest.mark.parametrize("kept", [3, 4])
def test_short_conv_against_a_padded_convolution(kept):
    rng = np.random.default_rng(0)
    x, w, bias = rng.normal(size=(2, 6, 3)), rng.normal(size=(3, 4)), rng.normal(size=3)
    state = rng.normal(size=(2, 3, kept))
    y, final = ref.short_conv(x, w, bias, state=state, act="silu")
    for b in range(2):
        for d in range(3):
            line = np.concatenate([state[b, d], x[b, :, d]])
            total = np.convolve(line, w[d, ::-1], mode="valid")[-6:] + bias[d]
            np.testing.assert_allclose(y[b, :, d], total / (1 + np.exp(-total)), atol=1e-14)
            assert np.array_equal(final[b, d], line[-kept:])


def test_short_conv_step_by_step_and_packed():
    rng = np.random.default_rng(0)
    x, w, state = rng.normal(size=(1, 7, 3)), rng.normal(size=(3, 4)), rng.normal(size=(3, 3, 3))
    offsets = [0, 2, 2, 7]
    y, final = ref.short_conv(x, w, offsets=offsets, state=state)
    for n, (a, b) in enumerate(zip(offsets, offsets[1:])):
        S = state[n : n + 1]
        for t in range(a, b):
            y_t, S = ref.short_conv(x[:, t : t + 1], w, state=S)
            np.testing.assert_allclose(y[:, t : t + 1], y_t, atol=1e-15)
        assert np.array_equal(final[n : n + 1], S)


def test_gated_rms_norm():
    x, z, w = np.array([[3.0, 4.0]]), np.array([[0.5, -1.0]]), np.array([2.0, 3.0])
    y = ref.gated_rms_norm(x, z, w, eps=0.5)
    root = (12.5 + 0.5) ** 0.5
    expected = [3 / root * 2 * 0.5 / (1 + math.exp(-0.5)), 4 / root * 3 * -1 / (1 + math.e)]
    np.testing.assert_allclose(y[0], expected)


# number formats and error measures


def test_bf16_rounding_is_to_nearest_even():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 0x7F7FFFFF, size=20000, dtype=np.uint32) | (
        rng.integers(0, 2, size=20000, dtype=np.uint32) << np.uint32(31)
    )
    ties = (bits[:2000] & np.uint32(0xFFFF0000)) | np.uint32(0x8000)
    x = np.concatenate([bits, ties]).view(np.float32)
    got = ref.from_bf16_bits(ref.to_bf16_bits(x)).astype(np.float64)
    low_bits = x.view(np.uint32) & np.uint32(0xFFFF0000)
    down = low_bits.view(np.float32).astype(np.float64)
    up = (low_bits + np.uint32(0x10000)).view(np.float32).astype(np.float64)
    up = np.where(np.isinf(up), np.copysign(2.0**128, up), up)
    exact = x.astype(np.float64)
    odd = (low_bits >> np.uint32(16)) & np.uint32(1)
    take_up = (abs(up - exact) < abs(exact - down)) | ((abs(up - exact) == abs(exact - down)) & (odd == 1))
    expected = np.where(take_up, up, down)
    expected = np.where(abs(expected) >= 2.0**128, np.copysign(np.inf, expected), expected)
    assert np.array_equal(got, expected)


def test_bf16_special_values():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, 1e-45], np.float32)
    y = ref.from_bf16_bits(ref.to_bf16_bits(x))
    assert np.isnan(y[0])
    assert list(y[1:5]) == [np.inf, -np.inf, 0, 0]
    assert np.signbit(y[4])
    assert y[5] == np.inf
    assert y[6] == 0
    low_nan = np.array([0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(ref.from_bf16_bits(ref.to_bf16_bits(low_nan))).all()


def test_ratios_see_one_bad_block():
    r = np.random.default_rng(0).normal(size=(1, 64, 2, 8))
    x = r.copy()
    x[0, 16:32, 1] *= 1.018
    assert ref.block_ratio(x, r) == pytest.approx(0.018)
    assert ref.ratio(x, r) < 8e-3
    assert ref.block_ratio(r, r) == 0
    with pytest.raises(AssertionError, match="error of a block"):
        ref.check("o", x, r, "o", "bf16")


def test_ratio_of_a_small_block_uses_the_tensor():
    r = np.ones((1, 32, 1, 4))
    r[:, 16:] = 1e-6
    x = r.copy()
    x[:, 16:] = 2e-6
    assert ref.block_ratio(x, r) < 1e-5


def test_check_refuses_nan():
    r = np.ones((1, 4, 1, 2))
    x = r.copy()
    x[0, 0] = np.nan
    with pytest.raises(AssertionError, match="2 of 8 values are not finite"):
        ref.check("o", x, r, "o", "bf16")


# refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": (2, 11, 2, 7)}, "one shape"),
        ({"v": (2, 11, 3, 5)}, "Hv 3 is not a multiple of Hqk 2"),
        ({"gate": (2, 11, 4, 5)}, "gate has shape"),
        ({"beta": (2, 11, 2)}, "beta has shape"),
        ({"state": (3, 4, 5, 6)}, "state has shape"),
    ],
)
def test_refusals(change, message):
    x = inputs("gated_delta")
    x.update({name: np.zeros(shape) for name, shape in change.items()})
    with pytest.raises(ValueError, match=message):
        ref.recurrence(**x)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [([0, 4], "end at 4"), ([0, 7, 5, 11], "decrease from 7 to 5"), ([1, 11], "start at 1"), ([0], "1 entries")],
)
def test_bad_offsets(offsets, message):
    x = inputs("delta", B=1)
    x.pop("state")
    with pytest.raises(ValueError, match=message):
        ref.recurrence(**x, offsets=offsets)
    x = inputs("delta", B=2)
    with pytest.raises(ValueError, match="B = 1, but B = 2"):
        ref.recurrence(**x, offsets=[0, 11])


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ([0], "1 slots for 2 sequences"),
        ([0, 3], "slot 3 of sequence 1 is not in a pool of 3 states"),
        ([2, 2], "sequences 0 and 1 have the same slot 2"),
    ],
)
def test_bad_slots(slots, message):
    x = inputs("delta", B=2)
    x["state"] = np.zeros((3, *x["state"].shape[1:]))
    with pytest.raises(ValueError, match=message):
        ref.recurrence(**x, slots=slots)
    x.pop("state")
    with pytest.raises(ValueError, match="slots need a state"):
        ref.recurrence(**x, slots=[0, 1])
