// RUN: gdn-opt %s -test-gdn-tile-layouts -mlir-disable-threading | FileCheck %s

// The tables are those of the PTX ISA manual: the accumulator of mma.m16n8 holds, in lane l with group g = l / 4 and
// t = l % 4, c0 (g, 2t), c1 (g, 2t + 1), c2 (g + 8, 2t), c3 (g + 8, 2t + 1).

#shared = #gpu.address_space<workgroup>

func.func @accumulator() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // CHECK: vector<64x16xf32>: 8 registers
  // CHECK-NEXT: thread 0: (0,0) (0,1) (8,0) (8,1) (0,8) (0,9) (8,8) (8,9)
  // CHECK-NEXT: thread 1: (0,2) (0,3) (8,2) (8,3) (0,10) (0,11) (8,10) (8,11)
  // CHECK-NEXT: thread 4: (1,0) (1,1) (9,0) (9,1) (1,8) (1,9) (9,8) (9,9)
  // CHECK-NEXT: thread 31: (7,6) (7,7) (15,6) (15,7) (7,14) (7,15) (15,14) (15,15)
  // CHECK-NEXT: thread 70: (33,4) (33,5) (41,4) (41,5) (33,12) (33,13) (41,12) (41,13)
  // CHECK-NEXT: thread 127: (55,6) (55,7) (63,6) (63,7) (55,14) (55,15) (63,14) (63,15)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %full = arith.constant {threads = array<i64: 0, 1, 4, 31, 70, 127>} dense<0.0> : vector<64x16xf32>
  // Rows alone: the four lanes of a group (bits 0 and 1) hold the same.
  // CHECK: vector<64x1xf32>: 2 registers
  // CHECK-NEXT: thread 3: (0,0) (8,0)
  // CHECK-NEXT: thread 70: (33,0) (41,0)
  // CHECK-NEXT: owners 4 to 4, replicated bits 3
  %rows = arith.constant {threads = array<i64: 3, 70>} dense<0.0> : vector<64x1xf32>
  // Columns alone: eight groups and four warps (bits 2 to 6) hold the same.
  // CHECK: vector<1x16xf32>: 4 registers
  // CHECK-NEXT: thread 3: (0,6) (0,7) (0,14) (0,15)
  // CHECK-NEXT: thread 70: (0,4) (0,5) (0,12) (0,13)
  // CHECK-NEXT: owners 32 to 32, replicated bits 124
  %cols = arith.constant {threads = array<i64: 3, 70>} dense<0.0> : vector<1x16xf32>
  // 16 rows are those of one warp, the same in each.
  // CHECK: vector<16x16xf32>: 8 registers
  // CHECK-NEXT: thread 31: (7,6) (7,7) (15,6) (15,7) (7,14) (7,15) (15,14) (15,15)
  // CHECK-NEXT: thread 70: (1,4) (1,5) (9,4) (9,5) (1,12) (1,13) (9,12) (9,13)
  // CHECK-NEXT: owners 4 to 4, replicated bits 0
  %warp = arith.constant {threads = array<i64: 31, 70>} dense<0.0> : vector<16x16xf32>
  return
}

// Eight lanes a row, 4 elements (16 bytes of f32) in turn; a warp has four rows.
func.func @rows() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = rows, lanes = 8>} {
  // CHECK: vector<16x64xf32>: 16 registers
  // CHECK-NEXT: thread 0: (0,0) (0,1) (0,2) (0,3) (0,32) (0,33) (0,34) (0,35) (8,0) (8,1) (8,2) (8,3) (8,32) (8,33) (8,34) (8,35)
  // CHECK-NEXT: thread 42: (5,8) (5,9) (5,10) (5,11) (5,40) (5,41) (5,42) (5,43) (13,8) (13,9) (13,10) (13,11) (13,40) (13,41) (13,42) (13,43)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %full = arith.constant {threads = array<i64: 0, 42>} dense<0.0> : vector<16x64xf32>
  // Fewer columns than lanes: pairs of lanes (bit 0) hold all, the others the same.
  // CHECK: vector<8x8xf32>: 4 registers
  // CHECK-NEXT: thread 5: (0,4) (0,5) (0,6) (0,7)
  // CHECK-NEXT: thread 9: (1,4) (1,5) (1,6) (1,7)
  // CHECK-NEXT: owners 4 to 4, replicated bits 6
  %narrow = arith.constant {threads = array<i64: 5, 9>} dense<0.0> : vector<8x8xf32>
  // Two columns a lane.
  // CHECK: vector<8x16xf32>: 2 registers
  // CHECK-NEXT: thread 5: (0,10) (0,11)
  // CHECK-NEXT: thread 9: (1,2) (1,3)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %pairs = arith.constant {threads = array<i64: 5, 9>} dense<0.0> : vector<8x16xf32>
  // CHECK: vector<16x1xi32>: 2 registers
  // CHECK-NEXT: thread 42: (5,0) (13,0)
  // CHECK-NEXT: owners 8 to 8, replicated bits 7
  %column = arith.constant {threads = array<i64: 42>} dense<0> : vector<16x1xi32>
  return
}

// Four lanes a row: the chunks of a state of bf16, and beside it the accumulator of mma.sync.
func.func @four_lanes() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  // CHECK: vector<8x64xbf16>: 16 registers
  // CHECK-NEXT: thread 6: (1,16) (1,17) (1,18) (1,19) (1,20) (1,21) (1,22) (1,23) (1,48) (1,49) (1,50) (1,51) (1,52) (1,53) (1,54) (1,55)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %state = arith.constant {threads = array<i64: 6>} dense<0.0> : vector<8x64xbf16>
  // CHECK: vector<16x8xf32>: 4 registers
  // CHECK-NEXT: thread 6: (1,4) (1,5) (9,4) (9,5)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %sums = arith.constant {threads = array<i64: 6>} dense<0.0> : vector<16x8xf32>
  // CHECK: vector<1x8xf32>: 2 registers
  // CHECK-NEXT: thread 6: (0,4) (0,5)
  // CHECK-NEXT: owners 8 to 8, replicated bits 28
  %tokens = arith.constant {threads = array<i64: 6>} dense<0.0> : vector<1x8xf32>
  return
}

// The modes of TMA and wgmma: in a panel of 128, 64 or 32 bytes the address bits 4.. are xor-ed with bits 7.. of it.
func.func @tiles() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  // Two panels of 16 rows.
  // CHECK: 16 rows, 4096 bytes, aligned to 1024
  // CHECK-NEXT: row 0: 0 2 16 112 2048
  // CHECK-NEXT: row 1: 144 146 128 224 2192
  // CHECK-NEXT: row 2: 288 290 304 336 2336
  // CHECK: row 7: 1008 1010 992 896 3056
  // CHECK-NEXT: row 8: 1024 1026 1040 1136 3072
  %wide = memref.alloc() {columns = array<i64: 0, 1, 8, 56, 64>} : memref<16x128xbf16, #shared>
  // CHECK: 16 rows, 1024 bytes, aligned to 512
  // CHECK-NEXT: row 0: 0 16 32 48
  // CHECK-NEXT: row 1: 64 80 96 112
  // CHECK-NEXT: row 2: 144 128 176 160
  // CHECK-NEXT: row 3: 208 192 240 224
  // CHECK-NEXT: row 4: 288 304 256 272
  // CHECK: row 8: 512 528 544 560
  %half = memref.alloc() {columns = array<i64: 0, 8, 16, 24>} : memref<16x32xbf16, #shared>
  // CHECK: 16 rows, 512 bytes, aligned to 256
  // CHECK-NEXT: row 0: 0 16
  // CHECK: row 3: 96 112
  // CHECK-NEXT: row 4: 144 128
  // CHECK: row 8: 256 272
  %quarter = memref.alloc() {columns = array<i64: 0, 8>} : memref<16x16xbf16, #shared>
  // 24 columns of 4 bytes: three panels of 32 bytes.
  // CHECK: 8 rows, 768 bytes, aligned to 256
  // CHECK-NEXT: row 0: 0 256 512
  // CHECK: row 4: 144 400 656
  %three = memref.alloc() {columns = array<i64: 0, 8, 16>} : memref<8x24xf32, #shared>
  // No multiple of 32 bytes: rows padded to 16.
  // CHECK: 4 rows, 192 bytes, aligned to 16
  // CHECK-NEXT: row 0: 0 36
  // CHECK-NEXT: row 1: 48 84
  %padded = memref.alloc() {columns = array<i64: 0, 9>} : memref<4x10xf32, #shared>
  // CHECK: 64 rows, 256 bytes, aligned to 16
  // CHECK-NEXT: row 0: 0 252
  %plain = memref.alloc() {columns = array<i64: 0, 63>} : memref<64xf32, #shared>
  return
}

// 64 rows are those of a warpgroup beside the kernel's two, whose threads are counted from its first: of the kernel's
// 256 threads two would have each element.
func.func @warpgroup() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  // CHECK: vector<64x16xf32>: 8 registers
  // CHECK-NEXT: thread 0: (0,0) (0,1) (8,0) (8,1) (0,8) (0,9) (8,8) (8,9)
  // CHECK-NEXT: thread 127: (55,6) (55,7) (63,6) (63,7) (55,14) (55,15) (63,14) (63,15)
  // CHECK-NEXT: owners 2 to 2, replicated bits 0
  %full = arith.constant {threads = array<i64: 0, 127>} dense<0.0> : vector<64x16xf32>
  // CHECK: vector<128x16xf32>: 8 registers
  // CHECK-NEXT: thread 255: (119,6) (119,7) (127,6) (127,7) (119,14) (119,15) (127,14) (127,15)
  // CHECK-NEXT: owners 1 to 1, replicated bits 0
  %all = arith.constant {threads = array<i64: 255>} dense<0.0> : vector<128x16xf32>
  return
}
