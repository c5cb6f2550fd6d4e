# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs functions on the host: gdn-opt, mlir-translate and clang make a shared library of them.

For tests and for trying a module without a GPU. Needs numpy and the tools of LLVM 22, from
$GDN_LLVM_BIN, by default /usr/lib/llvm-22/bin; gdn-opt comes from $GDN_BIN_DIR, build/bin of
the repository this file lies in, or PATH.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

from .compile import CompileError, ToolNotFound

LLVM_BIN = os.environ.get("GDN_LLVM_BIN", "/usr/lib/llvm-22/bin")
# A pattern that loops for ever must not take the machine with it.
SECONDS = 600
BYTES = 12 << 30


def find_tool(name):
    """Path of gdn-opt or of one of LLVM's tools, or ToolNotFound."""
    built = Path(__file__).resolve().parents[2] / "build" / "bin"
    for folder in filter(None, (os.environ.get("GDN_BIN_DIR"), built, LLVM_BIN)):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise ToolNotFound(f"{name} was not found in $GDN_BIN_DIR, {built}, {LLVM_BIN} and PATH")
    return found


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def _run(tool, *arguments):
    command = [find_tool(tool), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=_limit)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{tool} did not end within {SECONDS} s") from None
    if done.returncode:
        said = done.stderr.strip()[-4000:] or "it printed nothing"
        raise CompileError(f"{tool} failed (exit status {done.returncode}):\n{said}")


class Library:
    """The functions of module text, lowered by gdn-to-cpu{path=...}.

    Paths: loops, linalg, tile, pipelined-tile and rotated-tile.
    """

    def __init__(self, text, path, options="", optimize="-O1"):
        with tempfile.TemporaryDirectory(prefix="gdn-") as name:
            folder = Path(name)
            (folder / "in.mlir").write_text(text)
            pipeline = f"builtin.module(func.func(llvm-request-c-wrappers),gdn-to-cpu{{path={path} {options}}})"
            lowered = folder / "lowered.mlirbc"
            _run("gdn-opt", folder / "in.mlir", f"--pass-pipeline={pipeline}", "--emit-bytecode", "-o", lowered)
            _run("mlir-translate", "--mlir-to-llvmir", lowered, "-o", folder / "out.ll")
            runtime = Path(LLVM_BIN).parent / "lib"
            files = [folder / "out.ll", "-o", folder / "lib.so", f"-L{runtime}", f"-Wl,-rpath,{runtime}"]
            flags = [optimize, "-march=native", "-shared", "-fPIC", "-Wno-override-module"]
            rest = [*files, "-lmlir_c_runner_utils", "-lm"]
            try:
                _run("clang", *flags, *rest)
            except CompileError as error:
                # LLVM 22 fails on vectors of bf16 with 33 elements where the processor converts
                # bf16 itself. Without such instructions it compiles them, ten times slower.
                if "soft promote" not in str(error):
                    raise
                _run("clang", *flags, "-mno-avx512bf16", *rest)
            self._library = ctypes.CDLL(str(folder / "lib.so"))

    def __call__(self, name, arrays, results=2):
        """Calls function `name` on numpy arrays; destinations are written in place.

        `results` counts what the function returns. Returned memrefs are not looked at.
        """
        descriptors = [_descriptor(array) for array in arrays]
        returned = (ctypes.c_byte * (results * 256))()
        function = getattr(self._library, f"_mlir_ciface_{name}")
        function.restype = None
        function(*([ctypes.byref(returned)] if results else []), *(ctypes.byref(d) for d in descriptors))


def _descriptor(array):
    """MLIR's memref descriptor of a contiguous array."""
    if not array.flags.c_contiguous:
        raise ValueError(f"an array of shape {list(array.shape)} is not contiguous in row-major order")
    sizes = ctypes.c_int64 * array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)]
        if array.ndim:
            _fields_ += [("sizes", sizes), ("strides", sizes)]

    pointer = array.ctypes.data
    shape = [sizes(*array.shape), sizes(*(s // array.itemsize for s in array.strides))] if array.ndim else []
    return Descriptor(pointer, pointer, 0, *shape)
