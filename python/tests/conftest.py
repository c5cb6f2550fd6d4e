# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools of the build, as fixtures."""

import os

import pytest

from tool_paths import need_tool


@pytest.fixture
def gdn_opt():
    return need_tool("gdn-opt")


@pytest.fixture
def gdn_compile(monkeypatch):
    """The compiler, made the one that gdn.compile uses."""
    tool = os.environ.get("GDN_COMPILE") or need_tool("gdn-compile")
    monkeypatch.setenv("GDN_COMPILE", tool)
    return tool
