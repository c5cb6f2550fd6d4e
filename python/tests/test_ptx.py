# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX itself, without a GPU: run by ptx_machine and compared with the float64 oracle.

What the CPU paths cannot see is checked here: fragments and swizzles, masks, cp.async and
barriers, addresses. sm_80 has the forms that all targets share; test_ptx_sm90 has the others.
"""

import numpy as np
import pytest

import ptx_async
import ptx_machine
import ptx_roles
import test_cpu_recurrence as recurrences
from gdn import build, reference
from gdn import compile as compiler
from tool_paths import need_tool

ITEM = {"bf16": np.uint16, "f16": np.uint16, "f32": np.uint32, "i32": np.int32, "i64": np.int64}
OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


class Sizes:
    """The expressions of a manifest."""

    def __init__(self, manifest, shapes):
        self.shapes, self.values = shapes, []
        for e in manifest.get("values", []):
            self.values.append(self.of(e))

    def of(self, e):
        if isinstance(e, int):
            return e
        if e[0] == "dim":
            return self.shapes[e[1]][e[2]]
        if e[0] == "value":
            return self.values[e[1]]
        return OPERATORS[e[0]](self.of(e[1]), self.of(e[2]))


def tensor_map(entry, places, sizes):
    """The tensor map of a launch's parameter."""
    ((kind, index),) = entry["tensor_map"].items()
    sizes = [sizes.of(size) for size in entry["sizes"]]
    return ptx_async.TensorMap(
        places[kind][index], entry["dtype"], sizes, entry["strides"], entry["box"], entry["swizzle"])


def run(text, arrays, target="sm_80", **options):
    """Compiles the function of a module and runs it on arrays, in place; returns its workspaces."""
    need_tool("gdn-compile")
    return execute(compiler.compile(text, target, cache=False), arrays, **options)


def execute(compiled, arrays, **options):
    manifest, kernels = compiled.manifest, ptx_machine.parse(compiled.ptx)
    sizes = Sizes(manifest, [array.shape for array in arrays])
    memory = ptx_machine.Memory()
    addresses = {"argument": [memory.place(array) for array in arrays], "buffer": []}
    places, buffers = {"argument": arrays, "buffer": []}, []
    for entry in manifest["buffers"]:
        shape = [sizes.of(size) for size in entry["shape"]]
        # 0xFF: NaN in every type.
        poison = np.full(int(np.prod(shape)) * np.dtype(ITEM[entry["dtype"]]).itemsize, 0xFF, np.uint8)
        addresses["buffer"].append(memory.place(poison))
        places["buffer"].append(poison)
        buffers.append(poison.view(ITEM[entry["dtype"]]).reshape(shape))
    for entry in manifest["launches"]:
        arguments = []
        for parameter in entry["parameters"]:
            if "tensor_map" in parameter:
                arguments.append(tensor_map(parameter, places, sizes))
                continue
            kind = next(key for key in ("argument", "buffer", "scalar") if key in parameter)
            value = parameter[kind]
            arguments.append(sizes.of(value) if kind == "scalar" else addresses[kind][value])
        ptx_roles.launch(
            kernels[entry["kernel"]],
            sizes.of(entry["grid"]),
            entry["block"],
            entry["shared"],
            arguments,
            memory,
            **options,
        )
    return buffers


# All forms of the two richest models; of the others one of each phase.
CASES = [
    (model, form)
    for model in recurrences.MODELS
    for form in (recurrences.FORMS if model in ("gated_delta", "kda") else ("c16", "segmented", "step"))
    # Warps beside the scan need products of warpgroups, which this target has not.
    if not {"fused", "ahead"} & recurrences.FORMS[form].keys()
]


@pytest.mark.parametrize("dtype", ("f32", "bf16"))
@pytest.mark.parametrize("model, form_name", CASES)
def test_recurrence(model, form_name, dtype):
    form = recurrences.FORMS[form_name]
    x = recurrences.inputs(model, form, dtype, seed=len(form_name))
    want = recurrences.expected(form, dtype, x)
    passed, results = recurrences.arguments(form, dtype, x, want)
    run(recurrences.function("tile", model, form_name, dtype), passed)
    recurrences.check(form, dtype, x, results, want, dtype)


@pytest.mark.parametrize("precision", ("default", "high"))
def test_zero_gates_are_no_gates(precision):
    """Bit for bit: with gates of 0 all factors are 1. Parts of a number are those of one number, which no
    multiply-add may make those of two: a difference of 2^-24 there grows, by flips of rounding, to that of
    two unrelated roundings after some thousand tokens."""
    B, T, K = 1, 192, 64
    x = recurrences.inputs("gated_delta", dict(B=B, T=T, K=K, V=K), "bf16", seed=0)
    x["gate"][:] = 0
    states = []
    for gated in (True, False):
        text = build.recurrence(
            B,
            T,
            recurrences.HQK,
            recurrences.HV,
            K,
            K,
            gate="head" if gated else None,
            beta=True,
            schedule=build.schedule("split", 64, 64, 2, precision=precision),
        )
        state, o = x["state"].copy(), np.zeros_like(x["v"])
        operands = {name: value.copy() for name, value in x.items() if name != "state" and (gated or name != "gate")}
        run(text, [*operands.values(), o, state])
        states.append((o, state))
    (o1, state1), (o2, state2) = states
    assert np.array_equal(o1, o2)
    assert np.array_equal(state1, state2), f"{(state1 != state2).sum()} of {state1.size} entries differ"


@pytest.mark.parametrize("form_name", ("eight", "eight_packed"))
def test_eight_tokens_enter_a_float32_state_exactly(form_name):
    """In two parts of TF32, which lose 2^-21: two of bfloat16 would leave an error of 2e-6 in a state of new values."""
    form = recurrences.FORMS[form_name]
    x = recurrences.inputs("gated_delta", form, "bf16", seed=1)
    x["state"][...] = 0
    want = recurrences.expected(form, "bf16", x)
    passed, results = recurrences.arguments(form, "bf16", x, want)
    run(recurrences.function("tile", "gated_delta", form_name, "bf16"), passed)
    assert reference.ratio(results[1], want[1]) < 5e-7


def test_heads_that_are_no_multiple_of_a_blocks():
    """Three value heads for each key head and chunks of two warps: the second block of a key head has one head, and
    gates and beta beside it are those of the next key head. The last gates are below what an exponent takes."""
    T, Hqk, Hv, K, V = 40, 2, 6, 32, 16
    rng = np.random.default_rng(1)
    keys = rng.standard_normal((2, 1, T, Hqk, K))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    gate = -np.abs(rng.standard_normal((1, T, Hv)))
    gate[:, -3] = -1e30
    x = {
        "q": recurrences.store(keys[0], "bf16"),
        "k": recurrences.store(keys[1], "bf16"),
        "v": recurrences.store(rng.standard_normal((1, T, Hv, V)), "bf16"),
        "gate": recurrences.store(gate, "f32"),
        "beta": recurrences.store(rng.uniform(0, 1, (1, T, Hv)), "f32"),
        "state": recurrences.store(rng.standard_normal((1, Hv, V, K)), "f32"),
    }
    values = {name: recurrences.read(value, "bf16" if name in ("q", "k", "v") else "f32") for name, value in x.items()}
    want_o, want = reference.recurrence(**values)
    text = build.recurrence(
        1, T, Hqk, Hv, K, V, gate="head", beta=True, schedule=build.schedule("split", 32, 16, 2)
    )
    state, o = x.pop("state"), recurrences.store(np.full((1, T, Hv, V), np.nan), "bf16")
    run(text, [*x.values(), o, state])
    assert reference.ratio(recurrences.read(o, "bf16"), want_o) < 8e-3
    assert reference.ratio(state, want) < 1e-2


HIGH = {
    "c32": dict(T=75, K=24, V=16, chunk=32),
    "segmented": dict(T=133, K=16, V=40, chunk=16, segments=6),
    "eight": dict(T=5, K=32, V=16, phases="step", chunk=8, state_dtype="bf16"),
    "eight_stacked": dict(T=4, K=32, V=16, phases="step", chunk=8, state_dtype="bf16"),
}


@pytest.mark.parametrize("model", ("gated_delta", "kda"))
@pytest.mark.parametrize("form_name", HIGH)
def test_high_precision(model, form_name):
    form = HIGH[form_name]
    if model == "kda" and form_name.startswith("eight"):
        pytest.skip("eight tokens at a time have no gate per channel")
    phases = "segmented" if form.get("segments") else form.get("phases", "split")
    state_dtype = form.get("state_dtype", "f32")
    text = build.recurrence(
        1, form["T"], 2, 4, form["K"], form["V"], out_dtype="f32", state_dtype=state_dtype, **recurrences.MODELS[model],
        schedule=build.schedule(phases, form["chunk"], 16, 1, form.get("segments", 0), precision="high"),
    )  # fmt: skip
    x = recurrences.inputs(model, form, "bf16", seed=3)
    want = recurrences.expected(form, "bf16", x)
    o, state = np.full(want[0].shape, np.nan, np.float32), x["state"].copy()
    run(text, [*(value for name, value in x.items() if name != "state"), o, state])
    # Keys of few channels overlap more than others, so less is left of float32.
    assert reference.ratio(o, want[0]) < 1e-4
    got = recurrences.read(state, state_dtype)
    assert reference.ratio(got, want[1]) < (1e-4 if state_dtype == "f32" else 3e-3)
