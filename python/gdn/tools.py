# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds and starts the compiler's programs.

An installed package holds one program, bin/gdn-tools, that is gdn-compile and gdn-opt by the
name under which it is called. In a checkout the programs of build/bin are used.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

PACKAGED = Path(__file__).resolve().parent / "bin" / "gdn-tools"
BUILT = Path(__file__).resolve().parents[2] / "build" / "bin"
# The environment variable that names a program to use instead.
VARIABLES = {"gdn-compile": "GDN_COMPILE", "gdn-opt": "GDN_OPT"}


class CompileError(RuntimeError):
    """The IR was not compiled; the message holds what the tool said."""


class ToolNotFound(CompileError):
    """There is no such program."""


def find(name):
    """Path of the program `name`, or ToolNotFound."""
    variable = VARIABLES[name]
    named = os.environ.get(variable)
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return named
        raise ToolNotFound(f"${variable} is '{named}', which is no executable file")
    if os.access(PACKAGED, os.X_OK):
        return str(PACKAGED)
    built = BUILT / name
    if os.access(built, os.X_OK):
        return str(built)
    found = shutil.which(name)
    if found:
        return found
    raise ToolNotFound(
        f"{name} was not found: ${variable} is not set, {PACKAGED} and {built} do not exist, and PATH has none"
    )


def _run(name):
    try:
        # The name decides which tool the packaged program is.
        os.execv(find(name), [name, *sys.argv[1:]])
    except (ToolNotFound, OSError) as error:
        sys.exit(f"error: {error}")


def run_compile():
    _run("gdn-compile")


def run_opt():
    _run("gdn-opt")
