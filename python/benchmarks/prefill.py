#!/usr/bin/env python3
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the prefill of the gated delta rule against FLA, FlashQLA and FlashInfer in one process.

    python3 python/benchmarks/prefill.py [--heads 16/32 ...] [--shapes 1x8192 ...] [--warm 14]

All head configurations and sequence shapes of FlashQLA's H200 table, two other head sizes, random lengths, and
three sets of gates on some cells. NOTES.md has the method. The table goes to the screen and, with
a JSON file and a chart, to --output.
"""

import argparse
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests"), str(PYTHON / "benchmarks")]

import peers  # noqa: E402
import timing  # noqa: E402
import workloads  # noqa: E402

LIMITS = (8e-3, 1e-2)


def measure(cell, names, sizes, log=print):
    """One row: the times and errors of gdn and of the named libraries."""
    import torch

    import chunk_oracle

    shared = {}
    count = timing.set_count(cell.bytes())
    sets = [peers.prepare(cell, workloads.inputs(cell, seed), shared) for seed in range(count)]
    candidates = [("gdn", lambda: peers.Gdn(cell, sizes))] if "gdn" in names else []
    candidates += [(name, lambda make=make: make(cell)) for name, make in peers.PEERS.items() if name in names]
    running, rows = timing.sides(candidates, sets, log)
    timing.measure(running)
    expected = [
        chunk_oracle.recurrence(**workloads.operands(cell, x), starts=cell.starts) for x in (sets[0], sets[-1])
    ]
    for side in running:
        rows[side.name] = timing.verdict(side, side.errors(expected), LIMITS)
        if not rows[side.name]["correct"]:
            log(f"  WRONG: {side.name}: o {rows[side.name]['error_o']:.1e}, state {rows[side.name]['error_state']:.1e}")
    del running, sets, expected
    torch.cuda.empty_cache()
    return {
        "heads": cell.heads,
        "shape": cell.shape,
        "K": cell.K,
        "V": cell.V,
        "gates": cell.gates,
        "tokens": cell.T,
        "sequences": cell.N,
        "sets": count,
        "floor_us": cell.floor_us(),
        "sides": rows,
    }


def warm_up(rows, options, log=print):
    """Compiles the libraries' kernels of these cells side by side; see warm.py."""
    import warm

    tasks = []
    for name in ("FlashQLA", "FLA"):
        if name not in options.peers:
            continue
        for cell in rows:
            if name == "FlashQLA" and (cell.K != 128 or cell.gates != rows[0].gates):
                continue
            # FLA tunes for a head configuration, once and for all shapes.
            shape = "1x8192" if name == "FLA" else cell.shape
            if shape in workloads.SHAPES:
                tasks.append((name, cell.heads, cell.K, cell.V, shape))
    return warm.run(list(dict.fromkeys(tasks)), options.warm, options.warm_seconds, log)


def compile_only(rows, options):
    from gdn import compile as compiler

    texts = dict.fromkeys(peers.Gdn.text(cell, options.sizes) for cell in rows)
    for text in texts:
        compiler.compile(text, options.target).save(options.compile_only)
    print(f"{len(texts)} kernel sets in {options.compile_only}")
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--heads", nargs="+", help="only these, as 16/32")
    parser.add_argument("--shapes", nargs="+", help="only these, as 1x8192")
    parser.add_argument("--gates", nargs="+", choices=(*workloads.GATE_SETS, workloads.LAYER), help="only these")
    parser.add_argument("--peers", nargs="*", choices=peers.PEERS, default=list(peers.PEERS))
    parser.add_argument("--sizes", choices=("static", "dynamic"), default="static", help="T and N of gdn's kernels")
    parser.add_argument("--warm", type=int, default=0, metavar="PROCESSES", help="compile the libraries' kernels first")
    parser.add_argument("--warm-only", action="store_true", help="and end then")
    parser.add_argument("--warm-seconds", type=float, default=600)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no cell after this time")
    parser.add_argument("--compile-only", metavar="DIR", help="save gdn's kernels for GDN_PRECOMPILED; needs no GPU")
    parser.add_argument("--target", default="sm_90a", help="for --compile-only")
    return parser.parse_args()


def main():
    import report

    options = arguments()
    rows = workloads.cells(options.heads, options.shapes, options.gates)
    if options.compile_only:
        return compile_only(rows, options)
    facts = report.machine()
    facts["sizes"] = options.sizes
    if options.warm:
        facts["warm"] = warm_up(rows, options)
        if options.warm_only:
            return 0
    log = report.Log(options.output, "prefill", facts)
    for cell in rows:
        if log.seconds() > options.seconds:
            print(f"no time left for {len(rows) - len(log.rows)} cells", flush=True)
            break
        log.add(measure(cell, ["gdn", *options.peers], options.sizes, log.note))
    log.finish(report.prefill_table(facts, log.rows), report.prefill_chart(facts, log.rows))
    return 0 if all(side.get("correct", True) for row in log.rows for side in row["sides"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
