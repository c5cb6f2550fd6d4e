# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps in the launcher, without a device: which are encoded, when, and what a launch gets."""

import pytest

from fake_driver import FakeDriver, Foreign
from gdn import ManifestError, arrays, launch
from test_launch import MANIFEST, arguments, kernel


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(launch, "loaded_torch", lambda: None)
    monkeypatch.setattr(arrays, "loaded_torch", lambda: None)
    return FakeDriver()


MAP = {
    "tensor_map": {"argument": 0},
    "dtype": "bf16",
    "sizes": [8, ["dim", 0, 1], 2],
    "strides": [32, 16],
    "box": [16, 8, 1],
    "swizzle": 32,
}
WORKSPACE_MAP = {
    "tensor_map": {"buffer": 0},
    "dtype": "f32",
    "sizes": [4, ["ceildiv", ["dim", 0, 1], 16]],
    "strides": [16],
    "box": [4, 8],
    "swizzle": 64,
}


def with_maps(*entries, grid=1):
    return [dict(MANIFEST["launches"][1], grid=grid, parameters=[{"argument": 3}, *entries, {"scalar": 7}])]


def test_tensor_maps(fake):
    call, values = kernel(fake, launches=with_maps(MAP, WORKSPACE_MAP)), arguments(fake)
    call(**values)
    (launched,) = fake.launches
    q, workspace = values["q"].pointer, call._workspaces[(0, 0, 0)][0].pointer
    assert launched[-1] == [
        values["o"].pointer,
        (q, "bf16", (8, 40, 2), (32, 16), (16, 8, 1), 32),
        (workspace, "f32", (4, 3), (16,), (4, 8), 64),
        7,
    ]
    assert [about for about, _ in fake.encoded] == ["argument 'q' of forward", "workspace 0 of forward"]


def test_tensor_maps_are_kept_by_pointer_and_sizes(fake):
    call = kernel(fake, launches=with_maps(MAP))
    values, others, longer = arguments(fake), arguments(fake), arguments(fake, tokens=48)
    for each in (values, others, longer, values, others, longer):
        call(**each)
    assert len(fake.encoded) == 3
    expected = [values["q"].pointer, others["q"].pointer, longer["q"].pointer] * 2
    assert [launched[-1][1][0] for launched in fake.launches] == expected
    # The same memory with other sizes.
    call(**dict(arguments(fake, tokens=39), q=Foreign((1, 39, 2, 8), "<V2", values["q"].pointer)))
    assert fake.launches[-1][-1][1][:3] == (values["q"].pointer, "bf16", (8, 39, 2))


def test_not_all_tensor_maps_are_kept(fake, monkeypatch):
    monkeypatch.setattr(launch, "_KEPT_MAPS", 2)
    call = kernel(fake, launches=with_maps(MAP))
    first, second, third = arguments(fake), arguments(fake), arguments(fake)
    for each in (first, second, first, third, first, second):
        call(**each)
    # The third call put out the second's, which was used longest ago.
    assert len(fake.encoded) == 4
    assert len(call._maps) == 2


def test_empty_arrays_have_no_tensor_map(fake):
    call, values = kernel(fake, launches=with_maps(MAP)), arguments(fake, tokens=0)
    call(**values)
    assert fake.encoded == []
    assert fake.launches[0][-1][1] == bytes(128)


def test_tensor_map_needs_alignment_before_any_work(fake):
    call, values = kernel(fake, launches=with_maps(MAP)), arguments(fake)
    fake.memory[0x1008] = (0, b"")
    values["q"] = Foreign((1, 40, 2, 8), "<V2", pointer=0x1008)
    with pytest.raises(ValueError, match="argument 'q' lies at 0x1008; forward needs 16-byte alignment"):
        call(**values)
    assert fake.encoded == fake.launches == []


def test_tensor_map_of_too_large_an_array(fake):
    entry = dict(MAP, sizes=[8, ["mul", ["dim", 0, 1], 2**27], 2])
    with pytest.raises(ValueError, match="argument 'q' has a size of 5368709120; scan takes at most 4294967296"):
        kernel(fake, launches=with_maps(entry))(**arguments(fake))
    assert fake.launches == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"tensor_map": {"argument": 4}}, "uses argument 4"),
        ({"tensor_map": {"scalar": 4}}, "a tensor map of a scalar"),
        (dict(MAP, box=[8, 8]), "needs 2 to 5 sizes with a box and all but one stride"),
        (dict(MAP, strides=[32, 16, 16]), "needs 2 to 5 sizes with a box and all but one stride"),
        (dict(MAP, sizes=[8], box=[8], strides=[]), "needs 2 to 5 sizes with a box and all but one stride"),
        (dict(MAP, dtype="i32"), "a tensor map of i32 with a swizzle of 32 bytes"),
        (dict(MAP, swizzle=16), "a tensor map of bf16 with a swizzle of 16 bytes"),
        ({key: value for key, value in MAP.items() if key != "box"}, "malformed manifest"),
    ],
)
def test_bad_tensor_maps(fake, entry, message):
    with pytest.raises(ManifestError, match=message):
        kernel(fake, launches=with_maps(entry))
