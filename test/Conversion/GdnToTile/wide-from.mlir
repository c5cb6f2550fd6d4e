// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Two scan kernels, of which one gets no blocks: 4 heads of 2 blocks of 16 rows
// for each of N sequences, from 9 blocks on half as many of 32 rows.

// CHECK-LABEL: func @wide_from_scan
// CHECK-SAME: #gdn_tile.kernel<warps = 1,
// CHECK: vector<16x16xf32>
// CHECK-LABEL: func @wide_from_scan_wide
// CHECK-SAME: #gdn_tile.kernel<warps = 2,
// CHECK: vector<32x16xf32>
// CHECK-LABEL: func @wide_from(
// CHECK: %[[N:.*]] = memref.dim %arg1, %c0
// CHECK: %[[BLOCKS:.*]] = arith.muli %[[N]], %c8
// CHECK: %[[TIMES:.*]] = arith.divui %[[BLOCKS]], %c9
// CHECK: %[[IS_WIDE:.*]] = arith.minui %[[TIMES]], %c1
// CHECK: %[[WIDE:.*]] = arith.muli %[[N]], %[[IS_WIDE]]
// CHECK: %[[NARROW:.*]] = arith.subi %[[N]], %[[WIDE]]
// CHECK: %[[GRID:.*]] = arith.muli %[[WIDE]], %c4
// CHECK: gdn_tile.launch @wide_from_scan_wide grid(%[[GRID]])
// CHECK: %[[GRID:.*]] = arith.muli %[[NARROW]], %c8
// CHECK: gdn_tile.launch @wide_from_scan grid(%[[GRID]])
func.func @wide_from(%q: memref<?x32x4x16xbf16>, %s: memref<?x4x24x16xf32>, %v: memref<?x32x4x24xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x32x4x16xbf16>, memref<?x32x4x16xbf16>, memref<?x32x4x24xbf16>)
      outs(%v, %s : memref<?x32x4x24xbf16>, memref<?x4x24x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, wide_from = 9>}
  return
}

// -----

// With a known number of sequences there is one.

// CHECK-LABEL: func @wide_known_scan(
// CHECK-SAME: #gdn_tile.kernel<warps = 2,
// CHECK-LABEL: func @wide_known(
// CHECK: gdn_tile.launch @wide_known_scan grid(%c8)
// CHECK-NOT: gdn_tile.launch
func.func @wide_known(%q: memref<2x32x4x16xbf16>, %s: memref<2x4x24x16xf32>, %v: memref<2x32x4x24xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x32x4x16xbf16>, memref<2x32x4x16xbf16>, memref<2x32x4x24xbf16>)
      outs(%v, %s : memref<2x32x4x24xbf16>, memref<2x4x24x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, wide_from = 9>}
  return
}

// -----

// Steps: from 9 states on, of 4 heads, one warp has the rows of a block, the caches are
// used. Each of both has 3 blocks of 8 rows.

// CHECK-LABEL: func @steps_step
// CHECK-SAME: #gdn_tile.kernel<warps = 4,
// CHECK: gdn_tile.overlap_launches
// CHECK: gdn_tile.load {{.*}} {streaming} : memref<?x4x24x64xf32>, vector<8x64xf32>
// CHECK-LABEL: func @steps_step_wide
// CHECK-SAME: #gdn_tile.kernel<warps = 1,
// CHECK: gdn_tile.overlap_launches
// CHECK: gdn_tile.load {{[^{]*}} : memref<?x4x24x64xf32>, vector<8x64xf32>
// CHECK-LABEL: func @steps(
// CHECK: %[[STATES:.*]] = arith.muli %[[N:.*]], %c4
// CHECK: %[[TIMES:.*]] = arith.divui %[[STATES]], %c9
// CHECK: %[[IS_WIDE:.*]] = arith.minui %[[TIMES]], %c1
// CHECK: %[[WIDE:.*]] = arith.muli %[[N]], %[[IS_WIDE]]
// CHECK: %[[NARROW:.*]] = arith.subi %[[N]], %[[WIDE]]
// CHECK: %[[GRID:.*]] = arith.muli %[[NARROW]], %c12
// CHECK: gdn_tile.launch @steps_step grid(%[[GRID]])
// CHECK: %[[GRID:.*]] = arith.muli %[[WIDE]], %c12
// CHECK: gdn_tile.launch @steps_step_wide grid(%[[GRID]])
func.func @steps(%q: memref<?x1x4x64xbf16>, %s: memref<?x4x24x64xf32>, %v: memref<?x1x4x24xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x1x4x64xbf16>, memref<?x1x4x64xbf16>, memref<?x1x4x24xbf16>)
      outs(%v, %s : memref<?x1x4x24xbf16>, memref<?x4x24x64xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8, warps = 4, streaming = true, overlap = true, wide_from = 9>}
  return
}

// -----

// Blocks of one warp with states of 16 bits do not overlap.

// CHECK-LABEL: func @half_steps_step(
// CHECK: gdn_tile.overlap_launches
// CHECK-LABEL: func @half_steps_step_wide(
// CHECK-NOT: gdn_tile.overlap_launches
// CHECK-LABEL: func @half_steps(
func.func @half_steps(%q: memref<?x1x4x64xbf16>, %s: memref<?x4x24x64xbf16>, %v: memref<?x1x4x24xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x1x4x64xbf16>, memref<?x1x4x64xbf16>, memref<?x1x4x24xbf16>)
      outs(%v, %s : memref<?x1x4x24xbf16>, memref<?x4x24x64xbf16>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 4, streaming = true, overlap = true, wide_from = 9>}
  return
}

// -----

// Eight tokens at a time: blocks of twice the rows, here one instead of two.

// CHECK-LABEL: func @eights_step(
// CHECK: vector<16x32xf32>
// CHECK-LABEL: func @eights_step_wide(
// CHECK: vector<32x32xf32>
// CHECK-LABEL: func @eights(
// CHECK: %[[GRID:.*]] = arith.muli %{{.*}}, %c8
// CHECK: gdn_tile.launch @eights_step grid(%[[GRID]])
// CHECK: %[[GRID:.*]] = arith.muli %{{.*}}, %c4
// CHECK: gdn_tile.launch @eights_step_wide grid(%[[GRID]])
func.func @eights(%q: memref<?x3x4x32xbf16>, %s: memref<?x4x32x32xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<?x3x4x32xbf16>, memref<?x3x4x32xbf16>, memref<?x3x4x32xbf16>)
      outs(%q, %s : memref<?x3x4x32xbf16>, memref<?x4x32x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16, wide_from = 9>}
  return
}

// -----

// CHECK-LABEL: func @steps_known_step(
// CHECK-SAME: #gdn_tile.kernel<warps = 1,
// CHECK-LABEL: func @steps_known(
// CHECK: gdn_tile.launch @steps_known_step grid(%c36)
// CHECK-NOT: gdn_tile.launch
func.func @steps_known(%q: memref<3x1x4x64xbf16>, %s: memref<3x4x24x64xf32>, %v: memref<3x1x4x24xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<3x1x4x64xbf16>, memref<3x1x4x64xbf16>, memref<3x1x4x24xbf16>)
      outs(%v, %s : memref<3x1x4x24xbf16>, memref<3x4x24x64xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8, warps = 4, streaming = true, wide_from = 9>}
  return
}
