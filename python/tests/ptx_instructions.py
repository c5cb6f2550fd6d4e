# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of ptx_machine, as a mix-in for its Block."""

from __future__ import annotations

import numpy as np

from ptx_machine import (
    F32,
    U32,
    U64,
    Block,
    PtxError,
    _tf32,
    bf16_to_f32,
    f16_to_f32,
    f32_to_bf16,
    f32_to_f16,
)

_SIGNED = {16: np.int16, 32: np.int32, 64: np.int64}
_UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def _kind(suffix):
    """numpy type of .b32, .s64, .f32, .pred ..."""
    if suffix == "pred":
        return bool
    if suffix == "f32":
        return F32
    return (_SIGNED if suffix[0] == "s" else _UNSIGNED)[int(suffix[1:])]


def _unsigned(value):
    return value if value.dtype in (bool, F32) else value.view(f"u{value.dtype.itemsize}")


class Instructions(Block):
    # ---- moves

    def op_mov(self, op, args, mask):
        to, source = args
        if isinstance(source, list):  # two halves make one register
            # LLVM leaves one of them open where nobody reads it. Who does read it gets a NaN.
            is_open = [s.startswith("%") and s not in self.registers for s in source]
            if all(is_open):
                is_open = [False, False]
            halves = [np.full(self.threads, 0x7FFF) if o else self.read(s, np.uint16) for s, o in zip(source, is_open)]
            low, high = (half.astype(U32) for half in halves)
            return self.write(to, low | high << U32(16), mask)
        value = self.read(source, _kind(op[1].replace("u", "b")))
        if isinstance(to, list):
            self.write(to[0], (value & U32(0xFFFF)).astype(np.uint16), mask)
            return self.write(to[1], (value >> U32(16)).astype(np.uint16), mask)
        self.write(to, value, mask)

    def op_selp(self, op, args, mask):
        kind = _kind(op[1])
        a, b = self.read(args[1], kind), self.read(args[2], kind)
        self.write(args[0], np.where(self.read(args[3], bool), a, b), mask)

    def op_ld(self, op, args, mask):
        space, kind = op[1], _kind(op[-1])
        if space == "param":
            value = self.arguments[args[1][1:-1]]
            return self.write(args[0], np.full(self.threads, value, U64), mask)
        registers = args[0] if isinstance(args[0], list) else [args[0]]
        size = np.dtype(kind).itemsize
        address = self.address(args[1], mask)
        total = size * len(registers)
        data = (self.load_shared(address, total, self.tid[mask]) if space == "shared"
                else self.load_global(address, total))
        for i, register in enumerate(registers):
            value = np.zeros(self.threads, f"u{size}")
            value[mask] = np.ascontiguousarray(data[:, i * size:(i + 1) * size]).view(f"u{size}")[:, 0]
            if op[-1] == "s32" and register.startswith("%rd"):
                value = value.view(np.int32).astype(np.int64).view(U64)
            self.write(register, value, mask)

    def op_prefetch(self, op, args, mask):
        """Does nothing, but must not name what is no array."""
        self.load_global(self.address(args[0], mask), 1)

    def op_st(self, op, args, mask):
        registers = args[1] if isinstance(args[1], list) else [args[1]]
        kind = _kind(op[-1].replace("f", "b"))
        columns = [self.read(r, kind)[mask] for r in registers]
        data = np.stack(columns, 1).view(np.uint8)
        address = self.address(args[0], mask)
        if op[1] == "shared":
            self.store_shared(address, data, self.tid[mask])
        else:
            self.store_global(address, data)

    def op_cvt(self, op, args, mask):
        to, source = op[-2], op[-1]
        if to in ("bf16x2", "f16x2"):
            narrow = f32_to_bf16 if to == "bf16x2" else f32_to_f16
            high, low = (narrow(self.read(a, F32)).astype(U32) for a in args[1:])
            return self.write(args[0], high << U32(16) | low, mask)
        if to in ("bf16", "f16"):
            narrow = f32_to_bf16 if to == "bf16" else f32_to_f16
            return self.write(args[0], narrow(self.read(args[1], F32)), mask)
        if source in ("bf16", "f16"):
            widen = bf16_to_f32 if source == "bf16" else f16_to_f32
            return self.write(args[0], widen(self.read(args[1], np.uint16)), mask)
        if to == "tf32":
            bits = self.read(args[1], U32)
            return self.write(args[0], (bits + U32(0x1000)) & U32(0xFFFFE000), mask)
        value = self.read(args[1], _UNSIGNED[int(source[1:])]).view(_kind(source))
        if to == "f32":
            return self.write(args[0], value.astype(F32), mask)
        self.write(args[0], _unsigned(value.astype(_kind(to))), mask)

    # ---- integers and floats

    def _binary(self, op, args, mask, function):
        kind = _kind(op[-1])
        a = self.read(args[1], kind if kind in (F32, bool) else _UNSIGNED[np.dtype(kind).itemsize * 8])
        b = self.read(args[2], a.dtype.type)
        if kind not in (F32, bool):
            a, b = a.view(kind), b.view(kind)
        self.write(args[0], _unsigned(np.asarray(function(a, b)).astype(a.dtype)), mask)

    def op_add(self, op, args, mask):
        self._binary(op, args, mask, np.add)

    def op_sub(self, op, args, mask):
        self._binary(op, args, mask, np.subtract)

    def op_and(self, op, args, mask):
        self._binary(op, args, mask, np.bitwise_and)

    def op_or(self, op, args, mask):
        self._binary(op, args, mask, np.bitwise_or)

    def op_xor(self, op, args, mask):
        self._binary(op, args, mask, np.bitwise_xor)

    def op_div(self, op, args, mask):
        self._binary(op, args, mask, np.divide if op[-1] == "f32" else np.floor_divide)

    def op_rem(self, op, args, mask):
        self._binary(op, args, mask, np.remainder)

    def op_max(self, op, args, mask):
        self._binary(op, args, mask, np.maximum if "NaN" in op or op[-1] != "f32" else np.fmax)

    def op_min(self, op, args, mask):
        self._binary(op, args, mask, np.minimum if "NaN" in op or op[-1] != "f32" else np.fmin)

    def op_not(self, op, args, mask):
        self.write(args[0], ~self.read(args[1], _kind(op[1])), mask)

    def op_neg(self, op, args, mask):
        self.write(args[0], _unsigned(-self.read(args[1], _kind(op[-1]))), mask)

    def op_abs(self, op, args, mask):
        self.write(args[0], np.abs(self.read(args[1], F32)), mask)

    def _shift(self, op, args, mask, function):
        bits = int(op[-1][1:])
        value = self.read(args[1], _UNSIGNED[bits]).view(_kind(op[-1]))
        by = self.read(args[2], U32)
        shifted = function(value, np.minimum(by, bits - 1).astype(value.dtype))
        if function is np.left_shift or op[-1][0] != "s":
            shifted = np.where(by >= bits, 0, shifted).astype(value.dtype)
        self.write(args[0], _unsigned(shifted), mask)

    def op_shl(self, op, args, mask):
        self._shift(op, args, mask, np.left_shift)

    def op_shr(self, op, args, mask):
        self._shift(op, args, mask, np.right_shift)

    def op_popc(self, op, args, mask):
        if op[1] != "b32":
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        bits = self.read(args[1], U32)
        self.write(args[0], sum(bits >> U32(i) & U32(1) for i in range(32)).astype(U32), mask)

    def op_bfe(self, op, args, mask):
        kind = _kind(op[-1])
        value, start, length = (self.read(a, k) for a, k in zip(args[1:], (kind, U32, U32)))
        field = (kind(1) << length.astype(kind)) - kind(1)
        value = value >> start.astype(kind) & field
        if op[-1][0] == "s":  # the field's top bit is its sign
            sign = kind(1) << (length.astype(kind) - kind(1))
            value = (value ^ sign) - sign
        self.write(args[0], _unsigned(value), mask)

    def op_mul(self, op, args, mask):
        if op[-1] == "f32":
            return self._binary(op, args, mask, np.multiply)
        bits, form = int(op[-1][1:]), op[1]
        a, b = (self.read(x, _UNSIGNED[bits]).view(_kind(op[-1])) for x in args[1:])
        if form == "lo":
            return self.write(args[0], _unsigned(a * b), mask)
        if bits == 64:  # numpy has no integers of 128 bits
            high = [int(x) * int(y) >> 64 for x, y in zip(a, b)]
            return self.write(args[0], _unsigned(np.array(high, a.dtype)), mask)
        wide = a.astype(_kind(op[-1][0] + str(2 * bits))) * b
        if form == "hi":
            wide = (wide >> wide.dtype.type(bits)).astype(a.dtype)
        self.write(args[0], _unsigned(wide), mask)

    def op_mad(self, op, args, mask):
        kind = _UNSIGNED[int(op[-1][1:])]
        a, b, c = (self.read(x, kind) for x in args[1:])
        if op[1] != "lo":
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self.write(args[0], a * b + c, mask)

    def op_fma(self, op, args, mask):
        a, b, c = (self.read(x, F32).astype(np.float64) for x in args[1:])
        self.write(args[0], (a * b + c).astype(F32), mask)

    def op_setp(self, op, args, mask):
        compare = {
            "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal,
        }
        name, kind = op[1], _kind(op[-1])
        a, b = (self.read(x, kind if kind == F32 else _UNSIGNED[np.dtype(kind).itemsize * 8]) for x in args[1:3])
        if kind != F32:
            a, b = a.view(kind), b.view(kind)
        if name in compare:
            return self.write(args[0], compare[name](a, b), mask)
        unordered = np.isnan(a) | np.isnan(b)
        if name in ("nan", "num"):
            return self.write(args[0], unordered == (name == "nan"), mask)
        self.write(args[0], compare[name[:-1]](a, b) | unordered, mask)  # ltu, equ, ...

    def _unary(self, args, mask, function):
        self.write(args[0], function(self.read(args[1], F32)).astype(F32), mask)

    def op_ex2(self, op, args, mask):
        self._unary(args, mask, np.exp2)

    def op_lg2(self, op, args, mask):
        self._unary(args, mask, np.log2)

    def op_rsqrt(self, op, args, mask):
        self._unary(args, mask, lambda x: F32(1) / np.sqrt(x))

    def op_sqrt(self, op, args, mask):
        self._unary(args, mask, np.sqrt)

    def op_rcp(self, op, args, mask):
        self._unary(args, mask, lambda x: F32(1) / x)

    # ---- warps

    def _lanes(self, mask):
        """(warps, 32) table of the threads of the warps that take part as a whole."""
        threads = np.flatnonzero(mask)
        if threads.size % 32 or (threads[::32] % 32).any() or (np.diff(threads.reshape(-1, 32)) != 1).any():
            raise PtxError(f"{self.kernel.name}: a warp instruction in a part of a warp")
        return threads.reshape(-1, 32)

    def op_shfl(self, op, args, mask):
        threads = self._lanes(mask)
        value = self.read(args[1], U32)
        control = int(args[3], 0)
        lane = np.arange(32)
        if op[2] == "idx":
            return self._shuffle_from(args, mask, threads, value)
        by = int(args[2], 0)
        segment = control >> 8 & 31
        if op[2] == "bfly":
            source = lane ^ by
        elif op[2] == "up":
            source = lane - by
            source = np.where(source < (lane & segment), lane, source)
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        result = np.zeros(self.threads, U32)
        result[threads] = value[threads[:, source]]
        self.write(args[0], result, mask)

    def _shuffle_from(self, args, mask, threads, value):
        source = self.read(args[2], U32)[threads].astype(np.int64) & 31
        result = np.zeros(self.threads, U32)
        result[threads] = np.take_along_axis(value[threads], source, 1)
        self.write(args[0], result, mask)

    def op_bar(self, op, args, mask):
        if op[2] != "popc":
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self.write(args[0], np.full(self.threads, np.count_nonzero(self.read(args[2], bool)), U32), mask)

    def op_vote(self, op, args, mask):
        threads = self._lanes(mask)
        lanes = self.read(args[1], bool)[threads]
        if op[2] == "any":
            result = np.zeros(self.threads, bool)
            result[threads] = lanes.any(1)[:, None]
        elif op[2] == "ballot":
            result = np.zeros(self.threads, U32)
            result[threads] = (lanes.astype(U32) << np.arange(32, dtype=U32)).sum(1, dtype=U32)[:, None]
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self.write(args[0], result, mask)

    def _matrix_rows(self, address, mask, count):
        """Addresses of the rows of the matrices: (warps, count, 8)."""
        return address.reshape(-1, 32)[:, :8 * count].reshape(-1, count, 8)

    def op_ldmatrix(self, op, args, mask):
        threads = self._lanes(mask)
        count, transpose = int(op[4][1:]), "trans" in op
        rows = self._matrix_rows(self.address(args[1], mask), mask, count)
        readers = self._matrix_rows(self.tid[mask], mask, count)
        data = self.load_shared(rows.reshape(-1), 16, readers.reshape(-1)).view(np.uint16)
        data = data.reshape(*rows.shape, 8)  # (warps, matrix, row, column)
        if transpose:
            data = data.swapaxes(2, 3)
        pairs = data.reshape(*data.shape[:2], 32, 2).astype(U32)
        for i, register in enumerate(args[0]):
            value = np.zeros(self.threads, U32)
            value[threads] = pairs[:, i, :, 0] | pairs[:, i, :, 1] << U32(16)
            self.write(register, value, mask)

    def op_movmatrix(self, op, args, mask):
        threads = self._lanes(mask)
        value = self.read(args[1], U32)[threads]
        matrix = np.stack([value & U32(0xFFFF), value >> U32(16)], -1).reshape(-1, 8, 8).swapaxes(1, 2)
        pairs = matrix.reshape(-1, 32, 2)
        result = np.zeros(self.threads, U32)
        result[threads] = pairs[..., 0] | pairs[..., 1] << U32(16)
        self.write(args[0], result, mask)

    def op_mma(self, op, args, mask):
        threads = self._lanes(mask)
        shape, kind = op[3], op[7]
        group, quad = np.arange(32) // 4, np.arange(32) % 4
        registers = [np.stack([self.read(r, U32)[threads] for r in arg], -1) for arg in args[1:]]
        a, b, c = registers
        warps = threads.shape[0]
        depth = {"m16n8k16": 16, "m16n8k8": 8}[shape]
        left, right = np.zeros((warps, 16, depth), F32), np.zeros((warps, depth, 8), F32)
        if kind == "tf32":
            for i in range(4):
                left[:, group + 8 * (i % 2), quad + 4 * (i // 2)] = _tf32(a[..., i])
            for i in range(2):
                right[:, quad + 4 * i, group] = _tf32(b[..., i])
        else:
            widen = bf16_to_f32 if kind == "bf16" else f16_to_f32
            for i in range(4):
                for half in range(2):
                    value = widen((a[..., i] >> U32(16 * half) & U32(0xFFFF)).astype(np.uint16))
                    left[:, group + 8 * (i % 2), 2 * quad + half + 8 * (i // 2)] = value
            for i in range(2):
                for half in range(2):
                    value = widen((b[..., i] >> U32(16 * half) & U32(0xFFFF)).astype(np.uint16))
                    right[:, 2 * quad + half + 8 * i, group] = value
        product = left.astype(np.float64) @ right
        for i in range(4):
            part = product[:, group + 8 * (i // 2), 2 * quad + i % 2]
            value = np.zeros(self.threads, F32)
            value[threads] = (part + np.ascontiguousarray(c[..., i]).view(F32)).astype(F32)
            self.write(args[0][i], value, mask)

    # ---- asynchronous copies

    def op_cp(self, op, args, mask):
        if op[2] == "commit_group":
            self.groups.append(self.copies)
            self.copies = []
        elif op[2] in ("wait_group", "wait_all"):
            pending = int(args[0]) if args else 0
            for copies in self.groups[:len(self.groups) - pending]:
                for offset, data, thread in copies:
                    self.store_shared(offset, data, thread)
            self.groups = self.groups[len(self.groups) - pending:]
        else:
            self._start_copy(args, mask)

    def _start_copy(self, args, mask):
        size = int(args[2])
        offset, address = self.address(args[0], mask), self.address(args[1], mask)
        count = self.read(args[3], U32)[mask] if len(args) > 3 else np.full(offset.size, size)
        data = np.zeros((offset.size, size), np.uint8)
        for length in np.unique(count):
            if length:
                chosen = count == length
                data[chosen, :length] = self.load_global(address[chosen], int(length))
        # The place must be free from now on; the data are there at the wait.
        thread = self.tid[mask]
        self._check_shared(offset, size)
        self._note(offset, size, thread, writes=True)
        self.shared[offset[:, None] + np.arange(size)] = 0xFF
        self.copies.append((offset, data, thread))


def launch(kernel, grid, threads, shared_bytes, arguments, memory):
    """Runs all blocks of a grid, in order."""
    for block in range(grid):
        Instructions(kernel, threads, memory, shared_bytes, block, arguments).run()
