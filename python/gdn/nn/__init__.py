# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token mixers as PyTorch modules: projections by torch, everything between them by gdn's kernels.

    GatedDeltaNet         Qwen3-Next, Qwen3.5, OLMo-Hybrid, FLA's layer of that name
    KimiDeltaAttention    Kimi Linear, FLA's layer of that name
    DeltaNet              FLA's layer of that name
    Mamba2Mixer           Mamba-2 with one decay per head

Every mixer maps `[B, T, hidden]` to `[B, T, hidden]`, and continues a `MixerCache` where it is given
one. They run the forward pass only: where a gradient is needed the functions underneath raise.
"""

from .cache import MixerCache
from .delta_net import DeltaNet
from .gated_delta_net import GatedDeltaNet
from .kimi_delta_attention import KimiDeltaAttention
from .mamba2 import Mamba2Mixer

__all__ = ["DeltaNet", "GatedDeltaNet", "KimiDeltaAttention", "Mamba2Mixer", "MixerCache"]
