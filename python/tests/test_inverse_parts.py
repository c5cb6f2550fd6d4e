# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inverse of a chunk and what it is multiplied with in one 16-bit part, and in two where its entries are large.

Sequences whose middle chunk turns hard half-way (equal keys, beta up to 2): which rows are split, that
the split carries the digits, and that it is decided by no later token.
"""

import functools

import numpy as np
import pytest

import test_ptx
from cpu_support import host_library, merge, read, store
from gdn import build, reference

T, C, HQK, HV, K, V = 150, 64, 1, 2, 64, 64
MODELS = {
    "gated_delta": {"gate": "head", "beta": True},
    "delta": {"beta": True},
    "kda": {"gate": "channel", "beta": True},
}
# The hard tokens, their beta in the first head (none: in 0..2), how far their keys lie around a vector, and the limits
# of o, of o with a gate per channel, where P has no second part, and of the state.
HARD = slice(64 + 37, 128)
FAMILIES = {
    "none": (slice(0, 0), 0.0, 0.0, 3.8e-3, 4e-3, 3.5e-3),
    "equal keys from there on": (HARD, 1.9, 0.0, 3.3e-3, 3.8e-3, 1.9e-3),
    "beta in 0..2 from there on": (HARD, None, 1e3, 3.2e-3, 3.8e-3, 2.2e-3),
    # Entries of the inverse are small everywhere.
    "one beta of 1.5": (slice(127, 128), 1.5, 1e3, 3.8e-3, 4e-3, 3.5e-3),
    "beta in 0..2": (slice(0, T), None, 1e3, 2.4e-3, 3.5e-3, 1.8e-3),
    "all keys equal, beta 1": (slice(0, T), 1.0, 0.0, 2.8e-3, 3.9e-3, 3e-3),
    "all keys equal, beta 1.9": (slice(0, T), 1.9, 0.0, 2.5e-3, 3.8e-3, 9e-4),
    "near keys, beta 0.99": (slice(0, T), 0.99, 0.05, 2.4e-3, 4.4e-3, 8e-4),
    "near keys, beta 1.9": (slice(0, T), 1.9, 0.3, 2.5e-3, 3.8e-3, 2.4e-3),
    # Entries of 0.6, and of 0.42 and of 0.38: on both sides of the limit, and near it.
    "all keys equal, beta 0.6": (slice(0, T), 0.6, 0.0, 3.3e-3, 4.3e-3, 2.8e-3),
    "all keys equal, beta 0.42": (slice(0, T), 0.42, 0.0, 3.7e-3, 5e-3, 3e-3),
    "all keys equal, beta 0.38": (slice(0, T), 0.38, 0.0, 1.9e-2, 1.9e-2, 1.8e-2),
}


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def problem(family, model, seed=0):
    """Weak gates and beta up to 0.5, but for the hard tokens; the second head has beta 0.1 there."""
    tokens, beta, spread = FAMILIES[family][:3]
    rng = np.random.default_rng(seed)
    k = unit(rng.standard_normal((1, T, HQK, K)))
    center = unit(rng.standard_normal((1, 1, HQK, K)))
    betas = rng.uniform(0, 0.5, (1, T, HV))
    gate = -0.01 * rng.random((1, T, HV))
    k[:, tokens] = unit(center + spread * k[:, tokens] * np.sqrt(K))
    if beta is None:
        betas[:, tokens] *= (4, 1)
    else:
        betas[:, tokens] = (beta, 0.1)
    gate[:, tokens] = 0
    x = {
        "q": store(unit(rng.standard_normal((1, T, HQK, K))), "bf16"),
        "k": store(k, "bf16"),
        "v": store(rng.standard_normal((1, T, HV, V)), "bf16"),
    }
    if model != "delta":
        x["gate"] = store(np.repeat(gate[..., None], K, -1) if model == "kda" else gate, "f32")
    x["beta"] = store(betas, "f32")
    x["state"] = store(np.zeros((1, HV, V, K)), "f32")
    return x


def expected(x):
    return reference.recurrence(**{n: read(a, "bf16" if n in "qkv" else "f32") for n, a in x.items()})


def split_rows(x):
    """[Hv, chunks, C]: from the first row of (I + strictlower(k_i.k_j beta_j))^-1 on with an entry above 0.4 below the
    diagonal, or a beta above 1."""
    k, beta = read(x["k"], "bf16")[0, :, 0], read(x["beta"], "f32")[0]
    rows = np.zeros((HV, -(-T // C), C), bool)
    for head in range(HV):
        for chunk, first in enumerate(range(0, T, C)):
            part = k[first : first + C]
            lower = np.tril((part @ part.T) * beta[first : first + C, head], -1)
            inverse = np.tril(np.linalg.inv(np.eye(len(part)) + lower), -1)
            rows[head, chunk, : len(part)] = (np.abs(inverse).max(1) > 0.4) | (beta[first : first + C, head] > 1)
    return np.logical_or.accumulate(rows, 2)


def text(model, phases="split"):
    schedule = build.schedule(phases, C, 64, 2)
    return build.recurrence(1, T, HQK, HV, K, V, schedule=schedule, name=model, **MODELS[model])


@functools.cache
def library(path, phases="split"):
    models = [model for model in MODELS if phases == "split" or model != "kda"]
    return host_library(merge([text(model, phases) for model in models]), path)


def run(model, x, path="tile", phases="split"):
    """o, as stored, and the final state."""
    operands = {name: array.copy() for name, array in x.items()}
    state = operands.pop("state")
    o = store(np.full((1, T, HV, V), np.nan), "bf16")
    library(path, phases)(model, [*operands.values(), o, state])
    return o, state


def relative(got, want):
    return np.linalg.norm(got - want) / np.linalg.norm(want)


@pytest.mark.parametrize("path", ("tile", "rotated-tile"))
@pytest.mark.parametrize("model", MODELS)
def test_errors(model, path):
    for family, (*_, limit_o, limit_kda, limit_state) in FAMILIES.items():
        x = problem(family, model)
        o, state = run(model, x, path)
        want_o, want_state = expected(x)
        assert relative(read(o, "bf16"), want_o) <= (limit_kda if model == "kda" else limit_o), family
        assert relative(state, want_state) <= limit_state, family


@pytest.mark.parametrize("model", ("gated_delta", "delta"))
def test_one_kernel_computes_the_same_bits(model):
    """T and P made in the kernel of the scan, with and without split rows."""
    for family in FAMILIES:
        x = problem(family, model)
        for split, fused in zip(run(model, x), run(model, x, phases="fused")):
            assert np.array_equal(split, fused), family


@pytest.mark.parametrize("changed", (64 + 40, 64 + 50, 64 + 63))
@pytest.mark.parametrize("model", MODELS)
def test_later_tokens_change_no_bit(model, changed):
    """The chunk gets its first split row, or loses all behind some."""
    easy = problem("none", model)
    hard = [problem(f"{what} from there on", model) for what in ("equal keys", "beta in 0..2")]
    for before, after in ((easy, hard[0]), (hard[0], easy), (easy, hard[1]), (hard[1], easy)):
        mixed = {name: array.copy() for name, array in before.items()}
        for name in ("k", "beta") + (("gate",) if model != "delta" else ()):
            mixed[name][:, changed:] = after[name][:, changed:]
        o, mixed_o = run(model, before)[0], run(model, mixed)[0]
        assert np.array_equal(o[:, :changed], mixed_o[:, :changed])
        assert not np.array_equal(o[:, changed:], mixed_o[:, changed:])


@pytest.mark.parametrize(("beta", "is_split"), ((0.42, True), (0.38, False)))
def test_which_rows_are_split(beta, is_split):
    """Those behind one with an entry above 0.4, by the machine code."""
    x = problem(f"all keys equal, beta {beta}", "gated_delta")
    *_, gates = prepared("gated_delta", x)
    rows = split_rows(x).swapaxes(0, 1)
    assert rows.any() == is_split
    assert np.array_equal(gates[:, :, -8], rows.sum(2))


def unpacked(rows):
    """Matrices of their matrices of 8x8 on and below the diagonal, as rows of eight n, with NaN above (as bits,
    0xFFFF): one column of blocks of 16x16 after the other, of each eight n first k from 8 to 15, then from 0 to 7."""
    matrices = np.full((*rows.shape[:-2], C, C), 0xFFFF, np.uint16)
    places = [(n, k + half) for k in range(0, C, 16) for n in range(k, C, 8) for half in (8, 0) if k + half <= n]
    assert rows.shape[-2:] == (8 * len(places), 8)
    for number, (n, k) in enumerate(places):
        matrix = rows[..., 8 * number : 8 * number + 8, :]
        matrices[..., n : n + 8, k : k + 8] = np.swapaxes(matrix, -1, -2)
    return matrices


def prepared(model, x):
    """The workspaces of N, in its parts, and of the factors."""
    operands = {name: array.copy() for name, array in x.items()}
    state = operands.pop("state")
    o = store(np.full((1, T, HV, V), np.nan), "bf16")
    buffers = test_ptx.run(text(model), [*operands.values(), o, state])
    inverse = unpacked(next(b for b in buffers if b.ndim == 5).view(np.uint16))
    return inverse, next(b for b in buffers if b.ndim == 3 and b.shape[2] % C == 8).view(np.float32)


@pytest.mark.parametrize("family", ("equal keys from there on", "one beta of 1.5"))
@pytest.mark.parametrize("model", ("gated_delta", "kda"))
def test_what_prepare_writes(model, family):
    """In the machine code: beta, how many rows are split, and the second part only of chunks that have some."""
    x = problem(family, model)
    inverse, gates = prepared(model, x)
    rows = split_rows(x).swapaxes(0, 1)
    assert np.array_equal(rows.any(2), [[False, False], [True, False], [False, False]])
    assert np.array_equal(gates[:, :, -8:], np.repeat(rows.sum(2)[..., None], 8, -1))
    betas = np.pad(read(x["beta"], "f32")[0], ((0, 3 * C - T), (0, 0))).reshape(3, C, HV)
    assert np.array_equal(gates[:, :, -C - 8 : -8], betas.swapaxes(1, 2))
    low = read(inverse[:, :, 1], "bf16")
    assert np.all(inverse[:, :, 1][~rows.any(2)] == 0xFFFF), "the second part of a chunk without split rows"
    stored = np.kron(np.tri(C // 8), np.ones((8, 8))) == 1
    assert np.array_equal(np.isfinite(low[1, 0]), stored) and np.all(low[1, 0][~rows[1, 0]][stored[~rows[1, 0]]] == 0)
    assert np.any(low[1, 0][rows[1, 0]][stored[rows[1, 0]]] != 0)
    high = read(inverse[:, :, 0], "bf16")
    assert np.array_equal(np.isfinite(high[0, 0]), stored)
    assert np.all(np.triu(high)[..., stored] == 0), "N is strictly lower triangular"
