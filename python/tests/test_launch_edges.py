# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launcher at the edges of what it keeps, accepts and refuses; without a device."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from fake_driver import FakeDriver, Foreign
from gdn import CudaError, arrays, launch
from test_launch import MANIFEST, arguments, kernel


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(launch, "loaded_torch", lambda: None)
    monkeypatch.setattr(arrays, "loaded_torch", lambda: None)
    return FakeDriver()


# A launch that needs no workspace.
NO_BUFFERS = [
    dict(
        MANIFEST["launches"][0],
        parameters=[{"argument": 0}, {"scalar": ["dim", 0, 1], "dtype": "i64"}],
    )
]


def foreign(fake, pointer=0x1000, shape=(1, 40, 4), typestr="<f4"):
    fake.memory[pointer] = (0, b"")
    return Foreign(shape, typestr, pointer=pointer)


def test_own_workspace_of_another_device(fake):
    k, values = kernel(fake), arguments(fake)
    other = arrays.DeviceArray((12,), "f32", 1, fake)
    with pytest.raises(ValueError, match="workspace 0 of forward is not on device 0"):
        k(**values, workspaces=[other, None])
    assert fake.launches == []


def test_same_addresses_with_other_sizes_or_another_stream(fake):
    """What was prepared for a call holds its grid, its scalars and its stream."""
    k, values = kernel(fake, results=[{"argument": 3}], buffers=[], launches=NO_BUFFERS), arguments(fake)
    k(**values, stream=5)
    k(**values, stream=6)
    types = {"q": "<V2", "gate": "<f4", "o": "<V2"}
    for name, typestr in types.items():
        x = values[name]
        values[name] = foreign(fake, pointer=x.pointer, shape=(1, 16, *x.shape[2:]), typestr=typestr)
        types[name] = x  # kept
    k(**values, stream=6)
    assert [(grid, stream, values[1]) for _, _, grid, _, _, stream, values in fake.launches] == [
        (3, 5, 40),
        (3, 6, 40),
        (1, 6, 16),
    ]


def test_shared_memory_above_the_default_is_asked_for(fake):
    sizes = {"least": 48 * 1024, "more": 48 * 1024 + 16}
    launches = [dict(NO_BUFFERS[0], kernel=name, shared=size) for name, size in sizes.items()]
    kernel(fake, results=[{"argument": 3}], buffers=[], launches=launches)(**arguments(fake))
    assert fake.shared == {"more": 48 * 1024 + 16}


def test_an_empty_array_may_lie_anywhere(fake):
    values = arguments(fake, tokens=0)
    values["gate"] = foreign(fake, shape=(1, 0, 4), pointer=0x1004)
    kernel(fake)(**values)
    assert [entry[1] for entry in fake.launches] == ["scan"]


def test_a_destination_may_touch_an_input(fake):
    """o ends where q begins, and begins where the gates end."""
    values = arguments(fake)
    values["gate"] = foreign(fake, pointer=0x10000)
    values["o"] = foreign(fake, pointer=0x10000 + 640, shape=(1, 40, 2, 8), typestr="<V2")
    values["q"] = foreign(fake, pointer=0x10000 + 640 + 1280, shape=(1, 40, 2, 8), typestr="<V2")
    kernel(fake)(**values)
    assert len(fake.launches) == 2


def test_devices_that_run_a_target(fake):
    """Newer devices run what is compiled for an older one, but not what is for one alone."""
    fake.sm = (10, 0)
    with pytest.raises(CudaError, match="compiled for sm_90a, but device 0 has compute capability 10.0"):
        kernel(fake)(**arguments(fake))
    assert fake.launches == []
    kernel(fake, target="sm_89")(**arguments(fake))
    assert len(fake.launches) == 2


def test_offsets_of_an_empty_sequence_are_valid(fake):
    values = arguments(fake)
    fake.write(values["offsets"].pointer, struct.pack("<4i", 0, 20, 20, 40), 0)
    kernel(fake)(**values, validate=True)
    assert len(fake.launches) == 2


# Arrays that outlive the module they are of: the holder's names are cleared last, as it comes first in sys.modules.
AT_EXIT = """
import ctypes, sys, types
holder = sys.modules["holder"] = types.ModuleType("holder")
from fake_driver import FakeDriver
from gdn import arrays
driver = FakeDriver()
early, holder.late, holder.exported = (arrays.DeviceArray((3, 4), "f32", 0, driver) for _ in range(3))
holder.capsule = holder.exported.__dlpack__()
for module in (holder, arrays):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
del early
assert len(driver.freed) == 1
"""


def test_arrays_at_the_end_of_the_interpreter():
    tests = Path(__file__).resolve().parent
    path = os.pathsep.join(map(str, (tests, tests.parent)))
    command = [sys.executable, "-c", AT_EXIT]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
