# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn and the libraries it is compared with, behind one interface, for prefill.

Each class is made for a cell and raises timing.Unsupported where it does not claim to compute it. All
get the same tensors: q, k, v, beta, the state with values first, and the gate in the form that each documents.
What a library wants in another form (alpha = exp(gate), the state with keys first) is made before the timing.
"""

import os

# FLA would otherwise hand the call to other libraries where they are installed.
os.environ.setdefault("FLA_FLASH_QLA", "0")
os.environ.setdefault("FLA_FLASH_KDA", "0")

import workloads  # noqa: E402
from timing import Unsupported  # noqa: E402


def prepare(cell, x, shared):
    """Adds the forms of the inputs that some library wants; `shared` holds one tensor of offsets for all sets."""
    import torch

    if not shared:
        # The libraries cache what they derive from the offsets by the identity of the tensor.
        starts = torch.tensor(cell.starts, device=x["q"].device)
        shared.update(starts32=starts.to(torch.int32), starts64=starts.to(torch.int64), starts_cpu=starts.cpu())
    x.update(shared)
    if cell.gates in workloads.GATE_SETS:
        x["alpha"] = x["gate"].exp()
    x["state_k_first"] = x["state"].transpose(2, 3).contiguous()
    return x


SIZES = ("dynamic", "static")


_kernels = {}


def kernel(text):
    """gdn's kernel of a text, loaded once in this process."""
    import gdn

    if text not in _kernels:
        _kernels[text] = gdn.load(text)
    return _kernels[text]


def save(texts, folder, target, threads=2):
    """Compiles kernels into a folder for GDN_PRECOMPILED; those that are refused are named. Returns how many are."""
    import concurrent.futures

    from gdn import compile as compiler

    def one(text):
        try:
            compiler.compile(text, target).save(folder)
        except compiler.CompileError as reason:
            return str(reason)
        return None

    texts = list(dict.fromkeys(texts))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        refused = [reason for reason in pool.map(one, texts) if reason]
    for reason in refused:
        print(reason)
    print(f"{len(texts) - len(refused)} of {len(texts)} kernel sets in {folder}")
    return len(refused)


MODULES = ("fla.ops.gated_delta_rule", "flash_qla", "flashinfer.gdn_prefill")


def import_all(modules=MODULES):
    """What imports here need not be waited for in a cell; what does not is reported there."""
    import contextlib
    import importlib

    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def preload(texts, threads=14):
    """The driver compiles the PTX of many kernels side by side."""
    import concurrent.futures
    import contextlib

    def load(text):
        with contextlib.suppress(Exception):  # it fails again, and is reported, in its cell
            kernel(text).preload(0)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(load, texts))


class Gdn:
    """With T and the number of sequences open ("dynamic", as gdn's functions call it) or compiled in ("static")."""

    def __init__(self, cell, sizes, name="gdn", schedule=None):
        self.name = name
        self.packed = cell.N > 1
        self.names = ["q", "k", "v", "beta"]
        self.names += ["a", "A_log", "dt_bias"] if cell.gates == workloads.LAYER else ["gate"]
        self.kernel = kernel(self.text(cell, sizes, schedule))

    @staticmethod
    def text(cell, sizes, schedule=None):
        """One sequence is called without offsets, several with."""
        from gdn import build

        dynamic = sizes == "dynamic"
        packed = cell.N > 1
        sizes_of = (1, None if dynamic else cell.T, cell.Hqk, cell.Hv, cell.K, cell.V)
        options = {"schedule": schedule}
        if packed:
            options.update(N=None if dynamic else cell.N, offsets="i32")
        if cell.gates == workloads.LAYER:
            return build.delta_rule_layer(*sizes_of, **options)
        gate = "channel" if cell.gates == workloads.CHANNEL else "head"
        return build.recurrence(*sizes_of, gate=gate, beta=True, **options)

    def buffers(self, x):
        import torch

        return {"o": torch.full_like(x["v"], float("nan")), "state": x["state"].clone()}

    def call(self, x, buffers):
        offsets = {"offsets": x["starts32"]} if self.packed else {}
        return self.kernel(**{name: x[name] for name in self.names}, **offsets, **buffers)


class Fla:
    """flash-linear-attention's Triton kernels, called as its layers do."""

    name = "FLA"

    def __init__(self, cell):
        if cell.K > 256:
            raise Unsupported(f"K = {cell.K}: at most 256")
        if cell.gates == workloads.CHANNEL:
            from fla.ops.kda import chunk_kda as function
        else:
            from fla.ops.gated_delta_rule import chunk_gated_delta_rule as function

        self.function = function
        self.layer = cell.gates == workloads.LAYER

    def buffers(self, x):
        return {}

    def call(self, x, buffers):
        options = {}
        if self.layer:
            options = {name: x[name] for name in ("A_log", "dt_bias")}
            options.update(use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True)
        o, state = self.function(
            x["q"],
            x["k"],
            x["v"],
            g=x["a"] if self.layer else x["gate"],
            beta=x["beta"],
            initial_state=x["state_k_first"],
            output_final_state=True,
            cu_seqlens=x["starts64"],
            cu_seqlens_cpu=x["starts_cpu"],
            **options,
        )
        return o, state.transpose(2, 3)


def need_plain(cell):
    if (cell.K, cell.V) != (128, 128):
        raise Unsupported(f"K = {cell.K}, V = {cell.V}: only 128")
    if cell.gates == workloads.LAYER:
        raise Unsupported("compared without the layer's normalisation and gate")
    if cell.gates == workloads.CHANNEL:
        raise Unsupported("gates per channel are compared with FLA only")


class FlashQla:
    """FlashQLA's TileLang kernels, called as its own benchmark does, with automatic context parallelism."""

    name = "FlashQLA"

    def __init__(self, cell):
        need_plain(cell)
        from flash_qla import chunk_gated_delta_rule_fwd

        self.function = chunk_gated_delta_rule_fwd

    def buffers(self, x):
        return {}

    def call(self, x, buffers):
        _, _, o, _, state, _ = self.function(
            x["q"],
            x["k"],
            x["v"],
            x["gate"],
            x["beta"],
            scale=x["q"].shape[3] ** -0.5,
            initial_state=x["state_k_first"],
            output_final_state=True,
            output_h=False,
            cu_seqlens=x["starts32"],
            auto_cp=True,
        )
        return o, state.transpose(2, 3)


class FlashInfer:
    """FlashInfer's Hopper kernels; `use_cp` is its own argument."""

    def __init__(self, cell, use_cp):
        self.name = "FlashInfer CP" if use_cp else "FlashInfer"
        need_plain(cell)
        from flashinfer.gdn_prefill import chunk_gated_delta_rule

        self.function = chunk_gated_delta_rule
        self.use_cp = use_cp
        self.longest = max(cell.lengths)

    def buffers(self, x):
        import torch

        return {"output": torch.full_like(x["v"][0], float("nan")), "output_state": torch.empty_like(x["state"])}

    def call(self, x, buffers):
        self.function(
            x["q"][0],
            x["k"][0],
            x["v"][0],
            g=x["alpha"][0],
            beta=x["beta"][0],
            scale=x["q"].shape[3] ** -0.5,
            initial_state=x["state"],
            output_final_state=True,
            cu_seqlens=x["starts64"],
            use_cp=self.use_cp,
            max_seqlen=self.longest,
            **buffers,
        )
        return buffers["output"], buffers["output_state"]


PEERS = {
    "FLA": Fla,
    "FlashQLA": FlashQla,
    "FlashInfer": lambda cell: FlashInfer(cell, False),
    "FlashInfer CP": lambda cell: FlashInfer(cell, True),
}
PACKAGES = {
    "fla-core": "fla",
    "flash-qla": "flash_qla",
    "tilelang": "tilelang",
    "flashinfer-python": "flashinfer",
    "nvidia-cutlass-dsl": "cutlass",
}
