# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The torch oracle of the device tests equals the numpy reference."""

import numpy as np
import pytest

from gdn import reference as ref
from test_reference import MODELS, inputs

torch = pytest.importorskip("torch", reason="torch is not installed")
oracle = pytest.importorskip("oracle_torch")


def on_torch(x):
    return {name: value if np.isscalar(value) else torch.from_numpy(np.array(value)) for name, value in x.items()}


@pytest.mark.parametrize("layout", ["v_first", "k_first"])
@pytest.mark.parametrize("model", MODELS)
def test_dense(model, layout):
    x = inputs(model)
    if layout == "k_first":
        x["state"] = x["state"].swapaxes(2, 3)
    expected = ref.recurrence(**x, state_layout=layout)
    for a, b in zip(oracle.recurrence(**on_torch(x), state_layout=layout), expected):
        np.testing.assert_allclose(a.numpy(), b, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_packed(model):
    x = inputs(model, B=1, T=9)
    x["state"] = np.random.default_rng(1).normal(size=(5, 4, 5, 6))
    x["offsets"] = np.array([0, 0, 3, 3, 9, 9])
    expected = ref.recurrence(**x)
    for a, b in zip(oracle.recurrence(**on_torch(x)), expected):
        np.testing.assert_allclose(a.numpy(), b, atol=1e-12)


def test_no_tokens():
    x = inputs("delta", T=0)
    o, S = oracle.recurrence(**on_torch(x))
    assert tuple(o.shape) == (2, 0, 4, 5)
    assert np.array_equal(S.numpy(), x["state"])


def test_error_measures():
    rng = np.random.default_rng(0)
    r = rng.normal(size=(2, 37, 3, 8))
    r[:, 16:32, 1] *= 1e-6
    x = r + 1e-2 * rng.normal(size=r.shape)
    xt, rt = torch.from_numpy(x), torch.from_numpy(r)
    assert oracle.ratio(xt, rt) == pytest.approx(ref.ratio(x, r), rel=1e-12)
    assert oracle.block_ratio(xt, rt) == pytest.approx(ref.block_ratio(x, r), rel=1e-12)
