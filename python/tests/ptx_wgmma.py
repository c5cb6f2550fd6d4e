# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of warpgroups (wgmma) for ptx_roles: as late as the program allows.

A product reads its operands at the wait for its group, and until then nobody may read its result or
write a register of it.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from ptx_machine import F32, U32, U64, PtxError, bf16_to_f32, f16_to_f32

# Bytes of the swizzle by bits 62 and 63 of a descriptor; 16 is none.
_WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}
_DEEP = 16  # of elements of 16 bits
_WIDEN = {"bf16": bf16_to_f32, "f16": f16_to_f32}


def swizzled(address, width):
    """Where the bytes of a tile with a swizzle of `width` bytes lie: 16 bytes change places by bits 7 to 9."""
    return address ^ (address >> 7 & (width // 16 - 1)) << 4


@functools.cache
def offsets(extent, transposed, width, leading, stride):
    """Bytes (deep, extent) of an operand's entries before the swizzle, by the canonical layouts of a descriptor."""
    deep, across = np.arange(_DEEP)[:, None], np.arange(extent)
    if not transposed:  # neighbours along the products' sum
        row = across % 8 * width + across // 8 * stride
        return row + (2 * deep if width > 16 else deep // 8 * leading + deep % 8 * 2)
    piece, rest = 2 * across // width, 2 * across % width
    if width == 16:
        leading, stride = stride, leading
    return piece * leading + rest + deep % 8 * width + deep // 8 * stride


@functools.cache
def results(count):
    """Which entry of a result (64, 2 * count) a register of a thread is: (register, thread)."""
    register, thread = np.arange(count)[:, None], np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register // 2 % 2)
    return row * (2 * count) + register // 4 * 8 + thread % 4 * 2 + register % 2


def _left_entries():
    """Where an entry of the left operand of a warp lies among the halves (lane, register, half)."""
    row, deep = np.arange(16)[:, None], np.arange(_DEEP)
    return ((row % 8 * 4 + deep % 8 // 2) * 4 + row // 8 + deep // 8 * 2) * 2 + deep % 2


_LEFT = _left_entries()


class Product:
    def __init__(self, op, args):
        shape = re.fullmatch(r"m64n(\d+)k16", op[4])
        if shape is None or op[5] != "f32" or op[6] != op[7] or op[6] not in _WIDEN:
            raise PtxError(f"unknown instruction {'.'.join(op)}")
        self.kind, self.columns = op[6], int(shape[1])
        self.key, self.left = tuple(args[0]), args[1]
        self.signs = float(args[4]), float(args[5])
        self.transposed = [int(a) for a in args[6:]]
        if 2 * len(self.key) != self.columns:
            raise PtxError(f"a product {op[4]} with {len(self.key)} registers")
        self.descriptors = {}  # by operand: that of each lane
        self.adds = None  # which lanes add to what their registers hold

    def is_transposed(self, name):
        return self.transposed[-1 if name == "right" else 0]

    def part(self, lanes):
        """The same of some lanes."""
        other = object.__new__(Product)
        other.__dict__ = dict(self.__dict__, adds=self.adds[lanes])
        other.descriptors = {name: values[lanes] for name, values in self.descriptors.items()}
        return other


class Products:
    """A mix-in for the warps of ptx_roles."""

    def init_products(self):
        # Sums by their registers; registers that belong to products in flight; those written since the last fence.
        self.sums, self.held, self.fresh = {}, set(), set()
        self.open_products, self.product_groups = [], []

    def has_products(self):
        return bool(self.open_products or self.product_groups)

    def op_wgmma(self, op, args, mask):
        if not self.whole or not self.has_warpgroups():
            raise PtxError(f"{self.kernel.name}: {'.'.join(op)} in a part of a warpgroup")
        if op[1] == "fence":
            self.fresh.clear()
        elif op[1] == "commit_group":
            self.product_groups.append(self.open_products)
            self.open_products = []
        elif op[1] == "wait_group":
            self._wait_products(int(args[0]))
        else:
            self._issue(Product(op, args), args)

    def _issue(self, product, args):
        registers = {*product.key, *(product.left if isinstance(product.left, list) else [])}
        if registers & self.fresh:
            raise PtxError(
                f"{self.kernel.name}: a product uses {min(registers & self.fresh)}, which was written since the fence")
        product.adds = self.read(args[3], bool)
        product.descriptors["right"] = self.read(args[2], U64)
        if not isinstance(product.left, list):
            product.descriptors["left"] = self.read(product.left, U64)
        for name in product.descriptors:
            self._note_product(product, name, self._places(product, name), mark=False, fenced=True)
        if product.key not in self.sums:
            if self.held & set(product.key):
                raise PtxError(f"{self.kernel.name}: two products share {min(self.held & set(product.key))}")
            self.sums[product.key] = self._start(product)
            for register in product.key:  # nobody reads them now
                self.registers.pop(register, None)
        self.open_products.append(product)
        self.held |= registers

    def _start(self, product):
        if not product.adds.any():
            return np.zeros((len(product.key), self.lanes), F32)
        return np.stack([self.read(register, F32) for register in product.key])

    def _wait_products(self, left):
        count = max(0, len(self.product_groups) - left)
        done, self.product_groups = self.product_groups[:count], self.product_groups[count:]
        for product in [product for group in done for product in group]:
            self._multiply(product)
        waiting = [p for group in self.product_groups for p in group] + self.open_products
        keys = {product.key for product in waiting}
        self.held = {register for key in keys for register in key}
        self.held |= {register for p in waiting if isinstance(p.left, list) for register in p.left}
        for key in [key for key in self.sums if key not in keys]:
            for register, values in zip(key, self.sums.pop(key).view(U32)):
                self.registers[register] = values

    def _multiply(self, product):
        right = self._operand(product, "right")  # (warpgroup, deep, column)
        if isinstance(product.left, list):
            left = np.stack([self.read(register, U32) for register in product.left], 1)
            left = left.view(np.uint16).reshape(self.lanes // 32, -1)[:, _LEFT].reshape(-1, 64, _DEEP)
            left = _WIDEN[product.kind](left)
        else:
            left = self._operand(product, "left").swapaxes(1, 2)
        values = left @ right * F32(product.signs[0] * product.signs[1])
        values = values.reshape(len(values), -1)[:, results(len(product.key))]
        values = values.swapaxes(0, 1).reshape(len(product.key), -1)
        start = self.sums[product.key]
        self.sums[product.key] = (start if product.adds.all() else np.where(product.adds, start, F32(0))) + values

    def _places(self, product, name):
        """Bytes (warpgroup, deep, extent) of all blocks' shared memory that a descriptor means."""
        lanes = product.descriptors[name].reshape(-1, 128)
        if (lanes != lanes[:, :1]).any():
            raise PtxError(f"{self.kernel.name}: threads of a warpgroup have different descriptors")
        descriptor = lanes[:, 0].astype(np.int64)
        start = (descriptor & 0x3FFF) << 4
        layout = set((descriptor >> 14).tolist())
        if len(layout) > 1:
            raise PtxError(f"{self.kernel.name}: warpgroups in step have different layouts")
        bits = layout.pop() << 14
        leading, stride, mode = (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, bits >> 62 & 3
        if bits >> 49 & 7:
            raise PtxError(f"{self.kernel.name}: a descriptor with a base offset")
        extent = product.columns if name == "right" else 64
        table = offsets(extent, product.is_transposed(name), _WIDTHS[mode], leading, stride)
        place = swizzled(start[:, None, None] + table, _WIDTHS[mode])
        if (place + 2 > self.shared_bytes).any():
            raise PtxError(f"{self.kernel.name}: a product reads outside {self.shared_bytes} bytes of shared memory")
        return place + (self.block[::128] * self.part)[:, None, None]

    def _operand(self, product, name):
        places = self._places(product, name)
        self._note_product(product, name, places)
        halves = self.shared.view(np.uint16)[places >> 1]
        return _WIDEN[product.kind](halves)

    def _note_product(self, product, name, places, **options):
        """All four warps read all of an operand."""
        units = (places[:, :, ::2] if product.is_transposed(name) else places[:, ::2]) >> 2
        units = np.repeat(units.reshape(len(places), -1), 4, 0)
        self.team.clocks.read(self.block[::32], self.tid[::32] // 32, units, **options)
