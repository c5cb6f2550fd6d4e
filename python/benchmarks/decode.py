#!/usr/bin/env python3
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times decode (T = 1) and verify (T = 2, 4, 8) of the gated delta rule against a copy, FLA and FlashInfer.

    python3 python/benchmarks/decode.py [--batch 1 8 64 256 1024] [--tokens 1 2 4 8] [--states f32 bf16]

The state lies in a pool, in place, and each sequence has a slot of it, in random order. 100 % is the
fastest kernel here that reads and writes the same slots and does nothing else. NOTES.md has the method.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests"), str(PYTHON / "benchmarks")]

import peers  # noqa: E402
import timing  # noqa: E402
import workloads  # noqa: E402
from timing import Unsupported  # noqa: E402

LIMITS = (8e-3, 1e-2)
STATES = ("f32", "bf16")
COPY = "copy"
ROTATED_BYTES = 400 << 20


@dataclass(frozen=True)
class Step:
    """One row: B sequences of T tokens each, with a state of the given type."""

    B: int
    T: int
    state: str
    heads: str = "16/32"
    K: int = 128
    V: int = 128

    @property
    def Hqk(self):
        return workloads.parse_heads(self.heads)[0]

    @property
    def Hv(self):
        return workloads.parse_heads(self.heads)[1]

    @property
    def name(self):
        return f"B {self.B} T {self.T} {self.state}"

    def state_bytes(self):
        return self.B * self.Hv * self.K * self.V * (4 if self.state == "f32" else 2)

    def sets(self):
        """Pools in turn, so that no state is found in the L2 cache."""
        return min(200, max(2, -(-ROTATED_BYTES // self.state_bytes())))


def steps(batch, tokens, states, heads="16/32"):
    return [Step(B, T, state, heads) for T in tokens for state in states for B in batch]


def inputs(step, seed, device="cuda"):
    """q, k, v, the raw gate and beta that FlashInfer wants, gate and beta made of them, a pool and its slots."""
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, device=device, generator=generator)

    B, T = step.B, step.T
    raw = workloads.model_gates((B, T, step.Hv), generator, device)
    raw["a"] = raw["a"].bfloat16()
    logits = normal(B, T, step.Hv).bfloat16()
    dtype = torch.float32 if step.state == "f32" else torch.bfloat16
    pool = torch.empty(B, step.Hv, step.V, step.K, device=device, dtype=dtype)
    pool.normal_(generator=generator)
    return {
        "q": workloads.normalised(normal(B, T, step.Hqk, step.K)).bfloat16(),
        "k": workloads.normalised(normal(B, T, step.Hqk, step.K)).bfloat16(),
        "v": normal(B, T, step.Hv, step.V).bfloat16(),
        "gate": workloads.layer_gate(raw["a"].float(), raw["A_log"], raw["dt_bias"]),
        "beta": torch.sigmoid(logits.float()),
        "logits": logits,
        "pool": pool,
        "slots": torch.randperm(B, device=device, generator=generator).to(torch.int32),
        **raw,
    }


def expected(x):
    """o and the pool in float64."""
    import oracle_torch

    slots = x["slots"].long()
    operands = {name: x[name] for name in ("q", "k", "v", "gate", "beta")}
    o, state = oracle_torch.recurrence(**operands, state=x["pool"][slots])
    pool = state.new_empty(state.shape)
    pool[slots] = state
    return o, pool


# --- implementations: call(x, buffers) returns o and the pool ------------------------


class Gdn:
    """Through the slots where `slots`, else it gets the states in order of the sequences."""

    name = "gdn"

    def __init__(self, step, sizes, slots):
        self.slots = slots
        self.kernel = peers.kernel(self.text(step, sizes, slots))

    @staticmethod
    def text(step, sizes, slots):
        """`sizes` "dynamic" leaves the number of sequences and the size of the pool open."""
        from gdn import build

        B = None if sizes == "dynamic" else step.B
        pool = {"slots": "i32", "S": B} if slots else {}
        return build.recurrence(
            B, step.T, step.Hqk, step.Hv, step.K, step.V, gate="head", beta=True, state_dtype=step.state, **pool
        )  # fmt: skip

    def buffers(self, x):
        import torch

        state = x["pool"].clone() if self.slots else x["pool"][x["slots"].long()]
        return {"o": torch.full_like(x["v"], float("nan")), "state": state}

    def call(self, x, buffers):
        names = ["q", "k", "v", "gate", "beta"] + ["slots"] * self.slots
        return self.kernel(**{name: x[name] for name in names}, **buffers)

    def finish(self, x, results):
        return results if self.slots else in_pool(x, results)


def in_pool(x, results):
    """States in the order of the sequences, brought to that of the pool."""
    o, state = results
    pool = state.new_empty(state.shape)
    pool[x["slots"].long()] = state
    return o, pool


class Fla:
    """Out of place and without slots: it gets the states in order of the sequences."""

    def __init__(self, step, v_first):
        self.name = "FLA v-first" if v_first else "FLA"
        if step.state != "f32":
            raise Unsupported("bf16 state: it writes float32 states only")
        from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

        self.function, self.v_first = fused_recurrent_gated_delta_rule, v_first

    def buffers(self, x):
        state = x["pool"][x["slots"].long()]
        return {"initial_state": state if self.v_first else state.transpose(2, 3).contiguous()}

    def call(self, x, buffers):
        o, state = self.function(
            x["q"], x["k"], x["v"], g=x["gate"], beta=x["beta"], output_final_state=True,
            state_v_first=self.v_first, **buffers,
        )  # fmt: skip
        return o, (state if self.v_first else state.transpose(2, 3))

    def finish(self, x, results):
        return in_pool(x, results)


class FlashInfer:
    """Its pool kernels: gate and beta come raw, q and k normalised beforehand."""

    name = "FlashInfer"

    def __init__(self, step):
        from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose

        self.function = gated_delta_rule_decode_pretranspose

    def buffers(self, x):
        import torch

        return {"output": torch.full_like(x["v"], float("nan")), "initial_state": x["pool"].clone()}

    def call(self, x, buffers):
        self.function(
            x["q"], x["k"], x["v"], None, x["A_log"], x["a"], x["dt_bias"], x["logits"],
            scale=x["q"].shape[3] ** -0.5, use_qk_l2norm=False, initial_state_indices=x["slots"], **buffers,
        )  # fmt: skip
        return buffers["output"], buffers["initial_state"]


def copy_kernel():
    """Triton kernel that reads and writes the slots of a pool; a zero that it learns at run time keeps the store."""
    import triton
    import triton.language as tl

    @triton.jit
    def copy(pool, slots, zero, words, BLOCK: tl.constexpr):
        slot = tl.load(slots + tl.program_id(1)).to(tl.int64)
        place = pool + slot * words + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(place, tl.load(place) + zero)

    return copy


class Copy:
    """100 %: the fastest of a few block sizes."""

    KERNEL = None
    CANDIDATES = ((256, 1), (512, 1), (512, 2), (1024, 1), (1024, 2), (1024, 4), (2048, 2), (2048, 4), (4096, 4))

    def __init__(self, block, warps):
        self.name = f"{COPY} {block}/{warps}"
        self.block, self.warps = block, warps
        Copy.KERNEL = Copy.KERNEL or copy_kernel()

    def buffers(self, x):
        return {"pool": x["pool"].clone()}

    def call(self, x, buffers):
        import torch

        pool = buffers["pool"]
        words = pool[0].numel() * pool.element_size() // 4
        grid = (words // self.block, len(x["slots"]))
        Copy.KERNEL[grid](pool.view(torch.int32), x["slots"], 0, words, BLOCK=self.block, num_warps=self.warps)
        return x["v"], pool


def copy_side(sets):
    """The fastest copy; all candidates are timed, one is kept."""
    best = None
    for candidate in Copy.CANDIDATES:
        side = timing.Side(Copy(*candidate), sets)
        for _ in range(5):
            side.replay()
        if best is None or min(side.times) < min(best.times):
            best = side
    best.times.clear()
    best.name = COPY
    return best


# --- measurement ------------------------------------------------------------------

PEERS = {
    "FLA": lambda step: Fla(step, False),
    "FLA v-first": lambda step: Fla(step, True),
    "FlashInfer": FlashInfer,
}


def measure(step, names, sizes, slots, log=print):
    sets = [inputs(step, seed) for seed in range(step.sets())]
    candidates = [("gdn", lambda: Gdn(step, sizes, slots))]
    candidates += [(name, lambda make=make: make(step)) for name, make in PEERS.items() if name in names]
    running, rows = timing.sides(candidates, sets, log)
    copy = copy_side(sets)
    timing.measure([*running, copy])
    timing.judge(running, rows, lambda: [expected(sets[0]), expected(sets[-1])], LIMITS, log)
    rows[COPY] = dict(copy.summary(), correct=True, kernel=copy.implementation.name)
    return {
        "work": step.name, "heads": step.heads, "B": step.B, "T": step.T, "state": step.state,
        "state_bytes": step.state_bytes(), "sets": step.sets(), "sides": rows,
    }  # fmt: skip


def main():
    import report

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--heads", default="16/32")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64, 256, 1024])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--states", nargs="+", choices=STATES, default=list(STATES))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--sizes", choices=("static", "dynamic"), default="dynamic", help="B and S of gdn's kernels")
    parser.add_argument("--slots", action=argparse.BooleanOptionalAction, default=True, help="gdn through slots")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no row that long after the start")
    parser.add_argument("--after", metavar="FILE", help="measure when this file exists")
    parser.add_argument("--compile-only", metavar="DIR", help="save gdn's kernels for GDN_PRECOMPILED; needs no GPU")
    parser.add_argument("--target", default="sm_90a", help="for --compile-only")
    options = parser.parse_args()
    rows = steps(options.batch, options.tokens, options.states, options.heads)
    texts = list(dict.fromkeys(Gdn.text(step, options.sizes, options.slots) for step in rows))
    if options.compile_only:
        return 1 if peers.save(texts, options.compile_only, options.target) else 0
    facts = report.machine()
    facts.update(sizes=options.sizes, slots=options.slots)
    peers.import_all(("fla.ops.gated_delta_rule", "flashinfer.gdn_decode"))
    peers.preload(texts)
    timing.wait_for(options.after)
    timing.calm()
    log = report.Log(options.output, "decode", facts)
    try:
        for step in rows:
            if timing.since_start() > options.seconds:
                print(f"no time left for {len(rows) - len(log.rows)} rows", flush=True)
                break
            log.add(measure(step, options.peers, options.sizes, options.slots, log.note))
            timing.release()
    finally:
        log.finish(report.decode_table(facts, log.rows), report.decode_chart(facts, log.rows))
    return 0 if all(side.get("correct", True) for row in log.rows for side in row["sides"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
