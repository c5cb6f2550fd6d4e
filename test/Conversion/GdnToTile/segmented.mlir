// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Dynamic time: the length of a segment is computed by the host.

// One kernel scans the first segments and, launched again, all others.
// CHECK-LABEL: func @dense_scan(
// CHECK-SAME: %[[T:[^:]*]]: index, %[[L:[^:]*]]: index, %[[B:[^:]*]]: index
// CHECK-SAME: %[[IS_LATER:[^:]*]]: index)
// CHECK: %[[E:.*]] = arith.ceildivui %[[L]], %c6
// CHECK: %[[X:.*]] = arith.muli %[[L]], %c16
// CHECK: %[[EXTRA:.*]] = arith.muli %[[E]], %c16
// CHECK: %[[BOUNDARIES:.*]] = arith.muli %[[IS_LATER]], %[[B]]
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[BOUNDARIES]], %c1
// Numbers of segments fit 32 bits.
// CHECK: %[[COUNT32:.*]] = arith.index_castui %[[COUNT]] : index to i32
// CHECK: %[[N32:.*]] = arith.divui %{{.*}}, %[[COUNT32]] : i32
// CHECK: %[[N:.*]] = arith.index_castui %[[N32]] : i32 to index
// CHECK: %[[INFRONT:.*]] = arith.muli %[[N]], %[[COUNT]]
// CHECK: %[[J0:.*]] = arith.subi %{{.*}}, %[[INFRONT]]
// CHECK: %[[J:.*]] = arith.addi %[[J0]], %[[IS_LATER]]
// Only the first segment has the extra tokens, and all others start behind them.
// CHECK: %[[IS_BEHIND:.*]] = arith.minsi %[[J]], %c1
// CHECK: %[[BEFORE:.*]] = arith.muli %[[IS_BEHIND]], %[[EXTRA]]
// CHECK: %[[EQUAL:.*]] = arith.muli %[[J]], %[[X]]
// CHECK: %[[START:.*]] = arith.addi %[[EQUAL]], %[[BEFORE]]
// CHECK: arith.subi %[[T]], %[[START]]
// CHECK: %[[LONGEST:.*]] = arith.addi %[[X]], %[[EXTRA]]
// CHECK: arith.subi %[[LONGEST]], %[[BEFORE]]
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[J]], %[[B]]
// What the kernel in front of it writes is awaited before any state is loaded.
// CHECK: gdn_tile.await_launch
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[IS_LATER]], %c0
// CHECK: scf.if %[[IS_FIRST]] -> (vector<32x32xf32>) {
// CHECK:   gdn_tile.load {{.*}} : memref<1x4x40x24xf32>, vector<32x32xf32>
// CHECK: } else {
// CHECK:   gdn_tile.load {{.*}} : memref<?x1x4x40x24xf32>, vector<32x32xf32>
// CHECK: %[[FINAL:.*]] = scf.for
// CHECK: gdn_tile.copy_out
// The first segment of several writes the state at its boundary, the last segment the state.
// CHECK: %[[SEVERAL:.*]] = arith.minsi %[[B]], %c1
// CHECK: %[[IS_CUT:.*]] = arith.cmpi slt, %[[IS_LATER]], %[[SEVERAL]]
// CHECK: scf.if %[[IS_CUT]] {
// CHECK:   gdn_tile.store %[[FINAL]], {{.*}} memref<?x1x4x40x24xf32>
// CHECK: }
// CHECK: %[[ROWS:.*]] = arith.select %[[LAST]]
// CHECK: gdn_tile.store %[[FINAL]], {{.*}} valid(%[[ROWS]], %c24) {{.*}} memref<1x4x40x24xf32>

// CHECK-LABEL: func @dense_segments(
// CHECK-SAME: %[[T:.*]]: index, %[[L:.*]]: index, %[[B:.*]]: index
// Two blocks of values, one of transitions.
// CHECK: %[[TOKENS:.*]] = arith.muli %[[L]], %c16
// CHECK: %[[ID:.*]] = gdn_tile.block_id
// CHECK: arith.remui %[[ID]], %c3
// Segments between two boundaries: neither the first nor the last.
// CHECK: %[[LESS:.*]] = arith.subi %[[B]], %c1
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[LESS]], %c1
// CHECK: %[[COUNT32:.*]] = arith.index_castui %[[COUNT]] : index to i32
// CHECK: %[[N32:.*]] = arith.divui %{{.*}}, %[[COUNT32]] : i32
// CHECK: %[[N:.*]] = arith.index_castui %[[N32]] : i32 to index
// CHECK: %[[INFRONT:.*]] = arith.muli %[[N]], %[[COUNT]]
// CHECK: %[[J0:.*]] = arith.subi %{{.*}}, %[[INFRONT]]
// CHECK: %[[J:.*]] = arith.addi %[[J0]], %c1
// The rows of transitions start from I, others from 0.
// CHECK: %[[IDENTITY:.*]] = arith.cmpi eq, %{{.*}} : vector<32x32xi32>
// CHECK: %[[S0:.*]] = arith.select %[[IDENTITY]]
// CHECK-NOT: gdn_tile.load
// CHECK: %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[S0]])
// A block of transitions copies values of other rows, and takes zeros for them.
// CHECK-DAG: %[[FROM:.*]] = arith.select %{{.*}}, %c0, %{{.*}} : index
// CHECK-DAG: %[[LEFT:.*]] = arith.select %{{.*}}, %c40, %{{.*}} : index
// CHECK: gdn_tile.copy_in
// CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %{{.*}}, %[[FROM]]] dims [0, 2] valid(%{{.*}}, %[[LEFT]]) {{.*}} memref<?x4x40xbf16>
// No q, no P, no output.
// CHECK-COUNT-2: gdn_tile.copy_in
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.mma
// Second parts, in chunks that need them.
// CHECK: scf.if
// CHECK-NEXT: gdn_tile.copy_in
// CHECK-NEXT: gdn_tile.refine
// CHECK-NOT: output(
// CHECK-NOT: gdn_tile.copy_in
// CHECK: gdn_tile.mma
// CHECK-NOT: gdn_tile.mma
// CHECK-NOT: gdn_tile.copy_out
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK: %[[BOUNDARY:.*]] = arith.addi %{{.*}}, %[[J]]
// CHECK: gdn_tile.store %[[S]], %{{.*}}[%[[BOUNDARY]], %{{.*}}] dims [2, 3] {{.*}} memref<?x4x40x24xf32>
// The transition matrix in two parts.
// CHECK: %[[HIGH:.*]] = arith.truncf %[[S]]
// CHECK: gdn_tile.store %[[HIGH]], %[[M:.*]][%[[BOUNDARY]], %c0, %{{.*}}] dims [3, 4] {{.*}} memref<?x2x4x24x24xbf16>
// CHECK: %[[ROUNDED:.*]] = arith.extf %[[HIGH]]
// CHECK: %[[REST:.*]] = arith.subf %[[S]], %[[ROUNDED]] : vector<32x32xf32>
// CHECK: %[[LOW:.*]] = arith.truncf %[[REST]]
// CHECK: gdn_tile.store %[[LOW]], %[[M]][%[[BOUNDARY]], %c1, %{{.*}}] dims [3, 4]

// CHECK-LABEL: func @dense_combine(
// CHECK-SAME: gdn_tile.kernel<warps = 4, layout = accumulator>
// From the first boundary to the last: one step fewer than there are. A sequence of one or none has nothing to combine.
// CHECK: %[[SEVERAL:.*]] = arith.cmpi sgt, %{{.*}}, %c1
// CHECK: %[[PLACES:.*]] = arith.maxsi %{{.*}}, %c1
// CHECK: %[[STEPS:.*]] = arith.subi %[[PLACES]], %c1
// CHECK: gdn_tile.await_launch
// CHECK: %[[ROWS:.*]] = arith.select %[[SEVERAL]], %c40, %c0
// CHECK: gdn_tile.load %[[STATES:[a-z0-9]*]][%[[FIRST:[^,]*]], %c0, %{{.*}}] {{.*}} valid(%[[ROWS]], %c24)
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: scf.for %[[J:.*]] = %c0 to %[[STEPS]] {{.*}} iter_args(%[[STATE:.*]] = %{{.*}}) -> (vector<64x32xf32>)
// CHECK:   %[[AT:.*]] = arith.addi %[[SECOND]], %[[J]]
// CHECK:   gdn_tile.copy_in %{{.*}}[%[[AT]], {{.*}} to %[[MH:.*]] : {{.*}} to memref<32x32xbf16
// CHECK:   gdn_tile.copy_in {{.*}} to %[[ML:.*]] : {{.*}} to memref<32x32xbf16
// CHECK:   gdn_tile.copy_in {{.*}} to %[[NT:.*]] : {{.*}} to memref<64x32xf32
// The state itself is done with in front of the first product.
// CHECK:   %[[SH:.*]] = arith.truncf %[[STATE]]
// CHECK:   %[[SE:.*]] = arith.extf %[[SH]]
// CHECK:   %[[SR:.*]] = arith.subf %[[STATE]], %[[SE]] : vector<64x32xf32>
// CHECK:   %[[SL:.*]] = arith.truncf %[[SR]]
// CHECK:   %[[P1:.*]] = gdn_tile.mma %[[SL]], %[[MH]] : vector<64x32xbf16>
// CHECK:   %[[P2:.*]] = gdn_tile.mma %[[SH]], %[[ML]] acc(%[[P1]] : vector<64x32xf32>)
// CHECK:   %[[P3:.*]] = gdn_tile.mma %[[SH]], %[[MH]] acc(%[[P2]] : vector<64x32xf32>)
// Beside the products, at the boundary in front, where it is that.
// CHECK:   %[[BEFORE:.*]] = arith.subi %[[AT]], %c1
// CHECK:   gdn_tile.store %[[STATE]], %[[STATES]][%[[BEFORE]], %c0, %{{.*}}]
// CHECK:   %[[N:.*]] = gdn_tile.load %[[NT]]
// CHECK:   %[[NEW:.*]] = arith.addf %[[P3]], %[[N]]
// CHECK:   scf.yield %[[NEW]]
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK: %[[LAST:.*]] = arith.addi %[[FIRST]], %[[STEPS]]
// CHECK: gdn_tile.store %{{.*}}, %[[STATES]][%[[LAST]], %c0, %{{.*}}] {{.*}} valid(%[[ROWS]], %c24)

// CHECK-LABEL: func @dense(
// CHECK: %[[SLOTS:.*]] = arith.ceildivui %[[T:.*]], %c16
// CHECK: %[[C:.*]] = arith.maxui %[[SLOTS]], %c1
// The first of eight segments counts as seven sixths.
// CHECK: %[[SIXTHS:.*]] = arith.muli %{{.*}}, %c6
// CHECK: %[[SHARE:.*]] = arith.ceildivui %[[SIXTHS]], %c49
// CHECK: %[[LEAST:.*]] = arith.maxui %[[SHARE]], %c2
// CHECK: %[[TWO:.*]] = arith.muli %[[LEAST]], %c2
// CHECK: %[[MORE_FIRST:.*]] = arith.ceildivui %[[LEAST]], %c6
// CHECK: %[[THREE:.*]] = arith.addi %[[TWO]], %[[MORE_FIRST]]
// CHECK: %[[BEFORE:.*]] = arith.subi %[[C]], %c1
// CHECK: %[[FEW:.*]] = arith.maxui %[[THREE]], %c8
// CHECK: %[[MORE:.*]] = arith.divui %[[BEFORE]], %[[FEW]]
// CHECK: %[[LONG:.*]] = arith.minui %[[MORE]], %c1
// Chunks times segments but two: more than 11.
// CHECK: %[[WORTH:.*]] = arith.muli %[[C]], %c6
// CHECK: %[[TWELVES:.*]] = arith.divui %[[WORTH]], %c12
// CHECK: %[[GAINS:.*]] = arith.minui %[[TWELVES]], %c1
// CHECK: %[[BOTH:.*]] = arith.minui %[[LONG]], %[[GAINS]]
// CHECK: %[[CUT:.*]] = arith.minui %[[BOTH]], %c1
// CHECK: %[[NOT:.*]] = arith.subi %c1, %[[CUT]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[C]], %c1
// CHECK: %[[WHOLE:.*]] = arith.muli %[[NOT]], %[[BEHIND]]
// CHECK: %[[L:.*]] = arith.maxui %[[LEAST]], %[[WHOLE]]
// CHECK: %[[E:.*]] = arith.ceildivui %[[L]], %c6
// CHECK: %[[EXTRA:.*]] = arith.muli %[[E]], %c16
// CHECK: %[[FIRST:.*]] = arith.addi %[[EXTRA]], %c1
// CHECK: %[[LENGTH:.*]] = arith.maxui %[[T]], %[[FIRST]]
// CHECK: %[[REST:.*]] = arith.subi %[[LENGTH]], %[[FIRST]]
// CHECK: %[[TOKENS:.*]] = arith.muli %[[L]], %c16
// CHECK: %[[B:.*]] = arith.divui %[[REST]], %[[TOKENS]]
// CHECK: memref.alloc(%[[B]]) : memref<?x1x4x40x24xf32>
// CHECK: memref.alloc(%[[B]]) : memref<?x4x40x24xf32>
// CHECK: memref.alloc(%[[B]]) : memref<?x2x4x24x24xbf16>
// CHECK: gdn_tile.launch @dense_prepare
// CHECK: gdn_tile.launch @dense_scan grid(%c8) (%[[T]], %[[L]], %[[B]], {{.*}}, %c0 : {{.*}} {beside}
// CHECK: %[[MOST:.*]] = arith.maxui %[[B]], %c1
// CHECK: %[[INNER:.*]] = arith.subi %[[MOST]], %c1
// CHECK: %[[GRID:.*]] = arith.muli %[[INNER]], %c12
// CHECK: gdn_tile.launch @dense_segments grid(%[[GRID]]) (%[[T]], %[[L]], %[[B]], {{.*}} {beside}
// Nothing to combine below two boundaries.
// CHECK: %[[ANY:.*]] = arith.minui %{{.*}}, %c1
// CHECK: %[[GRID:.*]] = arith.muli %[[ANY]], %c4
// CHECK: gdn_tile.launch @dense_combine grid(%[[GRID]]) {{.*}} {beside}
// CHECK: %[[GRID:.*]] = arith.muli %[[B]], %c8
// CHECK: gdn_tile.launch @dense_scan grid(%[[GRID]]) (%[[T]], %[[L]], %[[B]], {{.*}}, %c1 : {{.*}} {beside}
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

// Two segments cost more than they save: split.

// CHECK-NOT: @two_segments
// CHECK-NOT: @two_combine
// CHECK-LABEL: func @two(
// CHECK: gdn_tile.launch @two_scan grid(%c3)
func.func @two(%q: memref<3x65x1x16xf32>, %o: memref<3x65x1x16xf32>, %s: memref<3x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<3x65x1x16xf32>, memref<3x65x1x16xf32>, memref<3x65x1x16xf32>)
      outs(%o, %s : memref<3x65x1x16xf32>, memref<3x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 6>}
  return
}

// -----

// Of three segments the first has a third more chunks: 27, 20 and 17.

// CHECK-LABEL: func @three_scan(
// CHECK-DAG: %[[LONGEST:.*]] = arith.constant 432 : index
// CHECK-DAG: %[[X:.*]] = arith.constant 320 : index
// CHECK-DAG: %[[EXTRA:.*]] = arith.constant 112 : index
// CHECK: %[[BEFORE:.*]] = arith.muli %{{.*}}, %[[EXTRA]]
// CHECK: %[[EQUAL:.*]] = arith.muli %{{.*}}, %[[X]]
// CHECK: arith.addi %[[EQUAL]], %[[BEFORE]]
// CHECK: arith.subi %[[LONGEST]], %[[BEFORE]]
// CHECK-LABEL: func @three(
// CHECK: memref.alloc() : memref<2x2x1x16x16xf32>
// CHECK: gdn_tile.launch @three_scan grid(%c1)
// CHECK-NEXT: gdn_tile.launch @three_segments grid(%c2)
func.func @three(%q: memref<1x1024x1x16xf32>, %o: memref<1x1024x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x1024x1x16xf32>, memref<1x1024x1x16xf32>, memref<1x1024x1x16xf32>)
      outs(%o, %s : memref<1x1024x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 3>}
  return
}

// -----

// Of more segments the first has a sixth more, and a third of the least length: 17, 12, 12, 12 and 11.

// CHECK-LABEL: func @five_scan(
// CHECK-DAG: %[[LONGEST:.*]] = arith.constant 272 : index
// CHECK-DAG: %[[X:.*]] = arith.constant 192 : index
// CHECK-DAG: %[[EXTRA:.*]] = arith.constant 80 : index
// CHECK: %[[BEFORE:.*]] = arith.muli %{{.*}}, %[[EXTRA]]
// CHECK: %[[EQUAL:.*]] = arith.muli %{{.*}}, %[[X]]
// CHECK: arith.addi %[[EQUAL]], %[[BEFORE]]
// CHECK: arith.subi %[[LONGEST]], %[[BEFORE]]
// CHECK-LABEL: func @five(
// CHECK: memref.alloc() : memref<4x2x1x16x16xf32>
// CHECK: gdn_tile.launch @five_scan grid(%c1)
// CHECK-NEXT: gdn_tile.launch @five_segments grid(%c6)
func.func @five(%q: memref<1x1024x1x16xf32>, %o: memref<1x1024x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x1024x1x16xf32>, memref<1x1024x1x16xf32>, memref<1x1024x1x16xf32>)
      outs(%o, %s : memref<1x1024x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 5, segment_chunks = 10>}
  return
}

// -----

// Four segments of each of two sequences. Of float32 inputs, transition
// matrices stay float32 and are stored transposed; the next is on its way while
// one is applied.

// CHECK-LABEL: func @four_segments(
// CHECK: gdn_tile.store %{{.*}} dims [4, 3]
// CHECK-LABEL: func @four_combine(
// CHECK-SAME: gdn_tile.kernel<warps = 1, layout = accumulator>
// CHECK: scf.for %{{.*}} = %c1 to %{{.*}} iter_args(%[[STATE:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}) -> (vector<16x16xf32>, vector<16x16xf32>)
// CHECK:   %[[NEXT:.*]] = gdn_tile.load {{.*}} vector<16x16xf32>
// CHECK:   gdn_tile.store %[[STATE]], %[[TILE:.*]][%c0, %c0] dims [1, 0]
// CHECK:   %[[N:.*]] = gdn_tile.load {{.*}} vector<16x16xf32>
// CHECK:   %[[NEW:.*]] = gdn_tile.mma %[[M]], %[[TILE]] acc(%[[N]] : vector<16x16xf32>) {transpose_b} : vector<16x16xf32>
// CHECK:   gdn_tile.store %[[NEW]]
// CHECK:   scf.yield %[[NEW]], %[[NEXT]]
// CHECK-LABEL: func @four(
// CHECK: memref.alloc() : memref<6x2x1x16x16xf32>
// CHECK: gdn_tile.launch @four_scan grid(%c2)
// CHECK-NEXT: gdn_tile.launch @four_segments grid(%c8)
// CHECK-NEXT: gdn_tile.launch @four_combine grid(%c2)
// CHECK-NEXT: gdn_tile.launch @four_scan grid(%c6)
func.func @four(%q: memref<2x224x1x16xf32>, %o: memref<2x224x1x16xf32>, %s: memref<2x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<2x224x1x16xf32>, memref<2x224x1x16xf32>, memref<2x224x1x16xf32>)
      outs(%o, %s : memref<2x224x1x16xf32>, memref<2x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 16, segments = 8>}
  return
}

// -----

// Whole heads of 128 channels: a block of `segments` has the rows of two
// warpgroups, one block of values and one of transitions. The other kernels
// keep the schedule's block.

// CHECK-LABEL: func @whole_scan(
// CHECK-SAME: gdn_tile.kernel<warps = 4, layout = accumulator>
// CHECK-LABEL: func @whole_segments(
// CHECK-SAME: gdn_tile.kernel<warps = 8, layout = accumulator>
// CHECK: arith.remui %{{.*}}, %c2
// CHECK: scf.for {{.*}} -> (vector<128x128xf32>)
// CHECK-LABEL: func @whole(
// CHECK: gdn_tile.launch @whole_segments grid(%c4)
func.func @whole(%q: memref<1x320x1x128xbf16>, %b: memref<1x320x1xf32>, %o: memref<1x320x1x128xbf16>, %s: memref<1x1x128x128xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x320x1x128xbf16>, memref<1x320x1x128xbf16>, memref<1x320x1x128xbf16>)
      beta(%b : memref<1x320x1xf32>)
      outs(%o, %s : memref<1x320x1x128xbf16>, memref<1x1x128x128xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, segments = 8>}
  return
}

// -----

// Packed sequences: a segment finds its sequence in the offsets, and from its length that of its segments. K of 256 in
// two parts, no transition ahead.

// CHECK-LABEL: func @packed_scan(
// CHECK-SAME: %[[CU:[^:]*]]: memref<?xi32>, %{{.*}}: index, %[[SPACING:[^:]*]]: index
// CHECK-SAME: %[[IS_LATER:[^:]*]]: index)
// CHECK: scf.while
// CHECK: memref.load
// CHECK: memref.load
// CHECK: memref.load
// CHECK: %[[LENGTH:.*]] = arith.subi
// CHECK: %[[C:.*]] = arith.ceildivui %[[LENGTH]], %c32
// One boundary for every so many tokens; none in a sequence of four chunks.
// CHECK: %[[FIT:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
// CHECK: %[[FIT1:.*]] = arith.index_castui %[[FIT]]
// CHECK: %[[LESS:.*]] = arith.subi %[[FIT1]], %c1
// CHECK: %[[INNER:.*]] = arith.maxsi %[[LESS]], %c1
// CHECK: %[[WORTH:.*]] = arith.muli %[[C]], %[[INNER]]
// CHECK: %[[GAINS:.*]] = arith.cmpi sgt, %[[WORTH]], %c0
// CHECK: %[[IS_LONG:.*]] = arith.cmpi sgt, %[[C]], %c4
// CHECK: %[[IF_LONG:.*]] = arith.select %[[IS_LONG]], %[[FIT1]], %c0
// CHECK: %[[PLACES:.*]] = arith.select %[[GAINS]], %[[IF_LONG]], %c0
// CHECK: %[[G:.*]] = arith.addi %[[PLACES]], %c1
// CHECK: %[[SIXTHS:.*]] = arith.muli %[[G]], %c6
// CHECK: arith.addi %[[SIXTHS]], %c1
// CHECK: %[[IS_CUT:.*]] = arith.cmpi sgt, %[[PLACES]], %c0
// CHECK: %[[WHOLE:.*]] = arith.addi %[[C]], %c1
// CHECK: arith.select %[[IS_CUT]], %{{.*}}, %[[WHOLE]]
// The last segment has all that is left; a place behind it has nothing.
// CHECK: %[[LEFT:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK: %[[ROWS:.*]] = arith.minsi %[[LEFT]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi sgt
// CHECK: %[[IS_ALL:.*]] = arith.cmpi eq, %[[LEFT]], %[[ROWS]]
// CHECK: %[[IS_LAST:.*]] = arith.andi %[[EXISTS]], %[[IS_ALL]]
// CHECK: gdn_tile.await_launch
// CHECK: gdn_tile.load %{{.*}} dims [3, 2] {{.*}} : memref<?x1x256x16xbf16>
// CHECK: arith.select %[[IS_LAST]], %false, %{{.*}} : i1
// CHECK: scf.if
// CHECK: arith.select %[[IS_LAST]]
// CHECK: gdn_tile.store
// CHECK-LABEL: func @packed_segments(
// CHECK: scf.while
// CHECK-LABEL: func @packed_combine(
// CHECK-SAME: gdn_tile.kernel<warps = 8, layout = accumulator>
// CHECK: scf.for {{.*}} -> (vector<128x16xf32>, vector<128x16xf32>)
// CHECK:   gdn_tile.store %{{.*}}[%c0, %c0] dims [1, 0] {{.*}} memref<16x256xf32
// CHECK:   gdn_tile.store %{{.*}}[%c0, %c128] dims [1, 0] {{.*}} memref<16x256xf32
// CHECK-COUNT-2: gdn_tile.mma %{{.*}} : vector<128x256xf32>
// CHECK-LABEL: func @packed(
// Three places behind another segment share the tokens, if there are sequences few enough and more than four chunks, or
// eight of several.
// CHECK: %[[LATER:.*]] = arith.divui %c3, %{{.*}}
// CHECK: %[[PAIRS:.*]] = arith.divui %[[LATER]], %c2
// CHECK: %[[ARE_FEW:.*]] = arith.minui %[[PAIRS]], %c1
// CHECK: %[[SHARE:.*]] = arith.ceildivui %[[T:.*]], %c3
// CHECK: %[[SEVERAL:.*]] = arith.minui %{{.*}}, %c2
// CHECK: %[[LEAST:.*]] = arith.muli %[[SEVERAL]], %c4
// CHECK: %[[TIMES:.*]] = arith.divui %{{.*}}, %[[LEAST]]
// CHECK: %[[ARE_LONG:.*]] = arith.minui %[[TIMES]], %c1
// CHECK: %[[ARE_CUT:.*]] = arith.minui %[[ARE_FEW]], %[[ARE_LONG]]
// CHECK: %[[NOT:.*]] = arith.subi %c1, %[[ARE_CUT]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[T]], %c1
// CHECK: %[[NONE:.*]] = arith.muli %[[NOT]], %[[BEHIND]]
// CHECK: %[[SPACING:.*]] = arith.maxui %{{.*}}, %[[NONE]]
// CHECK: %[[B:.*]] = arith.divui %[[T]], %[[SPACING]]
// CHECK: memref.alloc(%[[B]]) : memref<?x2x1x256x256xf32>
// CHECK: gdn_tile.launch @packed_scan {{.*}}, %[[SPACING]], {{.*}} {beside}
// CHECK: gdn_tile.launch @packed_scan grid(%[[B]]) {{.*}} {beside}
func.func @packed(%q: memref<1x?x1x256xbf16>, %v: memref<1x?x1x16xbf16>, %cu: memref<?xi32>,
    %o: memref<1x?x1x16xbf16>, %s: memref<?x1x256x16xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x?x1x256xbf16>, memref<1x?x1x256xbf16>, memref<1x?x1x16xbf16>)
      offsets(%cu : memref<?xi32>)
      outs(%o, %s : memref<1x?x1x16xbf16>, memref<?x1x256x16xbf16>)
      {state_layout = #gdn.state_layout<k_first>,
       schedule = #gdn.schedule<phases = segmented, chunk = 32, value_block = 16, segments = 4>}
  return
}

// -----

// Blocks that nobody needs, of a first or a last segment, walk no chunk. Rows of the second block of values end with these, and two stages are what fits.

// CHECK-LABEL: func @places_segments(
// CHECK: %[[IS_LATER:.*]] = arith.cmpi sgt, %[[J:.*]], %c0 : index
// CHECK-NEXT: %[[MOST:.*]] = arith.select %[[IS_LATER]], %arg2, %c0 : index
// CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[J]], %[[MOST]] : index
// CHECK: %[[LENGTH:.*]] = arith.select %[[EXISTS]], %{{.*}}, %c0 : index
// CHECK: %[[CHUNKS:.*]] = arith.ceildivui %[[LENGTH]], %c16
// CHECK: scf.for %{{.*}} = %c0 to %[[CHUNKS]]
// CHECK-LABEL: func @places_combine(
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[LEFT:.*]] = arith.subi %c72, %[[FIRST]]
// CHECK: scf.for
// CHECK: gdn_tile.copy_in %{{.*}} dims [2, 3] valid(%[[LEFT]], %c16)
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK-LABEL: func @places(
// CHECK: gdn_tile.launch @places_scan grid(%c12)
// CHECK: %[[MOST:.*]] = arith.maxui %{{.*}}, %c1
// CHECK: %[[OTHERS:.*]] = arith.subi %[[MOST]], %c1
// CHECK: gdn_tile.launch @places_segments
// CHECK: %[[NEEDED:.*]] = arith.minui %[[OTHERS]], %c1
// CHECK: arith.muli %[[NEEDED]],
// CHECK: gdn_tile.launch @places_combine
func.func @places(%q: memref<1x?x2x16xbf16>, %v: memref<1x?x4x72xbf16>, %b: memref<1x?x4xf32>, %s: memref<1x4x72x16xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x?x2x16xbf16>, memref<1x?x2x16xbf16>, memref<1x?x4x72xbf16>)
      beta(%b : memref<1x?x4xf32>) outs(%v, %s : memref<1x?x4x72xbf16>, memref<1x4x72x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 32, stages = 3, segments = 8>}
  return
}
