# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs checked calls, on the GPU or on the CPU, wherever the arrays are."""

from __future__ import annotations

import functools
import os

from . import arrays, build, cpu, rule
from . import compile as compiler
from .checks import Call, check_starts

_STATE_ROWS_OF_A_STEP = 8


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


def run(key, write_ir, names, values):
    """Runs the kernel of a key on arrays of one device."""
    first = values[0]
    target = None if arrays.on_cpu(first) else target_of(device_of(first))
    kernel(key, write_ir, names, target)(*values)


def _dtype(x):
    return None if x is None else arrays.dtype_name(x)


def _schedule(call, sequences, in_cpu):
    """The schedule where the compiler cannot know better, else None."""
    tokens, V = call.q.shape[1], call.v.shape[3]
    rows = min(V, 256) if in_cpu else _STATE_ROWS_OF_A_STEP
    # Packed sequences of a few tokens each: decode steps of a server.
    if call.cu_seqlens is not None and tokens <= rule.STEP_TOKENS * sequences:
        return build.schedule("step", 16, rows)
    if call.chunk is None or tokens <= rule.STEP_TOKENS:
        return None
    if in_cpu:
        return build.schedule("fused", call.chunk, min(V, 256))
    return build.schedule("split", call.chunk, min(64, -(-V // 16) * 16), 2)


def make_rule(call, in_place, state_dtype):
    """What the kernel of a call is specialised on."""
    _, tokens, heads, K = call.q.shape
    value_heads, V = call.v.shape[2:]
    packed = call.cu_seqlens is not None
    sequences = call.cu_seqlens.shape[0] - 1 if packed else call.q.shape[0]
    in_cpu = arrays.on_cpu(call.q)
    gate = None if call.gate is None else "channel" if len(call.gate.shape) == 4 else "head"
    raw = gate is not None and call.gate_form == "raw"
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
        rate_dtype=_dtype(call.A_log) or ("f32" if raw else None),
        bias_dtype=_dtype(call.dt_bias),
        lower_bound=call.lower_bound,
        beta=call.beta_form,
        beta_dtype=_dtype(call.beta),
        erase_dtype=_dtype(call.erase),
        write_dtype=_dtype(call.write),
        qk_l2norm=call.qk_l2norm,
        v_first=call.v_first,
        offsets=_dtype(call.cu_seqlens),
        initial="in_place" if in_place else _dtype(call.initial_state),
        state_dtype=state_dtype,
        tokens=tokens if not packed and 0 < tokens <= rule.STEP_TOKENS else None,
        schedule=_schedule(call, sequences, in_cpu),
    )


def state_shape(call):
    K, V = call.q.shape[3], call.v.shape[3]
    sequences = call.q.shape[0] if call.cu_seqlens is None else call.cu_seqlens.shape[0] - 1
    return (sequences, call.v.shape[2], *((V, K) if call.v_first else (K, V)))


_zeros = {}


def zeros(x, count):
    """Float32 zeros beside x, made once."""
    key = arrays.place(x), count
    if key not in _zeros:
        if arrays.is_torch(x):
            _zeros[key] = arrays.empty_like(x, (count,), "f32").zero_()
        elif arrays.on_cpu(x):
            import numpy

            _zeros[key] = numpy.zeros(count, numpy.float32)
        else:
            _zeros[key] = arrays.DeviceArray.from_bytes(bytes(4 * count), (count,), "f32", device_of(x))
    return _zeros[key]


def run_recurrence(
    q, k, v, gate, A_log, dt_bias, beta, erase, write, cu_seqlens, initial_state, out, final_state, *options
):
    """Runs the recurrence on real arrays; `options` are the rest of a Call and whether the state is in place."""
    *options, in_place = options
    call = Call(
        q, k, v, gate, A_log, dt_bias, beta, erase, write, cu_seqlens, initial_state, out, final_state, *options
    )
    if cu_seqlens is not None and (call.validate or arrays.on_cpu(cu_seqlens)):
        check_starts("cu_seqlens", _host_integers(cu_seqlens), q.shape[1])
    key = make_rule(call, in_place, _dtype(final_state))
    values = dict(zip(Call._fields, call))
    if key.rate_dtype and A_log is None:
        values["A_log"] = zeros(q, key.value_heads)
    values["offsets"], values["initial"] = cu_seqlens, initial_state
    names = tuple(key.arguments())
    inputs = [arrays.dense(values[name]) for name in names[:-2]]
    run(key, rule.ir, names, [*inputs, out, final_state])


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
    inputs = [arrays.dense(values[name]) for name in names[:-3]]
    run(key, rule.normalized_ir, names, [*inputs, out, final_state, final_sums])


def recurrence(call: Call):
    """(o, final state) of a checked call."""
    out, state = call.out, call.final_state
    if out is None:
        out = arrays.empty_like(call.q, tuple(call.v.shape), _dtype(call.v))
    in_place = False
    if state is None:
        state = arrays.empty_like(call.q, state_shape(call), "f32")
    elif call.initial_state is not None:
        in_place = arrays.same_memory(call.initial_state, state)
    call = call._replace(out=out, final_state=state, initial_state=None if in_place else call.initial_state)
    dispatch("recurrence", run_recurrence, *call, in_place)
    return out, state


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
