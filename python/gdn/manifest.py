# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest that gdn-compile writes beside the PTX, made ready for launches.

Sizes in it are integers or expressions over the sizes of the arguments:
["dim", argument, axis], ["add", a, b], and likewise sub, mul, floordiv, ceildiv, min, max. ["value", i] is the
expression number i of the manifest's "values", which use earlier ones only.
"""

from __future__ import annotations

import functools

from .arrays import ITEM_SIZES

_OPERATORS = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "floordiv": "({} // {})",
    "ceildiv": "(-(-{} // {}))",
    "min": "min({}, {})",
    "max": "max({}, {})",
}


class ManifestError(ValueError):
    """The manifest is not what this version of the launcher reads."""


def expression(e, arguments, values=()):
    """Function from the list of argument shapes to the value of expression e."""
    if isinstance(e, int) and not isinstance(e, bool):
        return lambda shapes: e
    needed = {}
    text = _source(e, arguments, values, needed)
    if needed:
        named = ", ".join(f"(v{i} := {source})" for i, source in needed.items())
        text = f"({named}, {text})[-1]"
    return _function(text)


# The kernels of a function have many parameters in common.
@functools.lru_cache(maxsize=256)
def _function(text):
    # The text is put together from integers and the operators above only.
    return eval("lambda s: " + text, {"__builtins__": {}, "min": min, "max": max})


def _source(e, arguments, values, needed):
    """e as Python; the values that it uses are added to `needed`, each behind those that it uses itself."""
    if isinstance(e, int) and not isinstance(e, bool):
        return str(e)
    if isinstance(e, list) and len(e) == 2 and e[0] == "value":
        i = e[1]
        if not (isinstance(i, int) and 0 <= i < len(values)):
            raise ManifestError(f"{e!r} names no value in front of it; there are {len(values)}")
        if i not in needed:
            needed[i] = _source(values[i], arguments, values[:i], needed)
        return f"v{i}"
    if not isinstance(e, list) or len(e) != 3:
        raise ManifestError(f"{e!r} is no expression")
    op, a, b = e
    if op == "dim":
        if not (isinstance(a, int) and 0 <= a < len(arguments)):
            raise ManifestError(f"{e!r} names no argument; there are {len(arguments)}")
        if not (isinstance(b, int) and 0 <= b < len(arguments[a]["shape"])):
            raise ManifestError(f"{e!r} names no dimension of an argument of rank {len(arguments[a]['shape'])}")
        return f"s[{a}][{b}]"
    if op not in _OPERATORS:
        raise ManifestError(f"unknown operator '{op}' in {e!r}; expected dim, value, {', '.join(_OPERATORS)}")
    return _OPERATORS[op].format(*(_source(part, arguments, values, needed) for part in (a, b)))


class Argument:
    def __init__(self, entry, written):
        self.name, self.dtype = entry["name"], entry["dtype"]
        self.shape = tuple(entry["shape"])
        self.written = written

    def shape_text(self):
        return "[" + ", ".join("?" if size is None else str(size) for size in self.shape) + "]"


class Buffer:
    """A workspace, or a result for which the caller passes no destination."""

    def __init__(self, entry, index, arguments, values, is_result):
        self.index, self.dtype, self.is_result = index, entry["dtype"], is_result
        self._sizes = [expression(size, arguments, values) for size in entry["shape"]]

    def sizes(self, shapes):
        return tuple(size(shapes) for size in self._sizes)

    def nbytes(self, shapes):
        total = ITEM_SIZES[self.dtype]
        for size in self._sizes:
            total *= size(shapes)
        return total


class TensorMapLayout:
    """All of a tensor map (a descriptor for the copy engine) but the address of its array."""

    def __init__(self, entry, arguments, values):
        self.dtype, self.strides, self.box = entry["dtype"], tuple(entry["strides"]), tuple(entry["box"])
        self.swizzle = entry["swizzle"]
        self._sizes = [expression(size, arguments, values) for size in entry["sizes"]]
        rank = len(self._sizes)
        if self.dtype not in ("f16", "bf16", "f32") or self.swizzle not in (32, 64, 128):
            raise ManifestError(f"a tensor map of {self.dtype} with a swizzle of {self.swizzle} bytes is unknown")
        if not 2 <= rank <= 5 or len(self.box) != rank or len(self.strides) != rank - 1:
            raise ManifestError(f"a tensor map needs 2 to 5 sizes with a box and all but one stride each: {entry!r}")

    def sizes(self, shapes):
        return tuple(size(shapes) for size in self._sizes)


class Launch:
    def __init__(self, entry, arguments, buffers, values):
        self.kernel = entry["kernel"]
        self.grid = expression(entry["grid"], arguments, values)
        self.block, self.shared = entry["block"], entry["shared"]
        self.overlaps = entry.get("overlaps", False)
        # Overlaps with the launch in front, and with no other.
        self.beside = entry.get("beside", False)
        self.parameters = [self._parameter(p, arguments, buffers, values) for p in entry["parameters"]]

    def _parameter(self, entry, arguments, buffers, values):
        """(kind, index) of a pointer, ("scalar", function of the shapes) or ("tensor_map", (pointer, layout))."""
        if "tensor_map" in entry:
            kind, index = self._parameter(entry["tensor_map"], arguments, buffers, values)
            if kind not in ("argument", "buffer"):
                raise ManifestError(f"kernel {self.kernel} has a tensor map of a {kind}")
            return "tensor_map", ((kind, index), TensorMapLayout(entry, arguments, values))
        for kind, count in (("argument", len(arguments)), ("buffer", len(buffers))):
            if kind in entry:
                if not 0 <= entry[kind] < count:
                    raise ManifestError(f"kernel {self.kernel} uses {kind} {entry[kind]}, but there are {count}")
                return kind, entry[kind]
        if "scalar" in entry:
            if entry.get("dtype", "i64") != "i64":
                raise ManifestError(f"kernel {self.kernel} has a scalar of type {entry['dtype']}; only i64 is known")
            return "scalar", expression(entry["scalar"], arguments, values)
        raise ManifestError(f"kernel {self.kernel} has a parameter of unknown kind: {entry!r}")


class Plan:
    """A manifest with its expressions compiled and its references checked."""

    def __init__(self, manifest):
        if manifest.get("version") != 1:
            raise ManifestError(f"manifest version {manifest.get('version')}; this launcher reads version 1")
        try:
            self._read(manifest)
        except (KeyError, TypeError) as error:
            raise ManifestError(f"malformed manifest of '{manifest.get('function')}': {error!r}") from error

    def _read(self, manifest):
        self.function, self.target = manifest["function"], manifest["target"]
        entries, buffers = manifest["arguments"], manifest["buffers"]
        for entry in entries + buffers:
            if entry["dtype"] not in ITEM_SIZES:
                raise ManifestError(f"unknown element type '{entry['dtype']}' in the manifest of '{self.function}'")
        self.results = [next(iter(result.items())) for result in manifest["results"]]
        for kind, index in self.results:
            if not 0 <= index < len({"argument": entries, "buffer": buffers}[kind]):
                raise ManifestError(f"a result of '{self.function}' is {kind} {index}, which does not exist")
        written = {index for kind, index in self.results if kind == "argument"}
        fresh = {index for kind, index in self.results if kind == "buffer"}
        self.arguments = [Argument(entry, i in written) for i, entry in enumerate(entries)]
        self.names = [argument.name for argument in self.arguments]
        if len(set(self.names)) != len(self.names):
            raise ManifestError(f"argument names of '{self.function}' repeat: {self.names}")
        self._values = values = manifest.get("values", [])
        self.buffers = [Buffer(entry, i, entries, values, i in fresh) for i, entry in enumerate(buffers)]
        self.launches = [Launch(entry, entries, buffers, values) for entry in manifest["launches"]]
        # Pairs of expressions that must agree: sizes which the compiler takes to be equal.
        self.checks = [
            (expression(a, entries, values), expression(b, entries, values), self._text(a), self._text(b))
            for a, b in manifest.get("checks", [])
        ]

    def running(self, shapes):
        """(launch, blocks, whether it may overlap with the one in front) of the launches that have blocks."""
        last = 0
        for launch in self.launches:
            grid = launch.grid(shapes)
            if grid:
                yield launch, grid, launch.overlaps or (launch.beside and last != 0)
            last = grid

    def _text(self, e):
        if isinstance(e, int):
            return str(e)
        if e[0] == "value":
            return self._text(self._values[e[1]])
        op, a, b = e
        if op == "dim":
            return f"size {b} of '{self.arguments[a].name}'"
        return f"{op}({self._text(a)}, {self._text(b)})"

    def check_sizes(self, shapes):
        for left, right, left_text, right_text in self.checks:
            a, b = left(shapes), right(shapes)
            if a != b:
                raise ValueError(f"{self.function}: {left_text} is {a}, but {right_text} is {b}")
