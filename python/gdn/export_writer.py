# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pieces of which `export_ir` puts a mixer together: projections, reshapes, elementwise ops."""

from __future__ import annotations

from . import build

# 1 / (1 + exp(-x)), or twice that; in float32, of %0.
SIGMOID = {
    form: [
        "arith.negf %0 : f32",
        "math.exp %@0 : f32",
        "arith.constant 1.0 : f32",
        "arith.addf %@1, %@2 : f32",
        f"arith.constant {top} : f32",
        "arith.divf %@4, %@3 : f32",
    ]
    for form, top in (("sigmoid", "1.0"), ("2sigmoid", "2.0"))
}
SILU = [*SIGMOID["sigmoid"], "arith.mulf %0, %@5 : f32"]


class ModuleWriter:
    """Writes the function of one mixer of geometry `g`."""

    def __init__(self, geometry, B, T, dtype, name):
        self.g, self.B, self.T, self.dtype = geometry, B, T, dtype
        self.f = build.Function(name)

    def open(self):
        """What every mixer starts with: sizes, and the rows of x."""
        f = self.f
        f.line("%zero = arith.constant 0.0 : f32")
        for axis, name in enumerate("BT"):
            f.line(f"%axis{axis} = arith.constant {axis} : index")
            f.line(f"%{name} = tensor.dim %x, %axis{axis} : {f.types['x']}")
        self.reshape("x_rows", "x", (self.tokens, self.g.hidden), "[[0, 1], [2]]", "collapse")

    def generic(self, result, inputs, maps, shape, dtype, like, lines, into=None):
        """Elementwise `lines` over %0, %1, ... (float32) into a tensor of `dtype`; `maps` as of d0, d1, ..."""
        f, rank = self.f, len(shape)
        into = into or f.empty_like(f"{result}_empty", like, shape, dtype)
        dims = ", ".join(f"d{i}" for i in range(rank))
        texts = [f"affine_map<({dims}) -> ({m})>" for m in [*maps, dims]]
        kinds = ", ".join(['"parallel"'] * rank)
        sources = ", ".join("%" + name for name in inputs)
        types = ", ".join(f.types[name] for name in inputs)
        f.line(
            f"%{result} = linalg.generic {{indexing_maps = [{', '.join(texts)}], iterator_types = [{kinds}]}} "
            f"ins({sources} : {types}) outs(%{into} : {f.types[into]}) {{"
        )
        elements = [f.types[name].rsplit("x", 1)[1].rstrip(">") for name in inputs]
        arguments = [f"%{result}_in{i}: {element}" for i, element in enumerate(elements)]
        f.line(f"^bb0({', '.join(arguments)}, %{result}_old: {dtype}):")
        values = []
        for i, element in enumerate(elements):
            values.append(f"{result}_in{i}")
            if element != "f32":
                f.line(f"  %{result}_x{i} = arith.extf %{values[-1]} : {element} to f32")
                values[-1] = f"{result}_x{i}"
        value = values[0]
        for number, line in enumerate(lines):
            for i, name in enumerate(values):
                line = line.replace(f"%{i} ", f"%{name} ").replace(f"%{i},", f"%{name},")
            f.line(f"  %{result}_{number} = " + line.replace("%@", f"%{result}_"))
            value = f"{result}_{number}"
        if dtype != "f32":
            f.line(f"  %{result}_y = arith.truncf %{value} : f32 to {dtype}")
            value = f"{result}_y"
        f.line(f"  linalg.yield %{value} : {dtype}")
        f.line(f"}} -> {f.types[into]}")
        f.types[result] = f.types[into]
        return result

    def reshape(self, result, source, shape, groups, op):
        """tensor.collapse_shape or expand_shape."""
        f = self.f
        f.types[result] = build.tensor(shape, f.types[source].rsplit("x", 1)[1].rstrip(">"))
        if op == "expand" and shape[:2] == (None, None) and groups.startswith("[[0, 1]"):
            # MLIR 22.1 has no expand_shape of one dynamic size into two.
            return self.reshape_dynamic(result, source, shape)
        text = f"%{result} = tensor.{op}_shape %{source} {groups} "
        if op == "expand":
            sizes = [
                str(size) if size is not None else f"%{'B' if axis == 0 else 'T'}" for axis, size in enumerate(shape)
            ]
            text += f"output_shape [{', '.join(sizes)}] "
        f.line(text + f": {f.types[source]} into {f.types[result]}")
        return result

    def reshape_dynamic(self, result, source, shape):
        f, sizes = self.f, ["%B", "%T"]
        for axis, size in enumerate(shape[2:]):
            sizes.append(f"%{result}_size{axis}")
            f.line(f"{sizes[-1]} = arith.constant {size} : index")
        kind = f"tensor<{len(shape)}xindex>"
        f.line(f"%{result}_shape = tensor.from_elements {', '.join(sizes)} : {kind}")
        types = f"({f.types[source]}, {kind}) -> {f.types[result]}"
        f.line(f"%{result} = tensor.reshape %{source}(%{result}_shape) : {types}")
        return result

    @property
    def tokens(self):
        return None if self.B is None or self.T is None else self.B * self.T

    def matmul(self, result, rows, weight, size, dtype, into=None):
        """[B * T, in] times the transposed weight [size, in], accumulated in float32; into `into` if f32."""
        f = self.f
        zero = into or f.empty_like(f"{result}_acc", rows, (self.tokens, size), "f32")
        f.line(f"%{result}_zero = linalg.fill ins(%zero : f32) outs(%{zero} : {f.types[zero]}) -> {f.types[zero]}")
        maps = "[affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]"
        f.line(
            f"%{result}_sum = linalg.matmul indexing_maps = {maps} ins(%{rows}, %{weight} : {f.types[rows]}, "
            f"{f.types[weight]}) outs(%{result}_zero : {f.types[zero]}) -> {f.types[zero]}"
        )
        f.types[f"{result}_sum"] = f.types[zero]
        if dtype == "f32":
            f.types[result] = f.types[zero]
            f.lines[-1] = f.lines[-1].replace(f"%{result}_sum =", f"%{result} =", 1)
            return result
        return self.generic(result, [f"{result}_sum"], ["d0, d1"], (self.tokens, size), dtype, rows, [])

    def project(self, result, weight, tail):
        """x times a weight, as [B, T, *tail]."""
        size = tail[0] * (tail[1] if len(tail) > 1 else 1)
        flat = self.matmul(f"{result}_rows", "x_rows", weight, size, self.dtype)
        return self.unflatten(result, flat, tail)

    def unflatten(self, result, flat, tail):
        groups = "[[0, 1], [2]]" if len(tail) == 1 else "[[0, 1], [2, 3]]"
        return self.reshape(result, flat, (self.B, self.T, *tail), groups, "expand")

    def convolve(self, result, x, weight, bias, prefix, channels):
        """Convolution with SiLU; its state is `prefix`_state and then `prefix`_final."""
        f = self.f
        empty = f.empty_like(f"{result}_empty", x, (self.B, self.T, channels), self.dtype)
        f.op(
            [result, f"{prefix}_final"], "short_conv", [("ins", [x, weight]), ("bias", [bias])],
            [empty, f"{prefix}_state"], ["activation = #gdn.activation<silu>"],
        )  # fmt: skip
        return result

    def filled(self, result, shape, dtype, value, like):
        """A tensor of one number."""
        f = self.f
        empty = f.empty_like(f"{result}_empty", like, shape, dtype)
        f.line(f"%{result}_value = arith.constant {value} : {dtype}")
        f.line(
            f"%{result} = linalg.fill ins(%{result}_value : {dtype}) outs(%{empty} : {f.types[empty]}) "
            f"-> {f.types[empty]}"
        )
        f.types[result] = f.types[empty]
        return result

    def last_projection(self, rows, weight):
        """y = rows times a weight, in the destination `out`."""
        size = (self.tokens, self.g.hidden)
        into = self.reshape("out_rows", "out", size, "[[0, 1], [2]]", "collapse")
        sums = self.matmul("y_rows", rows, weight, self.g.hidden, "f32", into if self.dtype == "f32" else None)
        if self.dtype != "f32":
            sums = self.generic("y_rounded", [sums], ["d0, d1"], size, self.dtype, rows, [], into)
        self.reshape("y", sums, (self.B, self.T, self.g.hidden), "[[0, 1], [2]]", "expand")

    @staticmethod
    def name(parameter):
        return parameter.replace(".", "_")
