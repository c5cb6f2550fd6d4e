// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile="multiprocessors=132" -canonicalize -cse -verify-diagnostics | FileCheck %s

// Blocks of 128 rows make P ahead of the scan, from q, k and rows of the factors; the prepare kernel in front of them
// reads no q. From 9 blocks of 64 rows on these two run, below the usual ones: two kernels get no blocks, and P has a place
// only where one reads it.

// CHECK-LABEL: func @scores_ahead_prepare(
// CHECK-COUNT-2: gdn_tile.mma {{.*}} {transpose_b}
// CHECK-LABEL: func @scores_ahead_prepare_inverse(
// CHECK-SAME: %{{.*}}: index, %[[K:.*]]: memref<?x4x64xbf16>, %[[G:.*]]: memref<?x4xf32>, %{{.*}}: memref<?x4xf32>, %{{.*}}: memref<?x4x2x288x8xbf16>, %{{.*}}: memref<?x4x328xf32>)
// The last chunks first; k of both key heads of the block that comes next is fetched, if there is one.
// CHECK: %[[ID:.*]] = gdn_tile.block_id from_end
// CHECK: %[[EXISTS:.*]] = arith.cmpi sgt, %[[ID]], %c527
// CHECK: scf.if %[[EXISTS]] {
// CHECK: %[[NEXT:.*]] = arith.subi %[[ID]], %c528
// CHECK-NEXT: arith.andi %[[NEXT]], %c2147483647
// CHECK-COUNT-2: gdn_tile.prefetch %arg1
// CHECK-NEXT: }
// Two key heads in a block, each with a value head for a warp.
// CHECK-COUNT-2: gdn_tile.mma {{.*}} {transpose_b}
// CHECK-NOT: gdn_tile.mma
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c2)
// The factors of the gates are made beside T.
// CHECK: gdn_tile.cumsum %{{.*}} of
// CHECK: gdn_tile.copy_out %{{.*}}, %{{.*}} dims [2] : memref<192xf32
// CHECK: gdn_tile.copy_out %{{.*}}[%{{.*}}, %{{.*}}, %c256] dims [2] : memref<64xf32
// CHECK: gdn_tile.block_inverse
// CHECK-LABEL: func @scores_ahead_scan(
// CHECK-SAME: #gdn_tile.kernel<warps = 4,
// CHECK-NOT: gdn_tile.ahead
// CHECK: gdn_tile.await_launch
// CHECK-NEXT: gdn_tile.load {{.*}} : memref<?x4x128x64xf32>, vector<64x64xf32>
// CHECK-NOT: gdn_tile.ahead
// CHECK-LABEL: func @scores_ahead_scan_wide(
// CHECK-SAME: #gdn_tile.kernel<warps = 8,
// Its blocks start while T is made, and read the state.
// CHECK: gdn_tile.load {{.*}} : memref<?x4x128x64xf32>, vector<128x64xf32>
// CHECK-NEXT: gdn_tile.await_launch
// CHECK: scf.for
// q, k, v, T and the factors; no P.
// CHECK-COUNT-4: gdn_tile.copy_in
// CHECK: gdn_tile.copy_in %{{.*}} to %[[F:[^ ]*]] : memref<?x4x328xf32>
// CHECK-NOT: gdn_tile.copy_in
// CHECK: gdn_tile.ahead teams(1) {
// CHECK-NOT: gdn_tile.cumsum
// CHECK: gdn_tile.mma {{.*}} {transpose_b} : vector<64x64xbf16>
// CHECK-NOT: gdn_tile.mma
// CHECK: gdn_tile.each_warp (%[[W:.*]]) in (%c4)
// CHECK: gdn_tile.own_rows %{{.*}}[0] : vector<64x64xf32> to vector<16x16xf32>
// The sums of the gates and beta, of the columns of a block.
// CHECK: gdn_tile.load %[[F]][%c256] dims [0] : memref<328xf32, {{.*}}, vector<1x16xf32>
// CHECK: gdn_tile.load %[[F]][%c192] dims [0] : memref<328xf32, {{.*}}, vector<1x16xf32>
// CHECK: gdn_tile.own_rows %{{.*}}[48] : vector<64x64xf32> to vector<16x16xf32>
// CHECK-NOT: gdn_tile.own_rows
// Two warpgroups: S q^T first, and its factor is made of that of S k^T; v behind both, and o in front of the state.
// CHECK: gdn_tile.mma {{.*}} {transpose_b} : vector<128x64xbf16>
// CHECK-NOT: gdn_tile.load {{.*}} vector<128x64xbf16>
// CHECK: gdn_tile.mma {{.*}} {transpose_b} : vector<128x64xbf16>
// CHECK: gdn_tile.load {{.*}} vector<128x64xbf16>
// CHECK: gdn_tile.refine
// CHECK: %[[O:.*]] = gdn_tile.mma {{.*}} -> vector<128x64xf32>
// CHECK-NEXT: %[[S:.*]] = gdn_tile.mma {{.*}} -> vector<128x64xf32>
// CHECK: arith.truncf %[[O]]
// CHECK: scf.yield %[[S]]
// CHECK-LABEL: func @scores_ahead(
// CHECK: %[[N:.*]] = memref.dim %{{.*}}, %c0 : memref<?x4x128x64xf32>
// CHECK: %[[ROWS:.*]] = arith.muli %[[N]], %c8
// CHECK: arith.divui %[[ROWS]], %c9
// CHECK: %[[WIDE:.*]] = arith.muli %[[N]],
// CHECK: %[[USUAL:.*]] = arith.subi %[[N]], %[[WIDE]]
// CHECK: %[[NEEDED:.*]] = arith.minui %[[USUAL]], %c1
// CHECK: %[[CHUNKS:.*]] = arith.muli %[[N]],
// CHECK: %[[STORED:.*]] = arith.muli %[[CHUNKS]], %[[NEEDED]]
// CHECK: memref.alloc(%[[STORED]]) : memref<?x4x288x8xbf16>
// CHECK: memref.alloc(%[[CHUNKS]]) : memref<?x4x2x288x8xbf16>
// CHECK: %[[BLOCKS:.*]] = arith.muli %[[CHUNKS]], %c4
// CHECK: %[[GRID:.*]] = arith.muli %[[BLOCKS]], %[[NEEDED]]
// CHECK: gdn_tile.launch @scores_ahead_prepare grid(%[[GRID]])
// CHECK: %[[ALONE:.*]] = arith.subi %c1, %[[NEEDED]]
// CHECK: %[[PAIRS:.*]] = arith.muli %[[CHUNKS]], %c2
// CHECK: %[[GRID:.*]] = arith.muli %[[PAIRS]], %[[ALONE]]
// CHECK: gdn_tile.launch @scores_ahead_prepare_inverse grid(%[[GRID]])
// CHECK: gdn_tile.launch @scores_ahead_scan_wide grid{{.*}} {beside}
// CHECK: gdn_tile.launch @scores_ahead_scan grid{{.*}} {beside}
// CHECK-NOT: gdn_tile.launch
func.func @scores_ahead(%q: memref<?x?x4x64xbf16>, %v: memref<?x?x4x128xbf16>, %g: memref<?x?x4xf32>, %b: memref<?x?x4xf32>, %s: memref<?x4x128x64xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x?x4x64xbf16>, memref<?x?x4x64xbf16>, memref<?x?x4x128xbf16>)
      gate(%g : memref<?x?x4xf32>) beta(%b : memref<?x?x4xf32>)
      outs(%v, %s : memref<?x?x4x128xbf16>, memref<?x4x128x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2, wide_from = 9, scores_ahead = true>}
  return
}

// -----

// Where all blocks have 128 rows there are two kernels, and no place for P.

// CHECK-LABEL: func @all_wide(
// CHECK-NOT: memref<?x4x288x8xbf16>
// CHECK: gdn_tile.launch @all_wide_prepare_inverse grid
// CHECK: gdn_tile.launch @all_wide_scan grid
// CHECK-NOT: gdn_tile.launch
func.func @all_wide(%q: memref<1x128x4x64xbf16>, %b: memref<1x128x4xf32>, %s: memref<1x4x64x64xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x128x4x64xbf16>, memref<1x128x4x64xbf16>, memref<1x128x4x64xbf16>) beta(%b : memref<1x128x4xf32>)
      outs(%q, %s : memref<1x128x4x64xbf16>, memref<1x4x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true>}
  return
}

// -----

// A segment behind a boundary may be scanned by blocks of 64 rows whatever the first ones are: then P is needed.

// CHECK-LABEL: func @segments(
// CHECK: %[[NEEDED:.*]] = arith.minui %{{.*}}, %c1
// CHECK: gdn_tile.launch @segments_prepare grid
// CHECK: gdn_tile.launch @segments_prepare_inverse grid
func.func @segments(%q: memref<?x?x4x64xbf16>, %v: memref<?x?x4x128xbf16>, %b: memref<?x?x4xf32>, %s: memref<?x4x128x64xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x?x4x64xbf16>, memref<?x?x4x64xbf16>, memref<?x?x4x128xbf16>) beta(%b : memref<?x?x4xf32>)
      outs(%v, %s : memref<?x?x4x128xbf16>, memref<?x4x128x64xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 2, segments = 5, segment_chunks = 10, wide_from = 9, scores_ahead = true>}
  return
}

// -----

func.func @high(%q: memref<1x128x1x64xbf16>, %b: memref<1x128x1xf32>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs inputs of 16 bits and precision = default}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>) beta(%b : memref<1x128x1xf32>)
      outs(%q, %s : memref<1x128x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, precision = high, scores_ahead = true>}
  return
}

// -----

func.func @no_delta(%q: memref<1x128x1x64xbf16>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs the delta rule, a gate per head or none, and no erase or write}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>)
      outs(%q, %s : memref<1x128x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true>}
  return
}

// -----

func.func @no_wide(%q: memref<1x128x1x64xbf16>, %b: memref<1x128x1xf32>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs chunk = 64, two stages or more and blocks of 128 rows: value_block = 128, or 64 with wide_from}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>) beta(%b : memref<1x128x1xf32>)
      outs(%q, %s : memref<1x128x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2, scores_ahead = true>}
  return
}

// -----

// Blocks of 256 rows would be the wide ones.

func.func @too_wide(%q: memref<?x128x1x64xbf16>, %v: memref<?x128x1x256xbf16>, %b: memref<?x128x1xf32>, %s: memref<?x1x256x64xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs chunk = 64, two stages or more and blocks of 128 rows}}
  gdn.recurrence ins(%q, %q, %v : memref<?x128x1x64xbf16>, memref<?x128x1x64xbf16>, memref<?x128x1x256xbf16>) beta(%b : memref<?x128x1xf32>)
      outs(%v, %s : memref<?x128x1x256xbf16>, memref<?x1x256x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, wide_from = 9, scores_ahead = true>}
  return
}

// -----

func.func @one_chunk(%q: memref<1x64x1x64xbf16>, %b: memref<1x64x1xf32>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs more than one chunk, but T = 64}}
  gdn.recurrence ins(%q, %q, %q : memref<1x64x1x64xbf16>, memref<1x64x1x64xbf16>, memref<1x64x1x64xbf16>) beta(%b : memref<1x64x1xf32>)
      outs(%q, %s : memref<1x64x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true>}
  return
}

// -----

func.func @many_keys(%q: memref<1x128x1x160xbf16>, %b: memref<1x128x1xf32>, %s: memref<1x1x160x160xf32>) {
  // expected-error @+1 {{scores_ahead in a tile program needs at most 128 key channels, but K = 160}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x160xbf16>, memref<1x128x1x160xbf16>, memref<1x128x1x160xbf16>) beta(%b : memref<1x128x1xf32>)
      outs(%q, %s : memref<1x128x1x160xbf16>, memref<1x1x160x160xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true>}
  return
}

// -----

// T of long sequences by blocks that stay: three prepare kernels, of which one runs. With packed sequences the mean length counts.

// CHECK-LABEL: func @resident_prepare_resident(
// CHECK-SAME: #gdn_tile.kernel<warps = 4, layout = accumulator>
// CHECK-DAG: %[[K:.*]] = memref.alloc() : memref<64x128xbf16
// CHECK-DAG: %[[M:.*]] = memref.alloc() : memref<65x72xf32
// CHECK-NOT: memref.alloc() : memref<64x128
// From the last chunk and head to the first, as many blocks on as there are.
// CHECK: %[[LAST:.*]] = arith.subi %[[ITEMS:.*]], %c1
// CHECK: %[[ID:.*]] = gdn_tile.block_id : index
// CHECK: %[[FIRST:.*]] = arith.subi %[[LAST]], %[[ID]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[ITEMS]], %[[ID]]
// CHECK: %[[TURNS:.*]] = arith.ceildivui %[[LEFT]], %[[BLOCKS:.*]] : index
// CHECK: scf.for %[[I:.*]] = %c0 to %[[TURNS]] step %c1 {
// CHECK: %[[ON:.*]] = arith.muli %[[I]], %[[BLOCKS]]
// CHECK: %[[AT:.*]] = arith.subi %[[FIRST]], %[[ON]]
// CHECK: %[[ITEM:.*]] = arith.andi %[[AT]], %c2147483647
// CHECK: %[[SLOT:.*]] = arith.divui %[[ITEM]], %c8
// CHECK: %[[HEAD:.*]] = arith.remui %[[ITEM]], %c8
// CHECK: %[[FOURS:.*]] = arith.divui %[[HEAD]], %c4
// CHECK: %[[FOUR:.*]] = arith.muli %[[FOURS]], %c4
// CHECK: gdn_tile.find_sequence %[[SLOT]]
// A slot without a chunk has no rows.
// CHECK: %[[SOME:.*]] = arith.minsi %{{.*}}, %c64
// CHECK: %[[ROWS:.*]] = arith.maxsi %[[SOME]], %c0
// CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %[[HEAD]], %c0] dims [0, 2] valid(%[[ROWS]], %c128) to %[[K]]
// The gates and betas of four heads, of which one is a column.
// CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %[[FOUR]]] dims [0, 1] valid(%[[ROWS]], %c4) to %[[G:.*]] : memref<?x8xf32>
// CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %[[FOUR]]] dims [0, 1] valid(%[[ROWS]], %c4) to %[[B:.*]] : memref<?x8xf32>
// CHECK: gdn_tile.ahead teams(1) {
// CHECK:   %[[KK:.*]] = gdn_tile.mma %{{.*}}, %[[K]] {transpose_b}
// CHECK:   gdn_tile.store %[[KK]], %[[M]]
// CHECK: }
// CHECK: %[[COLUMN:.*]] = arith.subi %[[HEAD]], %[[FOUR]]
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c1) {
// CHECK: gdn_tile.load %[[B]][%c0, %[[COLUMN]]] dims [0]
// CHECK: gdn_tile.cumsum %{{.*}} of %[[G]] column %[[COLUMN]]
// CHECK: gdn_tile.block_inverse %[[M]]
// CHECK: } {gdn_tile.stages = 4 : i64, gdn_tile.teams = 5 : i64}
// CHECK-LABEL: func @resident_prepare_inverse(
// CHECK-LABEL: func @resident_scan(
// CHECK-LABEL: func @resident(
// CHECK-DAG: %[[T:.*]] = memref.dim %arg0, %c1
// CHECK-DAG: %[[N:.*]] = memref.dim %arg5, %c0
// CHECK: %[[SOME:.*]] = arith.maxui %[[N]], %c1
// CHECK: %[[LEAST:.*]] = arith.muli %[[SOME]], %c128
// CHECK: %[[MEANS:.*]] = arith.divui %[[T]], %[[LEAST]]
// CHECK: %[[ARE_LONG:.*]] = arith.minui %[[MEANS]], %c1
// CHECK: %[[ITEMS:.*]] = arith.muli %{{.*}}, %[[ARE_LONG]]
// CHECK: %[[GRID:.*]] = arith.minui %[[ITEMS]], %c132
// CHECK: gdn_tile.launch @resident_prepare_resident grid(%[[GRID]])
// CHECK: %[[ARE_SHORT:.*]] = arith.subi %c1, %[[ARE_LONG]]
// CHECK: %[[GRID:.*]] = arith.muli %{{.*}}, %[[ARE_SHORT]]
// CHECK: gdn_tile.launch @resident_prepare_inverse grid(%[[GRID]])
// CHECK: gdn_tile.launch @resident_scan grid{{.*}} {beside}
func.func @resident(%q: memref<1x?x8x128xbf16>, %v: memref<1x?x8x128xbf16>, %g: memref<1x?x8xf32>, %b: memref<1x?x8xf32>, %at: memref<?xi32>, %s: memref<?x8x128x128xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x?x8x128xbf16>, memref<1x?x8x128xbf16>, memref<1x?x8x128xbf16>)
      gate(%g : memref<1x?x8xf32>) beta(%b : memref<1x?x8xf32>) offsets(%at : memref<?xi32>)
      outs(%v, %s : memref<1x?x8x128xbf16>, memref<?x8x128x128xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 3, scores_ahead = true, resident_from = 2>}
  return
}

// -----

func.func @no_fours(%q: memref<1x128x6x64xbf16>, %b: memref<1x128x6xf32>, %s: memref<1x6x64x64xf32>) {
  // expected-error @+1 {{resident_from in a tile program needs one value head for each key head, heads in fours, and 64 or 128 key channels, but has 6 key heads, 6 value heads and K = 64}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x6x64xbf16>, memref<1x128x6x64xbf16>, memref<1x128x6x64xbf16>) beta(%b : memref<1x128x6xf32>)
      outs(%q, %s : memref<1x128x6x64xbf16>, memref<1x6x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true, resident_from = 1>}
  return
}
