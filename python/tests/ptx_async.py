# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers in shared memory and copies of the copy engine for ptx_roles: as late as the program allows.

A copy to shared memory takes its place at once, which holds NaN from then on, and lands when nothing
but copies is missing at its barrier and somebody waits there. A copy from shared memory reads at the wait.
"""

from __future__ import annotations

import re

import numpy as np

from ptx_machine import U32, U64, PtxError, _item
from ptx_wgmma import swizzled

PARAMETERS = 1 << 44  # address of the first parameter that is a tensor map
_ITEMS = {"bf16": 2, "f16": 2, "f32": 4}


class TensorMap:
    """What the host encodes for a parameter: a part of an array in boxes."""

    def __init__(self, array, dtype, sizes, strides, box, swizzle):
        self.size = _ITEMS[dtype]
        self.array = array.reshape(-1).view(np.uint8)
        self.array = self.array[:self.array.size // self.size * self.size].view(_item(self.size))
        self.sizes, self.strides, self.box, self.swizzle = tuple(sizes), (self.size, *strides), tuple(box), swizzle
        self.bytes = int(np.prod(box)) * self.size
        if any(stride % 16 for stride in strides) or max(box) > 256 or box[0] * self.size != swizzle:
            raise PtxError(f"no tensor map: strides {strides}, box {box}, swizzle {swizzle}")
        axes = np.ix_(*(np.arange(extent) for extent in box[::-1]))
        self.offsets = sum(axis * stride for axis, stride in zip(axes, self.strides[::-1])).reshape(-1)
        self.axes = [np.broadcast_to(axis, self.box[::-1]).reshape(-1) for axis in axes[::-1]]

    def places(self, start):
        """Items of shared memory that hold the box at byte `start`, in the box's order."""
        return swizzled(start + np.arange(0, self.bytes, self.size), self.swizzle) // self.size

    def items(self, corner):
        """Which of the box's items lie inside, and which items of the array these are."""
        inside = np.ones(self.offsets.size, bool)
        for at, axis, size, extent in zip(corner, self.axes, self.sizes, self.box):
            if at < 0 or at + extent > size:
                inside &= (axis >= -at) & (axis < size - at)
        start = sum(at * stride for at, stride in zip(corner, self.strides))
        items = (start + self.offsets[inside]) // self.size
        if items.size and items.max() >= self.array.size:
            raise PtxError(f"a box at {corner} of sizes {self.sizes} ends outside its array")
        return inside, items

    def load(self, corner):
        data = np.zeros(self.offsets.size, self.array.dtype)
        inside, items = self.items(corner)
        data[inside] = self.array[items]
        return data

    def store(self, corner, data):
        inside, items = self.items(corner)
        self.array[items] = data[inside]


class Barriers:
    """The mbarrier objects of all blocks, by the number of their 8 bytes."""

    def __init__(self, name, words, clocks):
        self.name, self.clocks = name, clocks
        # Arrivals per phase (0: no barrier), those missing, bytes missing, phases completed.
        self.counts, self.missing, self.bytes, self.phases = np.zeros((4, words), np.int64)
        # What lands when somebody waits: functions by barrier.
        self.flights, self.arrivals = {}, {}

    def start(self, index, counts):
        if (self.counts[index] > 0).any():
            raise PtxError(f"{self.name}: a barrier is initialized twice")
        if (counts <= 0).any() or np.unique(index).size != index.size:
            raise PtxError(f"{self.name}: a barrier of no arrivals, or initialized by two threads")
        self.counts[index] = self.missing[index] = counts
        self.bytes[index] = self.phases[index] = 0

    def check(self, index):
        if (self.counts[index] == 0).any():
            raise PtxError(f"{self.name}: there is no barrier")

    def arrive(self, index, counts=1):
        self.check(index)
        np.subtract.at(self.missing, index, counts)
        if (self.missing[index] < 0).any():
            raise PtxError(f"{self.name}: more arrivals at a barrier than its count")
        self._turn(index)

    def expect(self, index, count):
        self.check(index)
        np.add.at(self.bytes, index, count)

    def _turn(self, index):
        done = np.unique(index[(self.missing[index] == 0) & (self.bytes[index] == 0)])
        self.phases[done] += 1
        self.missing[done] = self.counts[done]
        for at in done.tolist():
            self.clocks.complete(at)

    def settle(self, index):
        """Lets happen what those who wait at a barrier wait for."""
        for at in index:
            for arrive in self.arrivals.pop(at, ()):
                arrive()
            if self.missing[at] == 0 and at in self.flights:
                for land in self.flights.pop(at):
                    self.bytes[at] -= land()
                self._turn(np.array([at]))

    def about(self, index):
        return f"{self.missing[index]} of {self.counts[index]} arrivals and {self.bytes[index]} bytes are missing"


class Copies:
    """A mix-in for the warps of ptx_roles: mbarrier and cp.async.bulk."""

    def warps_of(self, mask):
        """Block and warp of each lane of a mask."""
        lanes = self.lanes_of(mask)
        return self.block[lanes], self.tid[lanes] // 32

    def barrier_of(self, operand, mask, starts=False):
        """The number of each lane's barrier, which it may write or must know."""
        offset = self.address(operand, mask)
        if (offset % 8).any() or (offset < 0).any() or (offset + 8 > self.shared_bytes).any():
            raise PtxError(f"{self.kernel.name}: no place of a barrier: {operand}")
        index = (offset + self.block[self.lanes_of(mask)] * self.part) // 8
        units = index[:, None] * 2 + np.arange(2)
        if starts:
            self.team.clocks.write(*self.warps_of(mask), units)
        else:
            self.team.clocks.read(*self.warps_of(mask), units, mark=False)
        return index

    def op_mbarrier(self, op, args, mask):
        barriers = self.team.barriers
        if op[1] == "init":
            index = self.barrier_of(args[0], mask, starts=True)
            return barriers.start(index, self.read(args[1], U32)[mask].astype(np.int64))
        if op[1] == "inval":
            index = self.barrier_of(args[0], mask, starts=True)
            barriers.check(index)
            barriers.counts[index] = 0
        elif op[1] == "expect_tx":
            barriers.expect(self.barrier_of(args[0], mask), self.read(args[1], U32)[mask].astype(np.int64))
        elif op[1] == "arrive" and args[0] == "_":
            index, counts = self.barrier_of(args[1], mask), 1
            if "expect_tx" in op:
                barriers.expect(index, self.read(args[2], U32)[mask].astype(np.int64))
            elif len(args) > 2:
                counts = self.read(args[2], U32)[mask].astype(np.int64)
            self.team.clocks.arrive(*self.warps_of(mask), index)
            barriers.arrive(index, counts)
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")

    def op_cp(self, op, args, mask):
        if op[2] == "mbarrier":
            return self._arrive_later(op, args, mask)
        if op[2] != "bulk":
            return super().op_cp(op, args, mask)
        stores = self.team.stores
        threads = (self.block_number[self.lanes_of(mask)] * (1 << 16) + self.tid[self.lanes_of(mask)]).tolist()
        if op[3] == "commit_group":
            for thread in threads:
                stores.setdefault(thread, [[]]).append([])
        elif op[3] == "wait_group":
            for thread in threads:
                groups = stores.pop(thread, [[]])
                left = len(groups) - 1 - int(args[0])
                for store in [store for group in groups[:max(0, left)] for store in group]:
                    store()
                rest = groups[max(0, left):]
                if any(rest):
                    stores[thread] = rest
        elif op[3] == "tensor" and "bulk_group" in op:
            for thread, store in zip(threads, self._tensor_stores(args, mask)):
                stores.setdefault(thread, [[]])[-1].append(store)
        elif op[3] == "tensor":
            self._tensor_loads(args, mask)
        elif op[3] == "shared::cluster":
            self._plain_loads(args, mask)
        else:
            raise PtxError(f"unknown instruction {'.'.join(op)}")

    def _arrive_later(self, op, args, mask):
        """Arrivals when the copies of the thread so far have landed."""
        if "noinc" not in op:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        barriers, landed, lanes = self.team.barriers, np.zeros(self.lanes, bool), self.lanes_of(mask)
        landed[lanes] = True
        index = self.barrier_of(args[0], mask)
        barriers.check(index)
        self.team.clocks.arrive(*self.warps_of(mask), index)
        copies, self.copies = self.copies, []
        for lane, offset, data, group in copies:
            done = landed[lane]
            if not done.all():
                self.copies.append(tuple(x[~done] for x in (lane, offset, data, group)))
            if done.any():
                self._land_before(index, lanes, lane[done], offset[done], data[done])
        for at in np.unique(index).tolist():
            count = int((index == at).sum())
            barriers.arrivals.setdefault(at, []).append(
                lambda at=at, count=count: barriers.arrive(np.array([at]), np.array([count])))

    def _land_before(self, index, lanes, lane, offset, data):
        """Copies of the lanes land when somebody waits at the barriers where these arrive."""
        of_lane = np.zeros(self.lanes, np.int64)
        of_lane[lanes] = index
        item, shared = (offset + self.block[lane] * self.part) // data.itemsize, self.shared.view(data.dtype)
        for at in np.unique(index).tolist():
            chosen = of_lane[lane] == at

            def land(item=item[chosen], data=data[chosen]):
                shared[item] = data

            self.team.barriers.arrivals.setdefault(at, []).append(land)

    def _transfers(self, operand, mask):
        """(lane, tensor map, corner) of each lane's operand [map, {x, y, ...}]."""
        address, names = re.fullmatch(r"\[(%\w+),\s*\{(.*)\}\]", operand).groups()
        corners = np.stack([self.read(name.strip(), U32)[mask].view(np.int32) for name in names.split(",")], 1)
        maps = self.read(address, U64)[mask].tolist()
        for lane, number, corner in zip(self.lanes_of(mask), maps, corners.tolist()):
            layout = self.team.tensor_map(number)
            if len(corner) != len(layout.sizes):
                raise PtxError(f"{self.kernel.name}: {len(corner)} coordinates of a tensor map of {len(layout.sizes)}")
            yield lane, layout, corner

    def _box(self, lane, layout, start):
        """Items of a box at a byte of a lane's shared memory."""
        if start % 128 or start + layout.bytes > self.shared_bytes:
            raise PtxError(f"{self.kernel.name}: no place of a box of {layout.bytes} bytes: byte {start}")
        return self.team.places(layout, start) + int(self.block[lane]) * self.part // layout.size

    def _tensor_loads(self, args, mask):
        starts, barriers = self.address(args[0], mask).tolist(), self.barrier_of(args[2], mask).tolist()
        for (lane, layout, corner), start, barrier in zip(self._transfers(args[1], mask), starts, barriers):
            self._fly(lane, barrier, self._box(lane, layout, start), layout.array.dtype,
                      lambda layout=layout, corner=corner: layout.load(corner))

    def _plain_loads(self, args, mask):
        starts, addresses = self.address(args[0], mask).tolist(), self.address(args[1], mask)
        counts, barriers = self.read(args[2], U32)[mask].tolist(), self.barrier_of(args[3], mask).tolist()
        for lane, start, at, count, barrier in zip(self.lanes_of(mask), starts, addresses, counts, barriers):
            if start % 16 or count % 16 or at % 16 or start + count > self.shared_bytes:
                raise PtxError(f"{self.kernel.name}: a copy of {count} bytes from {at} to byte {start}")
            items = np.arange(start // 16, (start + count) // 16) + self.block[lane] * self.part // 16
            source = at + np.arange(0, count, 16)
            self._fly(lane, barrier, items, _item(16), lambda source=source: self.load_global(source, 16))

    def _units(self, lane, items, size):
        """Block, warp and four-byte units of a lane's access to items in order."""
        units = items[None, ::max(1, 4 // size)] * size // 4
        units = (units[:, :, None] + np.arange(max(1, size // 4))).reshape(1, -1)
        return self.block[lane:lane + 1], self.tid[lane:lane + 1] // 32, units

    def _fly(self, lane, barrier, items, dtype, load):
        """A copy to shared memory, which completes bytes at a barrier."""
        self.team.clocks.write(*self._units(lane, items, dtype.itemsize), by_threads=False)
        barriers, shared = self.team.barriers, self.shared.view(dtype)
        barriers.check(barrier)
        self.shared.view(_item(dtype.itemsize))[items] = np.frombuffer(b"\xff" * dtype.itemsize, dtype)[0]

        def land():
            shared[items] = load()
            return items.size * dtype.itemsize

        barriers.flights.setdefault(barrier, []).append(land)

    def _tensor_stores(self, args, mask):
        starts, clocks = self.address(args[1], mask).tolist(), self.team.clocks
        for (lane, layout, corner), start in zip(self._transfers(args[0], mask), starts):
            places = self._box(lane, layout, start)
            accesses = self._units(lane, places, layout.size)
            clocks.read(*accesses, mark=False, fenced=True)

            def store(layout=layout, corner=corner, places=places, accesses=accesses):
                clocks.read(*accesses)
                layout.store(corner, self.shared.view(layout.array.dtype)[places])

            yield store

    def op_fence(self, op, args, mask):
        if op[1] == "proxy":
            self.team.clocks.fence(*self.warps_of(mask))
