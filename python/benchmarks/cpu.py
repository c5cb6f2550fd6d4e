# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times path=linalg of gdn-to-cpu against path=loops on one core, both through mlir-runner -O3.

    python3 python/benchmarks/cpu.py [--tokens 8192] [--models gated-deltanet ...] [--dtypes f32 bf16]

Needs gdn-opt and LLVM's tools and no Python package. The program makes its own
pseudo-random inputs, calls the function several times and prints each time, and checksums
of the results that have to agree between the paths. Both paths run in full, in turns, on
one core; the ratio is that of the medians. Writes results/cpu-DATE.{txt,json}.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LLVM = Path(os.environ.get("GDN_LLVM_BIN", "/usr/lib/llvm-22/bin"))
# gate, beta
MODELS = {
    "linear-attention": (None, False),
    "mamba2": ("head", False),
    "deltanet": (None, True),
    "gated-deltanet": ("head", True),
    "kimi-delta-attention": ("channel", True),
}
KEY_HEADS, VALUE_HEADS, SIZE = 16, 32, 128


def tool(name):
    for folder in filter(None, (os.environ.get("GDN_BIN_DIR"), ROOT / "build" / "bin", LLVM)):
        if os.access(Path(folder) / name, os.X_OK):
            return str(Path(folder) / name)
    found = shutil.which(name)
    if not found:
        sys.exit(f"error: {name} was not found in $GDN_BIN_DIR, {ROOT / 'build' / 'bin'}, {LLVM} and PATH")
    return found


def run(command, text, environment=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"error: {command[0]} failed (exit status {done.returncode}):\n{done.stderr[-4000:]}")
    return done.stdout


def tensor(shape, dtype):
    return "tensor<" + "x".join(map(str, shape)) + f"x{dtype}>"


def generate(name, shape, dtype, scale, shift, seed):
    """%name: pseudo-random values, uniform in shift +- scale."""
    indices = [f"%i{d}" for d in range(len(shape))]
    lines = [f"  %{name} = tensor.generate {{", f"  ^bb0({', '.join(i + ': index' for i in indices)}):"]
    flat = indices[0]
    for d in range(1, len(shape)):
        lines += [
            f"    %n{d} = arith.constant {shape[d]} : index",
            f"    %m{d} = arith.muli {flat}, %n{d} : index",
            f"    %f{d} = arith.addi %m{d}, {indices[d]} : index",
        ]
        flat = f"%f{d}"
    lines += [
        f"    %seed = arith.constant {seed} : i32",
        f"    %x = func.call @uniform({flat}, %seed) : (index, i32) -> f32",
        f"    %scale = arith.constant {scale:e} : f32",
        f"    %shift = arith.constant {shift:e} : f32",
        "    %ax = arith.mulf %x, %scale : f32",
        "    %y = arith.addf %ax, %shift : f32",
    ]
    value = "%y"
    if dtype != "f32":
        lines.append(f"    %z = arith.truncf %y : f32 to {dtype}")
        value = "%z"
    lines += [f"    tensor.yield {value} : {dtype}", f"  }} : {tensor(shape, dtype)}"]
    return "\n".join(lines)


def checksum(name, value, shape, dtype):
    """Prints the sum of squares of a result: every 61st row, so that it costs little."""
    type = tensor(shape, dtype)
    extend = f"\n    %e = arith.extf %x : {dtype} to f32" if dtype != "f32" else ""
    number = "%e" if dtype != "f32" else "%x"
    indices = ", ".join(("%c0", "%r", "%h", "%c") if shape[1] > VALUE_HEADS else ("%c0", "%h", "%r", "%c"))
    rows = max(shape[1], shape[2]) if shape[1] > VALUE_HEADS else shape[2]
    return f"""  %{name}rows = arith.constant {rows} : index
  %{name} = scf.for %r = %c0 to %{name}rows step %c61 iter_args(%s0 = %zero) -> f64 {{
    %s1 = scf.for %h = %c0 to %cH step %c1 iter_args(%s2 = %s0) -> f64 {{
    %s3 = scf.for %c = %c0 to %cD step %c1 iter_args(%s4 = %s2) -> f64 {{
    %x = tensor.extract {value}[{indices}] : {type}{extend}
    %d = arith.extf {number} : f32 to f64
    %q2 = arith.mulf %d, %d : f64
    %s5 = arith.addf %s4, %q2 : f64
    scf.yield %s5 : f64
    }}
    scf.yield %s3 : f64
    }}
    scf.yield %s1 : f64
  }}
  call @printF64(%{name}) : (f64) -> ()
  call @printNewline() : () -> ()"""


def program(model, dtype, tokens, calls):
    gate, beta = MODELS[model]
    row = (1, tokens)
    q, v = row + (KEY_HEADS, SIZE), row + (VALUE_HEADS, SIZE)
    state = (1, VALUE_HEADS, SIZE, SIZE)
    unit = (3 / SIZE) ** 0.5
    operands = [("q", q, dtype, 1.0, 0.0), ("k", q, dtype, unit, 0.0), ("v", v, dtype, 1.0, 0.0)]
    groups = f"ins(%q, %k, %v : {tensor(q, dtype)}, {tensor(q, dtype)}, {tensor(v, dtype)})"
    if gate:
        shape = row + (VALUE_HEADS,) + ((SIZE,) if gate == "channel" else ())
        operands.append(("g", shape, "f32", 0.05, -0.05))
        groups += f" gate(%g : {tensor(shape, 'f32')})"
    if beta:
        operands.append(("b", row + (VALUE_HEADS,), "f32", 0.5, 0.5))
        groups += f" beta(%b : {tensor(row + (VALUE_HEADS,), 'f32')})"
    out, final = tensor(v, dtype), tensor(state, "f32")
    names = [name for name, *_ in operands] + ["o", "s"]
    types = [tensor(shape, element) for _, shape, element, *_ in operands] + [out, final]
    arguments = ", ".join(f"%{name}: {type}" for name, type in zip(names, types))
    values, signature = ", ".join("%" + n for n in names), f"({', '.join(types)}) -> ({out}, {final})"
    inputs = [generate(*operand, seed) for seed, operand in enumerate(operands, 1)]
    inputs += [generate("o", v, dtype, 0.0, 0.0, 98), generate("s", state, "f32", 0.1, 0.0, 99)]
    body = []
    for call in range(calls):
        body.append(
            f"  %t{call} = call @rtclock() : () -> f64\n"
            f"  %r{call}:2 = call @forward({values}) : {signature}\n"
            f"  %u{call} = call @rtclock() : () -> f64\n"
            f"  %w{call} = arith.subf %u{call}, %t{call} : f64\n"
            f"  call @printF64(%w{call}) : (f64) -> ()\n  call @printNewline() : () -> ()"
        )
    last = calls - 1
    constants = f"""  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c61 = arith.constant 61 : index
  %cH = arith.constant {VALUE_HEADS} : index
  %cD = arith.constant {SIZE} : index
  %zero = arith.constant 0.0 : f64"""
    return "\n".join([
        HELPERS,
        f"func.func private @forward({arguments}) -> ({out}, {final}) {{",
        f"  %r:2 = gdn.recurrence {groups} outs(%o, %s : {out}, {final}) -> {out}, {final}",
        f"  return %r#0, %r#1 : {out}, {final}\n}}",
        "func.func @main() {", constants, *inputs, *body,
        checksum("sum_o", f"%r{last}#0", v, dtype), checksum("sum_s", f"%r{last}#1", state, "f32"),
        "  return\n}\n",
    ])  # fmt: skip


HELPERS = """func.func private @rtclock() -> f64
func.func private @printF64(f64)
func.func private @printNewline()
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
}"""


def measure(model, dtype, tokens, path, calls, core):
    """(times in s, checksums of o and the state)"""
    lowered = run([tool("gdn-opt"), "-", f"--gdn-to-cpu=path={path}"], program(model, dtype, tokens, calls))
    runner = Path(tool("mlir-runner")).resolve()
    libraries = runner.parent.parent / "lib"
    names = ("libmlir_runner_utils.so", "libmlir_c_runner_utils.so")
    shared = ",".join(str(libraries / name) for name in names)
    command = [str(runner), "-O3", "-e", "main", "-entry-point-result=void", f"-shared-libs={shared}"]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(core), *command]
    numbers = [float(line) for line in run(command, lowered).split()]
    return numbers[:calls], numbers[calls:]


def describe_machine():
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    flags = Path("/proc/cpuinfo").read_text()
    vectors = next((name for name in ("avx512f", "avx2", "avx") if f" {name} " in flags), "no AVX")
    version = run([tool("mlir-runner"), "--version"], "")
    return {
        "cpu": cpu[1] if cpu else platform.processor(),
        "vectors": vectors,
        "llvm": re.search(r"LLVM version (\S+)", version)[1],
        "commit": run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], "").strip(),
        "date": datetime.date.today().isoformat(),
        "load": os.getloadavg()[0],
    }


def compare(model, dtype, options, core):
    rounds = {"linalg": ([], None), "loops": ([], None)}
    # In turns, so that both see the same neighbours on the machine.
    for turn in range(options.rounds):
        for path, calls in (("linalg", 5), ("loops", 1)):
            times, sums = measure(model, dtype, options.tokens, path, calls, core)
            rounds[path] = (rounds[path][0] + times, sums)
            print(f"  {model} {dtype} round {turn + 1} {path}: {min(times):.3f} s", flush=True)
    (fast, sums), (slow, wanted) = rounds["linalg"], rounds["loops"]
    agree = max(abs(x - r) / abs(r) for x, r in zip(sums, wanted))
    return {
        "model": model, "dtype": dtype, "tokens": options.tokens, "linalg_s": fast, "loops_s": slow,
        "ratio_of_medians": statistics.median(slow) / statistics.median(fast),
        "ratio_of_minima": min(slow) / min(fast), "checksum_error": agree,
    }  # fmt: skip


def table(machine, rows):
    lines = [
        f"{machine['cpu']}, one core, {machine['vectors']}, mlir-runner -O3 (LLVM {machine['llvm']}), "
        f"{machine['date']}, commit {machine['commit']}, load {machine['load']:.1f}",
        f"{KEY_HEADS}/{VALUE_HEADS} heads, K = V = {SIZE}, times in s: median (least) of whole calls",
        "",
        f"{'model':22} {'type':5} {'T':>6} {'linalg':>15} {'loops':>15} {'ratio':>7} {'checksums':>10}",
    ]
    for row in rows:
        fast, slow = (
            f"{statistics.median(row[k]):.3f} ({min(row[k]):.3f})" for k in ("linalg_s", "loops_s")
        )
        lines.append(
            f"{row['model']:22} {row['dtype']:5} {row['tokens']:6} {fast:>15} {slow:>15} "
            f"{row['ratio_of_medians']:7.1f} {row['checksum_error']:10.0e}"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["gated-deltanet", "kimi-delta-attention"])
    parser.add_argument("--dtypes", nargs="+", choices=("f32", "bf16"), default=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the text and JSON files")
    options = parser.parse_args()
    core = sorted(os.sched_getaffinity(0))[-1]
    machine = describe_machine()
    rows = [compare(model, dtype, options, core) for model in options.models for dtype in options.dtypes]
    text = table(machine, rows)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    base = options.output / f"cpu-{machine['date']}"
    base.with_suffix(".txt").write_text(text)
    base.with_suffix(".json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    if any(not row["checksum_error"] < 1e-3 for row in rows):
        sys.exit("error: the checksums of the two paths differ")


if __name__ == "__main__":
    main()
