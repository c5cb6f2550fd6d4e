// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs
// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm | %{run} | FileCheck %s
// RUN: gdn-opt %s -gdn-tile-pipeline-copies -convert-gdn-tile-to-vector -gdn-lower-to-llvm | %{run} | FileCheck %s
// RUN: gdn-opt %s -gdn-tile-pipeline-copies -gdn-tile-insert-barriers -canonicalize -cse \
// RUN:   -convert-gdn-tile-to-vector -gdn-lower-to-llvm | %{run} | FileCheck %s

// Loops of 0, 1, 2 and 5 iterations with 2, 3 and 4 stages: the same sums with and
// without copies that run ahead.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// out[block] = sum over chunks c < trips[block] and rows i of chunk starts[c] below 70
// of g[i] x[i, :]. The gates are converted, so their copy cannot run ahead; the tile of
// x is rewritten in place, which must not reach the next copy.
func.func @two(%x: memref<?x8xf32>, %g: memref<?xbf16>, %starts: memref<?xi32>, %trips: memref<?xi32>, %out: memref<?x8xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c70 = arith.constant 70 : index
  %block = gdn_tile.block_id : index
  %trips_i32 = memref.load %trips[%block] : memref<?xi32>
  %n = arith.index_cast %trips_i32 : i32 to index
  %x_tile = memref.alloc() : memref<16x8xf32, #shared>
  %g_tile = memref.alloc() : memref<16xf32, #shared>
  %zero = arith.constant dense<0.0> : vector<1x8xf32>
  %sum = scf.for %c = %c0 to %n step %c1 iter_args(%acc = %zero) -> vector<1x8xf32> {
    %start_i32 = memref.load %starts[%c] : memref<?xi32>
    %start = arith.index_cast %start_i32 : i32 to index
    %rows = arith.subi %c70, %start : index
    gdn_tile.copy_in %x[%start, %c0] dims [0, 1] valid(%rows, %c8) to %x_tile : memref<?x8xf32> to memref<16x8xf32, #shared>
    gdn_tile.copy_in %g[%start] dims [0] valid(%rows) to %g_tile : memref<?xbf16> to memref<16xf32, #shared>
    %v = gdn_tile.load %x_tile[%c0, %c0] dims [0, 1] : memref<16x8xf32, #shared>, vector<16x8xf32>
    %w1 = gdn_tile.load %g_tile[%c0] dims [0] : memref<16xf32, #shared>, vector<16x1xf32>
    %w = vector.broadcast %w1 : vector<16x1xf32> to vector<16x8xf32>
    %p = arith.mulf %v, %w : vector<16x8xf32>
    gdn_tile.store %p, %x_tile[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32, #shared>
    %q = gdn_tile.load %x_tile[%c0, %c0] dims [0, 1] : memref<16x8xf32, #shared>, vector<16x8xf32>
    %s = gdn_tile.sum %q : vector<16x8xf32> to vector<1x8xf32>
    %next = arith.addf %acc, %s : vector<1x8xf32>
    scf.yield %next : vector<1x8xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %sum, %out[%block, %c0] dims [1] : vector<1x8xf32>, memref<?x8xf32>
  return
}

// The same without gates, with starts that are computed, and with another lower
// bound and step: rows 16 c .. 16 c + 15.
func.func @three(%x: memref<?x8xf32>, %trips: memref<?xi32>, %out: memref<?x8xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c70 = arith.constant 70 : index
  %block = gdn_tile.block_id : index
  %trips_i32 = memref.load %trips[%block] : memref<?xi32>
  %n = arith.index_cast %trips_i32 : i32 to index
  %end1 = arith.muli %n, %c16 : index
  %end = arith.addi %end1, %c8 : index
  %x_tile = memref.alloc() : memref<16x8xf32, #shared>
  %zero = arith.constant dense<0.0> : vector<1x8xf32>
  %sum = scf.for %i = %c8 to %end step %c16 iter_args(%acc = %zero) -> vector<1x8xf32> {
    %start = arith.subi %i, %c8 : index
    %rows = arith.subi %c70, %start : index
    gdn_tile.copy_in %x[%start, %c0] dims [0, 1] valid(%rows, %c8) to %x_tile : memref<?x8xf32> to memref<16x8xf32, #shared>
    %v = gdn_tile.load %x_tile[%c0, %c0] dims [0, 1] : memref<16x8xf32, #shared>, vector<16x8xf32>
    %s = gdn_tile.sum %v : vector<16x8xf32> to vector<1x8xf32>
    %next = arith.addf %acc, %s : vector<1x8xf32>
    scf.yield %next : vector<1x8xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %sum, %out[%block, %c0] dims [1] : vector<1x8xf32>, memref<?x8xf32>
  return
}

// Without valid bounds in the source, and two loops over two tiles.
func.func @four(%x: memref<?x8xf32>, %trips: memref<?xi32>, %out: memref<?x8xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %block = gdn_tile.block_id : index
  %trips_i32 = memref.load %trips[%block] : memref<?xi32>
  %n = arith.index_cast %trips_i32 : i32 to index
  %a = memref.alloc() : memref<8x8xf32, #shared>
  %b = memref.alloc() : memref<8xf32, #shared>
  %zero = arith.constant dense<0.0> : vector<1x8xf32>
  %sum = scf.for %c = %c0 to %n step %c1 iter_args(%acc = %zero) -> vector<1x8xf32> {
    %start = arith.muli %c, %c16 : index
    gdn_tile.copy_in %x[%start, %c0] dims [0, 1] to %a : memref<?x8xf32> to memref<8x8xf32, #shared>
    gdn_tile.copy_in %x[%start, %c0] dims [1] to %b : memref<?x8xf32> to memref<8xf32, #shared>
    %v = gdn_tile.load %a[%c0, %c0] dims [0, 1] : memref<8x8xf32, #shared>, vector<8x8xf32>
    %s = gdn_tile.sum %v : vector<8x8xf32> to vector<1x8xf32>
    %w = gdn_tile.load %b[%c0] dims [0] : memref<8xf32, #shared>, vector<1x8xf32>
    %0 = arith.addf %acc, %s : vector<1x8xf32>
    %next = arith.addf %0, %w : vector<1x8xf32>
    scf.yield %next : vector<1x8xf32>
  } {gdn_tile.stages = 4 : i64}
  gdn_tile.store %sum, %out[%block, %c0] dims [1] : vector<1x8xf32>, memref<?x8xf32>
  return
}

func.func @host(%x: memref<?x8xf32>, %g: memref<?xbf16>, %starts: memref<?xi32>, %trips: memref<?xi32>,
                %two: memref<?x8xf32>, %three: memref<?x8xf32>, %four: memref<?x8xf32>) {
  %c4 = arith.constant 4 : index
  gdn_tile.launch @two grid(%c4) (%x, %g, %starts, %trips, %two : memref<?x8xf32>, memref<?xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8xf32>)
  gdn_tile.launch @three grid(%c4) (%x, %trips, %three : memref<?x8xf32>, memref<?xi32>, memref<?x8xf32>)
  gdn_tile.launch @four grid(%c4) (%x, %trips, %four : memref<?x8xf32>, memref<?xi32>, memref<?x8xf32>)
  return
}

memref.global "private" constant @starts : memref<5xi32> = dense<[64, 0, 48, 16, 32]>
memref.global "private" constant @trips : memref<4xi32> = dense<[0, 1, 2, 5]>
func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c80 = arith.constant 80 : index
  %x = memref.alloc(%c80) : memref<?x8xf32>
  %g = memref.alloc(%c80) : memref<?xbf16>
  scf.for %i = %c0 to %c80 step %c1 {
    %odd = arith.remui %i, %c2 : index
    %weight = arith.addi %odd, %c1 : index
    %weight_i32 = arith.index_cast %weight : index to i32
    %weight_bf16 = arith.sitofp %weight_i32 : i32 to f32
    %w = arith.truncf %weight_bf16 : f32 to bf16
    memref.store %w, %g[%i] : memref<?xbf16>
    scf.for %j = %c0 to %c8 step %c1 {
      %p = arith.addi %i, %j : index
      %q = arith.index_cast %p : index to i32
      %f = arith.sitofp %q : i32 to f32
      memref.store %f, %x[%i, %j] : memref<?x8xf32>
    }
  }
  %starts0 = memref.get_global @starts : memref<5xi32>
  %starts = memref.cast %starts0 : memref<5xi32> to memref<?xi32>
  %trips0 = memref.get_global @trips : memref<4xi32>
  %trips = memref.cast %trips0 : memref<4xi32> to memref<?xi32>
  %two = memref.alloc(%c4) : memref<?x8xf32>
  %three = memref.alloc(%c4) : memref<?x8xf32>
  %four = memref.alloc(%c4) : memref<?x8xf32>
  call @host(%x, %g, %starts, %trips, %two, %three, %four) : (memref<?x8xf32>, memref<?xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8xf32>, memref<?x8xf32>, memref<?x8xf32>) -> ()
  // CHECK: sizes = [4, 8]
  // CHECK-NEXT: [0,   0,   0,   0,   0,   0,   0,   0]
  // CHECK-NEXT: [600,   609,   618,   627,   636,   645,   654,   663]
  // CHECK-NEXT: [784,   817,   850,   883,   916,   949,   982,   1015]
  // CHECK-NEXT: [3640,   3745,   3850,   3955,   4060,   4165,   4270,   4375]
  %two_any = memref.cast %two : memref<?x8xf32> to memref<*xf32>
  call @printMemrefF32(%two_any) : (memref<*xf32>) -> ()
  // CHECK: sizes = [4, 8]
  // CHECK-NEXT: [0,   0,   0,   0,   0,   0,   0,   0]
  // CHECK-NEXT: [120,   136,   152,   168,   184,   200,   216,   232]
  // CHECK-NEXT: [496,   528,   560,   592,   624,   656,   688,   720]
  // CHECK-NEXT: [2415,   2485,   2555,   2625,   2695,   2765,   2835,   2905]
  %three_any = memref.cast %three : memref<?x8xf32> to memref<*xf32>
  call @printMemrefF32(%three_any) : (memref<*xf32>) -> ()
  // CHECK: sizes = [4, 8]
  // CHECK-NEXT: [0,   0,   0,   0,   0,   0,   0,   0]
  // CHECK-NEXT: [28,   37,   46,   55,   64,   73,   82,   91]
  // CHECK-NEXT: [200,   218,   236,   254,   272,   290,   308,   326]
  // CHECK-NEXT: [1580,   1625,   1670,   1715,   1760,   1805,   1850,   1895]
  %four_any = memref.cast %four : memref<?x8xf32> to memref<*xf32>
  call @printMemrefF32(%four_any) : (memref<*xf32>) -> ()
  return
}
