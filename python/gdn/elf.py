# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads a relocatable x86-64 object into this process.

gdn-compile emits objects, and a machine that only has the wheel has no linker. What the compiled
functions need is little: sections side by side, two kinds of relative relocations, and calls of
libc and libm. Sections lie in one mapping, which is made executable when they are in place.
"""

from __future__ import annotations

import ctypes
import mmap
import struct

_SHF_ALLOC = 2
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 2, 4, 8
_SHN_UNDEF, _SHN_ABS, _SHN_COMMON = 0, 0xFFF1, 0xFFF2
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX = 1, 2, 4, 9, 41, 42
_PROTECT_READ_EXECUTE = 5
# jmp *2(%rip); the address follows behind two bytes that are never executed.
_JUMP = bytes([0xFF, 0x25, 0x02, 0x00, 0x00, 0x00, 0x0F, 0x0B])
_JUMP_BYTES = len(_JUMP) + 8


class LoadError(RuntimeError):
    """The object needs something that this loader does not know."""


def _aligned(value, alignment):
    return -(-value // alignment) * alignment


class Object:
    """The functions of one object file."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (1, 62):
            raise LoadError("the compiler's object is no relocatable ELF file for x86-64")
        self._data = data
        self._read_sections()
        self._place()
        self._relocate()
        self._protect()

    def function(self, name):
        """Address of a function."""
        if name not in self._addresses:
            raise LoadError(f"the object has no function '{name}'")
        return self._addresses[name]

    # --- reading ---

    def _read_sections(self):
        offset, size, count = struct.unpack_from("<Q10xHH", self._data, 40)
        fields = "<IIQQQQIIQQ"
        self._sections = [struct.unpack_from(fields, self._data, offset + i * size) for i in range(count)]
        symbols = [s for s in self._sections if s[1] == _SHT_SYMTAB]
        self._symbols = []
        for table in symbols[:1]:
            strings = self._sections[table[6]][4]
            for place in range(table[4], table[4] + table[5], 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self._data, place)
                end = self._data.index(b"\0", strings + name)
                self._symbols.append((self._data[strings + name : end].decode(), section, value))

    # --- placing ---

    def _place(self):
        self._offsets, total = {}, 0
        for index, section in enumerate(self._sections):
            if section[2] & _SHF_ALLOC:
                total = _aligned(total, max(section[8], 1))
                self._offsets[index] = total
                total += section[5]
        self._undefined = sorted({name for name, section, _ in self._symbols if section == _SHN_UNDEF and name})
        self._jumps = _aligned(total, 16)
        total = self._jumps + _JUMP_BYTES * max(1, len(self._undefined))
        self._memory = mmap.mmap(-1, _aligned(total, mmap.PAGESIZE))
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for index, start in self._offsets.items():
            section = self._sections[index]
            if section[1] != _SHT_NOBITS:
                self._memory[start : start + section[5]] = self._data[section[4] : section[4] + section[5]]
        self._external = {}
        for number, name in enumerate(self._undefined):
            start = self._jumps + number * _JUMP_BYTES
            self._memory[start : start + _JUMP_BYTES] = _JUMP + struct.pack("<Q", _address_of(name))
            self._external[name] = self._base + start
        self._addresses = {
            name: self._base + self._offsets[section] + value
            for name, section, value in self._symbols
            if section in self._offsets and name
        }

    def _symbol_address(self, symbol):
        name, section, value = symbol
        if section == _SHN_UNDEF:
            return self._external[name]
        if section in self._offsets:
            return self._base + self._offsets[section] + value
        raise LoadError(f"symbol '{name}' of the object lies in section {section}, which is not loaded")

    # --- relocations ---

    def _relocate(self):
        for section in self._sections:
            if section[1] != _SHT_RELA or section[7] not in self._offsets:
                continue
            start = self._offsets[section[7]]
            for place in range(section[4], section[4] + section[5], 24):
                offset, info, addend = struct.unpack_from("<QQq", self._data, place)
                self._apply(start + offset, info & 0xFFFFFFFF, self._symbols[info >> 32], addend)

    def _apply(self, offset, kind, symbol, addend):
        if kind == _R_64:
            struct.pack_into("<Q", self._memory, offset, self._symbol_address(symbol) + addend)
            return
        if kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX) and symbol[1] == _SHN_UNDEF:
            # The address behind the jump serves as the entry of the global offset table.
            target = self._external[symbol[0]] + len(_JUMP)
        elif kind in (_R_PC32, _R_PLT32):
            target = self._symbol_address(symbol)
        else:
            raise LoadError(f"relocation {kind} of symbol '{symbol[0]}' is not known")
        distance = target + addend - (self._base + offset)
        if not -(2**31) <= distance < 2**31:
            raise LoadError(f"symbol '{symbol[0]}' is {distance} bytes away")
        struct.pack_into("<i", self._memory, offset, distance)

    def _protect(self):
        libc = ctypes.CDLL(None, use_errno=True)
        size = ctypes.c_size_t(len(self._memory))
        if libc.mprotect(ctypes.c_void_p(self._base), size, _PROTECT_READ_EXECUTE):
            raise LoadError(f"memory cannot be made executable (errno {ctypes.get_errno()})")


_libraries = []


def _address_of(name):
    """Address of a function of libc or libm."""
    if not _libraries:
        _libraries.extend([ctypes.CDLL(None), ctypes.CDLL("libm.so.6")])
    for library in _libraries:
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    raise LoadError(f"the object calls '{name}', which neither libc nor libm has")
