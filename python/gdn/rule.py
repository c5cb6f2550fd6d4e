# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled recurrence is specialised on, and the IR of it.

A `Rule` has head counts and sizes, element types and options, but not B, T and N, which are
dynamic in the IR; only a dense call of at most STEP_TOKENS tokens has a static T, because its
kernel walks the tokens with the state in registers.
"""

from __future__ import annotations

from typing import NamedTuple

from . import build

# Tokens up to which the state is walked token by token. gdn-select-schedule has the same number.
STEP_TOKENS = 8

PER_TOKEN = ("q", "k", "v", "gate", "beta", "erase", "write")


class Rule(NamedTuple):
    """One kernel. An operand that is absent has the element type None."""

    key_heads: int
    value_heads: int
    K: int
    V: int
    dtype: str  # of q, k, v and, without out_dtype, o
    scale: float
    gate: str | None = None  # None, "head" or "channel"
    gate_form: str = "log"  # "log", "linear", "raw" or "constant"
    gate_dtype: str | None = None
    rate_dtype: str | None = None  # of A_log; raw gates only, None: zeros
    bias_dtype: str | None = None  # of dt_bias
    lower_bound: float | None = None
    beta: str | None = None  # None, "value", "sigmoid", "2sigmoid" or "one"
    beta_dtype: str | None = None
    erase_dtype: str | None = None
    write_dtype: str | None = None
    qk_l2norm: bool = False
    v_first: bool = True
    offsets: str | None = None  # element type of cu_seqlens
    slots: str | None = None  # element type of the slots of a pool of states
    initial: str | None = None  # None: zeros; "in_place": what the destination holds; else its element type
    state_dtype: str | None = "f32"  # of the destination; None: the initial state is only read
    every: int | None = None  # tokens from one checkpoint to the next
    checkpoint_dtype: str | None = None
    tokens: int | None = None  # static T
    schedule: str | None = None
    out_dtype: str | None = None  # of o
    eps: float = 1e-6
    # Elements from one token to the next of the PER_TOKEN operands in memory, None where they are contiguous or
    # absent: a multiple of the last size. Such an operand is declared with more heads, of which the first are used.
    rows: tuple = (None,) * 7

    def per_token(self):
        """Heads and sizes behind B and T of the operands that have one entry per token."""
        keys, values = (self.key_heads, self.K), (self.value_heads, self.V)
        gate = (self.value_heads, *((self.K,) if self.gate == "channel" else ()))
        tails = (keys, keys, values, gate, (self.value_heads,), (self.value_heads, self.K), values)
        return dict(zip(PER_TOKEN, tails))

    def in_memory(self):
        """The same as they lie in memory, of those that are slices of more."""
        tails = self.per_token().items()
        rows = zip(tails, self.rows)
        return {name: (row // (tail[1:] or (1,))[0], *tail[1:]) for (name, tail), row in rows if row is not None}

    def arguments(self):
        """Names of the arguments of the compiled function, in order."""
        present = {
            "gate": self.gate,
            "A_log": self.rate_dtype,
            "dt_bias": self.bias_dtype,
            "beta": self.beta_dtype,
            "erase": self.erase_dtype,
            "write": self.write_dtype,
            "offsets": self.offsets,
            "slots": self.slots,
            "initial": self.initial not in (None, "in_place"),
        }
        state = ["state"] if self.state_dtype else []
        checkpoints = ["checkpoints"] if self.every else []
        return ["q", "k", "v", *(name for name, there in present.items() if there), "o", *state, *checkpoints]


class _Writer:
    """Writes the function of one rule."""

    def __init__(self, rule, name):
        self.rule = rule
        self.f = build.Function(name)
        # T of dense rules may be static; packed ones have B = 1.
        self.B = 1 if rule.offsets else None
        self.T = rule.tokens

    def shape(self, heads, *tail):
        return (self.B, self.T, heads, *tail)

    def accepted(self, name, dtype):
        """The operand in an element type that gdn.recurrence takes: float32 or that of q."""
        part = self.parts[name]
        return part if dtype == self.rule.dtype else self.f.as_float(part, self.shapes[name], dtype)

    # --- arguments ---

    def add_arguments(self, before=()):
        """The arguments of the rule; `before` the destinations those of (name, shape, type)."""
        r, f = self.rule, self.f
        self.gate_shape = self.shape(r.value_heads, *((r.K,) if r.gate == "channel" else ()))
        shapes = {
            "q": self.shape(r.key_heads, r.K),
            "k": self.shape(r.key_heads, r.K),
            "v": self.shape(r.value_heads, r.V),
            "gate": (r.value_heads,) if r.gate_form == "constant" else self.gate_shape,
            "A_log": (r.value_heads,),
            "dt_bias": (r.value_heads, *self.gate_shape[3:]),
            "beta": self.shape(r.value_heads),
            "erase": self.shape(r.value_heads, r.K),
            "write": self.shape(r.value_heads, r.V),
            "offsets": (None,),
            "slots": (None,),
        }
        dtypes = {
            "gate": r.gate_dtype,
            "A_log": r.rate_dtype,
            "dt_bias": r.bias_dtype,
            "beta": r.beta_dtype,
            "erase": r.erase_dtype,
            "write": r.write_dtype,
            "offsets": r.offsets,
            "slots": r.slots,
            "initial": r.initial,
        }
        matrix = (r.V, r.K) if r.v_first else (r.K, r.V)
        self.state_shape = (None, r.value_heads, *matrix)
        shapes["initial"] = self.state_shape
        self.shapes = shapes
        inputs = [name for name in r.arguments() if name not in ("o", "state", "checkpoints")]
        in_memory = r.in_memory()
        for name in inputs:
            shape = (*shapes[name][:2], *in_memory[name]) if name in in_memory else shapes[name]
            f.argument(name, shape, dtypes.get(name, r.dtype))
        for name, shape, dtype in before:
            f.argument(name, shape, dtype)
        f.destination("o", shapes["v"], r.out_dtype or r.dtype)
        if r.state_dtype:
            f.destination("state", self.state_shape, r.state_dtype)
        if r.every:
            f.destination("checkpoints", (self.B, None, *self.state_shape[1:]), r.checkpoint_dtype)
        self.parts = {name: name for name in inputs}
        for name in in_memory:
            self.parts[name] = f.first_part(name, shapes[name], dtypes.get(name, r.dtype))

    # --- operands of the recurrence ---

    def normalized(self, name):
        part = self.parts[name]
        if not self.rule.qk_l2norm:
            return part
        f, shape = self.f, self.shapes[name]
        empty = f.empty_like(f"{name}_empty", name, shape, self.rule.dtype)
        f.op([f"{name}_norm"], "l2norm", [("ins", [part])], [empty], [f"eps = {build.real(self.rule.eps)}"])
        return f"{name}_norm"

    def log_gate(self):
        r, f = self.rule, self.f
        if r.gate is None:
            return None
        if r.gate_form == "log":
            return self.accepted("gate", r.gate_dtype)
        if r.gate_form == "constant":
            shape = self.shape(r.value_heads)
            return self.f.elementwise("log_gate", [("gate", ["d2"])], shape, "f32", [], like="v")
        if r.gate_form == "linear":
            return self.f.elementwise("log_gate", [self.parts["gate"]], self.gate_shape, "f32", _LOG)
        bias = "dt_bias" if r.bias_dtype else None
        if r.rate_dtype:
            rate = f.as_float("A_log", self.shapes["A_log"], r.rate_dtype)
        else:
            rate, kind = "rate", build.tensor((r.value_heads,), "f32")
            f.line("%rate_zero = arith.constant 0.0 : f32")
            f.line(f"%rate_empty = tensor.empty() : {kind}")
            f.line(f"%rate = linalg.fill ins(%rate_zero : f32) outs(%rate_empty : {kind}) -> {kind}")
            f.types[rate] = kind
        if bias:
            bias = f.as_float(bias, self.shapes[bias], r.bias_dtype)
        empty = f.empty_like("log_gate_empty", "gate", self.gate_shape, "f32")
        bound = "" if r.lower_bound is None else f"lower_bound = {build.real(r.lower_bound)}"
        groups = [("ins", [self.parts["gate"], rate]), ("bias", [bias])]
        f.op(["log_gate"], "gate", groups, [empty], [bound])
        return "log_gate"

    def write_strength(self):
        r, f = self.rule, self.f
        if r.beta is None:
            return None
        shape = self.shapes["beta"]
        if r.beta == "value":
            return self.accepted("beta", r.beta_dtype)
        if r.beta == "one":
            empty = f.empty_like("beta_empty", "v", shape, "f32")
            f.line("%one = arith.constant 1.0 : f32")
            f.line(f"%beta = linalg.fill ins(%one : f32) outs(%{empty} : {f.types[empty]}) -> {f.types[empty]}")
            f.types["beta"] = f.types[empty]
            return "beta"
        return self.f.elementwise("strength", [self.parts["beta"]], shape, "f32", _SIGMOID[r.beta])

    def recurrence(self, o):
        """The op itself, with `o` as destination; its results are y and final."""
        r, f = self.rule, self.f
        groups = [("ins", [self.normalized("q"), self.normalized("k"), self.parts["v"]])]
        groups += [("gate", [self.log_gate()]), ("beta", [self.write_strength()])]
        for name, dtype in (("erase", r.erase_dtype), ("write", r.write_dtype)):
            if dtype:
                groups.append((name, [self.accepted(name, dtype)]))
        for name, dtype in (("offsets", r.offsets), ("slots", r.slots)):
            if dtype:
                groups.append((name, [name]))
        attributes = [
            f"scale = {build.real(r.scale)}",
            f"every = {r.every} : i64" if r.every else "",
            "" if r.v_first else "state_layout = #gdn.state_layout<k_first>",
            "" if r.schedule is None else f"schedule = {r.schedule}",
        ]
        results, destinations = ["y"], [o]
        if r.state_dtype:
            results.append("final")
            destinations.append(f.start_of("start", "initial", r.initial, "state", self.state_shape))
        else:
            groups.append(("initial", ["initial"]))
        kept = ["checkpoints"] if r.every else []
        results += ["inner"] if r.every else []
        f.op(results, "recurrence", groups, destinations, attributes, kept)
        return results

    def write(self):
        self.add_arguments()
        return self.f.module(self.recurrence("o"))


# sigmoid(x) = 1 / (1 + exp(-x)); exp overflows to infinity, its reciprocal is 0.
_SIGMOID = {
    form: [
        "arith.negf %x : f32",
        "math.exp %@0 : f32",
        "arith.constant 1.0 : f32",
        "arith.addf %@1, %@2 : f32",
        f"arith.constant {numerator} : f32",
        "arith.divf %@4, %@3 : f32",
    ]
    for form, numerator in (("sigmoid", "1.0"), ("2sigmoid", "2.0"))
}

# log(x) = e ln 2 + 2 atanh((m - 1) / (m + 1)) with x = m 2^e and m in [0.7, 1.42): gates near 1 keep
# their relative accuracy, which the hardware's logarithm does not give. 0 gives -inf, below NaN.
_LOG = [
    "arith.bitcast %x : f32 to i32",
    "arith.constant 1060439283 : i32",  # bits of sqrt(1/2)
    "arith.subi %@0, %@1 : i32",
    "arith.constant 23 : i32",
    "arith.shrsi %@2, %@3 : i32",
    "arith.shli %@4, %@3 : i32",
    "arith.subi %@0, %@5 : i32",
    "arith.bitcast %@6 : i32 to f32",  # m
    "arith.sitofp %@4 : i32 to f32",  # e
    "arith.constant 1.0 : f32",
    "arith.subf %@7, %@9 : f32",
    "arith.addf %@7, %@9 : f32",
    "arith.divf %@10, %@11 : f32",  # s
    "arith.mulf %@12, %@12 : f32",
    "arith.constant 0.22222222 : f32",
    "arith.constant 0.28571430 : f32",
    "arith.constant 0.4 : f32",
    "arith.constant 0.66666669 : f32",
    "arith.constant 2.0 : f32",
    "math.fma %@13, %@14, %@15 : f32",
    "math.fma %@13, %@19, %@16 : f32",
    "math.fma %@13, %@20, %@17 : f32",
    "math.fma %@13, %@21, %@18 : f32",
    "arith.mulf %@12, %@22 : f32",
    "arith.constant 0.69314718 : f32",
    "math.fma %@8, %@24, %@23 : f32",
    "arith.constant 0.0 : f32",
    "arith.cmpf ogt, %x, %@26 : f32",
    "arith.cmpf oeq, %x, %@26 : f32",
    "arith.constant 0xFF800000 : f32",
    "arith.constant 0x7FC00000 : f32",
    "arith.select %@28, %@29, %@30 : f32",
    "arith.select %@27, %@25, %@31 : f32",
]


class NormalizedRule(NamedTuple):
    """Linear attention divided by its normaliser: o_t / (scale q_t . z_t + 1e-10), z_t the sum of the keys so far."""

    rule: Rule
    sums: str | None  # element type of the initial sum of keys, None: zeros

    def arguments(self):
        *inputs, o, state = self.rule.arguments()
        return [*inputs, *(["sums"] if self.sums else []), o, state, "final_sums"]


class _NormalizedWriter(_Writer):
    """The sum of keys is the state of the same recurrence on values 1, of size 1."""

    def __init__(self, key, name):
        super().__init__(key.rule, name)
        self.key = key

    def write(self):
        r, f = self.rule, self.f
        sums_shape, column = (None, r.value_heads, 1, r.K), self.shape(r.value_heads, 1)
        self.add_arguments(before=[("sums", sums_shape, self.key.sums)] if self.key.sums else [])
        f.destination("final_sums", sums_shape, "f32")
        f.line(f"%unit = arith.constant 1.0 : {r.dtype}")
        ones, values = (
            f.empty_like(name, "v", shape, r.dtype) for name, shape in (("u0", column), ("o0", self.shapes["v"]))
        )
        f.line(f"%ones = linalg.fill ins(%unit : {r.dtype}) outs(%{ones} : {f.types[ones]}) -> {f.types[ones]}")
        f.types["ones"] = f.types[ones]
        below = f.empty_like("below_empty", "v", column, r.dtype)
        start = self.f.start_of("sums_start", "sums", self.key.sums, "final_sums", sums_shape)
        groups = [("ins", ["q", "k", "ones"])] + ([("offsets", ["offsets"])] if r.offsets else [])
        f.op(["divisor", "last_sums"], "recurrence", groups, [below, start], [f"scale = {build.real(r.scale)}"])
        self.recurrence(values)
        sources = ["y", ("divisor", ["d0", "d1", "d2", "0"])]
        lines = ["arith.constant 1.0e-10 : f32", "arith.addf %y, %@0 : f32", "arith.divf %x, %@1 : f32"]
        self.f.elementwise("quotient", sources, self.shapes["v"], r.dtype, lines, into="o")
        return f.module(["quotient", "final", "last_sums"])


def normalized_ir(key, name="forward"):
    """Module text of a NormalizedRule; returns o, the final state and the final sums of keys."""
    return _NormalizedWriter(key, name).write()


def ir(rule, name="forward"):
    """Module text of a rule. The arguments are those of `rule.arguments()`; returns o and the final state."""
    return _Writer(rule, name).write()
