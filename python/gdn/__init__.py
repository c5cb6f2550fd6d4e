# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delta-rule recurrences: a compiler, and functions that run what it makes on arrays.

The functions of gdn.fla (chunk_gated_delta_rule, chunk_kda, ...), `recurrence` and the parts of a
mixer (l2norm, gate, short_conv, gated_rms_norm) take torch tensors, numpy arrays and anything with
DLPack, on the GPU or the CPU. Below them, `gdn.build` writes IR, `gdn.compile` calls the compiler,
`gdn.launch` runs what it made and `gdn.reference` defines every operation in float64.
"""

import sys as _sys

from . import build, cache
from .arrays import CopyWarning, DeviceArray
from .compile import Compiled, CompileError, ToolNotFound
from .core import recurrence
from .driver import CudaError
from .export import export_ir
from .fla import *  # noqa: F403
from .fla import __all__ as _functions
from .launch import Kernel, device_target, load
from .manifest import ManifestError
from .mixer import gate, gated_rms_norm, l2norm, short_conv

if _sys.modules.get("torch") is not None:
    # So that torch.ops.gdn exists for programs that look operators up by name.
    from . import torch_ops  # noqa: F401


def patch_transformers(models=None):
    """Makes transformers' linear-attention models run on gdn; see gdn.huggingface. Needs torch."""
    from .huggingface import patch_transformers as patch

    return patch(models)


def unpatch_transformers():
    """Undoes `patch_transformers`."""
    from .huggingface import unpatch_transformers as unpatch

    unpatch()


__all__ = [
    "Compiled",
    "CompileError",
    "CopyWarning",
    "CudaError",
    "DeviceArray",
    "Kernel",
    "ManifestError",
    "ToolNotFound",
    "build",
    "cache",
    "device_target",
    "export_ir",
    "gate",
    "gated_rms_norm",
    "l2norm",
    "load",
    "patch_transformers",
    "recurrence",
    "short_conv",
    "unpatch_transformers",
    *_functions,
]
