# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mixers of gdn.nn on the device: against the same mixer on the CPU, packed, padded, in few launches."""

import copy

import pytest

import gdn
from gpu_support import COMPILE_ONLY, DEVICE, Lazy

pytestmark = pytest.mark.skipif(bool(COMPILE_ONLY), reason="these tests call the compiler where they run")
torch, nn, F, oracle = Lazy("torch"), Lazy("gdn.nn"), Lazy("torch.nn.functional"), Lazy("oracle_torch")

HIDDEN = 256
MIXERS = {
    "gated_delta_net": lambda **where: nn.GatedDeltaNet(HIDDEN, 2, 64, num_v_heads=4, **where),
    "kimi": lambda **where: nn.KimiDeltaAttention(HIDDEN, 2, 64, **where),
    "bounded": lambda **where: nn.KimiDeltaAttention(HIDDEN, 2, 64, num_v_heads=4, lower_bound=-5.0, **where),
    "delta_net": lambda **where: nn.DeltaNet(HIDDEN, 4, use_gate=True, **where),
    "mamba2": lambda **where: nn.Mamba2Mixer(HIDDEN, state_size=64, head_dim=64, **where),
}
# Of the norm of y: bfloat16 outputs and weights, and float32 by TF32 products.
LIMITS = {"bfloat16": 8e-3, "float32": 2e-3}


@pytest.fixture(params=MIXERS)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def exact_products():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def make(name, dtype="float32"):
    torch.manual_seed(3)
    return MIXERS[name]().requires_grad_(False).to(getattr(torch, dtype)).to(DEVICE)


def distance(mine, other):
    mine, other = mine.double().cpu(), other.double().cpu()
    return ((mine - other).norm() / other.norm()).item()


def test_equals_the_cpu(name):
    """Prefill, a piece, steps, and a verify of which rows keep different numbers of tokens."""
    mixer = make(name)
    twin = copy.deepcopy(mixer).cpu()
    x, counts = torch.randn(2, 150, HIDDEN, device=DEVICE), torch.tensor([1, 3])
    results = []
    for m, place in ((mixer, DEVICE), (twin, "cpu")):
        cache, y = m.new_cache(2), x.to(place)
        parts = [m(y[:, a:b], cache) for a, b in ((0, 100), (100, 140), (140, 141), (141, 142))]
        parts.append(m.verify(y[:, 142:146], cache))
        cache.accept(counts.to(place))
        parts.append(m(y[:, 146:147], cache))
        results.append((torch.cat(parts, dim=1), cache.recurrent))
    for mine, other in zip(*results):
        assert distance(mine, other) <= LIMITS["float32"]


@pytest.mark.parametrize("dtype", LIMITS)
def test_d10_packed_documents(name, dtype):
    mixer = make(name, dtype)
    starts = [0, 37, 88, 128]
    x = torch.randn(1, starts[-1], HIDDEN, device=DEVICE, dtype=getattr(torch, dtype))
    packed = mixer(x, cu_seqlens=torch.tensor(starts, device=DEVICE))
    alone = torch.cat([mixer(x[:, a:b]) for a, b in zip(starts, starts[1:])], dim=1)
    assert distance(packed, alone) <= LIMITS[dtype]


@pytest.mark.parametrize("batch", [1, 3])
def test_d23_padding(name, batch):
    """Five tokens of padding on the left, three in a hole: outputs and states as without them."""
    mixer = make(name, "bfloat16")
    x = torch.randn(batch, 68, HIDDEN, device=DEVICE, dtype=torch.bfloat16)
    mask = torch.ones(batch, 68, device=DEVICE, dtype=torch.long)
    mask[:, :5], mask[:, 40:43] = 0, 0
    valid = mask[0].bool()
    plain, padded = mixer.new_cache(batch), mixer.new_cache(batch)
    want = mixer(x[:, valid], plain)
    torch.cuda.set_sync_debug_mode("error")
    try:
        got = mixer(x, padded, attention_mask=mask)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert distance(got[:, valid], want) <= LIMITS["bfloat16"] and not got[:, ~valid].any()
    assert distance(padded.recurrent, plain.recurrent) <= LIMITS["bfloat16"]
    for mine, other in zip(padded.conv, plain.conv):
        assert torch.equal(mine, other)


def launches(call):
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    return [event.key for event in profiled.key_averages() for _ in range(event.count) if "forward" in event.key]


def test_a_step_is_three_launches():
    # Made in bfloat16 it keeps A_log and dt_bias in float32; cast to it, it takes two kernels more.
    mixer = MIXERS["gated_delta_net"](dtype=torch.bfloat16, device=DEVICE).requires_grad_(False)
    cache = mixer.new_cache(8)
    x = torch.randn(8, 1, HIDDEN, device=DEVICE, dtype=torch.bfloat16)
    assert len(launches(lambda: mixer(x, cache))) == 3


def gates(kind):
    """Log gates [1, 130, 4, 128] with a bound of -5 that is reached everywhere, by half of the channels or in turn."""
    g = torch.full((1, 130, 4, 128), -5.0, device=DEVICE)
    if kind == "half":
        g[..., ::2] = -1e-3
    elif kind == "in turn":
        g[:, ::2] = -1e-3
    elif kind == "unbounded":
        g[:] = -20
    return g


@pytest.mark.parametrize("kind", ["all", "half", "in turn", "unbounded"])
def test_d20_bounded_gates(kind):
    g = gates(kind)
    q, k, v = (torch.randn(1, 130, 4, 128, device=DEVICE) for _ in range(3))
    q, k = (F.normalize(x, dim=-1).bfloat16() for x in (q, k))
    v, beta = v.bfloat16(), torch.rand(1, 130, 4, device=DEVICE)
    h0 = torch.randn(1, 4, 128, 128, device=DEVICE)
    o, state = gdn.chunk_kda(q, k, v, g, beta, initial_state=h0, output_final_state=True)
    want, want_state = oracle.recurrence(q, k, v, gate=g, beta=beta, state=h0, state_layout="k_first")
    oracle.check("o", o, want, "o", "bf16")
    oracle.check("state", state, want_state, "state", "bf16", tokens=False)
