# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs PTX kernels without a GPU: all threads of some blocks at once in numpy.

Written from the PTX manual, for what gdn-compile emits for targets before sm_90, and for kernels of later
ones whose threads do the same; ptx_roles runs those whose warps have roles. Beside the results
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

# A note on two bytes of shared memory is the time of the access and who made it: a thread, all of a
# warp whose barrier followed (from _ORDERED on), or several threads.
_TIME, _ORDERED, _SEVERAL = 1 << 12, 1 << 10, (1 << 12) - 1


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


_STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)


def _open_scopes(text):
    """The text without scopes of inline assembly: their registers and labels have names of their own."""
    count = 0
    while opening := re.search(r"\{(?=\s*\.reg\b)", text):
        start, at, depth = opening.end(), opening.end(), 1
        while depth:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        inner = text[start:at - 1]
        names = set()
        while declared := re.search(r"\.reg\s+\.\w+\s+([^;]*);", inner):
            names |= {name.strip() for name in declared[1].split(",")}
            inner = inner[:declared.start()] + inner[declared.end():]
        labels = set(re.findall(r"(?<![\w.:%$])([A-Za-z_]\w*):(?!:)", inner))
        for name in names | labels:
            local = f"%scope{count}_{name}" if name in names else f"scope{count}_{name}"
            inner = re.sub(rf"(?<![\w.:%$]){name}(?![\w])", local, inner)
        text = text[:opening.start()] + inner + text[at:]
        count += 1
    return text


def _open_tables(text):
    """The text with branches by a number as branches by comparisons."""
    tables = {}

    def note(found):
        tables[found[1]] = [target.strip() for target in found[2].split(",")]
        return ""

    def compare(found):
        *others, last = tables[found[2]]
        steps = (
            f"setp.eq.u32 %{found[2][1:]}_{at}, {found[1]}, {at};\n@%{found[2][1:]}_{at} bra {target};\n"
            for at, target in enumerate(others))
        return "".join(steps) + f"bra {last};"

    text = re.sub(r"(\$\w+):\s*\.branchtargets([^;]*);", note, text)
    return re.sub(r"(?m)^\s*brx\.idx\s+(%\w+),\s*(\$\w+);", compare, text)


class Kernel:
    """Instructions of one entry point: (predicate, negated, opcode parts, operands)."""

    def __init__(self, name, parameters, body):
        self.name, self.parameters = name, parameters
        self.code, self.labels, self._meetings = [], {}, None
        text = "\n".join(line.split("//")[0] for line in body.splitlines())
        for statement in _open_tables(_open_scopes(text)).split(";"):
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
        self.has_warp_barriers = any(opcode[:2] == ["bar", "warp"] for _, _, opcode, _ in self.code)

    def _successors(self, start):
        """Where the basic block that begins at `start` may lead."""
        for at in range(start, len(self.code)):
            predicate, _, opcode, operands = self.code[at]
            if opcode[0] == "bra":
                return {self.labels[operands[0]]} | ({at + 1} if predicate else set())
            if opcode[0] in ("ret", "exit") and not predicate:
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
        self.starts, self.arrays = np.zeros(0, np.int64), []
        self.end = _BASE

    def place(self, array):
        """Address of an array, which the kernels then change in place."""
        self.starts = np.append(self.starts, self.end)
        self.arrays.append(array.reshape(-1).view(np.uint8))
        self.end += (self.arrays[-1].size + 2 * _GAP) // _GAP * _GAP
        return int(self.starts[-1])

    def locate(self, address, size, what):
        """Who of aligned accesses falls into which array, as items of their size, and where."""
        index = np.searchsorted(self.starts, address, "right") - 1
        for i in {int(index[0])} if (index == index[0]).all() else set(index.tolist()):
            chosen = index == i
            offset = address[chosen] - self.starts[i] if i >= 0 else address[chosen]
            if i < 0 or (offset + size > self.arrays[i].size).any():
                raise PtxError(f"{what} of {size} bytes outside all arrays")
            array = self.arrays[i]
            yield chosen, array[:array.size // size * size].view(_item(size)), offset // size


def _item(size):
    """numpy's type for `size` bytes that are moved as one."""
    return np.dtype(f"u{size}" if size <= 8 else f"V{size}")


class Blocks:
    """Some thread blocks in execution, all in step. A lane is a thread of one of them."""

    def __init__(self, kernel, threads, memory, shared_bytes, block_ids, arguments, grid=1):
        self.kernel, self.memory, self.grid = kernel, memory, grid
        self.blocks, self.lanes = len(block_ids), len(block_ids) * threads
        self.arguments = dict(zip(kernel.parameters, arguments))
        self.registers, self.constants = {}, {}
        self.block = np.repeat(np.arange(self.blocks), threads)
        self.block_id = np.repeat(np.array(block_ids, U32), threads)
        self.tid = np.tile(np.arange(threads), self.blocks)
        self.every_lane = np.arange(self.lanes)
        self.every_warp = self.every_lane.reshape(-1, 32)
        self.whole = True  # whether all lanes execute the present instruction
        # The shared memory of all blocks, each part of whole items of 16 bytes.
        self.shared_bytes, self.part = shared_bytes, -(-shared_bytes // 16) * 16
        self.shared = np.full(self.blocks * self.part, 0xFF, np.uint8)  # NaN in every type
        # Notes on the last write and the last reads of two bytes each, and the warp of all its readers.
        self.writes, self.reads, self.read_warps = np.zeros((3, self.shared.size // 2), np.int32)
        self.scratch = np.zeros(self.shared.size // 2, np.int32)
        self.flags = np.zeros(self.shared.size // 2, bool)
        self.times = np.full(self.blocks, _TIME, np.int32)
        self.latest = _TIME
        # Asynchronous copies: lanes, places, data, and which of the lane's groups they belong to.
        self.copies, self.groups = [], np.zeros(self.lanes, np.int64)

    # ---- registers

    def read(self, operand, kind=U32):
        value = self.registers.get(operand) if isinstance(operand, str) else None
        if value is None:
            return self._read_other(operand, kind)
        return value.view(F32) if kind is F32 else value.astype(kind, copy=False)

    def _read_other(self, operand, kind):
        if isinstance(operand, list):
            raise PtxError(f"vector operand {operand} where a scalar is expected")
        if operand.startswith("%tid.x"):
            return self.tid.astype(U32)
        if operand.startswith("%ctaid.x"):
            return self.block_id
        if operand.startswith("%nctaid.x"):
            return np.full(self.lanes, self.grid, U32)
        if operand == "%laneid":
            return self.tid.astype(U32) % U32(32)
        if operand.startswith("%"):
            raise PtxError(f"{operand} is read before it is written in {self.kernel.name}")
        if (operand, kind) not in self.constants:
            self.constants[operand, kind] = np.full(self.lanes, _constant(operand, kind))
            self.constants[operand, kind].setflags(write=False)
        return self.constants[operand, kind]

    def write(self, register, value, mask):
        if register == "_":
            return
        value = np.asarray(value)
        if value.dtype == F32:
            value = value.view(U32)
        if not self.whole:
            value = np.where(mask, value, self.registers.get(register, 0)).astype(value.dtype, copy=False)
        self.registers[register] = value

    def spread(self, values, mask):
        """The values of the lanes of a mask as those of all lanes, of which the others are 0."""
        if self.whole:
            return values
        result = np.zeros(self.lanes, values.dtype)
        result[mask] = values
        return result

    def lanes_of(self, mask):
        return self.every_lane if self.whole else np.flatnonzero(mask)

    # ---- shared memory

    def _item_of(self, offset, size, lane):
        """Which item of `size` bytes of all blocks' shared memory an access means."""
        if (offset < 0).any() or (offset + size > self.shared_bytes).any():
            raise PtxError(f"{self.kernel.name}: shared access outside {self.shared_bytes} bytes")
        if (offset % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned shared access of {size} bytes")
        return (offset + self.block[lane] * self.part) // size

    def _check_notes(self, accesses, offset, lane, verbs):
        """No other thread may have made the noted accesses since the last barrier, unless one of the warp did
        so in front of a barrier of the warp."""
        thread = self.tid[lane][:, None]
        foreign = False
        for notes in accesses:
            foreign |= (notes >= 0) & (notes != thread) & (notes != _ORDERED + thread // 32)
        if foreign.any():
            part, first = np.argwhere(foreign.T)[0]
            raise PtxError(
                f"{self.kernel.name}: thread {thread[first, 0]} {verbs[0]} shared byte {offset[first] + 2 * part} "
                f"that another thread {verbs[1]} without a barrier between")

    def _note(self, item, offset, size, lane, writes):
        """Notes accesses of one instruction, which are aligned: they mean the same bytes or none in common."""
        thread, now = self.tid[lane][:, None], self.times[self.block[lane]][:, None]
        warp = thread // 32
        written, read = (notes.reshape(-1, size // 2) for notes in (self.writes, self.reads))
        self.scratch[item] = np.arange(item.size)
        other = self.scratch[item]  # the last lane that names the same item
        others = np.flatnonzero(other != np.arange(item.size))
        if writes:
            self._check_notes((written[item] - now, read[item] - now), offset, lane, ("writes", "uses"))
            if others.size:
                raise PtxError(
                    f"{self.kernel.name}: two threads write shared byte {offset[others[0]]} at once")
            written[item] = now + thread
            return
        self._check_notes((written[item] - now,), offset, lane, ("reads", "writes"))
        several = (read[item] >= now) & (read[item] != now + thread) | self._named(item, others)
        read[item] = now + np.where(several, _SEVERAL, thread)
        if self.kernel.has_warp_barriers:
            warps = self.read_warps.reshape(-1, size // 2)
            mixed = self._named(item, others[warp[others, 0] != warp[other[others], 0]])
            several = (warps[item] >= now) & (warps[item] != now + warp) | mixed
            warps[item] = now + np.where(several, _SEVERAL, warp)

    def _named(self, item, chosen):
        """Which accesses name an item that one of the chosen accesses names, as a column."""
        if not chosen.size:
            return np.zeros((item.size, 1), bool)
        self.flags[item] = False
        self.flags[item[chosen]] = True
        return self.flags[item][:, None]

    def _sync_warps(self, warps):
        """Orders what the warps of a table (block, warp) did so far for themselves."""
        times = np.repeat(self.times, self.part // 2)
        for notes, of, per_warp in ((self.reads, self.read_warps, 1), (self.writes, self.writes, 32)):
            at = np.flatnonzero((of >= times) & (of < times + per_warp * warps.shape[1]))
            warp = (of[at] - times[at]) // per_warp
            chosen = warps[at // (self.part // 2), warp]
            notes[at[chosen]] = times[at[chosen]] + _ORDERED + warp[chosen]

    def load_shared(self, offset, size, lane):
        item = self._item_of(offset, size, lane)
        self._note(item, offset, size, lane, writes=False)
        return self.shared.view(_item(size))[item]

    def store_shared(self, offset, data, lane):
        size = data.itemsize
        item = self._item_of(offset, size, lane)
        self._note(item, offset, size, lane, writes=True)
        self.shared.view(data.dtype)[item] = data

    # ---- global memory

    def load_global(self, address, size):
        if (address % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned load of {size} bytes")
        result = np.empty(address.size, _item(size))
        for chosen, array, item in self.memory.locate(address, size, "load"):
            result[chosen] = array[item]
        return result

    def store_global(self, address, data):
        size = data.itemsize
        if (address % size).any():
            raise PtxError(f"{self.kernel.name}: misaligned store of {size} bytes")
        for chosen, array, item in self.memory.locate(address, size, "store"):
            array[item] = data[chosen]

    def address(self, operand, mask):
        base, _, constant = operand[1:-1].partition("+")
        value = self.read(base if base.startswith("%") or base.isdigit() else "0", U64)
        value = value.astype(np.int64) + (int(constant) if constant else 0)
        return value if self.whole else value[mask]

    # ---- control

    def run(self):
        """All threads in step; where they part, one side after the other up to the point where they meet."""
        code, end = self.kernel.code, len(self.kernel.code)
        alive = np.ones(self.lanes, bool)
        paths = [(0, alive.copy(), end)]  # where, who, and up to where
        while paths:
            pc, mask, until = paths.pop()
            mask = mask & alive
            some, whole = mask.any(), mask.all()
            while pc != until and pc < end and some:
                predicate, negated, opcode, operands = code[pc]
                active, self.whole = mask, whole
                if predicate:
                    active = mask & (self.read(predicate, bool) != negated)
                    self.whole = active.all()
                pc += 1
                if opcode[0] == "bra":
                    target = self.kernel.labels[operands[0]]
                    if (active == mask).all():
                        pc = target
                    elif active.any():
                        meet = self.kernel.meeting_point(pc - 1)
                        paths += [(meet, mask, until), (pc, mask & ~active, meet)]
                        pc, mask, until, whole = target, active, meet, False
                elif opcode[0] in ("ret", "exit"):
                    alive &= ~active
                    mask = mask & alive
                    some, whole = mask.any(), mask.all()
                elif opcode[0] in ("bar", "barrier"):
                    self._barrier(opcode, operands, active)
                elif active.any():
                    self.execute(opcode, operands, active)

    def _barrier(self, opcode, operands, active):
        warps = active.reshape(self.blocks, -1, 32)
        if opcode[1] == "warp":
            if (warps.any(axis=2) != warps.all(axis=2)).any():
                raise PtxError(f"{self.kernel.name}: a warp barrier that not all lanes reach together")
            return self._sync_warps(warps.any(axis=2))
        arrived = warps.any(axis=(1, 2))
        if (arrived != warps.all(axis=(1, 2))).any():
            raise PtxError(f"{self.kernel.name}: a barrier that not all threads reach together")
        self.latest += _TIME
        self.times[arrived] = self.latest
        if opcode[1] == "red":
            self.execute(opcode, operands, active)

    def execute(self, opcode, operands, mask):
        handler = getattr(self, "op_" + opcode[0], None)
        if handler is None:
            raise PtxError(f"unknown instruction {'.'.join(opcode)}")
        handler(opcode, operands, mask)


def _constant(operand, kind):
    """The value of an operand that is no register."""
    if operand == "smem":
        return kind(0)
    if match := re.fullmatch(r"0f([0-9A-Fa-f]{8})", operand):
        return np.array(int(match[1], 16), U32).view(F32)[()] if kind is F32 else U32(int(match[1], 16))
    if operand in ("true", "false"):
        return operand == "true"
    if match := re.fullmatch(r"smem\+(\d+)", operand):
        operand = match[1]
    if kind is bool:
        return int(operand, 0) != 0
    size = np.dtype(kind).itemsize
    return np.array(int(operand, 0) & (1 << 8 * size) - 1, f"u{size}").view(kind)[()]
