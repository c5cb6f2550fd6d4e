# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`precision = high` and o in float32: what is left of the errors, by families of inputs.

The tile programs round on the CPU as the tensor cores' operands are rounded, so the errors here are
those of a GPU but for the order of sums. The default precision fails every one of these limits;
where sums over tokens cancel it has limits of its own.
"""

import functools

import numpy as np
import pytest

from cpu_support import host_library, read, store
from gdn import build, reference
from test_cpu_recurrence import MODELS

T, HQK, HV, K, V = 256, 1, 2, 128, 64
# Relative errors of o and of the state of FLA 0.5.2 on an H200 (T 512, 4/8 heads, K = V = 128).
FLA = {
    "gates logsigmoid(normal)": (3.3e-3, 2.4e-3),
    "gates x 0.01": (3.9e-3, 3.2e-3),
    "no gates": (4.2e-3, 3.8e-3),
    "gates x 50": (2.9e-3, 1.5e-3),
    "5 % of the gates -80": (3.5e-3, 2.9e-3),
    "near-equal keys, beta 0.99": (5.6e-3, 5.5e-3),
    "equal keys, beta 1": (1.6e-2, 2.3e-2),
    "beta in 0..2": (4.4e-3, 3.8e-3),
    "near-equal keys, beta 1.9": (8.2e-3, 9.5e-3),
    # There FLA loses all digits.
    "equal keys, beta 1.9": (4e-3, 4e-3),
}


def normalised(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6)


def gates_and_keys(family, rng):
    """log gate, beta and keys of a family."""
    gate = -np.log1p(np.exp(-rng.standard_normal((1, T, HV))))
    beta, keys = rng.random((1, T, HV)), rng.standard_normal((1, T, HQK, K))
    first = normalised(rng.standard_normal((1, 1, HQK, K)))
    near = {"near-equal keys, beta 0.99": 0.05, "near-equal keys, beta 1.9": 0.3}
    if family in near or family.startswith("equal keys"):
        keys = first + near.get(family, 0.0) * keys
        beta, gate = beta * 0 + float(family.split()[-1]), gate * 0
    elif family == "beta in 0..2":
        beta, gate = beta * 2, gate * 0.01
    elif family == "5 % of the gates -80":
        gate = np.where(rng.random(gate.shape) < 0.05, -80.0, gate * 0.01)
    else:
        gate = gate * {"gates x 0.01": 0.01, "no gates": 0.0, "gates x 50": 50.0}.get(family, 1.0)
    return gate, beta, normalised(keys)


def inputs(family, dtype="bf16", V=V):
    rng = np.random.default_rng(len(family))
    gate, beta, keys = gates_and_keys(family, rng)
    return {
        "q": store(normalised(rng.standard_normal((1, T, HQK, K))), dtype),
        "k": store(keys, dtype),
        "v": store(rng.standard_normal((1, T, HV, V)), dtype),
        "gate": store(gate, "f32"),
        "beta": store(beta, "f32"),
        "state": store(np.zeros((1, HV, V, K)), "f32"),
    }


def errors(function, x, dtype="bf16", out_dtype="f32", layout="v_first"):
    """Of o and of the state."""
    values = {name: read(value, dtype if name in ("q", "k", "v") else "f32") for name, value in x.items()}
    want = reference.recurrence(**values, state_layout=layout)
    operands = {name: value.copy() for name, value in x.items()}
    state = operands.pop("state")
    o = store(np.full(x["v"].shape, np.nan), out_dtype)
    function([*operands.values(), o, state])
    return reference.ratio(read(o, out_dtype), want[0]), reference.ratio(state, want[1])


def text(precision, phases="split", chunk=32, segments=0, **options):
    shape = dict(gate="head", beta=True, out_dtype="f32") | options
    schedule = build.schedule(phases, chunk, 64, 2, segments, precision=precision)
    return build.recurrence(1, T, HQK, HV, K, V, schedule=schedule, **shape)


@functools.cache
def forward(precision, path="tile", **options):
    return functools.partial(host_library(text(precision, **options), path), "forward")


@pytest.mark.parametrize("phases", ({}, {"phases": "segmented", "segments": 3}), ids=("split", "segmented"))
def test_high_precision_by_families(phases):
    failures = []
    for family, limits in FLA.items():
        x = inputs(family)
        high, default = errors(forward("high", **phases), x), errors(forward("default", **phases), x)
        for what, limit, error, rough in zip(("o", "state"), limits, high, default):
            # A few times what two parts leave, far below the quarter that is asked for. Where the entries of T
            # alternate without decaying, their rounding adds up over a chunk.
            limit = min(limit / 4, 6e-4 if family == "equal keys, beta 1.9" else 3e-4)
            if not error <= limit:
                failures.append(f"{family}: error {error:.1e} of {what} is above {limit:.1e}")
            assert rough > limit, f"{family}: the default has error {rough:.1e} of {what}, so the limit says nothing"
    assert not failures, "\n".join(failures)


# Errors of o, in float32, and of the state with second parts in chunks with large entries of the inverse or beta above
# 1. All operands in one part leave 3.9e-3 3.6e-3, 13e-3 19e-3, 3.1e-3 2.7e-3, 6.5e-3 7.8e-3 and 20e-3 27e-3; with large
# entries alone and P in one part it is 2.4e-3 1.3e-3 for beta in 0..2.
HARD = {
    "near-equal keys, beta 0.99": (1.7e-3, 7e-4),
    "equal keys, beta 1": (1.9e-3, 3.2e-3),
    "beta in 0..2": (1.4e-3, 9.5e-4),
    "near-equal keys, beta 1.9": (2.2e-3, 2.5e-3),
    "equal keys, beta 1.9": (2e-3, 1.6e-3),
}


@pytest.mark.parametrize("phases", ({}, {"phases": "segmented", "segments": 3}), ids=("split", "segmented"))
def test_default_precision_of_hard_families(phases):
    failures = []
    for family, limits in HARD.items():
        found = errors(forward("default", chunk=64, **phases), inputs(family))
        failures += [f"{family}: {found}"] if any(e > limit for e, limit in zip(found, limits)) else []
    assert not failures, "\n".join(failures)


# With erase and a gate per head the prepare kernel has a form of its own.
MORE_MODELS = MODELS | {"gdn2_head": {"gate": "head", "erase_write": True}}


def model_inputs(model, dtype, tokens, layout="v_first"):
    rng = np.random.default_rng(len(model))
    options = MORE_MODELS[model]
    x = {
        "q": store(normalised(rng.standard_normal((1, tokens, HQK, K))), dtype),
        "k": store(normalised(rng.standard_normal((1, tokens, HQK, K))), dtype),
        "v": store(rng.standard_normal((1, tokens, HV, V)), dtype),
    }
    if options.get("gate"):
        tail = (K,) if options["gate"] == "channel" else ()
        x["gate"] = store(-np.exp(rng.uniform(-6, 1, (1, tokens, HV, *tail))), "f32")
    if options.get("beta"):
        x["beta"] = store(rng.uniform(0, 2, (1, tokens, HV)), "f32")
    if options.get("erase_write"):
        x["erase"] = store(rng.uniform(0, 1, (1, tokens, HV, K)), "f32")
        x["write"] = store(rng.uniform(0, 1, (1, tokens, HV, V)), "f32")
    matrix = (K, V) if layout == "k_first" else (V, K)
    x["state"] = store(rng.standard_normal((1, HV, *matrix)), "f32")
    return x


@pytest.mark.parametrize("dtype", ("bf16", "f16"))
@pytest.mark.parametrize("path", ("tile", "rotated-tile"))
def test_high_precision_of_models(path, dtype):
    """Every product of every model: one that is rounded once more has an error above 3e-4."""
    failures = []
    for model, options in MORE_MODELS.items():
        layout = "k_first" if model in ("ssd", "kda") else "v_first"
        source = build.recurrence(
            1, 100, HQK, HV, K, V, dtype=dtype, out_dtype="f32", state_layout=layout,
            schedule=build.schedule("split", 32, 16, 2, precision="high"), **options,
        )  # fmt: skip
        function = functools.partial(host_library(source, path), "forward")
        found = errors(function, model_inputs(model, dtype, 100, layout), dtype, layout=layout)
        failures += [f"{model}: {found}"] if max(found) > 3e-5 else []
    assert not failures, "\n".join(failures)


def test_float32_inputs_are_exact_with_either():
    x = model_inputs("gated_delta", "f32", T)
    for precision in build.PRECISIONS:
        assert max(errors(forward(precision, dtype="f32"), x, "f32")) < 2e-6


PATHS = ("loops", "linalg", "tile", "pipelined-tile")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("out_dtype", ("bf16", "f32"))
def test_element_type_of_o(out_dtype, path):
    """Only rounding o to bf16 leaves more than 1e-3 of a float32 computation."""
    phases = {"phases": "fused"} if path == "linalg" else {}
    function = forward("high", path, out_dtype=out_dtype, **phases)
    error = errors(function, inputs("gates x 0.01"), out_dtype=out_dtype)[0]
    assert error < 1e-4 if out_dtype == "f32" else 1e-3 < error < 2e-3
