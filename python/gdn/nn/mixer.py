# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all mixers share: convolutions with their state, the recurrence with its state, trials."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from .. import core
from .. import mixer as parts
from ..rule import STEP_TOKENS
from .cache import MixerCache


class ShortConvolution(nn.Module):
    """Weights of a depthwise causal convolution over D channels with W taps.

    `weight` has the shape [D, 1, W] of torch.nn.Conv1d(groups=D), the shape that checkpoints have.
    """

    def __init__(self, channels, taps, bias=False, device=None, dtype=None):
        super().__init__()
        self.channels, self.taps = channels, taps
        self.weight = nn.Parameter(torch.empty(channels, 1, taps, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(channels, device=device, dtype=dtype)) if bias else None
        bound = taps**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if bias:
            nn.init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        return f"{self.channels}, taps={self.taps}, bias={self.bias is not None}"

    def forward(self, x, state=None, cu_seqlens=None, activation="silu", update=True):
        """[B, T, D] to [B, T, D]; continues `state` [N, D, W - 1], and updates it in place if asked."""
        return _convolve(x, self.weight.squeeze(1), self.bias, state, cu_seqlens, activation, update)


class JointConvolution:
    """Several convolutions as one over the channels of all: one launch and one state.

    No module: the parameters stay those of the parts, under their names. Their weights are put together
    once, and again when one has changed.
    """

    def __init__(self, *parts):
        self.parts = parts
        self._seen = self._joined = None

    @property
    def channels(self):
        return sum(part.channels for part in self.parts)

    @property
    def taps(self):
        return self.parts[0].taps

    def joined(self):
        """Weight [D, W] and bias [D] or None."""
        parameters = [p for part in self.parts for p in (part.weight, part.bias) if p is not None]
        trains = torch.is_grad_enabled() and any(p.requires_grad for p in parameters)
        if trains or torch.compiler.is_compiling() or any(p.is_inference() for p in parameters):
            return self._join()
        seen = [(p.data_ptr(), p._version, p.dtype) for p in parameters]
        if seen != self._seen:
            self._joined, self._seen = self._join(), seen
        return self._joined

    def _join(self):
        weights = [part.weight.squeeze(1) for part in self.parts]
        biases = [part.bias for part in self.parts if part.bias is not None]
        return torch.cat(weights), torch.cat(biases) if biases else None

    def __call__(self, x, state=None, cu_seqlens=None, activation="silu", update=True, l2norm_heads=None):
        """As ShortConvolution.forward; x and state hold the channels of the parts, one behind the other."""
        weight, bias = self.joined()
        return _convolve(x, weight, bias, state, cu_seqlens, activation, update, l2norm_heads)


def _convolve(x, weight, bias, state, cu_seqlens, activation, update, l2norm_heads=None):
    y, _ = parts.short_conv(
        x,
        weight,
        bias,
        activation=activation,
        initial_state=state,
        cu_seqlens=cu_seqlens,
        output_final_state=state is not None and update,
        final_state=state if update else None,
        l2norm_heads=l2norm_heads,
    )
    return y


def project_jointly(x, linears):
    """The results of several linear maps of x, [B, T, all their channels], one behind the other.

    Products write into their slices of one tensor where that is possible; else the parts are copied.
    """
    plain = all(
        type(m) is nn.Linear and m.bias is None and not (m._forward_hooks or m._forward_pre_hooks) for m in linears
    )
    special = torch.compiler.is_compiling() or torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type)
    if not plain or special or not x.is_cuda or any(m.weight.dtype != x.dtype for m in linears):
        return torch.cat([m(x) for m in linears], dim=-1)
    rows = x.reshape(-1, x.shape[-1])
    result = x.new_empty(rows.shape[0], sum(m.out_features for m in linears))
    for m, part in zip(linears, result.split([m.out_features for m in linears], dim=-1)):
        torch.mm(rows, m.weight.t(), out=part)
    return result.view(*x.shape[:-1], -1)


class GatedNorm(nn.Module):
    """y = x * rsqrt(mean(x^2) + eps) * weight * activation(z) over the last dimension."""

    def __init__(self, size, eps, activation="silu", device=None, dtype=None):
        super().__init__()
        self.eps, self.activation = eps, activation
        self.weight = nn.Parameter(torch.ones(size, device=device, dtype=dtype))

    def extra_repr(self):
        return f"{self.weight.shape[0]}, eps={self.eps}, activation={self.activation}"

    def forward(self, x, z):
        return parts.gated_rms_norm(x, z, self.weight, self.eps, self.activation)


class Norm(nn.Module):
    """y = x * rsqrt(mean(x^2) + eps) * weight over the last dimension."""

    def __init__(self, size, eps, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size, device=device, dtype=dtype))

    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps).to(x.dtype)


class Mixer(nn.Module):
    """Base of the mixers. A mixer names its convolutions in order and says what the rule gets.

    `project(x)` gives the inputs of the convolutions and whatever else the rule needs of x;
    `rule_inputs(convolved, rest)` the arguments of `gdn.recurrence`; `finish(o, rest)` the output.
    """

    state_shape: tuple  # (HV, V, K)
    qk_heads: tuple | None = None  # heads of q and k in front of the joint convolution, and their size

    def convolutions(self):
        return ()

    def project(self, x):
        raise NotImplementedError

    def rule_inputs(self, convolved, rest):
        raise NotImplementedError

    def finish(self, o, rest):
        raise NotImplementedError

    def new_cache(self, num_sequences, state_dtype=torch.float32):
        """A `MixerCache` of empty sequences on the mixer's device.

        A step moves the recurrent states through memory and little else: in bfloat16 (or float16) it
        takes half the time, and each call rounds the states.
        """
        like = next(self.parameters())
        conv = [
            torch.zeros(num_sequences, conv.channels, conv.taps - 1, device=like.device, dtype=like.dtype)
            for conv in self.convolutions()
        ]
        recurrent = torch.zeros(num_sequences, *self.state_shape, device=like.device, dtype=state_dtype)
        return MixerCache(conv, recurrent)

    def check(self, x, cache, attention_mask, cu_seqlens):
        if x.dim() != 3 or x.shape[-1] != self.hidden_size:
            raise ValueError(f"hidden_states has shape {list(x.shape)}, the mixer takes [B, T, {self.hidden_size}]")
        sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        if cu_seqlens is not None and x.shape[0] != 1:
            raise ValueError(f"packed documents (cu_seqlens) need B = 1, hidden_states has B = {x.shape[0]}")
        if cu_seqlens is not None and attention_mask is not None:
            raise ValueError("cu_seqlens and attention_mask exclude each other: packed documents have no padding")
        if attention_mask is not None and attention_mask.shape[-1] < x.shape[1]:
            raise ValueError(f"attention_mask has shape {list(attention_mask.shape)} for {x.shape[1]} tokens")
        if cache is not None and cache.num_sequences != sequences:
            raise ValueError(f"the cache holds {cache.num_sequences} sequences, the call has {sequences}")

    def forward(self, hidden_states, cache=None, *, attention_mask=None, cu_seqlens=None):
        """Mixes tokens.

        hidden_states   [B, T, hidden]
        cache           a `MixerCache` of B sequences (of len(cu_seqlens) - 1 with packed documents) to
                        continue, updated in place; without one every sequence starts empty
        attention_mask  [B, T] of 1 and 0 (or longer: its last T columns): tokens at 0 are padding, which may
                        stand anywhere: the others and the cache are as if it were not there, and its own
                        results are 0. Nothing waits for the device; the tokens are gathered and
                        scattered, so leave the mask out of steps in which no row is padding
        cu_seqlens      [N + 1] int32 or int64: starts of documents packed into one row (B = 1)

        Returns [B, T, hidden].
        """
        self.check(hidden_states, cache, attention_mask, cu_seqlens)
        if attention_mask is not None:
            return self._forward_masked(hidden_states, cache, attention_mask[:, -hidden_states.shape[1] :])
        states = cache.conv if cache is not None else ()
        recurrent = cache.recurrent if cache is not None else None
        rule = {"initial_state": recurrent, "final_state": recurrent, "output_final_state": recurrent is not None}
        return self._mix(hidden_states, states, rule, cu_seqlens)

    def _mix(self, x, conv_states, rule_states, cu_seqlens):
        """Projections, convolutions, which update their states in place, the rule and the output."""
        inputs, rest = self.project(x)
        options = {}
        if self.qk_heads and self.convolutions() and normalizes_early(x, cu_seqlens, self.qk_heads[1]):
            options = {"l2norm_heads": self.qk_heads}
        states = conv_states or [None] * len(inputs)
        convolved = [
            conv(value, state, cu_seqlens, **options) for conv, value, state in zip(self.convolutions(), inputs, states)
        ] or inputs
        rule = self.rule_inputs(convolved, rest)
        if options:
            rule["qk_l2norm"] = False
        o, _ = core.recurrence(**rule, **rule_states, cu_seqlens=cu_seqlens)
        return self.finish(o, rest)

    def _forward_masked(self, x, cache, mask):
        """Each row as two packed documents: its tokens, and its padding, which has no slot in the cache."""
        mask = mask.bool()
        batch, tokens = mask.shape
        first = torch.arange(batch, device=x.device) * tokens
        order = mask.logical_not().to(torch.uint8).argsort(dim=1, stable=True) + first[:, None]
        starts = F.pad(torch.stack([first, first + mask.sum(dim=1)], dim=1).flatten(), (0, 1), value=batch * tokens)
        index = order.flatten()
        conv, rule = [], {"output_final_state": False}
        if cache is not None:
            conv = [torch.stack([state, torch.zeros_like(state)], dim=1).flatten(0, 1) for state in cache.conv]
            slots = torch.arange(batch, device=x.device)
            slots = torch.stack([slots, torch.full_like(slots, -1)], dim=1).flatten()
            rule = {"initial_state": cache.recurrent, "state_indices": slots}
        y = self._mix(x.flatten(0, 1)[index].unsqueeze(0), conv, rule, starts)[0]
        for state, new in zip(cache.conv if cache is not None else (), conv):
            state.copy_(new[::2])
        y = torch.empty_like(y).index_copy_(0, index, y).unflatten(0, mask.shape)
        return torch.where(mask[..., None], y, 0)

    def verify(self, hidden_states, cache):
        """Mixes T tokens that may be rejected: as `forward`, but the cache stays where it was.

        hidden_states: [B, T, hidden]. Afterwards `cache.accept(n)` moves it behind the first n tokens.
        The states behind every token are kept until then: T times the memory of the recurrent state.
        """
        self.check(hidden_states, cache, None, None)
        inputs, rest = self.project(hidden_states)
        convolved = [
            conv(value, state, update=False) for conv, value, state in zip(self.convolutions(), inputs, cache.conv)
        ] or inputs
        arguments = self.rule_inputs(convolved, rest)
        o, states = _states_behind_each_token(arguments, cache.recurrent)
        cache._try(inputs if self.convolutions() else (), states)
        return self.finish(o, rest)


def normalizes_early(x, cu_seqlens, size):
    """True where the convolution normalises q and k. The kernel of a step does it itself, on what it loads."""
    sequences = 1 if cu_seqlens is None else cu_seqlens.shape[0] - 1
    return x.shape[1] > STEP_TOKENS * sequences and parts.can_normalize(size, x)


def _states_behind_each_token(arguments, recurrent):
    """o and the states [N, T, HV, V, K] of a dense call that starts from `recurrent` and leaves it alone."""
    per_token = [name for name in ("q", "k", "v", "gate", "beta", "erase", "write") if arguments.get(name) is not None]
    tokens, outputs, states, state = arguments["q"].shape[1], [], [], recurrent
    for t in range(0, tokens, STEP_TOKENS):
        step = {name: arguments[name] for name in per_token}
        if tokens > STEP_TOKENS:
            step = {name: value[:, t : t + STEP_TOKENS].contiguous() for name, value in step.items()}
        o, _, inner = core.recurrence(
            **{**arguments, **step}, initial_state=state, output_final_state=False, checkpoint_every=1
        )
        outputs.append(o)
        states.append(inner)
        state = inner[:, -1].contiguous()
    return torch.cat(outputs, dim=1), torch.cat(states, dim=1)


def init_decay(heads, low, high, device=None):
    """A_log of decay rates that are uniform in low..high, float32."""
    return torch.empty(heads, device=device).uniform_(low, high).clamp_(min=1e-4).log_()


def init_dt_bias(shape, low=1e-3, high=0.1, floor=1e-4, device=None):
    """Inverse softplus of step sizes that are log-uniform in low..high, float32."""
    span = math.log(high) - math.log(low)
    dt = torch.exp(torch.rand(shape, device=device) * span + math.log(low)).clamp_(min=floor)
    return dt + torch.log(-torch.expm1(-dt))
