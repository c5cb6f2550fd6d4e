# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads device arrays of other libraries, and one array type of our own.

An array is a torch.Tensor, or anything with `__cuda_array_interface__` or DLPack
(`__dlpack__` and `__dlpack_device__`). No library is imported here.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
import weakref
from typing import NamedTuple

ITEM_SIZES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4, "i64": 8}

_CPU, _CUDA, _CUDA_MANAGED = 1, 2, 13
_DLPACK_TYPES = {(4, 16): "bf16", (2, 16): "f16", (2, 32): "f32", (0, 32): "i32", (0, 64): "i64"}
_INTERFACE_TYPES = {"<V2": "bf16", "|V2": "bf16", "<f2": "f16", "<f4": "f32", "<i4": "i32", "<i8": "i64"}
_TORCH_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "int32": "i32", "int64": "i64"}
_TORCH_NAMES = {ours: name for name, ours in _TORCH_TYPES.items()}


class View(NamedTuple):
    """What a launch must know of an array. `dtype` is a foreign name if it is none of ours."""

    pointer: int
    dtype: str
    shape: tuple
    contiguous: bool
    readonly: bool
    device: int
    keep: object


def is_torch(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def dtype_name(x):
    """Our name of x's element type, or the library's where it is none of ours."""
    name = str(x.dtype).removeprefix("torch.")
    return _TORCH_TYPES.get(name, name)


def named_dtype(dtype):
    """Our name of an element type given as such: torch.float32, numpy.float32, "float32" or "f32"."""
    name = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    return _TORCH_TYPES.get(name, name)


def place(x):
    """Library and device of an array, to be compared and printed."""
    if is_torch(x):
        return f"torch device {x.device}"
    if hasattr(x, "__cuda_array_interface__"):
        return f"CUDA device {x.device if isinstance(x, DeviceArray) else ''} ({type(x).__module__})"
    if hasattr(x, "__dlpack_device__"):
        kind, device = (int(part) for part in x.__dlpack_device__())
        names = {_CPU: "the CPU", _CUDA: f"CUDA device {device}", _CUDA_MANAGED: f"CUDA device {device}"}
        return f"{names.get(kind, f'DLPack device type {kind}')} ({type(x).__module__.partition('.')[0]})"
    raise TypeError(f"{type(x).__name__} is no array: it has neither __dlpack__ nor __cuda_array_interface__")


def on_cpu(x):
    if is_torch(x):
        return x.device.type == "cpu"
    return not hasattr(x, "__cuda_array_interface__") and int(x.__dlpack_device__()[0]) == _CPU


def loaded_torch():
    """The torch module if the program has imported it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "Tensor") else None


def device_of(x, name, driver):
    """Ordinal of the CUDA device that holds x; TypeError where there is none."""
    torch = loaded_torch()
    if torch is not None and isinstance(x, torch.Tensor):
        if x.device.type != "cuda":
            raise TypeError(f"argument '{name}' is on device '{x.device}'; the kernel needs a CUDA device")
        return x.device.index
    if hasattr(x, "__cuda_array_interface__"):
        pointer = x.__cuda_array_interface__["data"][0]
        return driver.pointer_device(pointer) if pointer else driver.current_device()
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        kind, device = (int(part) for part in x.__dlpack_device__())
        if kind not in (_CUDA, _CUDA_MANAGED):
            where = "the CPU" if kind == _CPU else f"DLPack device type {kind}"
            raise TypeError(f"argument '{name}' is on {where}; the kernel needs a CUDA device")
        return device
    raise TypeError(
        f"argument '{name}' of type {type(x).__name__} is no device array: "
        "it has neither __cuda_array_interface__ nor __dlpack__"
    )


def view(x, device, stream, driver):
    """View of an array that device_of accepts, ready for use in `stream`."""
    torch = loaded_torch()
    if torch is not None and isinstance(x, torch.Tensor):
        dtype = str(x.dtype).removeprefix("torch.")
        dtype = _TORCH_TYPES.get(dtype, dtype)
        return View(x.data_ptr(), dtype, tuple(x.shape), x.is_contiguous(), False, device, x)
    if hasattr(x, "__cuda_array_interface__"):
        return _interface_view(x, device, stream, driver)
    return _dlpack_view(x, device, stream)


def contiguous(shape, strides):
    """True if element `strides` are those of row-major order where they matter."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def _interface_view(x, device, stream, driver):
    interface = x.__cuda_array_interface__
    pointer, readonly = interface["data"]
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    dtype = _INTERFACE_TYPES.get(interface["typestr"], interface["typestr"])
    dense = strides is None
    if not dense:
        item = ITEM_SIZES.get(dtype, 0)
        dense = contiguous(shape, [stride // item if item else 0 for stride in strides])
    other = interface.get("stream")
    if other is not None and other != (stream or 1):
        driver.wait(stream, other)
    return View(pointer or 0, dtype, shape, dense, readonly, device, x)


# --- DLPack -----------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# The deleter is a bare pointer here, so that reading a capsule makes no callback object.
_DLManagedTensor._fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

_NAME = b"dltensor"
_api = ctypes.pythonapi
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_raw_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", _api)
)


def _dlpack_view(x, device, stream):
    # DLPack numbers the legacy default stream 1 and has no 0 for CUDA; None is for the host.
    capsule = x.__dlpack__() if stream is None else x.__dlpack__(stream=stream or 1)
    managed = ctypes.cast(_get_pointer(capsule, _NAME), ctypes.POINTER(_DLManagedTensor)).contents
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    dense = not tensor.strides or contiguous(shape, tensor.strides[: tensor.ndim])
    dtype = _DLPACK_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    dtype = dtype or f"DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
    pointer = (tensor.data or 0) + tensor.byte_offset
    # The capsule frees the tensor when it is dropped unused, so it is kept with the view.
    return View(pointer, dtype, shape, dense, False, device, (x, capsule))


_exported = {}


@_DELETER
def _delete(managed, exported=_exported, address_of=ctypes.addressof):
    exported.pop(address_of(managed.contents), None)


@_DESTRUCTOR
def _destroy_capsule(capsule, exported=_exported, is_valid=_raw_is_valid, pointer_of=_raw_pointer, name=_NAME):
    # A consumer renames the capsule and then calls the deleter itself.
    if is_valid(capsule, name):
        exported.pop(pointer_of(capsule, name), None)


# A consumer may call these when the interpreter is taken down, behind the end of this module: so they have what
# they need as defaults, and are never freed.
for _kept in (_exported, _delete, _destroy_capsule):
    _api.Py_IncRef(ctypes.py_object(_kept))


def _export(array):
    rank = len(array.shape)
    shape = (ctypes.c_int64 * rank)(*array.shape)
    code, bits = next(key for key, dtype in _DLPACK_TYPES.items() if dtype == array.dtype)
    managed = _DLManagedTensor()
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id = array.pointer, _CUDA, array.device
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = rank, code, bits, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, array)
    return _new_capsule(address, _NAME, _destroy_capsule)


# --- arrays on the host ---


def host_view(x, name, is_slice=False):
    """(pointer, dtype, shape, keep) of an array on the CPU, contiguous unless it is known to be a slice."""
    if is_torch(x):
        if x.device.type != "cpu":
            raise TypeError(f"argument '{name}' is on device '{x.device}'; this kernel runs on the CPU")
        dense, pointer, dtype, shape = x.is_contiguous(), x.data_ptr(), dtype_name(x), tuple(x.shape)
        keep = x
    elif hasattr(x, "__array_interface__"):
        interface = x.__array_interface__
        dense = x.flags.c_contiguous
        pointer, dtype, shape, keep = interface["data"][0], dtype_name(x), tuple(x.shape), x
    else:
        v = _dlpack_view(x, 0, None)
        dense, pointer, dtype, shape, keep = v.contiguous, v.pointer, v.dtype, v.shape, v.keep
    if not dense and not is_slice:
        raise ValueError(f"argument '{name}' of shape {list(shape)} is not contiguous in row-major order")
    return pointer, dtype, shape, keep


def empty_like(x, shape, dtype):
    """A new array of the library and on the device of x."""
    if is_torch(x):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, _TORCH_NAMES[dtype]), device=x.device)
    if on_cpu(x):
        import numpy

        if dtype == "bf16":
            import ml_dtypes  # numpy has no bfloat16 of its own

            return numpy.empty(shape, ml_dtypes.bfloat16)
        return numpy.empty(shape, _TORCH_NAMES[dtype])
    from .driver import driver

    return DeviceArray(shape, dtype, device_of(x, "x", driver()), driver())


class CopyWarning(UserWarning):
    """A large input is copied before it is used, because of how it lies in memory."""


# Bytes from which a copy is worth a warning.
_LARGE_COPY = 1 << 20


def dense(x, name):
    """x itself if it is contiguous and aligned, else a copy; CopyWarning for a large one."""
    if is_torch(x):
        x = x.detach()
        if x.is_contiguous() and (x.data_ptr() % 16 == 0 or not x.numel()):
            return x
        size = x.numel() * x.element_size()
    elif hasattr(x, "__array_interface__"):
        if x.flags.c_contiguous:
            return x
        size = x.nbytes
    else:
        return x
    if size > _LARGE_COPY:
        warnings.warn(
            f"{name} of shape {list(x.shape)} is no slice of token rows that a kernel reads where it lies, so its "
            f"{size} bytes are copied (see gdn.recurrence for what is not)",
            CopyWarning,
            stacklevel=2,
        )
    if is_torch(x):
        return x.clone(memory_format=sys.modules["torch"].contiguous_format)
    import numpy

    return numpy.ascontiguousarray(x)


def _layout(x):
    """(strides in elements, bytes of one, address) of an array that may be a slice, or None."""
    if is_torch(x):
        known = not x.is_contiguous() and (x.is_cuda or x.device.type == "cpu")
        return (x.stride(), x.element_size(), x.data_ptr()) if known else None
    if not hasattr(x, "__array_interface__") or x.flags.c_contiguous or any(s % x.itemsize for s in x.strides):
        return None
    return tuple(s // x.itemsize for s in x.strides), x.itemsize, x.__array_interface__["data"][0]


def row_of(x):
    """Elements from one token to the next of a [B, T, ...] array that a kernel takes as it lies.

    None for any other array, which `dense` makes contiguous, and for one that is. Such an array is a slice
    of wider rows: what belongs to a token is contiguous, tokens follow at one distance (over the sequences
    too), which is a multiple of the last size where there are heads of it, and all is 16-byte aligned.
    """
    layout = _layout(x)
    if layout is None or 0 in x.shape:
        return None
    shape, (strides, item, address) = x.shape, layout
    width = 1
    for size, stride in zip(reversed(shape[2:]), reversed(strides[2:])):
        if size != 1 and stride != width:
            return None
        width *= size
    row = strides[0] if shape[1] == 1 else strides[1]
    if shape[0] > 1 and strides[0] != shape[1] * row and shape[1] > 1:
        return None
    multiple = shape[3] if len(shape) == 4 else 1
    fits = row >= width and row % multiple == 0 and row * item % 16 == 0 and address % 16 == 0
    return row if fits else None


def same_memory(x, y):
    """True if both are the same array."""
    if x is y:
        return True
    if is_torch(x) and is_torch(y) and not sys.modules["torch"].compiler.is_compiling():
        return x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.dtype == y.dtype and x.numel() > 0
    return False


def on_torch_cuda(x):
    return is_torch(x) and x.is_cuda


def is_tracing(x):
    """True if x may have no memory: torch traces the program."""
    if not is_torch(x):
        return False
    torch = sys.modules["torch"]
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def span(x):
    """First address of an array and the one behind its last element; strides are taken into account."""
    if is_torch(x):
        if not x.numel():
            return 0, 0
        last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
        return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()
    if hasattr(x, "__array_interface__") and x.size:
        steps = [(size - 1) * stride for size, stride in zip(x.shape, x.strides)]
        first = x.__array_interface__["data"][0]
        return first + sum(min(0, step) for step in steps), first + sum(max(0, step) for step in steps) + x.itemsize
    return 0, 0


def autocast(*xs):
    """Floating-point torch tensors in the type of an active autocast region; else the arrays themselves."""
    if not is_torch(xs[0]):
        return xs
    torch = sys.modules["torch"]
    kind = xs[0].device.type
    if not torch.is_autocast_enabled(kind):
        return xs
    dtype = torch.get_autocast_dtype(kind)
    return tuple(x.to(dtype) if is_torch(x) and x.is_floating_point() else x for x in xs)


# --- our own array ----------------------------------------------------------------


def _free(driver, device, pointer):
    with driver.on(device):
        driver.free(pointer)


class DeviceArray:
    """Contiguous device memory, freed with the object; for programs without a library of arrays.

    `stream` is where its content is produced.
    """

    def __init__(self, shape, dtype, device, driver, stream=0, about="a device array"):
        self.shape, self.dtype, self.device, self.stream = tuple(shape), dtype, device, stream
        self._driver = driver
        self.pointer = 0
        self.nbytes = ITEM_SIZES[dtype]
        for size in self.shape:
            self.nbytes *= size
        if self.nbytes:
            with driver.on(device):
                self.pointer = driver.allocate(self.nbytes, about)
            # Unlike __del__, not called while the interpreter is taken down, when modules may be empty
            # and the context may be gone.
            weakref.finalize(self, _free, driver, device, self.pointer).atexit = False

    @classmethod
    def from_bytes(cls, data, shape, dtype, device=0, driver=None):
        """Device copy of `data` (bytes, or a buffer such as a numpy array)."""
        if driver is None:
            from .driver import driver as default

            driver = default()
        raw = memoryview(data).tobytes()
        array = cls(shape, dtype, device, driver)
        if len(raw) != array.nbytes:
            raise ValueError(f"{len(raw)} bytes do not fill shape {array.shape} of {dtype} ({array.nbytes} bytes)")
        with driver.on(device):
            driver.write(array.pointer, raw, 0)
        return array

    def tobytes(self):
        """Copy on the host, after the work already in the array's stream."""
        with self._driver.on(self.device):
            return self._driver.read(self.pointer, self.nbytes, self.stream)

    @property
    def __cuda_array_interface__(self):
        typestr = next(key for key, dtype in _INTERFACE_TYPES.items() if dtype == self.dtype)
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": None,
            "stream": self.stream or 1,
            "version": 3,
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on CUDA device {self.device} and cannot be exported to {dl_device}")
        if copy:
            raise BufferError("the array is exported without a copy only")
        if stream is not None and stream != -1 and stream != (self.stream or 1):
            with self._driver.on(self.device):
                self._driver.wait(stream, self.stream)
        return _export(self)

    def __dlpack_device__(self):
        return _CUDA, self.device

    def __repr__(self):
        return f"DeviceArray({list(self.shape)}, {self.dtype}, device {self.device})"
