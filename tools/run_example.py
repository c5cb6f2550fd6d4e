# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles examples/qwen3_5_35b_delta_rule.mlir to PTX, runs it on the CPU and, where
there is one, on the GPU, and compares with the float64 definition. See tools/run.sh."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "qwen3_5_35b_delta_rule.mlir"
TOKENS = 8192
# Largest rms(x - r) / rms(r) for bf16 inputs.
LIMITS = {"o": 8e-3, "state": 1e-2}

sys.path.insert(0, str(ROOT / "python"))
from gdn import DeviceArray, compile, device_target, host, launch, reference  # noqa: E402
from gdn import driver as cuda  # noqa: E402


class Table:
    """Prints each row as soon as it is known."""

    def __init__(self):
        self.failed = False
        print(f"{'step':34} {'seconds':>8}  result")

    def row(self, step, seconds, result, good=True):
        self.failed |= not good
        print(f"{step:34} {seconds:8.2f}  {result}{'' if good else '  FAILED'}", flush=True)


def source(tokens):
    """The example's text with another number of tokens."""
    text = EXAMPLE.read_text()
    if not re.search(rf"tensor<1x{TOKENS}x", text):
        raise SystemExit(f"error: {EXAMPLE} has no size of {TOKENS} tokens")
    return text.replace(f"<1x{TOKENS}x", f"<1x{tokens}x")


def inputs(tokens):
    """Arguments of the example by name, as the layer would make them; seed 0."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    heads = 32
    return {
        "q": reference.to_bf16_bits(normal(1, tokens, 16, 128)),
        "k": reference.to_bf16_bits(normal(1, tokens, 16, 128)),
        "v": reference.to_bf16_bits(normal(1, tokens, heads, 128)),
        "a": normal(1, tokens, heads),
        "A_log": np.log(random.uniform(0.01, 16, heads)).astype(np.float32),
        "dt_bias": normal(heads),
        "beta": reference.sigmoid(normal(1, tokens, heads)).astype(np.float32),
        "o": reference.to_bf16_bits(np.full((1, tokens, heads, 128), np.nan, np.float32)),
        "state": normal(1, heads, 128, 128),
    }


def expected(x):
    """o and the final state, in float64 from the definition."""
    q, k, v = (reference.from_bf16_bits(x[name]) for name in "qkv")
    q, k = (reference.rounded(reference.l2norm(y), "bf16") for y in (q, k))
    gate = reference.gate(x["a"], x["A_log"], x["dt_bias"]).astype(np.float32)
    return reference.recurrence(q, k, v, gate=gate, beta=x["beta"], state=x["state"])


def compare(o, state, wanted):
    """(text, whether both errors are within their limits)"""
    good, parts = True, []
    values = {"o": (reference.from_bf16_bits(o), wanted[0]), "state": (state, wanted[1])}
    for name, (x, r) in values.items():
        error = np.sqrt(np.mean((x - r) ** 2) / np.mean(r**2))
        good &= bool(error <= LIMITS[name])
        parts.append(f"{name} {error:.1e} (limit {LIMITS[name]:.0e})")
    return "relative error: " + ", ".join(parts), good


def compile_example(table, target, folder):
    """Writes PTX and manifest of the example as shipped."""
    start = time.perf_counter()
    command = ["gdn-compile", str(EXAMPLE), f"--target={target}", "--to=ptx", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)} failed:\n{done.stderr.strip()}")
    ptx = (folder / "forward.ptx").read_text()
    kernels = len(re.findall(r"^\.visible \.entry", ptx, re.M))
    size = f"{kernels} kernels, {len(ptx.splitlines())} lines"
    table.row(f"compile to PTX for {target}", seconds, f"{size}: {show(folder / 'forward.ptx')}")
    if shutil.which("ptxas"):
        assemble(table, folder / "forward.ptx", target)


def assemble(table, ptx, target):
    start = time.perf_counter()
    command = ["ptxas", f"-arch={target}", "-v", str(ptx), "-o", str(ptx.with_suffix(".cubin"))]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)} failed:\n{said.strip()}")
    registers = max(map(int, re.findall(r"Used (\d+) registers", said)), default=0)
    spills = sum(map(int, re.findall(r"(\d+) bytes spill", said)))
    result = f"at most {registers} registers, {spills} bytes of spills"
    table.row("assemble (ptxas)", time.perf_counter() - start, result)


def show(path):
    path = Path(path).resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def run_cpu(table, tokens, path):
    start = time.perf_counter()
    library = host.Library(source(tokens), path, optimize="-O3")
    table.row("compile for the CPU", time.perf_counter() - start, f"T = {tokens}, gdn-to-cpu{{path={path}}}")
    x = inputs(tokens)
    start = time.perf_counter()
    wanted = expected(x)
    table.row("definition in float64 (numpy)", time.perf_counter() - start, f"T = {tokens}")
    start = time.perf_counter()
    library("forward", list(x.values()))
    table.row(f"run on the CPU, T = {tokens}", time.perf_counter() - start, *compare(x["o"], x["state"], wanted))


def run_gpu(table, tokens):
    try:
        device = cuda.driver()
        if not device.device_count():
            raise cuda.CudaError("no CUDA device")
        target = device_target()
    except cuda.CudaError as error:
        print(f"{'run on the GPU':34} {'-':>8}  skipped: {str(error).split(' (')[0]}")
        return
    x = inputs(tokens)
    wanted = expected(x)
    start = time.perf_counter()
    call, arguments = on_device(source(tokens), target, x)
    o, state = call(*arguments)
    o = np.frombuffer(o.tobytes(), np.uint16).reshape(x["o"].shape)
    state = np.frombuffer(state.tobytes(), np.float32).reshape(x["state"].shape)
    text, good = compare(o, state, wanted)
    about = f"run on the GPU, T = {tokens}"
    table.row(about, time.perf_counter() - start, text, good)
    start = time.perf_counter()
    call, arguments = on_device(EXAMPLE.read_text(), target, inputs(TOKENS))
    micros = time_calls(call, arguments)
    name = f"{device.device_name(device.current_device())}: {micros:.0f} us per call"
    table.row(f"time on the GPU, T = {TOKENS}", time.perf_counter() - start, name)


def on_device(ir, target, x):
    dtypes = {"uint16": "bf16", "float32": "f32"}
    kernel = launch.Kernel(compile.compile(ir, target))
    arrays = [DeviceArray.from_bytes(a, a.shape, dtypes[a.dtype.name]) for a in x.values()]
    return kernel, arrays


def time_calls(call, arguments, calls=50):
    """Microseconds per call, launched one after the other, the host's work included."""
    driver, state = cuda.driver(), arguments[-1]

    def wait():
        with driver.on(state.device):
            driver.read(state.pointer, 4, 0)

    for _ in range(5):
        call(*arguments)
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        call(*arguments)
    wait()
    return (time.perf_counter() - start) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=300, help="tokens of the checked runs")
    parser.add_argument("--path", default="linalg", choices=("loops", "linalg", "tile"))
    parser.add_argument("--target", default="sm_90a", help="target of the PTX written")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "example")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    table = Table()
    compile_example(table, arguments.target, arguments.output)
    run_cpu(table, arguments.tokens, arguments.path)
    run_gpu(table, arguments.tokens)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
