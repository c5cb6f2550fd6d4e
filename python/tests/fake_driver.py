# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A driver that records calls, and arrays that only have addresses, for tests without a device."""

import contextlib
import ctypes

from gdn import CudaError
from gdn.driver import TensorMap


class FakeDriver:
    """Hands out addresses, keeps memory as bytes, and records what a launch got."""

    def __init__(self, devices=2, capability=(9, 0)):
        self.devices, self.sm = devices, capability
        self.next = 0x7F0000000000
        self.memory, self.freed, self.launches, self.waits, self.loaded = {}, [], [], [], []
        self.active, self.is_capturing, self.out_of_memory = [], False, False
        self.shared, self.overlapping = {}, []
        self.encoded, self.maps = [], {}

    def current_device(self):
        return self.active[-1] if self.active else 0

    def capability(self, device):
        return self.sm

    @contextlib.contextmanager
    def on(self, device):
        self.active.append(device)
        yield
        self.active.pop()

    def load(self, ptx, name):
        self.loaded.append((self.current_device(), ptx))
        return len(self.loaded)

    def unload(self, module):
        self.loaded[module - 1] = None

    def function(self, module, name):
        return (module, name)

    def allow_shared(self, function, size, name):
        self.shared[name] = size

    def launch(self, function, grid, block, shared, stream, parameters, name, overlaps=False):
        self.overlapping += [name] * overlaps
        values = []
        for i, value in enumerate(parameters.values):
            place = parameters._as_parameter_[i]
            if place == ctypes.addressof(parameters.values) + 8 * i:
                values.append(value)
            else:
                assert place % 64 == 0
                values.append(self.maps.get(place) or ctypes.string_at(place, 128))
        self.launches.append((self.current_device(), name, grid, block, shared, stream, values))

    def encode_tensor_map(self, layout, pointer, sizes, about):
        assert self.active and 0 not in sizes
        result = TensorMap()
        # Kept, so that no other map gets the address.
        self.encoded.append((about, result))
        self.maps[result.address] = (pointer, layout.dtype, sizes, layout.strides, layout.box, layout.swizzle)
        return result

    def allocate(self, size, about):
        if self.out_of_memory:
            raise CudaError(f"{about}, {size} bytes: cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY")
        assert size > 0
        self.next += 0x100000
        self.memory[self.next] = (self.current_device(), bytes(size))
        return self.next

    def free(self, pointer):
        del self.memory[pointer]
        self.freed.append(pointer)

    def read(self, pointer, size, stream):
        return self.memory[pointer][1][:size]

    def write(self, pointer, data, stream):
        self.memory[pointer] = (self.memory[pointer][0], data)

    def pointer_device(self, pointer):
        return self.memory[pointer][0]

    def capturing(self, stream):
        return self.is_capturing

    def wait(self, stream, other):
        self.waits.append((stream, other))


class Foreign:
    """An array of some other library, described by an interface dictionary."""

    def __init__(self, shape, typestr, pointer=0x1000, strides=None, readonly=False, stream=None):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, readonly),
            "strides": strides,
            "stream": stream,
            "version": 3,
        }


class OnTheHost:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, stream=None):
        raise AssertionError("must not be read")
