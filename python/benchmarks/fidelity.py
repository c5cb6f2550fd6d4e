#!/usr/bin/env python3
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of gdn and FLA on identical inputs, against a float64 token loop on the rounded inputs.

    python3 python/benchmarks/fidelity.py [--seeds 3] [--output DIR]

Nine families of inputs from easy to hard, two more that only an accurate inverse survives, and
identities that need no oracle. gdn with both precisions; the high one gives o in float32.
"""

import argparse
import statistics
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests"), str(PYTHON / "benchmarks")]

import peers  # noqa: E402
import workloads  # noqa: E402

T, HQK, HV, K, V = 512, 4, 8, 128, 128
HARD = ("near-equal keys, beta 0.99", "equal keys, beta 1", "beta in 0..2", "near-equal keys, beta 1.9")


def families():
    """{name: function of (x, normal, uniform) that changes the default inputs x}."""

    def near(x, normal, spread, beta):
        first = workloads.normalised(normal(1, 1, HQK, K))
        x["k"] = workloads.normalised(first + spread * normal(1, T, HQK, K))
        x["beta"] = x["beta"] * 0 + beta
        x["gate"] = x["gate"] * 0

    def gates(factor):
        return lambda x, normal, uniform: x.update(gate=x["gate"] * factor)

    def some_strong(x, normal, uniform):
        strong = uniform(*x["gate"].shape) < 0.05
        x["gate"] = (x["gate"] * 0.01).masked_fill(strong, -80.0)

    def wide_beta(x, normal, uniform):
        x.update(beta=x["beta"] * 2, gate=x["gate"] * 0.01)

    def long_keys(x, normal, uniform):
        x.update(k=x["k"] * 2, gate=x["gate"] * 0.01)

    return {
        "gates logsigmoid(normal)": gates(1),
        "gates x 0.01": gates(0.01),
        "no gates": gates(0),
        "gates x 50": gates(50),
        "5 % of the gates -80": some_strong,
        HARD[0]: lambda x, normal, uniform: near(x, normal, 0.05, 0.99),
        HARD[1]: lambda x, normal, uniform: near(x, normal, 0, 1),
        HARD[2]: wide_beta,
        HARD[3]: lambda x, normal, uniform: near(x, normal, 0.3, 1.9),
        "equal keys, beta 1.9": lambda x, normal, uniform: near(x, normal, 0, 1.9),
        "norm of k 2, gates x 0.01": long_keys,
    }


def family_inputs(change, seed, device="cuda"):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, device=device, generator=generator)

    def uniform(*shape):
        return torch.rand(shape, device=device, generator=generator)

    x = {
        "q": workloads.normalised(normal(1, T, HQK, K)),
        "k": workloads.normalised(normal(1, T, HQK, K)),
        "v": normal(1, T, HV, V),
        "gate": torch.nn.functional.logsigmoid(normal(1, T, HV)),
        "beta": uniform(1, T, HV),
    }
    change(x, normal, uniform)
    for name in ("q", "k", "v"):
        x[name] = x[name].bfloat16().contiguous()
    x["state"] = torch.zeros(1, HV, V, K, device=device)
    return x


# --- implementations --------------------------------------------------------------


def text(precision="default"):
    """One kernel for all families, whose runs are a batch."""
    from gdn import build

    forms = {"default": {}, "high": {"out_dtype": "f32", "schedule": build.schedule("auto", precision="high")}}
    return build.recurrence(None, T, HQK, HV, K, V, gate="head", beta=True, **forms[precision])


def run_gdn(x, precision="default"):
    import torch

    o = torch.full_like(x["v"], float("nan"), dtype=torch.float32 if precision == "high" else x["v"].dtype)
    names = ("q", "k", "v", "gate", "beta")
    return peers.kernel(text(precision))(**{name: x[name] for name in names}, o=o, state=x["state"].clone())


def run_high(x):
    return run_gdn(x, "high")


def run_fla(x):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    o, state = chunk_gated_delta_rule(
        x["q"], x["k"], x["v"], g=x["gate"], beta=x["beta"], initial_state=x["state"].transpose(2, 3).contiguous(),
        output_final_state=True,
    )  # fmt: skip
    return o, state.transpose(2, 3)


def tune_nothing():
    """FLA's kernels with the first candidate of each tuner: tuning 50 of them takes most of a minute and finds
    block sizes and numbers of warps, of which the results depend by the order of a few sums only."""
    from triton.runtime.autotuner import Autotuner

    inner = Autotuner.run

    def run(self, *args, **meta):
        del self.configs[1:]
        return inner(self, *args, **meta)

    Autotuner.run = run


def family_rows(implementations, seeds, log=print):
    """[{family, errors: {name: [o, state]}}], means over the seeds. All families and seeds are one batch, for the
    oracle and for each implementation."""
    import torch

    import oracle_torch

    runs = [(family, seed) for family in families() for seed in range(seeds)]
    each = [family_inputs(families()[family], seed) for family, seed in runs]
    x = {name: torch.cat([one[name] for one in each]) for name in each[0]}
    expected = oracle_torch.recurrence(**x)
    errors = {}
    for name, function in implementations.items():
        results = function(x)
        for at, run in enumerate(runs):
            one = slice(at, at + 1)
            errors[name, run] = [oracle_torch.ratio(a[one], b[one]) for a, b in zip(results, expected)]
    rows = []
    for family in families():
        of_seeds = {name: [errors[name, (family, seed)] for seed in range(seeds)] for name in implementations}
        means = {name: [statistics.fmean(column) for column in zip(*values)] for name, values in of_seeds.items()}
        rows.append({"family": family, "errors": means})
        log(f"{family:30} " + ", ".join(f"{n} {o:.1e} {s:.1e}" for n, (o, s) in means.items()))
    return rows


# --- report -----------------------------------------------------------------------


def _columns(ours, fla, limit, both=False):
    """Errors of ours and, if `both`, of FLA, their ratios, and a mark where these are above the limit."""
    text = " ".join(f"{x:8.1e}" for x in ours)
    if not fla:
        return text
    if both:
        text += " " + " ".join(f"{x:8.1e}" for x in fla)
    ratios = [a / b for a, b in zip(ours, fla)]
    mark = "" if max(ratios) <= limit else f"  above {limit}"
    return text + "  " + " ".join(f"{x:5.2f}" for x in ratios) + mark


def table(facts, families, identities):
    """Errors and their ratios, and what is asked of these: with the default precision not above FLA and half of it in
    the hard families, with high precision a quarter of it."""
    lines = [
        ", ".join(f"{name} {value}" for name, value in facts.items() if value),
        f"T {T}, heads {HQK}/{HV}, K = V = {K}, bf16 inputs, no initial state; relative errors of o and of the state",
        "",
        f"{'inputs':30} {'gdn':>17} {'FLA':>17}  {'gdn/FLA':>11}  {'gdn, high':>17}  {'high/FLA':>11}",
    ]
    for row in families:
        errors = row["errors"]
        hard = row["family"] in HARD
        text = f"{row['family']:30} " + _columns(errors["gdn"], errors.get("FLA"), 0.5 if hard else 1.0, both=True)
        if "high" in errors:
            text += "  " + _columns(errors["high"], errors.get("FLA"), 0.25)
        lines.append(text)
    for schedule, rows in identities.items():
        lines += ["", f"schedule {schedule}: what must be equal (0: bits)".ljust(48) + f"{'found':>9} {'limit':>9}"]
        for row in rows:
            value = row["value"] if isinstance(row["value"], (int, str)) else f"{row['value']:.1e}"
            lines.append(f"{row['identity']:47} {value:>9} {row['limit']:>9}{'' if row['holds'] else '  FAILS'}")
    return "\n".join(lines)


def kernel_texts(schedules):
    import identities

    forms = [None if schedule == "default" else schedule for schedule in schedules]
    return [text(), text("high"), *(source for schedule in forms for source in identities.kernels(schedule).values())]


def main():
    import json

    import identities
    import report

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-fla", action="store_true", help="gdn alone")
    parser.add_argument("--tune", action="store_true", help="let FLA tune its kernels (most of a minute)")
    parser.add_argument(
        "--schedules", nargs="+", default=["default"], help="'default' or #gdn.schedule<...>, for the identities"
    )
    parser.add_argument("--compile-only", metavar="DIR", help="save gdn's kernels for GDN_PRECOMPILED; needs no GPU")
    parser.add_argument("--target", default="sm_90a", help="for --compile-only")
    options = parser.parse_args()
    if options.compile_only:
        return 1 if peers.save(kernel_texts(options.schedules), options.compile_only, options.target) else 0
    facts = report.machine()
    peers.preload(kernel_texts(options.schedules))
    implementations = {"gdn": run_gdn, "high": run_high}
    if not options.no_fla:
        implementations["FLA"] = run_fla
        if not options.tune:
            tune_nothing()
    families = family_rows(implementations, options.seeds)
    held = {s: identities.rows(None if s == "default" else s) for s in options.schedules}
    log = report.Log(options.output, "fidelity", facts)
    log.write("json", json.dumps({"machine": facts, "families": families, "identities": held}, indent=1) + "\n")
    log.finish(table(facts, families, held))
    return 0 if all(row["holds"] for rows in held.values() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
