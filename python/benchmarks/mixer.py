# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times a whole Gated DeltaNet mixer without its projections, beside FLA's layer.

    python3 python/benchmarks/mixer.py [--output DIR] [--tokens 8192] [--batch 64]

The mixer is that of Qwen3.5-35B-A3B (16 key heads, 32 value heads of size 128): short convolutions with SiLU,
l2norm, gates, the rule, the gated norm, from the results of the projections: gdn.nn's are one tensor, q, k and v
side by side; FLA's are three. Prefill and decode run from CUDA graphs that rotate over inputs; FLA's side is made
of the parts of FLA's own layer, called as its forward calls them with a cache.
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "benchmarks")]

import gdn  # noqa: E402
import report  # noqa: E402

HEADS, VALUE_HEADS, SIZE, TAPS = 16, 32, 128, 4
KEYS, VALUES = HEADS * SIZE, VALUE_HEADS * SIZE
SETS, REPLAYS = 4, 15


class Parameters:
    def __init__(self):
        random = torch.Generator("cuda").manual_seed(1)

        def normal(*shape, scale=0.5):
            return torch.randn(*shape, device="cuda", generator=random) * scale

        self.conv = [normal(size, TAPS).bfloat16() for size in (KEYS, KEYS, VALUES)]
        self.joint_conv = torch.cat(self.conv)
        self.A_log = torch.rand(VALUE_HEADS, device="cuda", generator=random).mul_(16).clamp_(min=0.01).log_()
        self.dt_bias = normal(VALUE_HEADS) - 4
        self.norm = (1 + normal(SIZE, scale=0.1)).bfloat16()


def projected(B, T, seed):
    """Inputs of the convolutions, gate and beta logits, and the output gate's, as projections give them."""
    random = torch.Generator("cuda").manual_seed(seed)
    sizes = (KEYS, KEYS, VALUES, VALUE_HEADS, VALUE_HEADS, VALUES)
    q, k, v, *rest = (torch.randn(B, T, size, device="cuda", generator=random).bfloat16() for size in sizes)
    return [torch.cat([q, k, v], dim=-1), q, k, v, *rest]


class Gdn:
    name = "gdn"

    def __init__(self, p, state_dtype=torch.float32):
        self.p, self.state_dtype = p, state_dtype

    def caches(self, B):
        conv = torch.zeros(B, 2 * KEYS + VALUES, TAPS - 1, device="cuda", dtype=torch.bfloat16)
        return conv, torch.zeros(B, VALUE_HEADS, SIZE, SIZE, device="cuda", dtype=self.state_dtype)

    def __call__(self, inputs, caches):
        p, (qkv, _, _, _, a, b, z), (conv, state) = self.p, inputs, caches
        options = {"initial_state": conv, "final_state": conv, "output_final_state": True}
        early = qkv.shape[1] > 8
        if early:
            options["l2norm_heads"] = (2 * HEADS, SIZE)
        q, k, v = gdn.short_conv(qkv, p.joint_conv, **options)[0].split([KEYS, KEYS, VALUES], dim=-1)
        o, _ = gdn.recurrence(
            q.unflatten(-1, (HEADS, SIZE)),
            k.unflatten(-1, (HEADS, SIZE)),
            v.unflatten(-1, (VALUE_HEADS, SIZE)),
            a,
            b,
            gate_form="raw",
            A_log=p.A_log,
            dt_bias=p.dt_bias,
            beta_form="sigmoid",
            qk_l2norm=not early,
            initial_state=state,
            final_state=state,
        )
        return gdn.gated_rms_norm(o, z.view_as(o), p.norm), state


class Fla:
    name = "FLA"

    def __init__(self, p):
        from fla.modules import FusedRMSNormGated, ShortConvolution
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

        self.p, self.chunk, self.step = p, chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
        self.conv = []
        for weight in p.conv:
            conv = ShortConvolution(weight.shape[0], TAPS, activation="silu", device="cuda", dtype=torch.bfloat16)
            conv.weight.data.copy_(weight[:, None])
            self.conv.append(conv)
        self.norm = FusedRMSNormGated(SIZE, eps=1e-6, device="cuda", dtype=torch.bfloat16)
        self.norm.weight.data.copy_(p.norm)

    def caches(self, B):
        conv = [torch.zeros(B, size, TAPS, device="cuda", dtype=torch.bfloat16) for size in (KEYS, KEYS, VALUES)]
        return conv, torch.zeros(B, VALUE_HEADS, SIZE, SIZE, device="cuda")

    def __call__(self, inputs, caches):
        p, (_, q, k, v, a, b, z), (conv, state) = self.p, inputs, caches
        q, k, v = (c(x, cache=s, output_final_state=True)[0] for c, x, s in zip(self.conv, (q, k, v), conv))
        rule = self.step if q.shape[1] <= 64 else self.chunk
        o, state = rule(
            q.unflatten(-1, (HEADS, SIZE)),
            k.unflatten(-1, (HEADS, SIZE)),
            v.unflatten(-1, (VALUE_HEADS, SIZE)),
            g=a,
            beta=b,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
            use_gate_in_kernel=True,
            A_log=p.A_log,
            dt_bias=p.dt_bias,
            use_beta_sigmoid_in_kernel=True,
            state_v_first=True,
        )
        return self.norm(o, z.view_as(o)), state


def captured(side, sets):
    """A graph of one call for each set of inputs, the caches of each, and the first set's results."""
    caches = [side.caches(inputs[0].shape[0]) for inputs in sets]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        first = [result.clone() for result in side(sets[0], caches[0])]
        for inputs, cache in zip(sets, caches):
            side(inputs, cache)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [side(inputs, cache) for inputs, cache in zip(sets, caches)]
    return graph, first, kept


def graph_times(sides, sets):
    """Median microseconds per call of each side, replays in turn; and how far the sides' results lie apart."""
    graphs = [captured(side, sets) for side in sides]
    times = [[] for _ in sides]
    for _ in range(REPLAYS):
        for (graph, *_), mine in zip(graphs, times):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(300_000)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            mine.append(start.elapsed_time(end) * 1e3 / len(sets))
    ours, theirs = (first for _, first, _ in graphs)
    apart = [((a.float() - b.float()).norm() / b.float().norm()).item() for a, b in zip(ours, theirs)]
    return [statistics.median(mine) for mine in times], apart


def kernels(side, inputs, calls=5):
    """(microseconds, launches, name) of each kernel of a call, the longest first; the call repeats on a warm cache."""
    from torch.profiler import ProfilerActivity, profile

    caches = side.caches(inputs[0].shape[0])
    with torch.no_grad():
        side(inputs, caches)
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for _ in range(calls):
                side(inputs, caches)
            torch.cuda.synchronize()
    rows = [(event.self_device_time_total / calls, event.count / calls, event.key) for event in profiled.key_averages()]
    return sorted((row for row in rows if row[0]), reverse=True)


def print_kernels(side, B, T):
    print(f"{side.name}, {B} x {T}")
    for microseconds, launches, name in kernels(side, projected(B, T, 0)):
        print(f"{microseconds:>10.1f} us {launches:>5.1f} x {name[:90]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--profile", action="store_true", help="also print the time of each kernel")
    parser.add_argument("--kernels", action="store_true", help="only print the time of each of gdn's kernels")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    if options.kernels:
        for B, T in ((1, options.tokens), (options.batch, 1)):
            print_kernels(Gdn(Parameters()), B, T)
        return 0
    parameters = Parameters()
    sides = [Gdn(parameters), Fla(parameters)]
    sides16 = [Gdn(parameters, torch.bfloat16), sides[1]]
    rows = []
    cases = [
        (f"prefill, 1 x {options.tokens} tokens", sides, 1, options.tokens),
        (f"decode, {options.batch} sequences", sides, options.batch, 1),
        ("the same, gdn's states in bfloat16", sides16, options.batch, 1),
    ]
    for label, sides, B, T in cases:
        print(f"{label} ...", flush=True)
        times, apart = graph_times(sides, [projected(B, T, seed) for seed in range(SETS)])
        rows.append((label, *times, apart))
        for side in sides if options.profile else ():
            print_kernels(side, B, T)
    facts = report.machine()
    lines = [
        f"{'mixer without projections, 16/32 heads':<40}{'gdn us':>10}{'FLA us':>10}{'FLA/gdn':>9}  o, state apart"
    ]
    for label, ours, theirs, apart in rows:
        shown = "" if apart is None else ", ".join(f"{x:.1e}" for x in apart)
        lines.append(f"{label:<40}{ours:>10.1f}{theirs:>10.1f}{theirs / ours:>9.2f}  {shown}")
    text = "\n".join([report.describe(facts), "", *lines, ""])
    print(text)
    report.save(options.output, "mixer", facts, {"rows": rows}, text)
    # Both round to bfloat16 in other places; farther apart is an error of one of them.
    return int(any(apart and max(apart) > 2e-2 for *_, apart in rows))


if __name__ == "__main__":
    sys.exit(main())
