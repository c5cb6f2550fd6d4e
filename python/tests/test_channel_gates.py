# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gates per key channel from none to -inf, run by ptx_machine: blocks of 16 tokens and their anchors.

Whole and partial chunks of 64 tokens, with the channels in one piece and in several.
"""

import numpy as np
import pytest

import test_ptx
from cpu_support import read, store
from gdn import build, reference

T, V = 70, 16
# One piece with a rest of 16 channels; three pieces, the last one padded.
KEYS = (48, 140)


def gates(name, rng, K):
    """Natural logarithms [T, K]."""
    g = -np.log1p(np.exp(-rng.standard_normal((T, K))))
    if name == "none":
        return 0 * g
    if name == "weak":
        return 0.01 * g
    if name == "bounded":  # 115 powers of two in a block
        return np.full((T, K), -5.0)
    if name == "strong":  # every block out of range in some channel, none in others
        return g * np.where(np.arange(K) % 2, 100.0, 0.01)
    if name == "late":  # out of range from the middle of a block on
        return np.where(np.arange(T)[:, None] % 16 < 9, 0.01, 60.0) * g
    if name == "resets":
        return np.where(rng.random((T, 1)) < 0.1, -np.inf, 0.01 * g)
    assert name == "growth"  # slightly above zero: computed, not clamped
    return 0.02 * rng.standard_normal((T, K))


def problem(name, K, dtype, seed=0):
    rng = np.random.default_rng(seed)

    def unit(shape):
        x = rng.standard_normal(shape)
        return x / np.sqrt((x * x).sum(-1, keepdims=True))

    return {
        "q": store(unit((1, T, 1, K)), dtype),
        "k": store(unit((1, T, 1, K)), dtype),
        "v": store(rng.standard_normal((1, T, 1, V)), dtype),
        "gate": store(gates(name, rng, K)[None, :, None], "f32"),
        "beta": store(rng.uniform(0, 1, (1, T, 1)), "f32"),
        "state": store(rng.standard_normal((1, 1, V, K)), "f32"),
    }


def run(x, K, dtype):
    """o and the final state as they are stored."""
    operands = {key: value.copy() for key, value in x.items()}
    state = operands.pop("state")
    o = store(np.full((1, T, 1, V), np.nan), dtype)
    text = build.recurrence(
        1, T, 1, 1, K, V, dtype=dtype, gate="channel", beta=True, schedule=build.schedule("split", 64, 16)
    )
    test_ptx.run(text, [*operands.values(), o, state])
    return o, state


@pytest.mark.parametrize("K", KEYS)
@pytest.mark.parametrize("name", ("none", "weak", "bounded", "strong", "late", "resets", "growth"))
def test_gates(name, K):
    x = problem(name, K, "bf16")
    o, state = run(x, K, "bf16")
    wide = {key: read(value, "f32" if key in ("gate", "beta", "state") else "bf16") for key, value in x.items()}
    want_o, want_state = reference.recurrence(**wide)
    reference.check("o", read(o, "bf16"), want_o, "o", "bf16")
    reference.check("state", read(state, "f32"), want_state, "state", "bf16", tokens=False)


@pytest.mark.parametrize("name", ("weak", "strong"))
def test_no_later_token_matters(name):
    """A gate that puts its block out of range changes no bit of the rows in front."""
    x = problem(name, 48, "bf16")
    before, _ = run(x, 48, "bf16")
    changed = 41
    x["gate"] = x["gate"].copy()
    x["gate"][0, changed, 0] = store(np.full(48, -np.inf), "f32")
    after, _ = run(x, 48, "bf16")
    assert np.array_equal(before[0, :changed], after[0, :changed])
    assert not np.array_equal(before[0, changed:], after[0, changed:])
