# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions on the host, with nothing but gdn-compile.

gdn-compile emits an object for this processor, gdn.elf loads it. For trying a model without a
GPU: one thread, 20 times faster than scalar loops, far from a GPU.
"""

from __future__ import annotations

import ctypes
import functools

from . import compile as compiler
from .arrays import host_view
from .elf import Object


@functools.lru_cache(maxsize=32)
def _descriptor_type(rank):
    """MLIR's memref descriptor: allocated and aligned pointer, offset, sizes, strides."""
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Descriptor{rank}", (ctypes.Structure,), {"_fields_": fields})


def _descriptor(pointer, shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    kind = _descriptor_type(len(shape))
    rest = [kind._fields_[3][1](*shape), kind._fields_[4][1](*reversed(strides))] if shape else []
    return kind(pointer, pointer, 0, *rest)


class HostKernel:
    """The function `name` of module text, callable on arrays; destinations are written in place."""

    def __init__(self, ir, arguments, name="forward"):
        self.name, self.arguments = name, tuple(arguments)
        self._object = Object(compiler.compile_host(ir))
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(self.arguments))
        self._function = prototype(self._object.function(f"_mlir_ciface_{name}"))

    def __call__(self, *arrays, shapes=None):
        """`shapes` are those that the function declares, where arrays are slices; all others are contiguous."""
        if len(arrays) != len(self.arguments):
            raise TypeError(f"{self.name} takes {', '.join(self.arguments)}, but got {len(arrays)} arrays")
        declared = [tuple(array.shape) for array in arrays] if shapes is None else shapes
        views = [
            host_view(array, name, tuple(array.shape) != shape)
            for name, array, shape in zip(self.arguments, arrays, declared)
        ]
        descriptors = [_descriptor(pointer, shape) for (pointer, *_), shape in zip(views, declared)]
        self._function(*(ctypes.addressof(descriptor) for descriptor in descriptors))
