# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The named cases with every schedule forced, and that batches with empty sequences end.

A case is skipped where the compiler refuses it with the schedule, and says why. Cases of several models run
with two, of several chunks with one: the schedule has its own.
"""

import inspect
import itertools
import os
import re
import sys
from pathlib import Path

import pytest
import test_gpu_cases

import gpu_support
from gdn import build
from gdn.compile import CompileError, ToolNotFound
from gpu_support import COMPILE_ONLY, Problem, check, expected, inputs, load, run, run_within, same_bits, target

CASES = ("d01", "d02", "d03", "d04", "d05", "d06", "d07", "d08", "d09", "d13", "d14", "d15", "d16", "d25")
ONLY = {"model": ("gated_delta", "kda"), "chunk": (64,)}
REFUSED = re.compile(r"(phases|scores_ahead|resident_from) .*need|shared memory|registers of a thread")


def block(p, most=64):
    """Rows of a block of the scan, two of them where V allows it."""
    return min(most, max(16, -(-p.V // 32) * 16))


def chunk(p):
    return 64 if p.dtype != "f32" and p.K <= 128 else 32 if p.K <= 64 else 16


SCHEDULES = {
    "split": lambda p: build.schedule("split", chunk(p), block(p), 2),
    # From the first block on, each has twice the rows.
    "wide": lambda p: build.schedule("split", chunk(p), block(p), 2, wide_from=1),
    # Of one chunk each, if there are more than four.
    "segmented": lambda p: build.schedule("segmented", 16, block(p), 2, segments=1000),
    "fused": lambda p: build.schedule("fused", 64, 64, 2),
    # P beside the scan: in all blocks, and in those that the number of sequences decides for.
    "ahead": lambda p: build.schedule("split", 64, 128, 2, scores_ahead=True),
    "wide_ahead": lambda p: build.schedule("segmented", 64, 64, 2, 5, 1, wide_from=2 * p.Hv + 1, scores_ahead=True),
    # T by blocks that stay.
    "resident": lambda p: build.schedule("split", 64, 128, 2, scores_ahead=True, resident_from=1),
    "step": lambda p: build.schedule("step", 16, 8),
    "eights": lambda p: build.schedule("step", 8, 16),
    "few": lambda p: build.schedule("step", 16, 8, warps=4, streaming=True, overlap=not target().startswith("sm_8")),
}


def instances(function):
    """Keyword arguments of each instance of a parametrized test."""
    choices = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            names = [names] if isinstance(names, str) else names
            rows = [(value,) if len(names) == 1 else value for value in values]
            choices.append([dict(zip(names, row)) for row in rows])
    for parts in itertools.product(*choices):
        arguments = {name: value for part in parts for name, value in part.items()}
        if all(arguments.get(name, kept[0]) in kept for name, kept in ONLY.items()):
            yield arguments


def table():
    for name, function in inspect.getmembers(test_gpu_cases, inspect.isfunction):
        if name.startswith("test_d") and name[5:8] in CASES:
            marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name != "parametrize"]
            for arguments in instances(function):
                label = "-".join([name[5:], *(str(value) for value in arguments.values())])
                yield pytest.param(function, arguments, id=label, marks=marks)


@pytest.fixture
def force(monkeypatch):
    return lambda schedule: monkeypatch.setattr(gpu_support, "forced", SCHEDULES[schedule])


@pytest.mark.parametrize(("function", "arguments"), list(table()))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_case(schedule, function, arguments, force):
    force(schedule)
    try:
        function(**arguments)
    except ToolNotFound:
        # Kernels that were compiled elsewhere: what is not among them was refused there.
        if not os.environ.get("GDN_PRECOMPILED"):
            raise
        pytest.skip("not among the precompiled kernels")
    except CompileError as error:
        (said,) = [line for line in str(error).splitlines() if "error:" in line]
        assert REFUSED.search(said), said
        pytest.skip(f"refused: {said.split('error: ')[1]}")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_d26_reproducible(schedule, force):
    """The same bits from run to run, and of a sequence alone and in any place of a batch."""
    force(schedule)
    # None of two to four chunks of 16, which are not cut where they are alone.
    lengths = (1, 700, 129, 500, 16, 333, 81, 257)

    def problem(lengths):
        starts = tuple(sum(lengths[:n]) for n in range(len(lengths) + 1))
        # Blocks that stay have one value head for each key head.
        key_heads = 8 if schedule == "resident" else 4
        return Problem("gated_delta", T=starts[-1], Hqk=key_heads, Hv=8, K=128, V=128, starts=starts)

    p = problem(lengths)
    batch, alone = load(p.text(), problem(lengths[:1]).text())
    x = inputs(p)
    first = run(batch, x)
    check(p, first, expected(p, x))
    for _ in range(20):
        assert all(same_bits(a, b) for a, b in zip(first, run(batch, x)))
    for n in (0, 1, 7):
        rows = slice(*p.starts[n : n + 2])
        one = {name: value[:, rows].contiguous() for name, value in x.items() if name not in ("offsets", "state")}
        one.update(offsets=x["offsets"][[0, n + 1]] - x["offsets"][[0, n]], state=x["state"][n : n + 1].clone())
        o, state = run(alone, one)
        assert same_bits(o, first[0][:, rows]), f"o of sequence {n}"
        assert same_bits(state[0], first[1][n]), f"state of sequence {n}"


# --- batches with empty sequences end -----------------------------------------------

SANITIZE = Path(__file__).with_name("sanitize.py")
SECONDS = 120


def test_empty_sequences_end():
    """In a process of its own: one that hangs is ended, and fails the test instead of holding it up."""
    names = [name for name in sanitize_runs() if name.startswith("empty_")]
    assert len(names) >= 8
    command = [sys.executable, str(SANITIZE), *(["--compile-only", COMPILE_ONLY] if COMPILE_ONLY else []), *names]
    done = run_within(SECONDS, command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith(f"{len(names)} passed, 0 failed")
    if COMPILE_ONLY:
        pytest.skip(f"compiled {len(names)} kernel sets only")


def sanitize_runs():
    import importlib.util

    spec = importlib.util.spec_from_file_location("sanitize", SANITIZE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.runs()
