// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile="low-scores=64 roles=true" -canonicalize -cse | FileCheck %s

// With roles the scan of later segments, a kernel of its own, walks from the first boundary to that in front of its segment: no
// kernel between it and that which makes what it walks by.

// The scan of first segments and of whole sequences finds the state where it is, and leaves it at the first boundary.
// CHECK-LABEL: func @dense_scan(
// CHECK-NOT: gdn_tile.prefetch
// CHECK-NOT: vector<64x128xf32>, memref<128x128xbf16
// CHECK: scf.for
// CHECK: } {gdn_tile.stages = 3 : i64}
// CHECK: %[[ANY:.*]] = arith.minsi %{{.*}}, %c1
// CHECK: %[[IS_CUT:.*]] = arith.cmpi sgt, %[[ANY]], %c0
// CHECK: scf.if %[[IS_CUT]]
// CHECK: gdn_tile.store {{.*}} memref<?x1x4x128x128xf32>

// Blocks of 128 rows have no shared memory to walk: they are for sequences that stay whole, so they neither look for segments nor
// keep a state at a boundary. They ask for the state before anything else.
// CHECK-LABEL: func @dense_scan_wide(
// CHECK-SAME: gdn_tile.kernel<warps = 8
// CHECK-NOT: scf.while
// CHECK: gdn_tile.prefetch %[[STATE:.*]][%[[N:.*]], %[[H:.*]], %c0, %c0] dims [2, 3] shape [128, 128] valid(%c128, %c128) : memref<?x4x128x128xf32>
// CHECK: gdn_tile.load %[[STATE]][%[[N]], %[[H]], %c0, %c0] {{.*}} : memref<?x4x128x128xf32>, vector<128x128xf32>
// CHECK-NEXT: gdn_tile.await_launch
// CHECK: } {gdn_tile.stages = 3 : i64}
// CHECK-NEXT: gdn_tile.store %{{.*}}, %[[STATE]]
// CHECK-NEXT: return

// Transition matrices leave by whole rows.
// CHECK-LABEL: func @dense_segments(
// CHECK-SAME: gdn_tile.kernel<warps = 8
// CHECK: %[[S:.*]] = scf.for
// CHECK: } {gdn_tile.stages = 3 : i64}
// CHECK: gdn_tile.store %[[S]], %{{.*}} memref<?x4x128x128xf32>
// CHECK: %[[HIGH:.*]] = arith.truncf %[[S]]
// CHECK: gdn_tile.store %[[HIGH]], %[[HT:.*]][%c0, %c0]
// CHECK: gdn_tile.copy_out %[[HT]] to %{{.*}} memref<?x2x4x128x128xbf16>
// CHECK: gdn_tile.store %{{.*}}, %[[LT:.*]][%c0, %c0]
// CHECK: gdn_tile.copy_out %[[LT]] to %{{.*}} memref<?x2x4x128x128xbf16>

// CHECK-NOT: func @dense_combine

// CHECK-LABEL: func @dense_scan_later(
// CHECK-SAME: gdn_tile.kernel<warps = 4
// CHECK: %[[J:.*]] = arith.addi %[[OTHERS:.*]], %c1
// CHECK: arith.minsi %[[J]], %c1
// CHECK: %[[LENGTH:.*]] = arith.minsi
// CHECK: %[[IS_LAST:.*]] = arith.cmpi eq, %[[J]], %{{.*}} : index
// As many steps as there are boundaries in front, but for the first; none for places without a segment.
// CHECK: gdn_tile.await_launch
// CHECK: %[[EXISTS:.*]] = arith.cmpi sgt, %[[LENGTH]], %c0
// CHECK: %[[STEPS:.*]] = arith.select %[[EXISTS]], %[[OTHERS]], %c0
// CHECK: %[[FIRST:.*]] = arith.subi %{{.*}}, %[[STEPS]]
// CHECK: %[[S0:.*]] = gdn_tile.load %{{.*}}[%[[FIRST]], %c0, %{{.*}}] {{.*}} : memref<?x1x4x128x128xf32>, vector<64x128xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: %[[START:.*]] = scf.for %[[I:.*]] = %c0 to %[[STEPS]] step %c1 iter_args(%[[S:.*]] = %[[S0]])
// CHECK:   %[[AT:.*]] = arith.addi %[[NEXT]], %[[I]]
// CHECK:   gdn_tile.copy_in %[[M:.*]][%[[AT]], %c0, %{{.*}}] dims [3, 4] {{.*}} to %[[MH:.*]] : memref<?x2x4x128x128xbf16> to
// CHECK:   gdn_tile.copy_in %[[M]][%[[AT]], %c1, %{{.*}}] dims [3, 4] {{.*}} to %[[ML:.*]] : memref<?x2x4x128x128xbf16> to
// CHECK:   gdn_tile.copy_in %{{.*}}[%[[AT]], %{{.*}}] dims [2, 3] {{.*}} to %[[N:.*]] : memref<?x4x128x128xf32> to memref<64x128xf32
// CHECK:   %[[HIGH:.*]] = arith.truncf %[[S]]
// CHECK:   %[[LOW:.*]] = arith.truncf
// CHECK:   %[[P0:.*]] = gdn_tile.mma %[[LOW]], %[[MH]]
// CHECK:   %[[P1:.*]] = gdn_tile.mma %[[HIGH]], %[[ML]] acc(%[[P0]]
// CHECK:   %[[P2:.*]] = gdn_tile.mma %[[HIGH]], %[[MH]] acc(%[[P1]]
// CHECK-NOT: gdn_tile.store
// CHECK:   %[[LOCAL:.*]] = gdn_tile.load %[[N]]
// CHECK:   arith.addf %[[P2]], %[[LOCAL]]
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK: } {gdn_tile.stages = 3 : i64}
// The state behind the last segment is that of the sequence, and no other block writes there.
// CHECK: %[[ROWS:.*]] = arith.select %[[IS_LAST]], %{{.*}}, %c0
// CHECK: gdn_tile.store %{{.*}} valid(%[[ROWS]], %c128) : vector<64x128xf32>, memref<?x4x128x128xf32>

// CHECK-LABEL: func @dense(
// CHECK: gdn_tile.launch @dense_prepare
// CHECK: gdn_tile.launch @dense_scan_wide
// CHECK: gdn_tile.launch @dense_scan grid
// CHECK: gdn_tile.launch @dense_segments
// CHECK-NOT: gdn_tile.launch
// CHECK: gdn_tile.launch @dense_scan_later grid{{.*}} {beside}
// CHECK-NOT: gdn_tile.launch
func.func @dense(
    %q: memref<?x?x2x128xbf16>, %k: memref<?x?x2x128xbf16>, %v: memref<?x?x4x128xbf16>,
    %g: memref<?x?x4xf32>, %b: memref<?x?x4xf32>,
    %o: memref<?x?x4x128xbf16>, %s: memref<?x4x128x128xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<?x?x2x128xbf16>, memref<?x?x2x128xbf16>, memref<?x?x4x128xbf16>)
      gate(%g : memref<?x?x4xf32>) beta(%b : memref<?x?x4xf32>)
      outs(%o, %s : memref<?x?x4x128xbf16>, memref<?x4x128x128xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 17, segment_chunks = 6, wide_from = 133>}
  return
}

// -----

// However few blocks are enough for those of 128 rows, they cannot walk: sequences that have them stay whole.
// CHECK-LABEL: func @wide_first(
// CHECK: gdn_tile.launch @wide_first_prepare
// CHECK-NEXT: gdn_tile.launch @wide_first_scan grid(%c4)
// CHECK-NOT: gdn_tile.launch
func.func @wide_first(
    %q: memref<1x16384x2x128xbf16>, %k: memref<1x16384x2x128xbf16>, %v: memref<1x16384x4x128xbf16>,
    %g: memref<1x16384x4xf32>, %b: memref<1x16384x4xf32>, %o: memref<1x16384x4x128xbf16>, %s: memref<1x4x128x128xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x16384x2x128xbf16>, memref<1x16384x2x128xbf16>, memref<1x16384x4x128xbf16>)
      gate(%g : memref<1x16384x4xf32>) beta(%b : memref<1x16384x4xf32>)
      outs(%o, %s : memref<1x16384x4x128xbf16>, memref<1x4x128x128xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 17, segment_chunks = 6, wide_from = 8>}
  return
}

// -----

// Blocks of 128 rows: a kernel of its own walks.
// CHECK-LABEL: func @rows_combine(
// CHECK-LABEL: func @rows(
// CHECK: gdn_tile.launch @rows_combine
func.func @rows(
    %q: memref<1x?x2x128xbf16>, %k: memref<1x?x2x128xbf16>, %v: memref<1x?x4x128xbf16>,
    %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
    %o: memref<1x?x4x128xbf16>, %s: memref<1x4x128x128xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x2x128xbf16>, memref<1x?x2x128xbf16>, memref<1x?x4x128xbf16>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>)
      outs(%o, %s : memref<1x?x4x128xbf16>, memref<1x4x128x128xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 128, stages = 2, segments = 9, segment_chunks = 6>}
  return
}

// -----

// In high precision with key channels that no warpgroup product has: there are no roles, and the tiles of the walk would not
// fit beside those of the scan.
// CHECK-LABEL: func @odd_keys(
// CHECK: gdn_tile.launch @odd_keys_combine
func.func @odd_keys(
    %q: memref<1x?x2x112xbf16>, %k: memref<1x?x2x112xbf16>, %v: memref<1x?x4x128xbf16>,
    %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
    %o: memref<1x?x4x128xbf16>, %s: memref<1x4x128x112xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x2x112xbf16>, memref<1x?x2x112xbf16>, memref<1x?x4x128xbf16>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>)
      outs(%o, %s : memref<1x?x4x128xbf16>, memref<1x4x128x112xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 2, segments = 9, segment_chunks = 6, precision = high>}
  return
}
