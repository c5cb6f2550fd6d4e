# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small runs of every kind of kernel for compute-sanitizer; needs neither torch nor pytest.

    for tool in memcheck racecheck; do
      compute-sanitizer --tool $tool --error-exitcode 9 python3 python/tests/gpu/sanitize.py || exit
    done

Each destination and each input is an allocation of its own, so that memcheck sees one row too many. The
results are compared with the float64 oracle. GDN_TARGET, GDN_COMPILE, GDN_PRECOMPILED as elsewhere;
--compile-only DIR saves what the runs need there. Names of runs may be given.
"""

import argparse
import os
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


def runs():
    """Name -> (model, B, T, Hqk, Hv, K, V, options, starts)."""
    cases = {}
    for model in MODELS:
        cases[f"{model}_chunks"] = (model, 1, 75, 1, 2, 64, 32, {"dynamic": True}, None)
        cases[f"{model}_step"] = (model, 2, 2, 1, 2, 64, 32, {}, None)
    starts = (0, 0, 5, 70, 70)
    for model in ("gated_delta", "kda"):
        options = {"offsets": "i32", "state_layout": "k_first", "dynamic": True}
        cases[f"{model}_packed"] = (model, 1, 70, 1, 2, 32, 48, options, starts)
        cases[f"{model}_f32"] = (model, 1, 40, 1, 1, 32, 32, {"dtype": "f32", "dynamic": True}, None)
    cases["wide"] = ("gated_delta", 1, 70, 1, 1, 128, 128, {"dtype": "f16", "dynamic": True}, None)
    cases["odd_sizes"] = ("gated_delta", 1, 33, 1, 1, 60, 20, {"dynamic": True}, None)
    return cases


def text(case):
    model, B, T, Hqk, Hv, K, V, options, starts = case
    options = dict(options)
    dynamic = options.pop("dynamic", False)
    batch = B if starts or not dynamic else None
    return build.recurrence(batch, None if dynamic else T, Hqk, Hv, K, V, **MODELS[model], **options)


def inputs(case):
    model, B, T, Hqk, Hv, K, V, options, starts = case
    rng = np.random.default_rng(0)
    dtype = options.get("dtype", "bf16")
    x = {
        "q": ref.l2norm(rng.normal(size=(B, T, Hqk, K))),
        "k": ref.l2norm(rng.normal(size=(B, T, Hqk, K))),
        "v": rng.normal(size=(B, T, Hv, V)),
    }
    x = {name: ref.rounded(value, dtype) for name, value in x.items()}
    gate = MODELS[model].get("gate")
    if gate:
        x["gate"] = -ref.softplus(rng.normal(size=(B, T, Hv) + ((K,) if gate == "channel" else ())))
    if MODELS[model].get("beta"):
        x["beta"] = ref.sigmoid(rng.normal(size=(B, T, Hv)))
    if MODELS[model].get("erase_write"):
        x["erase"] = ref.sigmoid(rng.normal(size=(B, T, Hv, K)))
        x["write"] = ref.sigmoid(rng.normal(size=(B, T, Hv, V)))
    if starts:
        x["offsets"] = np.array(starts, np.int32)
    matrix = (K, V) if options.get("state_layout") == "k_first" else (V, K)
    x["state"] = rng.normal(size=(len(starts) - 1 if starts else B, Hv, *matrix))
    return {name: value if value.dtype == np.int32 else value.astype(np.float32) for name, value in x.items()}


def on_device(name, value, dtype):
    if name == "offsets":
        return DeviceArray.from_bytes(value, value.shape, "i32")
    if name not in ("q", "k", "v", "o"):
        dtype = "f32"
    raw = {"bf16": ref.to_bf16_bits, "f16": np.float16, "f32": np.float32}[dtype](value)
    return DeviceArray.from_bytes(np.ascontiguousarray(raw), value.shape, dtype)


def on_host(array):
    kind = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32}[array.dtype]
    value = np.frombuffer(array.tobytes(), kind).reshape(array.shape)
    return ref.from_bf16_bits(value) if array.dtype == "bf16" else value.astype(np.float32)


def run(case, kernel):
    model, B, T, Hqk, Hv, K, V, options, starts = case
    dtype = options.get("dtype", "bf16")
    x = inputs(case)
    arrays = {name: on_device(name, value, dtype) for name, value in x.items()}
    arrays["o"] = on_device("o", np.full(x["v"].shape, np.nan, np.float32), dtype)
    kernel(**arrays)
    o, state = ref.recurrence(**x, state_layout=options.get("state_layout", "v_first"))
    kind = "tf32" if dtype == "f32" else dtype
    errors = ref.check("o", on_host(arrays["o"]), o, "o", kind)
    return errors[0], ref.check("state", on_host(arrays["state"]), state, "state", kind, tokens=False)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="runs to make; all by default")
    parser.add_argument("--compile-only", metavar="DIR", help="save the kernels there and run nothing")
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
            compiled = compiler.compile(text(cases[name]), target)
            if options.compile_only:
                compiled.save(options.compile_only)
                print(f"{name}: compiled", flush=True)
                continue
            errors = run(cases[name], gdn.Kernel(compiled))
            print(f"{name}: o {errors[0]:.1e}, state {errors[1]:.1e}, {time.time() - start:.1f} s", flush=True)
        except (AssertionError, gdn.CompileError, gdn.CudaError) as error:
            failed += 1
            print(f"{name}: FAILED: {error}", flush=True)
    print(f"{len(options.names or cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
