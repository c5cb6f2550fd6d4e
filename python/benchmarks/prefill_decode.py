#!/usr/bin/env python3
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the gated delta rule of Qwen3.5-35B-A3B against FLA's Triton kernels, in one process.

Prefill (Hqk/Hv 16/32, T 8192; the recurrence alone with three sets of gates, and the layer with l2norm and
gates inside) and decode (T 1, float32 state, B 1, 8, 64, 256). Both sides run from CUDA graphs that rotate over
inputs, so that the L2 cache does not hold them; replays alternate between the two, and the median is taken.
The outputs of the timed graphs are compared with a float64 token loop. The table goes to the screen, and with
a JSON file of all figures to --output.

    python3 python/benchmarks/prefill_decode.py [--output DIR] [--quick] [--heads 16/32] [--tokens 8192]
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# FLA would otherwise hand the call to other libraries where they are installed.
os.environ["FLA_FLASH_QLA"] = "0"
os.environ["FLA_FLASH_KDA"] = "0"

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests")]

import gdn  # noqa: E402
from gdn import build  # noqa: E402
from gdn.driver import driver  # noqa: E402

K = V = 128
ROTATED_BYTES = 400 << 20
LIMIT_O, LIMIT_STATE = 8e-3, 1e-2


# --- what is timed ----------------------------------------------------------------


class Work:
    """One row of the table: its sizes and as many sets of inputs as rotation needs."""

    def __init__(self, name, B, T, heads, gates, layer, count):
        self.name, self.B, self.T = name, B, T
        self.Hqk, self.Hv = heads
        self.gates, self.layer, self.count = gates, layer, count
        self.sets, self._expected = [], {}

    def fill(self):
        self.sets = [self._inputs(seed) for seed in range(self.count)]

    def drop(self):
        self.sets, self._expected = [], {}

    def _inputs(self, seed):
        import torch

        generator = torch.Generator(device="cuda").manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, device="cuda", generator=generator)

        def key_like():
            x = normal(self.B, self.T, self.Hqk, K)
            return x if self.layer else x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()

        shape = (self.B, self.T, self.Hv)
        x = {
            "q": key_like().bfloat16(),
            "k": key_like().bfloat16(),
            "v": normal(*shape, V).bfloat16(),
            "beta": torch.sigmoid(normal(*shape)),
            "state": normal(self.B, self.Hv, V, K),
        }
        x.update(model_gates(shape, normal, generator) if self.layer else {"gate": gate_set(self.gates, shape, normal)})
        return x

    def text(self):
        sizes = (self.B, self.T, self.Hqk, self.Hv, K, V)
        if self.layer:
            return build.delta_rule_layer(*sizes)
        return build.recurrence(*sizes, gate="head", beta=True)

    def expected(self, place):
        """o and the final state of one set in float64."""
        import oracle_torch

        if place not in self._expected:
            y = {name: value.double() for name, value in self.sets[place].items()}
            if self.layer:
                for name in ("q", "k"):
                    y[name] = y[name] / (y[name].square().sum(-1, keepdim=True) + 1e-6).sqrt()
                y["gate"] = layer_gate(y.pop("a"), y.pop("A_log"), y.pop("dt_bias"))
            self._expected[place] = oracle_torch.recurrence(**y)
        return self._expected[place]


def softplus(x):
    import torch

    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def layer_gate(a, A_log, dt_bias):
    return -A_log.exp() * softplus(a + dt_bias)


def model_gates(shape, normal, generator):
    """As at initialisation of the models: A in U(0, 16), dt log-uniform in [1e-3, 0.1]."""
    import torch

    heads = shape[-1]
    A = torch.rand(heads, device="cuda", generator=generator) * 16
    dt = torch.exp(torch.rand(heads, device="cuda", generator=generator) * 4.605 - 6.908)
    return {"a": normal(*shape), "A_log": A.clamp(min=1e-4).log(), "dt_bias": dt + torch.log(-torch.expm1(-dt))}


def gate_set(name, shape, normal):
    import torch

    if name == "zero":
        return torch.zeros(shape, device="cuda")
    if name == "quarter":
        gate = torch.nn.functional.logsigmoid(normal(*shape))
        gate[..., ::4] = 0
        return gate
    generator = torch.Generator(device="cuda").manual_seed(99)
    return layer_gate(**model_gates(shape, normal, generator))


# --- the two sides ----------------------------------------------------------------


class Ours:
    name = "gdn"

    def __init__(self, work):
        self.kernel = gdn.load(work.text())

    def buffers(self, work, x):
        import torch

        return {"o": torch.full_like(x["v"], float("nan")), "state": x["state"].clone()}

    def call(self, x, buffers):
        return self.kernel(**dict(x, **buffers))


class Fla:
    """FLA's own entry points; the state layout is a variant, since its speed depends on it."""

    def __init__(self, work, v_first):
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

        self.name = "FLA" + (" v-first" if v_first else "")
        self.function = fused_recurrent_gated_delta_rule if work.T == 1 else chunk_gated_delta_rule
        self.v_first, self.layer = v_first, work.layer

    def buffers(self, work, x):
        state = x["state"] if self.v_first else x["state"].transpose(2, 3).contiguous()
        return {"initial_state": state.clone()}

    def call(self, x, buffers):
        import torch

        options = {"g": x["a"] if self.layer else x["gate"]}
        if self.layer:
            options.update(
                use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=x["A_log"], dt_bias=x["dt_bias"]
            )
        with torch.no_grad():
            o, state = self.function(
                x["q"],
                x["k"],
                x["v"],
                beta=x["beta"],
                output_final_state=True,
                state_v_first=self.v_first,
                **options,
                **buffers,
            )
        return o, (state if self.v_first else state.transpose(2, 3))


class Side:
    """One implementation's graph over all input sets of a work."""

    def __init__(self, implementation, work):
        import torch

        # Holds the kernels that the graph launches.
        self.implementation = implementation
        self.name, self.work = implementation.name, work
        self.buffers = [implementation.buffers(work, x) for x in work.sets]
        self.initial = [{name: t.clone() for name, t in b.items()} for b in (self.buffers[0], self.buffers[-1])]
        torch.cuda.synchronize()
        start = time.perf_counter()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            implementation.call(work.sets[0], self.buffers[0])
            torch.cuda.synchronize()
            self.first_call = time.perf_counter() - start
            for x, b in list(zip(work.sets, self.buffers))[1:3]:
                implementation.call(x, b)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # All results are kept, so that no call writes where the one before it did.
        with torch.cuda.graph(self.graph, stream=stream):
            self.results = [implementation.call(x, b) for x, b in zip(work.sets, self.buffers)]
        self.times = []

    def replay(self):
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The device is kept busy until the graph has been handed over: no host time is measured.
        torch.cuda._sleep(500_000)
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        self.times.append(begin.elapsed_time(end) * 1e3 / len(self.work.sets))

    def errors(self):
        """Errors of o and the state, the larger of the first and last set, from one replay of the timed graph."""
        import torch

        import oracle_torch

        for buffers, initial in zip((self.buffers[0], self.buffers[-1]), self.initial):
            for name, tensor in buffers.items():
                tensor.copy_(initial[name])
        self.graph.replay()
        torch.cuda.synchronize()
        worst = [0.0, 0.0]
        for place in (0, -1):
            for i, (got, want) in enumerate(zip(self.results[place], self.work.expected(place))):
                assert torch.isfinite(got).all(), f"{self.name}, {self.work.name}: a result is not finite"
                worst[i] = max(worst[i], oracle_torch.ratio(got, want))
        return worst


# --- measurement ------------------------------------------------------------------


def implementations(work, with_fla):
    yield Ours(work)
    if with_fla:
        yield Fla(work, False)
        yield Fla(work, True)


def measure(work, with_fla, replays):
    sides = []
    for implementation in implementations(work, with_fla):
        print(f"  {work.name}: {implementation.name} ...", flush=True)
        sides.append(Side(implementation, work))
    for _ in range(3):
        for side in sides:
            side.replay()
            side.times.clear()
    for _ in range(replays):
        for side in sides:
            side.replay()
    row = {"work": work.name, "B": work.B, "T": work.T, "heads": f"{work.Hqk}/{work.Hv}", "sides": {}}
    for side in sides:
        o, state = side.errors()
        correct = o <= LIMIT_O and state <= LIMIT_STATE
        if not correct:
            print(f"  WRONG: {side.name}, {work.name}: o {o:.1e}, state {state:.1e}", flush=True)
        row["sides"][side.name] = {
            "median_us": statistics.median(side.times),
            "min_us": min(side.times),
            "max_us": max(side.times),
            "first_call_s": side.first_call,
            "error_o": o,
            "error_state": state,
            "correct": correct,
        }
    return row


def works(options):
    heads = tuple(int(part) for part in options.heads.split("/"))
    count = 2 if options.quick else 4
    rows = []
    for gates in ("trained", "quarter", "zero"):
        rows.append(Work(f"prefill, {gates} gates", 1, options.tokens, heads, gates, False, count))
    rows.append(Work("prefill, layer", 1, options.tokens, heads, None, True, count))
    for B in options.decode:
        state_bytes = B * heads[1] * K * V * 4
        count = min(200, max(2, -(-ROTATED_BYTES // state_bytes)))
        rows.append(Work(f"decode, B {B}", B, 1, heads, "trained", False, count))
    return rows


# --- report -----------------------------------------------------------------------


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=30, cwd=PYTHON).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def machine():
    import torch

    cuda = driver().version()
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": command("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "clocks": command("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader"),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "torch": torch.__version__,
        "triton": version("triton"),
        "fla-core": version("fla-core"),
        "python": sys.version.split()[0],
        "target": os.environ.get("GDN_TARGET") or gdn.device_target(),
        "commit": command("git", "rev-parse", "--short", "HEAD"),
        "date": datetime.date.today().isoformat(),
    }


def table(facts, rows):
    lines = [", ".join(f"{name} {value}" for name, value in facts.items() if value)]
    lines.append(
        "microseconds a call, median of replays; CUDA graphs, inputs rotated; bf16 q, k, v, o, float32 gates and state"
    )
    lines.append("")
    lines.append(
        f"{'case':26} {'heads':>7} {'T':>6} {'gdn':>9} {'FLA':>9} {'FLA/gdn':>8} {'TB/s':>6}   "
        f"{'o / state error':20} {'first call, s':>14}"
    )
    for row in rows:
        ours = row["sides"]["gdn"]
        others = [side for name, side in row["sides"].items() if name != "gdn"]
        best = min(others, key=lambda side: side["median_us"]) if others else None
        fla = f"{best['median_us']:9.1f} {best['median_us'] / ours['median_us']:8.2f}" if best else f"{'-':>9} {'-':>8}"
        rate = ""
        if row["T"] == 1:
            state_bytes = row["B"] * int(row["heads"].split("/")[1]) * K * V * 4
            rate = f"{2 * state_bytes / ours['median_us'] * 1e-6:.2f}"
        wrong = "" if all(side["correct"] for side in row["sides"].values()) else "  WRONG"
        errors = f"{ours['error_o']:.1e} / {ours['error_state']:.1e}"
        first = f"{ours['first_call_s']:.1f}" + (f" / {max(s['first_call_s'] for s in others):.1f}" if best else "")
        lines.append(
            f"{row['work']:26} {row['heads']:>7} {row['T']:>6} {ours['median_us']:9.1f} {fla} {rate:>6}   "
            f"{errors:20} {first:>14}{wrong}"
        )
    lines.append("")
    lines.append(
        "FLA: the faster of its two state layouts. TB/s: state read and written. Errors against a float64 token"
    )
    lines.append("loop. First call: gdn / FLA (the slower layout), with compiling, loading and FLA's tuning.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--heads", default="16/32", help="key heads/value heads")
    parser.add_argument("--tokens", type=int, default=8192, help="T of the prefill")
    parser.add_argument("--decode", type=int, nargs="*", default=[1, 8, 64, 256], help="batch sizes of the decode")
    parser.add_argument("--replays", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="fewer input sets and replays")
    parser.add_argument("--compile-only", metavar="DIR", help="save the kernels for GDN_PRECOMPILED and time nothing")
    options = parser.parse_args()
    if options.compile_only:
        return compile_only(options)
    with_fla = version("fla-core") is not None or version("flash-linear-attention") is not None
    if not with_fla:
        print("FLA is not installed (package fla-core): timing gdn alone", flush=True)
    rows = []
    for work in works(options):
        work.fill()
        rows.append(measure(work, with_fla, 7 if options.quick else options.replays))
        work.drop()
        empty_cache()
    facts = machine()
    text = table(facts, rows)
    print("\n" + text)
    write(options.output, facts, rows, text)
    return 0 if all(side["correct"] for row in rows for side in row["sides"].values()) else 1


def empty_cache():
    import torch

    torch.cuda.empty_cache()


def write(folder, facts, rows, text):
    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join(["prefill_decode", facts["gpu"].replace(" ", "_"), facts["date"]])
    (folder / f"{name}.txt").write_text(text + "\n")
    (folder / f"{name}.json").write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")
    print(f"\nwritten to {folder / name}.txt and .json")


def compile_only(options):
    from gdn import compile as compiler

    for work in works(options):
        compiler.compile(work.text(), os.environ.get("GDN_TARGET") or "sm_90a").save(options.compile_only)
        print(f"{work.name}: compiled", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
