# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Marks the tests of this folder `gpu` and skips them, with the reason, where they cannot run."""

import importlib.util
from pathlib import Path

import pytest

import gdn
from gdn.driver import driver
from gpu_support import COMPILE_ONLY

HERE = Path(__file__).parent


def reason_to_skip():
    if COMPILE_ONLY:
        return None
    try:
        if not driver().device_count():
            return "no CUDA device"
        gdn.device_target()
    except gdn.CudaError as error:
        return f"no CUDA device: {error}"
    if importlib.util.find_spec("torch") is None:
        return "the device tests need torch"
    return None


def pytest_collection_modifyitems(items):
    mine = [item for item in items if HERE in item.path.parents]
    reason = reason_to_skip() if mine else None
    for item in mine:
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif item.get_closest_marker("large") and not COMPILE_ONLY and free_bytes() < 40 << 30:
            item.add_marker(
                pytest.mark.skip(reason=f"needs 40 GiB of free device memory; {free_bytes() >> 30} GiB are")
            )


def free_bytes():
    import torch

    return torch.cuda.mem_get_info()[0]


@pytest.fixture(autouse=True)
def return_memory():
    """Leaves the device memory of a test to the next one and to workspaces."""
    yield
    if not COMPILE_ONLY:
        import torch

        torch.cuda.empty_cache()
