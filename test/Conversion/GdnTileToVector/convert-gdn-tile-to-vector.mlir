// RUN: gdn-opt %s -convert-gdn-tile-to-vector -canonicalize -split-input-file | FileCheck %s

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// The block number is the first argument; a copy is zero fill and a bounded
// loop; tokens and barriers are gone; a product is one loop nest, the
// conversion of its transposed operand another.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[BLOCK:.*]]: index, %{{.*}}: index, %[[K:.*]]: memref<?x32xbf16>, %[[O:.*]]: memref<?x16xf32>, %[[ROWS:.*]]: index) {
func.func @product(%k: memref<?x32xbf16>, %o: memref<?x16xf32>, %rows: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %block = gdn_tile.block_id : index
  // CHECK-DAG:     %[[TILE:.*]] = memref.alloc() {{.*}} : memref<16x32xbf16>
  // CHECK-DAG:     %[[MATRIX:.*]] = memref.alloc() {{.*}} : memref<32x16xf32>
  // CHECK-DAG:     %[[RESULT:.*]] = memref.alloc() {{.*}} : memref<16x16xf32>
  // CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
  // CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
  %tile = memref.alloc() : memref<16x32xbf16, #shared>
  // CHECK:         %[[BOUND:.*]] = arith.minsi %[[ROWS]], %[[C16]]
  // CHECK:         memref.store %{{.*}}, %[[TILE]]
  // CHECK:         scf.for %[[I:.*]] = %[[C0]] to %[[BOUND]]
  // CHECK:           scf.for %[[J:.*]] = %[[C0]] to %[[C32]] step %[[C16]]
  // CHECK:             %[[ROW:.*]] = arith.addi %[[BLOCK]], %[[I]]
  // CHECK:             %[[V:.*]] = vector.load %[[K]][%[[ROW]], %[[J]]] : memref<?x32xbf16>, vector<16xbf16>
  // CHECK:             vector.store %[[V]], %[[TILE]][%[[I]], %[[J]]]
  %copy = gdn_tile.copy_in %k[%block, %c0] dims [0, 1] valid(%rows, %c32) to %tile
      : memref<?x32xbf16> to memref<16x32xbf16, #shared> -> !gdn_tile.token
  %group = gdn_tile.join %copy
  gdn_tile.wait %group
  gdn_tile.barrier
  %ones = arith.constant dense<1.0> : vector<16x32xbf16>
  // CHECK:         %[[B:.*]] = memref.load %[[TILE]][%[[N:.*]], %[[P:.*]]]
  // CHECK:         %[[BX:.*]] = arith.extf %[[B]]
  // CHECK:         memref.store %[[BX]], %[[MATRIX]][%[[P]], %[[N]]]
  // CHECK:         scf.for %[[M:.*]] = %[[C0]] to %[[C16]]
  // CHECK:           %[[SUM:.*]] = scf.for %[[P:.*]] = %[[C0]] to %[[C32]]
  // CHECK-SAME:        -> (vector<16xf32>)
  // CHECK:             vector.load %[[MATRIX]][%[[P]], %[[C0]]]
  // CHECK:           vector.store %[[SUM]], %[[RESULT]][%[[M]], %[[C0]]]
  %r = gdn_tile.mma %ones, %tile {transpose_b} : vector<16x32xbf16>, memref<16x32xbf16, #shared> -> vector<16x16xf32>
  gdn_tile.store %r, %o[%block, %c0] dims [0, 1] : vector<16x16xf32>, memref<?x16xf32>
  // CHECK-COUNT-4: memref.dealloc
  // CHECK-NOT:     gdn_tile
  return
}

// CHECK-LABEL: func.func @host(
// CHECK-SAME:    %[[K:.*]]: memref<?x32xbf16>, %[[O:.*]]: memref<?x16xf32>, %[[GRID:.*]]: index)
func.func @host(%k: memref<?x32xbf16>, %o: memref<?x16xf32>, %grid: index) {
  // CHECK:      scf.for %[[I:.*]] = %{{.*}} to %[[GRID]]
  // CHECK-NEXT:   func.call @product(%[[I]], %[[GRID]], %[[K]], %[[O]], %[[GRID]])
  gdn_tile.launch @product grid(%grid) (%k, %o, %grid : memref<?x32xbf16>, memref<?x16xf32>, index)
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// Elementwise chains are one loop over pieces of rows; constants and
// broadcasts are part of it.
// CHECK-LABEL: func.func @chain
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           scf.for %[[J:.*]] =
// CHECK:             %[[X:.*]] = vector.load %[[BX:.*]][%[[I]], %[[J]]] : memref<16x32xf32>, vector<16xf32>
// CHECK:             %[[S:.*]] = vector.load %[[BS:.*]][%[[I]], %{{.*}}] : memref<16x1xf32>, vector<1xf32>
// CHECK:             vector.broadcast
// CHECK:             arith.mulf
// CHECK:             math.exp %{{.*}} : vector<16xf32>
// CHECK:             vector.store
// CHECK-NOT:       math.exp
func.func @chain(%x: memref<16x32xf32>, %s: memref<16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %0 = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x32xf32>, vector<16x32xf32>
  %1 = gdn_tile.load %s[%c0] dims [0] : memref<16xf32>, vector<16x1xf32>
  %2 = vector.broadcast %1 : vector<16x1xf32> to vector<16x32xf32>
  %3 = arith.mulf %0, %2 : vector<16x32xf32>
  %4 = math.exp %3 : vector<16x32xf32>
  gdn_tile.store %4, %x[%c0, %c0] dims [0, 1] : vector<16x32xf32>, memref<16x32xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// A stage is a part of the buffers; scalar accesses go through it.
// CHECK-LABEL: func.func @stage(
// CHECK-SAME:    %{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[X:.*]]: memref<8xf32>)
// CHECK:         %[[BUFFERS:.*]] = memref.alloc() {{.*}} : memref<2x8xf32>
// CHECK:         %[[TILE:.*]] = memref.subview %[[BUFFERS]][%[[I]], 0] [1, 8] [1, 1]
// CHECK-SAME:      to memref<8xf32, strided<[1], offset: ?>>
// CHECK:         memref.load %[[TILE]][%[[I]]]
func.func @stage(%i: index, %x: memref<8xf32>) attributes {gdn_tile.kernel = #kernel} {
  %buffers = memref.alloc() : memref<2x8xf32, #shared>
  %tile = gdn_tile.stage %buffers[%i] : memref<2x8xf32, #shared> to memref<8xf32, #shared>
  %0 = memref.load %tile[%i] : memref<8xf32, #shared>
  memref.store %0, %x[%i] : memref<8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!map = !gdn_tile.tensor_map<memref<?x32xf32>, dims = [0, 1], box = [16, 32]>

// A tensor map is how the GPU moves a tile: nothing is left of it.
// CHECK-LABEL: func.func @mapped(
// CHECK-SAME:    %{{.*}}: index, %{{.*}}: index, %[[X:.*]]: memref<?x32xf32>, %[[ROW:.*]]: index)
// CHECK:         vector.load %[[X]]
// CHECK-LABEL: func.func @host(
// CHECK-NOT:     tensor_map
// CHECK:         func.call @mapped(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (index, index, memref<?x32xf32>, index) -> ()
func.func @mapped(%x: memref<?x32xf32>, %map: !map, %row: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<16x32xf32, #shared>
  gdn_tile.copy_in %x[%row, %c0] dims [0, 1] to %tile map(%map : !map) : memref<?x32xf32> to memref<16x32xf32, #shared>
  gdn_tile.copy_out %tile to %x[%row, %c0] dims [0, 1] map(%map : !map) : memref<16x32xf32, #shared> to memref<?x32xf32>
  return
}
func.func @host(%x: memref<?x32xf32>, %n: index) {
  %map = gdn_tile.make_tensor_map %x : !map
  gdn_tile.launch @mapped grid(%n) (%x, %map, %n : memref<?x32xf32>, !map, index)
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// Blocks may be counted from the last one; where a launch is in order there is nothing to wait for.
// CHECK-LABEL: func.func @from_end(
// CHECK-SAME:    %[[BLOCK:.*]]: index, %[[BLOCKS:.*]]: index, %[[X:.*]]: memref<?xf32>)
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK:         %[[LAST:.*]] = arith.subi %[[BLOCKS]], %[[ONE]]
// CHECK:         %[[ID:.*]] = arith.subi %[[LAST]], %[[BLOCK]]
// CHECK-NOT:     gdn_tile
// CHECK:         memref.store %{{.*}}, %[[X]][%[[ID]]]
func.func @from_end(%x: memref<?xf32>) attributes {gdn_tile.kernel = #kernel} {
  %one = arith.constant 1.0 : f32
  %id = gdn_tile.block_id from_end : index
  gdn_tile.await_launch
  memref.store %one, %x[%id] : memref<?xf32>
  return
}
