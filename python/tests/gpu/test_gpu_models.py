# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All seven models on the device against the token loop: chunks, tails, packing, layouts, types, decode."""

import pytest

from gpu_support import DEVICE, MODELS, Problem, check, expected, inputs, load, poison, run, same_bits, torch

DTYPES = ["bf16", "f16", "f32"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunk", [16, 32, 64])
@pytest.mark.parametrize("model", MODELS)
def test_chunks_and_tails(model, chunk, dtype):
    """K != V, Hv != Hqk, both layouts in turn; lengths 0, 1, ragged and whole chunks with one kernel."""
    layout = "k_first" if (chunk == 32) != (dtype == "f32") else "v_first"
    p = Problem(model, B=2, K=64, V=32, dtype=dtype, chunk=chunk, layout=layout)
    (kernel,) = load(p.text())
    for tokens in (0, 1, 75, 128):
        p = p.but(T=tokens)
        x = inputs(p)
        got = run(kernel, x)
        check(p, got, expected(p, x), f" at T {tokens}")
        if tokens == 0:
            assert same_bits(got[1], x["state"])


@pytest.mark.parametrize(("dtype", "offsets", "layout"), [("bf16", "i32", "v_first"), ("f32", "i64", "k_first")])
@pytest.mark.parametrize("model", MODELS)
def test_packed_sequences(model, dtype, offsets, layout):
    """Empty sequences first, in the middle and last; another packing with the same kernel."""
    packings = [(0, 0, 5, 5, 69, 69, 197, 198, 198), (0, 130), (0, 64, 128)]
    p = Problem(model, K=32, V=48, dtype=dtype, offsets=offsets, layout=layout, starts=packings[0])
    (kernel,) = load(p.text())
    for starts in packings:
        p = p.but(starts=starts, T=starts[-1])
        x = inputs(p)
        got = run(kernel, x)
        check(p, got, expected(p, x), f" of {starts}")
        for n, (a, b) in enumerate(zip(starts, starts[1:])):
            if a == b:
                assert same_bits(got[1][n], x["state"][n]), f"sequence {n} is empty, but its state changed"


@pytest.mark.parametrize("segments", [0, 100], ids=("whole", "cut"))
@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_types_of_offsets_give_the_same_bits(model, segments):
    """More sequences than a warp has lanes: they are looked for in several steps, by offsets of either width."""
    starts = (0, *(700 + sum(7 * j % 10 for j in range(i)) for i in range(41)), 1500)
    p = Problem(model, T=starts[-1], K=128, V=128, starts=starts, chunk=64, segments=segments)
    narrow, wide = load(p.text(), p.but(offsets="i64").text())
    x = inputs(p)
    got = run(narrow, x)
    check(p, got, expected(p, x))
    other = run(wide, dict(x, offsets=x["offsets"].long()))
    assert all(same_bits(a, b) for a, b in zip(got, other))


@pytest.mark.parametrize("tokens", [1, 3, 8])
@pytest.mark.parametrize("model", MODELS)
def test_steps(model, tokens):
    """A small static T: decode, in place."""
    layout = "k_first" if tokens == 3 else "v_first"
    p = Problem(model, B=5, T=tokens, K=64, V=128, layout=layout, static=True)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("model", MODELS)
def test_steps_of_other_types(model, dtype):
    p = Problem(model, B=3, T=1, K=32, V=48, dtype=dtype, static=True)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("model", MODELS)
def test_packed_steps(model):
    """Decode of a packed batch with an idle sequence."""
    p = Problem(model, T=4, starts=(0, 1, 2, 2, 4), static=True, phases="step", chunk=16)
    (kernel,) = load(p.text())
    x = inputs(p)
    got = run(kernel, x)
    check(p, got, expected(p, x))
    assert same_bits(got[1][2], x["state"][2])


@pytest.mark.parametrize("model", MODELS)
def test_default_schedule_of_static_sizes(model):
    p = Problem(model, B=2, T=200, K=128, V=128, Hqk=2, Hv=4, static=True)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("state_dtype", ["bf16", "f16"])
@pytest.mark.parametrize("tokens", [1, 100])
@pytest.mark.parametrize("model", ["gated_delta", "kda"])
def test_narrow_states(model, tokens, state_dtype):
    p = Problem(model, B=2, T=tokens, state_dtype=state_dtype, static=True)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("model", ["gated_delta", "kda", "gdn2"])
def test_gates_of_the_input_type(model, dtype):
    p = Problem(model, B=2, T=100, dtype=dtype, gate_dtype=dtype, beta_dtype=dtype)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("model", ["linear", "gated_delta"])
def test_scale(model):
    p = Problem(model, T=70, scale=0.3)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("model", MODELS)
def test_same_bits_again(model):
    p = Problem(model, B=2, T=150, K=128, V=128)
    (kernel,) = load(p.text())
    x = inputs(p)
    first = run(kernel, x)
    for _ in range(10):
        again = run(kernel, x)
        assert same_bits(first[0], again[0])
        assert same_bits(first[1], again[1])


def layer_inputs(p, gate):
    """Raw q and k, of which some tokens have none, and the projection of the gates; and what is made of them."""
    x = inputs(p)
    generator = torch.Generator().manual_seed(1)
    raw = {n: torch.randn(x[n].shape, generator=generator) for n in ("q", "k")}
    raw["q"][:, 3], raw["k"][:, 5] = 0, 0
    raw = {n: t.bfloat16().to(DEVICE) for n, t in raw.items()}
    tail = (p.K,) if gate == "channel" else ()
    a = torch.randn(1, p.T, p.Hv, *tail, generator=generator).to(DEVICE)
    A_log = torch.empty(p.Hv).uniform_(0.01, 16, generator=generator).log().to(DEVICE)
    dt_bias = torch.ones(p.Hv, *tail).to(DEVICE)
    made = dict(x)
    for name in ("q", "k"):
        wide = raw[name].double()
        made[name] = wide / (wide.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    rate = A_log.double().exp().reshape(-1, *(1 for _ in tail))
    shifted = a.double() + dt_bias.double()
    if gate == "channel":
        made["gate"] = -3 * torch.sigmoid(rate * shifted)
    else:
        made["gate"] = -rate * torch.nn.functional.softplus(shifted, threshold=1e9)
    del x["gate"]
    return dict(x, **raw, a=a, A_log=A_log, dt_bias=dt_bias), made


def test_the_example():
    """Qwen3.5-35B-A3B at T 8192, from the model's projections."""
    from gdn import build

    (kernel,) = load(build.delta_rule_layer(1, 8192, 16, 32, 128, 128))
    p = Problem(T=8192, Hqk=16, Hv=32, K=128, V=128)
    x, made = layer_inputs(p, "head")
    check(p, run(kernel, x), expected(p, made))


RAW = {
    "usual": (dict(Hqk=2, Hv=8), "head", None),
    "segments": (dict(Hqk=2, Hv=4), "head", dict(phases="segmented", value_block=64, stages=3, segments=8)),
    "blocks of 128 rows": (dict(Hqk=2, Hv=4), "head", dict(phases="split", value_block=128, stages=3)),
    "P beside the scan": (
        dict(Hqk=4, Hv=4),
        "head",
        dict(phases="split", value_block=128, stages=3, scores_ahead=True),
    ),
    "P beside the scan, usual blocks": (
        dict(Hqk=4, Hv=4),
        "head",
        dict(phases="split", value_block=64, stages=3, wide_from=133, scores_ahead=True),
    ),
    "five heads of a key head": (dict(Hqk=1, Hv=5), "head", None),
    "gates per channel": (dict(Hqk=4, Hv=4), "channel", None),
}


@pytest.mark.parametrize("name", RAW)
def test_raw_inputs(name):
    """Packed sequences, K != V, and no launch in front of those of the recurrence but for gates per channel."""
    from gdn import build

    heads, gate, schedule = RAW[name]
    starts = (0, 0, 1, 66, 600, 1350)
    p = Problem(
        "kda" if gate == "channel" else "gated_delta", T=1350, K=64, V=128, starts=starts, offsets="i32", **heads
    )
    text = build.delta_rule_layer(
        1, None, p.Hqk, p.Hv, p.K, p.V,
        gate=gate,
        lower_bound=-3.0 if gate == "channel" else None,
        offsets="i32",
        schedule=build.schedule(**schedule) if schedule else None,
    )  # fmt: skip
    (kernel,) = load(text)
    x, made = layer_inputs(p, gate)
    check(p, run(kernel, x), expected(p, made), f" of {name}")


def test_state_that_starts_at_zero_in_the_function():
    p = Problem("gated_delta", T=75, static=True)
    lines = p.text().splitlines()
    state_type = f"tensor<1x{p.Hv}x{p.V}x{p.K}xf32>"
    # The destination is a constant of the function; its argument is left unused.
    body = next(i for i, line in enumerate(lines) if "gdn.recurrence" in line)
    lines.insert(body, f"    %zero = arith.constant dense<0.0> : {state_type}")
    lines[body + 1] = lines[body + 1].replace("outs(%o, %state", "outs(%o, %zero")
    (kernel,) = load("\n".join(lines))
    x = inputs(p)
    o, state = kernel(**x, o=poison(x["v"].shape, p.dtype))
    check(
        p,
        (torch.as_tensor(o, device=DEVICE), torch.as_tensor(state, device=DEVICE)),
        expected(p, dict(x, state=torch.zeros_like(x["state"]))),
    )


@pytest.mark.parametrize("model", MODELS)
def test_two_warpgroups(model):
    """Blocks of 128 rows of the state: tails, packed sequences, pools, the bits of blocks of 64 rows."""
    base = Problem(model, K=128, V=128, value_block=128, stages=2, chunk=32 if model == "gdn2" else 64)
    dense = base.but(B=3, T=333, V=200, layout="k_first")
    starts = (0, 0, 130, 131, 131, 387, 500, 500)
    packed = base.but(T=500, starts=starts, slots=(5, 2, -1, 0, 3, 7, 1), pool=9)
    *wide, narrow = load(dense.text(), packed.text(), dense.but(value_block=64).text())
    for p, kernel in zip((dense, packed), wide):
        x = inputs(p)
        got = run(kernel, x)
        check(p, got, expected(p, x))
        if p == dense:
            assert all(same_bits(a, b) for a, b in zip(got, run(narrow, x)))


def check_beside_the_scan(base, split, hard):
    """Tails, packed sequences, pools, split rows; the bits of the schedule with the changes `split`."""
    dense = base.but(B=3, T=333, V=200, layout="k_first")
    starts = (0, 0, 130, 131, 131, 387, 500, 500)
    packed = base.but(T=500, starts=starts, slots=(5, 2, -1, 0, 3, 7, 1), pool=9)
    *kernels, other = load(dense.text(), packed.text(), dense.but(**split).text())
    for p, kernel in zip((dense, packed), kernels):
        x = inputs(p)
        if hard:
            x["k"][:, 40:200] = x["k"][:, 40:41]
        got = run(kernel, x)
        if not hard:
            check(p, got, expected(p, x))
        if p == dense:
            assert all(same_bits(a, b) for a, b in zip(got, run(other, x)))


@pytest.mark.parametrize("hard", (False, True))
@pytest.mark.parametrize("model", ("linear", "ssd", "delta", "gated_delta"))
def test_one_kernel(model, hard):
    """T and P made beside the scan."""
    base = Problem(model, K=128, V=128, stages=3, chunk=64, value_block=64, phases="fused")
    check_beside_the_scan(base, dict(phases="split"), hard)


@pytest.mark.parametrize("hard", (False, True))
@pytest.mark.parametrize("Hqk", (2, 4))
@pytest.mark.parametrize("model", ("delta", "gated_delta"))
def test_scores_beside_the_scan(model, Hqk, hard):
    """P made by a warpgroup of the scan; with four key heads T of two of them in a block."""
    base = Problem(model, Hqk=Hqk, K=128, V=128, stages=3, chunk=64, value_block=128, scores_ahead=True)
    check_beside_the_scan(base, dict(value_block=64, scores_ahead=False), hard)


@pytest.mark.parametrize("K", (64, 128))
@pytest.mark.parametrize("model", ("delta", "gated_delta"))
def test_blocks_that_stay(model, K):
    """T of long sequences has the bits of the other kernel, whichever has run before, with several chunks of heads
    for each block, empty sequences, and second parts."""
    starts = (0, 0, 1, 4000, 4000, 8010, 12500, 12500)
    p = Problem(model, Hqk=4, Hv=4, T=starts[-1], K=K, V=128, starts=starts)
    p = p.but(stages=3, chunk=64, value_block=128, scores_ahead=True)
    stays, usual = load(p.but(resident_from=1).text(), p.text())
    x = inputs(p)
    x["k"][:, 100:140] = x["k"][:, 100:101]
    want = expected(p, x)
    for _ in range(3):
        got, other = run(stays, x), run(usual, x)
        check(p, got, want)
        assert all(same_bits(a, b) for a, b in zip(got, other))


@pytest.mark.parametrize("starts", ((0, 128, 256), (0, 3, 255), None), ids=("mean of two", "less", "dense"))
def test_mean_length_decides(starts):
    """Two kernels in one set: of two chunks in the mean, of less, and of dense sequences."""
    B, T = (1, starts[-1]) if starts else (3, 128)
    p = Problem("gated_delta", Hqk=4, Hv=4, B=B, T=T, K=128, V=128, starts=starts)
    p = p.but(stages=3, chunk=64, value_block=128, scores_ahead=True, resident_from=2)
    (kernel,) = load(p.text())
    x = inputs(p)
    check(p, run(kernel, x), expected(p, x))


@pytest.mark.parametrize("scores_ahead", (False, True))
def test_number_of_sequences_decides(scores_ahead):
    """One kernel set, blocks of 128 rows from nine blocks of 64 on: the same bits for one sequence and for two."""
    p = Problem("gated_delta", B=2, T=200, K=128, V=128, chunk=64, wide_from=9, scores_ahead=scores_ahead)
    (kernel,) = load(p.text())
    x = inputs(p)
    got = run(kernel, x)
    check(p, got, expected(p, x))
    for n in range(2):
        one = run(kernel, {name: value[n : n + 1].contiguous() for name, value in x.items()})
        assert same_bits(one[0][0], got[0][n]) and same_bits(one[1][0], got[1][n])
