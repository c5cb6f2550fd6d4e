# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The few calls of the CUDA driver API that a launcher needs, through ctypes.

Every call is checked; a failure is a CudaError with the name of the call and of the
error. Devices are used through their primary contexts, which the runtime API (and so
PyTorch, CuPy, JAX) shares. They stay retained until the process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading

_HANDLE = ctypes.c_void_p
_POINTER = ctypes.c_uint64
_LOG_BYTES = 16384

_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MAX_DYNAMIC_SHARED = 8
_POINTER_DEVICE = 9
_JIT_ERROR_LOG, _JIT_ERROR_LOG_SIZE, _JIT_SPLIT_COMPILE = 5, 6, 34
# The first driver that compiles the kernels of a module side by side.
_SPLIT_COMPILE_VERSION = 13000
_EVENT_DISABLE_TIMING = 2

# cuTensorMapEncodeTiled: element types, swizzles by their bytes, L2 lines of 128 bytes.
_MAP_TYPES = {"f16": 6, "f32": 7, "bf16": 9}
_MAP_SWIZZLES = {32: 1, 64: 2, 128: 3}
_MAP_L2_128 = 2
TENSOR_MAP_BYTES, _TENSOR_MAP_ALIGNMENT = 128, 64

_SIGNATURES = {
    "cuInit": [ctypes.c_uint],
    "cuDeviceGetCount": [_HANDLE],
    "cuDeviceGet": [_HANDLE, ctypes.c_int],
    "cuDeviceGetName": [ctypes.c_char_p, ctypes.c_int, ctypes.c_int],
    "cuDeviceGetAttribute": [_HANDLE, ctypes.c_int, ctypes.c_int],
    "cuDriverGetVersion": [_HANDLE],
    "cuDevicePrimaryCtxRetain": [_HANDLE, ctypes.c_int],
    "cuCtxGetCurrent": [_HANDLE],
    "cuCtxGetDevice": [_HANDLE],
    "cuCtxPushCurrent_v2": [_HANDLE],
    "cuCtxPopCurrent_v2": [_HANDLE],
    "cuModuleLoadDataEx": [_HANDLE, ctypes.c_char_p, ctypes.c_uint, _HANDLE, _HANDLE],
    "cuModuleUnload": [_HANDLE],
    "cuModuleGetFunction": [_HANDLE, _HANDLE, ctypes.c_char_p],
    "cuFuncSetAttribute": [_HANDLE, ctypes.c_int, ctypes.c_int],
    "cuLaunchKernel": [_HANDLE] + [ctypes.c_uint] * 7 + [_HANDLE] * 3,
    "cuMemAlloc_v2": [_HANDLE, ctypes.c_size_t],
    "cuMemFree_v2": [_POINTER],
    "cuMemcpyDtoHAsync_v2": [_HANDLE, _POINTER, ctypes.c_size_t, _HANDLE],
    "cuMemcpyHtoDAsync_v2": [_POINTER, _HANDLE, ctypes.c_size_t, _HANDLE],
    "cuStreamSynchronize": [_HANDLE],
    "cuStreamIsCapturing": [_HANDLE, _HANDLE],
    "cuStreamWaitEvent": [_HANDLE, _HANDLE, ctypes.c_uint],
    "cuEventCreate": [_HANDLE, ctypes.c_uint],
    "cuEventRecord": [_HANDLE, _HANDLE],
    "cuEventDestroy_v2": [_HANDLE],
    "cuPointerGetAttribute": [_HANDLE, ctypes.c_int, _POINTER],
}

# Not in every driver that runs kernels without tensor maps.
_ENCODE = "cuTensorMapEncodeTiled"
_ENCODE_SIGNATURE = [_HANDLE, ctypes.c_int, ctypes.c_uint32, _POINTER] + [_HANDLE] * 4 + [ctypes.c_int] * 4

# Launches that may overlap with the one in front: not in older drivers, in captures since 12.3.
_LAUNCH_EX = "cuLaunchKernelEx"
_OVERLAP = 6  # programmatic stream serialization
_OVERLAP_VERSION = 12030


class CudaError(RuntimeError):
    """A call of the CUDA driver failed, or there is no driver."""


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_int * 15)]


class LaunchConfig(ctypes.Structure):
    """A CUlaunchConfig whose launch may overlap with the one in front; `stream` is set by each launch."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", _HANDLE),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("count", ctypes.c_uint),
    ]

    def __init__(self, grid, block, shared):
        attributes = (_LaunchAttribute * 1)(_LaunchAttribute(id=_OVERLAP, value=1))
        super().__init__((grid, 1, 1), (block, 1, 1), shared, None, attributes, 1)


class Driver:
    """Checked driver calls. One instance serves all devices and threads."""

    def __init__(self, library="libcuda.so.1"):
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise CudaError(f"no CUDA driver: {library} cannot be loaded ({error})") from None
        for name, types in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = types, ctypes.c_int
        self._contexts = {}
        self._lock = threading.Lock()
        self._call("cuInit", 0)
        self.launch_ex = getattr(self._library, _LAUNCH_EX, None) if self.version() >= _OVERLAP_VERSION else None
        if self.launch_ex is not None:
            self.launch_ex.argtypes, self.launch_ex.restype = [_HANDLE] * 4, ctypes.c_int

    def _call(self, name, *arguments, about=""):
        status = getattr(self._library, name)(*arguments)
        if status:
            raise CudaError(f"{about}{': ' if about else ''}{name} failed: {self._describe(status)}")

    def _describe(self, status):
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        if name.value is None:
            return f"error {status}"
        return f"{name.value.decode()} ({(text.value or b'').decode()})"

    def _integer(self, name, *arguments):
        value = ctypes.c_int()
        self._call(name, ctypes.byref(value), *arguments)
        return value.value

    # devices and contexts

    def version(self):
        return self._integer("cuDriverGetVersion")

    def device_count(self):
        return self._integer("cuDeviceGetCount")

    def device_name(self, device):
        buffer = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", buffer, len(buffer), self._integer("cuDeviceGet", device))
        return buffer.value.decode()

    def capability(self, device):
        handle = self._integer("cuDeviceGet", device)
        return tuple(
            self._integer("cuDeviceGetAttribute", attribute, handle)
            for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR)
        )

    def current_device(self):
        """Device of the current context, 0 where no context is current."""
        return self._integer("cuCtxGetDevice") if self._current() else 0

    def _current(self):
        context = _HANDLE()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def _primary(self, device):
        with self._lock:
            if device not in self._contexts:
                handle = self._integer("cuDeviceGet", device)
                context = _HANDLE()
                self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle, about=f"device {device}")
                self._contexts[device] = context.value
            return self._contexts[device]

    @contextlib.contextmanager
    def on(self, device):
        """The primary context of `device` is current inside the block."""
        context = self._primary(device)
        if self._current() == context:
            yield
            return
        self._call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(_HANDLE()))

    # modules and kernels; a context must be current

    def load(self, ptx, name):
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = {_JIT_ERROR_LOG: ctypes.addressof(log), _JIT_ERROR_LOG_SIZE: _LOG_BYTES}
        threads = min(ptx.count(".visible .entry"), os.cpu_count() or 1)
        if threads > 1 and self.version() >= _SPLIT_COMPILE_VERSION:
            options[_JIT_SPLIT_COMPILE] = threads
        count = len(options)
        keys, values = (ctypes.c_int * count)(*options), (_HANDLE * count)(*options.values())
        module = _HANDLE()
        try:
            self._call(
                "cuModuleLoadDataEx", ctypes.byref(module), ptx.encode(), count, keys, values, about=f"loading {name}"
            )
        except CudaError as error:
            said = log.value.decode(errors="replace").strip()
            raise CudaError(f"{error}\n{said}" if said else str(error)) from None
        return module.value

    def unload(self, module):
        self._call("cuModuleUnload", module)

    def function(self, module, name):
        function = _HANDLE()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode(), about=f"kernel {name}")
        return function.value

    def allow_shared(self, function, size, name):
        about = f"kernel {name} needs {size} bytes of shared memory"
        self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size, about=about)

    def launch(self, function, grid, block, shared, stream, parameters, name, overlaps=False):
        about = f"kernel {name}, grid {grid}, block {block}, {shared} bytes of shared memory"
        config = self.overlapping(grid, block, shared) if overlaps else None
        if config:
            config.stream = stream
            self._call(_LAUNCH_EX, ctypes.byref(config), function, parameters, None, about=about)
            return
        self._call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared, stream, parameters, None, about=about)

    def overlapping(self, grid, block, shared):
        """What `launch_ex` takes for a launch that may overlap with the one in front; None if the driver cannot."""
        return LaunchConfig(grid, block, shared) if self.launch_ex is not None else None

    def encode_tensor_map(self, layout, pointer, sizes, about):
        """TensorMap of the array at `pointer`: what the kernel's parameter is copied from."""
        if not hasattr(self._library, _ENCODE):
            raise CudaError(f"{about}: the driver has no {_ENCODE}; CUDA 12 is needed")
        encode = getattr(self._library, _ENCODE)
        encode.argtypes, encode.restype = _ENCODE_SIGNATURE, ctypes.c_int
        rank = len(sizes)
        result = TensorMap()
        self._call(
            _ENCODE,
            result.address,
            _MAP_TYPES[layout.dtype],
            rank,
            pointer,
            (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * (rank - 1))(*layout.strides),
            (ctypes.c_uint32 * rank)(*layout.box),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,  # not interleaved
            _MAP_SWIZZLES[layout.swizzle],
            _MAP_L2_128,
            0,  # what lies outside is zero
            about=about,
        )
        return result

    # memory and streams; a context must be current

    def allocate(self, size, about):
        pointer = _POINTER()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), size, about=f"{about}, {size} bytes")
        return pointer.value

    def free(self, pointer):
        self._call("cuMemFree_v2", pointer)

    def read(self, pointer, size, stream):
        """Bytes of device memory after the work already in `stream`."""
        buffer = ctypes.create_string_buffer(size)
        if size:
            self._call("cuMemcpyDtoHAsync_v2", buffer, pointer, size, stream)
            self._call("cuStreamSynchronize", stream)
        return buffer.raw[:size]

    def write(self, pointer, data, stream):
        """Copies bytes to device memory and waits for it."""
        if data:
            self._call("cuMemcpyHtoDAsync_v2", pointer, bytes(data), len(data), stream)
            self._call("cuStreamSynchronize", stream)

    def pointer_device(self, pointer):
        return self._integer("cuPointerGetAttribute", _POINTER_DEVICE, pointer)

    def capturing(self, stream):
        return self._status(stream) != 0

    def _status(self, stream):
        value = ctypes.c_int()
        self._call("cuStreamIsCapturing", stream, ctypes.byref(value))
        return value.value

    def wait(self, stream, other):
        """Work put into `stream` from now on starts after that already in `other`."""
        event = _HANDLE()
        self._call("cuEventCreate", ctypes.byref(event), _EVENT_DISABLE_TIMING)
        try:
            self._call("cuEventRecord", event, other)
            self._call("cuStreamWaitEvent", stream, event, 0)
        finally:
            self._call("cuEventDestroy_v2", event)


class TensorMap:
    """The 128 bytes of a CUtensorMap, zero until they are encoded."""

    def __init__(self):
        self._buffer = ctypes.create_string_buffer(TENSOR_MAP_BYTES + _TENSOR_MAP_ALIGNMENT)
        self.address = -(-ctypes.addressof(self._buffer) // _TENSOR_MAP_ALIGNMENT) * _TENSOR_MAP_ALIGNMENT


_driver = None
_driver_lock = threading.Lock()


def driver():
    """The process's Driver; CudaError where there is none."""
    global _driver
    with _driver_lock:
        if _driver is None:
            _driver = Driver()
        return _driver
