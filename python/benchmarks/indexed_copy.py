# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ceiling of a decode step: reads and writes the states that slots name, in place, and computes nothing.

    for name, copy in indexed_copy.variants(pool):     # a torch tensor [S, Hv, V, K]
        copy(slots)                                    # int32 [N], on torch's current stream

The fastest variant is the 100 % that a step kernel is measured against: it moves the state's bytes through the
same slots. No variant is the fastest at every size.
"""

import ctypes

import torch

from gdn.driver import driver

# Blocks of WARPS warps; a thread has LOADS accesses of 16 bytes in flight. `offset` is 0: with it no compiler can
# know that a value goes back to where it came from.
TEMPLATE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry indexed_copy(
  .param .u64 pool, .param .u64 slots, .param .u64 offset)
.reqntid {threads}
{{
  .reg .u32 %block, %thread, %n, %part, %w<{words}>;
  .reg .s32 %slot;
  .reg .u64 %p, %q, %r, %bytes;
  .reg .pred %none;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  div.u32 %n, %block, {parts};
  rem.u32 %part, %block, {parts};
  ld.param.u64 %p, [slots];
  mul.wide.u32 %q, %n, 4;
  add.u64 %p, %p, %q;
  ld.global.s32 %slot, [%p];
  setp.lt.s32 %none, %slot, 0;
  @%none bra done;
  ld.param.u64 %p, [pool];
  cvt.s64.s32 %q, %slot;
  mul.lo.u64 %q, %q, {bytes};
  add.u64 %p, %p, %q;
  mul.wide.u32 %q, %part, {part_bytes};
  add.u64 %p, %p, %q;
  mul.wide.u32 %q, %thread, 16;
  add.u64 %p, %p, %q;
  ld.param.u64 %r, [offset];
  add.u64 %r, %r, %p;
{moves}
done:
  ret;
}}
"""
# name: warps, loads, hint of loads, hint of stores
VARIANTS = {
    "8 loads": (1, 8, "", ""),
    "4 loads, 4 warps": (4, 4, "", ""),
    "8 loads, 8 warps, streaming": (8, 8, ".L1::no_allocate", ".cs"),
    "1 load, 4 warps, streaming": (4, 1, ".L1::no_allocate", ".cs"),
}


def _text(warps, loads, load_hint, store_hint, bytes):
    threads = 32 * warps
    part_bytes = threads * loads * 16
    if bytes % part_bytes:
        return None
    words = [["%w" + str(4 * i + j) for j in range(4)] for i in range(loads)]
    moves = [f"  ld.global{load_hint}.v4.b32 {{{', '.join(w)}}}, [%p+{i * threads * 16}];" for i, w in enumerate(words)]
    moves += [
        f"  st.global{store_hint}.v4.b32 [%r+{i * threads * 16}], {{{', '.join(w)}}};" for i, w in enumerate(words)
    ]
    version = TEMPLATE if not load_hint else TEMPLATE.replace(".version 7.0", ".version 7.4")
    return version.format(
        threads=threads,
        words=4 * loads,
        parts=bytes // part_bytes,
        bytes=bytes,
        part_bytes=part_bytes,
        moves="\n".join(moves),
    )


class IndexedCopy:
    """One variant for one pool."""

    def __init__(self, pool, text, threads, parts):
        self.pool, self.threads, self.parts = pool, threads, parts
        self._module = driver().load(text, "indexed_copy")
        self._function = driver().function(self._module, "indexed_copy")
        self._kept = []

    def __call__(self, slots):
        assert slots.dtype == torch.int32, f"slots have type {slots.dtype}; expected int32"
        values = (ctypes.c_uint64 * 3)(self.pool.data_ptr(), slots.data_ptr(), 0)
        start = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * 3)(*(start + 8 * i for i in range(3)))
        self._kept = [values, pointers]
        stream = torch.cuda.current_stream().cuda_stream
        grid = slots.numel() * self.parts
        driver().launch(self._function, grid, self.threads, 0, stream, pointers, "indexed_copy")


def variants(pool):
    """Name and copy for each variant that fits the size of an entry."""
    bytes = pool[0].numel() * pool.element_size()
    for name, (warps, loads, load_hint, store_hint) in VARIANTS.items():
        text = _text(warps, loads, load_hint, store_hint, bytes)
        if text is not None:
            yield name, IndexedCopy(pool, text, 32 * warps, bytes // (32 * warps * loads * 16))
