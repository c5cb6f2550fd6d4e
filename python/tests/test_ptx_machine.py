# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ptx_machine itself: what it computes, and what it must find."""

import numpy as np
import pytest

import ptx_instructions
import ptx_machine

SWAP = """
.visible .entry swap(
    .param .u64 .ptr .global .align 16 swap_param_0
)
.reqntid 32
{
    ld.param.b64 %rd1, [swap_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.b64 %rd4, smem;
    add.s64 %rd5, %rd4, %rd2;
    ld.global.b32 %r2, [%rd3];
    st.shared.b32 [%rd5], %r2;
    bar.sync 0;
    xor.b64 %rd6, %rd2, 4;
    ld.shared.b32 %r3, [%rd6];
    st.global.b32 [%rd3], %r3;
    ret;
}
"""


def swap(text, size=32, shared=128):
    memory = ptx_machine.Memory()
    array = np.arange(size, dtype=np.uint32)
    address = memory.place(array)
    ptx_instructions.launch(ptx_machine.parse(text)["swap"], 1, 32, shared, [address], memory)
    return array


def test_machine_runs():
    assert np.array_equal(swap(SWAP), np.arange(32) ^ 1)


@pytest.mark.parametrize("kind, bits", (("s32", 0xFFFFFFFE), ("u32", 6), ("s64", 0xFFFFFFFE), ("u64", 6)))
def test_machine_extracts_fields(kind, bits):
    """Three bits of 0b1100: a negative number where the field is signed."""
    wide = kind.endswith("64")
    register, narrow = ("%rd9", "cvt.u32.u64 %r2, %rd9;") if wide else ("%r2", "")
    source = "mov.b64 %rd8, 12;" if wide else "mov.b32 %r8, 12;"
    text = SWAP.replace(
        "st.shared.b32 [%rd5], %r2;",
        f"{source} bfe.{kind} {register}, {'%rd8' if wide else '%r8'}, 1, 3; {narrow} st.shared.b32 [%rd5], %r2;",
    )
    assert (swap(text) == bits).all()


@pytest.mark.parametrize(
    "text, options, message",
    (
        (SWAP.replace("bar.sync 0;", ""), {}, "reads shared byte 4 that another thread writes without a barrier"),
        (SWAP, {"size": 31}, "outside all arrays"),
        (SWAP, {"shared": 124}, "outside 124 bytes"),
        (SWAP.replace("%rd2, %r1, 4", "%rd2, %r1, 2"), {}, "misaligned load of 4 bytes"),
        (SWAP.replace("%rd6, %rd2, 4", "%rd6, %rd7, 4"), {}, "%rd7 is read before it is written"),
        (SWAP.replace("xor.b64", "popc.b64"), {}, "unknown instruction popc.b64"),
    ),
)
def test_machine_finds(text, options, message):
    with pytest.raises(ptx_machine.PtxError, match=message):
        swap(text, **options)


def kernel(body, threads=32):
    """A kernel whose thread i of all blocks ends with %r1 in word i of the array that it gets."""
    return f"""
.visible .entry test(
    .param .u64 .ptr .global .align 16 test_param_0
)
.reqntid {threads}
{{
    ld.param.b64 %rd1, [test_param_0];
    mov.u32 %r9, %tid.x;
    mov.u32 %r8, %ctaid.x;
    mul.wide.u32 %rd9, %r9, 4;
    mov.b32 %r1, 0;
{body}
    mad.lo.s32 %r7, %r8, {threads}, %r9;
    mul.wide.u32 %rd8, %r7, 4;
    add.s64 %rd7, %rd1, %rd8;
    st.global.b32 [%rd7], %r1;
    ret;
}}
"""


def run(body, threads=32, grid=1, values=None, shared=1024):
    array = np.zeros(grid * threads, np.uint32) if values is None else np.array(values, np.uint32)
    memory = ptx_machine.Memory()
    address = memory.place(array)
    ptx_instructions.launch(ptx_machine.parse(kernel(body, threads))["test"], grid, threads, shared, [address], memory)
    return array


def refuses(message, body, **options):
    with pytest.raises(ptx_machine.PtxError, match=message):
        run(body, **options)


def test_machine_finds_two_writes_at_once():
    """Threads 4 and 5 name the same bytes, and no others do."""
    address = "setp.eq.s32 %p1, %r9, 5; mul.wide.u32 %rd3, %r9, SIZE; selp.b64 %rd2, PLACE, %rd3, %p1;"
    for size, stored in ((4, "b32 [%rd2], %r9"), (8, "v2.b32 [%rd2], {%r9, %r9}")):
        body = address.replace("SIZE", str(size)).replace("PLACE", str(4 * size))
        refuses(f"two threads write shared byte {4 * size} at once", f"{body} st.shared.{stored};")
    run("st.shared.b32 [%rd9], %r9;")


READ = "ld.shared.b32 %r2, [64];"
SYNC = "bar.warp.sync -1;"


@pytest.mark.parametrize("writer", (0, 40))
def test_machine_knows_who_read(writer):
    """A write behind a barrier of the warp: all readers must have been of this warp."""
    write = f"setp.eq.s32 %p1, %r9, {writer}; @%p1 st.shared.b32 [64], %r9;"
    found = f"thread {writer} writes shared byte 64 that another thread uses"
    refuses(found, READ + write, threads=64)
    # Both warps in one access, and in two.
    refuses(found, READ + SYNC + write, threads=64)
    first, second = "setp.lt.s32 %p2, %r9, 32; @%p2 ", "setp.ge.s32 %p3, %r9, 32; @%p3 "
    refuses(found, first + READ + second + READ + SYNC + write, threads=64)
    refuses(found, second + READ + first + READ + SYNC + write, threads=64)
    own = first if writer < 32 else second
    run(own + READ + SYNC + write, threads=64)
    refuses(found, own + READ + write, threads=64)
    run(READ + "bar.sync 0;" + write, threads=64)
    # What is read again behind the warp's barrier is not ordered.
    refuses(found, own + READ + SYNC + own + READ + write, threads=64)


def test_machine_knows_who_wrote():
    write, read = "setp.eq.s32 %p1, %r9, 3; @%p1 st.shared.b32 [64], %r9;", "setp.ge.s32 %p2, %r9, {}; @%p2 " + READ
    found = "reads shared byte 64 that another thread writes"
    refuses(f"thread 7 {found}", write + read.format(7), threads=64)
    # The barrier of a warp orders for its own threads only.
    refuses(f"thread 32 {found}", write + SYNC + read.format(7), threads=64)
    run(write + SYNC + read.format(7))
    run(write + "bar.sync 0;" + read.format(7), threads=64)
    # The first half that another thread has written is named.
    half = "setp.eq.s32 %p1, %r9, 3; @%p1 st.shared.b16 [70], %r9;"
    refuses("thread 7 reads shared byte 70", half + "setp.eq.s32 %p2, %r9, 7; @%p2 ld.shared.b64 %rd2, [64];")


ROWS = """
    shl.b32 %r2, %r9, 16;
    or.b32 %r2, %r2, %r9;
    st.shared.v4.b32 [%rd6], {%r2, %r2, %r2, %r2};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.MODE.shared.b16 {%r3, %r4, %r5, %r6}, [%rd6];
"""


@pytest.mark.parametrize("transpose", (False, True))
@pytest.mark.parametrize("matrix", range(4))
def test_machine_reads_rows_of_matrices(matrix, transpose):
    """Row i of all four matrices holds i; a lane gets two neighbours of a row, or of a column."""
    rows = ROWS.replace("MODE.", "trans." if transpose else "")
    got = run(f"mul.wide.u32 %rd6, %r9, 16; {rows} mov.b32 %r1, %r{3 + matrix};")
    lane = np.arange(32)
    first = 8 * matrix + (lane % 4 * 2 if transpose else lane // 4)
    second = first + transpose
    assert np.array_equal(got, second << 16 | first)


def test_machine_notes_rows_of_matrices():
    """Lane 8 i + j reads row j of matrix i, and may write there again; another may not."""
    body = "mul.wide.u32 %rd6, %r9, 16;" + ROWS.replace("MODE.", "")
    write = "setp.eq.s32 %p1, %r9, 11; @%p1 st.shared.b32 [{}], %r9;"
    run(body + write.format(11 * 16 + 4))
    refuses("thread 11 writes shared byte 196 that another thread uses", body + write.format(12 * 16 + 4))
    # Of two matrices sixteen lanes have addresses.
    two = body.replace(".x4", ".x2").replace("{%r3, %r4, %r5, %r6}", "{%r3, %r4}")
    run(two + "setp.eq.s32 %p1, %r9, 11; @%p1 st.shared.b32 [260], %r9;")
    refuses("thread 11 writes shared byte 244", two + write.format(15 * 16 + 4))


COPY = "cp.async.ca.shared.global [%rd9], [%rd6], 4; cp.async.commit_group;"


def test_machine_lands_copies_at_their_wait():
    start = f"add.s64 %rd6, %rd1, %rd9; {COPY}"
    values, nan = np.arange(32) + 7, 0xFFFFFFFF
    load = "ld.shared.b32 %r1, [%rd9];"
    assert (run(start + load, values=values) == nan).all()
    assert (run(start + "cp.async.wait_group 1;" + load, values=values) == nan).all()
    assert np.array_equal(run(start + "cp.async.wait_group 0;" + load, values=values), values)
    assert np.array_equal(run(start + "cp.async.commit_group; cp.async.wait_group 1;" + load, values=values), values)
    # Groups and waits are those of a thread.
    half = "setp.lt.s32 %p1, %r9, 16; @%p1 cp.async.wait_group 0;"
    assert np.array_equal(run(start + half + load, values=values), np.where(np.arange(32) < 16, values, nan))
    other = "xor.b64 %rd5, %rd9, 4; ld.shared.b32 %r1, [%rd5];"
    refuses("reads shared byte 4 that another thread writes", start + "cp.async.wait_group 0;" + other)


def test_machine_runs_blocks_apart():
    """Each has shared memory and barriers of its own, and goes through its loop as often as it has to."""
    body = """
    mov.b32 %r2, %r8;
    st.shared.b32 [%rd9], %r8;
$L_loop:
    bar.sync 0;
    xor.b64 %rd2, %rd9, 128;
    ld.shared.b32 %r1, [%rd2];
    add.s32 %r1, %r1, 1;
    bar.sync 0;
    st.shared.b32 [%rd9], %r1;
    setp.eq.s32 %p1, %r2, 0;
    sub.s32 %r2, %r2, 1;
    @%p1 bra $L_end;
    bra $L_loop;
$L_end:
    setp.ge.s32 %p2, %r9, 0;
    bar.red.popc.u32 %r3, 0, %p2;
    mad.lo.s32 %r1, %r3, 1000, %r1;
"""
    grid = 5
    got = run(body, threads=64, grid=grid)
    assert np.array_equal(got, np.repeat(64000 + 2 * np.arange(grid) + 1, 64))


def test_machine_finds_threads_that_miss_a_barrier():
    miss = "setp.eq.s32 %p1, %r7, {}; @%p1 bra $L_end; bar{}; $L_end: mov.b32 %r1, 1;"
    index = "mad.lo.s32 %r7, %r8, 64, %r9;"
    refuses("a barrier that not all threads reach", index + miss.format(70, ".sync 0"), threads=64, grid=2)
    refuses("a warp barrier that not all lanes reach", index + miss.format(70, ".warp.sync -1"), threads=64, grid=2)
    # A block as a whole may.
    block = "setp.eq.s32 %p1, %r8, 1; @%p1 bra $L_end; bar.sync 0; $L_end: mov.b32 %r1, 1;"
    assert (run(block, threads=64, grid=2) == 1).all()


@pytest.mark.parametrize("kind", (np.uint64, np.int64))
def test_machine_multiplies_high(kind):
    rng = np.random.default_rng(0)
    edges = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**32, 2**32 - 1], np.int64)
    a = np.concatenate([np.repeat(edges, edges.size), rng.integers(-(2**63), 2**63 - 1, 50)]).view(kind)
    b = np.concatenate([np.tile(edges, edges.size), rng.integers(-(2**63), 2**63 - 1, 50)]).view(kind)
    want = [(int(x) * int(y) >> 64) % 2**64 for x, y in zip(a, b)]
    assert ptx_instructions._high_half(a, b).tolist() == want
