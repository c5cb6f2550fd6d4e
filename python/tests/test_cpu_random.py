# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random recurrences on the host against the float64 oracle.

Sizes, models, element types, layouts, offsets and schedules are drawn with a fixed seed:
combinations that nobody thought of. $GDN_RANDOM_SEED and $GDN_RANDOM_CASES draw others;
a failure prints the case.
"""

import os
import random

import numpy as np
import pytest

from cpu_support import host_library, merge, read, store
from gdn import build, reference
from test_cpu_recurrence import MODELS, PATHS

SEED = int(os.environ.get("GDN_RANDOM_SEED", "1"))
CASES = int(os.environ.get("GDN_RANDOM_CASES", "10"))
COUNTED = {"loops": 1, "linalg": 1, "tile": 2, "pipelined-tile": 1, "rotated-tile": 1}


def draw_schedule(rng, path, K, V):
    if path == "loops" or rng.random() < 0.2:
        return None
    if path == "linalg":
        return build.schedule("fused", rng.choice((16, 32, 64)), rng.choice((1, 5, V, V + 3)))
    if rng.random() < 0.25:
        return build.schedule("step", 16, rng.choice((1, 3, 8, 32)))
    chunk = rng.choice((16, 16, 32, 64) if K <= 64 else (16, 32))
    block, stages = rng.choice((16, 16, 32, 48, 64)), rng.choice((1, 2, 3, 4))
    segments = (rng.choice((1, 2, 4, 1000)), rng.choice((1, 1, 2))) if rng.random() < 0.5 else ()
    phases = "segmented" if segments else "split"
    return build.schedule(phases, chunk, block, stages, *segments, precision=rng.choice(build.PRECISIONS))


def draw_offsets(rng, T):
    cuts = sorted(rng.randint(0, T) for _ in range(rng.randint(0, 5)))
    return (0, *cuts, T)


def draw(rng, path):
    """One case: everything that build.recurrence takes, and the sizes of the run."""
    model = rng.choice(list(MODELS))
    dtype = rng.choice(("bf16", "f16", "f32"))
    T = rng.choice((0, 1, 2, 15, 16, 17, rng.randint(3, 70), rng.randint(60, 140)))
    offsets = draw_offsets(rng, T) if rng.random() < 0.4 else None
    Hqk = rng.choice((1, 1, 2))
    K = rng.choice((1, 3, 8, 16, 17, 33, 60, 64, 100))
    V = rng.choice((1, 5, 16, 24, 40, 65))
    return dict(
        model=model,
        dtype=dtype,
        factor_dtype=rng.choice(("f32", dtype)),
        state_dtype=rng.choice(("f32", "f32", dtype)),
        state_layout=rng.choice(("v_first", "k_first")),
        B=1 if offsets else rng.choice((0, 1, 1, 2, 3)),
        T=T,
        Hqk=Hqk,
        Hv=Hqk * rng.choice((1, 2, 3)),
        K=K,
        V=V,
        offsets=offsets,
        offset_type=rng.choice(("i32", "i64")),
        dynamic=rng.random() < 0.4,
        scale=rng.choice((None, 1.0, -0.37)),
        schedule=draw_schedule(rng, path, K, V),
    )


def function(case, name):
    dynamic, offsets = case["dynamic"], case["offsets"]
    return build.recurrence(
        None if dynamic and not offsets else case["B"],
        None if dynamic else case["T"],
        *(case[key] for key in ("Hqk", "Hv", "K", "V")),
        N=None if dynamic or not offsets else len(offsets) - 1,
        offsets=case["offset_type"] if offsets else None,
        gate_dtype=case["factor_dtype"],
        beta_dtype=case["factor_dtype"],
        name=name,
        **{key: case[key] for key in ("dtype", "state_dtype", "state_layout", "scale", "schedule")},
        **MODELS[case["model"]],
    )


def types(case):
    names = dict.fromkeys(("q", "k", "v"), case["dtype"])
    names |= dict.fromkeys(("gate", "beta", "erase", "write"), case["factor_dtype"])
    return names | {"offsets": case["offset_type"], "state": case["state_dtype"]}


def inputs(case, seed):
    rng = np.random.default_rng(seed)
    B, T, Hqk, Hv, K, V = (case[key] for key in ("B", "T", "Hqk", "Hv", "K", "V"))
    model = MODELS[case["model"]]

    def unit(shape):
        x = rng.standard_normal(shape)
        # Keys of a few channels are nearly parallel; shorter ones keep the recurrence tame.
        return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6) * min(1.0, (K / 16) ** 0.5)

    x = {"q": unit((B, T, Hqk, K)), "k": unit((B, T, Hqk, K)), "v": rng.standard_normal((B, T, Hv, V))}
    if model.get("gate"):
        shape = (B, T, Hv) + ((K,) if model["gate"] == "channel" else ())
        x["gate"] = -np.exp(rng.uniform(-6, 1, shape))
        x["gate"][rng.random(shape) < 0.03] = -80.0
    if model.get("beta"):
        x["beta"] = rng.uniform(0, 1, (B, T, Hv))
    if model.get("erase_write"):
        x["erase"] = rng.uniform(0, 1, (B, T, Hv, K))
        x["write"] = rng.uniform(0, 1, (B, T, Hv, V))
    if case["offsets"]:
        x["offsets"] = case["offsets"]
    N = len(case["offsets"]) - 1 if case["offsets"] else B
    x["state"] = rng.standard_normal((N, Hv) + ((K, V) if case["state_layout"] == "k_first" else (V, K)))
    return {key: store(value, types(case)[key]) for key, value in x.items()}


def check(run, name, case, seed):
    x = inputs(case, seed)
    values = {key: read(value, types(case)[key]) for key, value in x.items()}
    want_o, want_state = reference.recurrence(**values, scale=case["scale"], state_layout=case["state_layout"])
    state = x.pop("state").copy()
    o = store(np.full(want_o.shape, np.nan), case["dtype"])
    untouched = {key: value.copy() for key, value in x.items()}
    run(name, [*x.values(), o, state])
    for key, value in untouched.items():
        assert np.array_equal(value, x[key]), f"{key} was written"
    arithmetic = case["dtype"]
    reference.check("o", read(o, case["dtype"]), want_o, "o", arithmetic, factor=2)
    coarse = [t for t in ("bf16", "f16", "f32") if t in (case["state_dtype"], arithmetic)][0]
    reference.check("state", read(state, case["state_dtype"]), want_state, "state", coarse, factor=2, tokens=False)


@pytest.mark.parametrize("path", PATHS)
def test_random(path):
    rng = random.Random(f"{SEED} {path}")
    cases = {f"case{i}": draw(rng, path) for i in range(CASES * COUNTED[path])}
    run = host_library(merge([function(case, name) for name, case in cases.items()]), path)
    failures = []
    for seed, (name, case) in enumerate(cases.items()):
        try:
            check(run, name, case, seed)
        except AssertionError as error:
            failures.append(f"{error}\n    {case}")
    assert not failures, "\n".join(failures)
