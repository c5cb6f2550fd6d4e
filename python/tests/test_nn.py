# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixers of gdn.nn on the CPU back end against the float64 model, in every way of feeding them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gdn import nn, reference  # noqa: E402
from gdn.export import geometry, parameter_names  # noqa: E402
from mixer_model import model  # noqa: E402

pytestmark = pytest.mark.usefixtures("gdn_compile")

HIDDEN = 32
MIXERS = {
    "gated_delta_net": lambda: nn.GatedDeltaNet(HIDDEN, 1, 16, num_v_heads=2, head_v_dim=24, allow_neg_eigval=True),
    "plain_norm": lambda: nn.GatedDeltaNet(HIDDEN, 2, 16, use_gate=False, conv_size=3),
    "kimi": lambda: nn.KimiDeltaAttention(HIDDEN, 2, 16),
    "bounded": lambda: nn.KimiDeltaAttention(HIDDEN, 1, 16, num_v_heads=2, lower_bound=-5.0),
    "delta_net": lambda: nn.DeltaNet(HIDDEN, 2, use_gate=True),
}
LIMIT = 2e-5


@pytest.fixture(params=MIXERS)
def mixer(request):
    torch.manual_seed(3)
    return MIXERS[request.param]().requires_grad_(False)


def empty(g, B):
    conv = {part: np.zeros((B, size, g.taps - 1)) for part, size in (("q", g.keys), ("k", g.keys), ("v", g.values))}
    return conv, np.zeros((B, g.value_heads, g.V, g.K))


def expect(mixer, x):
    """Output and final recurrent state of the float64 model from empty sequences."""
    g, values = geometry(mixer), mixer.state_dict()
    p = {name: values[name].double().numpy() for name in parameter_names(mixer)}
    for name in p:
        if "conv1d" in name:
            p[name] = p[name][:, 0]
    if g.gate == "channel":
        p["dt_bias"] = p["dt_bias"].reshape(g.value_heads, g.K)
    y, _, state = model(g, x.double().numpy(), p, *empty(g, x.shape[0]))
    return y, state


def close(mine, value):
    assert np.linalg.norm(mine.numpy() - value) <= LIMIT * np.linalg.norm(value)


def test_whole_sequences(mixer):
    x = torch.randn(2, 70, HIDDEN)
    close(mixer(x), expect(mixer, x)[0])


def test_pieces_and_single_tokens_continue_the_cache(mixer):
    x = torch.randn(2, 77, HIDDEN)
    y, state = expect(mixer, x)
    cache = mixer.new_cache(2)
    places = [tensor.data_ptr() for tensor in (*cache.conv, cache.recurrent)]
    parts = [mixer(x[:, a:b], cache) for a, b in ((0, 1), (1, 66), (66, 74), (74, 75), (75, 76), (76, 77))]
    close(torch.cat(parts, dim=1), y)
    close(cache.recurrent, state)
    assert places == [tensor.data_ptr() for tensor in (*cache.conv, cache.recurrent)]


def test_states_in_bfloat16(mixer):
    x = torch.randn(2, 40, HIDDEN)
    y, _ = expect(mixer, x)
    cache = mixer.new_cache(2, state_dtype=torch.bfloat16)
    got = torch.cat([mixer(x[:, a:b], cache) for a, b in ((0, 35), (35, 36), (36, 40))], dim=1)
    assert cache.recurrent.dtype == torch.bfloat16
    assert np.linalg.norm(got.numpy() - y) <= 1e-2 * np.linalg.norm(y)


def test_rejected_tokens_leave_no_trace(mixer):
    x = torch.randn(3, 20, HIDDEN)
    tries = torch.randn(3, 4, HIDDEN)
    cache = mixer.new_cache(3)
    mixer(x, cache)
    before = cache.clone()
    tried = mixer.verify(tries, cache)
    for mine, theirs in zip((*cache.conv, cache.recurrent), (*before.conv, before.recurrent)):
        assert torch.equal(mine, theirs)
    counts = torch.tensor([0, 4, 2])
    cache.accept(counts)
    for n, count in enumerate(counts.tolist()):
        row = torch.cat([x[n], tries[n, :count]])[None]
        follow = torch.randn(1, 1, HIDDEN)
        y, state = expect(mixer, torch.cat([row, follow], dim=1))
        if count:
            close(tried[n : n + 1, :count], y[:, 20 : 20 + count])
        one = mixer.new_cache(1)
        for mine, theirs in zip((*one.conv, one.recurrent), (*cache.conv, cache.recurrent)):
            mine.copy_(theirs[n : n + 1])
        close(mixer(follow, one), y[:, -1:])
        close(one.recurrent, state)
    with pytest.raises(RuntimeError, match="needs a verify"):
        cache.accept(1)


def test_one_count_for_all_sequences(mixer):
    """As a number: from none to all of the tokens, and nothing beyond."""
    x, tries = torch.randn(2, 5, HIDDEN), torch.randn(2, 3, HIDDEN)
    for count in (0, 3):
        by_number, by_tensor = mixer.new_cache(2), mixer.new_cache(2)
        for cache in (by_number, by_tensor):
            mixer(x, cache)
            mixer.verify(tries, cache)
        for wrong in (-1, 4):
            with pytest.raises(ValueError, match=rf"accept\({wrong}\): the last verify\(\) tried 3 tokens"):
                by_number.accept(wrong)
        by_number.accept(count)
        by_tensor.accept(torch.full((2,), count))
        for mine, theirs in zip((*by_number.conv, by_number.recurrent), (*by_tensor.conv, by_tensor.recurrent)):
            assert torch.equal(mine, theirs)


def test_packed_documents_do_not_see_each_other(mixer):
    starts = [0, 5, 5, 70, 71]
    x = torch.randn(1, starts[-1], HIDDEN)
    cache = mixer.new_cache(len(starts) - 1)
    y = mixer(x, cache, cu_seqlens=torch.tensor(starts, dtype=torch.int32))
    for n, (a, b) in enumerate(zip(starts, starts[1:])):
        if a < b:
            expected, state = expect(mixer, x[:, a:b])
            close(y[:, a:b], expected)
            close(cache.recurrent[n : n + 1], state)
        else:
            assert not cache.recurrent[n].any()


def same_states(mine, other):
    for x, y in zip((*mine.conv, mine.recurrent), (*other.conv, other.recurrent)):
        assert torch.allclose(x, y, atol=2e-5)


PADDING = {"left": [range(9)], "right": [range(29, 33)], "hole": [range(5), range(17, 20)], "all": [range(33)]}


@pytest.mark.parametrize("kind", PADDING)
def test_d23_padding(mixer, kind):
    """Wherever padding stands, whatever is there: the rest and the states are as without it."""
    x, mask = torch.randn(3, 33, HIDDEN), torch.ones(3, 33, dtype=torch.long)
    for place in PADDING[kind]:
        mask[1, list(place)] = 0
    valid = mask[1].bool()
    padded, plain, alone = mixer.new_cache(3), mixer.new_cache(3), mixer.new_cache(1)
    start = torch.randn(3, 6, HIDDEN)
    for cache, rows in ((padded, start), (plain, start), (alone, start[1:2])):
        mixer(rows, cache)
    want = mixer(x, plain)
    if valid.any():
        want[1:2, valid] = mixer(x[1:2, valid], alone)
    want[1, ~valid] = 0
    for mine, row in zip((*plain.conv, plain.recurrent), (*alone.conv, alone.recurrent)):
        mine[1] = row[0]
    x[1, ~valid] = 1e4
    y = mixer(x, padded, attention_mask=mask)
    assert torch.allclose(y, want, atol=2e-5) and not y[1, ~valid].any()
    same_states(padded, plain)
    empty_start = mixer(x, attention_mask=mask)
    assert torch.allclose(empty_start[::2], mixer(x[::2]), atol=2e-5)


def test_d23_a_step_of_some_rows(mixer):
    """A token that is padding leaves its row's states alone."""
    start, x, mask = torch.randn(2, 6, HIDDEN), torch.randn(2, 1, HIDDEN), torch.ones(2, 7)
    mask[0, -1] = 0
    padded, plain = mixer.new_cache(2), mixer.new_cache(2)
    for cache in (padded, plain):
        mixer(start, cache)
    before = plain.clone()
    want = mixer(x, plain)
    y = mixer(x, padded, attention_mask=mask)
    assert torch.allclose(y[1], want[1], atol=2e-5) and not y[0].any()
    states = ((*cache.conv, cache.recurrent) for cache in (padded, before, plain))
    for mine, kept, moved in zip(*states):
        assert torch.equal(mine[0], kept[0]) and torch.allclose(mine[1], moved[1], atol=2e-5)


@pytest.mark.parametrize("kind", ["gated_delta_net", "mamba2"])
def test_padding_with_a_bias_in_the_convolution(kind):
    """What the bias makes of padding stays out of the states."""
    torch.manual_seed(3)
    mixer = (
        nn.GatedDeltaNet(HIDDEN, 1, 16, num_v_heads=2, conv_bias=True)
        if kind == "gated_delta_net"
        else nn.Mamba2Mixer(HIDDEN, state_size=16, head_dim=16)
    ).requires_grad_(False)
    x, mask = torch.randn(1, 33, HIDDEN), torch.ones(1, 33)
    mask[:, :9], mask[:, 20:23] = 0, 0
    padded, plain = mixer.new_cache(1), mixer.new_cache(1)
    valid = mask[0].bool()
    y = mixer(x, padded, attention_mask=mask)
    assert torch.allclose(y[:, valid], mixer(x[:, valid], plain), atol=1e-5)
    same_states(padded, plain)


def test_beams_swap_their_states(mixer):
    x = torch.randn(2, 8, HIDDEN)
    cache = mixer.new_cache(2)
    mixer(x, cache)
    swapped = cache.clone().reorder(torch.tensor([1, 0]))
    assert torch.equal(swapped.recurrent[0], cache.recurrent[1])
    assert all(torch.equal(a[0], b[1]) for a, b in zip(swapped.conv, cache.conv))


def test_bfloat16(mixer):
    mixer = mixer.to(torch.bfloat16)
    for name in ("A_log", "dt_bias"):
        if hasattr(mixer, name):
            setattr(mixer, name, torch.nn.Parameter(getattr(mixer, name).float(), requires_grad=False))
    x = torch.randn(2, 70, HIDDEN).bfloat16()
    y, _ = expect(mixer, x)
    assert np.linalg.norm(mixer(x).float().numpy() - y) <= 2e-2 * np.linalg.norm(y)


def test_refusals(mixer):
    x = torch.randn(2, 5, HIDDEN)
    with pytest.raises(ValueError, match=r"takes \[B, T, 32\]"):
        mixer(x[..., :31])
    with pytest.raises(ValueError, match="holds 3 sequences, the call has 2"):
        mixer(x, mixer.new_cache(3))
    with pytest.raises(ValueError, match="need B = 1"):
        mixer(x, cu_seqlens=torch.tensor([0, 5]))
    mixer.requires_grad_(True)
    with pytest.raises(RuntimeError, match="no backward"):
        mixer(x)
    with torch.no_grad():
        mixer(x)


def mamba2(mixer, u):
    """Mamba-2 in float64, token by token."""
    p = {name: value.double().numpy() for name, value in mixer.state_dict().items()}
    u = u.double().numpy()
    inner, groups, N = mixer.inner_size, mixer.n_groups, mixer.state_size
    z, xBC, dt = np.split(u @ p["in_proj.weight"].T, [inner, 2 * inner + 2 * groups * N], axis=-1)
    xBC, _ = reference.short_conv(xBC, p["conv1d.weight"][:, 0], p["conv1d.bias"], act="silu")
    x, B, C = np.split(xBC, [inner, inner + groups * N], axis=-1)
    dt = reference.softplus(dt + p["dt_bias"])
    shape = (*u.shape[:2], groups, N)
    x = x.reshape(*u.shape[:2], mixer.num_heads, mixer.head_dim)
    gate = -np.exp(p["A_log"]) * dt
    y, state = reference.recurrence(C.reshape(shape), B.reshape(shape), x * dt[..., None], gate=gate, scale=1.0)
    y = (y + p["D"][:, None] * x).reshape(z.shape) * reference.activation(z, "silu")
    y = y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + mixer.norm_eps) * p["norm.weight"]
    return y @ p["out_proj.weight"].T, state


def test_mamba2():
    torch.manual_seed(5)
    mixer = nn.Mamba2Mixer(HIDDEN, state_size=16, head_dim=16, n_groups=2).requires_grad_(False)
    u = torch.randn(2, 40, HIDDEN)
    y, state = mamba2(mixer, u)
    close(mixer(u), y)
    cache = mixer.new_cache(2)
    close(torch.cat([mixer(u[:, :39], cache), mixer(u[:, 39:], cache)], dim=1), y)
    close(cache.recurrent, state)
