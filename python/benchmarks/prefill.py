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
import warm  # noqa: E402
import workloads  # noqa: E402

LIMITS = (8e-3, 1e-2)


def oracle(cell, x):
    """o and the final state in float64: by chunks, or token by token where the gates are per channel."""
    import chunk_oracle
    import oracle_torch

    operands = workloads.operands(cell, x)
    if cell.gates == workloads.CHANNEL:
        return oracle_torch.recurrence(**operands, offsets=x["starts_cpu"])
    return chunk_oracle.recurrence(**operands, starts=cell.starts)


def measure(cell, names, sizes, log=print):
    """One row: the times and errors of gdn, for each of `sizes`, and of the named libraries."""
    shared = {}
    count = timing.set_count(cell.bytes())
    sets = [peers.prepare(cell, workloads.inputs(cell, seed), shared) for seed in range(count)]
    ours = {"gdn" if place == 0 else f"gdn {form}": form for place, form in enumerate(sizes)}
    candidates = [(name, lambda form=form, name=name: peers.Gdn(cell, form, name)) for name, form in ours.items()]
    candidates += [(name, lambda make=make: make(cell)) for name, make in peers.PEERS.items() if name in names]
    running, rows = timing.sides(candidates, sets, log)
    timing.measure(running)
    timing.judge(running, rows, lambda: [oracle(cell, x) for x in (sets[0], sets[-1])], LIMITS, log)
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


# FlashQLA compiles kernels for one sequence or several, few or many blocks, with and without its parallelism.
FLASHQLA_SHAPES = ("1x32768", "1x2048", "28672+4096", "24576+8192", "16384+16384", "8192x4", "4096x8")


def warm_tasks(rows, names):
    """Calls that make the libraries compile what these cells need: FLA's keys have no T, so one shape does."""
    tasks = []
    for cell in rows:
        kind = cell.gates if cell.gates in (workloads.LAYER, workloads.CHANNEL) else workloads.GATE_SETS[0]
        if "FLA" in names:
            tasks.append(("FLA", cell.heads, cell.K, cell.V, "1x8192", kind))
        if "FlashQLA" in names and cell.K == 128 and cell.gates == workloads.GATE_SETS[0]:
            tasks += [("FlashQLA", cell.heads, 128, 128, s, kind) for s in FLASHQLA_SHAPES if s == cell.shape]
    return list(dict.fromkeys(tasks))


def trace(rows, log):
    """FlashQLA's host side builds its kernels anew in each process, half a second for each, also from a warm cache."""
    import torch

    for name, heads, K, V, shape, gates in warm_tasks(rows, ["FlashQLA"]):
        try:
            cell = workloads.Cell(heads, shape, workloads.SHAPES[shape], K, V, gates)
            x = peers.prepare(cell, workloads.inputs(cell, 0), {})
            with torch.no_grad(), warm.alone():
                peers.PEERS[name](cell).call(x, {})
                torch.cuda.synchronize()
        except Exception as error:
            log(f"  {name} {cell.name}: {type(error).__name__}: {str(error)[:300]}")
            return


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--heads", nargs="+", help="only these, as 16/32")
    parser.add_argument("--shapes", nargs="+", help="only these, as 1x8192")
    parser.add_argument("--gates", nargs="+", choices=workloads.GATES, help="only these")
    parser.add_argument("--peers", nargs="*", choices=peers.PEERS, default=list(peers.PEERS))
    parser.add_argument(
        "--sizes", nargs="+", choices=peers.SIZES, default=list(peers.SIZES), help="T and N of gdn's kernels, see NOTES"
    )
    parser.add_argument("--warm", type=int, default=0, metavar="PROCESSES", help="compile the libraries' kernels first")
    parser.add_argument("--warm-peers", nargs="+", choices=("FLA", "FlashQLA"), default=["FLA", "FlashQLA"])
    parser.add_argument("--warm-gates", nargs="+", choices=workloads.GATES, default=list(workloads.GATES))
    parser.add_argument("--warm-only", action="store_true", help="and end then")
    parser.add_argument("--warm-seconds", type=float, default=600)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no cell that long after the start")
    parser.add_argument("--after", metavar="FILE", help="measure when this file exists")
    parser.add_argument("--compile-only", metavar="DIR", help="save gdn's kernels for GDN_PRECOMPILED; needs no GPU")
    parser.add_argument("--target", default="sm_90a", help="for --compile-only")
    return parser.parse_args()


def main():
    import report

    options = arguments()
    rows = workloads.cells(options.heads, options.shapes, options.gates)
    texts = list(dict.fromkeys(peers.Gdn.text(cell, form) for cell in rows for form in options.sizes))
    if options.compile_only:
        return 1 if peers.save(texts, options.compile_only, options.target) else 0
    facts = report.machine()
    facts["sizes"] = " ".join(options.sizes)
    cold = [cell for cell in rows if cell.gates in options.warm_gates]
    tasks = warm_tasks(cold, options.warm_peers) if options.warm else []

    def meanwhile():
        peers.import_all()
        if "FlashQLA" in options.peers:
            trace(rows, log=print)
        peers.preload(texts)

    facts["warm"] = warm.run(tasks, options.warm, options.warm_seconds, meanwhile=meanwhile)
    if options.warm_only:
        return 0
    timing.wait_for(options.after)
    timing.calm()
    log = report.Log(options.output, "prefill", facts)
    try:
        for cell in rows:
            if timing.since_start() > options.seconds:
                print(f"no time left for {len(rows) - len(log.rows)} cells", flush=True)
                break
            log.add(measure(cell, options.peers, options.sizes, log.note))
            timing.release()
    finally:
        log.finish(report.prefill_table(facts, log.rows), report.prefill_chart(facts, log.rows))
    return 0 if all(side.get("correct", True) for row in log.rows for side in row["sides"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
