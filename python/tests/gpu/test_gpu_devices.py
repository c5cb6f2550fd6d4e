# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors on a device that is not the current one: the functions, mixers, streams, graphs and threads there."""

import threading

import pytest

import gdn
from gdn.driver import driver
from gpu_support import COMPILE_ONLY, Lazy

pytestmark = pytest.mark.skipif(bool(COMPILE_ONLY), reason="these tests call the compiler where they run")
torch, F = Lazy("torch"), Lazy("torch.nn.functional")

H, HV, SIZE = 2, 4, 64


@pytest.fixture(autouse=True)
def two_devices():
    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip(f"needs two GPUs; this machine has {count}")
    yield
    assert torch.cuda.current_device() == 0 and driver().current_device() == 0


def inputs(device, tokens=130, batch=2):
    """The same numbers on either device."""
    random = torch.Generator().manual_seed(tokens)

    def normal(heads):
        return torch.randn(batch, tokens, heads, SIZE, generator=random)

    q, k = (F.normalize(normal(H), dim=-1).bfloat16() for _ in range(2))
    g, beta = (torch.rand(batch, tokens, HV, generator=random) for _ in range(2))
    state = torch.randn(batch, HV, SIZE, SIZE, generator=random)
    return [x.to(device) for x in (q, k, normal(HV).bfloat16(), -g, beta, state)]


def chunks(device):
    *five, state = inputs(device)
    return gdn.chunk_gated_delta_rule(*five, initial_state=state, output_final_state=True)


def packed(device):
    q, k, v, g, beta, _ = inputs(device, 201, 1)
    starts = torch.tensor([0, 7, 7, 150, 201], device=device)
    return gdn.chunk_kda(q, k, v[:, :, :H], g[:, :, :H, None].expand(-1, -1, -1, SIZE).contiguous(), beta[:, :, :H],
                         cu_seqlens=starts, output_final_state=True)  # fmt: skip


def steps(device):
    q, k, v, g, beta, state = inputs(device, 1, 2)
    slots = torch.tensor([1, -1], device=device)
    o, state = gdn.fused_recurrent_gated_delta_rule(
        q, k, v, g, beta=beta, initial_state=state, state_indices=slots, use_qk_l2norm_in_kernel=True
    )
    return o, state


def parts(device):
    q, _, v, _, _, _ = inputs(device)
    x = v.flatten(2)
    weight = torch.ones(x.shape[-1], 4, device=device, dtype=x.dtype)
    return gdn.l2norm(q), gdn.short_conv(x, weight)[0], gdn.gated_rms_norm(v, v, torch.ones(SIZE, device=device))


def mixer(device):
    torch.manual_seed(0)
    layer = gdn.nn.GatedDeltaNet(64, 1, 32, num_v_heads=2).bfloat16().to(device)
    x = torch.randn(2, 40, 64).bfloat16().to(device)
    cache = layer.new_cache(2)
    with torch.no_grad():
        return layer(x[:, :32], cache), *(layer(x[:, t : t + 1], cache) for t in range(32, 40)), cache.recurrent


CALLS = [chunks, packed, steps, parts, mixer]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_results_are_those_of_the_first_device(call):
    """Also in a second call, which finds everything prepared, and with the devices in turn."""
    for _ in range(2):
        first, second = call("cuda:0"), call("cuda:1")
        for a, b in zip(first, second):
            assert b.device == torch.device("cuda:1") and torch.equal(a.cpu(), b.cpu())


def test_the_stream_of_the_second_device_is_used():
    """The call waits for what is in front of it in that stream, and for nothing of the current device."""
    want = [x.cpu() for x in chunks("cuda:0")]
    *five, state = inputs("cuda:1")
    late = torch.zeros_like(state)
    chunks("cuda:1")
    torch.cuda.synchronize(1)
    stream = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        late.copy_(state)
        assert torch.cuda.current_device() == 1
        torch.cuda.set_device(0)
        # torch keeps a current stream for each device.
        got = gdn.chunk_gated_delta_rule(*five, initial_state=late, output_final_state=True)
        assert torch.cuda.current_device() == 0
    stream.synchronize()
    torch.cuda.set_device(0)
    assert all(torch.equal(a, b.cpu()) for a, b in zip(want, got))


def test_a_graph_of_the_second_device():
    *five, state = inputs("cuda:1", 1)
    with torch.cuda.device(1):
        stream, graph, pool = torch.cuda.Stream(), torch.cuda.CUDAGraph(), state.clone()

        def step():
            return gdn.fused_recurrent_gated_delta_rule(
                *five[:4], beta=five[4], initial_state=pool, final_state=pool, output_final_state=True
            )

        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            o, _ = step()
        pool.copy_(state)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        got = o.clone(), pool.clone()
        pool.copy_(state)
        for _ in range(3):
            want = step()
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], pool)


def test_threads_with_a_device_each():
    want, failures = [x.cpu() for x in chunks("cuda:0")], []

    def work(device):
        try:
            torch.cuda.set_device(device)
            for _ in range(20):
                for other in (device, 1 - device):
                    assert all(torch.equal(a, b.cpu()) for a, b in zip(want, chunks(f"cuda:{other}")))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_operands_of_two_devices_are_refused():
    q, k, v, g, beta, _ = inputs("cuda:0")
    for name, call in {
        "chunk": lambda: gdn.chunk_gated_delta_rule(q, k, v, g.to("cuda:1"), beta),
        "step": lambda: gdn.fused_recurrent_gated_delta_rule(
            *(x[:, :1] for x in (q, k, v, g)), beta=beta[:, :1].to("cuda:1")
        ),
        "norm": lambda: gdn.gated_rms_norm(v, v.to("cuda:1"), torch.ones(SIZE, device="cuda:0")),
    }.items():
        with pytest.raises((TypeError, ValueError), match="device") as error:
            call()
        assert "cuda:1" in str(error.value) or "device 1" in str(error.value), name
