# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which accesses to shared memory are in order, by the barriers between warps: vector clocks, for ptx_roles.

A warp knows of each other warp how far it had come at the last barrier that both passed, at first hand or
through others. An access must know the accesses before it to the same four bytes, one of them a write. What
the asynchronous units read must be written by them, or known to a proxy fence of which the warp knows.
"""

from __future__ import annotations

import numpy as np

from ptx_machine import PtxError


class Clocks:
    def __init__(self, name, blocks, warps, part):
        """`part` bytes of shared memory for each block."""
        self.name, self.part, self.warps = name, part, warps
        # Of each warp, what it knows of each other, and how much of this is behind a proxy fence.
        self.known = np.zeros((blocks, warps, 2 * warps), np.int32)
        self.known[:, range(warps), range(warps)] = 1
        units = blocks * part // 4
        self.writers, self.written = np.zeros(units, np.int64), np.zeros(units, np.int32)
        self.reads = np.zeros((warps, units), np.int32)
        self.by_threads = np.zeros(units, bool)  # whether threads wrote last, and not the copy engine
        # What the warps that arrived at a barrier knew: in this phase, and in those that are complete.
        self.arrived, self.passed = {}, {}

    def _refuse(self, late, warp, units, does, did, others):
        access, at = np.argwhere(late)[0]
        byte = units[access, at] * 4 % self.part
        raise PtxError(
            f"{self.name}: warp {warp[access]} {does} shared byte {byte} that warp {others[access, at]} {did} "
            "without a barrier between")

    def read(self, block, warp, units, mark=True, does="reads", fenced=False):
        """Accesses of warps, each of a row of four-byte units; `fenced` are those of asynchronous units."""
        known, writers = self.known[block, warp], self.writers[units]
        late = self.written[units] > np.take_along_axis(known, writers, 1)
        if late.any():
            self._refuse(late, warp, units, does, "writes", writers)
        if fenced and (
                self.by_threads[units]
                & (self.written[units] > np.take_along_axis(known, writers + self.warps, 1))).any():
            raise PtxError(f"{self.name}: what is read asynchronously was written without a proxy fence since")
        if mark:
            self.reads[warp[:, None], units] = np.take_along_axis(known, warp[:, None], 1)

    def write(self, block, warp, units, by_threads=True):
        self.read(block, warp, units, mark=False, does="writes")
        known = self.known[block, warp]
        late = self.reads[:, units] > known.T[:self.warps, :, None]
        if late.any():
            self._refuse(late.any(0), warp, units, "writes", "reads", late.argmax(0))
        self.writers[units], self.by_threads[units] = warp[:, None], by_threads
        self.written[units] = np.take_along_axis(known, warp[:, None], 1)

    def fence(self, block, warp):
        """What the warps know is behind a fence; what they write from now on is not."""
        for b, w in set(zip(block.tolist(), warp.tolist())):
            knows = self.known[b, w]
            np.maximum(knows[:self.warps], knows[self.warps:], out=knows[self.warps:])
            knows[w] += 1

    def arrive(self, block, warp, barrier):
        """Who waits at the barrier will know what these warps know. What they do from now on is later."""
        pairs = set(zip(block.tolist(), warp.tolist(), barrier.tolist()))
        for b, w, at in pairs:
            knows = self.known[b, w]
            self.arrived[at] = np.maximum(self.arrived[at], knows) if at in self.arrived else knows.copy()
        for b, w in {pair[:2] for pair in pairs}:
            self.known[b, w, w] += 1

    def complete(self, barrier):
        if barrier in self.arrived:
            self.passed[barrier] = self.arrived.pop(barrier)

    def wait(self, block, warp, barrier):
        for b, w, at in set(zip(block.tolist(), warp.tolist(), barrier.tolist())):
            if at in self.passed:
                np.maximum(self.known[b, w], self.passed[at], out=self.known[b, w])
