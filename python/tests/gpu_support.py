# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems, inputs and runs for the device tests.

Environment:
  GDN_TARGET        target to compile for; by default the device's
  GDN_F32           "tf32" (default) or "f32": the limits for float32 inputs
  GDN_COMPILE_ONLY  folder: every test compiles its kernels, saves them there and stops.
                    On a machine without the compiler, run the tests with
                    GDN_PRECOMPILED set to that folder.
"""

import dataclasses
import functools
import importlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import gdn
from gdn import build
from gdn import compile as compiler


class Lazy:
    """A module that is imported at its first use, so that compile-only runs do not need it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self._name), attribute)


torch, F, oracle_torch = Lazy("torch"), Lazy("torch.nn.functional"), Lazy("oracle_torch")

COMPILE_ONLY = os.environ.get("GDN_COMPILE_ONLY")
F32 = os.environ.get("GDN_F32", "tf32")
DEVICE = "cuda"

MODELS = {
    "linear": {},
    "ssd": {"gate": "head"},
    "gla": {"gate": "channel"},
    "delta": {"beta": True},
    "gated_delta": {"gate": "head", "beta": True},
    "kda": {"gate": "channel", "beta": True},
    "gdn2": {"gate": "channel", "erase_write": True},
}


def arithmetic(dtype):
    """Column of the table of limits."""
    return F32 if dtype == "f32" else dtype


@functools.cache
def target():
    named = os.environ.get("GDN_TARGET")
    if named:
        return named
    return "sm_90a" if COMPILE_ONLY else gdn.device_target()


def load(*texts):
    """Kernels of module texts. In compile-only mode the test ends here, so load all at once."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        compiled = list(pool.map(lambda text: compiler.compile(text, target()), texts))
    if COMPILE_ONLY:
        for one in compiled:
            one.save(COMPILE_ONLY)
        pytest.skip(f"compiled {len(texts)} kernel sets only")
    return [_loaded(text, one) for text, one in zip(texts, compiled)]


_kernels = {}

# A function of a problem that gives its schedule, in the place of what it asks for; see test_gpu_schedules.py.
forced = None


def _loaded(text, compiled):
    if text not in _kernels:
        _kernels[text] = gdn.Kernel(compiled)
    return _kernels[text]


@dataclasses.dataclass(frozen=True)
class Problem:
    """One recurrence. Sizes B and T (and N) are dynamic in the IR unless `static`."""

    model: str = "gated_delta"
    B: int = 1
    T: int = 64
    Hqk: int = 2
    Hv: int = 4
    K: int = 64
    V: int = 64
    dtype: str = "bf16"
    starts: tuple = None
    offsets: str = "i32"
    slots: tuple = None
    pool: int = None
    slot_type: str = "i32"
    update: bool = True
    every: int = None
    checkpoint_dtype: str = "f32"
    layout: str = "v_first"
    state_dtype: str = "f32"
    gate_dtype: str = "f32"
    beta_dtype: str = "f32"
    chunk: int = None
    value_block: int = None
    stages: int = 2
    wide_from: int = 0
    scores_ahead: bool = False
    resident_from: int = 0
    phases: str = "split"
    segments: int = 0
    segment_chunks: int = 1
    scale: float = None
    precision: str = "default"
    out_dtype: str = None
    static: bool = False

    def but(self, **changes):
        return dataclasses.replace(self, **changes)

    @property
    def sequences(self):
        return len(self.starts) - 1 if self.starts else self.B

    def text(self):
        schedule = None if self.precision == "default" else build.schedule("auto", precision=self.precision)
        if self.chunk:
            block = self.value_block or min(64, -(-self.V // 16) * 16)
            phases = "segmented" if self.segments else self.phases
            segmented = dict(segments=self.segments, segment_chunks=self.segment_chunks) if self.segments else {}
            options = dict(segmented, precision=self.precision, wide_from=self.wide_from)
            options |= dict(scores_ahead=self.scores_ahead, resident_from=self.resident_from)
            schedule = build.schedule(phases, self.chunk, block, self.stages, **options)
        if forced:
            schedule = forced(self)
        return build.recurrence(
            self.B if self.static or self.starts else None,
            self.T if self.static else None,
            self.Hqk,
            self.Hv,
            self.K,
            self.V,
            N=self.sequences if self.static else None,
            dtype=self.dtype,
            offsets=self.offsets if self.starts else None,
            slots=self.slot_type if self.slots else None,
            S=self.pool if self.static else None,
            update_state=self.update,
            every=self.every,
            checkpoint_dtype=self.checkpoint_dtype,
            state_layout=self.layout,
            state_dtype=self.state_dtype,
            out_dtype=self.out_dtype,
            gate_dtype=self.gate_dtype,
            beta_dtype=self.beta_dtype,
            scale=self.scale,
            schedule=schedule,
            **MODELS[self.model],
        )


def torch_type(dtype):
    return {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32, "i64": torch.int64}[
        dtype
    ]


def put_stored(x):
    """A numpy array on the device; 16-bit integers are bits of bfloat16."""
    tensor = torch.from_numpy(x)
    return (tensor.view(torch.bfloat16) if x.dtype.name == "uint16" else tensor).to(DEVICE)


def normalised(x):
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def inputs(p, seed=0):
    """Device tensors of a problem: drawn in float32 on the host, then rounded."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    def put(x, dtype):
        return x.to(torch_type(dtype)).to(DEVICE)

    B, T = p.B, p.T
    x = {
        "q": put(normalised(normal(B, T, p.Hqk, p.K)), p.dtype),
        "k": put(normalised(normal(B, T, p.Hqk, p.K)), p.dtype),
        "v": put(normal(B, T, p.Hv, p.V), p.dtype),
    }
    options = MODELS[p.model]
    if options.get("gate"):
        tail = (p.K,) if options["gate"] == "channel" else ()
        x["gate"] = put(F.logsigmoid(normal(B, T, p.Hv, *tail)), p.gate_dtype)
    if options.get("beta"):
        x["beta"] = put(torch.sigmoid(normal(B, T, p.Hv)), p.beta_dtype)
    if options.get("erase_write"):
        x["erase"] = put(torch.sigmoid(normal(B, T, p.Hv, p.K)), p.beta_dtype)
        x["write"] = put(torch.sigmoid(normal(B, T, p.Hv, p.V)), p.beta_dtype)
    if p.starts:
        x["offsets"] = torch.tensor(p.starts, dtype=torch_type(p.offsets)).to(DEVICE)
    matrix = (p.V, p.K) if p.layout == "v_first" else (p.K, p.V)
    if p.slots:
        x["slots"] = torch.tensor(p.slots, dtype=torch_type(p.slot_type)).to(DEVICE)
    x["state"] = put(normal(p.pool or p.sequences, p.Hv, *matrix), p.state_dtype)
    return x


def poison(shape, dtype):
    """A tensor of NaN."""
    return torch.full(shape, float("nan"), dtype=torch_type(dtype), device=DEVICE)


def run(kernel, x, o=None, poisoned=True, **options):
    """o and the final state; x is left as it was. Outputs and workspaces start as NaN."""
    state = x["state"].clone()
    if o is None:
        o = torch.full_like(x["v"], float("nan"))
    arguments = dict(x, o=o, state=state)
    if poisoned:
        sizes = kernel.workspace_bytes(**arguments)
        workspaces = [torch.full((max(size, 1),), 0xFF, dtype=torch.uint8, device=DEVICE) for size in sizes]
        options["workspaces"] = workspaces
    kernel(**arguments, **options)
    torch.cuda.synchronize()
    return o, state


def expected(p, x):
    """The oracle on the same (rounded) inputs."""
    arguments = {name: value.double() if value.is_floating_point() else value for name, value in x.items()}
    return oracle_torch.recurrence(**arguments, scale=p.scale, state_layout=p.layout, every=p.every)


def check(p, got, want, label="", correlated=False, factor=1.0, state_factor=None):
    """Both results of one run against the oracle, with the limits for p's element type."""
    suffix = " correlated" if correlated else ""
    kind = arithmetic(p.dtype)
    oracle_torch.check(f"o{label}", got[0], want[0], "o" + suffix, kind, factor)
    state_factor = factor if state_factor is None else state_factor
    # A state kept in 16 bit is rounded once more at the end.
    state_kind = kind if p.state_dtype == "f32" or kind == "bf16" else p.state_dtype
    oracle_torch.check(f"state{label}", got[1], want[1], "state" + suffix, state_kind, state_factor, tokens=False)


def run_within(seconds, command):
    """A process that ends in time, else a failure that says how far it came: a kernel that hangs holds up nothing."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout
        last = (said or "").strip().splitlines()[-1:] or ["the start"]
        pytest.fail(f"no end within {seconds} s, behind: {last[0]}")


def same_bits(a, b):
    """Equal but for the sign of zero."""
    return a.shape == b.shape and bool((a == b).all())
