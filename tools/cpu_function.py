# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a function of a gdn module on the CPU: gdn-opt, mlir-translate, clang, ctypes."""

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

DTYPES = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "i32": np.int32, "i64": np.int64}


def run(command, text):
    """Standard output of a command that is fed `text`; its own message if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        message = (done.stderr or done.stdout).strip()
        raise SystemExit(f"error: {command[0]} failed (exit status {done.returncode}):\n{message}")
    return done.stdout


def descriptor_type(rank):
    """The C structure of a memref of some rank."""
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64)]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"MemRef{rank}", (ctypes.Structure,), {"_fields_": fields})


def descriptor(array):
    """Descriptor of a contiguous numpy array."""
    result = descriptor_type(array.ndim)()
    result.allocated = result.aligned = array.ctypes.data
    result.sizes[:] = array.shape
    result.strides[:] = [stride // array.itemsize for stride in array.strides]
    return result


def to_array(memref, dtype):
    """Copy of what a returned descriptor points to."""
    dtype = np.dtype(dtype)
    shape, strides = tuple(memref.sizes), tuple(s * dtype.itemsize for s in memref.strides)
    if 0 in shape:
        return np.zeros(shape, dtype)
    span = sum((n - 1) * s for n, s in zip(shape, strides)) + dtype.itemsize
    address = memref.aligned + memref.offset * dtype.itemsize
    raw = (ctypes.c_char * span).from_address(address)
    return np.ndarray(shape, dtype, raw, strides=strides).copy()


class CpuFunction:
    """One function of module text `ir`, compiled for this machine into `folder`.

    `path` is the option of the pipeline gdn-to-cpu: loops (the oracle), linalg or tile.
    """

    def __init__(self, ir, name, folder, path="linalg"):
        self.name = name
        signature = re.search(rf"func\.func @{name}\((.*?)\)\s*->\s*\(?(.*?)\)?\s*\{{", ir, re.S)
        if not signature:
            raise SystemExit(f"error: the module has no function '{name}' with results")
        self.results = re.findall(r"tensor<((?:[0-9?]+x)*)(\w+)>", signature[2])
        pipeline = f"builtin.module(func.func(llvm-request-c-wrappers),gdn-to-cpu{{path={path}}})"
        lowered = run(["gdn-opt", "-", f"--pass-pipeline={pipeline}"], ir)
        llvm = run(["mlir-translate", "--mlir-to-llvmir"], lowered)
        interface = re.search(rf"^define .*@_mlir_ciface_{name}\((.*?)\)", llvm, re.M)
        if not interface:
            raise SystemExit(f"error: the lowered module has no function '_mlir_ciface_{name}'")
        self.parameters = len(re.findall(r"\bptr\b", interface[1]))
        library = Path(folder) / f"{name}-{path}.so"
        runtime = Path(run(["llvm-config", "--libdir"], "").strip())
        command = ["clang-22", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
        command += ["-x", "ir", "-", "-o", str(library), "-lm", f"-L{runtime}", f"-Wl,-rpath,{runtime}"]
        run(command + ["-Wno-override-module", "-lmlir_c_runner_utils"], llvm)
        self.function = getattr(ctypes.CDLL(str(library)), f"_mlir_ciface_{name}")

    def __call__(self, *arrays):
        """The results, as arrays. Destinations among the arguments may be overwritten."""
        memrefs = [descriptor(array) for array in arrays]
        fields = [(f"r{i}", descriptor_type(t.count("x"))) for i, (t, _) in enumerate(self.results)]
        results = type("Results", (ctypes.Structure,), {"_fields_": fields})()
        pointers = [ctypes.byref(memref) for memref in memrefs]
        if self.parameters != len(arrays) + 1:
            raise SystemExit(f"error: '{self.name}' has {self.parameters} parameters, not {len(arrays) + 1}")
        self.function(ctypes.byref(results), *pointers)
        return [
            to_array(getattr(results, name), DTYPES[dtype])
            for (name, _), (_, dtype) in zip(fields, self.results)
        ]
