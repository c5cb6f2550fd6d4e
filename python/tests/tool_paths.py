# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the tools that tests need."""

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
        skip_or_fail(f"{name} is not built ($GDN_BIN_DIR, build/bin and PATH do not have it)")
    return tool


def skip_or_fail(message):
    """A tool that a test needs is missing: a skip, but in CI a failure."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
