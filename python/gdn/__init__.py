# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delta-rule recurrences on the GPU: builds IR, compiles it with gdn-compile, launches the PTX.

`gdn.build` writes IR, `gdn.compile` calls the compiler, `gdn.launch` runs what it made and
`gdn.reference` (which alone needs numpy) defines every operation in float64.
"""

from . import build
from .arrays import DeviceArray
from .compile import Compiled, CompileError, ToolNotFound
from .driver import CudaError
from .launch import Kernel, device_target, load
from .manifest import ManifestError

__all__ = [
    "Compiled",
    "CompileError",
    "CudaError",
    "DeviceArray",
    "Kernel",
    "ManifestError",
    "ToolNotFound",
    "build",
    "device_target",
    "load",
]
