# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of examples/teaching_layers.py equal their recurrence, whole and in pieces."""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("gdn_compile")


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).resolve().parents[2] / "examples" / "teaching_layers.py"
    spec = importlib.util.spec_from_file_location("teaching_layers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["DeltaLayer", "GatedDeltaLayer"])
def test_equals_the_recurrence(example, name):
    torch.manual_seed(0)
    with torch.no_grad():
        layer = getattr(example, name)(64, key_size=24)
        assert max(example.compare(layer)) <= 2e-5
        x = torch.randn(2, 30, 64)
        _, state = layer(x)
        assert state.shape == (2, 4, 16, 24)
