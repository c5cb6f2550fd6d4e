# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Textual IR for one gdn operation, from sizes.

Each builder returns the text of a module with one function. The function takes the
operands of the operation and its destinations (`o`, `state`, ...), which are marked
writable so that bufferization works in place, and returns the results. A size of
None is dynamic. Argument names are carried by the attribute `gdn.name`.
"""

from __future__ import annotations

import math
import operator
import re

ELEMENT_TYPES = ("bf16", "f16", "f32")
OFFSET_TYPES = ("i32", "i64")


def tensor(shape, dtype):
    """Text of a ranked tensor type; None is a dynamic size."""
    for size in shape:
        if size is not None and not 0 <= operator.index(size) < 1 << 63:
            raise ValueError(f"{size} is no size; expected None or 0 to 2^63 - 1")
    sizes = "".join(("?" if size is None else str(size)) + "x" for size in shape)
    return f"tensor<{sizes}{dtype}>"


def real(value):
    """Text of an f64 attribute that reads back as exactly `value`."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no finite number")
    text = repr(float(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def affine_map(rank, axes):
    dims = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({dims}) -> ({', '.join(axes)})>"


class Function:
    """Collects arguments and lines of one function and prints the module."""

    def __init__(self, name):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"'{name}' is no function name")
        self.name = name
        self.types = {}
        self.arguments = []
        self.lines = []

    def argument(self, name, shape, dtype, writable=False):
        self.types[name] = tensor(shape, dtype)
        marks = f'gdn.name = "{name}"' + (", bufferization.writable = true" if writable else "")
        self.arguments.append(f"%{name}: {self.types[name]} {{{marks}}}")
        return name

    def destination(self, name, shape, dtype):
        return self.argument(name, shape, dtype, writable=True)

    def line(self, text):
        self.lines.append(text)

    def empty_like(self, name, source, shape, dtype):
        """A fresh tensor; dynamic sizes are those of `source` in the same places."""
        sizes = []
        for axis, size in enumerate(shape):
            if size is None:
                self.line(f"%{name}_c{axis} = arith.constant {axis} : index")
                self.line(f"%{name}_d{axis} = tensor.dim %{source}, %{name}_c{axis} : {self.types[source]}")
                sizes.append(f"%{name}_d{axis}")
        self.types[name] = tensor(shape, dtype)
        self.line(f"%{name} = tensor.empty({', '.join(sizes)}) : {self.types[name]}")
        return name

    def first_part(self, name, shape, dtype):
        """The slice of `shape` at the start of a tensor that has more heads or channels."""
        sizes = []
        for axis, size in enumerate(shape):
            if size is None:
                self.line(f"%{name}_n{axis} = arith.constant {axis} : index")
                self.line(f"%{name}_s{axis} = tensor.dim %{name}, %{name}_n{axis} : {self.types[name]}")
            sizes.append(f"%{name}_s{axis}" if size is None else str(size))
        part = f"{name}_part"
        self.types[part] = tensor(shape, dtype)
        self.line(
            f"%{part} = tensor.extract_slice %{name}[{', '.join('0' * len(shape))}] [{', '.join(sizes)}] "
            f"[{', '.join('1' * len(shape))}] "
            f": {self.types[name]} to {self.types[part]}"
        )
        return part

    def group(self, keyword, names):
        """`keyword(%a, %b : ta, tb)`; nothing where all names are None."""
        names = [name for name in names if name is not None]
        if not names:
            return ""
        values = ", ".join("%" + name for name in names)
        types = ", ".join(self.types[name] for name in names)
        return f"{keyword}({values} : {types})"

    def op(self, results, op, groups, destinations, attributes=(), checkpoints=()):
        """One operation in destination style; a result has its destination's type."""
        parts = [f"gdn.{op}"]
        parts += [text for text in (self.group(k, n) for k, n in groups) if text]
        parts.append(self.group("outs", destinations))
        if checkpoints:
            parts.append(self.group("checkpoints", checkpoints))
        destinations = [*destinations, *checkpoints]
        attributes = [text for text in attributes if text]
        if attributes:
            parts.append("{" + ", ".join(attributes) + "}")
        for result, destination in zip(results, destinations):
            self.types[result] = self.types[destination]
        parts.append("-> " + ", ".join(self.types[name] for name in destinations))
        self.line(", ".join("%" + name for name in results) + " = " + " ".join(parts))

    def elementwise(self, result, sources, shape, dtype, lines, into=None, like=None):
        """`result` = lines(%x, %y) on each element, in a fresh tensor of `dtype` or in `into`.

        `sources` are names, or pairs of a name and the axes along which its dimensions run. `like`
        names the tensor that has the dynamic sizes of `shape`. %@n is the value of line n.
        """
        rank = len(shape)
        axes = [f"d{i}" for i in range(rank)]
        sources = [(source, axes) if isinstance(source, str) else source for source in sources]
        if into is None:
            into = self.empty_like(f"{result}_empty", like or sources[0][0], shape, dtype)
        maps = ", ".join([affine_map(rank, named) for _, named in sources] + [affine_map(rank, axes)])
        kinds = ", ".join(['"parallel"'] * rank)
        names = ", ".join(f"%{source}" for source, _ in sources)
        types = ", ".join(self.types[source] for source, _ in sources)
        self.line(
            f"%{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({names} : {types}) outs(%{into} : {self.types[into]}) {{"
        )
        elements = [self.types[source].rsplit("x", 1)[1].rstrip(">") for source, _ in sources]
        inputs = [f"{result}_in{i}" for i in range(len(sources))]
        arguments = [f"%{name}: {element}" for name, element in zip(inputs, elements)]
        self.line(f"^bb0({', '.join(arguments)}, %{result}_old: {dtype}):")
        for i, element in enumerate(elements):
            if element != "f32":
                self.line(f"  %{result}_x{i} = arith.extf %{inputs[i]} : {element} to f32")
                inputs[i] = f"{result}_x{i}"
        value = inputs[0]
        for number, line in enumerate(lines):
            for letter, name in zip("xy", inputs):
                line = line.replace(f"%{letter}", f"%{name}")
            value = f"{result}_{number}"
            self.line(f"  %{value} = " + line.replace("%@", f"%{result}_"))
        if dtype != "f32":
            self.line(f"  %{result}_out = arith.truncf %{value} : f32 to {dtype}")
            value = f"{result}_out"
        self.line(f"  linalg.yield %{value} : {dtype}")
        self.line(f"}} -> {self.types[into]}")
        self.types[result] = self.types[into]
        return result

    def as_float(self, name, shape, dtype):
        """The operand as float32."""
        return name if dtype == "f32" else self.elementwise(f"{name}_f32", [name], shape, "f32", [])

    def start_of(self, result, initial, initial_dtype, destination, shape):
        """The destination of a state with the initial state in it."""
        kind = self.types[destination]
        dtype = kind.rsplit("x", 1)[1].rstrip(">")
        if initial_dtype == "in_place":
            return destination
        if initial_dtype not in (None, dtype):
            return self.elementwise(result, [initial], shape, dtype, [], into=destination)
        if initial_dtype is None:
            self.line(f"%{result}_zero = arith.constant 0.0 : {dtype}")
            self.line(f"%{result} = linalg.fill ins(%{result}_zero : {dtype}) outs(%{destination} : {kind}) -> {kind}")
        else:
            source = self.types[initial]
            self.line(f"%{result} = linalg.copy ins(%{initial} : {source}) outs(%{destination} : {kind}) -> {kind}")
        self.types[result] = kind
        return result

    def module(self, results):
        types = ", ".join(self.types[name] for name in results)
        arguments = (",\n" + " " * (len(self.name) + 14)).join(self.arguments)
        body = "".join(f"    {line}\n" for line in self.lines)
        values = ", ".join("%" + name for name in results)
        result_types = types if len(results) == 1 else f"({types})"
        return (
            f"module {{\n  func.func @{self.name}({arguments})\n      -> {result_types} {{\n"
            f"{body}    return {values} : {types}\n  }}\n}}\n"
        )


def _need_type(name, dtype, allowed):
    if dtype not in allowed:
        raise ValueError(f"{name} cannot have element type '{dtype}'; expected one of {', '.join(allowed)}")


PRECISIONS = ("default", "high")


def schedule(
    phases="split",
    chunk=64,
    value_block=64,
    stages=1,
    segments=0,
    segment_chunks=1,
    warps=1,
    streaming=False,
    precision="default",
    wide_from=0,
    overlap=False,
    scores_ahead=False,
    resident_from=0,
):
    """Text of a schedule attribute, for the argument `schedule` of the builders.

    With `phases` "auto" only the precision is asked for and the compiler chooses the rest.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision is '{precision}'; expected one of {', '.join(PRECISIONS)}")
    if phases == "auto":
        return f"#gdn.schedule<precision = {precision}>"
    text = f"phases = {phases}, chunk = {chunk}, value_block = {value_block}"
    if stages != 1:
        text += f", stages = {stages}"
    if segments:
        text += f", segments = {segments}, segment_chunks = {segment_chunks}"
    if warps != 1:
        text += f", warps = {warps}"
    if streaming:
        text += ", streaming = true"
    if overlap:
        text += ", overlap = true"
    if precision != "default":
        text += f", precision = {precision}"
    if wide_from:
        text += f", wide_from = {wide_from}"
    if scores_ahead:
        text += ", scores_ahead = true"
    if resident_from:
        text += f", resident_from = {resident_from}"
    return f"#gdn.schedule<{text}>"


# --- the recurrence ---------------------------------------------------------------


def recurrence(
    B,
    T,
    Hqk,
    Hv,
    K,
    V,
    *,
    N=None,
    dtype="bf16",
    gate=None,
    beta=False,
    erase_write=False,
    offsets=None,
    slots=None,
    S=None,
    update_state=True,
    every=None,
    state_layout="v_first",
    gate_dtype="f32",
    beta_dtype="f32",
    state_dtype="f32",
    out_dtype=None,
    checkpoint_dtype="f32",
    scale=None,
    schedule=None,
    name="forward",
):
    """Module with one `gdn.recurrence`.

    gate: None, "head" ([B, T, Hv]) or "channel" ([B, T, Hv, K]); offsets: None, "i32"
    or "i64", and then N counts the sequences (None: dynamic). slots: None, "i32" or
    "i64", and then `state` is a pool of S entries (None: dynamic), of which sequence n
    has number slots[n], or none if that is below 0. Without `update_state` the initial
    state is the argument `initial`, which is only read. With `every` the states after
    every so many tokens go to `checkpoints` ([B, T // every, ...]). o has the type of q, k
    and v, or out_dtype "f32". Arguments in order: q, k, v, gate, beta or erase and write,
    offsets, slots, initial, o, state, checkpoints.
    """
    _need_type("q, k, v", dtype, ELEMENT_TYPES)
    out_dtype = out_dtype or dtype
    _need_type("o", out_dtype, ("f32", dtype))
    if gate not in (None, "head", "channel"):
        raise ValueError(f"gate is '{gate}'; expected None, 'head' or 'channel'")
    if state_layout not in ("v_first", "k_first"):
        raise ValueError(f"state_layout is '{state_layout}'; expected 'v_first' or 'k_first'")
    f = Function(name)
    for operand in ("q", "k"):
        f.argument(operand, (B, T, Hqk, K), dtype)
    f.argument("v", (B, T, Hv, V), dtype)
    groups = [("ins", ["q", "k", "v"])]

    def optional(present, operand, shape, element, allowed):
        if present:
            _need_type(operand, element, allowed)
            groups.append((operand, [f.argument(operand, shape, element)]))

    tail = (K,) if gate == "channel" else ()
    optional(gate, "gate", (B, T, Hv) + tail, gate_dtype, ELEMENT_TYPES)
    optional(beta, "beta", (B, T, Hv), beta_dtype, ELEMENT_TYPES)
    optional(erase_write, "erase", (B, T, Hv, K), beta_dtype, ELEMENT_TYPES)
    optional(erase_write, "write", (B, T, Hv, V), beta_dtype, ELEMENT_TYPES)
    starts = None if N is None else N + 1
    optional(offsets, "offsets", (starts,), offsets, OFFSET_TYPES)
    sequences = N if offsets else B
    optional(slots, "slots", (sequences,), slots, OFFSET_TYPES)
    if S is not None and not slots:
        raise ValueError(f"S = {S} counts the entries of a pool, which needs slots")
    _need_type("state", state_dtype, ELEMENT_TYPES)
    matrix = (V, K) if state_layout == "v_first" else (K, V)
    states = (S if slots else sequences, Hv) + matrix
    optional(not update_state, "initial", states, state_dtype, ELEMENT_TYPES)
    f.destination("o", (B, T, Hv, V), out_dtype)
    results, destinations = ["y"], ["o"]
    if update_state:
        results.append("final")
        destinations.append(f.destination("state", states, state_dtype))
    kept = []
    if every is not None:
        if operator.index(every) < 1:
            raise ValueError(f"every is {every}; a checkpoint needs at least 1 token")
        _need_type("checkpoints", checkpoint_dtype, ELEMENT_TYPES)
        count = None if T is None else T // every
        kept.append(f.destination("checkpoints", (B, count, Hv) + matrix, checkpoint_dtype))
        results.append("inner")
    attributes = [
        "" if scale is None else f"scale = {real(scale)}",
        "" if every is None else f"every = {every} : i64",
        "" if state_layout == "v_first" else f"state_layout = #gdn.state_layout<{state_layout}>",
        "" if schedule is None else f"schedule = {schedule}",
    ]
    f.op(results, "recurrence", groups, destinations, attributes, kept)
    return f.module(results)


def delta_rule_layer(
    B,
    T,
    Hqk,
    Hv,
    K,
    V,
    *,
    N=None,
    dtype="bf16",
    gate="head",
    lower_bound=None,
    eps=1e-6,
    offsets=None,
    state_dtype="f32",
    schedule=None,
    name="forward",
):
    """The delta rule of a Qwen3.5 or Kimi Linear layer: normalised q and k, model gates.

    offsets and N as in recurrence.

    Arguments: q, k, v, a ([B, T, Hv] or [B, T, Hv, K]), A_log, dt_bias, beta, offsets, o, state.
    """
    f = Function(name)
    for operand in ("q", "k"):
        f.argument(operand, (B, T, Hqk, K), dtype)
    f.argument("v", (B, T, Hv, V), dtype)
    tail = (K,) if gate == "channel" else ()
    f.argument("a", (B, T, Hv) + tail, "f32")
    f.argument("A_log", (Hv,), "f32")
    f.argument("dt_bias", (Hv,) + tail, "f32")
    f.argument("beta", (B, T, Hv), "f32")
    if offsets:
        f.argument("offsets", (None if N is None else N + 1,), offsets)
    f.destination("o", (B, T, Hv, V), dtype)
    f.destination("state", (N if offsets else B, Hv, V, K), state_dtype)
    for operand in ("q", "k"):
        empty = f.empty_like(f"{operand}_empty", operand, (B, T, Hqk, K), dtype)
        f.op([f"{operand}_norm"], "l2norm", [("ins", [operand])], [empty], [f"eps = {real(eps)}"])
    empty = f.empty_like("gate_empty", "a", (B, T, Hv) + tail, "f32")
    bound = "" if lower_bound is None else f"lower_bound = {real(lower_bound)}"
    f.op(["gate"], "gate", [("ins", ["a", "A_log"]), ("bias", ["dt_bias"])], [empty], [bound])
    groups = [("ins", ["q_norm", "k_norm", "v"]), ("gate", ["gate"]), ("beta", ["beta"])]
    groups += [("offsets", ["offsets"])] if offsets else []
    attributes = ["" if schedule is None else f"schedule = {schedule}"]
    f.op(["y", "final"], "recurrence", groups, ["o", "state"], attributes)
    return f.module(["y", "final"])


# --- parts of a token mixer -------------------------------------------------------


def l2norm(shape, *, dtype="bf16", eps=1e-6, name="forward"):
    """Arguments: x, y, both of `shape`."""
    f = Function(name)
    f.argument("x", shape, dtype)
    f.destination("y", shape, dtype)
    f.op(["result"], "l2norm", [("ins", ["x"])], ["y"], [f"eps = {real(eps)}"])
    return f.module(["result"])


def gate(
    B, T, Hv, K=None, *, dtype="f32", rate_dtype="f32", bias=True, bias_dtype="f32", lower_bound=None, name="forward"
):
    """Arguments: a ([B, T, Hv], or [B, T, Hv, K] with K), A_log, dt_bias if `bias`, g."""
    tail = () if K is None else (K,)
    f = Function(name)
    f.argument("a", (B, T, Hv) + tail, dtype)
    f.argument("A_log", (Hv,), rate_dtype)
    biases = [f.argument("dt_bias", (Hv,) + tail, bias_dtype)] if bias else []
    f.destination("g", (B, T, Hv) + tail, "f32")
    rate = f.as_float("A_log", (Hv,), rate_dtype)
    biases = [f.as_float(operand, (Hv,) + tail, bias_dtype) for operand in biases]
    bound = "" if lower_bound is None else f"lower_bound = {real(lower_bound)}"
    f.op(["result"], "gate", [("ins", ["a", rate]), ("bias", biases)], ["g"], [bound])
    return f.module(["result"])


def short_conv(
    B,
    T,
    D,
    W=4,
    *,
    S=None,
    N=None,
    dtype="bf16",
    weight_dtype=None,
    state_dtype=None,
    bias=False,
    offsets=None,
    activation="silu",
    initial="in_place",
    row=None,
    norm=None,
    eps=1e-6,
    name="forward",
):
    """Arguments: x, w, bias if asked for, offsets if asked for, initial, y, state ([N, D, S]).

    `initial` is the type of the argument of that name; without it the initial state is what `state`
    holds ("in_place") or zeros (None). `row`: x has so many channels in memory, of which the first D count.
    `norm`, heads and their size: the first channels of the result are divided by the norms of these heads.
    """
    weight_dtype = weight_dtype or dtype
    f = Function(name)
    f.argument("x", (B, T, row or D), dtype)
    f.argument("w", (D, W), weight_dtype)
    groups = [("ins", [f.first_part("x", (B, T, D), dtype) if row else "x", "w"])]
    if bias:
        groups.append(("bias", [f.argument("bias", (D,), weight_dtype)]))
    if offsets:
        _need_type("offsets", offsets, OFFSET_TYPES)
        starts = None if N is None else N + 1
        groups.append(("offsets", [f.argument("offsets", (starts,), offsets)]))
    shape = (N if offsets else B, D, W - 1 if S is None else S)
    if initial not in (None, "in_place"):
        f.argument("initial", shape, initial)
    f.destination("y", (B, T, D), dtype)
    f.destination("state", shape, state_dtype or dtype)
    start = f.start_of("start", "initial", initial, "state", shape)
    attributes = ["" if activation == "none" else f"activation = #gdn.activation<{activation}>"]
    f.op(["result", "final"], "short_conv", groups, ["y", start], attributes)
    result = _normalize_heads(f, "result", (B, T, D), dtype, *norm, eps) if norm else "result"
    return f.module([result, "final"])


def _normalize_heads(f, name, shape, dtype, heads, size, eps):
    """`name` [B, T, D] with its first heads divided by their norms, in place."""
    part = f.first_part(name, (*shape[:2], heads * size), dtype)
    sizes = [f"%{name}_s{axis}" if extent is None else str(extent) for axis, extent in enumerate(shape[:2])]
    kind, whole = tensor((*shape[:2], heads, size), dtype), f.types[name]
    groups, extents = "[[0], [1], [2, 3]]", ", ".join([*sizes, str(heads * size)])
    f.line(
        f"%{name}_heads = tensor.expand_shape %{part} {groups} output_shape [{', '.join(sizes)}, {heads}, {size}] "
        f": {f.types[part]} into {kind}"
    )
    f.types[f"{name}_heads"] = kind
    f.op([f"{name}_norm"], "l2norm", [("ins", [f"{name}_heads"])], [f"{name}_heads"], [f"eps = {real(eps)}"])
    f.line(f"%{name}_flat = tensor.collapse_shape %{name}_norm {groups} : {kind} into {f.types[part]}")
    f.line(
        f"%{name}_y = tensor.insert_slice %{name}_flat into %{name}[0, 0, 0] [{extents}] [1, 1, 1] "
        f": {f.types[part]} into {whole}"
    )
    f.types[f"{name}_y"] = whole
    return f"{name}_y"


def gated_rms_norm(shape, *, dtype="bf16", weight_dtype=None, eps=1e-6, activation="silu", name="forward"):
    """Arguments: x, z, w ([V]), y; x, z, y of `shape`, whose last size is V."""
    f = Function(name)
    f.argument("x", shape, dtype)
    f.argument("z", shape, dtype)
    f.argument("w", (shape[-1],), weight_dtype or dtype)
    f.destination("y", shape, dtype)
    attributes = [f"eps = {real(eps)}", f"activation = #gdn.activation<{activation}>"]
    f.op(["result"], "gated_rms_norm", [("ins", ["x", "z", "w"])], ["y"], attributes)
    return f.module(["result"])


# --- parts of a chunk -------------------------------------------------------------


def cumsum(shape, *, dtype="f32", name="forward"):
    """Arguments: g, y, both of `shape`; the sum runs along dimension 0."""
    f = Function(name)
    f.argument("g", shape, dtype)
    f.destination("y", shape, dtype)
    f.op(["result"], "cumsum", [("ins", ["g"])], ["y"])
    return f.module(["result"])


def scores(C, K, *, gate=None, strict=False, dtype="f32", name="forward"):
    """Arguments: x, y ([C, K]), gate ([C] for "head", [C, K] for "channel"), A ([C, C])."""
    f = Function(name)
    f.argument("x", (C, K), dtype)
    f.argument("y", (C, K), dtype)
    groups = [("ins", ["x", "y"])]
    if gate is not None:
        shape = (C, K) if gate == "channel" else (C,)
        groups.append(("gate", [f.argument("gate", shape, "f32")]))
    f.destination("A", (C, C), "f32")
    f.op(["result"], "scores", groups, ["A"], ["strict" if strict else ""])
    return f.module(["result"])


def tri_inverse(C, *, dtype="f32", name="forward"):
    """Arguments: L, X, both [C, C]."""
    f = Function(name)
    f.argument("L", (C, C), dtype)
    f.destination("X", (C, C), dtype)
    f.op(["result"], "tri_inverse", [("ins", ["L"])], ["X"])
    return f.module(["result"])
