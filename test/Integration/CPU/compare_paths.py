# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the cases of one model through two paths of gdn-to-cpu and compares what they print.

    compare_paths.py MODEL [--path linalg] [--print-module]

Needs gdn-opt and mlir-runner on PATH and no Python package. Inputs are pseudo-random and
computed by the program itself: keys of about unit length, gates of 0 to -1 with some of
-80 and -inf, beta and erase up to 2. Destinations start as NaN.
"""

import argparse
import itertools
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass

# gate, correction
MODELS = {
    "linear-attention": (None, None),
    "mamba2": ("head", None),
    "gla": ("channel", None),
    "deltanet": (None, "beta"),
    "gated-deltanet": ("head", "beta"),
    "kimi-delta-attention": ("channel", "beta"),
    "gated-deltanet-2": ("channel", "erase_write"),
}
# Largest rms(x - r) / rms(r). The limit for f32 is the rounding of gate sums of -6000.
LIMITS = {"f32": 5e-5, "bf16": 2e-3}


@dataclass
class Case:
    """One function; `calls` are numbers of tokens or lists of offsets."""

    chunk: int
    calls: list
    dtype: str = "f32"
    layout: str = "v_first"
    B: int = 2
    Hqk: int = 1
    Hv: int = 2
    K: int = 24
    V: int = 20
    offset_type: str = "i32"
    factor_type: str = "f32"
    state_type: str = "f32"
    value_block: int = 64
    phases: str = "fused"
    static: bool = False
    slots: list = None
    pool: int = None

    @property
    def packed(self):
        return isinstance(self.calls[0], list)

    @property
    def batch(self):
        return 1 if self.packed else self.B


def cases():
    """Each chunk with both element types and both layouts, packed and in batches."""
    packed = [[0, 0, 3, 40, 40, 77], [0, 0, 0, 64, 64, 64]]
    for chunk, layout, other in ((16, "v_first", "k_first"), (32, "k_first", "v_first"), (64, "v_first", "k_first")):
        yield Case(chunk, [0, 1, 75], layout=layout)
        yield Case(
            chunk, packed, "bf16", other, Hqk=2, K=16, V=48, factor_type="bf16" if chunk == 32 else "f32",
            offset_type="i64" if chunk == 32 else "i32",
        )  # fmt: skip
    yield Case(32, [75], "bf16", "v_first", Hv=3, state_type="bf16", value_block=16, static=True)
    yield Case(64, packed, "f32", "k_first", K=37, V=33)
    yield Case(16, [1, 5], phases="step")
    yield Case(16, [1, 21], slots=[2, -1], pool=3)
    yield Case(32, packed[:1], "bf16", "k_first", slots=[1, 3, 0, 5, -1], pool=6, offset_type="i64", value_block=8)


def tensor(shape, dtype):
    return "tensor<" + "".join(("?" if n is None else str(n)) + "x" for n in shape) + dtype + ">"


class Program:
    """Text of a module whose main prints the results of every call."""

    def __init__(self, model):
        self.gate, self.correction = MODELS[model]
        self.functions, self.main = [], []
        self.names = (f"%v{i}" for i in itertools.count())
        self.seeds = itertools.count(1)
        self.labels = []

    def emit(self, text):
        name = next(self.names)
        self.main.append(f"  {name} = {text}")
        return name

    def operands(self, case):
        """(group, name, kind, shape without T, element type) of the inputs."""
        f = case.factor_type
        yield "ins", "q", "value", (case.Hqk, case.K), case.dtype
        yield "ins", "k", "key", (case.Hqk, case.K), case.dtype
        yield "ins", "v", "value", (case.Hv, case.V), case.dtype
        if self.gate:
            yield "gate", "g", "gate", (case.Hv,) + ((case.K,) if self.gate == "channel" else ()), f
        if self.correction == "beta":
            yield "beta", "b", "beta", (case.Hv,), f
        if self.correction == "erase_write":
            yield "erase", "e", "beta", (case.Hv, case.K), f
            yield "write", "w", "beta", (case.Hv, case.V), f

    def function(self, case):
        T = case.calls[0] if case.static else None
        groups, arguments = {}, []

        def argument(group, name, type):
            arguments.append(f"%{name}: {type}")
            groups.setdefault(group, []).append((name, type))

        for group, name, _, shape, dtype in self.operands(case):
            argument(group, name, tensor((case.batch, T) + shape, dtype))
        if case.packed:
            argument("offsets", "cu", tensor((None,), case.offset_type))
        if case.slots:
            argument("slots", "at", tensor((len(case.slots),), case.offset_type))
        matrix = (case.V, case.K) if case.layout == "v_first" else (case.K, case.V)
        out = tensor((case.batch, T, case.Hv, case.V), case.dtype)
        state = tensor((None if case.packed or case.slots else case.B, case.Hv) + matrix, case.state_type)
        argument("outs", "o", out)
        argument("outs", "s", state)
        text = " ".join(
            f"{group}({', '.join('%' + n for n, _ in values)} : {', '.join(t for _, t in values)})"
            for group, values in groups.items()
        )
        name = f"@case{len(self.functions)}"
        schedule = f"phases = {case.phases}, chunk = {case.chunk}, value_block = {case.value_block}"
        attributes = f"state_layout = #gdn.state_layout<{case.layout}>, schedule = #gdn.schedule<{schedule}>"
        self.functions.append(
            f"func.func {name}({', '.join(arguments)}) -> ({out}, {state}) {{\n"
            f"  %r:2 = gdn.recurrence {text} {{{attributes}}} -> {out}, {state}\n"
            f"  return %r#0, %r#1 : {out}, {state}\n}}"
        )
        types = [text.split(": ")[1] for text in arguments]
        return name, types, matrix, out, state

    def index(self, value):
        return self.emit(f"arith.constant {value} : index")

    def random(self, type, sizes, kind, keys):
        """A tensor of pseudo-random values; `sizes` are all sizes as values."""
        dynamic = ", ".join(s for s, n in zip(sizes, type[7:].split("x")) if n == "?")
        element = type[:-1].split("x")[-1]
        names = [f"%i{d}" for d in range(len(sizes))]
        lines = [f"tensor.generate {dynamic} {{", f"  ^bb0({', '.join(n + ': index' for n in names)}):"]
        flat = names[0]
        for d in range(1, len(sizes)):
            lines += [
                f"    %m{d} = arith.muli {flat}, {sizes[d]} : index",
                f"    %f{d} = arith.addi %m{d}, {names[d]} : index",
            ]
            flat = f"%f{d}"
        scale = math.sqrt(3 / keys) if kind == "key" else 1.0
        lines += [
            f"    %seed = arith.constant {next(self.seeds)} : i32",
            f"    %x = func.call @{'gate' if kind == 'gate' else 'uniform'}({flat}, %seed) : (index, i32) -> f32",
            f"    %a = arith.constant {scale if kind != 'gate' else 1.0:e} : f32",
            f"    %c = arith.constant {1.0 if kind == 'beta' else 0.0:e} : f32",
            "    %ax = arith.mulf %x, %a : f32",
            "    %y = arith.addf %ax, %c : f32",
        ]
        value = "%y"
        if element != "f32":
            lines.append(f"    %z = arith.truncf %y : f32 to {element}")
            value = "%z"
        lines += [f"    tensor.yield {value} : {element}", f"  }} : {type}"]
        return self.emit("\n".join(lines))

    def call(self, case, name, types, matrix, argument, out, state):
        tokens = argument[-1] if case.packed else argument
        N = len(argument) - 1 if case.packed else case.B
        T = self.index(tokens)
        values = []
        for (_, _, kind, shape, _), type in zip(self.operands(case), types):
            sizes = [self.index(case.batch), T] + [self.index(n) for n in shape]
            values.append(self.random(type, sizes, kind, case.K))
        if case.packed:
            constant = self.emit(f"arith.constant dense<{argument}> : {tensor((N + 1,), case.offset_type)}")
            dynamic = tensor((None,), case.offset_type)
            values.append(self.emit(f"tensor.cast {constant} : {tensor((N + 1,), case.offset_type)} to {dynamic}"))
        if case.slots:
            values.append(self.emit(f"arith.constant dense<{case.slots}> : {tensor((N,), case.offset_type)}"))
            N = case.pool
        nan = self.emit(f"arith.constant {'0x7FC00000 : f32' if case.dtype == 'f32' else '0x7FC0 : bf16'}")
        values.append(self.emit(f"tensor.splat {nan}{'' if case.static else '[' + T + ']'} : {out}"))
        sizes = [self.index(n) for n in (N, case.Hv) + matrix]
        values.append(self.random(state, sizes, "value", case.K))
        results = next(self.names)
        self.main.append(f"  {results}:2 = call {name}({', '.join(values)}) : ({', '.join(types)}) -> ({out}, {state})")
        for result, (what, type) in enumerate((("o", out), ("state", state))):
            self.print(f"{results}#{result}", type)
            element = case.dtype if what == "o" else case.state_type
            self.labels.append((f"{what} of {case} for {argument}", element))

    def print(self, value, type):
        wide = re.sub(r"x(bf16|f32)>$", "xf32>", type)
        if wide != type:
            value = self.emit(f"arith.extf {value} : {type} to {wide}")
        unranked = self.emit(f"tensor.cast {value} : {wide} to tensor<*xf32>")
        self.main.append(f"  call @printMemrefF32({unranked}) : (tensor<*xf32>) -> ()")

    def text(self):
        for case in cases():
            name, types, matrix, out, state = self.function(case)
            for argument in case.calls:
                self.call(case, name, types, matrix, argument, out, state)
        return "\n".join([HELPERS, *self.functions, "func.func @main() {", *self.main, "  return", "}"]) + "\n"


HELPERS = """func.func private @printMemrefF32(tensor<*xf32>)
// In [-1, 1).
func.func private @uniform(%i: index, %seed: i32) -> f32 {
  %n = arith.index_cast %i : index to i32
  %c0 = arith.constant 747796405 : i32
  %c1 = arith.constant 277803737 : i32
  %c2 = arith.constant 1013904223 : i32
  %s16 = arith.constant 16 : i32
  %s8 = arith.constant 8 : i32
  %k = arith.muli %seed, %c2 : i32
  %a = arith.addi %n, %k : i32
  %b = arith.muli %a, %c0 : i32
  %c = arith.shrui %b, %s16 : i32
  %d = arith.xori %b, %c : i32
  %e = arith.muli %d, %c1 : i32
  %f = arith.shrui %e, %s16 : i32
  %g = arith.xori %e, %f : i32
  %h = arith.shrui %g, %s8 : i32
  %x = arith.uitofp %h : i32 to f32
  %scale = arith.constant 1.1920928955078125e-07 : f32
  %one = arith.constant 1.0 : f32
  %y = arith.mulf %x, %scale : f32
  %z = arith.subf %y, %one : f32
  return %z : f32
}
// In (-1, 0], one in 24 is -80, one in 48 is -inf.
func.func private @gate(%i: index, %seed: i32) -> f32 {
  %x = call @uniform(%i, %seed) : (index, i32) -> f32
  %square = arith.mulf %x, %x : f32
  %cube = arith.mulf %square, %square : f32
  %g = arith.negf %cube : f32
  %other = arith.constant 77 : i32
  %seed2 = arith.addi %seed, %other : i32
  %y = call @uniform(%i, %seed2) : (index, i32) -> f32
  %strong = arith.constant 0.875 : f32
  %all = arith.constant 0.958 : f32
  %isStrong = arith.cmpf ogt, %y, %strong : f32
  %isAll = arith.cmpf ogt, %y, %all : f32
  %m80 = arith.constant -80.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %g1 = arith.select %isStrong, %m80, %g : f32
  %g2 = arith.select %isAll, %inf, %g1 : f32
  return %g2 : f32
}"""


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=280)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} failed ({done.returncode}):\n{done.stderr[-4000:]}")
    return done.stdout


def execute(module, path, libraries):
    """The printed tensors of one path, as lists of numbers."""
    lowered = run(["gdn-opt", "-", f"--gdn-to-cpu=path={path}"], module)
    command = ["mlir-runner", "-O0", "-e", "main", "-entry-point-result=void", f"-shared-libs={libraries}"]
    printed = run(command, lowered).split("Unranked Memref")[1:]
    return [numbers(text) for text in printed]


def numbers(text):
    """The elements of one printed tensor; one without elements prints what lies there."""
    sizes = re.search(r"sizes = \[([\d, ]*)\]", text)[1]
    if "0" in sizes.split(", "):
        return []
    return [float(x) for x in re.findall(r"[-+.\w]+", text.split("data =", 1)[1])]


def error(got, wanted):
    """rms(got - wanted) / rms(wanted); infinite where one is not finite."""
    if len(got) != len(wanted):
        return math.inf
    if not wanted:
        return 0.0
    if not all(math.isfinite(x) for x in got + wanted):
        return math.inf
    size = sum(x * x for x in wanted)
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(got, wanted)) / size) if size else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--path", default="linalg")
    parser.add_argument("--print-module", action="store_true")
    parser.add_argument("--libraries", default=os.environ.get("MLIR_RUNNER_LIBS", ""))
    options = parser.parse_args()
    program = Program(options.model)
    module = program.text()
    if options.print_module:
        print(module)
        return
    got, wanted = (execute(module, path, options.libraries) for path in (options.path, "loops"))
    if not len(got) == len(wanted) == len(program.labels):
        sys.exit(f"error: {len(got)} and {len(wanted)} tensors were printed, expected {len(program.labels)}")
    failed = 0
    for (label, dtype), x, r in zip(program.labels, got, wanted):
        e = error(x, r)
        if not e <= LIMITS[dtype]:
            failed += 1
            print(f"FAIL: {e:.1e} > {LIMITS[dtype]:.0e}: {label}")
    print(f"{options.model}: {len(got) - failed} of {len(got)} results of path={options.path} equal path=loops")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
