# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recurrence on the host, by each path of gdn-to-cpu, against the float64 oracle.

`loops` is the scalar lowering, `linalg` the chunkwise level 1, `tile` the GPU's tile
programs run block by block: the mathematics of every GPU kernel without a GPU,
`pipelined-tile` the same with the copies that run ahead, `rotated-tile` with the
products that span two iterations.
"""

import functools
import re

import numpy as np
import pytest

from cpu_support import host_library, lower, merge, read, store
from gdn import build, reference

PATHS = ("loops", "linalg", "tile", "pipelined-tile", "rotated-tile")
MODELS = {
    "linear": {},
    "ssd": {"gate": "head"},
    "gla": {"gate": "channel"},
    "delta": {"beta": True},
    "gated_delta": {"gate": "head", "beta": True},
    "kda": {"gate": "channel", "beta": True},
    "gdn2": {"gate": "channel", "erase_write": True},
}
# Sizes: GVA, K != V, both padded on the GPU in one of the forms, ragged T.
FORMS = {
    "c16": dict(T=37, K=16, V=24, chunk=16),
    "c32": dict(T=75, K=24, V=16, chunk=32, state_layout="k_first"),
    "c64": dict(T=130, K=32, V=40, chunk=64, B=2),
    "packed": dict(T=69, K=16, V=16, chunk=16, offsets=(0, 0, 5, 5, 68, 69, 69)),
    "short": dict(T=1, K=16, V=8, chunk=16, B=2),
    "empty": dict(T=0, K=16, V=8, chunk=16),
    "dynamic": dict(T=33, K=16, V=16, chunk=32, B=2, dynamic=True, state_layout="k_first"),
    "packed_dynamic": dict(T=41, K=16, V=16, chunk=32, offsets=(0, 40, 40, 41), dynamic=True),
    # Three segments of four, three and two chunks, the last one short; then one of two chunks; then one per chunk.
    "segmented": dict(T=133, K=16, V=40, chunk=16, segments=6, B=2),
    "segmented_short": dict(T=31, K=24, V=24, chunk=16, segments=4, segment_chunks=2, dynamic=True, B=2),
    "segmented_k": dict(
        T=150, K=32, V=16, chunk=32, segments=100, state_layout="k_first", state_dtype="bf16", dynamic=True
    ),
    "segmented_packed": dict(
        T=166, K=24, V=24, chunk=16, segments=100, offsets=(0, 0, 5, 5, 70, 70, 102, 119, 135, 166, 166), dynamic=True
    ),
    # Of six places the first sequence has three, and two segments behind its first; the second is whole.
    "segmented_shares": dict(T=300, K=16, V=24, chunk=16, segments=7, offsets=(0, 150, 166, 300), dynamic=True),
    "segmented_pool": dict(
        T=166,
        K=16,
        V=24,
        chunk=16,
        segments=100,
        offsets=(0, 0, 70, 75, 131, 166),
        slots=(3, 5, 0, -1, 2),
        pool=6,
        every=32,
    ),
    "segmented_kept": dict(
        T=133, K=24, V=16, chunk=16, segments=8, B=2, every=16, update=False, state_layout="k_first", dynamic=True
    ),
    # Two warpgroups, and rows behind V in the last block.
    "wide": dict(T=75, K=24, V=136, chunk=32, value_block=128, every=32, B=2),
    # Blocks of 32 rows where 16 blocks or more have 16 rows: at N = 2, but not at N = 1.
    "wide_from": dict(T=37, K=16, V=24, chunk=16, wide_from=16, B=2, dynamic=True),
    "wide_not": dict(T=37, K=16, V=24, chunk=16, wide_from=16, dynamic=True),
    "wide_packed": dict(T=69, K=16, V=40, chunk=16, wide_from=24, offsets=(0, 5, 69), dynamic=True),
    # Rows of two warpgroups in a block of the boundaries' kernel.
    "segmented_whole": dict(T=70, K=128, V=128, chunk=16, segments=100, value_block=64, stages=1),
    "segmented_empty": dict(T=0, K=16, V=8, chunk=16, segments=2),
    # T and P in the kernel of the scan, of the models that have this form.
    "fused": dict(T=150, K=128, V=72, chunk=64, B=2, fused=True),
    "fused_packed": dict(
        T=210, K=56, V=64, chunk=64, offsets=(0, 1, 66, 66, 210), fused=True, state_layout="k_first", dynamic=True
    ),
    "fused_pool": dict(
        T=192, K=64, V=64, chunk=64, offsets=(0, 64, 192), slots=(-1, 2), pool=4, every=64, fused=True
    ),
    # P in the kernel of the scan, of the models that have this form: of all blocks, and of those of 128 rows.
    "ahead": dict(T=150, K=56, V=136, chunk=64, value_block=128, ahead=True, state_layout="k_first"),
    "ahead_wide": dict(T=130, K=64, V=128, chunk=64, value_block=64, wide_from=16, ahead=True, B=2, dynamic=True),
    "ahead_packed": dict(
        T=210, K=64, V=72, chunk=64, value_block=128, ahead=True, offsets=(0, 1, 66, 66, 210), slots=(3, 0, 1, -1),
        pool=4
    ),
    "step": dict(T=3, K=24, V=20, phases="step", B=2),
    "step_k": dict(T=3, K=20, V=24, phases="step", state_layout="k_first", state_dtype="bf16"),
    "step_packed": dict(T=9, K=64, V=8, phases="step", offsets=(0, 1, 1, 6, 9), dynamic=True),
    "pool": dict(T=35, K=16, V=24, chunk=16, B=3, slots=(4, -1, 0), pool=6),
    "pool_packed": dict(
        slot_type="i64",
        T=70, K=24, V=16, chunk=32, offsets=(0, 33, 33, 40, 70), slots=(2, 5, -7, 0), pool=7, dynamic=True
    ),
    "pool_k": dict(T=5, K=16, V=16, chunk=16, B=2, slots=(-1, 1), pool=2, state_layout="k_first", state_dtype="bf16"),
    "step_pool": dict(T=1, K=24, V=20, phases="step", B=4, slots=(3, -1, 8, 0), pool=9, dynamic=True),
    "step_pool_k": dict(T=2, K=20, V=24, phases="step", B=2, slots=(1, -1), pool=3, state_layout="k_first"),
    "step_pool_packed": dict(
        state_dtype="bf16",
        T=9, K=64, V=8, phases="step", offsets=(0, 1, 1, 6, 9), slots=(1, 0, -1, 3), pool=4, slot_type="i64"
    ),
    "kept": dict(T=75, K=16, V=24, chunk=16, B=2, every=32, state_dtype="bf16"),
    "kept_packed": dict(
        state_layout="k_first",
        T=97, K=24, V=16, chunk=16, offsets=(0, 33, 33, 64, 97), every=16, update=False, dynamic=True
    ),
    "kept_pool": dict(
        T=64, K=16, V=16, chunk=32, offsets=(0, 32, 64), slots=(-1, 2), pool=4, every=32, checkpoint_dtype="bf16"
    ),
    "read_only": dict(T=40, K=24, V=16, chunk=32, B=2, update=False),
    "verify": dict(T=4, K=24, V=20, phases="step", B=3, slots=(3, -1, 0), pool=5, every=1, update=False),
    "verify_k": dict(
        T=3, K=20, V=24, phases="step", B=2, every=1, state_layout="k_first", checkpoint_dtype="bf16", dynamic=True
    ),
    # Eight tokens at a time, of the models that have this form.
    "eight": dict(T=4, K=32, V=24, phases="step", B=3, eight=True, slots=(3, -1, 0), pool=5),
    "eight_bf16": dict(T=8, K=24, V=16, phases="step", B=2, eight=True, state_dtype="bf16"),
    "eight_kept": dict(
        T=6, K=64, V=16, phases="step", B=2, eight=True, every=2, checkpoint_dtype="bf16", state_dtype="bf16"
    ),
    "eight_verify": dict(T=5, K=32, V=16, phases="step", eight=True, every=1, update=False),
    "eight_packed": dict(T=25, K=32, V=32, phases="step", eight=True, offsets=(0, 3, 3, 12, 25), dynamic=True),
    "warps": dict(T=1, K=32, V=40, phases="step", B=2, warps=2, slots=(1, 0), pool=2, streaming=True),
    "warps_k": dict(
        T=2, K=32, V=72, phases="step", B=2, warps=4, state_layout="k_first", state_dtype="bf16", streaming=True
    ),
    # 8 states: few, and so many that warps have more rows.
    "step_few": dict(T=2, K=32, V=40, phases="step", B=2, warps=2, streaming=True, wide_from=9, dynamic=True),
    "step_wide": dict(T=2, K=32, V=40, phases="step", B=2, warps=2, streaming=True, wide_from=8, dynamic=True),
    "eight_wide": dict(T=4, K=32, V=40, phases="step", B=2, eight=True, wide_from=8, dynamic=True),
    "step_kept": dict(T=9, K=64, V=8, phases="step", offsets=(0, 1, 1, 6, 9), every=3),
}
HQK, HV = 2, 4

# What of a form the schedules of a GPU read. The paths loops and linalg see the form without these keys.
GPU_KEYS = {
    "eight", "fused", "phases", "segment_chunks", "segments", "stages", "streaming", "value_block", "warps", "wide_from"
}  # fmt: skip


def host_traits(form):
    """All that loops and linalg lower a form by: of sizes only how they fill chunks and vectors."""
    T, chunk = form["T"], form.get("chunk", 16)
    traits = {key: value for key, value in form.items() if key not in GPU_KEYS | {"T", "B", "K", "V", "pool"}}
    for key in ("offsets", "slots"):
        traits[key] = key in form
    if form.get("every", 1) > 1:
        traits["every"] = "between chunks" if form["every"] % chunk == 0 else "in a chunk"
    if not form.get("dynamic") and "offsets" not in form:
        traits["T"] = "none" if T == 0 else "a part" if chunk > T else "whole" if T % chunk == 0 else "ragged"
    traits["vectors"] = [next(width for width in (16, 8, 4, 2, 1) if form[key] % width == 0) for key in "KV"]
    traits |= {"chunk": chunk, "batch": form.get("B", 1) > 1}
    return frozenset((key, str(value)) for key, value in traits.items())


def is_like_tile(path, model, form):
    """Whether the path leaves a tile program as it is: step kernels have no loop over chunks to pipeline, and
    without an inverse no product spans two iterations."""
    if path == "rotated-tile" and not ({"beta", "erase_write"} & MODELS[model].keys()):
        return True
    return path in ("pipelined-tile", "rotated-tile") and (form.get("phases") == "step" or form["T"] == 0)


def forms(path, model):
    """The names of the forms that a path runs: all that differ there."""
    if path in ("loops", "linalg"):
        return list({host_traits(form): name for name, form in reversed(FORMS.items())}.values())[::-1]
    return [name for name, form in FORMS.items() if not is_like_tile(path, model, form)]


def has_short_form(options, dtype):
    """Of the forms that only 16-bit inputs with gates per head have: eight tokens at a time, one kernel for all."""
    return dtype != "f32" and options.get("gate") != "channel" and not options.get("erase_write")


def schedule(path, form, model, dtype):
    if path == "loops":
        return None
    if path == "linalg":
        # Checkpoints between chunks are met token by token only.
        phases = "step" if form.get("every", 0) % 16 else "fused"
        return build.schedule(phases, form.get("chunk", 16), form["V"])
    if form.get("phases") == "step":
        options = {name: form[name] for name in ("warps", "streaming", "wide_from") if name in form}
        if form.get("eight") and has_short_form(MODELS[model], dtype):
            return build.schedule("step", 8, 16, **options)
        return build.schedule("step", 16, 8, **options)
    if form.get("fused") and has_short_form(MODELS[model], dtype):
        return build.schedule("fused", 64, 64, 2)
    # Two blocks of values where V allows it, and the pipelined copies' mark.
    if form.get("segments"):
        block, least = form.get("value_block", 16), form.get("segment_chunks", 1)
        return build.schedule("segmented", form["chunk"], block, form.get("stages", 2), form["segments"], least)
    ahead = bool(form.get("ahead") and MODELS[model].get("beta") and has_short_form(MODELS[model], dtype))
    block, wide_from = form.get("value_block", 16), form.get("wide_from", 0)
    return build.schedule("split", form["chunk"], block, 2, wide_from=wide_from, scores_ahead=ahead)


def function(path, model, form_name, dtype):
    form = FORMS[form_name]
    dynamic = form.get("dynamic")
    offsets = form.get("offsets")
    return build.recurrence(
        None if dynamic and not offsets else form.get("B", 1),
        None if dynamic else form["T"],
        HQK,
        HV,
        form["K"],
        form["V"],
        N=None if dynamic or offsets is None else len(offsets) - 1,
        offsets=None if offsets is None else form.get("offset_type", "i32"),
        slots=form.get("slot_type", "i32") if "slots" in form else None,
        S=None if dynamic else form.get("pool"),
        update_state=form.get("update", True),
        every=form.get("every"),
        checkpoint_dtype=form.get("checkpoint_dtype", "f32"),
        dtype=dtype,
        state_dtype=form.get("state_dtype", "f32"),
        state_layout=form.get("state_layout", "v_first"),
        schedule=schedule(path, form, model, dtype),
        name=name(model, form_name),
        **MODELS[model],
    )


def name(model, form):
    return f"{model}_{form}"


@functools.cache
def library(path, model, dtype):
    return host_library(merge([function(path, model, form, dtype) for form in forms(path, model)]), path)


def inputs(model, form, dtype, seed):
    """Stored operands by name: keys of norm 1, real gates with resets, beta up to 2."""
    rng = np.random.default_rng(seed)
    B, T, K, V = form.get("B", 1), form["T"], form["K"], form["V"]
    options = MODELS[model]

    def unit(shape):
        x = rng.standard_normal(shape)
        return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6)

    x = {
        "q": store(unit((B, T, HQK, K)), dtype),
        "k": store(unit((B, T, HQK, K)), dtype),
        "v": store(rng.standard_normal((B, T, HV, V)), dtype),
    }
    if options.get("gate"):
        shape = (B, T, HV) + ((K,) if options["gate"] == "channel" else ())
        gate = -np.exp(rng.uniform(-6, 1, shape))
        gate[rng.random(shape) < 0.03] = -80.0
        x["gate"] = store(gate, "f32")
    if options.get("beta"):
        x["beta"] = store(rng.uniform(0, 2, (B, T, HV)), "f32")
    if options.get("erase_write"):
        x["erase"] = store(rng.uniform(0, 1, (B, T, HV, K)), "f32")
        x["write"] = store(rng.uniform(0, 1, (B, T, HV, V)), "f32")
    if form.get("offsets"):
        x["offsets"] = store(form["offsets"], form.get("offset_type", "i32"))
    N = len(form["offsets"]) - 1 if form.get("offsets") else B
    if "slots" in form:
        x["slots"] = store(form["slots"], form.get("slot_type", "i32"))
        N = form["pool"]
        for n, place in enumerate(places(form)):
            if form["slots"][n] < 0:  # Padding: nothing of it may reach a result.
                for name in set(x) - {"offsets", "slots"}:
                    x[name][place] = store(np.nan, dtype if name in "qkv" else "f32")
    matrix = (K, V) if form.get("state_layout") == "k_first" else (V, K)
    x["state"] = store(rng.standard_normal((N, HV) + matrix), form.get("state_dtype", "f32"))
    return x


def places(form):
    """Batch and time of each sequence."""
    if form.get("offsets"):
        return [(0, slice(a, b)) for a, b in zip(form["offsets"], form["offsets"][1:])]
    return [(b, slice(None)) for b in range(form.get("B", 1))]


def expected(form, dtype, x):
    types = {"q": dtype, "k": dtype, "v": dtype, "state": form.get("state_dtype", "f32")}
    types["offsets"] = form.get("offset_type", "i32")
    types["slots"] = form.get("slot_type", "i32")
    values = {key: read(value, types.get(key, "f32")) for key, value in x.items()}
    return reference.recurrence(**values, state_layout=form.get("state_layout", "v_first"), every=form.get("every"))


@functools.cache
def problem(model, form_name, dtype):
    """The same for all paths: operands, which nobody may change, and what the definition makes of them."""
    x = inputs(model, FORMS[form_name], dtype, seed=len(form_name))
    for value in x.values():
        value.setflags(write=False)
    return x, expected(FORMS[form_name], dtype, x)


def arguments(form, dtype, x, want):
    """What the function takes, and o, the state and the checkpoints among it. Destinations start as NaN."""
    operands = {key: value.copy() for key, value in x.items()}
    state = operands.pop("state")
    o = store(np.full(want[0].shape, np.nan), dtype)
    results, destinations = [o, state], [o, state]
    if not form.get("update", True):
        operands["initial"] = destinations.pop()
    if form.get("every"):
        results.append(store(np.full(want[2].shape, np.nan), form.get("checkpoint_dtype", "f32")))
        destinations.append(results[2])
    return [*operands.values(), *destinations], results


def call(path, model, form_name, dtype, x, want):
    """o, the state and the checkpoints as stored."""
    passed, results = arguments(FORMS[form_name], dtype, x, want)
    library(path, model, dtype)(name(model, form_name), passed)
    return results


def check(form, dtype, x, results, want, arithmetic):
    """Keys of 16 to 40 channels overlap far more than at the 64 and more that the limits are made for."""
    reference.check("o", read(results[0], dtype), want[0], "o", arithmetic, factor=2)
    if form.get("update", True):
        state_type = form.get("state_dtype", "f32")
        state_arithmetic = "bf16" if state_type == "bf16" else arithmetic
        got = read(results[1], state_type)
        reference.check("state", got, want[1], "state", state_arithmetic, factor=2, tokens=False)
    else:
        assert np.array_equal(results[1], x["state"]), "the initial state has changed"
    if form.get("every"):
        check_checkpoints(read(results[2], form.get("checkpoint_dtype", "f32")), want[2], form, arithmetic)


def check_checkpoints(got, want, form, arithmetic):
    """Those that belong to no sequence keep their NaN."""
    missing = np.isnan(want)
    assert np.array_equal(np.isnan(got), missing), "other checkpoints than the definition's are written"
    arithmetic = "bf16" if form.get("checkpoint_dtype") == "bf16" else arithmetic
    reference.check("checkpoints", got[~missing], want[~missing], "state", arithmetic, factor=2, tokens=False)


RUNS = [(path, model) for path in PATHS for model in MODELS if forms(path, model)]


@pytest.mark.parametrize("dtype", ("f32", "bf16"))
@pytest.mark.parametrize("path, model", RUNS)
def test_recurrence(path, model, dtype):
    failures = []
    for form_name in forms(path, model):
        form = FORMS[form_name]
        x, want = problem(model, form_name, dtype)
        results = call(path, model, form_name, dtype, x, want)
        arithmetic = "bf16" if dtype == "bf16" and path != "loops" else dtype
        try:
            check(form, dtype, x, results, want, arithmetic)
        except AssertionError as error:
            failures.append(f"{form_name}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("path", PATHS)
def test_empty_sequences_keep_their_state(path):
    form = FORMS["packed"]
    x = inputs("gated_delta", form, "bf16", seed=1)
    operands = {key: value.copy() for key, value in x.items()}
    o = store(np.full(operands["v"].shape, np.nan, np.float32), "bf16")
    state = operands.pop("state")
    library(path, "gated_delta", "bf16")(name("gated_delta", "packed"), [*operands.values(), o, state])
    lengths = np.diff(form["offsets"])
    for n, length in enumerate(lengths):
        same = np.array_equal(state[n], x["state"][n])
        assert same == (length == 0), f"sequence {n} of length {length}"


@pytest.mark.parametrize("state_dtype", ("f32", "bf16"))
@pytest.mark.parametrize("path", PATHS)
def test_pool_keeps_what_no_slot_names(path, state_dtype):
    """All other entries bit by bit, and zeros for o of a sequence without a slot."""
    pools = [form for form in FORMS if "pool" in FORMS[form] and FORMS[form].get("update", True)]
    names = [form for form in pools if FORMS[form].get("state_dtype", "f32") == state_dtype]
    for form_name in set(names) & set(forms(path, "gated_delta")):
        form = FORMS[form_name]
        x = inputs("gated_delta", form, "bf16", seed=2)
        o, state, *_ = call(path, "gated_delta", form_name, "bf16", x, expected(form, "bf16", x))
        changed = {s for s in range(form["pool"]) if not np.array_equal(state[s], x["state"][s])}
        lengths = [np.zeros(form["T"])[place[1]].size for place in places(form)]
        assert changed == {slot for slot, length in zip(form["slots"], lengths) if slot >= 0 and length}, form_name
        for slot, place in zip(form["slots"], places(form)):
            assert slot >= 0 or not np.any(o[place] & 0x7FFF), f"o of a sequence without a slot, {form_name}"


def test_all_forms_run():
    """Each by a path of the GPU's programs, and by the paths of the host one that differs by keys of the GPU only."""
    assert set(forms("tile", "kda")) == set(FORMS)
    for path in ("loops", "linalg"):
        traits = [host_traits(FORMS[name]) for name in forms(path, "kda")]
        assert len(set(traits)) == len(traits)
        assert set(traits) == {host_traits(form) for form in FORMS.values()}
    assert {key for form in FORMS.values() for key in form} >= GPU_KEYS
    # What a schedule is made of, and nothing that the definition reads.
    assert not GPU_KEYS & {"offsets", "slots", "every", "update", "chunk", "dynamic"}
    for name, form in FORMS.items():
        bare = {key: value for key, value in form.items() if key not in GPU_KEYS}
        for path in ("loops", "linalg"):
            assert schedule(path, form, "kda", "f32") == schedule(path, bare, "kda", "f32"), name


@pytest.mark.parametrize("path", ("pipelined-tile", "rotated-tile"))
def test_what_is_left_out_is_what_tile_runs(path):
    """To the letter, of each such form with one model and type, and of each such model with some forms."""
    chosen = {(name, model): "bf16" for name in ("c32", "segmented_k", "fused_packed") for model in MODELS}
    chosen |= {(name, list(MODELS)[at % len(MODELS)]): ("f32", "bf16")[at // 2 % 2] for at, name in enumerate(FORMS)}
    cases = [(name, model, dtype) for (name, model), dtype in chosen.items() if is_like_tile(path, model, FORMS[name])]
    texts = [function("tile", model, name, dtype) for name, model, dtype in cases]
    assert len(texts) > 20
    assert lower(merge(texts), path) == lower(merge(texts), "tile")


def test_forms_are_named_apart():
    names = [name(model, form) for model in MODELS for form in FORMS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"\w+", text) for text in names)


def test_odd_rows_of_bf16():
    """33 key channels: a vector width that LLVM's own bf16 conversions cannot take."""
    text = build.recurrence(1, 70, 1, 1, 33, 24, schedule=build.schedule("fused", 64, 24))
    assert host_library(text, "linalg")
