# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hugging Face transformers' models with gdn's kernels: `patch_transformers`.

The linear-attention layers of these model types are replaced, for every model of the process that
exists or will be made: qwen3_next, qwen3_5, qwen3_5_moe, olmo_hybrid, kimi_linear. Weights, caches and
everything else stay transformers' own. A layer keeps its own code where it does what the kernels do
not: recording the past for assisted generation (there the rule alone is replaced).
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import NamedTuple

import torch

from . import core, fla
from . import mixer as parts
from .nn.mixer import normalizes_early, project_jointly


class Projected(NamedTuple):
    """What the projections of a layer give."""

    qkv: torch.Tensor  # input of the convolution: the channels of q, k and v, [B, T, D]
    rule: dict  # gate and beta arguments of gdn.recurrence
    z: torch.Tensor  # input of the output gate, [B, T, values]


class Layer(NamedTuple):
    """How a layer class of transformers is read."""

    module: str
    name: str
    project: callable
    heads: callable  # layer -> (key heads, K, value heads, V)
    norm: str
    out: str


def _raw_gate(layer, a, b, beta_form="sigmoid"):
    return {
        "gate": a,
        "gate_form": "raw",
        "A_log": layer.A_log.float(),
        "dt_bias": layer.dt_bias.float(),
        "beta": b,
        "beta_form": beta_form,
    }


def _project_qwen3_5(layer, x):
    return Projected(layer.in_proj_qkv(x), _raw_gate(layer, layer.in_proj_a(x), layer.in_proj_b(x)), layer.in_proj_z(x))


def _project_qwen3_next(layer, x):
    groups = layer.num_v_heads // layer.num_k_heads
    value = groups * layer.head_v_dim
    qkvz = layer.in_proj_qkvz(x).unflatten(-1, (layer.num_k_heads, -1))
    q, k, v, z = qkvz.split([layer.head_k_dim, layer.head_k_dim, value, value], dim=-1)
    b, a = layer.in_proj_ba(x).unflatten(-1, (layer.num_k_heads, -1)).split([groups, groups], dim=-1)
    qkv = torch.cat([part.flatten(2) for part in (q, k, v)], dim=-1)
    z, b, a = (part.reshape(*x.shape[:2], -1) for part in (z, b, a))
    return Projected(qkv, _raw_gate(layer, a, b), z)


def _project_olmo_hybrid(layer, x):
    qkv = project_jointly(x, (layer.q_proj, layer.k_proj, layer.v_proj))
    form = "2sigmoid" if layer.allow_neg_eigval else "sigmoid"
    return Projected(qkv, _raw_gate(layer, layer.a_proj(x), layer.b_proj(x), form), layer.g_proj(x))


def _project_kimi_linear(layer, x):
    gate, heads = layer.forget_gate, (layer.num_heads, layer.head_dim)
    rule = {
        "gate": gate.f_b_proj(gate.f_a_proj(x)).unflatten(-1, heads),
        "gate_form": "raw",
        "A_log": gate.A_log.float().flatten(),
        "dt_bias": gate.dt_bias.float().view(heads),
        "beta": layer.b_proj(x),
        "beta_form": "sigmoid",
    }
    qkv = project_jointly(x, (layer.q_proj, layer.k_proj, layer.v_proj))
    return Projected(qkv, rule, layer.g_b_proj(layer.g_a_proj(x)))


def _gated_heads(layer):
    return layer.num_k_heads, layer.head_k_dim, layer.num_v_heads, layer.head_v_dim


def _kimi_heads(layer):
    return layer.num_heads, layer.head_dim, layer.num_heads, layer.head_dim


LAYERS = {
    "qwen3_next": Layer("qwen3_next", "Qwen3NextGatedDeltaNet", _project_qwen3_next, _gated_heads, "norm", "out_proj"),
    "qwen3_5": Layer("qwen3_5", "Qwen3_5GatedDeltaNet", _project_qwen3_5, _gated_heads, "norm", "out_proj"),
    "qwen3_5_moe": Layer("qwen3_5_moe", "Qwen3_5MoeGatedDeltaNet", _project_qwen3_5, _gated_heads, "norm", "out_proj"),
    "olmo_hybrid": Layer(
        "olmo_hybrid", "OlmoHybridGatedDeltaNet", _project_olmo_hybrid, _gated_heads, "o_norm", "o_proj"
    ),
    "kimi_linear": Layer(
        "kimi_linear", "KimiLinearDeltaAttention", _project_kimi_linear, _kimi_heads, "o_norm", "o_proj"
    ),
}

# Functions of the model files that compute the rule, and ours in their place.
RULES = {
    "torch_chunk_gated_delta_rule": "chunk_gated_delta_rule",
    "torch_recurrent_gated_delta_rule": "fused_recurrent_gated_delta_rule",
    "chunk_kimi_delta_attention": "chunk_kda",
    "recurrent_kimi_delta_attention": "fused_recurrent_kda",
}


def _convolve(layer, qkv, state, cu_seqlens, l2norm_heads):
    """Convolution and SiLU of q, k and v; continues and updates `state` [N, D, W], if there is one."""
    convolved, _ = parts.short_conv(
        qkv,
        layer.conv1d.weight.squeeze(1),
        layer.conv1d.bias,
        activation=layer.activation,
        cu_seqlens=cu_seqlens,
        initial_state=state,
        final_state=state,
        output_final_state=state is not None,
        l2norm_heads=l2norm_heads,
    )
    return convolved


def _conv_state(layer, cache, x, channels):
    """The layer's convolution state in transformers' cache, [B, D, W], zeros in front of the first token."""
    mine = cache.layers[layer.layer_idx]
    if not mine.is_conv_states_initialized[0]:
        nothing = x.new_empty(x.shape[0], channels, 0)
        mine.lazy_initialization(conv_states=nothing, conv_kernel_size=layer.conv_kernel_size)
    mine.has_previous_state[0] = True
    return mine.conv_states[0]


def _mix(how, layer, x, cache, cu_seqlens):
    """Forward of one layer."""
    key_heads, K, value_heads, V = how.heads(layer)
    started = cache is not None and cache.has_previous_state(layer.layer_idx)
    qkv, rule, z = how.project(layer, x)
    conv = None if cache is None else _conv_state(layer, cache, x, qkv.shape[-1])
    early = normalizes_early(qkv, cu_seqlens, K)
    convolved = _convolve(layer, qkv, conv, cu_seqlens, (2 * key_heads, K) if early else None)
    q, k, v = convolved.split([key_heads * K, key_heads * K, value_heads * V], dim=-1)
    # transformers keeps the state k-first.
    old = cache.layers[layer.layer_idx].recurrent_states[0] if started else None
    o, new = core.recurrence(
        q.unflatten(-1, (key_heads, K)),
        k.unflatten(-1, (key_heads, K)),
        v.unflatten(-1, (value_heads, V)),
        **rule,
        qk_l2norm=not early,
        state_v_first=False,
        initial_state=old,
        final_state=old,
        output_final_state=cache is not None,
        cu_seqlens=cu_seqlens,
    )
    if cache is not None and old is None:
        cache.update_recurrent_state(new, layer.layer_idx)
    norm = getattr(layer, how.norm)
    o = parts.gated_rms_norm(o, z.view_as(o), norm.weight, norm.variance_epsilon, norm.activation)
    return getattr(layer, how.out)(o.flatten(-2))


def _forward(how, original):
    def forward(self, hidden_states, cache_params=None, attention_mask=None, **kwargs):
        cu_seqlens = kwargs.get("cu_seq_lens_q")
        records = cache_params is not None and cache_params.layers[self.layer_idx].record_past
        if records or (cu_seqlens is not None and cache_params is not None):
            return original(self, hidden_states, cache_params, attention_mask, **kwargs)
        if attention_mask is not None:
            hidden_states = (hidden_states * attention_mask[:, :, None]).to(hidden_states.dtype)
        return _mix(how, self, hidden_states, cache_params, cu_seqlens)

    forward.__doc__ = f"{how.name}.forward by gdn's kernels."
    forward._gdn = True
    return forward


_originals = {}  # (owner, attribute): what was there


def _replace(owner, attribute, value):
    _originals.setdefault((owner, attribute), getattr(owner, attribute))
    setattr(owner, attribute, value)


def patch_transformers(models=None):
    """Makes transformers' linear-attention models run on gdn's kernels, for this process.

    models: names of model types out of qwen3_next, qwen3_5, qwen3_5_moe, olmo_hybrid, kimi_linear; by
    default all that the installed transformers has. Models that exist already change too. Returns the
    names of the patched types. Raises ValueError for an unknown name, ImportError for a type that the
    installed transformers lacks. The kernels compute the forward pass only: a call that needs gradients
    raises. `unpatch_transformers()` undoes it.
    """
    asked = list(LAYERS) if models is None else [models] if isinstance(models, str) else list(models)
    unknown = [name for name in asked if name not in LAYERS]
    if unknown:
        raise ValueError(f"no linear attention of gdn's in model type '{unknown[0]}'; known: {', '.join(LAYERS)}")
    patched = []
    for name in asked:
        path = f"transformers.models.{name}.modeling_{name}"
        found = importlib.util.find_spec(f"transformers.models.{name}") is not None
        module = importlib.import_module(path) if found else None
        layer = getattr(module, LAYERS[name].name, None)
        if layer is None:
            if models is not None:
                raise ImportError(f"the installed transformers has no {LAYERS[name].name}")
            continue
        if not getattr(layer.forward, "_gdn", False):
            _replace(layer, "forward", _forward(LAYERS[name], layer.forward))
            for theirs, ours in RULES.items():
                if hasattr(module, theirs):
                    _replace(module, theirs, _rule(getattr(fla, ours)))
        patched.append(name)
    return patched


def _rule(ours):
    """A function of gdn that ignores what transformers passes to every kernel of a layer."""

    def rule(query, key, value, g, beta, initial_state=None, output_final_state=False, cu_seqlens=None, **kwargs):
        return ours(
            query,
            key,
            value,
            g=g,
            beta=beta,
            initial_state=initial_state,
            output_final_state=output_final_state,
            use_qk_l2norm_in_kernel=kwargs.get("use_qk_l2norm_in_kernel", False),
            cu_seqlens=cu_seqlens,
        )

    return rule


def unpatch_transformers():
    """Undoes `patch_transformers`."""
    for (owner, attribute), value in _originals.items():
        setattr(owner, attribute, value)
    _originals.clear()
