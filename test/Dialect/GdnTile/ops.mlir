// RUN: gdn-opt %s | gdn-opt | FileCheck %s

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: func @refine
// CHECK: gdn_tile.refine a(%arg0, %[[N:.*]], %[[N]]) acc(%arg1) state(%arg1, %[[N]]) factors(%{{.*}}) count 33 scale 16 : (vector<16x16xbf16>,
// CHECK: gdn_tile.refine a(%arg0, %[[N]], %[[N]]) acc(%arg1) state(%arg1, %[[N]]) output(%arg1, %[[N]]) factors(%{{.*}}) count 32 scale 0 :
// CHECK: gdn_tile.refine a(%arg0, %[[N]], %[[N]]) acc(%arg1) state(%arg1, %[[N]]) output(%arg1, %[[N]]) scores(%[[N]]) factors(%{{.*}}) count 32 scale 0 {beta = 16 : i64, factor = 1.250000e-01 : f64, grown = 0 : i64} :
func.func @refine(%a: vector<16x16xbf16>, %u: vector<16x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %n = memref.alloc() : memref<16x16xbf16, #shared>
  %f = memref.alloc() : memref<34xf32, #shared>
  %0:2 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%u, %n) factors(%f) count 33 scale 16
      : (vector<16x16xbf16>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, vector<16x16xf32>, vector<16x16xf32>, memref<16x16xbf16, #shared>, memref<34xf32, #shared>)
      -> (vector<16x16xf32>, vector<16x16xf32>)
  %1:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%u, %n) output(%u, %n) factors(%f) count 32 scale 0
      : (vector<16x16xbf16>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, vector<16x16xf32>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, memref<34xf32, #shared>)
      -> (vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>)
  %2:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%u, %n) output(%u, %n) scores(%n) factors(%f) count 32 scale 0 {beta = 16 : i64, factor = 0.125 : f64, grown = 0 : i64}
      : (vector<16x16xbf16>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, vector<16x16xf32>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<34xf32, #shared>)
      -> (vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>)
  return
}

// CHECK-LABEL: func @products
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>
func.func @products(%k: memref<?x2x128xbf16>, %s: memref<?x4x64x128xf32>, %o: memref<?x2x64xbf16>, %rows: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  // CHECK: %[[ID:.*]] = gdn_tile.block_id : index
  %id = gdn_tile.block_id : index
  // CHECK: gdn_tile.block_id from_end : index
  %from_end = gdn_tile.block_id from_end : index
  // CHECK: gdn_tile.await_launch
  gdn_tile.await_launch
  %tile = memref.alloc() : memref<64x128xbf16, #shared>
  %out = memref.alloc() : memref<64x64xbf16, #shared>
  // CHECK: %[[COPY:.*]] = gdn_tile.copy_in %{{.*}}[%[[ID]], %{{.*}}, %{{.*}}] dims [0, 2] valid(%{{.*}}, %{{.*}}) to %{{.*}} : memref<?x2x128xbf16> to memref<64x128xbf16, #gpu.address_space<workgroup>> -> !gdn_tile.token
  %copy = gdn_tile.copy_in %k[%id, %c0, %c0] dims [0, 2] valid(%rows, %c128) to %tile
      : memref<?x2x128xbf16> to memref<64x128xbf16, #shared> -> !gdn_tile.token
  // CHECK: %[[GROUP:.*]] = gdn_tile.join %[[COPY]]
  %group = gdn_tile.join %copy
  // CHECK: gdn_tile.wait %[[GROUP]] {pending = 1 : i64}
  gdn_tile.wait %group {pending = 1}
  // CHECK: gdn_tile.barrier
  gdn_tile.barrier
  // CHECK: gdn_tile.load %{{.*}} dims [2, 3] : memref<?x4x64x128xf32>, vector<64x128xf32>
  %state = gdn_tile.load %s[%id, %c0, %c0, %c0] dims [2, 3] : memref<?x4x64x128xf32>, vector<64x128xf32>
  %a = arith.truncf %state : vector<64x128xf32> to vector<64x128xbf16>
  // CHECK: %[[SK:.*]] = gdn_tile.mma %{{.*}}, %{{.*}} {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #gpu.address_space<workgroup>> -> vector<64x64xf32>
  %sk = gdn_tile.mma %a, %tile {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
  %b = arith.truncf %sk : vector<64x64xf32> to vector<64x64xbf16>
  // CHECK: gdn_tile.mma %{{.*}}, %{{.*}} acc(%{{.*}} : vector<64x128xf32>) : vector<64x64xbf16>, memref<64x128xbf16, #gpu.address_space<workgroup>> -> vector<64x128xf32>
  %new = gdn_tile.mma %b, %tile acc(%state : vector<64x128xf32>) : vector<64x64xbf16>, memref<64x128xbf16, #shared> -> vector<64x128xf32>
  // CHECK: gdn_tile.store %{{.*}}, %{{.*}} dims [1, 0] : vector<64x64xbf16>, memref<64x64xbf16, #gpu.address_space<workgroup>>
  gdn_tile.store %b, %out[%c0, %c0] dims [1, 0] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
  // CHECK: gdn_tile.copy_out
  gdn_tile.copy_out %out to %o[%id, %c0, %c0] dims [0, 2] valid(%rows, %c64)
      : memref<64x64xbf16, #shared> to memref<?x2x64xbf16>
  return
}

// CHECK-LABEL: func @squares
func.func @squares(%a: vector<64x32xf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // CHECK: gdn_tile.sum_squares %{{.*}} : vector<64x32xf16> to vector<64x1xf32>
  %0 = gdn_tile.sum_squares %a : vector<64x32xf16> to vector<64x1xf32>
  return
}

// CHECK-LABEL: func @rows
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>
func.func @rows(%x: memref<?x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xf32>, vector<8x64xf32>
  // CHECK: gdn_tile.sum %{{.*}} : vector<8x64xf32> to vector<8x1xf32>
  %sum = gdn_tile.sum %v : vector<8x64xf32> to vector<8x1xf32>
  // CHECK: gdn_tile.iota : vector<1x64xi32>
  %i = gdn_tile.iota : vector<1x64xi32>
  gdn_tile.store %sum, %x[%c0, %c0] dims [0] : vector<8x1xf32>, memref<?x64xf32>
  return
}

// CHECK-LABEL: func @chunk
func.func @chunk() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %g = memref.alloc() : memref<16x32xf32, #shared>
  %l = memref.alloc() : memref<16x16xf32, #shared>
  // CHECK: gdn_tile.cumsum %{{.*}} : memref<16x32xf32, #gpu.address_space<workgroup>>
  gdn_tile.cumsum %g : memref<16x32xf32, #shared>
  // CHECK: gdn_tile.tri_inverse %{{.*}} : memref<16x16xf32, #gpu.address_space<workgroup>>
  gdn_tile.tri_inverse %l : memref<16x16xf32, #shared>
  return
}

// CHECK-LABEL: func @scores
func.func @scores(%gate: memref<?x4x32xbf16>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %x = memref.alloc() : memref<64x32xbf16, #shared>
  %sums = memref.alloc() : memref<65x40xf32, #shared>
  // CHECK: gdn_tile.copy_sums %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] dims [0, 2] valid(%{{.*}}, %{{.*}}) to %{{.*}} {columns = 32 : i64, factor = 1.500000e+00 : f64, least = -1.040000e+02 : f64} : memref<?x4x32xbf16> to memref<65x40xf32, #gpu.address_space<workgroup>>
  gdn_tile.copy_sums %gate[%c0, %c0, %c0] dims [0, 2] valid(%n, %n) to %sums {columns = 32 : i64, least = -104.0, factor = 1.5} : memref<?x4x32xbf16> to memref<65x40xf32, #shared>
  // CHECK: gdn_tile.copy_sums %{{.*}} dims [0, 2] to
  gdn_tile.copy_sums %gate[%c0, %c0, %c0] dims [0, 2] to %sums {columns = 32 : i64, least = -104.0, factor = 1.5} : memref<?x4x32xbf16> to memref<65x40xf32, #shared>
  // CHECK: gdn_tile.scores %[[X:.*]], %[[X]], %{{.*}} acc(%{{.*}}) : (memref<64x32xbf16, #gpu.address_space<workgroup>>, memref<64x32xbf16, #gpu.address_space<workgroup>>, memref<65x40xf32, #gpu.address_space<workgroup>>, vector<64x64xf32>) -> vector<64x64xf32>
  %p = gdn_tile.scores %x, %x, %sums acc(%zero) : (memref<64x32xbf16, #shared>, memref<64x32xbf16, #shared>, memref<65x40xf32, #shared>, vector<64x64xf32>) -> vector<64x64xf32>
  // CHECK: gdn_tile.scores %[[X]], %[[X]], %{{.*}} acc(%{{.*}}) strict(%[[X]] acc %{{.*}}) :
  %q, %a = gdn_tile.scores %x, %x, %sums acc(%p) strict(%x acc %zero) : (memref<64x32xbf16, #shared>, memref<64x32xbf16, #shared>, memref<65x40xf32, #shared>, vector<64x64xf32>, memref<64x32xbf16, #shared>, vector<64x64xf32>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// CHECK-LABEL: func @host
func.func @host(%x: memref<?x64xf32>, %n: index) {
  // CHECK: gdn_tile.launch @rows grid(%{{.*}}) (%{{.*}} : memref<?x64xf32>)
  gdn_tile.launch @rows grid(%n) (%x : memref<?x64xf32>)
  // CHECK: gdn_tile.launch @rows grid(%{{.*}}) (%{{.*}} : memref<?x64xf32>) {beside}
  gdn_tile.launch @rows grid(%n) (%x : memref<?x64xf32>) {beside}
  return
}

// CHECK-LABEL: func @stages
func.func @stages(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %buffers = memref.alloc() : memref<2x64x32xf32, #shared>
  %rows = memref.alloc() : memref<3x64xf32, #shared>
  // CHECK: gdn_tile.stage %{{.*}}[%{{.*}}] : memref<2x64x32xf32, #gpu.address_space<workgroup>> to memref<64x32xf32, #gpu.address_space<workgroup>>
  %tile = gdn_tile.stage %buffers[%i] : memref<2x64x32xf32, #shared> to memref<64x32xf32, #shared>
  // CHECK: gdn_tile.stage %{{.*}}[%{{.*}}] : memref<3x64xf32, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
  %row = gdn_tile.stage %rows[%i] : memref<3x64xf32, #shared> to memref<64xf32, #shared>
  gdn_tile.cumsum %tile : memref<64x32xf32, #shared>
  gdn_tile.cumsum %row : memref<64xf32, #shared>
  // CHECK: gdn_tile.cumsum %[[ROW:.*]] of %{{.*}} column %{{.*}} {factor = 1.440000e+00 : f64, least = -1.000000e+02 : f64} : memref<64xf32, #gpu.address_space<workgroup>> of memref<64x32xf32, #gpu.address_space<workgroup>>
  gdn_tile.cumsum %row of %tile column %i {least = -1.0e+02, factor = 1.44} : memref<64xf32, #shared> of memref<64x32xf32, #shared>
  %decays = memref.alloc() : memref<192xf32, #shared>
  // CHECK: gdn_tile.decays %[[ROW]] times %[[ROW]] to %{{.*}} {scale = 1.250000e-01 : f64} : memref<64xf32, #gpu.address_space<workgroup>> times memref<64xf32, #gpu.address_space<workgroup>> to memref<192xf32, #gpu.address_space<workgroup>>
  gdn_tile.decays %row times %row to %decays {scale = 0.125} : memref<64xf32, #shared> times memref<64xf32, #shared> to memref<192xf32, #shared>
  %raw = memref.alloc() : memref<200xf32, #shared>
  // CHECK: gdn_tile.decays %[[ROW]] keys %[[ROW]] to %{{.*}} {scale = 1.250000e-01 : f64} :
  gdn_tile.decays %row keys %row to %raw {scale = 0.125} : memref<64xf32, #shared> keys memref<64xf32, #shared> to memref<200xf32, #shared>
  // CHECK: gdn_tile.decays %[[ROW]] times %[[ROW]] keys %[[ROW]] queries %[[ROW]] to %{{.*}} {scale = 1.250000e-01 : f64} :
  gdn_tile.decays %row times %row keys %row queries %row to %raw {scale = 0.125} : memref<64xf32, #shared> times memref<64xf32, #shared>
      keys memref<64xf32, #shared> queries memref<64xf32, #shared> to memref<200xf32, #shared>
  return
}

// CHECK-LABEL: func @attributes()
// CHECK-SAME: #gdn_tile.kernel<warps = 4, layout = accumulator, blocks = 3>
func.func @attributes() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator, blocks = 3>} {
  return
}

// CHECK-LABEL: func @attributes_of_rows()
// CHECK-SAME: #gdn_tile.kernel<warps = 1, layout = rows, lanes = 8, blocks = 2>
func.func @attributes_of_rows() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 8, blocks = 2>} {
  return
}

// CHECK-LABEL: func @overlapping
// CHECK: gdn_tile.overlap_launches
func.func @overlapping() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  gdn_tile.overlap_launches
  return
}

// CHECK-LABEL: func @registers
func.func @registers(%s: memref<?x64xbf16>, %k: memref<?x64xbf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  // CHECK: gdn_tile.load {{.*}} dims [0, 1] {streaming} : memref<?x64xbf16>, vector<16x64xbf16>
  %state = gdn_tile.load %s[%c0, %c0] dims [0, 1] {streaming} : memref<?x64xbf16>, vector<16x64xbf16>
  %key = gdn_tile.load %k[%c0, %c0] dims [0, 1] : memref<?x64xbf16>, vector<8x64xbf16>
  // CHECK: %{{.*}}:2 = gdn_tile.after_loads %{{.*}}, %{{.*}} : vector<8x64xbf16>, vector<16x64xbf16>
  %b, %a = gdn_tile.after_loads %key, %state : vector<8x64xbf16>, vector<16x64xbf16>
  // CHECK: %{{.*}}:2 = gdn_tile.dot %{{.*}} times(%{{.*}}, %{{.*}}) : vector<16x64xbf16>, vector<8x64xbf16>, vector<8x64xbf16> -> vector<16x8xf32>, vector<16x8xf32>
  %x, %y = gdn_tile.dot %a times(%b, %b) : vector<16x64xbf16>, vector<8x64xbf16>, vector<8x64xbf16> -> vector<16x8xf32>, vector<16x8xf32>
  // CHECK: gdn_tile.dot %{{.*}} times(%{{.*}}) : vector<8x64xbf16>, vector<8x64xbf16> -> vector<8x8xf32>
  %l = gdn_tile.dot %b times(%b) : vector<8x64xbf16>, vector<8x64xbf16> -> vector<8x8xf32>
  // CHECK: gdn_tile.stack %{{.*}}, %{{.*}} : vector<8x64xbf16>
  %both = gdn_tile.stack %b, %b : vector<8x64xbf16>
  // CHECK: gdn_tile.tri_solve %{{.*}}, %{{.*}} {count = 4 : i64} : vector<8x8xf32>, vector<16x8xf32>
  %u = gdn_tile.tri_solve %l, %x {count = 4 : i64} : vector<8x8xf32>, vector<16x8xf32>
  // CHECK: gdn_tile.outer %{{.*}}, %{{.*}} acc(%{{.*}}) scale(%{{.*}} : vector<1x1xf32>) : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xbf16>
  %row = gdn_tile.sum %l : vector<8x8xf32> to vector<1x8xf32>
  %scale = gdn_tile.sum %row : vector<1x8xf32> to vector<1x1xf32>
  %scaled = gdn_tile.outer %u, %b acc(%a) scale(%scale : vector<1x1xf32>) : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xbf16>
  %acc = arith.extf %scaled : vector<16x64xbf16> to vector<16x64xf32>
  // CHECK: gdn_tile.outer %{{.*}}, %{{.*}} acc(%{{.*}}) {exact} : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xf32>
  %next = gdn_tile.outer %u, %b acc(%acc) {exact} : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xf32>
  %rounded = arith.truncf %next : vector<16x64xf32> to vector<16x64xbf16>
  // CHECK: gdn_tile.store {{.*}} dims [0, 1] {streaming} : vector<16x64xbf16>, memref<?x64xbf16>
  gdn_tile.store %rounded, %s[%c0, %c0] dims [0, 1] {streaming} : vector<16x64xbf16>, memref<?x64xbf16>
  return
}

// The blocks of a lower triangular matrix, in memory one after the other, in panels of 16 columns as right operand.

// CHECK-LABEL: func @lower
func.func @lower(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %a: vector<64x64xbf16>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t = memref.alloc() : memref<512x8xbf16, #gpu.address_space<workgroup>>
  gdn_tile.each_warp (%item) in (%c1) {
    // CHECK: gdn_tile.store_block %{{.*}}, %{{.*}}[%{{.*}}, %c32, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    gdn_tile.store_block %z, %x[%i, %c32, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    // CHECK: gdn_tile.store_block %{{.*}}, %{{.*}}[%{{.*}}, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x288x8xbf16>
    gdn_tile.store_block %z, %x[%i, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x288x8xbf16>
    // CHECK: gdn_tile.load_block %{{.*}}[%{{.*}}, %c0, %c0] {diagonal} : memref<?x288x8xbf16> -> vector<16x16xbf16>
    %again = gdn_tile.load_block %x[%i, %c0, %c0] {diagonal} : memref<?x288x8xbf16> -> vector<16x16xbf16>
  }
  // CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %c0, %c0] dims [1, 2] to %{{.*}} {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, {{.*}}> -> !gdn_tile.token
  %token = gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #gpu.address_space<workgroup>> -> !gdn_tile.token
  // CHECK: gdn_tile.mma %{{.*}}, %{{.*}} {transpose_b} : vector<64x64xbf16>, memref<512x8xbf16, {{.*}}> -> vector<64x64xf32>
  %r = gdn_tile.mma %a, %t {transpose_b} : vector<64x64xbf16>, memref<512x8xbf16, #gpu.address_space<workgroup>> -> vector<64x64xf32>
  return
}
