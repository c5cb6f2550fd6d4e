# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a token mixer on the device against gdn.reference: values, tails, packing, states, zero rows."""

import numpy as np
import pytest

from gdn import build
from gdn import reference as ref
from gpu_support import DEVICE, load, poison, same_bits, torch, torch_type

# One rounding of the result, and float32 arithmetic before it.
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 4e-6}


def draw(shape, dtype="f32", seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(torch_type(dtype)).to(DEVICE)


def host(x):
    return x.double().cpu().numpy()


def close(got, want, dtype, scale=None):
    """Every value within one rounding of the reference, relative to it or to `scale`."""
    got = host(got)
    assert np.isfinite(got).all()
    bound = ROUNDING[dtype] * np.maximum(np.abs(want), 1e-3 if scale is None else scale)
    worst = np.max(np.abs(got - want) / bound) if got.size else 0
    assert worst <= 1.01, f"{worst:.2f} roundings off"


def launch(kernel, *arguments):
    kernel(*arguments)
    torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("size", [16, 100, 128, 256])
def test_l2norm(size, dtype):
    (kernel,) = load(build.l2norm((None, None, 3, size), dtype=dtype))
    for rows in ((2, 75), (1, 1), (1, 0)):
        x = draw((*rows, 3, size), dtype)
        y = poison(x.shape, dtype)
        launch(kernel, x, y)
        close(y, ref.l2norm(host(x)), dtype)


def test_d22_l2norm_of_zero_and_large_rows():
    (kernel,) = load(build.l2norm((1, 70, 2, 64), dtype="bf16"))
    x = draw((1, 70, 2, 64), "bf16")
    x[:, 3] = 0
    x[:, 64] = 1e4
    y = poison(x.shape, "bf16")
    launch(kernel, x, y)
    assert not y[:, 3].any()
    close(y, ref.l2norm(host(x)), "bf16")


@pytest.mark.parametrize("lower_bound", [None, -5.0])
@pytest.mark.parametrize("channels", [None, 48])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_gate(dtype, channels, lower_bound):
    tail = () if channels is None else (channels,)
    (kernel,) = load(build.gate(None, None, 4, channels, dtype=dtype, lower_bound=lower_bound))
    a, bias = draw((2, 33, 4, *tail), dtype), draw((4, *tail), seed=1)
    rate = draw((4,), seed=2)
    g = poison(a.shape, "f32")
    launch(kernel, a, rate, bias, g)
    close(g, ref.gate(host(a), host(rate), host(bias), lower_bound), "f32", scale=1e-30)


@pytest.mark.parametrize("activation", ["silu", "sigmoid", "none"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_gated_rms_norm(dtype, activation):
    (kernel,) = load(build.gated_rms_norm((None, None, 4, 128), dtype=dtype, weight_dtype="f32", activation=activation))
    x, z, w = draw((2, 37, 4, 128), dtype), draw((2, 37, 4, 128), dtype, 1), draw((128,), seed=2)
    y = poison(x.shape, dtype)
    launch(kernel, x, z, w, y)
    close(y, ref.gated_rms_norm(host(x), host(z), host(w), act=activation), dtype)


@pytest.mark.parametrize("channels", [100, 8192])
@pytest.mark.parametrize("kept", [3, 4])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_d24_short_conv(dtype, kept, channels):
    """Lengths below and above the width; the new state is the last inputs, bit for bit."""
    (kernel,) = load(build.short_conv(None, None, channels, 4, S=kept, dtype=dtype, bias=True))
    w, bias = draw((channels, 4), dtype, 1), draw((channels,), dtype, 2)
    for tokens in (0, 1, 2, 3, 4, 5, 70):
        x, state = draw((2, tokens, channels), dtype), draw((2, channels, kept), dtype, 3)
        want, final = ref.short_conv(host(x), host(w), host(bias), state=host(state), act="silu")
        y = poison(x.shape, dtype)
        launch(kernel, x, w, bias, y, state)
        close(y, want, dtype, scale=0.1)
        assert np.array_equal(host(state), final)


@pytest.mark.parametrize("size", [64, 128])
def test_d24_short_conv_normalises_heads(size):
    """q and k in heads of rows that hold v too; lengths below and above the width; zero rows."""
    channels, row = 6 * size + 40, 6 * size + 64
    kernel, step = load(
        build.short_conv(None, None, channels, 4, row=row, norm=(4, size)),
        build.short_conv(None, 1, channels, 4, row=row, norm=(4, size)),
    )
    w = draw((channels, 4), "bf16", 1)
    for tokens in (1, 3, 4, 70):
        x, state = draw((2, tokens, row), "bf16"), draw((2, channels, 3), "bf16", 3)
        x[1, :, :size], state[1, :size] = 0, 0
        want, final = ref.short_conv(host(x)[..., :channels], host(w), None, state=host(state), act="silu")
        heads = want[..., : 4 * size].reshape(2, tokens, 4, size)
        want[..., : 4 * size] = ref.l2norm(heads).reshape(2, tokens, 4 * size)
        for one in (kernel, step) if tokens == 1 else (kernel,):
            y, after = poison((2, tokens, channels), "bf16"), state.clone()
            launch(one, x, w, y, after)
            close(y, want, "bf16", scale=0.1)
            assert np.array_equal(host(after), final) and not y[1, :, :size].any()


def test_d24_short_conv_of_packed_sequences():
    offsets = (0, 0, 2, 2, 39, 40, 90, 90)
    (kernel,) = load(build.short_conv(1, None, 64, 4, dtype="bf16", offsets="i32", activation="silu"))
    x, w, state = draw((1, 90, 64), "bf16"), draw((64, 4), "bf16", 1), draw((7, 64, 3), "bf16", 2)
    before = state.clone()
    want, final = ref.short_conv(host(x), host(w), offsets=offsets, state=host(state), act="silu")
    y = poison(x.shape, "bf16")
    launch(kernel, x, w, torch.tensor(offsets, dtype=torch.int32, device=DEVICE), y, state)
    close(y, want, "bf16", scale=0.1)
    assert np.array_equal(host(state), final)
    assert same_bits(state[0], before[0])


def test_short_conv_step_by_step():
    prefill, step = load(
        build.short_conv(2, 9, 96, 4, dtype="bf16"),
        build.short_conv(2, 1, 96, 4, dtype="bf16"),
    )
    x, w, state = draw((2, 9, 96), "bf16"), draw((96, 4), "bf16", 1), draw((2, 96, 3), "bf16", 2)
    running = state.clone()
    y = poison(x.shape, "bf16")
    launch(prefill, x, w, y, state)
    for t in range(9):
        one = poison((2, 1, 96), "bf16")
        launch(step, x[:, t : t + 1].contiguous(), w, one, running)
        assert same_bits(one, y[:, t : t + 1])
    assert same_bits(running, state)
