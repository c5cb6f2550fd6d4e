# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The second mode of ptx_machine: kernels of sm_90a whose warps have roles and wait for each other.

Warps that stay together are a Crew, which executes as one; it parts where a branch with waits behind it
parts its warps, and goes on until it has to wait. Crews meet again where they have waited at the same place.
If nobody can go on, the run stops and says what each waits for. Always the first warps that can go on do so,
or the last ones: what others owe them is then as late as it can be.
"""

from __future__ import annotations

import numpy as np

import ptx_instructions
from ptx_async import PARAMETERS, Barriers, Copies, TensorMap
from ptx_clocks import Clocks
from ptx_machine import U32, U64, PtxError
from ptx_wgmma import Products

_LANES = 2048  # at a time, as in ptx_instructions
_NAMED = 16  # barriers of a block that bar.sync knows


class Kind:
    """What of a kernel only this mode needs to know."""

    def __init__(self, kernel):
        self.kernel, self.known = kernel, {}
        self.waits = [is_wait(opcode) for _, _, opcode, _ in kernel.code]
        self.parts = [wait or opcode[0] == "wgmma" for wait, (_, _, opcode, _) in zip(self.waits, kernel.code)]
        self.has_roles = any(
            opcode[0] in ("mbarrier", "wgmma") or opcode[:3] == ["cp", "async", "bulk"] or is_part_barrier(opcode, args)
            for _, _, opcode, args in kernel.code)

    def part_behind(self, branch):
        """Whether warps that part at a branch have to wait, or for each other, before they meet."""
        if branch not in self.known:
            meet = self.kernel.meeting_point(branch)
            code, labels = self.kernel.code, self.kernel.labels
            seen, open_ends = set(), [branch + 1, labels[code[branch][3][0]]]
            while open_ends:
                at = open_ends.pop()
                if at in seen or at == meet or at >= len(code):
                    continue
                seen.add(at)
                predicate, _, opcode, operands = code[at]
                if opcode[0] == "bra":
                    open_ends.append(labels[operands[0]])
                if predicate or opcode[0] not in ("bra", "ret", "exit"):
                    open_ends.append(at + 1)
            self.known[branch] = any(self.parts[at] for at in seen)
        return self.known[branch]


def kind_of(kernel):
    if not hasattr(kernel, "kind"):
        kernel.kind = Kind(kernel)
    return kernel.kind


def is_wait(opcode):
    return (opcode[0] in ("bar", "barrier") and opcode[1] != "warp") or opcode[1:2] == ["try_wait"]


def is_part_barrier(opcode, args):
    return opcode[0] in ("bar", "barrier") and opcode[1] in ("sync", "arrive") and (len(args) > 1 or args[0] != "0")


class Team:
    """Some thread blocks in execution."""

    def __init__(self, kernel, threads, memory, shared_bytes, block_ids, arguments, grid, reverse):
        self.kernel, self.memory, self.threads, self.grid = kernel, memory, threads, grid
        self.blocks, self.reverse = len(block_ids), reverse
        self.shared_bytes, self.part = shared_bytes, -(-shared_bytes // 1024) * 1024
        self.shared = np.full(self.blocks * self.part, 0xFF, np.uint8)
        self.clocks = Clocks(kernel.name, self.blocks, threads // 32, self.part)
        self.barriers = Barriers(kernel.name, self.shared.size // 8, self.clocks)
        self.stores = {}  # copies to global memory by thread, in groups, the last one open
        self.maps = {}
        self.arguments = {}
        for at, (name, value) in enumerate(zip(kernel.parameters, arguments)):
            if isinstance(value, TensorMap):
                self.maps[PARAMETERS + 128 * at], value = value, PARAMETERS + 128 * at
            self.arguments[name] = value
        self.tables = {}
        # Of the named barriers: threads that arrived, how many are needed, and how often it was complete.
        self.arrived, self.needed, self.rounds = np.zeros((3, self.blocks * _NAMED), np.int64)
        lanes = self.blocks * threads
        self.crews = [Crew(self, np.arange(lanes), np.array(block_ids, U32))]

    def tensor_map(self, address):
        if address not in self.maps:
            raise PtxError(f"{self.kernel.name}: a copy by a tensor map that is no parameter")
        return self.maps[address]

    def places(self, layout, start):
        key = id(layout), start
        if key not in self.tables:
            self.tables[key] = layout.places(start)
        return self.tables[key]

    def run(self):
        """Always the first crew that can, so that those behind it are late."""
        while self.crews:
            crew = next((crew for crew in self.ordered() if crew.is_ready().all()), None)
            if crew:
                self.advance(crew)
            elif not self.part_ready():
                raise PtxError(f"{self.kernel.name}: deadlock\n" + "\n".join(c.about() for c in self.ordered()))
        if any(any(groups) for groups in self.stores.values()):
            raise PtxError(f"{self.kernel.name}: a copy from shared memory that nobody waits for")

    def ordered(self):
        return sorted(self.crews, key=lambda crew: (crew.tid[0], crew.block[0]), reverse=self.reverse)

    def part_ready(self):
        """Lets warps go on alone whose fellows wait; whether there are any."""
        for crew in self.ordered():
            ready = crew.is_ready()
            if ready.any() and not ready.all():
                self.crews.remove(crew)
                self.crews += crew.apart(ready)
                return True
        return False

    def advance(self, crew):
        """Crews that may go on from the same place become one."""
        crews = [crew]
        if crew.can_join():
            crews += [
                other for other in self.crews
                if other is not crew and other.pc == crew.pc and other.can_join() and other.is_ready().all()]
        self.crews = [other for other in self.crews if other not in crews]
        self.crews += (Crew.joined(crews) if len(crews) > 1 else crew).advance()


class Crew(Products, Copies, ptx_instructions.Instructions):
    """Warps that execute as one."""

    def __init__(self, team, places, block_ids):
        """`places` number the threads of all blocks."""
        self.team, self.kernel, self.memory, self.grid = team, team.kernel, team.memory, team.grid
        self.arguments, self.shared, self.part = team.arguments, team.shared, team.part
        self.shared_bytes, self.block_ids = team.shared_bytes, block_ids
        self.registers, self.copies = {}, []
        self.init_products()
        self.pc, self.until, self.paths = 0, len(self.kernel.code), []
        self._place(places)
        self.mask = self.alive = np.ones(self.lanes, bool)
        self.groups = np.zeros(self.lanes, np.int64)
        self.wait = None

    def _place(self, places):
        self.places, self.lanes, self.constants = places, places.size, {}
        self.block, self.tid = np.divmod(places, self.team.threads)
        self.block_id = self.block_ids[self.block]
        self.block_number = self.block_id.astype(np.int64)
        self.blocks = np.unique(self.block).size
        self.every_lane = np.arange(self.lanes)
        self.every_warp = self.every_lane.reshape(-1, 32)
        self.whole = True
        self._warpgroups = None

    def has_warpgroups(self):
        """Whether the warps are those of whole warpgroups."""
        if self._warpgroups is None:
            places = self.places
            self._warpgroups = places.size % 128 == 0 and bool(
                (self.tid[::128] % 128 == 0).all() and (np.diff(places.reshape(-1, 128)) == 1).all())
        return self._warpgroups

    # ---- parting and meeting

    def some(self, lanes):
        """The crew of some of the lanes, which are whole warps."""
        other = object.__new__(Crew)
        other.__dict__ = dict(self.__dict__)
        other._place(self.places[lanes])
        other.registers = {name: value[lanes] for name, value in self.registers.items()}
        other.mask, other.alive, other.groups = self.mask[lanes], self.alive[lanes], self.groups[lanes]
        other.paths = [(pc, mask[lanes], until) for pc, mask, until in self.paths]
        new_lane = np.full(self.lanes, -1)
        new_lane[lanes] = np.arange(other.lanes)
        other.copies = []
        for lane, *rest in self.copies:
            kept = new_lane[lane] >= 0
            if kept.any():
                other.copies.append((new_lane[lane][kept], *(values[kept] for values in rest)))
        other.sums = {key: values[:, lanes] for key, values in self.sums.items()}
        other.fresh, other.held = set(self.fresh), set(self.held)
        other.open_products = [product.part(lanes) for product in self.open_products]
        other.product_groups = [[product.part(lanes) for product in group] for group in self.product_groups]
        if self.wait:
            other.wait = self.wait[0], *(values[lanes] for values in self.wait[1:])
        return other

    def apart(self, chosen):
        """Two crews: the warps that are chosen, and the others."""
        return [self.some(np.flatnonzero(lanes)) for lanes in (chosen, ~chosen)]

    def can_join(self):
        return self.wait and not self.paths and self.mask.all() and not self.has_products() and not self.copies

    @staticmethod
    def joined(crews):
        first = crews[0]
        places = np.concatenate([crew.places for crew in crews])
        order = np.argsort(places)

        def together(values):
            return np.concatenate(values)[order]

        other = Crew(first.team, places[order], first.block_ids)
        # What one of them has not written, none of them reads from here on.
        names = set.intersection(*(set(crew.registers) for crew in crews))
        other.registers = {name: together([crew.registers[name] for crew in crews]) for name in names}
        other.groups = together([crew.groups for crew in crews])
        other.fresh = set.union(*(crew.fresh for crew in crews))
        other.pc = first.pc
        other.wait = first.wait[0], *(together(values) for values in zip(*(crew.wait[1:] for crew in crews)))
        return other

    # ---- registers

    def _read_other(self, operand, kind):
        if operand in self.held:
            raise PtxError(f"{self.kernel.name}: {operand} is read while a product writes it")
        if operand in self.arguments:
            return np.full(self.lanes, self.arguments[operand], U64)
        return super()._read_other(operand, kind)

    def write(self, register, value, mask):
        if register in self.held:
            raise PtxError(f"{self.kernel.name}: {register} is written while a product uses it")
        self.fresh.add(register)
        super().write(register, value, mask)

    # ---- waits

    def begin_wait(self, opcode, operands, mask):
        """Notes for what the lanes of a mask wait from now on: (kind, who, where, for what)."""
        where, what = np.zeros((2, self.lanes), np.int64)
        if opcode[0] == "mbarrier":
            if opcode[2] != "parity":
                raise PtxError(f"unknown instruction {'.'.join(opcode)}")
            where[mask] = self.barrier_of(operands[1], mask)
            self.team.barriers.check(where[mask])
            what[mask] = self.read(operands[2], U32)[mask]
            self.write(operands[0], np.ones(self.lanes, bool), mask)
        else:
            number = self.read(operands[0], U32).astype(np.int64)
            where, what = self._arrive(opcode, operands, mask, number)
            mask = mask & (opcode[1] == "sync")
        self.wait = opcode[0], mask.copy(), where, what

    def _arrive(self, opcode, operands, mask, number):
        """Arrives at named barriers; for each lane its barrier and the round that must be complete."""
        team, warps = self.team, mask.reshape(-1, 32)
        if (warps.any(1) != warps.all(1)).any() or opcode[1] not in ("sync", "arrive"):
            raise PtxError(f"{self.kernel.name}: {'.'.join(opcode)} in a part of a warp")
        count = self.read(operands[1], U32)[mask] if len(operands) > 1 else np.full(int(mask.sum()), team.threads)
        where = self.block * _NAMED + number
        named = set()
        for at, needed in set(zip(where[mask].tolist(), count.tolist())):
            if at in named or (team.arrived[at] and team.needed[at] != needed):
                text = f"barrier {at % _NAMED} of {needed} and of {team.needed[at]} threads"
                raise PtxError(f"{self.kernel.name}: {text}")
            named.add(at)
            team.needed[at] = needed
        what = team.rounds[where] + (opcode[1] == "sync")
        team.clocks.arrive(*self.warps_of(mask), -1 - where[mask])
        np.add.at(team.arrived, where[mask], 1)
        if (team.arrived > team.needed).any():
            raise PtxError(f"{self.kernel.name}: more threads at a barrier than its count")
        done = (team.arrived == team.needed) & (team.needed > 0)
        team.rounds[done] += 1
        team.arrived[done] = 0
        for at in np.flatnonzero(done).tolist():
            team.clocks.complete(-1 - at)
        return where, what

    def _end_wait(self):
        if self.wait:
            kind, mask, where, _ = self.wait
            self.whole = mask.all()
            self.team.clocks.wait(*self.warps_of(mask), where[mask] if kind == "mbarrier" else -1 - where[mask])
        self.wait = None

    def is_ready(self):
        """Of which lanes the warps may go on."""
        if self.wait is None:
            return np.ones(self.lanes, bool)
        kind, mask, where, what = self.wait
        if kind == "mbarrier":
            barriers = self.team.barriers
            ready = ~mask | (barriers.phases[where] & 1 != what)
            if not ready.all():
                barriers.settle(np.unique(where[~ready]).tolist())
                ready = ~mask | (barriers.phases[where] & 1 != what)
        else:
            ready = ~mask | (self.team.rounds[where] >= what)
        return np.repeat(ready.reshape(-1, 32).all(1), 32)

    def about(self):
        """For what it waits, of its first warp that has to."""
        warps = ", ".join(str(w) for w in np.unique(self.tid // 32))
        blocks = ", ".join(str(b) for b in np.unique(self.block_id))
        kind, mask, where, what = self.wait
        lane = np.flatnonzero(~self.is_ready() & mask)[0]
        if kind == "mbarrier":
            byte = where[lane] * 8 - self.block[lane] * self.part
            text = f"byte {byte}, parity {what[lane]}: {self.team.barriers.about(where[lane])}"
        else:
            at = where[lane]
            text = f"{at % _NAMED}: {self.team.arrived[at]} of {self.team.needed[at]} threads are there"
        return f"warps {warps} of blocks {blocks} wait at barrier {text}"

    # ---- control

    def advance(self):
        """Executes up to the next wait; the crews that are left."""
        self._end_wait()
        kernel, code, end = self.kernel, self.kernel.code, len(self.kernel.code)
        while True:
            some, whole = self.mask.any(), self.mask.all()
            while self.pc != self.until and self.pc < end and some:
                predicate, negated, opcode, operands = code[self.pc]
                active, self.whole = self.mask, whole
                if predicate:
                    active = self.mask & (self.read(predicate, bool) != negated)
                    self.whole = active.all()
                self.pc += 1
                if opcode[0] == "bra":
                    target = kernel.labels[operands[0]]
                    taken = active if self.whole else active[self.mask]
                    if taken.all():
                        self.pc = target
                    elif taken.any():
                        crews = self._part(active)
                        if crews:
                            return crews
                        meet = kernel.meeting_point(self.pc - 1)
                        self.paths += [(meet, self.mask, self.until), (self.pc, self.mask & ~active, meet)]
                        self.pc, self.mask, self.until, whole = target, active, meet, False
                elif opcode[0] in ("ret", "exit"):
                    self.alive = self.alive & ~active
                    self.mask = self.mask & self.alive
                    some, whole = self.mask.any(), self.mask.all()
                elif kernel.kind.waits[self.pc - 1]:
                    if active.any():
                        self.begin_wait(opcode, operands, active)
                        return [self]
                elif opcode[0] == "bar":
                    self._check_warps(active)
                elif self.whole or active.any():
                    self.execute(opcode, operands, active)
            if not self.paths:
                break
            self.pc, self.mask, self.until = self.paths.pop()
            self.mask = self.mask & self.alive
        if self.has_products() or self.copies:
            raise PtxError(f"{kernel.name}: ends with products or copies that nobody waits for")
        return []

    def _part(self, active):
        """The crews of the warps that go the one way, the other, and both, if they have to part at a branch."""
        if not self.kernel.kind.part_behind(self.pc - 1):
            return None
        goes, stays = (lanes.reshape(-1, 32).any(1) for lanes in (active, self.mask & ~active))
        ways = np.repeat(goes + 2 * stays, 32)
        if (ways == ways[0]).all():
            return None
        self.pc -= 1
        return [self.some(np.flatnonzero(ways == way)) for way in np.unique(ways)]

    def _check_warps(self, active):
        warps = active.reshape(-1, 32)
        if (warps.any(1) != warps.all(1)).any():
            raise PtxError(f"{self.kernel.name}: a warp barrier that not all lanes reach together")

    def _note(self, item, offset, size, lane, writes):
        units = (item * size // 4)[:, None] + np.arange(max(1, size // 4))
        access = self.team.clocks.write if writes else self.team.clocks.read
        access(self.block[lane], self.tid[lane] // 32, units)


def launch(kernel, grid, threads, shared_bytes, arguments, memory, reverse=False):
    """Runs all blocks of a grid; with `reverse` the last warps go first as far as they can."""
    if not kind_of(kernel).has_roles:
        return ptx_instructions.launch(kernel, grid, threads, shared_bytes, arguments, memory)
    count = max(1, _LANES // threads)
    with np.errstate(all="ignore"):
        for first in range(0, grid, count):
            block_ids = range(first, min(first + count, grid))
            Team(kernel, threads, memory, shared_bytes, block_ids, arguments, grid, reverse).run()
