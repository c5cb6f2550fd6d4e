// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// A lower triangular matrix of 32 columns as its blocks on and below the diagonal, and as right operand.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// Blocks (0, 0), (1, 0) and (1, 1) are transposed fragments k x n with 16 k + n, and 256 and 512 more. Of part 1 of the workspace.
func.func @write(%blocks: memref<2x80x8xf16>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %c56 = arith.constant 56 : index
  gdn_tile.each_warp (%item) in (%c1) {
    %k = gdn_tile.iota : vector<16x1xi32>
    %n = gdn_tile.iota : vector<1x16xi32>
    %ks = vector.broadcast %k : vector<16x1xi32> to vector<16x16xi32>
    %ns = vector.broadcast %n : vector<1x16xi32> to vector<16x16xi32>
    %sixteen = arith.constant dense<16> : vector<16x16xi32>
    %rows = arith.muli %ks, %sixteen : vector<16x16xi32>
    %sum = arith.addi %rows, %ns : vector<16x16xi32>
    %z0 = arith.sitofp %sum : vector<16x16xi32> to vector<16x16xf32>
    %more = arith.constant dense<256.0> : vector<16x16xf32>
    %z1 = arith.addf %z0, %more : vector<16x16xf32>
    %z2 = arith.addf %z1, %more : vector<16x16xf32>
    %h0 = arith.truncf %z0 : vector<16x16xf32> to vector<16x16xf16>
    %h1 = arith.truncf %z1 : vector<16x16xf32> to vector<16x16xf16>
    %h2 = arith.truncf %z2 : vector<16x16xf32> to vector<16x16xf16>
    gdn_tile.store_block %h0, %blocks[%c1, %c0, %c0] {diagonal} : vector<16x16xf16>, memref<2x80x8xf16>
    gdn_tile.store_block %h1, %blocks[%c1, %c24, %c0] : vector<16x16xf16>, memref<2x80x8xf16>
    gdn_tile.store_block %h2, %blocks[%c1, %c56, %c0] {diagonal} : vector<16x16xf16>, memref<2x80x8xf16>
  }
  return
}

// The unit matrix times the transpose, so row k and column n of the result are column k and row n of the matrix.
func.func @read(%blocks: memref<2x80x8xf16>, %part: memref<48x8xf32>, %out: memref<2x16x32xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c48 = arith.constant 48 : index
  %panels = memref.alloc() : memref<128x8xf16, #shared>
  %first = arith.constant dense<0> : vector<16x32xi32>
  %second = arith.constant dense<16> : vector<16x32xi32>
  %k = gdn_tile.iota : vector<16x1xi32>
  %n = gdn_tile.iota : vector<1x32xi32>
  %ks = vector.broadcast %k : vector<16x1xi32> to vector<16x32xi32>
  %ns = vector.broadcast %n : vector<1x32xi32> to vector<16x32xi32>
  %below = arith.addi %ks, %second : vector<16x32xi32>
  %one = arith.constant dense<1.0> : vector<16x32xf16>
  %zero = arith.constant dense<0.0> : vector<16x32xf16>
  %isFirst = arith.cmpi eq, %ks, %ns : vector<16x32xi32>
  %isSecond = arith.cmpi eq, %below, %ns : vector<16x32xi32>
  %a0 = arith.select %isFirst, %one, %zero : vector<16x32xi1>, vector<16x32xf16>
  %a1 = arith.select %isSecond, %one, %zero : vector<16x32xi1>, vector<16x32xf16>
  gdn_tile.copy_in %blocks[%c1, %c0, %c0] dims [1, 2] to %panels {lower} : memref<2x80x8xf16> to memref<128x8xf16, #shared>
  %r0 = gdn_tile.mma %a0, %panels {transpose_b} : vector<16x32xf16>, memref<128x8xf16, #shared> -> vector<16x32xf32>
  %r1 = gdn_tile.mma %a1, %panels {transpose_b} : vector<16x32xf16>, memref<128x8xf16, #shared> -> vector<16x32xf32>
  scf.for %row = %c0 to %c48 step %c16 {
    %stored = gdn_tile.load %blocks[%c1, %row, %c0] dims [1, 2] : memref<2x80x8xf16>, vector<16x8xf16>
    %wide = arith.extf %stored : vector<16x8xf16> to vector<16x8xf32>
    gdn_tile.store %wide, %part[%row, %c0] dims [0, 1] : vector<16x8xf32>, memref<48x8xf32>
  }
  gdn_tile.store %r0, %out[%c0, %c0, %c0] dims [1, 2] : vector<16x32xf32>, memref<2x16x32xf32>
  gdn_tile.store %r1, %out[%c1, %c0, %c0] dims [1, 2] : vector<16x32xf32>, memref<2x16x32xf32>
  return
}

// Blocks (0, 0) and (1, 0) as the transposed fragments that they were stored from.
func.func @again(%blocks: memref<2x80x8xf16>, %out: memref<2x16x16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  gdn_tile.each_warp (%item) in (%c1) {
    %h0 = gdn_tile.load_block %blocks[%c1, %c0, %c0] {diagonal} : memref<2x80x8xf16> -> vector<16x16xf16>
    %h1 = gdn_tile.load_block %blocks[%c1, %c24, %c0] : memref<2x80x8xf16> -> vector<16x16xf16>
    %z0 = arith.extf %h0 : vector<16x16xf16> to vector<16x16xf32>
    %z1 = arith.extf %h1 : vector<16x16xf16> to vector<16x16xf32>
    gdn_tile.store %z0, %out[%c0, %c0, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x16x16xf32>
    gdn_tile.store %z1, %out[%c1, %c0, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x16x16xf32>
  }
  return
}

func.func @host(%blocks: memref<2x80x8xf16>, %part: memref<48x8xf32>, %out: memref<2x16x32xf32>, %same: memref<2x16x16xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @write grid(%c1) (%blocks : memref<2x80x8xf16>)
  gdn_tile.launch @read grid(%c1) (%blocks, %part, %out : memref<2x80x8xf16>, memref<48x8xf32>, memref<2x16x32xf32>)
  gdn_tile.launch @again grid(%c1) (%blocks, %same : memref<2x80x8xf16>, memref<2x16x16xf32>)
  return
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %blocks = memref.alloc() : memref<2x80x8xf16>
  %part = memref.alloc() : memref<48x8xf32>
  %out = memref.alloc() : memref<2x16x32xf32>
  %same = memref.alloc() : memref<2x16x16xf32>
  call @host(%blocks, %part, %out, %same) : (memref<2x80x8xf16>, memref<48x8xf32>, memref<2x16x32xf32>, memref<2x16x16xf32>) -> ()
  // Eight n for one k, k from 8 to 15, then from 0 to 7, then the next eight n; of the first eight n only k from 0 to 7. Then
  // the next block, with all.
  // CHECK: sizes = [48, 8]
  // CHECK-NEXT: {{^}}{{\[}}{{\[}}0, 1, 2, 3, 4, 5, 6, 7],
  // CHECK-NEXT: [16, 17, 18, 19, 20, 21, 22, 23],
  // CHECK: [112, 113, 114, 115, 116, 117, 118, 119],
  // CHECK-NEXT: [136, 137, 138, 139, 140, 141, 142, 143],
  // CHECK: [248, 249, 250, 251, 252, 253, 254, 255],
  // CHECK-NEXT: [8, 9, 10, 11, 12, 13, 14, 15],
  // CHECK: [120, 121, 122, 123, 124, 125, 126, 127],
  // CHECK-NEXT: [384, 385, 386, 387, 388, 389, 390, 391],
  // CHECK: [496, 497, 498, 499, 500, 501, 502, 503],
  // CHECK-NEXT: [256, 257, 258, 259, 260, 261, 262, 263],
  // CHECK: [368, 369, 370, 371, 372, 373, 374, 375],
  // CHECK-NEXT: [392, 393, 394, 395, 396, 397, 398, 399],
  %0 = memref.cast %part : memref<48x8xf32> to memref<*xf32>
  call @printMemrefF32(%0) : (memref<*xf32>) -> ()
  // Above the diagonal's blocks, and in their columns 8 to 15 of rows 0 to 7, the matrix is zero.
  // CHECK: sizes = [2, 16, 32]
  // CHECK-NEXT: {{^}}{{\[}}{{\[}}{{\[}}0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 270, 271],
  // CHECK-NEXT: [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 272, 273, 274, 275, 276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287],
  // CHECK: [0, 0, 0, 0, 0, 0, 0, 0, 248, 249, 250, 251, 252, 253, 254, 255, 496, 497, 498, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511]],
  // CHECK: {{\[}}{{\[}}0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 512, 513, 514, 515, 516, 517, 518, 519, 520, 521, 522, 523, 524, 525, 526, 527],
  // CHECK: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 760, 761, 762, 763, 764, 765, 766, 767]]]
  %1 = memref.cast %out : memref<2x16x32xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  // CHECK: sizes = [2, 16, 16]
  // CHECK-NEXT: {{^}}{{\[}}{{\[}}{{\[}}0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  // CHECK: [112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127],
  // CHECK-NEXT: [0, 0, 0, 0, 0, 0, 0, 0, 136, 137, 138, 139, 140, 141, 142, 143],
  // CHECK: [0, 0, 0, 0, 0, 0, 0, 0, 248, 249, 250, 251, 252, 253, 254, 255]],
  // CHECK: {{\[}}{{\[}}256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 270, 271],
  // CHECK: [496, 497, 498, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511]]]
  %2 = memref.cast %same : memref<2x16x16xf32> to memref<*xf32>
  call @printMemrefF32(%2) : (memref<*xf32>) -> ()
  return
}
