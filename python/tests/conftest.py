# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the tools of the build for the tests."""

import os
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def find_tool(name):
    """Path of a built tool: $GDN_BIN_DIR, build/bin of the repository, PATH; else None."""
    folders = [os.environ.get("GDN_BIN_DIR"), str(REPOSITORY / "build" / "bin")]
    for folder in filter(None, folders):
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return shutil.which(name)


def need_tool(name):
    """The tool, or a skip; in CI its absence is a failure."""
    tool = find_tool(name)
    if tool is None:
        message = f"{name} is not built ($GDN_BIN_DIR, build/bin and PATH do not have it)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return tool


@pytest.fixture
def gdn_opt():
    return need_tool("gdn-opt")


@pytest.fixture
def gdn_compile(monkeypatch):
    """The compiler, made the one that gdn.compile uses."""
    tool = os.environ.get("GDN_COMPILE") or need_tool("gdn-compile")
    monkeypatch.setenv("GDN_COMPILE", tool)
    return tool
