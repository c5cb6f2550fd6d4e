# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of ptx_machine, as a mix-in for its Blocks."""

from __future__ import annotations

import numpy as np

from ptx_machine import (
    F32,
    U32,
    U64,
    Blocks,
    PtxError,
    _item,
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


def _high_half(a, b):
    """The upper 64 bits of products of 64 bits, in halves: numpy has no integers of 128 bits."""
    x, y, low = a.view(U64), b.view(U64), U64(0xFFFFFFFF)
    middle = (x >> U64(32)) * (y & low) + ((x & low) * (y & low) >> U64(32))
    other = (x & low) * (y >> U64(32)) + (middle & low)
    high = (x >> U64(32)) * (y >> U64(32)) + (middle >> U64(32)) + (other >> U64(32))
    if a.dtype == np.int64:  # a negative number is 2^64 too large
        high = high - np.where(a < 0, y, U64(0)) - np.where(b < 0, x, U64(0))
    return high


def _unsigned(value):
    return value if value.dtype in (bool, F32) else value.view(f"u{value.dtype.itemsize}")


class Instructions(Blocks):
    # ---- moves

    def op_mov(self, op, args, mask):
        to, source = args
        if isinstance(source, list):  # two halves make one register
            # LLVM leaves one of them open where nobody reads it. Who does read it gets a NaN.
            is_open = [s.startswith("%") and s not in self.registers for s in source]
            if all(is_open):
                is_open = [False, False]
            halves = [np.full(self.lanes, 0x7FFF) if o else self.read(s, np.uint16) for s, o in zip(source, is_open)]
            low, high = (half.astype(U32) for half in halves)
            return self.write(to, low | high << U32(16), mask)
        value = self.read(source, _kind(op[1].replace("u", "b")))
        if isinstance(to, list):
            self.write(to[0], (value & U32(0xFFFF)).astype(np.uint16), mask)
            return self.write(to[1], (value >> U32(16)).astype(np.uint16), mask)
        self.write(to, value, mask)

    def op_cvta(self, op, args, mask):
        """An address of any space is the same number."""
        self.write(args[0], self.read(args[1], _kind(op[-1].replace("u", "b"))), mask)

    def op_selp(self, op, args, mask):
        kind = _kind(op[1])
        a, b = self.read(args[1], kind), self.read(args[2], kind)
        self.write(args[0], np.where(self.read(args[3], bool), a, b), mask)

    def op_ld(self, op, args, mask):
        space, kind = op[1], _kind(op[-1])
        if space == "param":
            value = self.arguments[args[1][1:-1]]
            return self.write(args[0], np.full(self.lanes, value, U64), mask)
        registers = args[0] if isinstance(args[0], list) else [args[0]]
        size = np.dtype(kind).itemsize
        address = self.address(args[1], mask)
        total = size * len(registers)
        data = (self.load_shared(address, total, self.lanes_of(mask)) if space == "shared"
                else self.load_global(address, total))
        columns = np.ascontiguousarray(data.view(f"u{size}").reshape(address.size, -1).T)
        for register, column in zip(registers, columns):
            value = self.spread(column, mask)
            if op[-1] == "s32" and register.startswith("%rd"):
                value = value.view(np.int32).astype(np.int64).view(U64)
            self.write(register, value, mask)

    def op_prefetch(self, op, args, mask):
        """Does nothing, but must not name what is no array."""
        self.load_global(self.address(args[0], mask), 1)

    def op_st(self, op, args, mask):
        registers = args[1] if isinstance(args[1], list) else [args[1]]
        kind = _kind(op[-1].replace("f", "b"))
        columns = np.stack([self.read(r, kind) for r in registers], 1)[self.lanes_of(mask)]
        data = columns.view(_item(columns.itemsize * len(registers)))[:, 0]
        address = self.address(args[0], mask)
        if op[1] == "shared":
            self.store_shared(address, data, self.lanes_of(mask))
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
        if bits == 64:
            return self.write(args[0], _high_half(a, b), mask)
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

    def _warps(self, mask):
        """(warps, 32) table of the lanes of the warps that take part as a whole."""
        if self.whole:
            return self.every_warp
        lanes = np.flatnonzero(mask)
        if lanes.size % 32 or (lanes[::32] % 32).any() or (np.diff(lanes.reshape(-1, 32)) != 1).any():
            raise PtxError(f"{self.kernel.name}: a warp instruction in a part of a warp")
        return lanes.reshape(-1, 32)

    def op_shfl(self, op, args, mask):
        warps = self._warps(mask)
        value = self.read(args[1], U32)
        control = int(args[3], 0)
        lane = np.arange(32)
        if op[2] == "idx":
            return self._shuffle_from(args, mask, warps, value)
        by = int(args[2], 0)
        segment = control >> 8 & 31
        if op[2] == "bfly":
            source = lane ^ by
        elif op[2] == "up":
            source = lane - by
            source = np.where(source < (lane & segment), lane, source)
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self._write_warps(args[0], value[warps[:, source]], warps, mask)

    def _write_warps(self, register, table, warps, mask):
        """Writes a table (warp, 32)."""
        result = table.reshape(-1)
        if not self.whole:
            result = np.zeros(self.lanes, table.dtype)
            result[warps] = table
        self.write(register, result, mask)

    def _shuffle_from(self, args, mask, warps, value):
        source = self.read(args[2], U32)[warps].astype(np.int64) & 31
        self._write_warps(args[0], np.take_along_axis(value[warps], source, 1), warps, mask)

    def op_bar(self, op, args, mask):
        if op[2] != "popc":
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        counts = self.read(args[2], bool).reshape(self.blocks, -1).sum(1, dtype=U32)
        self.write(args[0], counts[self.block], mask)

    def op_vote(self, op, args, mask):
        warps = self._warps(mask)
        lanes = self.read(args[1], bool)[warps]
        if op[2] == "any":
            result = lanes.any(1)
        elif op[2] == "ballot":
            result = (lanes.astype(U32) << np.arange(32, dtype=U32)).sum(1, dtype=U32)
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self._write_warps(args[0], np.repeat(result[:, None], 32, 1), warps, mask)

    def op_ldmatrix(self, op, args, mask):
        warps = self._warps(mask)
        count, transpose = int(op[4][1:]), "trans" in op
        # Lane 8 i + j of a warp has the address of row j of matrix i.
        rows = self.address(args[1], mask).reshape(-1, 32)[:, :8 * count].reshape(-1)
        data = self.load_shared(rows, 16, warps[:, :8 * count].reshape(-1)).view(np.uint16)
        data = data.reshape(-1, count, 8, 8)  # (warps, matrix, row, column)
        if transpose:
            data = data.swapaxes(2, 3)
        pairs = np.ascontiguousarray(data.swapaxes(0, 1)).view(U32).reshape(count, -1, 32)
        for register, table in zip(args[0], pairs):
            self._write_warps(register, table, warps, mask)

    def op_stmatrix(self, op, args, mask):
        warps = self._warps(mask)
        count = int(op[4][1:])
        rows = self.address(args[0], mask).reshape(-1, 32)[:, :8 * count].reshape(-1)
        data = np.stack([self.read(register, U32)[warps] for register in args[1]], 1)
        data = data.view(np.uint16).reshape(-1, count, 8, 8)  # (warps, matrix, row, column)
        if "trans" in op:
            data = data.swapaxes(2, 3)
        data = np.ascontiguousarray(data).view(_item(16)).reshape(-1)
        self.store_shared(rows, data, warps[:, :8 * count].reshape(-1))

    def op_movmatrix(self, op, args, mask):
        warps = self._warps(mask)
        matrix = self.read(args[1], U32)[warps].view(np.uint16).reshape(-1, 8, 8)
        pairs = np.ascontiguousarray(matrix.swapaxes(1, 2)).view(U32).reshape(-1, 32)
        self._write_warps(args[0], pairs, warps, mask)

    def op_mma(self, op, args, mask):
        warps = self._warps(mask)
        shape, kind = op[3], op[7]
        if (shape, kind) not in _OPERANDS:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        left, right, start = (np.stack([self.read(r, U32) for r in arg], -1)[warps] for arg in args[1:])
        if kind == "tf32":
            left, right = _tf32(left), _tf32(right)
        else:
            widen = bf16_to_f32 if kind == "bf16" else f16_to_f32
            left, right = widen(left.view(np.uint16)), widen(right.view(np.uint16))
        left, right = (x.reshape(len(warps), -1)[:, at] for x, at in zip((left, right), _OPERANDS[shape, kind]))
        product = left.astype(np.float64) @ right
        results = product.reshape(len(warps), -1)[:, _RESULTS] + start.view(F32)
        for i, register in enumerate(args[0]):
            self._write_warps(register, results[:, :, i].astype(F32), warps, mask)

    # ---- what means nothing to threads in step

    def _nothing(self, op, args, mask):
        pass

    op_fence = op_griddepcontrol = op_setmaxnreg = _nothing

    # ---- asynchronous copies

    def op_cp(self, op, args, mask):
        if op[2] == "commit_group":
            self.groups[mask] += 1
        elif op[2] in ("wait_group", "wait_all"):
            landed = np.where(mask, self.groups - (int(args[0]) if args else 0), 0)
            copies, self.copies = self.copies, []
            for lane, offset, data, group in copies:
                done = group < landed[lane]
                if done.any():
                    self.store_shared(offset[done], data[done], lane[done])
                if not done.all():
                    self.copies.append(tuple(x[~done] for x in (lane, offset, data, group)))
        else:
            self._start_copy(args, mask)

    def _start_copy(self, args, mask):
        size = int(args[2])
        offset, address = self.address(args[0], mask), self.address(args[1], mask)
        count = self.read(args[3], U32)[mask] if len(args) > 3 else np.full(offset.size, size)
        data = np.zeros((offset.size, size), np.uint8)
        for length in set(count.tolist()) - {0}:
            chosen = count == length
            data[chosen, :length] = self.load_global(address[chosen], length).view(np.uint8).reshape(-1, length)
        # The place must be free from now on; the data are there at the wait.
        lane = self.lanes_of(mask)
        self.store_shared(offset, np.full(data.shape, 0xFF, np.uint8).view(_item(size))[:, 0], lane)
        self.copies.append((lane, offset, data.view(_item(size))[:, 0], self.groups[lane]))


def _operand_tables():
    """Where the entries of the operands of mma lie among the registers of a warp (lane, register, half of it)."""
    row, column = np.arange(16)[:, None], np.arange(8)
    deep = np.arange(8)
    words = (
        (row % 8 * 4 + deep % 4) * 4 + row // 8 + 2 * (deep // 4),
        (column * 4 + deep[:, None] % 4) * 2 + deep[:, None] // 4,
    )
    deep = np.arange(16)
    lane, register, half = deep % 8 // 2, deep // 8, deep % 2
    halves = (
        ((row % 8 * 4 + lane) * 4 + row // 8 + 2 * register) * 2 + half,
        ((column * 4 + lane[:, None]) * 2 + register[:, None]) * 2 + half[:, None],
    )
    deep = np.arange(8)
    lane, half = deep // 2, deep % 2
    short = (
        ((row % 8 * 4 + lane) * 2 + row // 8) * 2 + half,
        (column * 4 + lane[:, None]) * 2 + half[:, None],
    )
    return {
        ("m16n8k8", "tf32"): words,
        ("m16n8k8", "bf16"): short,
        ("m16n8k16", "bf16"): halves,
        ("m16n8k16", "f16"): halves,
    }


_OPERANDS = _operand_tables()
# The same of the result: its entry for a lane and register.
_LANE, _REGISTER = np.arange(32)[:, None], np.arange(4)
_RESULTS = (_LANE // 4 + 8 * (_REGISTER // 2)) * 8 + 2 * (_LANE % 4) + _REGISTER % 2

# So many lanes at a time, where there are as many: fewer calls of numpy, and arrays that stay in the cache.
_LANES = 2048


def launch(kernel, grid, threads, shared_bytes, arguments, memory):
    """Runs all blocks of a grid, some at a time, in order."""
    count = max(1, _LANES // threads)
    with np.errstate(all="ignore"):
        for first in range(0, grid, count):
            block_ids = range(first, min(first + count, grid))
            Instructions(kernel, threads, memory, shared_bytes, block_ids, arguments, grid).run()
