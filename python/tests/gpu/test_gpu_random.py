# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random recurrences on the device against the float64 oracle.

Models, element types, head counts and sizes, layouts, schedules, pools of states, gates and betas are
drawn with a fixed seed, and for each set of kernels several batches: combinations that nobody thought of.
$GDN_RANDOM_SEED and $GDN_RANDOM_CASES draw others; a failure prints the case.
"""

import os
import random

import pytest

from gpu_support import MODELS, Problem, check, expected, inputs, load, poison, run, same_bits, torch

SEED = int(os.environ.get("GDN_RANDOM_SEED", "1"))
CASES = int(os.environ.get("GDN_RANDOM_CASES", "24"))
BATCHES = 5
LONGEST = 2500


def draw_kernels(rng):
    """A problem without sizes of a batch: one set of kernels."""
    dtype = rng.choice(("bf16", "bf16", "bf16", "f16", "f32"))
    Hqk = rng.choice((1, 2, 4, 16))
    p = Problem(
        model=rng.choice((*MODELS, "gated_delta", "gated_delta")),
        dtype=dtype,
        Hqk=Hqk,
        Hv=Hqk * rng.choice((1, 1, 2, 3, 4)),
        K=rng.choice((16, 40, 64, 96, 100, 128, 128, 128, 256)),
        V=rng.choice((16, 24, 64, 100, 128, 128, 128, 192)),
        layout=rng.choice(("v_first", "v_first", "k_first")),
        state_dtype=rng.choice(("f32", "f32", dtype)),
        gate_dtype=rng.choice(("f32", "f32", dtype)),
        beta_dtype=rng.choice(("f32", "f32", dtype)),
        offsets=rng.choice(("i32", "i64")),
        scale=rng.choice((None, None, 1.0, -0.37)),
    )
    if dtype != "f32" and rng.random() < 0.2:
        return p.but(precision="high", out_dtype=rng.choice((None, "f32")))
    if dtype != "f32" and p.K <= 128 and rng.random() < 0.3:
        segments, least = rng.choice((2, 3, 1000)), rng.choice((1, 2, 5))
        return p.but(chunk=64, segments=segments, segment_chunks=least)
    return p


def draw_batch(rng, p, packed, pooled):
    """Sizes for these kernels: ragged, packed ones with empty sequences, few long and many short ones."""
    longest = rng.choice((1, 17, 64, 65, 200, LONGEST))
    if not packed:
        p = p.but(B=rng.choice((1, 1, 2, 5)), T=rng.randint(1, longest), starts=None)
    else:
        lengths = [rng.choice((0, 1, rng.randint(0, longest), 64 * (longest // 64))) for _ in range(rng.randint(1, 9))]
        lengths[rng.randrange(len(lengths))] += 1
        starts = tuple(sum(lengths[:n]) for n in range(len(lengths) + 1))
        p = p.but(T=starts[-1], starts=starts)
    if not pooled:
        return p
    pool = p.sequences + rng.randint(0, 3)
    return p.but(pool=pool, slots=tuple(rng.sample(range(pool), p.sequences)))


def draw_inputs(rng, p, seed):
    """Gates from 0 to -80, some resets, sometimes hardly any decay; betas up to 1 or 2."""
    x = inputs(p, seed)
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def uniform(like, low, high):
        return torch.empty(like.shape, device=like.device).uniform_(low, high, generator=generator)

    if "gate" in x:
        gate = -torch.exp(uniform(x["gate"], -6, rng.choice((-4, 1))))
        gate[uniform(gate, 0, 1) < rng.choice((0, 0, 0.03))] = -80.0
        x["gate"] = gate.to(x["gate"].dtype)
    # Keys of few channels are nearly parallel; with betas above 1 little would be left of any digit.
    highest = rng.choice((1, 1, 2)) if p.K >= 64 else 1
    if "beta" in x:
        x["beta"] = uniform(x["beta"], 0, highest).to(x["beta"].dtype)
    return x, 2.0 if highest > 1 else 1.0


@pytest.mark.parametrize("case", range(CASES))
def test_random(case):
    rng = random.Random(SEED * 1000 + case)
    p = draw_kernels(rng)
    packed, pooled = rng.random() < 0.5, rng.random() < 0.25
    batches = [draw_batch(rng, p, packed, pooled) for _ in range(BATCHES)]
    (kernel,) = load(batches[0].text())
    for number, batch in enumerate(batches):
        x, factor = draw_inputs(rng, batch, number)
        shape = tuple(x["v"].shape)
        outputs = [poison(shape, batch.out_dtype or batch.dtype) for _ in range(2)]
        first, again = (run(kernel, x, o=o) for o in outputs)
        print(batch, factor)
        check(batch, first, expected(batch, x), factor=factor)
        assert all(same_bits(a, b) for a, b in zip(first, again))
