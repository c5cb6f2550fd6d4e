# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small runs of every kind of kernel for compute-sanitizer; needs neither torch nor pytest.

    for tool in memcheck synccheck "racecheck --each-lane-arrives"; do
      set -- $tool
      compute-sanitizer --tool $1 --error-exitcode 9 python3 python/tests/gpu/sanitize.py $2 || exit
    done

racecheck does not see that bar.warp.sync orders what all lanes of a warp have read in front of the one
lane that then arrives at a barrier of a ring: it reports the copy that fills the stage next
(python/benchmarks/NOTES.md has the experiment). With --each-lane-arrives the kernels
are changed so that it need not: then nothing may be reported, and that is how racecheck is run.

Each destination and each input is an allocation of its own, so that memcheck sees one row too many. The
results are compared with the float64 oracle. GDN_TARGET, GDN_COMPILE, GDN_PRECOMPILED as elsewhere;
--compile-only DIR saves what the runs need there. Names of runs may be given.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import gdn  # noqa: E402
from gdn import DeviceArray, build  # noqa: E402
from gdn import compile as compiler  # noqa: E402
from gdn import reference as ref  # noqa: E402

MODELS = {
    "linear": {},
    "ssd": {"gate": "head"},
    "gla": {"gate": "channel"},
    "delta": {"beta": True},
    "gated_delta": {"gate": "head", "beta": True},
    "kda": {"gate": "channel", "beta": True},
    "gdn2": {"gate": "channel", "erase_write": True},
}


class Recurrence:
    """One gdn.recurrence; `dynamic` leaves B and T open in the IR."""

    def __init__(
        self,
        model,
        *sizes,
        dtype="bf16",
        dynamic=True,
        starts=None,
        layout="v_first",
        slots=None,
        pool=None,
        schedule=None,
    ):
        """`sizes`: B, T, Hqk, Hv, K, V."""
        self.model, self.sizes, self.dtype = MODELS[model], sizes, dtype
        self.dynamic, self.starts, self.layout = dynamic, starts, layout
        self.slots, self.pool, self.schedule = slots, pool, schedule

    def text(self):
        B, T, *rest = self.sizes
        return build.recurrence(
            None if self.dynamic and not self.starts else B,
            None if self.dynamic else T,
            *rest,
            **self.model,
            dtype=self.dtype,
            offsets="i32" if self.starts else None,
            slots="i32" if self.slots else None,
            state_layout=self.layout,
            schedule=self.schedule,
        )

    def inputs(self, normal):
        B, T, Hqk, Hv, K, V = self.sizes
        x = {"q": ref.l2norm(normal(B, T, Hqk, K)), "k": ref.l2norm(normal(B, T, Hqk, K)), "v": normal(B, T, Hv, V)}
        gate = self.model.get("gate")
        if gate:
            x["gate"] = -ref.softplus(normal(B, T, Hv, *((K,) if gate == "channel" else ())))
        if self.model.get("beta"):
            x["beta"] = ref.sigmoid(normal(B, T, Hv))
        if self.model.get("erase_write"):
            x["erase"], x["write"] = ref.sigmoid(normal(B, T, Hv, K)), ref.sigmoid(normal(B, T, Hv, V))
        if self.starts:
            x["offsets"] = np.array(self.starts, np.int32)
        matrix = (K, V) if self.layout == "k_first" else (V, K)
        if self.slots:
            x["slots"] = np.array(self.slots, np.int32)
        x["state"] = normal(self.pool or (len(self.starts) - 1 if self.starts else B), Hv, *matrix)
        return x

    def expected(self, x):
        o, state = ref.recurrence(**x, state_layout=self.layout)
        return {"o": o, "state": state}


class Layer:
    """The example's chain: l2norm of q and k, gate, recurrence."""

    dtype = "bf16"

    def text(self):
        return build.delta_rule_layer(1, None, 1, 2, 32, 32)

    def inputs(self, normal):
        x = {name: normal(1, 70, 1, 32) for name in ("q", "k")}
        x.update(v=normal(1, 70, 2, 32), a=normal(1, 70, 2), A_log=normal(2), dt_bias=normal(2))
        x.update(beta=ref.sigmoid(normal(1, 70, 2)), state=normal(1, 2, 32, 32))
        return x

    def expected(self, x):
        y = dict(x)
        y["gate"] = ref.gate(y.pop("a"), y.pop("A_log"), y.pop("dt_bias"))
        y["q"], y["k"] = ref.l2norm(x["q"]), ref.l2norm(x["k"])
        o, state = ref.recurrence(**y)
        return {"o": o, "state": state}


class Conv:
    dtype = "bf16"
    starts = (0, 0, 2, 37, 37)

    def text(self):
        return build.short_conv(1, None, 40, 4, offsets="i32", bias=True, weight_dtype="f32", state_dtype="f32")

    def inputs(self, normal):
        return {
            "x": normal(1, 37, 40),
            "w": normal(40, 4),
            "bias": normal(40),
            "offsets": np.array(self.starts, np.int32),
            "state": normal(4, 40, 3),
        }

    def expected(self, x):
        y, state = ref.short_conv(**x, act="silu")
        return {"y": y, "state": state}


class Norm:
    dtype = "bf16"

    def text(self):
        return build.gated_rms_norm((None, 5, 48), weight_dtype="f32")

    def inputs(self, normal):
        return {"x": normal(7, 5, 48), "z": normal(7, 5, 48), "w": normal(48)}

    def expected(self, x):
        return {"y": ref.gated_rms_norm(**x)}


def runs():
    cases = {}
    for model in MODELS:
        cases[f"{model}_chunks"] = Recurrence(model, 1, 75, 1, 2, 64, 32)
        segments = build.schedule("segmented", 16, 32, 2, segments=4)
        cases[f"{model}_segmented"] = Recurrence(model, 1, 75, 1, 2, 64, 32, schedule=segments)
        cases[f"{model}_step"] = Recurrence(model, 2, 2, 1, 2, 64, 32, dynamic=False)
    for model in ("gated_delta", "kda"):
        cases[f"{model}_segmented_packed"] = Recurrence(
            model, 1, 101, 1, 2, 32, 48, starts=(0, 0, 5, 5, 70, 101, 101), layout="k_first",
            schedule=build.schedule("segmented", 16, 48, 2, segments=100),
        )  # fmt: skip
        cases[f"{model}_packed"] = Recurrence(model, 1, 70, 1, 2, 32, 48, starts=(0, 0, 5, 70, 70), layout="k_first")
        cases[f"{model}_f32"] = Recurrence(model, 1, 40, 1, 1, 32, 32, dtype="f32")
    for name, tokens in (("chunks", 33), ("step", 2)):
        cases[f"pool_{name}"] = Recurrence(
            "gated_delta", 3, tokens, 1, 2, 64, 32, dynamic=tokens > 8, slots=(3, -1, 0), pool=4
        )
    # Tiles that the copy engine moves, whole and partial ones.
    for model in ("linear", "gla", "gated_delta", "gdn2"):
        cases[f"{model}_wide"] = Recurrence(model, 2, 150, 1, 2, 64, 128)
    for model in ("gated_delta", "gdn2"):
        high = build.schedule("auto", precision="high")
        cases[f"{model}_high"] = Recurrence(model, 2, 150, 1, 2, 64, 128, schedule=high)
    cases["wide_packed"] = Recurrence("gated_delta", 1, 200, 1, 2, 128, 128, starts=(0, 0, 5, 70, 134, 134, 200))
    for name, tokens in (("gated_delta", 330), ("delta", 320)):
        cases[f"{name}_segmented_whole"] = Recurrence(
            name, 1, tokens, 1, 2, 128, 128, schedule=build.schedule("segmented", 64, 64, 3, segments=100)
        )
    # Rings whose stages are filled several times.
    for model in ("gated_delta", "delta", "kda"):
        cases[f"{model}_long"] = Recurrence(model, 1, 600, 1, 2, 128, 128)
    cases["whole_heads_long"] = Recurrence(
        "gated_delta", 1, 600, 1, 2, 128, 128, schedule=build.schedule("split", 64, 128, 3)
    )
    for model in ("gated_delta", "ssd"):
        cases[f"{model}_fused"] = Recurrence(model, 1, 330, 1, 2, 128, 128, schedule=build.schedule("fused", 64, 64, 3))
    cases["scores_ahead"] = Recurrence(
        "gated_delta", 1, 600, 2, 2, 128, 128, schedule=build.schedule("split", 64, 128, 3, scores_ahead=True)
    )
    # More chunks of heads than blocks, of which some so take two.
    cases["resident"] = Recurrence(
        "gated_delta", 1, 2500, 4, 4, 64, 64, starts=(0, 0, 1, 1300, 1300, 2500),
        schedule=build.schedule("split", 64, 128, 3, scores_ahead=True, resident_from=1),
    )  # fmt: skip
    cases["pool_segmented"] = Recurrence(
        "gated_delta", 3, 70, 1, 2, 64, 32, slots=(3, -1, 0), pool=4,
        schedule=build.schedule("segmented", 16, 32, 2, segments=15),
    )  # fmt: skip
    # Empty sequences at both ends and side by side, with every schedule.
    starts = (0, 0, 0, 5, 5, 70, 134, 134, 134, 200, 200)
    for name, schedule in {
        "split": build.schedule("split", 64, 64, 3),
        "pair": build.schedule("split", 64, 128, 3),
        "segmented": build.schedule("segmented", 64, 64, 3, segments=100),
        "fused": build.schedule("fused", 64, 64, 3),
        "ahead": build.schedule("split", 64, 128, 3, scores_ahead=True),
        "step": build.schedule("step", 16, 8),
        "eights": build.schedule("step", 8, 16),
    }.items():
        cases[f"empty_{name}"] = Recurrence("gated_delta", 1, 200, 1, 2, 128, 128, starts=starts, schedule=schedule)
    for model in ("delta", "kda", "gdn2"):
        cases[f"empty_{model}"] = Recurrence(model, 1, 200, 1, 2, 128, 128, starts=starts)
    cases["wide"] = Recurrence("gated_delta", 1, 70, 1, 1, 128, 128, dtype="f16")
    cases["odd_sizes"] = Recurrence("gated_delta", 1, 33, 1, 1, 60, 20)
    cases.update(layer=Layer(), conv=Conv(), norm=Norm())
    return cases


# Arguments that have the element type of the case; all others are float32.
INTEGERS = ("offsets", "slots")
TYPED = ("q", "k", "v", "o", "x", "z", "y")


def rounded_inputs(case):
    rng = np.random.default_rng(0)
    x = case.inputs(lambda *shape: rng.normal(size=shape))
    for name in x:
        if name not in INTEGERS:
            x[name] = ref.rounded(x[name], case.dtype if name in TYPED else "f32")
    return x


def on_device(name, value, dtype):
    if name in INTEGERS:
        return DeviceArray.from_bytes(value, value.shape, "i32")
    dtype = dtype if name in TYPED else "f32"
    raw = {"bf16": ref.to_bf16_bits, "f16": np.float16, "f32": np.float32}[dtype](value)
    return DeviceArray.from_bytes(np.ascontiguousarray(raw), value.shape, dtype)


def on_host(array):
    kind = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32}[array.dtype]
    value = np.frombuffer(array.tobytes(), kind).reshape(array.shape)
    return ref.from_bf16_bits(value) if array.dtype == "bf16" else value.astype(np.float32)


def run(case, kernel):
    """Error of each result by name, all within their limits."""
    x = rounded_inputs(case)
    want = case.expected(x)
    arrays = {name: on_device(name, value, case.dtype) for name, value in x.items()}
    for name, value in want.items():
        if name not in arrays:
            arrays[name] = on_device(name, np.full(value.shape, np.nan), case.dtype)
    kernel(**arrays)
    arithmetic = "tf32" if case.dtype == "f32" else case.dtype
    errors = {}
    for name, value in want.items():
        kind = "state" if name == "state" else "o"
        errors[name] = ref.check(name, on_host(arrays[name]), value, kind, arithmetic, tokens=name == "o")[0]
    return errors


ARRIVAL = re.compile(r"@\S+ (mbarrier\.arrive\.shared::cta\.b64 _,)")
INIT = re.compile(r"mbarrier\.init\.shared\.b64\s+(\[[^\]]+\]), (%r\d+);")


def let_each_lane_arrive(ptx):
    """The arrivals of one lane for its warp become those of its 32 lanes, and barriers count these. Left alone are
    barriers of threads: of one that copies by itself, and of copies by all threads, whose count is 32 already."""
    lines, constants = ptx.splitlines(), {}
    for i, line in enumerate(lines):
        if found := re.match(r"\s*mov\.b32\s+(%r\d+), (\d+);", line):
            constants[found[1]] = int(found[2])
        found = INIT.search(line)
        later = (other for other in lines[i + 1 :] if "mbarrier." in other and "mbarrier.init" not in other)
        if found and constants[found[2]] < 32 and "arrive.expect_tx" not in next(later, ""):
            lines[i] = line.replace(found[0], f"mbarrier.init.shared.b64 {found[1]}, {32 * constants[found[2]]};")
        lines[i] = ARRIVAL.sub(r"\1", lines[i])
    return "\n".join(lines) + "\n"


LEFT_OUT = {
    "barrier": re.compile(r"^\s*bar\.sync\s.*$", re.MULTILINE),
    "wait": re.compile(r"^\s*\{ \.reg \.pred done; AGAIN: mbarrier\.try_wait.*$", re.MULTILINE),
}


def leave_out(ptx, kernel, kind, number):
    """The kernels, of which one lacks a barrier of the block or a wait for a stage: what racecheck must report."""
    start = re.search(rf"^\.visible \.entry \w*{kernel}\(", ptx, re.MULTILINE).start()
    later = re.compile(r"^\.visible \.entry ", re.MULTILINE).search(ptx, start + 1)
    end = later.start() if later else len(ptx)
    found = list(LEFT_OUT[kind].finditer(ptx, start, end))
    if not 0 <= number < len(found):
        raise ValueError(f"{kernel} has no {kind} number {number}; it has {len(found)}")
    return ptx[: found[number].start()] + ptx[found[number].end() :]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="runs to make; all by default")
    parser.add_argument("--compile-only", metavar="DIR", help="save the kernels there and run nothing")
    parser.add_argument("--each-lane-arrives", action="store_true", help="for racecheck, see above")
    parser.add_argument(
        "--leave-out", nargs=3, metavar=("KERNEL", "KIND", "N"), help=f"break a kernel: no {' or '.join(LEFT_OUT)} N"
    )
    options = parser.parse_args()
    cases = runs()
    unknown = [name for name in options.names if name not in cases]
    if unknown:
        parser.error(f"unknown runs {', '.join(unknown)}; there are {', '.join(cases)}")
    target = os.environ.get("GDN_TARGET") or ("sm_90a" if options.compile_only else gdn.device_target())
    failed = 0
    for name in options.names or cases:
        start = time.time()
        try:
            compiled = compiler.compile(cases[name].text(), target)
            if options.compile_only:
                compiled.save(options.compile_only)
                print(f"{name}: compiled", flush=True)
                continue
            if options.each_lane_arrives:
                compiled = compiler.Compiled(compiled.manifest, let_each_lane_arrive(compiled.ptx))
            if options.leave_out:
                kernel, kind, number = options.leave_out
                compiled = compiler.Compiled(compiled.manifest, leave_out(compiled.ptx, kernel, kind, int(number)))
            errors = run(cases[name], gdn.Kernel(compiled))
            shown = ", ".join(f"{result} {error:.1e}" for result, error in errors.items())
            print(f"{name}: {shown}, {time.time() - start:.1f} s", flush=True)
        except (AssertionError, gdn.CompileError, gdn.CudaError) as error:
            failed += 1
            print(f"{name}: FAILED: {error}", flush=True)
    print(f"{len(options.names or cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
