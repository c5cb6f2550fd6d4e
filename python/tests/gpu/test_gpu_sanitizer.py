# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That racecheck, which is silent on the kernels as sanitize.py changes them, finds a race in them."""

import itertools
import shutil
import sys
from pathlib import Path

import pytest

from gpu_support import COMPILE_ONLY, run_within

SANITIZE = Path(__file__).with_name("sanitize.py")
# Barriers of the block, and waits for stages that other warps fill by stores. Not each that may be left out is
# reported: the tool does not watch what asynchronous copies write.
BROKEN = [
    ("gated_delta_chunks", "prepare", "barrier"),
    ("gated_delta_chunks", "scan", "barrier"),
    ("wide_packed", "scan", "wait"),
]


def racecheck(*arguments):
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        pytest.skip("compute-sanitizer is not on PATH")
    command = [tool, "--tool", "racecheck", "--error-exitcode", "9", sys.executable, str(SANITIZE)]
    return run_within(240, [*command, "--each-lane-arrives", *arguments])


def compile_only():
    if COMPILE_ONLY:
        names = sorted({broken[0] for broken in BROKEN})
        command = [sys.executable, str(SANITIZE), "--compile-only", COMPILE_ONLY, *names]
        assert run_within(240, command).returncode == 0
        pytest.skip("compiled only")


@pytest.mark.parametrize("name", sorted({broken[0] for broken in BROKEN}))
def test_nothing_is_reported(name):
    compile_only()
    done = racecheck(name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "kernel", "kind"), BROKEN)
def test_a_race_is_reported(name, kernel, kind):
    compile_only()
    for number in itertools.count():
        done = racecheck(name, "--leave-out", kernel, kind, str(number))
        assert "Error" not in done.stderr, f"none of {number} that were left out is reported: {done.stderr}"
        if done.returncode == 9 and "Race reported" in done.stdout:
            return
