# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that look like an earlier one skip its checks.

What gdn.checks finds out depends on shapes, element types, devices and options only. They are the
key under which a thread keeps a checked call of `gdn.recurrence` on CUDA tensors: the launcher of its
kernel and where its arguments come from. A later call with that key allocates and launches.
"""

from __future__ import annotations

import threading

import torch

from . import arrays, backend, fast
from .checks import Call

_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_NUM_TENSORS = Call._fields.index("scale")
_OUT, _STATE, _CHECKPOINTS = (Call._fields.index(name) for name in ("out", "final_state", "checkpoints"))
_INITIAL = Call._fields.index("initial_state")
_KEPT = 4096
_local = threading.local()


class _Entry:
    def __init__(self, call, in_place):
        state = call.final_state
        rule = backend.make_rule(call, in_place, None if state is None else arrays.dtype_name(state))
        names = tuple(rule.arguments())
        self.sources = [Call._fields.index(_FIELDS.get(name, name)) for name in names]
        self.device = call.q.device
        index = self.device.index
        kernel = backend.kernel(rule, backend.rule.ir, names, backend.target_of(index))
        shapes = backend.shapes_in_memory(rule, [call[i].shape for i in self.sources])
        self.launcher = fast.Launcher(kernel, index, shapes)
        self.slices = {Call._fields.index(name) for name in rule.in_memory()}
        self.o_shape, self.o_dtype = tuple(call.out.shape), call.out.dtype
        self.state_shape = None if state is None else tuple(state.shape)
        self.checkpoint_shape = None if call.checkpoints is None else tuple(call.checkpoints.shape)


_FIELDS = {"offsets": "cu_seqlens", "slots": "state_indices", "initial": "initial_state", "o": "out"}
_FIELDS["state"] = "final_state"


def key_of(fields, wanted):
    """The key of a call (the fields of a Call, unchecked), or None for one that is not for this path.

    `wanted` says whether the final state is.
    """
    key = list(fields[_NUM_TENSORS:])
    for option in key:
        if isinstance(option, _Tensor):
            return None
    device = None
    needs_gradient = torch.is_grad_enabled()
    for x in fields[:_NUM_TENSORS]:
        if x is None:
            key.append(None)
            continue
        kind = type(x)
        if (kind is not _Tensor and kind is not _Parameter) or not x.is_cuda or (needs_gradient and x.requires_grad):
            return None
        if device is None:
            device = x.device
        elif x.device != device:
            return None
        key.append(x.shape)
        key.append(x.dtype)
        if not x.is_contiguous():
            key.append(x.stride())
            key.append(x.data_ptr() & 15)
    if torch.is_autocast_enabled("cuda"):
        return None
    final, initial = fields[_STATE], fields[_INITIAL]
    in_place = final is not None and initial is not None and arrays.same_memory(initial, final)
    key += (device, in_place, wanted)
    return tuple(key)


def find(key):
    return _local.__dict__.setdefault("entries", {}).get(key)


def first_run(key, fields):
    """What backend.recurrence calls to run a checked call, which is remembered."""

    def prepared(call, in_place):
        entries = _local.__dict__["entries"]
        if len(entries) >= _KEPT:
            entries.clear()
        entry = _Entry(call, in_place)
        given = list(fields)
        given[_OUT], given[_STATE], given[_CHECKPOINTS] = call.out, call.final_state, call.checkpoints
        run(entry, given)
        entries[key] = entry

    return prepared


def run(entry, fields):
    """(o, final state, checkpoints); the tensors of `fields` are as the entry's."""
    if fields[_OUT] is not None or fields[_STATE] is not None or fields[_CHECKPOINTS] is not None:
        backend.check_overlap(fields)
    fields = list(fields)
    if fields[_OUT] is None:
        fields[_OUT] = torch.empty(entry.o_shape, dtype=entry.o_dtype, device=entry.device)
    if fields[_CHECKPOINTS] is None and entry.checkpoint_shape is not None:
        fields[_CHECKPOINTS] = torch.empty(entry.checkpoint_shape, dtype=torch.float32, device=entry.device)
    if fields[_STATE] is None and entry.state_shape is not None:
        fields[_STATE] = torch.empty(entry.state_shape, dtype=torch.float32, device=entry.device)
    pointers, copies = [], None
    for i in entry.sources:
        x = fields[i]
        pointer = x.data_ptr()
        if (pointer & 15 or not x.is_contiguous()) and i not in entry.slices:
            if i in (_OUT, _STATE, _CHECKPOINTS) and x.numel():
                raise ValueError(
                    f"{Call._fields[i]} of shape {list(x.shape)} must be contiguous and 16-byte aligned, because it "
                    "is written to"
                )
            x = arrays.dense(x, Call._fields[i])
            copies = (copies, x)  # kept until the launch
            pointer = x.data_ptr()
        pointers.append(pointer)
    entry.launcher(pointers)
    return fields[_OUT], fields[_STATE], fields[_CHECKPOINTS]
