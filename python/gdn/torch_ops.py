# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of gdn as PyTorch operators.

Each operator writes into tensors that its caller allocates and returns nothing, so tracing,
functionalization and export see plain allocations and one mutating call. Eager calls skip the
dispatcher: nothing would look at them on the way. There is no backward pass: an operator raises
where a gradient is needed.
"""

from __future__ import annotations

import torch

from . import backend, mixer

_SCHEMAS = {
    "recurrence": "(Tensor q, Tensor k, Tensor v, Tensor? gate, Tensor? A_log, Tensor? dt_bias, Tensor? beta, "
    "Tensor? erase, Tensor? write, Tensor? cu_seqlens, Tensor? state_indices, Tensor? initial_state, Tensor(a!) out, "
    "Tensor(b!)? final_state, Tensor(c!)? checkpoints, float scale, str gate_form, float? lower_bound, "
    "str? beta_form, bool qk_l2norm, bool v_first, int? chunk, int? every, str precision, "
    "str? out_dtype, bool validate, bool in_place) -> ()",
    "linear_attn": "(Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens, Tensor? initial_state, Tensor? initial_sums, "
    "Tensor(a!) out, Tensor(b!) final_state, Tensor(c!) final_sums, float scale) -> ()",
    "l2norm": "(Tensor x, float eps, Tensor(a!) out) -> ()",
    "gate": "(Tensor a, Tensor A_log, Tensor? dt_bias, float? lower_bound, Tensor(a!) out) -> ()",
    "gated_rms_norm": "(Tensor x, Tensor z, Tensor weight, float eps, str activation, Tensor(a!) out) -> ()",
    "short_conv": "(Tensor x, Tensor weight, Tensor? bias, str activation, Tensor? initial_state, "
    "Tensor? cu_seqlens, Tensor(a!) out, Tensor(b!) final_state, bool in_place, int norm_heads, int norm_size) -> ()",
}
_FUNCTIONS = {
    "recurrence": backend.run_recurrence,
    "linear_attn": backend.run_linear_attn,
    "l2norm": mixer.run_l2norm,
    "gate": mixer.run_gate,
    "gated_rms_norm": mixer.run_gated_rms_norm,
    "short_conv": mixer.run_short_conv,
}

_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_dispatch_modes = torch._C._len_torch_dispatch_stack


class GradientError(RuntimeError):
    """A gradient would be needed of something that has none."""


def _need_no_gradient(name, arguments):
    if torch.is_grad_enabled():
        for argument in arguments:
            if isinstance(argument, _Tensor) and argument.requires_grad:
                raise GradientError(
                    f"gdn.{name} has no backward pass yet, but an input needs a gradient (requires_grad); call it "
                    "under torch.no_grad() or torch.inference_mode(), or detach the inputs"
                )


def call(name, function, arguments):
    """Runs `function`, by the operator where something traces or transforms the call."""
    _need_no_gradient(name, arguments)
    if not torch.compiler.is_compiling() and not _dispatch_modes():
        for argument in arguments:
            kind = type(argument)
            if kind is not _Tensor and kind is not _Parameter and isinstance(argument, _Tensor):
                break
        else:
            function(*arguments)
            return
    getattr(torch.ops.gdn, name)(*arguments)


# Kept alive: the operators go with it.
_library = torch.library.Library("gdn", "DEF")


def _define(name, schema, function):
    _library.define(name + schema)

    def compute(*arguments):
        function(*arguments)

    def fake(*arguments):
        return None

    def refuse_gradients(*arguments):
        _need_no_gradient(name, arguments)
        with torch._C._AutoDispatchBelowAutograd():
            getattr(torch.ops.gdn, name)(*arguments)

    for key in ("CPU", "CUDA"):
        _library.impl(name, compute, key)
    _library.impl(name, refuse_gradients, "Autograd")
    torch.library.register_fake(f"gdn::{name}", fake, lib=_library)


for _name, _schema in _SCHEMAS.items():
    _define(_name, _schema, _FUNCTIONS[_name])
