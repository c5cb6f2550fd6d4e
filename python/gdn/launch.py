# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches compiled functions on CUDA devices.

    kernel = gdn.load(gdn.build.recurrence(1, 8192, 16, 32, 128, 128, gate="head", beta=True))
    o, state = kernel(q, k, v, gate, beta, o, state)

Arguments are device arrays: torch tensors, or anything with `__cuda_array_interface__`
or DLPack. They are checked against the manifest before anything is launched. The work
goes to `stream`, or to PyTorch's current stream where the program has imported torch,
else to the legacy default stream; the call does not wait for it.

Workspaces are kept by kernel and stream and only grow, so a warmed-up call allocates
nothing and can be captured into a CUDA graph. Graphs captured from one stream share
workspaces: replay them one after the other, or pass `workspaces` of your own.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import threading

from . import compile as compiler
from .arrays import ITEM_SIZES, DeviceArray, device_of, loaded_torch, view
from .driver import CudaError, TensorMap
from .driver import driver as default_driver
from .manifest import Plan

ALIGNMENT = 16
_MAX_GRID = 2**31 - 1
_DEFAULT_SHARED = 48 * 1024
# A size of a tensor map fits 32 bits.
_MAX_MAP_SIZE = 2**32
# What a kernel keeps of earlier calls: an allocator hands out the same few addresses again.
_KEPT_CALLS, _KEPT_MAPS = 16, 256


def device_target(device=None, driver=None):
    """Target of gdn-compile for a device, by default the current one."""
    driver = driver or default_driver()
    device = driver.current_device() if device is None else device
    capability = driver.capability(device)
    fitting = [t for t in compiler.TARGETS if _runs_on(t, capability)]
    if not fitting:
        raise CudaError(f"device {device} has compute capability {capability[0]}.{capability[1]}; 8.0 is needed")
    return fitting[-1]


def _runs_on(target, capability):
    number, exact = re.fullmatch(r"sm_(\d+)(a?)", target).groups()
    needed = (int(number) // 10, int(number) % 10)
    return capability == needed if exact else capability >= needed


def load(ir, target=None, **options):
    """Compiles module text for the current device (or $GDN_TARGET, or `target`)."""
    target = target or os.environ.get("GDN_TARGET") or device_target()
    return Kernel(compiler.compile(ir, target, **options))


class Kernel:
    """A compiled function, callable on device arrays. Safe to call from several threads."""

    def __init__(self, compiled, driver=None):
        self._plan = Plan(compiled.manifest)
        self._ptx = compiled.ptx
        self._given_driver = driver
        self._modules = {}
        self._workspaces = {}
        self._maps = {}
        self._prepared = {}
        self._lock = threading.Lock()

    @property
    def _driver(self):
        return self._given_driver or default_driver()

    @property
    def name(self):
        return self._plan.function

    def __repr__(self):
        return f"Kernel({self.name}, {self._plan.target}, arguments {', '.join(self._plan.names)})"

    def __call__(self, *args, stream=None, workspaces=None, validate=False, **named):
        """Launches and returns what the function returns: one array, a tuple, or None.

        A result is the object passed as its destination. `workspaces` is a sequence with
        one array, or None, for each buffer of the manifest. `validate` reads the arguments
        `offsets` and `slots` back and checks them, which waits for the device.
        """
        call = self._bind(args, named, stream, workspaces)
        with self._driver.on(call.device):
            if validate:
                self._validate(call)
            fresh = self._complete(call, workspaces)
            key = call.key()
            launches = self._prepared.get(key)
            if launches is None:
                launches = self._prepare(call)
                _keep(self._prepared, key, launches, _KEPT_CALLS)
            for arguments in launches:
                self._driver.launch(*arguments)
        return self._results(call, fresh)

    def prepare(self, *args, stream=None, **named):
        """All of a call but the launches: checks, loads, allocates. Use before a capture."""
        call = self._bind(args, named, stream, None)
        with self._driver.on(call.device):
            self._functions(call.device)
            self._complete(call, None)

    def preload(self, device=None):
        """Loads the module on a device, by default the current one; the driver compiles the PTX meanwhile."""
        device = self._driver.current_device() if device is None else device
        with self._driver.on(device):
            self._functions(device)

    def workspace_bytes(self, *args, **named):
        """Bytes of each buffer of the manifest for these arguments, in order."""
        call = self._bind(args, named, 0, None)
        return [buffer.nbytes(call.shapes) for buffer in self._plan.buffers]

    def close(self):
        """Frees workspaces and modules. Graphs that use them must be gone."""
        with self._lock:
            self._workspaces.clear()
            self._maps.clear()
            self._prepared.clear()
            for device, (module, _) in self._modules.items():
                with self._driver.on(device):
                    self._driver.unload(module)
            self._modules.clear()

    # --- arguments ---

    def _bind(self, args, named, stream, workspaces):
        values = self._ordered(args, named)
        device = None
        for argument, value in zip(self._plan.arguments, values):
            place = device_of(value, argument.name, self._driver)
            if device is None:
                device, first = place, argument.name
            elif place != device:
                raise ValueError(f"argument '{argument.name}' is on device {place}, but '{first}' is on {device}")
        if device is None:
            device = self._driver.current_device()
        call = _Call(device, _stream_handle(stream, device), values)
        with self._driver.on(device):
            call.views = [view(value, device, call.stream, self._driver) for value in values]
        call.shapes = [v.shape for v in call.views]
        for argument, v in zip(self._plan.arguments, call.views):
            self._check(argument, v)
        self._plan.check_sizes(call.shapes)
        self._check_overlap(call.views)
        if workspaces is not None and len(workspaces) != len(self._plan.buffers):
            raise ValueError(f"{self.name} has {len(self._plan.buffers)} buffers, but {len(workspaces)} were passed")
        return call

    def _ordered(self, args, named):
        names = self._plan.names
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes {len(names)} arguments ({', '.join(names)}), but got {len(args)}")
        values = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"{self.name} has no argument '{name}'; it takes {', '.join(names)}")
            if name in values:
                raise TypeError(f"argument '{name}' of {self.name} is given twice")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise TypeError(f"{self.name} lacks the arguments {', '.join(missing)}; it takes {', '.join(names)}")
        return [values[name] for name in names]

    def _check(self, argument, v):
        name = argument.name
        if v.dtype != argument.dtype:
            raise TypeError(f"argument '{name}' has element type {v.dtype}; {self.name} needs {argument.dtype}")
        fits = len(v.shape) == len(argument.shape) and all(
            need is None or need == size for need, size in zip(argument.shape, v.shape)
        )
        if not fits:
            raise ValueError(f"argument '{name}' has shape {list(v.shape)}; {self.name} needs {argument.shape_text()}")
        if not v.contiguous:
            raise ValueError(f"argument '{name}' of shape {list(v.shape)} is not contiguous in row-major order")
        if v.pointer % ALIGNMENT and 0 not in v.shape:
            raise ValueError(f"argument '{name}' lies at {v.pointer:#x}; {self.name} needs {ALIGNMENT}-byte alignment")
        if argument.written and v.readonly:
            raise ValueError(f"argument '{name}' is read-only, but {self.name} writes to it")

    def _check_overlap(self, views):
        spans = []
        for argument, v in zip(self._plan.arguments, views):
            size = ITEM_SIZES[argument.dtype]
            for extent in v.shape:
                size *= extent
            if size:
                spans.append((v.pointer, v.pointer + size, argument))
        for start, end, argument in spans:
            if not argument.written:
                continue
            for other_start, other_end, other in spans:
                if other is not argument and start < other_end and other_start < end:
                    raise ValueError(f"argument '{argument.name}', which {self.name} writes, overlaps '{other.name}'")

    def _validate(self, call):
        names = self._plan.names
        if "offsets" in names:
            check_offsets(self._integers(call, "offsets"), call.shapes[0][1])
        if "slots" in names:
            check_slots(self._integers(call, "slots"), call.shapes[names.index("state")][0])

    def _integers(self, call, name):
        index = self._plan.names.index(name)
        v, dtype = call.views[index], self._plan.arguments[index].dtype
        raw = self._driver.read(v.pointer, v.shape[0] * ITEM_SIZES[dtype], call.stream)
        return struct.unpack(f"<{v.shape[0]}{'i' if dtype == 'i32' else 'q'}", raw)

    # --- memory ---

    def _complete(self, call, workspaces):
        """Pointers of all buffers; returns the fresh results by buffer index."""
        fresh, call.buffers = {}, []
        for buffer in self._plan.buffers:
            given = workspaces[buffer.index] if workspaces is not None else None
            needed = buffer.nbytes(call.shapes)
            if given is not None:
                call.buffers.append(self._given_workspace(buffer, given, needed, call))
                fresh[buffer.index] = given
            elif buffer.is_result:
                array = self._new_result(buffer, call)
                fresh[buffer.index] = array
                call.buffers.append(view(array, call.device, call.stream, self._driver).pointer)
            else:
                call.buffers.append(self._workspace(buffer, needed, call) if needed else 0)
        return fresh

    def _given_workspace(self, buffer, given, needed, call):
        name = f"workspace {buffer.index}"
        if device_of(given, name, self._driver) != call.device:
            raise ValueError(f"{name} of {self.name} is not on device {call.device}")
        v = view(given, call.device, call.stream, self._driver)
        size = ITEM_SIZES.get(v.dtype, 1)
        for extent in v.shape:
            size *= extent
        if size < needed or not v.contiguous or v.pointer % ALIGNMENT:
            raise ValueError(f"{name} of {self.name} must be {needed} contiguous, aligned bytes; it has {size}")
        return v.pointer

    def _workspace(self, buffer, needed, call):
        with self._lock:
            # Older, smaller blocks stay: a captured graph may hold their addresses.
            blocks = self._workspaces.setdefault((call.device, call.stream, buffer.index), [])
            if not blocks or blocks[-1].nbytes < needed:
                if self._driver.capturing(call.stream):
                    raise CudaError(
                        f"{self.name} needs {needed} bytes of workspace that are not allocated yet, and the stream is "
                        "being captured; call prepare() with the same arguments and stream before the capture"
                    )
                size = max(needed, blocks[-1].nbytes * 5 // 4 if blocks else 0)
                about = f"workspace {buffer.index} of {self.name}"
                blocks.append(DeviceArray(((size + 1) // 2,), "f16", call.device, self._driver, call.stream, about))
            return blocks[-1].pointer

    def _new_result(self, buffer, call):
        sizes = buffer.sizes(call.shapes)
        torch = loaded_torch()
        if torch is not None and any(isinstance(value, torch.Tensor) for value in call.values):
            dtypes = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "i64": "int64"}
            return torch.empty(sizes, dtype=getattr(torch, dtypes[buffer.dtype]), device=f"cuda:{call.device}")
        about = f"a result of {self.name}"
        return DeviceArray(sizes, buffer.dtype, call.device, self._driver, call.stream, about)

    # --- launches ---

    def _functions(self, device):
        with self._lock:
            if device not in self._modules:
                self._modules[device] = self._load(device)
            return self._modules[device][1]

    def _load(self, device):
        driver, target = self._driver, self._plan.target
        capability = driver.capability(device)
        if not _runs_on(target, capability):
            raise CudaError(
                f"{self.name} was compiled for {target}, but device {device} has "
                f"compute capability {capability[0]}.{capability[1]}"
            )
        module = driver.load(self._ptx, self.name)
        functions = {}
        for launch in self._plan.launches:
            function = driver.function(module, launch.kernel)
            if launch.shared > _DEFAULT_SHARED:
                driver.allow_shared(function, launch.shared, launch.kernel)
            functions[launch.kernel] = function
        return module, functions

    def _prepare(self, call):
        functions = self._functions(call.device)
        prepared = []
        for launch, grid, overlaps in self._plan.running(call.shapes):
            if not 0 < grid <= _MAX_GRID:
                raise ValueError(f"kernel {launch.kernel} would need a grid of {grid} blocks; at most {_MAX_GRID} fit")
            parameters = _Parameters([self._value(p, call, launch) for p in launch.parameters])
            function = functions[launch.kernel]
            shape = (grid, launch.block, launch.shared)
            prepared.append((function, *shape, call.stream, parameters, launch.kernel, overlaps))
        return prepared

    def _value(self, parameter, call, launch):
        kind, what = parameter
        if kind == "argument":
            return call.views[what].pointer
        if kind == "tensor_map":
            return self._tensor_map(*what, call, launch)
        return call.buffers[what] if kind == "buffer" else what(call.shapes)

    def _tensor_map(self, memory, layout, call, launch):
        """The map of an argument or buffer; encoding takes longer than a launch, so maps are kept."""
        sizes = layout.sizes(call.shapes)
        if 0 in sizes:
            # The driver encodes no empty array, and the kernel touches none.
            return TensorMap()
        kind, index = memory
        about = f"argument '{self._plan.names[index]}'" if kind == "argument" else f"workspace {index}"
        if max(sizes) > _MAX_MAP_SIZE:
            raise ValueError(f"{about} has a size of {max(sizes)}; {launch.kernel} takes at most {_MAX_MAP_SIZE}")
        return self._encoded(layout, self._value(memory, call, launch), sizes, about)

    def _encoded(self, layout, pointer, sizes, about):
        key = layout, pointer, sizes
        found = self._maps.pop(key, None)
        if found is None:
            found = self._driver.encode_tensor_map(layout, pointer, sizes, f"{about} of {self.name}")
        _keep(self._maps, key, found, _KEPT_MAPS)
        return found

    def _results(self, call, fresh):
        results = tuple(call.values[i] if kind == "argument" else fresh[i] for kind, i in self._plan.results)
        if len(results) < 2:
            return results[0] if results else None
        return results


def _keep(entries, key, value, count):
    """Adds to a dictionary of the `count` newest entries."""
    if len(entries) >= count:
        # Another thread may be doing the same.
        for old in list(entries)[: len(entries) - count + 1]:
            entries.pop(old, None)
    entries[key] = value


class _Call:
    """One call's arrays, stream and pointers."""

    def __init__(self, device, stream, values):
        self.device, self.stream, self.values = device, stream, values
        self.views, self.shapes, self.buffers = [], [], []

    def key(self):
        pointers = tuple([v.pointer for v in self.views])
        return self.device, self.stream, pointers, tuple(self.shapes), tuple(self.buffers)


class _Parameters:
    """Kernel parameters, 64 bits wide or tensor maps, with the array of addresses that the driver takes."""

    def __init__(self, values):
        self.maps = {i: value for i, value in enumerate(values) if isinstance(value, TensorMap)}
        words = [0 if i in self.maps else value & (2**64 - 1) for i, value in enumerate(values)]
        self.values = (ctypes.c_uint64 * len(values))(*words)
        start = ctypes.addressof(self.values)
        places = [self.maps[i].address if i in self.maps else start + 8 * i for i in range(len(values))]
        self._as_parameter_ = (ctypes.c_void_p * len(values))(*places)


def _stream_handle(stream, device):
    if stream is None:
        torch = loaded_torch()
        if torch is None or not torch.cuda.is_initialized():
            return 0
        return torch.cuda.current_stream(device).cuda_stream
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(handle)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise TypeError(f"stream of type {type(stream).__name__} is neither an integer nor a CUDA stream object")


def check_offsets(offsets, tokens):
    """Raises ValueError unless the sequence starts rise from 0 to `tokens` without a step back."""
    if len(offsets) < 2:
        raise ValueError(f"offsets have {len(offsets)} entries; at least 2 are needed")
    if offsets[0] != 0:
        raise ValueError(f"offsets start at {offsets[0]}, not at 0")
    for i in range(1, len(offsets)):
        if offsets[i] < offsets[i - 1]:
            raise ValueError(f"offsets decrease from {offsets[i - 1]} to {offsets[i]} at entry {i}")
    if offsets[-1] != tokens:
        raise ValueError(f"offsets end at {offsets[-1]}, but there are {tokens} tokens")


def check_slots(slots, entries):
    """Raises ValueError unless every slot that is not negative is in the pool and occurs once."""
    first = {}
    for n, slot in enumerate(slots):
        if slot >= entries:
            raise ValueError(f"slot {slot} of sequence {n} is not in a pool of {entries} states")
        if slot >= 0 and first.setdefault(slot, n) != n:
            raise ValueError(f"sequences {first[slot]} and {n} have the same slot {slot}")
