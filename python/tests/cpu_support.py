# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles functions for the host with one path of gdn-to-cpu and calls them on numpy arrays."""

import subprocess

import numpy as np

from gdn import host, reference
from tool_paths import need_tool

STORAGE = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "i32": np.int32, "i64": np.int64}


def host_library(text, path):
    """The functions of a module on the host; skips where gdn-opt is not built.

    They run for milliseconds and are compiled for seconds, so LLVM does not optimize them.
    """
    need_tool("gdn-opt")
    return host.Library(text, path, optimize="-O0")


def lower(text, path):
    """The module that gdn-to-cpu makes of a module, as text."""
    command = [need_tool("gdn-opt"), "-", f"--gdn-to-cpu=path={path}"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=True).stdout


def merge(texts):
    """One module of the functions of several; their names differ."""
    bodies = [text.strip().removeprefix("module {").removesuffix("}") for text in texts]
    return "module {" + "".join(bodies) + "}\n"


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
