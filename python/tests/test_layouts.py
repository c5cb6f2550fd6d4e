# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays the register and shared-memory layouts that the kernels rely on.

The maps are written down from the figures of the PTX ISA manual, section "Matrix multiply-accumulate
operation using mma instruction" and "ldmatrix", and of the CUDA driver API for the TMA swizzle modes.
groupID = lane >> 2, threadID_in_group = lane % 4 there; g and t here.
"""

import numpy as np
import pytest

LANES = np.arange(32)
G, T = LANES >> 2, LANES % 4


# --- fragments: (row, column) of element i of a lane, as in the manual -------------


def a_m16k16(i):
    """A of m16n8k16, 16-bit: a0..a7, two to a register."""
    row = G + (8 if i in (2, 3, 6, 7) else 0)
    column = T * 2 + (i & 1) + (8 if i >= 4 else 0)
    return row, column


def b_k16n8(i):
    """B of m16n8k16, 16-bit: b0..b3."""
    return T * 2 + (i & 1) + (8 if i >= 2 else 0), G


def a_m16k8(i):
    """A of m16n8k8, tf32: a0..a3, one to a register."""
    return G + (8 if i in (1, 3) else 0), T + (4 if i >= 2 else 0)


def b_k8n8(i):
    """B of m16n8k8, tf32: b0, b1."""
    return T + 4 * i, G


def c_m16n8(i):
    """C and D of both, f32: c0..c3."""
    return G + (8 if i >= 2 else 0), T * 2 + (i & 1)


def gather(matrix, fragment, count):
    """[count][lane] elements that the lanes hold of `matrix`."""
    return np.stack([matrix[fragment(i)] for i in range(count)])


def mma(a, b, c, a_map, b_map, k):
    """D = A B + C, computed from the registers of all lanes."""
    A, B = np.full((16, k), np.nan), np.full((k, 8), np.nan)
    C = np.full((16, 8), np.nan)
    for i, values in enumerate(a):
        A[a_map(i)] = values
    for i, values in enumerate(b):
        B[b_map(i)] = values
    for i, values in enumerate(c):
        C[c_m16n8(i)] = values
    return gather(A @ B + C, c_m16n8, 4)


@pytest.mark.parametrize(
    ("fragment", "count", "shape"),
    [
        (a_m16k16, 8, (16, 16)),
        (b_k16n8, 4, (16, 8)),
        (a_m16k8, 4, (16, 8)),
        (b_k8n8, 2, (8, 8)),
        (c_m16n8, 4, (16, 8)),
    ],
)
def test_a_fragment_holds_each_element_once(fragment, count, shape):
    seen = np.zeros(shape, int)
    for i in range(count):
        np.add.at(seen, fragment(i), 1)
    assert (seen == 1).all()


def accumulators(matrix):
    """[tile][i][lane] of a 16 x 8n matrix held as n accumulator tiles."""
    return [gather(matrix[:, 8 * n : 8 * n + 8], c_m16n8, 4) for n in range(matrix.shape[1] // 8)]


def test_rounded_accumulators_are_the_next_a_fragment():
    """Tiles 2j and 2j + 1, packed in pairs, are the registers of k step j, in order."""
    matrix = np.arange(16.0 * 64).reshape(16, 64)
    tiles = accumulators(matrix)
    for step in range(4):
        even, odd = tiles[2 * step], tiles[2 * step + 1]
        registers = np.concatenate([even[0:2], even[2:4], odd[0:2], odd[2:4]])
        expected = gather(matrix[:, 16 * step : 16 * step + 16], a_m16k16, 8)
        assert np.array_equal(registers, expected)


def test_two_products_in_registers():
    """(X Y) Z with the first result never leaving the registers."""
    rng = np.random.default_rng(0)
    X, Y, Z = (rng.integers(-3, 4, size=shape).astype(float) for shape in ((16, 16), (16, 32), (32, 8)))
    x = gather(X, a_m16k16, 8)
    zero = np.zeros((4, 32))
    tiles = [mma(x, gather(Y[:, 8 * n : 8 * n + 8], b_k16n8, 4), zero, a_m16k16, b_k16n8, 16) for n in range(4)]
    d = zero
    for step in range(2):
        a = np.concatenate([tiles[2 * step], tiles[2 * step + 1]])
        d = mma(a, gather(Z[16 * step : 16 * step + 16], b_k16n8, 4), d, a_m16k16, b_k16n8, 16)
    assert np.array_equal(d, gather(X @ Y @ Z, c_m16n8, 4))


def test_accumulators_are_both_operands_of_a_b_transposed():
    """A 16x16 accumulator fragment of B, rows n and columns k: its upper and its lower eight rows are right operands.

    For 16 bit packed in pairs, for tf32 with k in the permuted order of the left operand.
    """
    rng = np.random.default_rng(1)
    A, B = (rng.integers(-3, 4, size=(16, 16)).astype(float) for _ in range(2))
    left, right = np.concatenate(accumulators(A)), np.concatenate(accumulators(B))
    zero = np.zeros((4, 32))
    for half in range(2):
        expected = gather((A @ B.T)[:, 8 * half : 8 * half + 8], c_m16n8, 4)
        b = right[[2 * half, 2 * half + 1, 2 * half + 4, 2 * half + 5]]
        assert np.array_equal(mma(left, b, zero, a_m16k16, b_k16n8, 16), expected)
        d = zero
        for step in range(2):
            a = left[[4 * step, 4 * step + 2, 4 * step + 1, 4 * step + 3]]
            d = mma(a, right[4 * step + 2 * half : 4 * step + 2 * half + 2], d, a_m16k8, b_k8n8, 8)
        assert np.array_equal(d, expected)


def test_accumulators_as_a_tf32_operand_with_a_permuted_k():
    """c0..c3 used as a0, a2, a1, a3 of m16n8k8 is a product over k in the order 0 2 4 6 1 3 5 7.

    A float32 chain needs no shuffle either if the rows of B are taken in that order.
    """
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(16, 8)), rng.normal(size=(8, 8))
    c0, c1, c2, c3 = gather(A, c_m16n8, 4)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    d = mma([c0, c2, c1, c3], gather(B[order], b_k8n8, 2), np.zeros((4, 32)), a_m16k8, b_k8n8, 8)
    np.testing.assert_allclose(d, gather(A @ B, c_m16n8, 4), atol=1e-12)


# --- ldmatrix ---------------------------------------------------------------------


def ldmatrix(memory, addresses, count, transpose=False):
    """[count][2][lane] 16-bit elements; lane 8 m + r gives the address of row r of matrix m."""
    loaded = []
    for m in range(count):
        rows = np.stack([memory[addresses[8 * m + r] // 2 :][:8] for r in range(8)])
        if transpose:
            rows = rows.T
        loaded.append(np.stack([rows[G, 2 * T], rows[G, 2 * T + 1]]))
    return np.stack(loaded)


class Swizzled:
    """Shared tile: rows split in panels of 128, 64 or 32 bytes, 16-byte chunks xor-ed with the row."""

    SHIFT = {128: 0, 64: 1, 32: 2}

    def __init__(self, rows, row_bytes):
        self.rows, self.row_bytes = rows, row_bytes
        self.panel = next(p for p in (128, 64, 32) if row_bytes % p == 0)

    @property
    def size(self):
        return self.rows * self.row_bytes

    def address(self, row, byte):
        row, byte = np.asarray(row), np.asarray(byte)
        panel, inside = byte // self.panel, byte % self.panel
        chunks = self.panel // 16
        chunk = (inside // 16) ^ ((row >> self.SHIFT[self.panel]) & (chunks - 1))
        return panel * self.rows * self.panel + row * self.panel + chunk * 16 + inside % 16


SHAPES = [(64, 256), (64, 128), (16, 384), (64, 64), (64, 192), (32, 32), (48, 96), (8, 512)]


@pytest.mark.parametrize(("rows", "row_bytes"), SHAPES)
def test_swizzle_is_a_permutation(rows, row_bytes):
    tile = Swizzled(rows, row_bytes)
    row, byte = np.meshgrid(np.arange(rows), np.arange(row_bytes), indexing="ij")
    addresses = tile.address(row, byte).ravel()
    assert np.array_equal(np.sort(addresses), np.arange(tile.size))
    # A chunk of 16 bytes stays whole and aligned, so that ldmatrix and cp.async can move it.
    chunk = addresses.reshape(-1, 16)
    assert (chunk[:, 0] % 16 == 0).all()
    assert (chunk == chunk[:, :1] + np.arange(16)).all()


def tma_address(mode, linear):
    """The swizzle modes 128B, 64B and 32B: address bits [4, 4 + n) are xor-ed with bits [7, 7 + n)."""
    bits = {128: 3, 64: 2, 32: 1}[mode]
    return linear ^ (((linear >> 7) & ((1 << bits) - 1)) << 4)


@pytest.mark.parametrize(("rows", "row_bytes"), SHAPES)
def test_swizzle_is_that_of_tma(rows, row_bytes):
    """A panel is the box of one bulk tensor copy whose inner extent is the swizzle span."""
    tile = Swizzled(rows, row_bytes)
    row, byte = np.meshgrid(np.arange(rows), np.arange(row_bytes), indexing="ij")
    base = (byte // tile.panel) * rows * tile.panel
    linear = row * tile.panel + byte % tile.panel
    assert np.array_equal(tile.address(row, byte), base + tma_address(tile.panel, linear))


def test_panel_bases_keep_the_pattern_aligned():
    """The pattern repeats every 1024, 512, 256 bytes; a panel base off that would shift it."""
    for rows, row_bytes in SHAPES:
        tile = Swizzled(rows, row_bytes)
        repeat = {128: 1024, 64: 512, 32: 256}[tile.panel]
        assert (rows * tile.panel) % repeat == 0


def conflicts(addresses, width):
    """Most different 4-byte words of one bank in a phase of 128 bytes; 1 is free of conflicts."""
    addresses = np.asarray(addresses)
    worst = 0
    lanes = 128 // width
    for start in range(0, len(addresses), lanes):
        words = {int(a) // 4 + w for a in addresses[start : start + lanes] for w in range(width // 4)}
        banks = np.bincount([word % 32 for word in words], minlength=32)
        worst = max(worst, int(banks.max()))
    return worst


@pytest.mark.parametrize(("rows", "row_bytes"), SHAPES)
def test_ldmatrix_has_no_bank_conflicts(rows, row_bytes):
    """Each of the eight-row reads of an ldmatrix covers all 32 banks once."""
    tile = Swizzled(rows, row_bytes)
    for row in range(0, rows, 8):
        for byte in range(0, row_bytes, 16):
            assert conflicts(tile.address(row + np.arange(8), byte), 16) == 1


def test_without_the_swizzle_there_would_be_conflicts():
    for panel in (128, 64, 32):
        assert conflicts(np.arange(8) * panel, 16) == panel // 16


@pytest.mark.parametrize(("rows", "row_bytes"), SHAPES)
def test_row_wise_16_byte_copies_have_no_bank_conflicts(rows, row_bytes):
    """cp.async: consecutive lanes write consecutive chunks of a row, then of the next row."""
    tile = Swizzled(rows, row_bytes)
    per_row = min(row_bytes, tile.panel) // 16
    for start in range(0, rows * per_row, 8):
        index = start + np.arange(8)
        assert conflicts(tile.address(index // per_row, 16 * (index % per_row)), 16) == 1


def store(matrix, tile):
    memory = np.zeros(tile.size // 2, matrix.dtype)
    row, column = np.meshgrid(*(np.arange(n) for n in matrix.shape), indexing="ij")
    memory[tile.address(row, 2 * column) // 2] = matrix
    return memory


MATRICES = [(64, 128), (64, 64), (32, 32), (32, 16), (16, 48), (16, 192)]


@pytest.mark.parametrize("shape", MATRICES)
def test_ldmatrix_loads_an_a_fragment(shape):
    """x4: rows r, r + 8 of columns c, then of columns c + 8, lane l gives row l % 16, column 8 (l / 16)."""
    matrix = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    tile = Swizzled(shape[0], 2 * shape[1])
    memory = store(matrix, tile)
    for row in range(0, shape[0], 16):
        for column in range(0, shape[1], 16):
            addresses = tile.address(row + LANES % 16, 2 * (column + 8 * (LANES // 16)))
            loaded = ldmatrix(memory, addresses, 4).reshape(8, 32)
            expected = gather(matrix[row : row + 16, column : column + 16], a_m16k16, 8)
            assert np.array_equal(loaded, expected)


@pytest.mark.parametrize("shape", MATRICES)
def test_ldmatrix_loads_b_stored_by_columns(shape):
    """B^T in memory ([n][k]): x4 gives the fragments of two n tiles, without .trans."""
    matrix = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    tile = Swizzled(shape[0], 2 * shape[1])
    memory = store(matrix, tile)
    for n in range(0, shape[0], 16):
        for k in range(0, shape[1], 16):
            row = n + LANES % 8 + 8 * (LANES // 16)
            addresses = tile.address(row, 2 * (k + 8 * ((LANES // 8) % 2)))
            loaded = ldmatrix(memory, addresses, 4).reshape(2, 4, 32)
            for half in range(2):
                block = matrix[n + 8 * half : n + 8 * half + 8, k : k + 16]
                assert np.array_equal(loaded[half], gather(block.T, b_k16n8, 4))


@pytest.mark.parametrize("shape", MATRICES)
def test_ldmatrix_trans_loads_b_stored_by_rows(shape):
    """B in memory ([k][n]): x4.trans gives the fragments of two n tiles."""
    matrix = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    tile = Swizzled(shape[0], 2 * shape[1])
    memory = store(matrix, tile)
    for k in range(0, shape[0], 16):
        for n in range(0, shape[1], 16):
            addresses = tile.address(k + LANES % 16, 2 * (n + 8 * (LANES // 16)))
            loaded = ldmatrix(memory, addresses, 4, transpose=True).reshape(2, 4, 32)
            for half in range(2):
                block = matrix[k : k + 16, n + 8 * half : n + 8 * half + 8]
                assert np.array_equal(loaded[half], gather(block, b_k16n8, 4))


@pytest.mark.parametrize("shape", MATRICES)
def test_ldmatrix_trans_loads_a_stored_by_columns(shape):
    """A^T in memory ([k][m]): x4.trans; matrices 1 and 2 come from columns m + 8 and rows k + 8."""
    matrix = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    tile = Swizzled(shape[0], 2 * shape[1])
    memory = store(matrix, tile)
    for k in range(0, shape[0], 16):
        for m in range(0, shape[1], 16):
            row = k + LANES % 8 + 8 * (LANES // 16)
            addresses = tile.address(row, 2 * (m + 8 * ((LANES // 8) % 2)))
            loaded = ldmatrix(memory, addresses, 4, transpose=True).reshape(8, 32)
            assert np.array_equal(loaded, gather(matrix[k : k + 16, m : m + 16].T, a_m16k16, 8))


@pytest.mark.parametrize("row_bytes", [128, 256, 64])
def test_accumulators_stored_as_pairs_have_few_conflicts(row_bytes):
    """A lane writes the 4-byte pair (c0, c1) of its row: a phase is the whole warp, 8 rows x 16 bytes."""
    tile = Swizzled(16, row_bytes)
    for byte in range(0, row_bytes, 16):
        assert conflicts(tile.address(G, byte + 4 * T), 4) == 1


# --- panels of 16 columns ---------------------------------------------------------


def panel_address(n, k, rows):
    """A matrix N x K of 16 bits: rows of 16 bytes, eight n for one k, 16 of k and then the next eight n."""
    return (k // 16 * 2 * rows + n // 8 * 16 + k % 16) * 16 + n % 8 * 2


def in_panels(matrix):
    n, k = np.meshgrid(*(np.arange(size) for size in matrix.shape), indexing="ij")
    memory = np.full(matrix.size, -1, matrix.dtype)
    memory[panel_address(n, k, len(matrix)) // 2] = matrix
    return memory


def test_transposed_blocks_are_stored_in_the_order_of_their_registers():
    """Word p of lane l of the fragment k x n lies at byte 128 p + 4 l of the 512 of its block."""
    matrix = np.arange(64 * 64).reshape(64, 64)
    memory = in_panels(matrix)
    for n, k in np.ndindex(4, 4):
        block = matrix[16 * n : 16 * n + 16, 16 * k : 16 * k + 16]
        words = np.concatenate(accumulators(block.T)).reshape(4, 2, 32)  # word, half, lane
        at = panel_address(16 * n, 16 * k, 64) // 2
        assert np.array_equal(memory[at : at + 256].reshape(4, 32, 2), words.transpose(0, 2, 1))


def test_blocks_of_a_panel_follow_one_another():
    """So what lies on and below the diagonal is contiguous in each panel."""
    for k in range(4):
        places = [panel_address(16 * n, 16 * k, 64) for n in range(4)]
        assert places == [2048 * k + 512 * n for n in range(4)]


def test_panels_are_a_right_operand_without_swizzle():
    """wgmma, MN-major: ((8, n), (8, k)) elements in steps of ((1, SBO), (8, LBO)); 16 columns k to a product."""
    n, k = np.meshgrid(np.arange(64), np.arange(16), indexing="ij")
    leading, stride = 128, 256
    canonical = n % 8 * 2 + n // 8 * stride + k % 8 * 16 + k // 8 * leading
    for panel in range(4):
        assert np.array_equal(panel_address(n, k + 16 * panel, 64), canonical + 2048 * panel)


@pytest.mark.parametrize("shape", [(64, 64), (32, 32), (16, 16)])
def test_ldmatrix_trans_loads_b_of_panels(shape):
    """A row for each lane, and no bank conflicts: fragments of two n tiles."""
    matrix = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    memory = in_panels(matrix)
    for n in range(0, shape[0], 16):
        for k in range(0, shape[1], 16):
            addresses = panel_address(n, k, shape[0]) + 16 * LANES
            assert conflicts(addresses, 16) == 1
            loaded = ldmatrix(memory, addresses, 4, transpose=True).reshape(2, 4, 32)
            for half in range(2):
                block = matrix[n + 8 * half : n + 8 * half + 8, k : k + 16]
                assert np.array_equal(loaded[half], gather(block.T, b_k16n8, 4))


# --- warps of a warpgroup ---------------------------------------------------------


def test_warpgroup_accumulator_is_four_mma_accumulators():
    """wgmma m64nNk16 D: row = 16 warp + 8 (i / 2 % 2) + lane / 4, column = 8 (i / 4) + 2 (lane % 4) + i % 2."""
    matrix = np.arange(64 * 32).reshape(64, 32)
    for warp in range(4):
        rows = matrix[16 * warp : 16 * warp + 16]
        for i in range(16):
            row = 8 * (i // 2 % 2) + LANES // 4
            column = 8 * (i // 4) + 2 * (LANES % 4) + i % 2
            assert np.array_equal(rows[row, column], accumulators(rows)[i // 4][i % 4])
