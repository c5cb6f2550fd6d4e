// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Dynamic time: the length of a segment is computed by the host.

// CHECK-LABEL: func @dense_segments(
// CHECK-SAME: %[[T:.*]]: index, %[[L:.*]]: index, %[[B:.*]]: index
// Two blocks of values, one of transitions.
// CHECK: %[[TOKENS:.*]] = arith.muli %[[L]], %c16
// CHECK: %[[ID:.*]] = gdn_tile.block_id
// CHECK: arith.remui %[[ID]], %c3
// CHECK: %[[J:.*]] = arith.remui %{{.*}}, %[[B]]
// Only the first segment reads the state; the rows of transitions start from I.
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[J]], %c0
// CHECK: %[[LOADED:.*]] = gdn_tile.load %{{.*}} dims [2, 3] valid(%[[OF_STATE:.*]], %c24) : memref<1x4x40x24xf32>, vector<32x32xf32>
// CHECK: %[[IDENTITY:.*]] = arith.cmpi eq
// CHECK: %[[S0:.*]] = arith.select %[[IDENTITY]], %{{.*}}, %[[LOADED]]
// Its copy, which the scan of the first segment reads.
// CHECK: gdn_tile.store %[[S0]], %[[W:.*]][%[[BOUNDARY:.*]], %c1, %{{.*}}] dims [3, 4] valid(%[[OF_STATE]], %c24)
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[S0]])
// No q, no P, no output.
// CHECK-COUNT-5: gdn_tile.copy_in
// CHECK-NOT: gdn_tile.copy_in
// CHECK-COUNT-4: gdn_tile.mma
// CHECK-NOT: gdn_tile.mma
// CHECK-NOT: gdn_tile.copy_out
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK: gdn_tile.store %[[S]], %[[W]][%[[BOUNDARY]], %c0, %{{.*}}] dims [3, 4]
// The transition matrix is stored transposed.
// CHECK: gdn_tile.store %[[S]], %[[W]][%[[BOUNDARY]], %c1, %{{.*}}, %c0, %{{.*}}] dims [4, 3]

// CHECK-LABEL: func @dense_combine(
// CHECK-SAME: gdn_tile.kernel<warps = 2, layout = accumulator>
// CHECK: scf.for %[[J:.*]] = %c1 to %{{.*}} iter_args(%[[STATE:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}) -> (vector<32x16xf32>, vector<32x32xf32>)
// The next transition matrix is on its way while this one is applied.
// CHECK:   %[[NEXT:.*]] = gdn_tile.load {{.*}} vector<32x32xf32>
// CHECK:   gdn_tile.store %[[STATE]], %[[TILE:.*]][%c0, %c0] dims [1, 0]
// CHECK:   %[[N:.*]] = gdn_tile.load {{.*}} vector<32x16xf32>
// CHECK:   %[[NEW:.*]] = gdn_tile.mma %[[M]], %[[TILE]] acc(%[[N]] : vector<32x16xf32>) {transpose_b} : vector<32x32xf32>
// CHECK:   gdn_tile.store %[[NEW]]
// CHECK:   scf.yield %[[NEW]], %[[NEXT]]

// CHECK-LABEL: func @dense_scan(
// CHECK: %[[IS_WHOLE:.*]] = arith.cmpi eq
// CHECK: %[[WHOLE:.*]] = gdn_tile.load {{.*}} : memref<1x4x40x24xf32>, vector<32x32xf32>
// CHECK: %[[PART:.*]] = gdn_tile.load {{.*}} : memref<?x2x4x40x24xf32>, vector<32x32xf32>
// CHECK: arith.select %[[IS_WHOLE]], %[[WHOLE]], %[[PART]] : vector<32x32xf32>
// CHECK: scf.for
// CHECK: gdn_tile.copy_out
// The last segment alone writes the state.
// CHECK: %[[LAST:.*]] = arith.cmpi eq
// CHECK: %[[ROWS:.*]] = arith.select %[[LAST]]
// CHECK: gdn_tile.store %{{.*}} valid(%[[ROWS]], %c24)

// CHECK-LABEL: func @dense(
// CHECK: %[[SLOTS:.*]] = arith.ceildivui %[[T:.*]], %c16
// CHECK: %[[SHARE:.*]] = arith.ceildivui %[[SLOTS]], %c8
// CHECK: %[[L:.*]] = arith.maxui %[[SHARE]], %c2
// CHECK: %[[TOKENS:.*]] = arith.muli %[[L]], %c16
// CHECK: %[[B:.*]] = arith.divui %{{.*}}, %[[TOKENS]]
// CHECK: memref.alloc(%[[B]]) : memref<?x2x4x40x24xf32>
// CHECK: gdn_tile.launch @dense_prepare
// CHECK: %[[GRID:.*]] = arith.muli %[[B]], %c12
// CHECK: gdn_tile.launch @dense_segments grid(%[[GRID]]) (%[[T]], %[[L]], %[[B]],
// Nothing to combine below two boundaries.
// CHECK: %[[ANY:.*]] = arith.minui %{{.*}}, %c1
// CHECK: %[[GRID:.*]] = arith.muli %[[ANY]], %c12
// CHECK: gdn_tile.launch @dense_combine grid(%[[GRID]])
// CHECK: %[[COUNT:.*]] = arith.addi %[[B]], %c1
// CHECK: %[[GRID:.*]] = arith.muli %[[COUNT]], %c8
// CHECK: gdn_tile.launch @dense_scan grid(%[[GRID]])
func.func @dense(
    %q: memref<1x?x2x24xbf16>, %k: memref<1x?x2x24xbf16>, %v: memref<1x?x4x40xbf16>,
    %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
    %o: memref<1x?x4x40xbf16>, %s: memref<1x4x40x24xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x2x24xbf16>, memref<1x?x2x24xbf16>, memref<1x?x4x40xbf16>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>)
      outs(%o, %s : memref<1x?x4x40xbf16>, memref<1x4x40x24xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 32, stages = 2, segments = 8, segment_chunks = 2>}
  return
}

// -----

// A static length that is one segment: split.

// CHECK-NOT: @short_segments
// CHECK-NOT: @short_combine
// CHECK-LABEL: func @short(
// CHECK-NOT: x2x1x16x16xf32
// CHECK: gdn_tile.launch @short_prepare
// CHECK-NEXT: gdn_tile.launch @short_scan grid(%c3)
func.func @short(%q: memref<3x64x1x16xf32>, %o: memref<3x64x1x16xf32>, %s: memref<3x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<3x64x1x16xf32>, memref<3x64x1x16xf32>, memref<3x64x1x16xf32>)
      outs(%o, %s : memref<3x64x1x16xf32>, memref<3x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 3>}
  return
}

// -----

// Two segments have one boundary: nothing to combine.

// CHECK-LABEL: func @two_segments(
// CHECK-NOT: @two_combine
// CHECK-LABEL: func @two(
// CHECK: memref.alloc() : memref<3x2x1x16x16xf32>
// CHECK: gdn_tile.launch @two_segments grid(%c6)
// CHECK-NEXT: gdn_tile.launch @two_scan grid(%c6)
func.func @two(%q: memref<3x65x1x16xf32>, %o: memref<3x65x1x16xf32>, %s: memref<3x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<3x65x1x16xf32>, memref<3x65x1x16xf32>, memref<3x65x1x16xf32>)
      outs(%o, %s : memref<3x65x1x16xf32>, memref<3x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 4>}
  return
}

// -----

// Packed sequences: a segment finds its sequence in the offsets. K of 256 in two parts, no transition ahead.

// CHECK-LABEL: func @packed_segments(
// CHECK: scf.while
// CHECK: gdn_tile.load %{{.*}} dims [3, 2] {{.*}} : memref<?x1x256x16xbf16>
// CHECK-LABEL: func @packed_combine(
// CHECK-SAME: gdn_tile.kernel<warps = 8, layout = accumulator>
// CHECK: scf.for {{.*}} -> (vector<128x16xf32>, vector<128x16xf32>)
// CHECK:   gdn_tile.store %{{.*}}[%c0, %c0] dims [1, 0] {{.*}} memref<16x256xf32
// CHECK:   gdn_tile.store %{{.*}}[%c0, %c128] dims [1, 0] {{.*}} memref<16x256xf32
// CHECK-COUNT-2: gdn_tile.mma %{{.*}} : vector<128x256xf32>
// CHECK-LABEL: func @packed_scan(
// CHECK: scf.while
// CHECK-LABEL: func @packed(
// CHECK: %[[TOKENS:.*]] = arith.muli %{{.*}}, %c32
// CHECK: %[[B:.*]] = arith.divui %{{.*}}, %[[TOKENS]]
// CHECK: memref.alloc(%[[B]]) : memref<?x2x1x256x256xf32>
// CHECK: gdn_tile.launch @packed_scan
func.func @packed(%q: memref<1x?x1x256xbf16>, %v: memref<1x?x1x16xbf16>, %cu: memref<?xi32>,
    %o: memref<1x?x1x16xbf16>, %s: memref<?x1x256x16xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x?x1x256xbf16>, memref<1x?x1x256xbf16>, memref<1x?x1x16xbf16>)
      offsets(%cu : memref<?xi32>)
      outs(%o, %s : memref<1x?x1x16xbf16>, memref<?x1x256x16xbf16>)
      {state_layout = #gdn.state_layout<k_first>,
       schedule = #gdn.schedule<phases = segmented, chunk = 32, value_block = 16, segments = 4>}
  return
}
