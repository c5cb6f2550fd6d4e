# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches on torch tensors with little work per call.

A `Launcher` is one kernel for one device and one set of shapes. It keeps the parameter blocks of its
launches, in which a call only fills in the addresses. Workspaces come from torch's allocator, all in
one piece: so a call works on any stream and inside a CUDA graph, whose memory pool then holds them.
"""

from __future__ import annotations

import ctypes
import threading

import torch

from .arrays import View, dtype_name
from .driver import TensorMap
from .launch import _MAX_GRID, _Parameters

_ALIGNMENT = 256
_current_stream = torch._C._cuda_getCurrentRawStream


class Launcher:
    """Not for several threads at once: the parameter blocks are filled anew by each call."""

    def __init__(self, kernel, device, shapes):
        self._kernel, self._device, self._driver = kernel, device, kernel._driver
        plan = kernel._plan
        plan.check_sizes(shapes)
        self.workspace, offsets = 0, []
        for buffer in plan.buffers:
            offsets.append(self.workspace)
            self.workspace += -(-buffer.nbytes(shapes) // _ALIGNMENT) * _ALIGNMENT
        self._context = self._driver._primary(device)
        with self._driver.on(device):
            functions = kernel._functions(device)
        self._steps = [
            self._step(launch, grid, overlaps, functions[launch.kernel], shapes, offsets)
            for launch, grid, overlaps in plan.running(shapes)
        ]

    def _step(self, launch, grid, overlaps, function, shapes, offsets):
        if not 0 < grid <= _MAX_GRID:
            raise ValueError(f"kernel {launch.kernel} would need a grid of {grid} blocks; at most {_MAX_GRID} fit")
        values, arguments, buffers, maps = [], [], [], []
        for place, (kind, what) in enumerate(launch.parameters):
            if kind == "argument":
                arguments.append((place, what))
                values.append(0)
            elif kind == "buffer":
                buffers.append((place, offsets[what]))
                values.append(0)
            elif kind == "tensor_map":
                (memory, index), layout = what
                where = ("argument", index) if memory == "argument" else ("buffer", offsets[index])
                maps.append([place, *where, layout, layout.sizes(shapes), None])
                values.append(TensorMap())
            else:
                values.append(what(shapes))
        parameters = _Parameters(values)
        start = (function, grid, 1, 1, launch.block, 1, 1, launch.shared)
        config = self._driver.overlapping(grid, launch.block, launch.shared) if overlaps else None
        return start, config, parameters, parameters.values, arguments, buffers, maps, launch.kernel

    def __call__(self, pointers):
        """Launches on the current stream of the device; one pointer per argument."""
        driver = self._driver
        if driver._current() != self._context:
            with driver.on(self._device):
                self._launch(pointers)
        else:
            self._launch(pointers)

    def _launch(self, pointers):
        stream = _current_stream(self._device)
        base = 0
        if self.workspace:
            memory = torch.empty(self.workspace, dtype=torch.uint8, device=torch.device("cuda", self._device))
            base = memory.data_ptr()
        launch = self._driver._library.cuLaunchKernel
        for start, config, parameters, values, arguments, buffers, maps, name in self._steps:
            for place, index in arguments:
                values[place] = pointers[index]
            for place, offset in buffers:
                values[place] = base + offset
            for entry in maps:
                self._fill_map(entry, parameters, pointers, base, name)
            if config is None:
                status = launch(*start, stream, parameters._as_parameter_, None)
            else:
                config.stream = stream
                status = self._driver.launch_ex(ctypes.byref(config), start[0], parameters._as_parameter_, None)
            if status:
                self._driver.launch(
                    start[0], start[1], start[4], start[7], stream, parameters, name, config is not None
                )  # fails again, with the message

    def _fill_map(self, entry, parameters, pointers, base, name):
        place, kind, where, layout, sizes, last = entry
        pointer = pointers[where] if kind == "argument" else base + where
        if pointer == last or 0 in sizes:
            return
        found = self._kernel._encoded(layout, pointer, sizes, f"{kind} of {name}")
        parameters.maps[place] = found
        parameters._as_parameter_[place] = found.address
        entry[-1] = pointer


_local = threading.local()
_KEPT = 4096  # launchers of a thread


def run(kernel, device, tensors, shapes=None):
    """Runs a kernel on CUDA tensors that backend and checks have looked at.

    `shapes` are those that the kernel declares, if tensors are slices (see rule.Rule.rows).
    """
    declared = shapes or [tuple(x.shape) for x in tensors]
    key = (kernel, device, *declared)
    launchers = _local.__dict__.setdefault("launchers", {})
    launcher = launchers.get(key)
    if launcher is None:
        for argument, x, shape in zip(kernel._plan.arguments, tensors, declared):
            _check(kernel, argument, x, shape)
        if len(launchers) >= _KEPT:
            launchers.clear()
        launcher = launchers[key] = Launcher(kernel, device, declared)
    pointers = []
    for argument, x, shape in zip(kernel._plan.arguments, tensors, declared):
        pointer = x.data_ptr()
        if pointer & 15 or not x.is_contiguous():
            _check(kernel, argument, x, shape)
        pointers.append(pointer)
    launcher(pointers)


def _check(kernel, argument, x, shape):
    """As for arrays of other libraries. A slice of wider rows is contiguous as far as the kernel looks at it."""
    dense = x.is_contiguous() or tuple(x.shape) != shape
    view = View(x.data_ptr(), dtype_name(x), shape, dense, False, x.device.index, x)
    kernel._check(argument, view)
