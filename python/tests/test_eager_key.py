# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls are taken for the same one, so that the checks of the first stand for all of them."""

import contextlib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from gdn import arrays, eager  # noqa: E402
from gdn.checks import Call  # noqa: E402


class OnDevice:
    """What the key reads of a CUDA tensor."""

    def __init__(self, shape, dtype="bf16", device="cuda:0", stride=None, pointer=0x1000, cuda=True, gradient=False):
        self.shape, self.dtype, self.device, self.is_cuda = shape, dtype, device, cuda
        self.requires_grad, self._stride, self._pointer = gradient, stride, pointer

    def is_contiguous(self):
        return self._stride is None

    def stride(self):
        return self._stride

    def data_ptr(self):
        return self._pointer


@pytest.fixture(autouse=True)
def without_a_device(monkeypatch):
    monkeypatch.setattr(eager, "_Tensor", OnDevice)
    monkeypatch.setattr(arrays, "same_memory", lambda a, b: a.data_ptr() == b.data_ptr())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)


def key(wanted=True, options=None, **tensors):
    fields = dict.fromkeys(Call._fields)
    for name in "qkv":
        fields[name] = OnDevice((1, 40, 2, 8))
    fields.update(initial_state=OnDevice((1, 2, 8, 8), "f32", pointer=0x2000), scale=0.125)
    fields.update(tensors)
    fields.update(options or {})
    return eager.key_of(list(fields.values()), wanted)


def test_equal_calls_have_one_key():
    assert key() == key() and hash(key()) == hash(key())
    # Contents and addresses are not part of it.
    assert key(q=OnDevice((1, 40, 2, 8), pointer=0x9000)) == key()


STATE = (1, 2, 8, 8)
OTHERS = {
    "shape": dict(v=OnDevice((1, 40, 4, 8))),
    "element type": dict(v=OnDevice((1, 40, 2, 8), "f16")),
    "strides": dict(v=OnDevice((1, 40, 2, 8), stride=(1280, 32, 16, 1))),
    "other strides": dict(v=OnDevice((1, 40, 2, 8), stride=(1280, 32, 8, 1))),
    "alignment of a view": dict(v=OnDevice((1, 40, 2, 8), stride=(1280, 32, 16, 1), pointer=0x1008)),
    "scale": dict(options={"scale": 0.25}),
    "no initial state": dict(initial_state=None),
    "a final state elsewhere": dict(final_state=OnDevice(STATE, "f32", pointer=0x3000)),
    "a final state in place": dict(final_state=OnDevice(STATE, "f32", pointer=0x2000)),
    "the final state is not wanted": dict(wanted=False),
    "all on another device": {
        **{name: OnDevice((1, 40, 2, 8), device="cuda:1") for name in "qkv"},
        "initial_state": OnDevice(STATE, "f32", device="cuda:1"),
    },
}


def test_other_calls_have_other_keys():
    keys = [key(), *(key(**change) for change in OTHERS.values())]
    assert None not in keys and len(set(keys)) == len(keys)


def test_what_is_not_for_this_path():
    assert key(v=OnDevice((1, 40, 2, 8), cuda=False)) is None
    assert key(v=OnDevice((1, 40, 2, 8), device="cuda:1")) is None
    assert key(v=object()) is None
    assert key(options={"scale": OnDevice(())}) is None
    gradient = OnDevice((1, 40, 2, 8), gradient=True)
    assert key(v=gradient) is None
    with torch.no_grad():
        assert key(v=gradient) is not None


def test_not_under_autocast(monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    assert key() is None


def test_destinations_are_checked_for_overlaps(monkeypatch):
    """Of each call: which memory they share is no part of the key."""
    checked = []
    monkeypatch.setattr(eager.backend, "check_overlap", checked.append)

    class Entry:
        o_shape, o_dtype, device = (1,), torch.float32, "cpu"
        checkpoint_shape, state_shape, sources, slices = None, None, (), ()
        launcher = staticmethod(lambda pointers: contextlib.nullcontext())

    fields = [None] * len(Call._fields)
    eager.run(Entry, fields)
    assert not checked
    for name in ("out", "final_state", "checkpoints"):
        given = list(fields)
        given[Call._fields.index(name)] = torch.zeros(1)
        eager.run(Entry, given)
    assert len(checked) == 3
