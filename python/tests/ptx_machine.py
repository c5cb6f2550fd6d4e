# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs PTX kernels without a GPU: one block after the other, all its threads at once in numpy.

Written from the PTX manual, for what gdn-compile emits for targets before sm_90. Beside the results
it checks what a GPU hides: every access outside an array stops the run, asynchronous copies land
only at their wait, and two threads that touch the same byte of shared memory between two
barriers, one of them writing, are an error.
"""

from __future__ import annotations

import re

import numpy as np

U32, U64, F32 = np.uint32, np.uint64, np.float32
_BASE = 1 << 20  # address of the first array
_GAP = 1 << 12  # between arrays: no access may land there


class PtxError(Exception):
    """The program does what it must not, or what this machine does not know."""


def bf16_to_f32(bits):
    return (bits.astype(U32) << U32(16)).view(F32)


def f32_to_bf16(values):
    bits = np.ascontiguousarray(values, F32).view(U32)
    rounded = ((bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


def f16_to_f32(bits):
    return bits.astype(np.uint16).view(np.float16).astype(F32)


def f32_to_f16(values):
    return values.astype(np.float16).view(np.uint16)


def _tf32(bits):
    """What the tensor core reads of an f32 register."""
    return (bits & U32(0xFFFFE000)).view(F32)


_STATEMENT = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)


class Kernel:
    """Instructions of one entry point: (predicate, negated, opcode parts, operands)."""

    def __init__(self, name, parameters, body):
        self.name, self.parameters = name, parameters
        self.code, self.labels, self._meetings = [], {}, None
        text = "\n".join(line.split("//")[0] for line in body.splitlines())
        for statement in text.split(";"):
            statement = statement.strip()
            while label := re.match(r"(\$?\w+):(?![:\w])\s*", statement):
                self.labels[label[1]] = len(self.code)
                statement = statement[label.end():]
            if not statement or statement.startswith((".reg", ".loc", ".pragma")):
                continue
            match = _STATEMENT.fullmatch(statement)
            if match is None:
                raise PtxError(f"no instruction: {statement}")
            negated, predicate, opcode, rest = match.groups()
            self.code.append((predicate, bool(negated), opcode.split("."), _operands(rest)))


    def _successors(self, start):
        """Where the basic block that begins at `start` may lead."""
        for at in range(start, len(self.code)):
            predicate, _, opcode, operands = self.code[at]
            if opcode[0] == "bra":
                return {self.labels[operands[0]]} | ({at + 1} if predicate else set())
            if opcode[0] == "ret" and not predicate:
                return {len(self.code)}
            if at + 1 in self._starts:
                return {at + 1}
        return {len(self.code)}

    def _post_dominators(self):
        """For each basic block the blocks that all ways from it to the end pass."""
        branches = (at + 1 for at, entry in enumerate(self.code) if entry[2][0] == "bra")
        self._starts = {0, len(self.code)} | set(self.labels.values()) | set(branches)
        follow = {start: self._successors(start) for start in self._starts if start < len(self.code)}
        sets = {start: set(self._starts) for start in follow} | {len(self.code): {len(self.code)}}
        changed = True
        while changed:
            changed = False
            for start, successors in follow.items():
                new = {start} | set.intersection(*(sets[s] for s in successors))
                changed |= new != sets[start]
                sets[start] = new
        return sets

    def meeting_point(self, branch):
        """Where threads meet again that part at a branch: its block's nearest post-dominator."""
        if self._meetings is None:
            self._meetings = self._post_dominators()
        block = max(start for start in self._starts if start <= branch)
        others = self._meetings[block] - {block}
        # The nearest one is post-dominated by all the others.
        return max(others, key=lambda start: len(self._meetings[start]))


def _operands(text):
    found, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "{[") - (c in "}]")
        if c == "," and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    found = [f for f in found if f]
    return [
        [part.strip() for part in f[1:-1].split(",")] if f.startswith("{") else f for f in found
    ]


def parse(text):
    """The kernels of a PTX module, by name."""
    kernels = {}
    for match in re.finditer(r"\.entry (\w+)\((.*?)\)(.*?)\n\{(.*?)\n\}", text, re.S):
        parameters = re.findall(r"(\w+_param_\d+)", match[2])
        kernels[match[1]] = Kernel(match[1], parameters, match[4])
    return kernels


class Memory:
    """Global memory: numpy arrays at addresses far apart."""

    def __init__(self):
        self.starts, self.arrays = [], []
        self.end = _BASE

    def place(self, array):
        """Address of an array, which the kernels then change in place."""
        self.starts.append(self.end)
        self.arrays.append(array.reshape(-1).view(np.uint8))
        self.end += (self.arrays[-1].size + 2 * _GAP) // _GAP * _GAP
        return self.starts[-1]

    def locate(self, address, size, what):
        """Array and offsets of accesses that must all lie in one array or in several."""
        index = np.searchsorted(np.array(self.starts, np.int64), address, "right") - 1
        for i in np.unique(index):
            chosen = index == i
            offset = address[chosen] - self.starts[i] if i >= 0 else address[chosen]
            if i < 0 or (offset + size > self.arrays[i].size).any():
                raise PtxError(f"{what} of {size} bytes outside all arrays")
            yield chosen, self.arrays[i], offset


class Block:
    """One thread block in execution."""

    def __init__(self, kernel, threads, memory, shared_bytes, block_id, arguments):
        self.kernel, self.threads, self.memory, self.block_id = kernel, threads, memory, block_id
        self.arguments = dict(zip(kernel.parameters, arguments))
        self.registers = {}
        self.shared = np.full(shared_bytes, 0xFF, np.uint8)  # NaN in every type
        # Epoch and thread of the last write and read of each shared byte; -1: several threads.
        self.epoch = 1
        self.write_epoch, self.read_epoch = (np.zeros(shared_bytes, np.int64) for _ in range(2))
        self.writer, self.reader = (np.zeros(shared_bytes, np.int64) for _ in range(2))
        # The warp of all readers since the barrier, or -1.
        self.reader_warp = np.zeros(shared_bytes, np.int64)
        self.copies, self.groups = [], []
        self.tid = np.arange(threads)

    # ---- registers

    def read(self, operand, kind=U32):
        if isinstance(operand, list):
            raise PtxError(f"vector operand {operand} where a scalar is expected")
        if operand.startswith("%tid.x"):
            return self.tid.astype(U32)
        if operand.startswith("%ctaid.x"):
            return np.full(self.threads, self.block_id, U32)
        if operand.startswith("%"):
            if operand not in self.registers:
                raise PtxError(f"{operand} is read before it is written in {self.kernel.name}")
            value = self.registers[operand]
            return value.view(F32) if kind == F32 else value.astype(kind, copy=False)
        if operand == "smem":
            return np.zeros(self.threads, kind)
        if match := re.fullmatch(r"0f([0-9A-Fa-f]{8})", operand):
            bits = np.full(self.threads, int(match[1], 16), U32)
            return bits.view(F32) if kind == F32 else bits
        if operand in ("true", "false"):
            return np.full(self.threads, operand == "true")
        if match := re.fullmatch(r"smem\+(\d+)", operand):
            operand = match[1]
        if kind is bool:
            return np.full(self.threads, int(operand, 0) != 0)
        number = int(operand, 0) & (1 << (8 * np.dtype(kind).itemsize)) - 1
        return np.full(self.threads, number, np.dtype(f"u{np.dtype(kind).itemsize}")).view(kind)

    def write(self, register, value, mask):
        if register == "_":
            return
        value = np.asarray(value)
        if value.dtype == F32:
            value = value.view(U32)
        old = self.registers.get(register)
        if old is None or mask.all():
            self.registers[register] = value if old is None and mask.all() else np.where(
                mask, value, old if old is not None else 0).astype(value.dtype)
        else:
            self.registers[register] = np.where(mask, value, old).astype(value.dtype)

    # ---- shared memory

    def _check_shared(self, offset, size):
        if (offset < 0).any() or (offset + size > self.shared.size).any():
            raise PtxError(f"{self.kernel.name}: shared access outside {self.shared.size} bytes")
        if (offset % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned shared access of {size} bytes")

    def _note(self, offset, size, thread, writes):
        for byte in range(0, size, 2):
            at = offset + byte
            # Accesses in front of a barrier of the thread's own warp are ordered.
            ordered = -2 - thread // 32
            writer, reader = self.writer[at], self.reader[at]
            foreign = (self.write_epoch[at] == self.epoch) & (writer != thread) & (writer != ordered)
            if writes:
                foreign |= (self.read_epoch[at] == self.epoch) & (reader != thread) & (reader != ordered)
            if foreign.any():
                first = np.flatnonzero(foreign)[0]
                raise PtxError(
                    f"{self.kernel.name}: thread {thread[first]} {'writes' if writes else 'reads'} shared byte "
                    f"{at[first]} that another thread {'uses' if writes else 'writes'} without a barrier between")
            if writes:
                if np.unique(at).size != at.size:
                    raise PtxError(f"{self.kernel.name}: two threads write shared byte {at[0]} at once")
                self.write_epoch[at], self.writer[at] = self.epoch, thread
            else:
                current = self.read_epoch[at] == self.epoch
                again = current & (self.reader[at] != thread)
                other_warp = current & (self.reader_warp[at] != thread // 32)
                order = np.argsort(at, kind="stable")
                repeated = np.zeros(at.size, bool)
                same = at[order][1:] == at[order][:-1]
                repeated[order[1:]] |= same
                repeated[order[:-1]] |= same
                # Threads of one access that read the same byte: of one warp or not.
                warps = (thread // 32)[order]
                mixed = np.zeros(at.size, bool)
                different = same & (warps[1:] != warps[:-1])
                mixed[order[1:]] |= different
                mixed[order[:-1]] |= different
                self.reader[at] = np.where(again | repeated, -1, thread)
                self.reader_warp[at] = np.where(other_warp | mixed, -1, thread // 32)
                self.read_epoch[at] = self.epoch

    def _sync_warps(self, warps):
        for warp in warps:
            read = (self.read_epoch == self.epoch) & (self.reader_warp == warp)
            self.reader[read] = -2 - warp
            written = (self.write_epoch == self.epoch) & (self.writer // 32 == warp) & (self.writer >= 0)
            self.writer[written] = -2 - warp

    def load_shared(self, offset, size, thread):
        self._check_shared(offset, size)
        self._note(offset, size, thread, writes=False)
        return self.shared[offset[:, None] + np.arange(size)]

    def store_shared(self, offset, data, thread):
        self._check_shared(offset, data.shape[1])
        self._note(offset, data.shape[1], thread, writes=True)
        self.shared[offset[:, None] + np.arange(data.shape[1])] = data

    def load_global(self, address, size):
        if (address % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned load of {size} bytes")
        result = np.empty((address.size, size), np.uint8)
        for chosen, array, offset in self.memory.locate(address, size, "load"):
            result[chosen] = array[offset[:, None] + np.arange(size)]
        return result

    def store_global(self, address, data):
        size = data.shape[1]
        if (address % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned store of {size} bytes")
        for chosen, array, offset in self.memory.locate(address, size, "store"):
            array[offset[:, None] + np.arange(size)] = data[chosen]

    def address(self, operand, mask):
        base, _, constant = operand[1:-1].partition("+")
        value = self.read(base, U64) if base.startswith("%") else np.zeros(self.threads, U64)
        if base.isdigit():
            value = value + U64(int(base))
        return (value.astype(np.int64) + (int(constant) if constant else 0))[mask]

    # ---- control

    def run(self):
        """All threads in step; where they part, one side after the other up to the point where they meet."""
        code, end = self.kernel.code, len(self.kernel.code)
        alive = np.ones(self.threads, bool)
        paths = [(0, alive.copy(), end)]  # where, who, and up to where
        while paths:
            pc, mask, until = paths.pop()
            mask = mask & alive
            while pc != until and pc < end and mask.any():
                predicate, negated, opcode, operands = code[pc]
                active = mask & (self.read(predicate, bool) != negated) if predicate else mask
                pc += 1
                if opcode[0] == "bra":
                    target = self.kernel.labels[operands[0]]
                    if active.all() or (active == mask).all():
                        pc = target
                    elif active.any():
                        meet = self.kernel.meeting_point(pc - 1)
                        paths += [(meet, mask, until), (pc, mask & ~active, meet)]
                        pc, mask, until = target, active, meet
                elif opcode[0] == "ret":
                    alive &= ~active
                    mask = mask & alive
                elif opcode[:2] == ["bar", "warp"]:
                    lanes = active.reshape(-1, 32)
                    if (lanes.any(axis=1) != lanes.all(axis=1)).any():
                        raise PtxError(f"{self.kernel.name}: a warp barrier that not all lanes reach together")
                    self._sync_warps(np.flatnonzero(lanes.any(axis=1)))
                elif opcode[0] in ("bar", "barrier"):
                    if not mask.all() or not active.all():
                        raise PtxError(f"{self.kernel.name}: a barrier that not all threads reach together")
                    self.epoch += 1
                    if opcode[1] == "red":
                        self.execute(opcode, operands, active)
                elif active.any():
                    self.execute(opcode, operands, active)

    def execute(self, opcode, operands, mask):
        handler = getattr(self, "op_" + opcode[0], None)
        if handler is None:
            raise PtxError(f"unknown instruction {'.'.join(opcode)}")
        with np.errstate(all="ignore"):
            handler(opcode, operands, mask)
