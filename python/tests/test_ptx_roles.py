# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ptx_roles itself: what it computes, and what it must find."""

import numpy as np
import pytest

import ptx_machine
import ptx_roles
from ptx_async import TensorMap
from ptx_machine import bf16_to_f32, f32_to_bf16

START = """
    setp.ne.u32 %p1, %r9, 0;
    @%p1 bra $L_started;
    mov.b32 %r2, 1;
    mbarrier.init.shared.b64 [smem+4096], %r2;
    mbarrier.init.shared.b64 [smem+4104], %r2;
    fence.mbarrier_init.release.cluster;
$L_started:
    bar.sync 0;
    shr.u32 %r3, %r9, 5;
    and.b32 %r4, %r9, 31;
    setp.eq.u32 %p2, %r4, 0;
    mov.b64 %rd2, test_param_1;
    cvta.param.u64 %rd3, %rd2;
"""
WAIT = """
    {{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [smem+{}], {}; @done bra.uni DONE;
    bra.uni AGAIN; DONE: }}
"""
FULL, EMPTY = 4096, 4104


def kernel(body, threads):
    """Thread i ends with %r1 in word i of the first array; the second parameter is a tensor map."""
    return f"""
.visible .entry test(
    .param .u64 .ptr .global .align 16 test_param_0,
    .param .align 64 .b8 test_param_1[128]
)
.reqntid {threads}
{{
    ld.param.b64 %rd1, [test_param_0];
    mov.u32 %r9, %tid.x;
    mul.wide.u32 %rd9, %r9, 4;
    mov.b32 %r1, 0;
{body}
    add.s64 %rd7, %rd1, %rd9;
    st.global.b32 [%rd7], %r1;
    ret;
}}
"""


def run(body, threads=64, layout=0, reverse=False, shared=4224, grid=1):
    memory, array = ptx_machine.Memory(), np.zeros(max(threads, 1024), np.uint32)
    arguments = [memory.place(array), layout]
    program = ptx_machine.parse(kernel(body, threads))["test"]
    ptx_roles.launch(program, grid, threads, shared, arguments, memory, reverse)
    return array[:threads]


def refuses(message, body, **options):
    with pytest.raises(ptx_machine.PtxError, match=message):
        run(body, **options)


# Warp 1 writes a word four times, and warp 0 adds the words up.
PRODUCE = "st.shared.b32 [%rd9], %r5;"
ARRIVE = "bar.warp.sync -1; @%p2 mbarrier.arrive.shared::cta.b64 _, [smem+{}];"
RING = f"""{START}
    setp.eq.u32 %p3, %r3, 1;
    mov.b32 %r5, 0;
    @%p3 bra $L_producer;
$L_consumer:
    and.b32 %r6, %r5, 1;
    {WAIT.format(FULL, "%r6")}
    ld.shared.b32 %r7, [%rd9+128];
    add.s32 %r1, %r1, %r7;
    {ARRIVE.format(EMPTY)}
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, 4;
    @%p4 bra $L_consumer;
    bra.uni $L_end;
$L_producer:
    and.b32 %r6, %r5, 1;
    xor.b32 %r6, %r6, 1;
    {WAIT.format(EMPTY, "%r6")}
    {PRODUCE}
    {ARRIVE.format(FULL)}
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, 4;
    @%p4 bra $L_producer;
$L_end:
"""
BOTH = pytest.mark.parametrize("reverse", (False, True))


@BOTH
def test_ring(reverse):
    assert np.array_equal(run(RING, reverse=reverse), np.repeat([6, 0], 32))


@BOTH
@pytest.mark.parametrize(
    "found, old, new",
    (
        (r"warps 0 of blocks 0 wait at barrier byte 4096, parity 0: 1 of 1 arrivals and 0 bytes are missing",
         ARRIVE.format(FULL), ""),
        (r"warps 1 of blocks 0 wait at barrier byte 4104, parity 0: 1 of 1 arrivals", ARRIVE.format(EMPTY), ""),
        ("deadlock", "xor.b32 %r6, %r6, 1;", ""),
        ("without a barrier between|deadlock", WAIT.format(EMPTY, "%r6"), ""),
        ("reads shared byte 128 that warp 1 writes without|deadlock", WAIT.format(FULL, "%r6"), ""),
        ("more arrivals at a barrier than its count", "@%p2 mbarrier.arrive", "mbarrier.arrive"),
        ("initialized twice", "[smem+4104], %r2", "[smem+4096], %r2"),
        ("there is no barrier", "mbarrier.init.shared.b64 [smem+4104], %r2;", ""),
        ("warp 1 reads shared byte 4104 that warp 0 writes", "bar.sync 0;", ""),
    ),
)  # fmt: skip
def test_broken_rings(found, old, new, reverse):
    assert old in RING
    refuses(found, RING.replace(old, new), reverse=reverse)


def test_named_barriers():
    """Warps 1 and 2 meet without warp 0, and a third is missed."""
    body = """
    shr.u32 %r3, %r9, 5;
    setp.eq.u32 %p1, %r3, 0;
    st.shared.b32 [%rd9], %r9;
    @%p1 bra $L_end;
    bar.sync 2, 64;
    xor.b64 %rd2, %rd9, 384;
    ld.shared.b32 %r1, [%rd2];
$L_end:
"""
    got = run(body, threads=96)
    assert np.array_equal(got, np.concatenate([np.zeros(32), np.arange(64, 96), np.arange(32, 64)]))
    refuses("wait at barrier 2: 64 of 96 threads are there", body.replace("64;", "96;"), threads=96)
    refuses("more threads at a barrier than its count", body.replace("64;", "32;"), threads=96)
    refuses("reads shared byte 256 that another thread writes without", body.replace("bar.sync 2, 64;", ""), threads=96)
    refuses("barrier 2 of (64 and of 96|96 and of 64) threads", body.replace("bar.sync 2, 64;", """
    setp.eq.u32 %p3, %r3, 2;
    mov.b32 %r6, 64;
    @%p3 mov.b32 %r6, 96;
    bar.sync 2, %r6;"""), threads=96)  # fmt: skip


LOAD = f"""{START}
    mov.b32 %r5, BYTES;
    mov.b32 %r6, COLUMN;
    mov.b32 %r7, ROW;
    setp.eq.u32 %p3, %r9, 32;
    @!%p3 bra $L_loaded;
    mbarrier.expect_tx.relaxed.cta.shared.b64 [smem+4096], %r5;
    mov.b32 %r8, 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r8], [%rd3, {{%r6, %r7}}], [smem+4096];
    mbarrier.arrive.shared::cta.b64 _, [smem+4096];
$L_loaded:
    {WAIT.format(FULL, 0)}
    add.s64 %rd4, %rd9, 1024;
    ld.shared.b32 %r1, [%rd4];
"""


def load(width, column=0, row=0, body=LOAD, taken=None):
    """8 rows of 2 * width bytes of an array of 13 rows in boxes of `width` bytes."""
    array = np.arange(13 * width, dtype=np.uint16)
    layout = TensorMap(array, "bf16", (width, 13), (2 * width,), (width // 2, 8), width)
    size = taken or 8 * width
    body = body.replace("BYTES", str(size)).replace("COLUMN", str(column)).replace("ROW", str(row))
    return array.reshape(13, width), run(body, threads=2 * width, layout=layout).view(np.uint16).reshape(8, -1)


@pytest.mark.parametrize("width", (32, 64, 128))
@pytest.mark.parametrize("column, row", ((0, 0), (8, 2), (-8, 9), (100, -3)))
def test_tensor_maps(width, column, row):
    """Zeros outside, and 16 bytes of row i at place p ^ i of those in a row of the swizzle."""
    array, got = load(width, column, row)
    want = np.zeros((8, width // 2), np.uint16)
    for i, j in np.ndindex(want.shape):
        y, x = row + i, column + j
        if 0 <= y < 13 and 0 <= x < width:
            want[i, j] = array[y, x]
    rows = want.reshape(8, -1, 8)
    mixed = np.zeros_like(rows)
    for i, p in np.ndindex(rows.shape[:2]):
        mixed[i, p ^ (i * width // 128) % (width // 16)] = rows[i, p]
    assert np.array_equal(got, mixed.reshape(8, -1))


def test_copies_land_at_their_wait():
    """Who does not wait has no right to read, and reads NaN; bytes that are not expected are missed."""
    unsafe = LOAD.replace(WAIT.format(FULL, 0), "")
    with pytest.raises(ptx_machine.PtxError, match="reads shared byte 1024 that warp 1 writes"):
        load(32, body=unsafe)
    own = unsafe.replace("ld.shared", "setp.eq.u32 %p5, %r3, 1; @%p5 ld.shared")
    _, got = load(32, body=own)
    assert (got[4:] == 0xFFFF).all()
    for size in (240, 272):
        with pytest.raises(ptx_machine.PtxError, match=f"0 of 1 arrivals and {size - 256} bytes are missing"):
            load(32, taken=size)


COLUMNS, IMAGE = 128, 16384
COPIED = """
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd4+OFFSET];
    st.shared.v4.b32 [%rd3+OFFSET], {%r4, %r5, %r6, %r7};
"""
PRODUCT = """
.visible .entry test(
    .param .u64 .ptr .global .align 16 test_param_0
)
{
    ld.param.b64 %rd1, [test_param_0];
    mov.u32 %r9, %tid.x;
    mul.wide.u32 %rd3, %r9, 16;
    add.s64 %rd4, %rd1, %rd3;
    COPIES
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd4+16384];
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.b64 %rd5, DESCRIPTOR;
    setp.ne.b32 %p1, 0, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k16.f32.TYPE.TYPE {SUMS}, LEFT, %rd5, %p1, 1, -1, MODES;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd6, %r9, 256;
    add.s64 %rd7, %rd1, %rd6;
    RESULTS
    ret;
}
"""


def image_of(matrix, width, transposed, first):
    """Halves of shared memory that hold a matrix (16, columns) by the manual's layouts, and LBO and SBO."""
    image = np.full(IMAGE // 2, 0xFFFF, np.uint16)
    if width == 16:  # 8 rows of 16 bytes, next to each other along the products' sum
        leading, stride = (128 * COLUMNS // 8, 128) if not transposed else (128, 256)
    elif transposed:
        leading, stride = 16 * width, 8 * width
    else:
        leading, stride = 16, 8 * width
    for k, n in np.ndindex(matrix.shape):
        row, byte = (k, 2 * n) if transposed else (n, 2 * k + first)
        if width == 16:
            across, along = (leading, stride) if transposed else (stride, leading)
            at = row // 8 * across + row % 8 * 16 + byte // 16 * along + byte % 16
        else:
            chunk = byte % width // 16 ^ row % 8 * width // 128
            at = byte // width * leading + row // 8 * stride + row % 8 * width + chunk * 16 + byte % 16
        image[at // 2] = matrix[k, n]
    return image, leading, stride


@pytest.mark.parametrize("left", ("registers", "descriptor"))
@pytest.mark.parametrize(
    "width, mode, transposed, first",
    [(width, mode, major, 0) for width, mode in ((16, 0), (128, 1), (64, 2), (32, 3)) for major in (0, 1)]
    # A part of the rows, where they have more than the product takes.
    + [(128, 1, 0, 96), (64, 2, 0, 32)],
)
def test_products(width, mode, transposed, first, left):
    rng = np.random.default_rng(0)
    a, b = (f32_to_bf16(rng.standard_normal((16, n)).astype(np.float32)) for n in (64, COLUMNS))
    image, leading, stride = image_of(b, width, transposed, first)
    lanes, registers = np.arange(128), np.arange(4)[:, None]
    row, deep = lanes // 32 * 16 + lanes % 32 // 4 + registers % 2 * 8, lanes % 4 * 2 + registers // 2 * 8
    fragments = (a[deep + 1, row].astype(np.uint32) << 16 | a[deep, row]).T
    descriptor = mode << 62 | stride // 16 << 32 | leading // 16 << 16 | first // 16
    sums = [f"%r{100 + i}" for i in range(COLUMNS // 2)]
    text = PRODUCT.replace("COPIES", "".join(COPIED.replace("OFFSET", str(at)) for at in range(0, IMAGE, 2048)))
    results = (f"st.global.b32 [%rd7+{IMAGE + 2048 + 4 * i}], {register};" for i, register in enumerate(sums))
    text = text.replace("RESULTS", "\n".join(results))
    text = text.replace("DESCRIPTOR", str(descriptor)).replace("SUMS", ", ".join(sums)).replace("TYPE", "bf16")
    by_registers = left == "registers"
    text = text.replace("LEFT", "{%r4, %r5, %r6, %r7}" if by_registers else "%rd5")
    text = text.replace("MODES", f"{transposed}" if by_registers else f"{transposed}, {transposed}")
    got = multiply(text, image, fragments)
    a = bf16_to_f32(a if by_registers else b[:, :64])
    assert np.allclose(got, -a.T @ bf16_to_f32(b), rtol=1e-5, atol=1e-5)
    if (width, first, left) == (64, 32, "registers"):
        check_order(text, image, fragments)


def multiply(text, image, fragments):
    memory = ptx_machine.Memory()
    array = np.concatenate([image.view(np.uint32), fragments.reshape(-1), np.zeros(128 * 64, np.uint32)])
    address = memory.place(array)
    ptx_roles.launch(ptx_machine.parse(text)["test"], 1, 128, IMAGE, [address], memory)
    result = array[-128 * 64:].view(np.float32).reshape(4, 8, 4, 16, 2, 2)  # warp, row, lane, column, half, column
    return result.transpose(0, 4, 1, 3, 2, 5).reshape(64, COLUMNS)


def check_order(text, image, fragments):
    """What a program must not do around a product."""
    wait, fence = "wgmma.wait_group.sync.aligned 0;", "wgmma.fence.sync.aligned;"
    for old, new, found in (
        (wait, "", "%r100 is read while a product writes it"),
        (wait, "wgmma.wait_group.sync.aligned 1;", "%r100 is read while a product writes it"),
        (wait, "mov.b32 %r5, 0;" + wait, "%r5 is written while a product uses it"),
        (fence, "", "a product uses %r4, which was written since the fence"),
        ("fence.proxy.async.shared::cta;", "", "written without a proxy fence"),
        ("bar.sync 0;", "", "warp 0 reads shared byte 544 that warp 1 writes"),
        (wait, "st.shared.v4.b32 [%rd3], {%r9, %r9, %r9, %r9};" + wait, "reads shared byte 544 that warp 1 writes"),
        ("mov.b64 %rd5, ", "mov.b64 %rd5, 1024; add.s64 %rd5, %rd5, ", "reads outside 16384 bytes"),
    ):
        assert old in text
        with pytest.raises(ptx_machine.PtxError, match=found):
            multiply(text.replace(old, new), image, fragments)
