# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.elf on objects that clang makes of small C functions: sections, relocations, calls and refusals."""

import ctypes
import math
import struct
import subprocess

import pytest

from gdn import elf, host

SOURCE = """
#include <math.h>
extern double ldexp(double, int);
static const double table[4] = {1.0, 2.0, 4.0, 8.0};
static long counter[1000];
static long first = 7;
static long *const pointers[2] = {&first, &counter[999]};
static const struct { _Alignas(64) char bytes[64]; } wide = {{1}};
double look_up(long i) { return table[i]; }
long through(long i) { return *pointers[i]; }
unsigned long address(void) { return (unsigned long)&wide; }
double call(double x) { return exp(x) + 1; }
typedef double unary(double);
unary *pick(long i) { return i ? sin : cos; }
double indirect(long i, double x) { return pick(i)(x) + ldexp(x, 2); }
__attribute__((visibility("hidden"))) long second = 9, third = 11;
long hidden(long i) { return i ? third : second; }
"""


def compiled(tmp_path, source=SOURCE, *flags, sections="-ffunction-sections"):
    """The object of C text."""
    path = tmp_path / "object.o"
    try:
        clang = host.find_tool("clang")
    except host.ToolNotFound as reason:
        pytest.skip(str(reason))
    # Sections of their own, so that not all functions lie at the start of one.
    command = [clang, "-x", "c", "-c", "-O1", "-fPIC", "-fno-builtin", sections, *flags]
    command += ["-o", str(path), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return elf.Object(compiled(tmp_path_factory.mktemp("elf")))


def function(loaded, name, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(loaded.function(name))


def test_constants(loaded):
    look_up = function(loaded, "look_up", ctypes.c_double, ctypes.c_long)
    assert [look_up(i) for i in range(4)] == [1, 2, 4, 8]


def test_data_without_content_is_zero_and_is_kept(tmp_path):
    # Its own mapping: the code may not write into one that has been made executable.
    loaded = elf.Object(compiled(tmp_path))
    through = function(loaded, "through", ctypes.c_long, ctypes.c_long)
    assert through(1) == 0


def test_pointers_in_data(loaded):
    assert function(loaded, "through", ctypes.c_long, ctypes.c_long)(0) == 7


def test_alignment(loaded):
    address = function(loaded, "address", ctypes.c_ulong)()
    assert address % 64 == 0
    assert ctypes.string_at(address, 2) == b"\x01\x00"


def test_calls_of_libm(loaded):
    call = function(loaded, "call", ctypes.c_double, ctypes.c_double)
    assert call(1.5) == math.exp(1.5) + 1


def test_addresses_of_functions_of_libm(loaded):
    """By the global offset table, which the jumps stand in for."""
    indirect = function(loaded, "indirect", ctypes.c_double, ctypes.c_long, ctypes.c_double)
    assert [indirect(i, 0.75) for i in (0, 1)] == [math.cos(0.75) + 3.0, math.sin(0.75) + 3.0]


def test_symbols_inside_of_a_section(loaded):
    hidden = function(loaded, "hidden", ctypes.c_long, ctypes.c_long)
    assert (hidden(0), hidden(1)) == (9, 11)


def test_functions_inside_of_a_section(tmp_path):
    source = "long one(void) { return 1; } long two(void) { return 2; }"
    loaded = elf.Object(compiled(tmp_path, source, sections="-fno-function-sections"))
    assert [function(loaded, name, ctypes.c_long)() for name in ("one", "two")] == [1, 2]


def test_more_calls_than_a_page_holds(tmp_path, monkeypatch):
    libc = ctypes.CDLL(None)
    monkeypatch.setattr(elf, "_address_of", lambda name: ctypes.cast(libc.labs, ctypes.c_void_p).value)
    calls = "".join(f"extern long f{i}(long); long g{i}(void) {{ return f{i}(-{i}); }}" for i in range(300))
    loaded = elf.Object(compiled(tmp_path, calls))
    assert [function(loaded, f"g{i}", ctypes.c_long)() for i in range(300)] == list(range(300))


def test_two_objects_do_not_disturb_one_another(loaded, tmp_path):
    other = elf.Object(compiled(tmp_path, "double look_up(long i) { return -1.0 - i; }"))
    assert function(other, "look_up", ctypes.c_double, ctypes.c_long)(3) == -4
    assert function(loaded, "look_up", ctypes.c_double, ctypes.c_long)(3) == 8


def test_refusals(loaded, tmp_path):
    with pytest.raises(elf.LoadError, match="has no function 'missing'"):
        loaded.function("missing")
    with pytest.raises(elf.LoadError, match="calls 'no_such_function', which neither libc nor libm has"):
        elf.Object(compiled(tmp_path, "int no_such_function(void); int f(void) { return no_such_function(); }"))
    with pytest.raises(elf.LoadError, match="symbol 'shared' of the object lies in section 65522, which is not loaded"):
        elf.Object(compiled(tmp_path, "int shared; int f(void) { return shared; }", "-fcommon", "-fno-pic"))
    with pytest.raises(elf.LoadError, match="relocation .* is not known"):
        source = "_Thread_local int x; int f(void) { return x; }"
        elf.Object(compiled(tmp_path, source, "-ftls-model=initial-exec"))


@pytest.mark.parametrize(("place", "value"), [(0, 0x7E), (4, 1), (5, 2), (16, 3), (18, 183)])
def test_other_files(place, value, tmp_path):
    """Another magic number, class, byte order, kind of file or processor."""
    data = bytearray(compiled(tmp_path))
    data[place] = value
    with pytest.raises(elf.LoadError, match="no relocatable ELF file for x86-64"):
        elf.Object(bytes(data))


@pytest.mark.parametrize("kind", (9, 41, 42))  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX of the x86-64 ABI
def test_entries_of_the_global_offset_table(kind, loaded):
    """The address behind a jump; of functions of the object itself there is none."""
    (sine,) = (s for s in loaded._symbols if s[0] == "sin")
    (own,) = (s for s in loaded._symbols if s[0] == "call")

    class Memory(elf.Object):
        def __init__(self):
            self._memory, self._base = bytearray(8), loaded._base
            self._external, self._offsets = loaded._external, loaded._offsets

    memory = Memory()
    memory._apply(0, kind, sine, 0)
    (distance,) = struct.unpack_from("<i", memory._memory)
    entry = ctypes.c_void_p.from_address(memory._base + distance).value
    assert entry == ctypes.cast(ctypes.CDLL("libm.so.6").sin, ctypes.c_void_p).value
    with pytest.raises(elf.LoadError, match=f"relocation {kind} of symbol 'call' is not known"):
        memory._apply(0, kind, own, 0)


def test_distances_of_more_than_31_bits(loaded):
    """32 bits hold distances in -2^31 .. 2^31 - 1."""
    base, pc32 = loaded._base, elf._R_PC32
    symbol = next(s for s in loaded._symbols if s[0] == "look_up")
    start = loaded._symbol_address(symbol) - base

    class Memory(elf.Object):
        def __init__(self):
            self._memory, self._base, self._offsets = bytearray(8), base, loaded._offsets

    memory = Memory()
    for distance in (-(2**31), 2**31 - 1):
        memory._apply(0, pc32, symbol, distance - start)
        assert struct.unpack_from("<i", memory._memory) == (distance,)
    for distance in (-(2**31) - 1, 2**31):
        with pytest.raises(elf.LoadError, match=f"is {distance} bytes away"):
            memory._apply(0, pc32, symbol, distance - start)
