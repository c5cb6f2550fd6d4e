# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools of the build as fixtures, and the order of the files."""

import os
from pathlib import Path

import pytest

from tool_paths import need_tool

# The files that take longest, in order. Workers that get whole files end together if these come first.
SLOW = ("test_cpu_recurrence.py", "test_wheel.py", "test_ptxas.py", "test_ptx.py", "test_functions.py")


def pytest_configure(config):
    # pytest-xdist would begin with the files of most tests, and end with the longest test of all.
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    place = {name: at for at, name in enumerate(SLOW)}
    assert all((Path(__file__).parent / name).exists() for name in SLOW), "a file of SLOW is not there"
    items.sort(key=lambda item: place.get(Path(item.path).name, len(SLOW)))


@pytest.fixture
def gdn_opt():
    return need_tool("gdn-opt")


@pytest.fixture
def gdn_compile(monkeypatch):
    """The compiler, made the one that gdn.compile uses."""
    tool = os.environ.get("GDN_COMPILE") or need_tool("gdn-compile")
    monkeypatch.setenv("GDN_COMPILE", tool)
    return tool
