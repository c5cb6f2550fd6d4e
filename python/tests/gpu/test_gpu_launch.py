# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launcher on a device: arrays of other libraries, streams, graphs, threads, devices, errors of the driver."""

import threading

import pytest

import gdn
from gdn import DeviceArray, build
from gdn.compile import Compiled
from gpu_support import DEVICE, Problem, check, expected, inputs, load, run, same_bits, torch


def problem(**changes):
    """Inputs, destination and the right result of a small prefill."""

    p = Problem("gated_delta", B=2, T=100).but(**changes)
    (kernel,) = load(p.text())
    x = inputs(p)
    return p, kernel, x, torch.full_like(x["v"], float("nan"))


def test_results_are_the_destinations():
    p, kernel, x, o = problem()
    want = expected(p, x)
    results = kernel(*[x[name] for name in ("q", "k", "v", "gate", "beta")], o, x["state"])
    assert results[0] is o
    assert results[1] is x["state"]
    check(p, results, want)


def test_gradient_leaves_are_accepted():
    p, kernel, x, o = problem()
    x["q"].requires_grad_()
    kernel(**x, o=o)


def test_other_stream_and_order():
    """The launch goes to torch's current stream, behind the work already in it."""

    p, kernel, x, o = problem()
    want = expected(p, x)
    stream = torch.cuda.Stream()
    v = x["v"].clone()
    x["v"].zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x["v"].copy_(v)
        kernel(**x, o=o)
        result = o.clone(), x["state"].clone()
    stream.synchronize()
    check(p, result, want)


def test_given_stream():
    p, kernel, x, o = problem()
    want = expected(p, x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    kernel(**x, o=o, stream=stream)
    stream.synchronize()
    check(p, (o, x["state"]), want)


def test_graph_with_other_contents():
    p, kernel, x, o = problem(B=1, T=512, starts=(0, 512, 512, 512))
    stream = torch.cuda.Stream()
    initial = x["state"].clone()
    with torch.cuda.stream(stream):
        kernel.prepare(**x, o=o)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        kernel(**x, o=o)
    for starts in ((0, 512, 512, 512), (0, 1, 2, 512), (0, 0, 300, 512)):
        x["offsets"].copy_(torch.tensor(starts, dtype=torch.int32))
        x["state"].copy_(initial)
        o.fill_(float("nan"))
        want = expected(p.but(starts=starts), x)
        graph.replay()
        torch.cuda.synchronize()
        check(p, (o, x["state"]), want, f" of {starts}")


def test_capture_without_preparation_is_refused():
    p = Problem("gated_delta", B=2, T=100)
    (kernel,) = load(p.text())
    if not any(kernel.workspace_bytes(**inputs(p), o=torch.empty_like(inputs(p)["v"]))):
        pytest.skip("the kernel needs no workspace")
    x = inputs(p)
    o = torch.empty_like(x["v"])
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(gdn.CudaError, match=r"prepare\(\)"), torch.cuda.graph(graph, stream=stream):
        kernel(**x, o=o)


def test_two_threads():
    """Each thread works in its own stream with one kernel object."""

    p, kernel, x, _ = problem()
    want = run(kernel, x)
    failures = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    state, o = x["state"].clone(), torch.full_like(x["v"], float("nan"))
                    kernel(**dict(x, state=state), o=o)
                    torch.cuda.current_stream().synchronize()
                    assert same_bits(o, want[0])
                    assert same_bits(state, want[1])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_second_device():
    p, kernel, x, o = problem()
    if torch.cuda.device_count() < 2:
        pytest.skip("one device only")
    want = run(kernel, x)
    y = {name: value.to("cuda:1") for name, value in x.items()}
    assert torch.cuda.current_device() == 0
    o, state = kernel(**y, o=torch.empty_like(y["v"]))
    torch.cuda.synchronize(1)
    assert torch.cuda.current_device() == 0
    assert same_bits(o.to(DEVICE), want[0])
    assert same_bits(state.to(DEVICE), want[1])
    with pytest.raises(ValueError, match="'gate' is on device 0, but 'q' is on 1"):
        kernel(**dict(y, gate=x["gate"]), o=o)


def test_own_arrays_need_no_library():
    """DeviceArray in and out by bytes; torch only makes the data and the comparison."""

    p, kernel, x, _ = problem()
    want = run(kernel, x)
    names = {torch.bfloat16: "bf16", torch.float32: "f32"}

    def copy(tensor):
        raw = tensor.cpu().view(torch.uint8).numpy()
        return DeviceArray.from_bytes(raw, tensor.shape, names[tensor.dtype])

    arrays = {name: copy(value) for name, value in x.items()}
    arrays["o"] = copy(torch.zeros_like(x["v"]))
    o, state = kernel(**arrays, stream=0)
    raw = torch.frombuffer(bytearray(o.tobytes()), dtype=torch.bfloat16).view(x["v"].shape)
    assert same_bits(raw.to(DEVICE), want[0])
    # Both ways of DLPack: torch reads our array, and frees its hold on it.
    assert same_bits(torch.from_dlpack(state), want[1])
    assert same_bits(torch.from_dlpack(o), want[0])


class ThroughDLPack:
    """A torch tensor of which the launcher sees DLPack only."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_of_torch():
    p, kernel, x, o = problem()
    want = run(kernel, x)
    kernel(**{name: ThroughDLPack(value) for name, value in x.items()}, o=ThroughDLPack(o))
    torch.cuda.synchronize()
    assert same_bits(o, want[0])
    assert same_bits(x["state"], want[1])


def test_cuda_array_interface_of_cupy():
    p, kernel, x, _ = problem(dtype="f16")
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    want = run(kernel, x)
    arrays = {name: cupy.asarray(value.cpu().numpy()) for name, value in x.items()}
    arrays["o"] = cupy.zeros(x["v"].shape, "f2")
    o, state = kernel(**arrays)
    cupy.cuda.get_current_stream().synchronize()
    assert same_bits(torch.as_tensor(o.get()).to(DEVICE), want[0])
    assert same_bits(torch.as_tensor(state.get()).to(DEVICE), want[1])


def test_driver_refuses_broken_ptx():
    _, kernel, x, o = problem()
    manifest = dict(
        version=1, target=gdn.device_target(), function="broken", ptx="", arguments=[], buffers=[], results=[]
    )
    launch = {"kernel": "broken", "grid": 1, "block": 32, "shared": 0, "parameters": []}
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry broken() { nonsense; }\n"
    with pytest.raises(gdn.CudaError, match=r"(?s)loading broken: cuModuleLoadDataEx failed: .*ptxas"):
        gdn.Kernel(Compiled(dict(manifest, launches=[launch]), ptx))()
    kernel(**x, o=o)


def test_too_much_shared_memory_is_named():
    load()
    manifest = dict(
        version=1, target=gdn.device_target(), function="wide", ptx="", arguments=[], buffers=[], results=[]
    )
    launch = {"kernel": "wide", "grid": 1, "block": 32, "shared": 1 << 20, "parameters": []}
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry wide() { ret; }\n"
    with pytest.raises(gdn.CudaError, match="kernel wide needs 1048576 bytes of shared memory: cuFuncSetAttribute"):
        gdn.Kernel(Compiled(dict(manifest, launches=[launch]), ptx))()


# --- launches that may start while the one in front ends --------------------------


def steps():
    """A decode kernel of few states, whose launches overlap, and inputs for 40 tokens."""
    p = Problem("gated_delta", B=2, T=1, Hqk=16, Hv=32, K=128, V=128)
    text = build.recurrence(None, 1, 16, 32, 128, 128, gate="head", beta=True)
    (kernel,) = load(text)
    tokens = [inputs(p, seed) for seed in range(40)]
    return kernel, tokens, tokens[0]["state"].clone()


def walk(kernel, tokens, state, between):
    outs = []
    for x in tokens:
        # What stands in front writes what the step reads, what comes behind reads what it writes.
        state.mul_(0.999)
        o = torch.full_like(x["v"], float("nan"))
        kernel(**dict(x, state=state), o=o)
        kernel(**dict(x, state=state), o=o)
        between()
        outs.append(o.float() * 2)
    return torch.stack(outs)


def test_overlapping_launches_wait_for_one_another():
    kernel, tokens, start = steps()
    assert any(launch.overlaps for launch in kernel._plan.launches) == (torch.cuda.get_device_capability() >= (9, 0))
    want_state = start.clone()
    want = walk(kernel, tokens, want_state, torch.cuda.synchronize)
    assert torch.isfinite(want).all()
    for _ in range(5):
        state = start.clone()
        got = walk(kernel, tokens, state, lambda: None)
        assert same_bits(got, want) and same_bits(state, want_state)
    state = start.clone()
    stream, side = torch.cuda.Stream(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        # A copy and another branch of the graph in front of the first step, and a join behind the last.
        state.copy_(start)
        side.wait_stream(stream)
        with torch.cuda.stream(side):
            other = start * 2
        stream.wait_stream(side)
        got = walk(kernel, tokens, state, lambda: None)
        total = other.sum() + state.sum()
    for _ in range(3):
        graph.replay()
        torch.cuda.synchronize()
        assert same_bits(got, want) and same_bits(state, want_state)
        assert same_bits(total, (start * 2).sum() + want_state.sum())


def test_overlapping_launches_that_are_prepared():
    """The launcher of the functions, which keeps its parameter blocks."""
    kernel, tokens, start = steps()
    from gdn import fast

    arguments = dict(tokens[0], o=tokens[0]["v"])
    launcher = fast.Launcher(kernel, 0, [tuple(arguments[name].shape) for name in kernel._plan.names])

    def prepared(o, state, **x):
        tensors = [dict(x, o=o, state=state)[name] for name in kernel._plan.names]
        launcher([tensor.data_ptr() for tensor in tensors])

    states = start.clone(), start.clone()
    want = walk(kernel, tokens, states[0], torch.cuda.synchronize)
    for _ in range(5):
        states[1].copy_(start)
        assert same_bits(walk(prepared, tokens, states[1], lambda: None), want)
        assert same_bits(*states)
