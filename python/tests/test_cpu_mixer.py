# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""l2norm, gate, short_conv and gated_rms_norm on the host, by each path of gdn-to-cpu."""

import functools

import numpy as np
import pytest

from cpu_support import host_library, merge, read, store
from gdn import build, reference

PATHS = ("loops", "linalg", "tile")

# name -> (builder text, results)
TEXTS = {
    "l2norm": (build.l2norm((2, None, 3, 24), dtype="bf16", name="l2norm"), 1),
    "l2norm_row": (build.l2norm((100,), dtype="f32", name="l2norm_row"), 1),
    "rms": (build.gated_rms_norm((2, 9, 20), dtype="bf16", weight_dtype="f32", name="rms"), 1),
    "rms_sigmoid": (build.gated_rms_norm((None, 64), dtype="f32", activation="sigmoid", name="rms_sigmoid"), 1),
    "gate": (build.gate(2, None, 6, dtype="f32", name="gate"), 1),
    "gate_bf16": (build.gate(1, 7, 5, dtype="bf16", bias=False, name="gate_bf16"), 1),
    "gate_channel": (build.gate(1, 5, 3, 20, lower_bound=-5.0, name="gate_channel"), 1),
    "conv": (build.short_conv(2, None, 20, 4, S=4, dtype="bf16", name="conv"), 2),
    "conv_f32": (build.short_conv(1, 40, 130, 3, dtype="f32", bias=True, activation="none", name="conv_f32"), 2),
    "conv_norm": (build.short_conv(2, None, 150, 4, dtype="bf16", row=160, norm=(3, 32), name="conv_norm"), 2),
    "conv_packed": (build.short_conv(1, None, 20, 4, N=5, dtype="f32", offsets="i32", name="conv_packed"), 2),
}


@functools.cache
def library(path):
    return host_library(merge([text for text, _ in TEXTS.values()]), path)


def call(path, name, arrays):
    library(path)(name, arrays, TEXTS[name][1])


def empty(shape, dtype):
    return store(np.full(shape, np.nan), dtype)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("path", PATHS)
def test_l2norm(path, rng):
    x = store(rng.standard_normal((2, 37, 3, 24)), "bf16")
    x[0, 5] = 0
    y = empty(x.shape, "bf16")
    call(path, "l2norm", [x, y])
    want = reference.l2norm(read(x, "bf16"))
    np.testing.assert_allclose(read(y, "bf16"), want, rtol=2**-8, atol=1e-30)
    assert not read(y, "bf16")[0, 5].any()
    row = store(rng.standard_normal(100), "f32")
    y = empty(row.shape, "f32")
    call(path, "l2norm_row", [row, y])
    np.testing.assert_allclose(y, reference.l2norm(row), rtol=1e-6)


@pytest.mark.parametrize("path", PATHS)
def test_gated_rms_norm(path, rng):
    x, z = (store(3 * rng.standard_normal((2, 9, 20)), "bf16") for _ in range(2))
    w = store(rng.standard_normal(20), "f32")
    y = empty(x.shape, "bf16")
    call(path, "rms", [x, z, w, y])
    want = reference.gated_rms_norm(read(x, "bf16"), read(z, "bf16"), w)
    np.testing.assert_allclose(read(y, "bf16"), want, rtol=2**-8, atol=1e-6)
    x = store(rng.standard_normal((33, 64)), "f32")
    # Gates far out: exp overflows, the result does not.
    z = store(np.concatenate([np.full(32, -200.0), np.full(32, 200.0)]) * np.ones((33, 1)), "f32")
    w = store(rng.standard_normal(64), "f32")
    y = empty(x.shape, "f32")
    call(path, "rms_sigmoid", [x, z, w, y])
    np.testing.assert_allclose(y, reference.gated_rms_norm(x, z, w, act="sigmoid"), rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("path", PATHS)
def test_gate_at_the_edges(path, rng):
    a = store(rng.standard_normal((2, 29, 6)) * 4, "f32")
    a[0, :6] = np.array([-100, -20, 0, 20, 20.001, 100], np.float32)[:, None]
    A_log = store([-np.inf, -20, 0, np.log(16.0), 1, 2], "f32")
    bias = store([0, 0, 0, 0, 1, -1], "f32")
    g = empty(a.shape, "f32")
    call(path, "gate", [a, A_log, bias, g])
    want = reference.gate(a, A_log, bias)
    np.testing.assert_allclose(g, want, rtol=1e-6, atol=1e-37)
    assert not g[..., 0].any()
    a = store(rng.standard_normal((1, 7, 5)), "bf16")
    A_log = store(rng.standard_normal(5), "f32")
    g = empty(a.shape, "f32")
    call(path, "gate_bf16", [a, A_log, g])
    np.testing.assert_allclose(g, reference.gate(read(a, "bf16"), A_log), rtol=1e-6)


@pytest.mark.parametrize("path", PATHS)
def test_bounded_gate(path, rng):
    a = store(rng.standard_normal((1, 5, 3, 20)) * 10, "f32")
    A_log = store([-20, 0, 3], "f32")
    bias = store(rng.standard_normal((3, 20)), "f32")
    g = empty(a.shape, "f32")
    call(path, "gate_channel", [a, A_log, bias, g])
    want = reference.gate(a, A_log, bias, lower_bound=-5.0)
    # The argument of the sigmoid reaches 600: its rounding is relative to that.
    np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("tokens", (0, 1, 2, 3, 4, 5, 37))
def test_short_conv(path, tokens, rng):
    x = store(rng.standard_normal((2, tokens, 20)), "bf16")
    w = store(rng.standard_normal((20, 4)), "bf16")
    state = store(rng.standard_normal((2, 20, 4)), "bf16")
    want, final = reference.short_conv(
        read(x, "bf16"), read(w, "bf16"), state=read(state, "bf16"), act="silu"
    )
    y = empty(x.shape, "bf16")
    call(path, "conv", [x, w, y, state])
    np.testing.assert_allclose(read(y, "bf16"), want, rtol=2**-8, atol=2e-6)
    np.testing.assert_array_equal(read(state, "bf16"), final)


@pytest.mark.parametrize("path", PATHS)
def test_short_conv_with_bias(path, rng):
    x = store(rng.standard_normal((1, 40, 130)), "f32")
    w, bias = store(rng.standard_normal((130, 3)), "f32"), store(rng.standard_normal(130), "f32")
    state = store(rng.standard_normal((1, 130, 2)), "f32")
    want, final = reference.short_conv(x, w, bias, state=state)
    y = empty(x.shape, "f32")
    call(path, "conv_f32", [x, w, bias, y, state])
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state, final)


@pytest.mark.parametrize("path", PATHS)
def test_short_conv_of_packed_sequences(path, rng):
    offsets = (0, 0, 2, 20, 21, 38)
    x = store(rng.standard_normal((1, 38, 20)), "f32")
    w = store(rng.standard_normal((20, 4)), "f32")
    state = store(rng.standard_normal((5, 20, 3)), "f32")
    want, final = reference.short_conv(x, w, offsets=offsets, state=state, act="silu")
    y = empty(x.shape, "f32")
    call(path, "conv_packed", [x, w, store(offsets, "i32"), y, state])
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state, final)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("tokens", (1, 3, 4, 37))
def test_short_conv_normalises_heads(path, tokens, rng):
    x = store(rng.standard_normal((2, tokens, 160)), "bf16")
    x[0, :, :32] = 0
    w = store(rng.standard_normal((150, 4)), "bf16")
    state = store(rng.standard_normal((2, 150, 3)), "bf16")
    state[0, :32] = 0
    want, final = reference.short_conv(
        read(x, "bf16")[..., :150], read(w, "bf16"), state=read(state, "bf16"), act="silu"
    )
    heads = want[..., :96].reshape(2, tokens, 3, 32)
    want[..., :96] = reference.l2norm(heads).reshape(2, tokens, 96)
    y = empty((2, tokens, 150), "bf16")
    call(path, "conv_norm", [x, w, y, state])
    np.testing.assert_allclose(read(y, "bf16"), want, rtol=2**-6, atol=1e-5)
    np.testing.assert_array_equal(read(state, "bf16"), final)
    assert not read(y, "bf16")[0, :, :32].any()
