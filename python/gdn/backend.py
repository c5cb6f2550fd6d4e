# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs checked calls, on the GPU or on the CPU, wherever the arrays are."""

from __future__ import annotations

import functools
import os

from . import arrays, build, cpu, rule
from . import compile as compiler
from .checks import Call, check_slots, check_starts, checkpoint_shape

_STATE_ROWS_OF_A_STEP = 8
# Sequences times value heads up to which a step is a matter of latency. gdn-select-schedule has the same
# numbers for a known B; here B is left open, and calls are of one of three classes.
_FEW_STATES, _ONE_STATE = 512, 64


@functools.lru_cache(maxsize=1024)
def kernel(key, write_ir, arguments, target):
    """The compiled kernel of a key; target None is the CPU."""
    ir = write_ir(key)
    if target is None:
        return cpu.HostKernel(ir, arguments)
    from .launch import Kernel

    return Kernel(compiler.compile(ir, target))


@functools.lru_cache(maxsize=64)
def target_of(device):
    from .launch import device_target

    return os.environ.get("GDN_TARGET") or device_target(device)


def device_of(x):
    """Ordinal of the CUDA device of an array."""
    if arrays.is_torch(x):
        return x.device.index
    from .driver import driver

    return arrays.device_of(x, "q", driver())


def run(key, write_ir, names, values, shapes=None):
    """Runs the kernel of a key on arrays of one device; `shapes` as declared, where they are not the arrays'."""
    first = values[0]
    if arrays.on_cpu(first):
        kernel(key, write_ir, names, None)(*values, shapes=shapes)
        return
    device = device_of(first)
    compiled = kernel(key, write_ir, names, target_of(device))
    if arrays.is_torch(first):
        from . import fast

        fast.run(compiled, device, values, shapes)
    else:
        compiled(*values)


def _dtype(x):
    return None if x is None else arrays.dtype_name(x)


def _step_schedule(call, states, state_dtype, precision):
    """The schedule of a dense call of few tokens on the GPU, by the number of states; None for many."""
    selected = None if precision == "default" else build.schedule("auto", precision=precision)
    eights = call.q.shape[1] > 1 and call.v_first and _dtype(call.q) != "f32" and call.erase is None
    if eights and (call.gate is None or len(call.gate.shape) == 3):
        K, V = call.q.shape[3], call.v.shape[3]
        fits = K <= 128 and -(-K // 16) * 16 % 32 == 0 and V >= 16
        if fits:
            return build.schedule("step", 8, 16, precision=precision) if states <= _ONE_STATE else selected
    if states > _FEW_STATES or not call.v_first:
        return selected
    rows = _STATE_ROWS_OF_A_STEP * (1 if state_dtype == "f32" else 2)
    return build.schedule("step", 16, rows, warps=4, streaming=True)


def _schedule(call, sequences, in_cpu, state_dtype):
    """The schedule where the compiler cannot know better, else None."""
    tokens, V = call.q.shape[1], call.v.shape[3]
    rows = min(V, 256) if in_cpu else _STATE_ROWS_OF_A_STEP
    # Packed sequences of a few tokens each: decode steps of a server.
    if call.cu_seqlens is not None and tokens <= rule.STEP_TOKENS * sequences:
        return build.schedule("step", 16, rows)
    # The CPU computes in float32 anyway.
    precision = "default" if in_cpu or _dtype(call.q) == "f32" else call.precision
    if tokens <= rule.STEP_TOKENS:
        states = sequences * call.v.shape[2]
        return None if in_cpu or not tokens else _step_schedule(call, states, state_dtype, precision)
    if call.chunk is None:
        return None if precision == "default" else build.schedule("auto", precision=precision)
    if in_cpu:
        return build.schedule("fused", call.chunk, min(V, 256))
    return build.schedule("split", call.chunk, min(64, -(-V // 16) * 16), 2, precision=precision)


def make_rule(call, in_place, state_dtype):
    """What the kernel of a call is specialised on."""
    _, tokens, heads, K = call.q.shape
    value_heads, V = call.v.shape[2:]
    packed = call.cu_seqlens is not None
    sequences = call.cu_seqlens.shape[0] - 1 if packed else call.q.shape[0]
    in_cpu = arrays.on_cpu(call.q)
    gate = None if call.gate is None else "channel" if len(call.gate.shape) == 4 else "head"
    return rule.Rule(
        key_heads=heads,
        value_heads=value_heads,
        K=K,
        V=V,
        dtype=_dtype(call.q),
        scale=call.scale,
        gate=gate,
        gate_form=call.gate_form,
        gate_dtype=_dtype(call.gate),
        rate_dtype=_dtype(call.A_log),
        bias_dtype=_dtype(call.dt_bias),
        lower_bound=call.lower_bound,
        beta=call.beta_form,
        beta_dtype=_dtype(call.beta),
        erase_dtype=_dtype(call.erase),
        write_dtype=_dtype(call.write),
        qk_l2norm=call.qk_l2norm,
        v_first=call.v_first,
        offsets=_dtype(call.cu_seqlens),
        slots=_dtype(call.state_indices),
        initial="in_place" if in_place else _dtype(call.initial_state),
        state_dtype=state_dtype,
        every=call.every,
        checkpoint_dtype=_dtype(call.checkpoints),
        tokens=tokens if not packed and 0 < tokens <= rule.STEP_TOKENS else None,
        schedule=_schedule(call, sequences, in_cpu, state_dtype or _dtype(call.initial_state)),
        out_dtype=call.out_dtype,
        rows=tuple(None if x is None or len(x.shape) < 3 else arrays.row_of(x) for x in per_token(call)),
    )


def per_token(call):
    """The operands rule.PER_TOKEN."""
    return call.q, call.k, call.v, call.gate, call.beta, call.erase, call.write


def shapes_in_memory(key, call_shapes):
    """Shapes of the arguments as the kernel of a rule declares them: slices with the heads around them."""
    tails = key.in_memory()
    return [
        (*shape[:2], *tails[name]) if name in tails else tuple(shape)
        for name, shape in zip(key.arguments(), call_shapes)
    ]


def state_shape(call):
    K, V = call.q.shape[3], call.v.shape[3]
    sequences = call.q.shape[0] if call.cu_seqlens is None else call.cu_seqlens.shape[0] - 1
    return (sequences, call.v.shape[2], *((V, K) if call.v_first else (K, V)))


def run_recurrence(*arguments):
    """Runs the recurrence on real arrays: the fields of a Call, and whether the state is in place."""
    *fields, in_place = arguments
    call = Call(*fields)
    out, final_state = call.out, call.final_state
    for name, x in (("cu_seqlens", call.cu_seqlens), ("state_indices", call.state_indices)):
        if x is not None and (call.validate or arrays.on_cpu(x)):
            if name == "cu_seqlens":
                check_starts(name, _host_integers(x), call.q.shape[1])
            else:
                check_slots(
                    name, _host_integers(x), (call.initial_state if final_state is None else final_state).shape[0]
                )
    key = make_rule(call, in_place, _dtype(final_state))
    values = dict(zip(Call._fields, call), o=out, state=final_state)
    values["offsets"], values["slots"], values["initial"] = call.cu_seqlens, call.state_indices, call.initial_state
    names = tuple(key.arguments())
    as_they_lie = {"o", "state", "checkpoints", *key.in_memory()}
    values = [values[n] if n in as_they_lie else arrays.dense(values[n], n) for n in names]
    shapes = shapes_in_memory(key, [x.shape for x in values]) if any(key.rows) else None
    run(key, rule.ir, names, values, shapes)


def run_linear_attn(q, k, v, cu_seqlens, initial_state, initial_sums, out, final_state, final_sums, scale):
    """Normalised linear attention on real arrays; see rule.NormalizedRule."""
    if cu_seqlens is not None and arrays.on_cpu(cu_seqlens):
        check_starts("cu_seqlens", _host_integers(cu_seqlens), q.shape[1])
    key = rule.NormalizedRule(
        rule.Rule(
            key_heads=q.shape[2],
            value_heads=v.shape[2],
            K=q.shape[3],
            V=v.shape[3],
            dtype=_dtype(q),
            scale=scale,
            v_first=False,
            offsets=_dtype(cu_seqlens),
            initial=_dtype(initial_state),
            state_dtype=_dtype(final_state),
        ),
        _dtype(initial_sums),
    )
    values = {"q": q, "k": k, "v": v, "offsets": cu_seqlens, "initial": initial_state, "sums": initial_sums}
    names = tuple(key.arguments())
    inputs = [arrays.dense(values[name], name) for name in names[:-3]]
    run(key, rule.normalized_ir, names, [*inputs, out, final_state, final_sums])


_INPUTS, _DESTINATIONS = Call._fields[:12], Call._fields[12:15]


def check_overlap(fields):
    """Destinations of a call overlap nothing but the initial state that they are."""
    arguments = list(zip(_INPUTS + _DESTINATIONS, fields))
    spans = [(name, x, arrays.span(x)) for name, x in arguments if x is not None]
    for name, x, (start, end) in spans:
        if name not in _DESTINATIONS:
            continue
        for other_name, other, (other_start, other_end) in spans:
            if other_name == name or not (start < other_end and other_start < end):
                continue
            if {name, other_name} == {"final_state", "initial_state"} and arrays.same_memory(x, other):
                continue
            raise ValueError(f"{name}, which is written to, overlaps {other_name}")


def recurrence(call: Call, prepared=None, wanted=True):
    """(o, final state, checkpoints) of a checked call.

    `prepared` runs it instead of this module; see gdn.eager. Where the final state is not `wanted`, a
    given initial state is only read.
    """
    out, state, checkpoints = call.out, call.final_state, call.checkpoints
    if (out is not None or state is not None or checkpoints is not None) and not arrays.is_tracing(call.q):
        check_overlap(call)
    if out is None:
        out = arrays.empty_like(call.q, tuple(call.v.shape), call.out_dtype or _dtype(call.v))
    if call.every is not None and checkpoints is None:
        shape = checkpoint_shape(call.q, call.v, call.v_first, call.every)
        checkpoints = arrays.empty_like(call.q, shape, "f32")
    in_place = False
    if state is not None:
        in_place = call.initial_state is not None and arrays.same_memory(call.initial_state, state)
    elif wanted or call.initial_state is None:
        state = arrays.empty_like(call.q, state_shape(call), "f32")
    initial = None if in_place else call.initial_state
    call = call._replace(out=out, final_state=state, checkpoints=checkpoints, initial_state=initial)
    if prepared is None:
        dispatch("recurrence", run_recurrence, *call, in_place)
    else:
        prepared(call, in_place)
    return out, state, checkpoints


def dispatch(name, function, *arguments):
    """Calls `function`; with torch tensors by the op gdn::<name> where something traces or transforms it."""
    if arrays.is_torch(arguments[0]):
        from . import torch_ops

        torch_ops.call(name, function, arguments)
    else:
        function(*arguments)


def _host_integers(x):
    if arrays.is_torch(x):
        return x.tolist()
    if arrays.on_cpu(x):
        return [int(value) for value in x]
    import struct

    from .driver import driver

    view = arrays.view(x, device_of(x), 0, driver())
    size = arrays.ITEM_SIZES[view.dtype]
    with driver().on(view.device):
        raw = driver().read(view.pointer, view.shape[0] * size, 0)
    return list(struct.unpack(f"<{view.shape[0]}{'i' if size == 4 else 'q'}", raw))
