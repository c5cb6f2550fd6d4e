# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR that the functions compile for a GPU, run on the host by its tile programs."""

import numpy as np
import pytest

from cpu_support import host_library, read, store
from gdn import build, rule
from gdn import reference as ref

STARTS = (0, 1, 1, 12, 14)
H, HV, K, V = 1, 2, 16, 24
RULES = {
    "everything": {
        "gate": "head",
        "gate_form": "raw",
        "gate_dtype": "bf16",
        "rate_dtype": "f16",
        "bias_dtype": "f32",
        "beta": "2sigmoid",
        "beta_dtype": "bf16",
        "qk_l2norm": True,
        "initial": "bf16",
    },
    "linear gates": {
        "gate": "head",
        "gate_form": "linear",
        "gate_dtype": "f32",
        "beta": "one",
        "initial": "f32",
        "v_first": False,
    },
    "constant gates": {"gate": "head", "gate_form": "constant", "gate_dtype": "f32", "initial": None},
    "bounded gates": {
        "gate": "channel",
        "gate_form": "raw",
        "gate_dtype": "f32",
        "lower_bound": -3.0,
        "beta": "sigmoid",
        "beta_dtype": "f32",
        "initial": "f32",
    },
}


def values_of(r, tokens, rng):
    """float64 arrays of the arguments, and what the definition takes."""
    batch, H, HV, K, V = (1 if r.offsets else 2), r.key_heads, r.value_heads, r.K, r.V
    q, k = (ref.l2norm(rng.standard_normal((batch, tokens, H, K))) for _ in range(2))
    if r.qk_l2norm:
        q, k = 3 * q, 0.5 * k
    x = {"q": q, "k": k, "v": rng.standard_normal((batch, tokens, HV, V))}
    tail = (K,) if r.gate == "channel" else ()
    x["gate"] = {
        "raw": rng.standard_normal((batch, tokens, HV, *tail)),
        "linear": 1 - 0.5 * rng.random((batch, tokens, HV, *tail)),
        "constant": -rng.random(HV),
    }.get(r.gate_form)
    x["A_log"], x["dt_bias"] = rng.standard_normal(HV), rng.standard_normal((HV, *tail))
    x["beta"] = rng.standard_normal((batch, tokens, HV)) if r.beta != "value" else rng.random((batch, tokens, HV))
    x["erase"], x["write"] = rng.random((batch, tokens, HV, K)), rng.random((batch, tokens, HV, V))
    x["offsets"] = np.array(STARTS)
    sequences = len(STARTS) - 1 if r.offsets else batch
    x["initial"] = rng.standard_normal((sequences, HV, *((V, K) if r.v_first else (K, V))))
    return x


def expected(r, x):
    gate, HV = x["gate"], r.value_heads
    if r.gate_form == "raw":
        rate = x["A_log"] if r.rate_dtype else np.zeros(HV)
        gate = ref.gate(gate, rate, x["dt_bias"] if r.bias_dtype else None, r.lower_bound)
    elif r.gate_form == "linear":
        gate = np.log(gate)
    elif r.gate_form == "constant":
        gate = np.broadcast_to(gate, (*x["q"].shape[:2], HV))
    beta = {
        None: None,
        "value": x["beta"],
        "one": np.ones((*x["q"].shape[:2], HV)),
        "sigmoid": ref.sigmoid(x["beta"]),
        "2sigmoid": 2 * ref.sigmoid(x["beta"]),
    }[r.beta]
    q, k = (ref.l2norm(x[n]) if r.qk_l2norm else x[n] for n in ("q", "k"))
    layout = "v_first" if r.v_first else "k_first"
    state = x["initial"] if r.initial else None
    options = {"offsets": x["offsets"].astype(int)} if r.offsets else {}
    if r.erase_dtype:
        options.update(erase=x["erase"], write=x["write"])
    return ref.recurrence(q, k, x["v"], gate, beta, state=state, scale=r.scale, state_layout=layout, **options)


@pytest.mark.parametrize("tokens", [3, 70])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_rule_by_tile_programs(name, tokens, dtype):
    known = tokens if tokens <= rule.STEP_TOKENS else None
    run(rule.Rule(H, HV, K, V, dtype, 0.3, tokens=known, **RULES[name]), tokens)


@pytest.mark.parametrize("tokens", [1, 2, 5, 8])
@pytest.mark.parametrize("schedule", [None, build.schedule("step", 8, 16), build.schedule("step", 16, 8, warps=4)])
def test_steps_make_their_inputs(tokens, schedule):
    """One kernel normalises, computes gates and write strengths and walks the tokens, eight at a time or one."""
    run(rule.Rule(H, HV, 32, 16, "bf16", 0.3, tokens=tokens, schedule=schedule, **RULES["everything"]), tokens)


@pytest.mark.parametrize("name,chunk", [("everything", 8), ("everything", 16), ("bounded gates", 16)])
def test_packed_steps_make_their_inputs(name, chunk):
    schedule = build.schedule("step", chunk, 16)
    run(rule.Rule(H, HV, 32, 16, "bf16", 0.3, offsets="i32", schedule=schedule, **RULES[name]), STARTS[-1])


@pytest.mark.parametrize("tokens", [1, 4, 70])
@pytest.mark.parametrize("norm", [False, True])
def test_slices_of_one_projection(norm, tokens):
    """q, k and v are the first heads of rows that hold more."""
    known = tokens if tokens <= rule.STEP_TOKENS else None
    options = {**RULES["everything"], "qk_l2norm": norm, "rows": (4 * 32, 32, 5 * 16, None, None, None, None)}
    run(rule.Rule(H, HV, 32, 16, "bf16", 0.3, tokens=known, **options), tokens)


SLICED_GATES = {
    "everything": (RULES["everything"], (None, None, None, 8, 16, None, None)),
    "linear gates": ({**RULES["linear gates"], "beta": "value", "beta_dtype": "f32"}, (None,) * 3 + (4, 4, None, None)),
    "bounded gates": (RULES["bounded gates"], (None, None, None, 5 * 32, 4, None, None)),
    "linear gates per channel": (
        {"gate": "channel", "gate_form": "linear", "gate_dtype": "bf16", "initial": None},
        (None, None, None, 3 * 32, None, None, None),
    ),
    "erase and write": (
        {"erase_dtype": "bf16", "write_dtype": "f32", "initial": None},
        (None, None, None, None, None, 3 * 32, 5 * 16),
    ),
}


@pytest.mark.parametrize("tokens", [1, 4, 70])
@pytest.mark.parametrize("name", SLICED_GATES)
def test_slices_of_gates(name, tokens):
    """Gates, write strengths, erase and write are the first heads of rows that hold more."""
    known = tokens if tokens <= rule.STEP_TOKENS else None
    options, rows = SLICED_GATES[name]
    run(rule.Rule(H, HV, 32, 16, "bf16", 0.3, tokens=known, rows=rows, **options), tokens)


def as_in_memory(x, tail):
    """x with NaN in the heads that are not used."""
    padded = np.full((*x.shape[:2], *tail), np.nan)
    padded[:, :, : x.shape[2]] = x
    return padded


def on_host(r, arrays):
    host_library(rule.ir(r), "tile")("forward", arrays)


def run(r, tokens, execute=on_host, change=None):
    """`change` changes the values, `execute` runs the function of a rule on its arguments. Returns o's error."""
    dtype = r.dtype
    x = values_of(r, tokens, np.random.default_rng(0))
    if change:
        change(x)
    dtypes = {
        "gate": r.gate_dtype,
        "A_log": r.rate_dtype,
        "dt_bias": r.bias_dtype,
        "beta": r.beta_dtype,
        "erase": r.erase_dtype,
        "write": r.write_dtype,
        "offsets": "i32",
        "initial": r.initial,
        "o": dtype,
        "state": "f32",
    }
    x["o"], x["state"] = np.full(x["v"].shape, np.nan), np.full(x["initial"].shape, np.nan)
    stored = {n: store(x[n], dtypes.get(n, dtype)) for n in r.arguments()}
    for n in stored:
        x[n] = read(stored[n], dtypes.get(n, dtype))
    want, want_state = expected(r, x)
    for n, tail in r.in_memory().items():
        stored[n] = store(as_in_memory(x[n], tail), dtypes.get(n, dtype))
    execute(r, list(stored.values()))
    error, _ = ref.check("o", read(stored["o"], dtype), want, "o", dtype)
    ref.check("state", stored["state"], want_state, "state", dtype, tokens=False)
    return error
