# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles functions for the host with one path of gdn-to-cpu and calls them on numpy arrays."""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from conftest import need_tool

from gdn import reference

LLVM_BIN = os.environ.get("GDN_LLVM_BIN", "/usr/lib/llvm-22/bin")
# A pattern that loops for ever must not take the machine with it.
SECONDS = 600
BYTES = 12 << 30

STORAGE = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "i32": np.int32, "i64": np.int64}


def llvm_tool(name):
    path = os.path.join(LLVM_BIN, name)
    if os.access(path, os.X_OK):
        return path
    return need_tool(name)


def _limit():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def _run(command, **options):
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=_limit, **options
    )
    if result.returncode:
        pytest.fail(f"{Path(command[0]).name} failed:\n{result.stderr[-4000:]}")
    return result.stdout


def merge(texts):
    """One module of the functions of several; their names differ."""
    bodies = [text.strip().removeprefix("module {").removesuffix("}") for text in texts]
    return "module {" + "".join(bodies) + "}\n"


class Library:
    """Functions of a module, lowered by gdn-to-cpu{path=...} and linked as a shared library."""

    def __init__(self, text, path, options=""):
        opt, translate, clang = need_tool("gdn-opt"), llvm_tool("mlir-translate"), llvm_tool("clang")
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        (folder / "in.mlir").write_text(text)
        pipeline = f"builtin.module(func.func(llvm-request-c-wrappers),gdn-to-cpu{{path={path} {options}}})"
        lowered = _run([opt, str(folder / "in.mlir"), f"--pass-pipeline={pipeline}"])
        (folder / "out.mlir").write_text(lowered)
        _run([translate, "--mlir-to-llvmir", str(folder / "out.mlir"), "-o", str(folder / "out.ll")])
        runtime = Path(LLVM_BIN).parent / "lib"
        _run(
            [clang, "-O1", "-march=native", "-shared", "-fPIC", "-Wno-override-module", str(folder / "out.ll")]
            + ["-o", str(folder / "lib.so"), f"-L{runtime}", f"-Wl,-rpath,{runtime}"]
            + ["-lmlir_c_runner_utils", "-lm"]
        )
        self.library = ctypes.CDLL(str(folder / "lib.so"))

    def __call__(self, name, arrays, results=2):
        """Calls function `name`; destinations among the arrays are written in place."""
        descriptors = [descriptor(array) for array in arrays]
        # Returned destinations come back as copies that the caller owns.
        returned = (ctypes.c_byte * (results * 256))()
        function = getattr(self.library, f"_mlir_ciface_{name}")
        function.restype = None
        function(*([ctypes.byref(returned)] if results else []), *(ctypes.byref(d) for d in descriptors))


def descriptor(array):
    """MLIR's memref descriptor of a contiguous array."""
    rank = array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)] + (
            [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else []
        )

    assert array.flags.c_contiguous
    strides = [s // array.itemsize for s in array.strides]
    pointer = array.ctypes.data
    return Descriptor(pointer, pointer, 0, (ctypes.c_int64 * rank)(*array.shape), (ctypes.c_int64 * rank)(*strides))


def store(values, dtype):
    """Values as stored in `dtype`: bf16 as bits."""
    if dtype == "bf16":
        return np.ascontiguousarray(reference.to_bf16_bits(np.asarray(values, np.float32)))
    return np.ascontiguousarray(np.asarray(values).astype(STORAGE[dtype]))


def read(stored, dtype):
    """Stored values in float64."""
    if dtype == "bf16":
        return reference.from_bf16_bits(stored).astype(np.float64)
    return stored.astype(np.float64)
