# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of gdn on CUDA tensors: values, destinations, views, streams, graphs, tracing, overhead.

The kernels themselves are tested in test_gpu_cases.py; a test's name starts with the case's it belongs to.
"""

import threading

import pytest

import gdn
from gdn import reference as ref
from gpu_support import COMPILE_ONLY, DEVICE, Lazy

pytestmark = pytest.mark.skipif(bool(COMPILE_ONLY), reason="these tests call the compiler where they run")
torch, F, oracle = Lazy("torch"), Lazy("torch.nn.functional"), Lazy("oracle_torch")

H, HV, K, V = 2, 4, 64, 128


class Inputs:
    def __init__(self, tokens=130, batch=2, dtype=None, starts=None, heads=H, value_heads=HV, sizes=(K, V), seed=0):
        self.generator = torch.Generator(device=DEVICE).manual_seed(seed)
        self.dtype = dtype or torch.bfloat16
        self.batch, self.tokens = (1 if starts else batch), tokens
        self.heads, self.value_heads, (self.K, self.V) = heads, value_heads, sizes
        self.N = len(starts) - 1 if starts else self.batch
        self.q = F.normalize(self.normal(heads, self.K), dim=-1).to(self.dtype)
        self.k = F.normalize(self.normal(heads, self.K), dim=-1).to(self.dtype)
        self.v = self.normal(value_heads, self.V).to(self.dtype)
        self.g, self.beta = -self.uniform(value_heads), self.uniform(value_heads)
        self.cu = None if starts is None else torch.tensor(starts, device=DEVICE)
        self.state = torch.randn(self.N, value_heads, self.K, self.V, device=DEVICE, generator=self.generator)

    def normal(self, *tail):
        return torch.randn(self.batch, self.tokens, *tail, device=DEVICE, generator=self.generator)

    def uniform(self, *tail):
        return torch.rand(self.batch, self.tokens, *tail, device=DEVICE, generator=self.generator)

    @property
    def five(self):
        return self.q, self.k, self.v, self.g, self.beta

    def expected(self, q=None, k=None, state=None, **options):
        options.setdefault("state_layout", "k_first")
        q, k = (self.q if q is None else q), (self.k if k is None else k)
        return oracle.recurrence(q, k, self.v, offsets=self.cu, state=state, **options)


def names(dtype):
    return {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "tf32"}[dtype]


def check(name, got, want, dtype):
    (o, state), (want_o, want_state) = got, want
    oracle.check(f"{name}: o", o, want_o, "o", names(dtype))
    oracle.check(f"{name}: state", state, want_state, "state", names(dtype), tokens=False)


PROBLEMS = {
    "chunks": {"tokens": 130},
    "step": {"tokens": 1, "batch": 5},
    "verify": {"tokens": 4, "batch": 3},
    "packed": {"tokens": 201, "starts": [0, 0, 7, 71, 200, 201]},
    "packed steps": {"tokens": 9, "starts": [0, 1, 2, 2, 5, 6, 9]},
}


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_all_functions(problem, dtype):
    dtype = getattr(torch, dtype)
    x = Inputs(dtype=dtype, **problem)
    options = {"initial_state": x.state, "output_final_state": True, "cu_seqlens": x.cu}
    five, state = x.five, x.state
    gk, b, w = -x.uniform(HV, K), x.uniform(HV, K), x.uniform(HV, V)
    want = x.expected(gate=x.g, beta=x.beta, state=state)
    check("gated", gdn.chunk_gated_delta_rule(*five, **options), want, dtype)
    check("gated steps", gdn.fused_recurrent_gated_delta_rule(*five[:4], beta=x.beta, **options), want, dtype)
    want = x.expected(beta=x.beta, state=state)
    check("delta", gdn.chunk_delta_rule(*five[:3], x.beta, **options), want, dtype)
    check("delta steps", gdn.fused_recurrent_delta_rule(*five[:3], x.beta, **options), want, dtype)
    want = x.expected(gate=gk, beta=x.beta, state=state)
    check("kda", gdn.chunk_kda(*five[:3], gk, x.beta, **options), want, dtype)
    check("kda steps", gdn.fused_recurrent_kda(*five[:3], gk, x.beta, **options), want, dtype)
    want = x.expected(gate=gk, erase=b, write=w, state=state)
    check("gdn2", gdn.chunk_gdn2(*five[:3], gk, b, w, **options), want, dtype)
    check("gdn2 steps", gdn.fused_recurrent_gdn2(*five[:3], gk, b, w, **options), want, dtype)
    want = x.expected(gate=x.g, state=state)
    check("simple gla", gdn.chunk_simple_gla(*five[:4], **options), want, dtype)
    check("simple gla steps", gdn.fused_recurrent_simple_gla(*five[:4], **options), want, dtype)
    gamma = -torch.linspace(0.01, 0.5, HV, device=DEVICE)
    want = x.expected(gate=gamma.expand(x.batch, x.tokens, HV).contiguous(), state=state)
    check("constant gate", gdn.chunk_simple_gla(*five[:3], g_gamma=gamma, **options), want, dtype)
    check("gla", gdn.chunk_gla(*five[:3], gk, **options), x.expected(gate=gk, state=state), dtype)
    plain = gdn.chunk_linear_attn(*five[:3], normalize=False, **options)
    check("linear", plain, x.expected(state=state), dtype)


@pytest.mark.parametrize("v_first", [False, True])
def test_everything_in_the_kernel(problem, v_first):
    x = Inputs(**problem)
    a, logits = x.normal(HV), x.normal(HV).bfloat16()
    A_log, bias = torch.randn(HV, device=DEVICE).bfloat16(), torch.randn(HV, device=DEVICE)
    q, k = 3 * x.q, 2 * x.k
    state = x.state.transpose(2, 3).contiguous() if v_first else x.state
    got = gdn.chunk_gated_delta_rule(
        q,
        k,
        x.v,
        a,
        logits,
        initial_state=state,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
        use_beta_sigmoid_in_kernel=True,
        allow_neg_eigval=True,
        state_v_first=v_first,
        cu_seqlens=x.cu,
        use_gate_in_kernel=True,
        A_log=A_log,
        dt_bias=bias,
    )
    want = x.expected(
        q=F.normalize(q.double(), dim=-1, eps=0),
        k=F.normalize(k.double(), dim=-1, eps=0),
        gate=-A_log.double().exp() * F.softplus(a.double() + bias.double()),
        beta=2 * logits.double().sigmoid(),
        state=state,
        state_layout="v_first" if v_first else "k_first",
    )
    check("all", got, want, x.dtype)


def test_linear_gates_and_normalised_linear_attention():
    x = Inputs(dtype=torch.float32)
    alpha = 1 - 1e-3 * x.uniform(HV)
    got = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, alpha, x.beta, output_final_state=True, linear_gate=True)
    check("alpha", got, x.expected(gate=alpha.double().log(), beta=x.beta), x.dtype)
    y = Inputs(dtype=torch.float32, heads=HV)
    q, k = y.q.abs(), y.k.abs()
    o, (state, z) = gdn.chunk_linear_attn(q, k, y.v, output_final_state=True)
    want, want_state = y.expected(q=q, k=k)
    below = (q.double() * k.double().cumsum(1)).sum(-1, keepdim=True) * K**-0.5
    check("normalised", (o, state), (want / (below + 1e-10), want_state), y.dtype)
    oracle.check("keys", z, k.double().sum(1, keepdim=True), "state", "tf32", tokens=False)


def test_parts_of_a_mixer():
    torch.manual_seed(0)
    x, z, w = (torch.randn(*shape, device=DEVICE) for shape in ((2, 70, 6, 100), (2, 70, 6, 100), (100,)))
    r = [t.cpu().numpy() for t in (x, z, w)]
    assert ref.ratio(gdn.l2norm(x).cpu(), ref.l2norm(r[0])) < 1e-6
    assert ref.ratio(gdn.gated_rms_norm(x, z, w).cpu(), ref.gated_rms_norm(*r)) < 1e-6
    A, bias = torch.randn(6, device=DEVICE), torch.randn(6, 100, device=DEVICE)
    got = gdn.gate(x.bfloat16(), A.half(), bias, -4.0)
    want = ref.gate(x.bfloat16().float().cpu().numpy(), A.half().float().cpu().numpy(), bias.cpu().numpy(), -4.0)
    assert ref.ratio(got.cpu(), want) < 1e-6
    c, taps = torch.randn(2, 70, 96, device=DEVICE), torch.randn(96, 4, device=DEVICE)
    for kept in (3, 4):
        state = torch.randn(2, 96, kept, device=DEVICE)
        y, final = gdn.short_conv(c, taps, initial_state=state, output_final_state=True)
        want, want_state = ref.short_conv(c.cpu().numpy(), taps.cpu().numpy(), None, None, state.cpu().numpy(), "silu")
        assert ref.ratio(y.cpu(), want) < 1e-6 and ref.ratio(final.cpu(), want_state) == 0


def test_cpu_and_gpu_agree():
    x = Inputs(dtype=torch.float32)
    on_gpu = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True)
    on_cpu = gdn.chunk_gated_delta_rule(*(t.cpu() for t in x.five), output_final_state=True)
    for a, b in zip(on_gpu, on_cpu):
        oracle.check("CPU against GPU", a.cpu(), b, "o", "tf32", tokens=False)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("split", [1, 63, 64, 65, 500, 937])
def test_d11_split(split, dtype):
    x = Inputs(1000, 1, getattr(torch, dtype))
    want = x.expected(gate=x.g, beta=x.beta)
    first = tuple(t[:, :split].contiguous() for t in x.five)
    rest = tuple(t[:, split:].contiguous() for t in x.five)
    results = []
    for start in (None, torch.zeros_like(x.state)):
        o1, state = gdn.chunk_gated_delta_rule(*first, initial_state=start, output_final_state=True)
        o2, state = gdn.chunk_gated_delta_rule(*rest, initial_state=state, output_final_state=True)
        results.append((torch.cat([o1, o2], 1), state))
    check("split", results[0], want, x.dtype)
    assert all(torch.equal(a, b) for a, b in zip(*results)), "no state differs from zeros"


def test_d11_prefill_and_steps():
    x = Inputs(128, 2)
    want = x.expected(gate=x.g, beta=x.beta)
    o, state = gdn.chunk_gated_delta_rule(*(t[:, :100].contiguous() for t in x.five), output_final_state=True)
    parts = [o]
    for t in range(100, 128):
        token = tuple(y[:, t : t + 1].contiguous() for y in x.five)
        o, state = gdn.fused_recurrent_gated_delta_rule(
            *token[:4], beta=token[4], initial_state=state, final_state=state
        )
        parts.append(o)
    check("steps", (torch.cat(parts, 1), state), want, x.dtype)


def test_d15_bfloat16_states():
    x = Inputs(100)
    h0 = x.state.bfloat16()
    got = gdn.chunk_gated_delta_rule(*x.five, initial_state=h0, output_final_state=True)
    check("bf16 initial", got, x.expected(gate=x.g, beta=x.beta, state=h0), x.dtype)
    final = torch.empty_like(h0)
    _, state = gdn.chunk_gated_delta_rule(*x.five, initial_state=x.state, final_state=final)
    assert state is final
    check("bf16 final", got[:1] + (final,), x.expected(gate=x.g, beta=x.beta, state=h0), x.dtype)


def allocations(call):
    """How many pieces of device memory a call allocates, once it has been made before."""
    call()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    call()
    return torch.cuda.memory_stats()["allocation.all.allocated"] - before


@pytest.mark.parametrize("tokens", [1, 130])
def test_d17_views(tokens):
    x = Inputs(tokens)
    wide = torch.cat([x.q.flatten(2), x.k.flatten(2), x.v.flatten(2)], -1)
    q, k, v = wide.split([H * K, H * K, HV * V], -1)
    q, k, v = q.unflatten(-1, (H, K)), k.unflatten(-1, (H, K)), v.unflatten(-1, (HV, V))
    gates = torch.cat([x.g, x.beta], -1)
    g, beta = gates[..., :HV], gates[..., HV:]
    want = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True)
    got = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
    assert all(torch.equal(a, b) for a, b in zip(got, want))
    whole, slices = (
        allocations(lambda x=x: gdn.chunk_gated_delta_rule(*x, output_final_state=True))
        for x in (x.five, (q, k, v, g, beta))
    )
    assert slices == whole, "slices of one projection are copied"
    heads_first = x.q.transpose(1, 2).contiguous().transpose(1, 2)
    call = lambda: gdn.chunk_gated_delta_rule(heads_first, k, v, g, beta, output_final_state=True)  # noqa: E731
    assert all(torch.equal(a, b) for a, b in zip(call(), want))
    assert allocations(call) == whole + (tokens > 1), "heads in front of tokens are copied, but not those of one token"
    shifted = torch.empty(x.q.numel() + 1, device=DEVICE, dtype=x.dtype)[1:].view_as(x.q).copy_(x.q)
    got = gdn.chunk_gated_delta_rule(shifted, k, v, g, beta, output_final_state=True)
    assert all(torch.equal(a, b) for a, b in zip(got, want))


@pytest.mark.parametrize("tokens", [4, 130])
@pytest.mark.parametrize("raw", [False, True])
def test_d17_slices_of_gates(tokens, raw):
    """Gates per channel, erase and write, and what the kernel makes gates of."""
    x = Inputs(tokens)
    wide = torch.cat([x.normal(HV, K), x.uniform(HV, K), x.uniform(HV, K)], dim=2).to(x.dtype)
    g, erase, beta = wide[:, :, HV : 2 * HV], wide[:, :, 2 * HV :], x.uniform(2 * HV)[..., HV:]
    write = x.uniform(2 * HV, V)[:, :, HV:]
    A_log = torch.zeros(HV, device=DEVICE)
    if raw:
        options = {"use_gate_in_kernel": True, "A_log": A_log, "use_beta_sigmoid_in_kernel": True}
        call = lambda g, beta: gdn.chunk_kda(x.q, x.k, x.v, g, beta, **options)[0]  # noqa: E731
        inputs = g, beta
    else:
        call = lambda g, e, w: gdn.chunk_gdn2(x.q, x.k, x.v, g, e, w)[0]  # noqa: E731
        inputs = wide.neg()[:, :, HV : 2 * HV], erase, write
    whole = [y.contiguous() for y in inputs]
    assert not any(y.is_contiguous() for y in inputs)
    assert torch.equal(call(*inputs), call(*whole))
    assert allocations(lambda: call(*inputs)) == allocations(lambda: call(*whole))


def test_d19_destinations():
    x = Inputs()
    for _ in range(2):  # checked and remembered calls refuse alike
        with pytest.raises(ValueError, match="must be contiguous and 16-byte aligned"):
            gdn.chunk_gated_delta_rule(
                *x.five, out=torch.empty(2, HV, 130, V, device=DEVICE, dtype=x.dtype).mT.mT.transpose(1, 2)
            )
        for v in (x.v, x.v.view_as(x.v)):
            with pytest.raises(ValueError, match="out, which is written to, overlaps v"):
                gdn.chunk_gated_delta_rule(*x.five, out=v)
        gdn.chunk_gated_delta_rule(*x.five, out=torch.empty_like(x.v))
    with pytest.raises(ValueError, match="beta is on torch device cpu, but q is on torch device cuda"):
        gdn.chunk_gated_delta_rule(*x.five[:4], x.beta.cpu())
    cu = torch.tensor([0, 100, 129], device=DEVICE)
    with pytest.raises(ValueError, match="offsets end at 129, but there are 130"):
        gdn.chunk_gated_delta_rule(*(t[:1] for t in x.five), cu_seqlens=cu, validate=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no backward pass"):
            gdn.chunk_gated_delta_rule(*x.five[:4], x.beta.clone().requires_grad_())
        gdn.chunk_gated_delta_rule(*x.five)


def test_d22_zero_rows():
    for dtype in (torch.bfloat16, torch.float32):
        x = Inputs(70, 1, dtype)
        x.q[:, [3, 64]] = 0
        x.k[:, [3, 64]] = 0
        got = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True, use_qk_l2norm_in_kernel=True)
        assert not got[0][:, [3, 64]].any()
        check("zero rows", got, x.expected(gate=x.g, beta=x.beta), dtype)


def test_d26_reproducible():
    x = Inputs(700, 8, heads=4, value_heads=8, sizes=(128, 128))
    first = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True)
    for _ in range(20):
        again = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True)
        assert all(torch.equal(a, b) for a, b in zip(first, again))
    for place in (0, 7):
        alone = gdn.chunk_gated_delta_rule(
            *(t[place : place + 1].contiguous() for t in x.five), output_final_state=True
        )
        assert all(torch.equal(a[0], b[place]) for a, b in zip(alone, first))


def test_d27_call_after_call():
    kept, copies = [], []
    for options in (
        {},
        {"value_heads": 6},
        {"dtype": torch.float16},
        {"dtype": torch.float32},
        {"tokens": 77},
        {"batch": 1},
        {},
    ):
        x = Inputs(**{"tokens": 130, **options})
        for g in (x.g, x.g.bfloat16()):
            for state in (None, x.state):
                got = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, x.beta, initial_state=state, output_final_state=True)
                check(f"{options}", got, x.expected(gate=g, beta=x.beta, state=state), x.dtype)
                kept.append(got)
                copies.append(tuple(t.clone() for t in got))
    for got, copy in zip(kept, copies):
        assert all(torch.equal(a, b) for a, b in zip(got, copy)), "a later call changed an earlier result"


def test_d27_streams_and_threads():
    x = Inputs(500)
    want = gdn.chunk_gated_delta_rule(*x.five, output_final_state=True)
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    results = [[] for _ in streams]

    def work(stream, into):
        with torch.cuda.stream(stream):
            for _ in range(10):
                into.append(gdn.chunk_gated_delta_rule(*x.five, output_final_state=True))

    threads = [threading.Thread(target=work, args=pair) for pair in zip(streams, results)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for got in sum(results, []):
        assert all(torch.equal(a, b) for a, b in zip(got, want))


def two_layers(q, k, v, g, beta):
    o, state = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True, use_qk_l2norm_in_kernel=True)
    o2, state = gdn.chunk_gated_delta_rule(q, k, o, g, beta, initial_state=state, output_final_state=True)
    return gdn.gated_rms_norm(o + o2, v, v.new_ones(V)), state


def test_d27_compile_and_autocast():
    x = Inputs()
    want = two_layers(*x.five)
    got = torch.compile(two_layers, fullgraph=True)(*x.five)
    for a, b in zip(got, want):
        oracle.check("compiled", a, b, "o", "bf16", tokens=False)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        o, _ = gdn.chunk_gated_delta_rule(x.q.float(), x.k, x.v.float(), x.g, x.beta)
    assert o.dtype == torch.bfloat16 and torch.equal(o, gdn.chunk_gated_delta_rule(*x.five)[0])


def capture(function):
    for _ in range(2):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def test_d28_graph_of_packed_prefill():
    x = Inputs(512, 1, starts=[0, 512, 512, 512, 512, 512, 512, 512, 512])
    options = {"output_final_state": True, "use_qk_l2norm_in_kernel": True}

    def run():
        return gdn.chunk_gated_delta_rule(*x.five, initial_state=x.state, cu_seqlens=x.cu, **options)

    graph, result = capture(run)
    for starts in (
        [0, 512, 512, 512, 512, 512, 512, 512, 512],
        [0, 1, 2, 300, 512, 512, 512, 512, 512],
        [0, 64, 128, 192, 256, 320, 384, 448, 512],
    ):
        x.cu.copy_(torch.tensor(starts))
        before = torch.cuda.memory_allocated()
        graph.replay()
        assert torch.cuda.memory_allocated() == before
        got = tuple(t.clone() for t in result)
        want = run()
        assert all(torch.equal(a, b) for a, b in zip(got, want)), starts


def test_d28_graph_of_decode_with_slots():
    x = Inputs(1, 8)
    pool = torch.randn(20, HV, K, V, device=DEVICE)
    slots = torch.tensor([3, -1, 5, 0, 19, -1, 7, 8], device=DEVICE, dtype=torch.int32)

    def run(pool):
        return gdn.fused_recurrent_gated_delta_rule(*x.five[:4], beta=x.beta, initial_state=pool, state_indices=slots)[
            0
        ]

    graph, o = capture(lambda: run(pool))
    for contents in ([3, -1, 5, 0, 19, -1, 7, 8], [1, 2, -1, -1, -1, -1, 4, 6]):
        slots.copy_(torch.tensor(contents))
        other = pool.clone()
        graph.replay()
        want = run(other)
        assert torch.equal(o, want) and torch.equal(pool, other)
        dead = [n for n, slot in enumerate(contents) if slot < 0]
        assert not o[dead].any()


def test_no_wait_for_the_device():
    """cu_seqlens, with and without its copy on the host, is never read back."""
    x = Inputs(201, 1, starts=[0, 0, 7, 71, 200, 201])
    gdn.chunk_gated_delta_rule(*x.five, cu_seqlens=x.cu)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(50_000_000)
        event = torch.cuda.Event()
        for host in (None, [0, 0, 7, 71, 200, 201]):
            gdn.chunk_gated_delta_rule(*x.five, cu_seqlens=x.cu, cu_seqlens_cpu=host)
        event.record()
        assert not event.query(), "the call waited for the device"
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()


def test_no_device_error_is_left():
    torch.cuda.synchronize()
