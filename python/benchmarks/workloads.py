# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks run: head configurations, sequence shapes, gate sets, inputs and floors."""

import random
from dataclasses import dataclass

# Key and value heads of the Qwen3.5 models and their tensor-parallel parts, as FlashQLA's tables have them.
HEADS = {
    "2/8": "397B, 122B TP8",
    "4/16": "397B, 122B TP4",
    "8/32": "397B, 122B TP2",
    "16/64": "397B, 122B TP1",
    "16/32": "35B, 9B, 4B TP1",
    "8/24": "27B TP2",
    "16/48": "27B TP1",
    "16/16": "2B, 0.8B TP1",
    "32/32": "symmetric",
}

# The sequence shapes of the same tables; 1x8192 is one sequence, 8192x4 are four of 8192.
SHAPES = {
    "1x32768": (32768,),
    "1x16384": (16384,),
    "1x8192": (8192,),
    "1x4096": (4096,),
    "1x2048": (2048,),
    "28672+4096": (28672, 4096),
    "24576+8192": (24576, 8192),
    "16384+16384": (16384, 16384),
    "8192+24576": (8192, 24576),
    "4096+28672": (4096, 28672),
    "12288+4096": (12288, 4096),
    "6144+2048": (6144, 2048),
    "4096+4096": (4096, 4096),
    "2048+6144": (2048, 6144),
    "1024+7168": (1024, 7168),
    "8192x4": (8192,) * 4,
    "4096x8": (4096,) * 8,
    "2048x4": (2048,) * 4,
    "1024x8": (1024,) * 8,
}

# FlashQLA's benchmark, as models are initialised, and the worst for cutting history off.
GATE_SETS = ("quarter", "trained", "zero")
LAYER = "layer"  # q and k are normalised and the gate is made of the layer's parameters inside the call
CHANNEL = "channel"  # a gate for each key channel: Kimi Delta Attention
GATES = (*GATE_SETS, LAYER, CHANNEL)
GATE_SUBSET = (("2/8", "16/32", "16/64"), ("1x8192", "1x2048", "8192x4", "1024x8"))

MATMUL_RATE = 790e12  # bf16 products on random data, FLOP/s (an H200)
MEMORY_RATE = 4.3e12  # bytes read and written by a copy, bytes/s (an H200)


def parse_heads(text):
    key_heads, value_heads = (int(part) for part in text.split("/"))
    return key_heads, value_heads


def random_lengths(count, total, seed):
    """`count` lengths with the sum `total`, none a multiple of a chunk on purpose, all at least 1."""
    generator = random.Random(seed)
    cuts = sorted(generator.sample(range(1, total), count - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total]))


# Sequences of random lengths, packed.
VARLEN = {
    "8 in 8192": random_lengths(8, 8192, 1),
    "16 in 16384": random_lengths(16, 16384, 2),
    "64 in 32768": random_lengths(64, 32768, 3),
}


@dataclass(frozen=True)
class Cell:
    """One row of the prefill table: sequences packed along time, in bf16 with float32 gates and state."""

    heads: str
    shape: str
    lengths: tuple
    K: int = 128
    V: int = 128
    gates: str = GATE_SETS[0]

    @property
    def Hqk(self):
        return parse_heads(self.heads)[0]

    @property
    def Hv(self):
        return parse_heads(self.heads)[1]

    @property
    def N(self):
        return len(self.lengths)

    @property
    def T(self):
        return sum(self.lengths)

    @property
    def name(self):
        sizes = "" if (self.K, self.V) == (128, 128) else f" {self.K}/{self.V}"
        return f"{self.heads}{sizes} {self.shape} {self.gates}"

    @property
    def starts(self):
        starts = [0]
        for length in self.lengths:
            starts.append(starts[-1] + length)
        return starts

    def state_bytes(self):
        return 4 * self.N * self.Hv * self.K * self.V

    def bytes(self):
        """Bytes that any kernel has to move: inputs and outputs once."""
        gates = 4 * (self.K if self.gates == CHANNEL else 1)
        token = 2 * 2 * self.Hqk * self.K + self.Hv * (2 * 2 * self.V + 4 + gates)
        return self.T * token + 2 * self.state_bytes()

    def flop(self, chunk=64):
        """Products of the chunk form: K K^T, Q K^T, K S, Q S, T W, P U and U^T K; no less is known."""
        per_chunk = 2 * chunk * (2 * chunk * self.K + 3 * self.K * self.V + 2 * chunk * self.V)
        return self.Hv * self.T / chunk * per_chunk

    def floor_us(self):
        """Time of an H200 that does nothing but the larger of the products and the traffic."""
        return max(self.flop() / MATMUL_RATE, self.bytes() / MEMORY_RATE) * 1e6


def cells(heads=None, shapes=None, gates=None):
    """All rows, or those of the given head configurations, shapes and gate sets."""
    rows = [Cell(h, s, lengths) for h in HEADS for s, lengths in SHAPES.items()]
    rows += [Cell(h, "1x8192", SHAPES["1x8192"], gates=LAYER) for h in GATE_SUBSET[0]]
    rows += [Cell(h, s, SHAPES[s], gates=CHANNEL) for h in ("16/16", "32/32") for s in ("1x8192", "1x2048")]
    rows += [Cell(h, s, lengths) for h in GATE_SUBSET[0] for s, lengths in VARLEN.items()]
    few = ("1x8192", "1x2048", "4096+4096", "2048x4")
    rows += [Cell("30/30", s, SHAPES[s], 96, 192) for s in few]
    rows += [Cell("6/6", s, SHAPES[s], 256, 512) for s in few]
    rows += [
        Cell(h, s, SHAPES[s], gates=name) for name in GATE_SETS[1:] for h in GATE_SUBSET[0] for s in GATE_SUBSET[1]
    ]
    wanted = ((heads, "heads"), (shapes, "shape"), (gates, "gates"))
    return [row for row in rows if all(not names or getattr(row, key) in names for names, key in wanted)]


# --- inputs, in torch -------------------------------------------------------------


def normalised(x):
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def softplus(x):
    import torch

    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def layer_gate(a, A_log, dt_bias):
    return -A_log.exp() * softplus(a + dt_bias)


def model_gates(shape, generator, device):
    """a, A_log, dt_bias as at initialisation of the models: A in U(0, 16), dt log-uniform in [1e-3, 0.1]."""
    import torch

    heads = shape[-1]
    A = torch.rand(heads, device=device, generator=generator) * 16
    dt = torch.exp(torch.rand(heads, device=device, generator=generator) * 4.605 - 6.908)
    return {
        "a": torch.randn(shape, device=device, generator=generator),
        "A_log": A.clamp(min=1e-4).log(),
        "dt_bias": dt + torch.log(-torch.expm1(-dt)),
    }


def gate_set(name, shape, generator, device):
    """Log gates of `shape`, float32; every fourth head of "quarter" does not decay."""
    import torch

    if name == CHANNEL:
        return torch.nn.functional.logsigmoid(torch.randn(shape, device=device, generator=generator))
    if name == "zero":
        return torch.zeros(shape, device=device)
    if name == "trained":
        return layer_gate(**model_gates(shape, generator, device))
    if name != "quarter":
        raise ValueError(f"no gate set is called '{name}'; there are {', '.join(GATE_SETS)}")
    gate = torch.nn.functional.logsigmoid(torch.randn(shape, device=device, generator=generator)) / 16
    gate[..., 3::4] = 0
    return gate


def inputs(cell, seed, device="cuda"):
    """One set of tensors: q, k, v, beta, state [N, Hv, V, K], and gate or a, A_log and dt_bias."""
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, device=device, generator=generator)

    tokens, layer = (1, cell.T), cell.gates == LAYER
    x = {name: normal(*tokens, cell.Hqk, cell.K) for name in ("q", "k")}
    x = {name: (value if layer else normalised(value)).bfloat16() for name, value in x.items()}
    x["v"] = normal(*tokens, cell.Hv, cell.V).bfloat16()
    x["beta"] = torch.sigmoid(normal(*tokens, cell.Hv))
    x["state"] = normal(cell.N, cell.Hv, cell.V, cell.K)
    if layer:
        x.update(model_gates((*tokens, cell.Hv), generator, device))
    else:
        tail = (cell.K,) if cell.gates == CHANNEL else ()
        x["gate"] = gate_set(cell.gates, (*tokens, cell.Hv, *tail), generator, device)
    return x


def operands(cell, x):
    """The operands of the recurrence that the tensors of a cell mean, for an oracle."""
    y = {name: x[name] for name in ("q", "k", "v", "beta", "state")}
    if cell.gates != LAYER:
        return dict(y, gate=x["gate"])
    for name in ("q", "k"):
        y[name] = y[name].double() / (y[name].double().square().sum(-1, keepdim=True) + 1e-6).sqrt()
    return dict(y, gate=layer_gate(*(x[name].double() for name in ("a", "A_log", "dt_bias"))))
