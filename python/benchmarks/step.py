#!/usr/bin/env python3
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times decode and verify steps on a pool of states against an in-place copy through the same slots.

The delta rule of Qwen3.5-35B-A3B (Hqk/Hv 16/32, K = V = 128, bf16 with float32 gates): T = 1, 2, 4 and 8 tokens for B
sequences, whose states lie in a pool of at least 400 MB and are named by a random permutation. CUDA graphs whose
calls take other slots each, so that no state is found in the L2 cache; replays of all sides alternate; medians. 100 %
is the fastest of several copies (indexed_copy.py). Each kernel is first compared with a float64 token loop.

    python3 python/benchmarks/step.py [--batch 1 8 64 256 1024] [--tokens 1 2 4 8] [--state f32 bf16]
                                      [--schedule '1,2:name=#gdn.schedule<...>' ...] [--compile-only DIR]
"""

import argparse
import functools
import json
import os
import statistics
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests")]

import gdn  # noqa: E402
from gdn import build  # noqa: E402

K = V = 128
ROTATED_BYTES = 400 << 20
MAX_CALLS = 200
DEFAULT = "selected"


def text(B, T, heads, state_dtype, schedule, pool=None):
    Hqk, Hv = heads
    options = dict(gate="head", beta=True, slots="i32", S=pool, state_dtype=state_dtype, schedule=schedule)
    return build.recurrence(B, T, Hqk, Hv, K, V, **options)


def inputs(B, T, heads, seed, hard=False):
    """Device tensors; `hard`: gates of -80, beta up to 2 and keys that are nearly one vector."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(seed)
    Hqk, Hv = heads

    def normal(*shape):
        return torch.randn(*shape, device="cuda", generator=generator)

    def unit(x):
        return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()

    x = {"q": unit(normal(B, T, Hqk, K)), "k": unit(normal(B, T, Hqk, K)), "v": normal(B, T, Hv, V)}
    gate, beta = torch.nn.functional.logsigmoid(normal(B, T, Hv)), torch.sigmoid(normal(B, T, Hv))
    if hard:
        x["k"] = unit(unit(normal(1, 1, 1, K)) + 0.05 * x["k"])
        gate = torch.where(normal(B, T, Hv) > 1.64, -80.0, gate)
        beta = beta * 2
    return dict({name: value.bfloat16() for name, value in x.items()}, gate=gate, beta=beta)


def state_type(name):
    import torch

    return {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[name]


# --- correctness ------------------------------------------------------------------


def errors(kernel, B, T, heads, state_dtype, hard):
    """Errors of o and of the pool against float64, the padding's zeros and the other entries' bits checked."""
    import torch

    import oracle_torch

    entries = B + 3
    x = inputs(B, T, heads, seed=7 + B, hard=hard)
    order = torch.randperm(entries, generator=torch.Generator().manual_seed(B))[:B]
    if B > 1:
        order[B // 2] = -1
    x["slots"] = order.int().cuda()
    generator = torch.Generator(device="cuda").manual_seed(5)
    pool = torch.randn(entries, heads[1], V, K, device="cuda", generator=generator).to(state_type(state_dtype))
    got, o = pool.clone(), torch.full_like(x["v"], float("nan"))
    kernel(**x, o=o, state=got)
    torch.cuda.synchronize()
    want_o, want = oracle_torch.recurrence(
        **{name: value if name == "slots" else value.double() for name, value in x.items()}, state=pool
    )
    live = sorted(slot for slot in order.tolist() if slot >= 0)
    others = [entry for entry in range(entries) if entry not in live]
    assert torch.equal(got[others], pool[others]), "an entry that no slot names has changed"
    assert not o[x["slots"] < 0].any(), "o of a sequence without a state is not 0"
    assert torch.isfinite(o).all() and torch.isfinite(got).all(), "a result is not finite"
    return oracle_torch.ratio(o, want_o), oracle_torch.ratio(got[live], want[live])


# --- time -------------------------------------------------------------------------


class Side:
    """A CUDA graph of calls, one for each set of slots."""

    def __init__(self, name, call, count):
        import torch

        # Held as long as the graph: a kernel that nobody holds is unloaded.
        self.call = call
        self.name, self.count, self.times = name, count, []
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for i in range(min(count, 3)):
                call(i)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for i in range(count):
                call(i)

    def replay(self):
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The device is kept busy until the graph has been handed over: no host time is measured.
        torch.cuda._sleep(300_000)
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        self.times.append(begin.elapsed_time(end) * 1e3 / self.count)

    def median(self):
        return statistics.median(self.times)


class Bench:
    """A pool and the slots of as many calls as rotation needs."""

    def __init__(self, B, heads, state_dtype):
        import torch

        self.B, self.heads, self.state_dtype = B, heads, state_dtype
        size = {"f32": 4, "bf16": 2, "f16": 2}[state_dtype]
        self.bytes = B * heads[1] * K * V * size
        self.count = min(MAX_CALLS, max(2, -(-ROTATED_BYTES // self.bytes)))
        entries = B * self.count
        self.pool = torch.randn(entries, heads[1], V, K, device="cuda", dtype=state_type(state_dtype))
        order = torch.randperm(entries, generator=torch.Generator().manual_seed(0)).int().cuda()
        # Copies, each of which is aligned.
        self.slots = [part.clone() for part in order.reshape(self.count, B)]

    def copies(self):
        from indexed_copy import variants

        for name, copy in variants(self.pool):
            yield Side(f"copy, {name}", lambda i, copy=copy: copy(self.slots[i]), self.count)

    def step(self, name, kernel, T):
        import torch

        sets = [inputs(self.B, T, self.heads, seed) for seed in range(min(4, self.count))]
        outs = [torch.empty_like(x["v"]) for x in sets]

        def call(i):
            j = i % len(sets)
            kernel(**sets[j], slots=self.slots[i], o=outs[j], state=self.pool)

        return Side(name, call, self.count)


def run(sides, replays):
    for round in range(replays + 1):
        for side in sides:
            side.replay()
            if round == 0:
                side.times.clear()


# --- main -------------------------------------------------------------------------


def schedules(options, T):
    """Name and text of each schedule for T tokens; None is the selected one."""
    named = {DEFAULT: None} if not options.schedule or options.selected else {}
    for entry in options.schedule or []:
        tokens, _, rest = entry.partition(":")
        name, _, value = rest.partition("=")
        if str(T) in tokens.split(","):
            named[name] = value
    return named


def texts(options, B, T, state_dtype):
    heads = tuple(int(part) for part in options.heads.split("/"))
    for name, schedule in schedules(options, T).items():
        yield name, text(None if options.dynamic else B, T, heads, state_dtype, schedule)


def compile_only(options):
    from gdn import compile as compiler

    for state_dtype in options.state:
        for B in options.batch:
            for T in options.tokens:
                for _, module in texts(options, B, T, state_dtype):
                    compiler.compile(module, os.environ.get("GDN_TARGET") or "sm_90a").save(options.compile_only)
    return 0


@functools.cache
def load(module):
    return gdn.load(module)


def measure(options, B, state_dtype, rows):
    heads = tuple(int(part) for part in options.heads.split("/"))
    bench = Bench(B, heads, state_dtype)
    sides = list(bench.copies())
    copies, correct = len(sides), {}
    for T in options.tokens:
        for name, module in texts(options, B, T, state_dtype):
            kernel = load(module)
            label = f"T {T}, {name}"
            if options.check >= B:
                pairs = [errors(kernel, B, T, heads, state_dtype, hard) for hard in (False, True)]
                correct[label] = [max(pair) for pair in zip(*pairs)]
            sides.append(bench.step(label, kernel, T))
    run(sides, options.replays)
    best = min(side.median() for side in sides[:copies])
    for side in sides:
        us = side.median()
        e = correct.get(side.name)
        wrong = e is not None and not (e[0] <= 2e-2 and e[1] <= 2e-2)
        shown = "" if e is None else f"o {e[0]:.1e} state {e[1]:.1e}" + (" WRONG" if wrong else "")
        rows.append({"state": state_dtype, "B": B, "side": side.name, "us": us, "errors": e, "copy_us": best})
        print(
            f"{state_dtype:>5} {B:5} {side.name:44} {us:9.2f} us {2 * bench.bytes / us * 1e-6:6.2f} TB/s "
            f"{100 * best / us:6.1f} %  {shown}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", default="16/32", help="key heads/value heads")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 8, 64, 256, 1024])
    parser.add_argument("--tokens", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--state", nargs="*", default=["f32", "bf16"])
    parser.add_argument("--dynamic", action="store_true", help="B is dynamic in the IR")
    parser.add_argument("--schedule", action="append", metavar="T,...:NAME=TEXT", help="a schedule to force")
    parser.add_argument("--selected", action="store_true", help="the selected schedule beside the forced ones")
    parser.add_argument("--check", type=int, default=64, help="largest batch that is compared with float64")
    parser.add_argument("--replays", type=int, default=9)
    parser.add_argument("--output", type=Path, help="a JSON file of all figures")
    parser.add_argument("--compile-only", metavar="DIR", help="save the kernels for GDN_PRECOMPILED and time nothing")
    options = parser.parse_args()
    if options.compile_only:
        return compile_only(options)
    import torch

    rows = []
    for state_dtype in options.state:
        for B in options.batch:
            measure(options, B, state_dtype, rows)
            torch.cuda.empty_cache()
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any("WRONG" in str(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
