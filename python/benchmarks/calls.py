# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call costs on the host beside FLA's, and what the first call of a shape costs, cold and warm.

    python3 python/benchmarks/calls.py [--output DIR] [--no-fla]

Calls are eager, one sequence of 64 tokens or one token, 16 key heads, 32 value heads of 128: microseconds
per call of a loop that does not wait, the median of several loops, and of a CUDA graph of the same calls.
First calls run in processes of their own with an empty gdn cache and an empty cache of the driver (cold),
then with the caches that the first process left (warm), and with gdn's cache alone (no driver cache).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "benchmarks")]

import gdn  # noqa: E402
import report  # noqa: E402

HEADS, VALUE_HEADS, SIZE = 16, 32, 128


def inputs(B, T):
    random = torch.Generator("cuda").manual_seed(0)

    def normal(heads):
        return torch.randn(B, T, heads, SIZE, device="cuda", generator=random)

    q, k = (torch.nn.functional.normalize(normal(HEADS), dim=-1).bfloat16() for _ in range(2))
    g, beta = (torch.rand(B, T, VALUE_HEADS, device="cuda", generator=random) for _ in range(2))
    return q, k, normal(VALUE_HEADS).bfloat16(), -g, beta


def cases(library):
    """Named calls of one library's functions."""
    piece, one, eight = inputs(1, 64), inputs(1, 1), inputs(8, 1)
    states = {B: torch.randn(B, VALUE_HEADS, SIZE, SIZE, device="cuda") for B in (1, 8)}
    A_log, dt_bias = torch.zeros(VALUE_HEADS, device="cuda"), torch.zeros(VALUE_HEADS, device="cuda")
    norm = {"output_final_state": True, "use_qk_l2norm_in_kernel": True, "state_v_first": True}
    everything = {**norm, "use_gate_in_kernel": True, "A_log": A_log, "dt_bias": dt_bias}
    everything["use_beta_sigmoid_in_kernel"] = True
    chunk, step = library.chunk_gated_delta_rule, library.fused_recurrent_gated_delta_rule

    def stepped(x, B, options):
        return lambda: step(*x[:4], beta=x[4], initial_state=states[B], **options)

    return {
        "64 tokens": lambda: chunk(*piece, output_final_state=True),
        "64 tokens, state, l2norm": lambda: chunk(*piece, initial_state=states[1], **norm),
        "64 tokens, everything in the kernel": lambda: chunk(*piece, initial_state=states[1], **everything),
        "1 token": stepped(one, 1, {"output_final_state": True, "state_v_first": True}),
        "1 token, everything in the kernel": stepped(one, 1, everything),
        "1 token of 8 sequences, everything": stepped(eight, 8, everything),
    }


def host_time(call, count=300, loops=5):
    """Microseconds per call of loops that do not wait in between."""
    for _ in range(20):
        call()
    times = []
    for _ in range(loops):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) * 1e6 / count)
        torch.cuda.synchronize()
    return statistics.median(times)


def graph_time(call, count=50, replays=9):
    """Microseconds per call inside a CUDA graph."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    times = []
    for _ in range(replays):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / count)
    return statistics.median(times)


def call_rows(with_fla):
    sides = {"gdn": cases(gdn)}
    if with_fla:
        import fla.ops.gated_delta_rule as fla

        sides["FLA"] = cases(fla)
    rows = []
    with torch.no_grad():
        for name in sides["gdn"]:
            row = {"call": name}
            for side, calls in sides.items():
                row[side] = {"host": host_time(calls[name]), "graph": graph_time(calls[name])}
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    return rows


def first_calls():
    """Seconds of first calls in this process, which has used the device but not gdn."""
    piece, shorter, one = inputs(1, 1024), inputs(1, 512), inputs(1, 1)
    torch.cuda.synchronize()
    options = {"use_qk_l2norm_in_kernel": True, "output_final_state": True}

    def timed(call):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    with torch.no_grad():
        return {
            "first call": timed(lambda: gdn.chunk_gated_delta_rule(*piece, **options)),
            "other T": timed(lambda: gdn.chunk_gated_delta_rule(*shorter, **options)),
            "first step": timed(lambda: gdn.fused_recurrent_gated_delta_rule(*one[:4], beta=one[4], **options)),
            "again": timed(lambda: gdn.chunk_gated_delta_rule(*piece, **options)),
        }


def first_rows():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        caches = {"GDN_CACHE_DIR": f"{folder}/gdn", "CUDA_CACHE_PATH": f"{folder}/driver"}
        for label, extra in (("cold", {}), ("warm", {}), ("no driver cache", {"CUDA_CACHE_DISABLE": "1"})):
            command = [sys.executable, __file__, "--first"]
            done = subprocess.run(command, env={**os.environ, **caches, **extra}, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr)
            rows.append({"caches": label, **json.loads(done.stdout.splitlines()[-1])})
    return rows


def table(facts, calls, first):
    lines = [
        report.describe(facts),
        "",
        f"{'microseconds a call':<40}{'gdn':>8}{'FLA':>8}{'gdn graph':>12}{'FLA graph':>12}",
    ]
    for row in calls:
        places = [(side, kind) for kind in ("host", "graph") for side in ("gdn", "FLA")]
        cells = [row[side][kind] if side in row else float("nan") for side, kind in places]
        lines.append(f"{row['call']:<40}{cells[0]:>8.1f}{cells[1]:>8.1f}{cells[2]:>12.1f}{cells[3]:>12.1f}")
    names = [name for name in first[0] if name != "caches"]
    lines += ["", f"{'milliseconds, caches':<40}" + "".join(f"{name:>12}" for name in names)]
    for row in first:
        lines.append(f"{row['caches']:<40}" + "".join(f"{row[name] * 1e3:>12.2f}" for name in names))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--no-fla", action="store_true")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        print(json.dumps(first_calls()))
        return 0
    facts, calls, first = report.machine(), call_rows(not options.no_fla), first_rows()
    text = table(facts, calls, first)
    print(text)
    report.save(options.output, "calls", facts, {"calls": calls, "first": first}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
