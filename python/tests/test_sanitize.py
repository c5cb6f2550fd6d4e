# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that racecheck runs, in which each lane arrives at a barrier for itself."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from gdn import build
from gdn import compile as compiler
from gpu_support import run_within
from tool_paths import need_tool

ARRIVAL = "mbarrier.arrive.shared::cta.b64 _,"


def load():
    path = Path(__file__).parent / "gpu" / "sanitize.py"
    spec = importlib.util.spec_from_file_location("sanitize", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counts(ptx):
    """Counts of the barriers, in order."""
    constants, found = {}, []
    for line in ptx.splitlines():
        if constant := re.match(r"\s*mov\.b32\s+(%r\d+), (\d+);", line):
            constants[constant[1]] = int(constant[2])
        if init := re.search(r"mbarrier\.init\.shared\.b64\s+\[[^\]]+\], (\S+);", line):
            found.append(int(constants.get(init[1], init[1])))
    return found


def test_arrivals_of_rings():
    """Three warps that load and four that compute, then four that hand over results and one that stores."""
    need_tool("gdn-compile")
    text = build.recurrence(
        1, 8192, 1, 2, 128, 128, gate="head", beta=True, schedule=build.schedule("split", 64, 64, 3)
    )
    before = compiler.compile(text, "sm_90a").ptx
    after = load().let_each_lane_arrive(before)
    assert counts(after) == [32 * count for count in counts(before)] and 3 in counts(before)
    arrivals = [line.strip() for line in after.splitlines() if ARRIVAL in line]
    assert len(arrivals) == before.count(ARRIVAL) > 4
    assert not any(re.search(r"@\S+ " + re.escape(ARRIVAL), line) for line in arrivals)
    rest = [line for line in after.splitlines() if ARRIVAL not in line and "mbarrier.init" not in line]
    assert rest == [line for line in before.splitlines() if ARRIVAL not in line and "mbarrier.init" not in line]


def test_barriers_of_threads_stay():
    ptx = """
 mov.b32  %r1, 1;
 mbarrier.init.shared.b64  [smem+8], %r1;
 fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared.b64  _, [smem+8], %r2;
 mov.b32  %r3, 96;
 mbarrier.init.shared.b64  [smem+16], %r3;
 mov.b32  %r4, 4;
 mbarrier.init.shared.b64  [smem+24], %r4;
 cp.async.mbarrier.arrive.noinc.shared.b64 [smem+16];
 @%p1 mbarrier.arrive.shared::cta.b64 _, [smem+24];
"""
    after = load().let_each_lane_arrive(ptx)
    assert counts(after) == [1, 96, 128]
    assert after.rstrip().endswith("[smem+16];\n mbarrier.arrive.shared::cta.b64 _, [smem+24];")


def test_what_is_left_out():
    """One barrier of the block, or one wait for a stage, of one kernel and nothing else."""
    body = """
.visible .entry forward_NAME(
 bar.sync  0;
 { .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], %r2; @done bra.uni DONE; DONE: }
 ld.shared.b32  %r3, [%r4];
 bar.sync  2, 96;
"""
    ptx = body.replace("NAME", "scan") + body.replace("NAME", "scan_wide")
    lines = [line.strip() for line in ptx.splitlines() if line.strip()]
    for kernel, first in (("scan", 0), ("scan_wide", 5)):
        for kind, places in (("barrier", (1, 4)), ("wait", (2,))):
            for number, place in enumerate(places):
                left = load().leave_out(ptx, kernel, kind, number).splitlines()
                kept = [line.strip() for line in left if line.strip()]
                assert kept == [line for i, line in enumerate(lines) if i != first + place]
    with pytest.raises(ValueError, match="scan has no wait number 1; it has 1"):
        load().leave_out(ptx, "scan", "wait", 1)


def test_a_hang_is_a_failure():
    done = run_within(60, [sys.executable, "-c", "print('ended')"])
    assert done.returncode == 0 and done.stdout == "ended\n"
    with pytest.raises(pytest.fail.Exception, match="no end within 2 s, behind: first"):
        run_within(2, [sys.executable, "-c", "import time; print('first', flush=True); time.sleep(60)"])
