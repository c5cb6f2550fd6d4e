# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The token loop and the error measures of gdn.reference in torch, for devices.

Sequences of `offsets` run side by side, padded with tokens that change nothing (zero
keys and gates), so that the loop is as long as the longest sequence.
"""

import torch

from gdn.reference import LIMITS

F64 = torch.float64


def _pad(x, starts, longest):
    """[1, T, ...] packed -> [N, longest, ...], zero behind each sequence."""
    out = x.new_zeros((len(starts) - 1, longest, *x.shape[2:]))
    for n, (a, b) in enumerate(zip(starts, starts[1:])):
        out[n, : b - a] = x[0, a:b]
    return out


def recurrence(
    q,
    k,
    v,
    gate=None,
    beta=None,
    erase=None,
    write=None,
    offsets=None,
    slots=None,
    state=None,
    scale=None,
    state_layout="v_first",
    every=None,
):
    """o, the final state and checkpoints in float64, on the device of q; arguments as gdn.reference.recurrence."""
    if slots is not None:
        options = dict(scale=scale, state_layout=state_layout, every=every)
        return _in_pool((q, k, v, gate, beta, erase, write, offsets), slots.long(), state, options)
    inputs = [q, k, v, gate, beta, erase, write]
    if offsets is not None:
        starts = offsets.tolist()
        longest = max((b - a for a, b in zip(starts, starts[1:])), default=0)
        inputs = [None if x is None else _pad(x, starts, longest) for x in inputs]
    if scale is None:
        scale = q.shape[3] ** -0.5
    sequences, _, heads, value_size = inputs[2].shape
    if state is None:
        S = torch.zeros(sequences, heads, value_size, q.shape[3], dtype=F64, device=q.device)
    else:
        S = state.to(F64)
        S = S.transpose(2, 3).contiguous() if state_layout == "k_first" else S.clone()
    kept = []
    o = _token_loop(*inputs, S, scale, kept, every)
    if offsets is not None:
        o = torch.cat([o[n : n + 1, : b - a] for n, (a, b) in enumerate(zip(starts, starts[1:]))], dim=1)
    transposed = state_layout == "k_first"
    results = [o, S.transpose(2, 3) if transposed else S]
    if every is not None:
        checkpoints = S.new_full((q.shape[0], q.shape[1] // every, *S.shape[1:]), float("nan"))
        for j, states in enumerate(kept):
            if offsets is None:
                checkpoints[:, j] = states
                continue
            for n, (a, b) in enumerate(zip(starts, starts[1:])):
                if (j + 1) * every <= b - a:
                    checkpoints[0, a // every + j] = states[n]
        results.append(checkpoints.transpose(3, 4) if transposed else checkpoints)
    return tuple(results)


def _in_pool(operands, slots, pool, options):
    """Runs on the entries that the slots name; a sequence without one gives zeros and keeps no state."""
    offsets = operands[-1]
    o, final, *checkpoints = recurrence(*operands, state=pool[slots.clamp(min=0)], **options)
    pool = pool.to(F64).clone()
    live = slots >= 0
    pool[slots[live]] = final[live]
    if offsets is None:
        o[~live] = 0
        for states in checkpoints:
            states[~live] = float("nan")
    else:
        every = options["every"]
        for n, (a, b) in enumerate(zip(offsets.tolist(), offsets.tolist()[1:])):
            if not live[n]:
                o[:, a:b] = 0
                for states in checkpoints:
                    states[:, a // every : a // every + (b - a) // every] = float("nan")
    return (o, pool, *checkpoints)


def _token_loop(q, k, v, gate, beta, erase, write, S, scale, kept, every):
    group = v.shape[2] // q.shape[2]
    o = torch.empty(v.shape, dtype=F64, device=v.device)
    decay = None if gate is None else gate.to(F64).exp()
    if decay is not None:
        decay = decay[..., None, None] if decay.ndim == 3 else decay[..., None, :]
    for t in range(q.shape[1]):
        kt = k[:, t].to(F64).repeat_interleave(group, dim=1)
        qt = q[:, t].to(F64).repeat_interleave(group, dim=1)
        ut = v[:, t].to(F64)
        if decay is not None:
            S.mul_(decay[:, t])
        if beta is not None:
            ut = beta[:, t].to(F64)[..., None] * (ut - _times(S, kt))
        elif erase is not None:
            ut = write[:, t].to(F64) * ut - _times(S, erase[:, t].to(F64) * kt)
        S.addcmul_(ut[..., :, None], kt[..., None, :])
        o[:, t] = scale * _times(S, qt)
        if every is not None and (t + 1) % every == 0:
            kept.append(S.clone())
    return o


def _times(S, x):
    return torch.matmul(S, x[..., None])[..., 0]


def rms(x):
    return x.to(F64).square().mean().sqrt().item() if x.numel() else 0.0


def ratio(x, r):
    assert x.shape == r.shape, f"cannot compare shapes {tuple(x.shape)} and {tuple(r.shape)}"
    scale = rms(r)
    error = rms(x.to(F64) - r.to(F64))
    return error / scale if scale else error


def block_ratio(x, r, block=16):
    """Largest ratio over blocks of 16 tokens of one head; see gdn.reference.block_ratio."""
    assert x.shape == r.shape, f"cannot compare shapes {tuple(x.shape)} and {tuple(r.shape)}"
    if not x.numel():
        return 0.0
    whole = rms(r)

    def block_rms(y):
        squares = y.to(F64).square().flatten(3).mean(dim=3)
        parts = [part.mean(dim=1) for part in squares.split(block, dim=1)]
        return torch.stack(parts, dim=1).sqrt()

    reference = block_rms(r)
    reference = torch.where(reference < 1e-3 * whole, torch.full_like(reference, whole), reference)
    error = block_rms(x.to(F64) - r.to(F64))
    return (error / reference if whole else error).max().item()


def check(name, x, r, kind, arithmetic, factor=1.0, block_factor=None, tokens=True):
    """Asserts that x is finite and within LIMITS[kind][arithmetic] of r; returns the ratios."""
    bad = x.numel() - int(torch.isfinite(x).sum())
    assert bad == 0, f"{name}: {bad} of {x.numel()} values are not finite"
    limit, block_limit = LIMITS[kind][arithmetic]
    whole = ratio(x, r)
    assert whole <= factor * limit, f"{name}: error {whole:.3e} is above {factor * limit:.1e} ({kind}, {arithmetic})"
    worst = 0.0
    if tokens and block_limit is not None:
        block_limit *= factor if block_factor is None else block_factor
        worst = block_ratio(x, r)
        assert worst <= block_limit, (
            f"{name}: error of a block {worst:.3e} is above {block_limit:.1e} ({kind}, {arithmetic})"
        )
    return whole, worst
