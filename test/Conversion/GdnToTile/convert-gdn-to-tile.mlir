// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse -verify-diagnostics | FileCheck %s

// Gated DeltaNet, GVA, dynamic time, a partial value block and a padded K.

// CHECK-LABEL: func @split_prepare
// CHECK-SAME: memref<?x2x24xbf16>
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator, blocks = 16>
// The padded columns are bounded by K; all copies stand together.
// CHECK: gdn_tile.copy_in %{{.*}} dims [0, 2] valid(%{{.*}}, %c24) to %[[K:.*]] : memref<?x2x24xbf16> to memref<16x32xbf16
// CHECK-NEXT: gdn_tile.copy_in {{.*}} to %[[Q:.*]] : memref<?x2x24xbf16>
// CHECK: gdn_tile.copy_in {{.*}} : memref<?x4xf32>
// CHECK: gdn_tile.copy_in {{.*}} : memref<?x4xf32>
// CHECK: gdn_tile.mma %{{.*}}, %[[Q]] {transpose_b}
// CHECK: gdn_tile.mma %{{.*}}, %[[K]] {transpose_b}
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c1) {
// CHECK: gdn_tile.block_inverse

// CHECK-LABEL: func @split_scan
// CHECK-SAME: attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>}
// CHECK: %[[S0:.*]] = gdn_tile.load %{{.*}} dims [2, 3] valid(%{{.*}}, %c24) : memref<1x4x40x24xf32>, vector<32x32xf32>
// CHECK: %[[END:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[S0]]) -> (vector<32x32xf32>)
// Whether the chunk has split rows, for all threads alike.
// CHECK:   %[[FLAG:.*]] = gdn_tile.load %[[GATES:.*]][%c64]
// CHECK:   %[[SPLIT:.*]] = gdn_tile.any
// CHECK:   %[[A:.*]] = arith.truncf %[[S]]
// CHECK:   gdn_tile.mma %[[A]], %{{.*}} {transpose_b}
// The sum starts from D in f32.
// CHECK:   %[[D:.*]] = arith.subf
// CHECK:   %[[W:.*]] = arith.truncf %[[D]]
// CHECK:   %[[U:.*]] = gdn_tile.mma %[[W]], %[[N:.*]] acc(%[[D]]
// CHECK:   %[[O:.*]] = arith.mulf
// CHECK:   %[[DECAYED:.*]] = arith.mulf %[[S]]
// Second parts in such chunks, with the number of split rows, the row of exp(G_C - G) beta and, for P, those of beta and
// exp(G).
// CHECK:   %[[BETTER:.*]]:3 = scf.if %[[SPLIT]]
// CHECK:     gdn_tile.copy_in %{{.*}}[%{{.*}}, %{{.*}}, %c1, %c0, %c0] {{.*}} to %[[LOW:[^ ]*]]
// CHECK:     gdn_tile.refine a(%[[W]], %[[N]], %[[LOW]]) acc(%[[U]]) state(%[[DECAYED]], %{{.*}}) output(%[[O]], %{{.*}}) scores(%{{.*}}) factors(%[[GATES]]) count 64 scale 16 {beta = 48 : i64, factor = {{.*}} : f64, grown = 0 : i64} :
// CHECK:   } else {
// CHECK-NEXT: scf.yield %[[U]], %[[DECAYED]], %[[O]]
// CHECK:   gdn_tile.mma %{{.*}} acc(%[[BETTER]]#1 : vector<32x32xf32>) :
// CHECK:   gdn_tile.mma %{{.*}} acc(%[[BETTER]]#2 : vector<32x16xf32>) {transpose_b} :
// CHECK:   gdn_tile.copy_out
// CHECK: } {gdn_tile.stages = 2 : i64}
// CHECK: gdn_tile.store %[[END]]

// CHECK-LABEL: func @split(
// Sizes that only run time knows.
// CHECK: cf.assert %{{.*}}, "size of dimension 1 of 'k' must be that of dimension 1 of 'q'"
// CHECK: cf.assert %{{.*}}, "size of dimension 1 of 'out' must be that of dimension 1 of 'q'"
// CHECK: %[[SLOTS:.*]] = arith.ceildivui %{{.*}}, %c16
// CHECK: memref.alloc(%[[SLOTS]]) : memref<?x4x24x8xbf16>
// CHECK: memref.alloc(%[[SLOTS]]) : memref<?x4x2x24x8xbf16>
// Three factors for each token, its beta, and how many rows of the chunk are split.
// CHECK: memref.alloc(%[[SLOTS]]) : memref<?x4x72xf32>
// CHECK: gdn_tile.launch @split_prepare
// 4 heads times 2 value blocks.
// CHECK: gdn_tile.launch @split_scan grid(%c8)
func.func @split(
    %q: memref<1x?x2x24xbf16>, %k: memref<1x?x2x24xbf16>, %v: memref<1x?x4x40xbf16>,
    %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
    %o: memref<1x?x4x40xbf16>, %s: memref<1x4x40x24xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x2x24xbf16>, memref<1x?x2x24xbf16>, memref<1x?x4x40xbf16>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>)
      outs(%o, %s : memref<1x?x4x40xbf16>, memref<1x4x40x24xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 32, stages = 2>}
  return
}

// -----

// Float32: a block per value head, and the exact inverse.

// CHECK-LABEL: func @exact_prepare
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
// CHECK: gdn_tile.block_id from_end
// The padded columns are bounded by K; all copies stand together.
// CHECK: gdn_tile.copy_in %{{.*}} dims [0, 2] valid(%{{.*}}, %c24) to %[[K:.*]] : memref<?x2x24xf32> to memref<16x32xf32
// CHECK-NEXT: gdn_tile.copy_in {{.*}} to %[[Q:.*]] : memref<?x2x24xf32>
// CHECK-NEXT: gdn_tile.copy_in {{.*}} : memref<?x4xf32>
// CHECK-NEXT: gdn_tile.copy_in {{.*}} : memref<?x4xf32>
// CHECK: gdn_tile.cumsum %{{.*}} of
// CHECK: gdn_tile.mma %{{.*}}, %[[K]] {transpose_b}
// CHECK: %[[MASK:.*]] = arith.cmpi sge
// The exponent is masked before exp2.
// CHECK: %[[E:.*]] = arith.select %[[MASK]]
// CHECK: math.exp2 %[[E]]
// CHECK: gdn_tile.mma %{{.*}}, %[[K]] {transpose_b}
// CHECK: %[[STRICT:.*]] = arith.cmpi sgt
// CHECK: arith.select %[[STRICT]]
// CHECK: gdn_tile.tri_inverse %{{.*}} {exact}
// CHECK-NOT: arith.truncf
// CHECK-LABEL: func @exact_scan
func.func @exact(
    %q: memref<1x?x2x24xf32>, %k: memref<1x?x2x24xf32>, %v: memref<1x?x4x40xf32>,
    %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
    %o: memref<1x?x4x40xf32>, %s: memref<1x4x40x24xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x2x24xf32>, memref<1x?x2x24xf32>, memref<1x?x4x40xf32>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>)
      outs(%o, %s : memref<1x?x4x40xf32>, memref<1x4x40x24xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 32, stages = 2>}
  return
}

// -----

// Gated DeltaNet-2 with packed sequences and a k_first state.

// CHECK-LABEL: func @channel_prepare
// CHECK: gdn_tile.block_id from_end
// The sequence of a slot.
// CHECK: gdn_tile.find_sequence %{{.*}} in %{{.*}} chunk 16 : memref<?xi32>
// CHECK: scf.if
// CHECK: gdn_tile.copy_sums %{{.*}} dims [0, 2] valid({{.*}}) to %[[SUMS:.*]] {columns = 16 : i64, {{.*}} to memref<17x24xf32
// erase o k
// CHECK: gdn_tile.store %{{[a-z0-9_]+}}, %[[EK:[a-z0-9_]+]][
// CHECK: gdn_tile.scores %[[Q:[a-z0-9_]+]], %{{.*}}, %[[SUMS]] acc(%{{.*}}) strict(%[[EK]] acc %{{.*}}) :
// P, and the three copies in their places
// CHECK: gdn_tile.copy_out
// CHECK: gdn_tile.copy_out %[[Q]] to
// CHECK: gdn_tile.copy_out %[[Q]] to
// CHECK: gdn_tile.copy_out %[[EK]] to
// CHECK: gdn_tile.free %[[Q]]
// CHECK: gdn_tile.tri_inverse
// CHECK-LABEL: func @channel_scan
// CHECK: gdn_tile.load %{{.*}} dims [3, 2]
// CHECK: scf.for
// write o v
// CHECK:   arith.mulf
// CHECK:   gdn_tile.mma
// CHECK-LABEL: func @channel(
// CHECK: cf.assert %{{.*}}, "size of dimension 0 of 'state' must be that of dimension 0 of 'offsets' - 1"
// CHECK: %[[FULL:.*]] = arith.divui
// CHECK: arith.addi %[[FULL]]
func.func @channel(
    %q: memref<1x?x1x16xf32>, %k: memref<1x?x1x16xf32>, %v: memref<1x?x2x16xf32>,
    %g: memref<1x?x2x16xf32>, %w: memref<1x?x2x16xf32>, %cu: memref<?xi32>,
    %o: memref<1x?x2x16xf32>, %s: memref<?x2x16x16xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x1x16xf32>, memref<1x?x1x16xf32>, memref<1x?x2x16xf32>)
      gate(%g : memref<1x?x2x16xf32>) erase(%g : memref<1x?x2x16xf32>) write(%w : memref<1x?x2x16xf32>)
      offsets(%cu : memref<?xi32>)
      outs(%o, %s : memref<1x?x2x16xf32>, memref<?x2x16x16xf32>)
      {state_layout = #gdn.state_layout<k_first>,
       schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// One decode step: the state is read once and written once.

// CHECK-LABEL: func @decode_step
// CHECK-SAME: attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>}
// What belongs to the token is loaded in front of the state, and all of it in
// front of the arithmetic; both sums are of the state as it was.
// CHECK: %[[K:.*]] = gdn_tile.load {{.*}} vector<1x128xbf16>
// CHECK: %[[Q:.*]] = gdn_tile.load {{.*}} vector<1x128xbf16>
// CHECK: %[[S:.*]] = gdn_tile.load {{.*}} vector<8x128xf32>
// CHECK: %[[KQ:.*]]:2 = gdn_tile.after_loads %[[K]], %[[Q]] :
// CHECK: %[[SK:.*]] = arith.mulf %[[S]]
// CHECK: gdn_tile.sum %[[SK]] : vector<8x128xf32> to vector<8x1xf32>
// CHECK: gdn_tile.sum {{.*}} : vector<1x128xf32> to vector<1x1xf32>
// CHECK: %[[SQ:.*]] = arith.mulf %[[S]]
// CHECK: gdn_tile.sum %[[SQ]] : vector<8x128xf32> to vector<8x1xf32>
// CHECK: gdn_tile.store {{.*}} vector<8x1xbf16>
// CHECK: %[[D:.*]] = arith.mulf %[[S]]
// CHECK: %[[NEW:.*]] = arith.addf %[[D]]
// CHECK: gdn_tile.store %[[NEW]]
// CHECK-LABEL: func @decode(
// CHECK: gdn_tile.launch @decode_step grid(%c1024)
func.func @decode(
    %q: memref<2x1x16x128xbf16>, %k: memref<2x1x16x128xbf16>, %v: memref<2x1x32x128xbf16>,
    %g: memref<2x1x32xf32>, %b: memref<2x1x32xf32>,
    %o: memref<2x1x32x128xbf16>, %s: memref<2x32x128x128xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<2x1x16x128xbf16>, memref<2x1x16x128xbf16>, memref<2x1x32x128xbf16>)
      gate(%g : memref<2x1x32xf32>) beta(%b : memref<2x1x32xf32>)
      outs(%o, %s : memref<2x1x32x128xbf16>, memref<2x32x128x128xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// CHECK-LABEL: func @rows_l2norm
// CHECK: gdn_tile.sum
// CHECK: math.rsqrt
// CHECK-LABEL: func @rows_gate
// CHECK-COUNT-7: math.fma
// CHECK-LABEL: func @rows_gated_rms_norm
// CHECK: math.rsqrt
func.func @rows(%x: memref<2x5x2x16xbf16>, %y: memref<2x5x2x16xbf16>, %w: memref<16xf32>,
    %a: memref<2x5x4xbf16>, %A: memref<4xf32>, %dt: memref<4xf32>, %g: memref<2x5x4xf32>) {
  gdn.l2norm ins(%x : memref<2x5x2x16xbf16>) outs(%y : memref<2x5x2x16xbf16>)
  gdn.gate ins(%a, %A : memref<2x5x4xbf16>, memref<4xf32>) bias(%dt : memref<4xf32>) outs(%g : memref<2x5x4xf32>)
  gdn.gated_rms_norm ins(%x, %y, %w : memref<2x5x2x16xbf16>, memref<2x5x2x16xbf16>, memref<16xf32>)
      outs(%y : memref<2x5x2x16xbf16>)
  return
}

// -----

// A warp walks the inner tokens with the last inputs in registers and eight
// loads in flight; the edge reads the state before it is overwritten, one
// thread per channel.

// CHECK-LABEL: func @conv_short_conv(
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 32>
// CHECK-COUNT-4: gdn_tile.load %{{.*}} : memref<100x4xbf16>, vector<1x128xbf16>
// CHECK-COUNT-3: gdn_tile.load %{{.*}} : memref<?x100xbf16>, vector<1x128xbf16>
// CHECK: scf.for {{.*}} -> (vector<1x128xbf16>, vector<1x128xbf16>, vector<1x128xbf16>)
// CHECK-NOT: gdn_tile.store
// CHECK-COUNT-8: gdn_tile.load
// CHECK-COUNT-8: gdn_tile.store
// CHECK-LABEL: func @conv_short_conv_edge(
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 32, chunk = 8>
// CHECK-NOT: gdn_tile.store
// CHECK: gdn_tile.load %{{.*}} dims [1] {{.*}} : memref<2x100x3xf32>
// CHECK: gdn_tile.store
// CHECK-NOT: gdn_tile.load
// CHECK: return
// CHECK-LABEL: func @conv(
func.func @conv(%x: memref<2x?x100xbf16>, %y: memref<2x?x100xbf16>, %w: memref<100x4xbf16>, %s: memref<2x100x3xf32>) {
  gdn.short_conv ins(%x, %w : memref<2x?x100xbf16>, memref<100x4xbf16>)
      outs(%y, %s : memref<2x?x100xbf16>, memref<2x100x3xf32>) {activation = #gdn.activation<silu>}
  return
}

// -----

// With many taps rows are tokens, and taps loads shifted by a row.

// CHECK-LABEL: func @taps_short_conv(
// CHECK-COUNT-9: gdn_tile.load %{{.*}} dims [0, 1] valid
// CHECK: gdn_tile.store
func.func @taps(%x: memref<2x?x100xbf16>, %y: memref<2x?x100xbf16>, %w: memref<100x9xbf16>, %s: memref<2x100x8xf32>) {
  gdn.short_conv ins(%x, %w : memref<2x?x100xbf16>, memref<100x9xbf16>)
      outs(%y, %s : memref<2x?x100xbf16>, memref<2x100x8xf32>)
  return
}

// -----

// What bufferization makes of a state that starts at zero in the function.

// CHECK-LABEL: func @memory_fill(
// CHECK: gdn_tile.store
// CHECK-LABEL: func @memory_copy(
// CHECK: gdn_tile.load
// CHECK: gdn_tile.store
// CHECK-LABEL: func @memory_fill_0(
// CHECK: dense<5.000000e-01>
// CHECK-LABEL: func @memory(
// CHECK: gdn_tile.launch @memory_fill grid
// CHECK: gdn_tile.launch @memory_copy grid
// CHECK: gdn_tile.launch @memory_fill_0 grid
// An integer copy stays.
// CHECK: memref.copy
memref.global "private" constant @half : memref<2x8xf32> = dense<0.5>
func.func @memory(%x: memref<?x4x16xbf16>, %y: memref<?x4x16xbf16>, %z: memref<2x8xf32>, %i: memref<4xi32>, %j: memref<4xi32>) {
  %zero = arith.constant 0.0 : bf16
  linalg.fill ins(%zero : bf16) outs(%x : memref<?x4x16xbf16>)
  memref.copy %x, %y : memref<?x4x16xbf16> to memref<?x4x16xbf16>
  %half = memref.get_global @half : memref<2x8xf32>
  memref.copy %half, %z : memref<2x8xf32> to memref<2x8xf32>
  memref.copy %i, %j : memref<4xi32> to memref<4xi32>
  return
}

// -----

// A state that is filled in front of the recurrence: with zeros, which the
// kernel starts from; with another state, of another type, which it reads. A
// state that something else looks at in between keeps its copy.

// CHECK-LABEL: func @starts_step(
// CHECK-NOT: gdn_tile.load %{{.*}} : memref<2x1x16x16xf32>
// CHECK: gdn_tile.store %{{.*}} : vector<{{.*}}>, memref<2x1x16x16xf32>
// CHECK-LABEL: func @starts_step_0(
// CHECK: gdn_tile.load %{{.*}} : memref<2x1x16x16xbf16>, vector<
// CHECK-NOT: gdn_tile.load %{{.*}} : memref<2x1x16x16xf32>
// CHECK: gdn_tile.store %{{.*}} : vector<{{.*}}>, memref<2x1x16x16xf32>
// CHECK-LABEL: func @starts_step_1(
// CHECK: gdn_tile.load %{{.*}} : memref<2x1x16x16xf32>, vector<
// CHECK-LABEL: func @starts(
// CHECK-NOT: linalg
// CHECK-NOT: memref.copy
// CHECK: gdn_tile.launch @starts_step grid
// CHECK-NEXT: gdn_tile.launch @starts_step_0 grid
// CHECK: gdn_tile.launch @starts_copy grid
// CHECK: gdn_tile.launch @starts_step_1 grid
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @starts(%q: memref<2x3x1x16xbf16>, %o: memref<2x3x1x16xbf16>, %s: memref<2x1x16x16xf32>, %h: memref<2x1x16x16xbf16>,
                  %t: memref<2x1x16x16xf32>, %u: memref<2x1x16x16xf32>, %w: memref<2x1x16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<2x1x16x16xf32>)
  gdn.recurrence ins(%q, %q, %q : memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>)
      outs(%o, %s : memref<2x3x1x16xbf16>, memref<2x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%h : memref<2x1x16x16xbf16>) outs(%t : memref<2x1x16x16xf32>) {
  ^bb0(%e: bf16, %old: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  }
  gdn.recurrence ins(%q, %q, %q : memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>)
      outs(%o, %t : memref<2x3x1x16xbf16>, memref<2x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  memref.copy %t, %u : memref<2x1x16x16xf32> to memref<2x1x16x16xf32>
  memref.copy %u, %w : memref<2x1x16x16xf32> to memref<2x1x16x16xf32>
  gdn.recurrence ins(%q, %q, %q : memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>)
      outs(%o, %u : memref<2x3x1x16xbf16>, memref<2x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// Elementwise arithmetic: operands of the block, of one row for all, of one
// value per row. Constants become splats.

// CHECK-LABEL: func @arithmetic_map(
// CHECK-SAME: %[[X:arg[0-9]+]]: memref<?x16xbf16>, %[[ROW:arg[0-9]+]]: memref<16xf32>, %[[COL:arg[0-9]+]]: memref<?xf32>, %[[Y:arg[0-9]+]]: memref<?x16xf32>
// CHECK: gdn_tile.load %[[X]][%{{.*}}] dims [0, 1] valid
// CHECK: gdn_tile.load %[[ROW]][%{{.*}}] dims [0] valid({{.*}}) : memref<16xf32>, vector<1x16xf32>
// CHECK: vector.broadcast
// CHECK: gdn_tile.load %[[COL]][%{{.*}}] dims [0] valid({{.*}}) : memref<?xf32>, vector<{{[0-9]+}}x1xf32>
// CHECK: arith.extf %{{.*}} : vector<[[SHAPE:[0-9]+x16]]xbf16> to vector<[[SHAPE]]xf32>
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<[[SHAPE]]xf32>
// CHECK: gdn_tile.store %{{.*}}, %[[Y]]
// CHECK-LABEL: func @arithmetic(
// CHECK: gdn_tile.launch @arithmetic_map grid
// A transposed operand has no rows: the op stays.
// CHECK: linalg.generic
#block = affine_map<(d0, d1) -> (d0, d1)>
func.func @arithmetic(%x: memref<?x16xbf16>, %row: memref<16xf32>, %col: memref<?xf32>, %y: memref<?x16xf32>,
                      %a: memref<4x16xf32>, %b: memref<16x4xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.generic {indexing_maps = [#block, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>, #block],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x, %row, %col : memref<?x16xbf16>, memref<16xf32>, memref<?xf32>) outs(%y : memref<?x16xf32>) {
  ^bb0(%e: bf16, %r: f32, %c: f32, %old: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.addf %0, %r : f32
    %2 = arith.mulf %1, %c : f32
    %3 = arith.mulf %2, %two : f32
    linalg.yield %3 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #block], iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<16x4xf32>) outs(%a : memref<4x16xf32>) {
  ^bb0(%e: f32, %old: f32):
    linalg.yield %e : f32
  }
  return
}

// -----

func.func @no_schedule(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  // expected-error @+1 {{has no schedule; run gdn-select-schedule first}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>)
  return
}

// -----

func.func @fused_chunk(%q: memref<1x128x1x64xbf16>, %o: memref<1x128x1x64xbf16>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{fused phases in a tile program need chunk = 64, value_block = 64 and two stages or more}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>)
      outs(%o, %s : memref<1x128x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 64, stages = 2>}
  return
}

// -----

func.func @fused_sizes(%q: memref<1x128x1x64xbf16>, %o: memref<1x128x1x64xbf16>, %s: memref<1x1x64x64xf32>) {
  // expected-error @+1 {{fused phases in a tile program need chunk = 64, value_block = 64 and two stages or more}}
  gdn.recurrence ins(%q, %q, %q : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>)
      outs(%o, %s : memref<1x128x1x64xbf16>, memref<1x1x64x64xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64>}
  return
}

// -----

func.func @fused(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  // expected-error @+1 {{fused phases in a tile program need inputs of 16 bits and precision = default}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 16>}
  return
}

// -----

func.func @value_block(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  // expected-error @+1 {{split phases need a value_block that is a multiple of 16 and at most 256, but it is 8}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 8>}
  return
}

// -----

func.func @value_block_too_large(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  // expected-error @+1 {{split phases need a value_block that is a multiple of 16 and at most 256, but it is 512}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 512>}
  return
}

// -----

func.func @wide_block_too_large(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  // expected-error @+1 {{split phases need a value_block that is a multiple of 16 and at most 128 with wide_from, but it is 144}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 144, wide_from = 5>}
  return
}

// -----

func.func @step_registers(%q: memref<1x4x1x256xf32>, %s: memref<1x1x256x256xf32>) {
  // expected-error @+1 {{step phases keep the state of a block in the registers of one block, but value_block = 64 with K = 256 needs 512 of the 255 of a thread}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x256xf32>, memref<1x4x1x256xf32>, memref<1x4x1x256xf32>)
      outs(%q, %s : memref<1x4x1x256xf32>, memref<1x1x256x256xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 64>}
  return
}

// -----

func.func @key_size(%q: memref<1x4x1x272xf32>, %s: memref<1x1x272x272xf32>) {
  // expected-error @+1 {{has no tile form for K = 272 key channels; the limit is 256}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x272xf32>, memref<1x4x1x272xf32>, memref<1x4x1x272xf32>)
      outs(%q, %s : memref<1x4x1x272xf32>, memref<1x1x272x272xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// A pool of states, step: all of a block's work is behind the test of its slot.

// CHECK-LABEL: func @pool_step_step
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[SLOT32:.*]] = memref.load %{{.*}} : memref<?xi32>
// CHECK: %[[SLOT:.*]] = arith.index_cast %[[SLOT32]]
// CHECK: %[[LIVE:.*]] = arith.cmpi sge, %[[SLOT]], %[[C0]]
// CHECK: %[[ENTRY:.*]] = arith.maxsi %[[SLOT]], %[[C0]]
// CHECK: scf.if %[[LIVE]] {
// CHECK:   gdn_tile.load %{{.*}}[%[[ENTRY]], {{.*}} : memref<?x2x16x16xf32>
// CHECK:   gdn_tile.store %{{.*}}[%[[ENTRY]], {{.*}} memref<?x2x16x16xf32>
// CHECK: } else {
// CHECK-NOT: gdn_tile.load
// CHECK:   gdn_tile.store %{{.*}} : vector<8x1xbf16>, memref<?x2x16xbf16>
// CHECK-LABEL: func @pool_step(
// CHECK: cf.assert %{{.*}}, "size of dimension 0 of 'slots' must be that of dimension 0 of 'q'"
// CHECK-NOT: cf.assert {{.*}} 'state'
// CHECK: gdn_tile.launch @pool_step_step
func.func @pool_step(%q: memref<?x1x1x16xbf16>, %v: memref<?x1x2x16xbf16>, %at: memref<?xi32>, %s: memref<?x2x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<?x1x1x16xbf16>, memref<?x1x1x16xbf16>, memref<?x1x2x16xbf16>)
      slots(%at : memref<?xi32>) outs(%v, %s : memref<?x1x2x16xbf16>, memref<?x2x16x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// A pool of states, split: a sequence without a state has no chunks, its state no
// valid rows, and its o zeros.

// CHECK-LABEL: func @pool_split_scan
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[SLOT64:.*]] = memref.load %{{.*}} : memref<2xi64>
// CHECK: %[[SLOT:.*]] = arith.index_cast %[[SLOT64]]
// CHECK: %[[LIVE:.*]] = arith.cmpi sge, %[[SLOT]], %[[C0]]
// CHECK: %[[ENTRY:.*]] = arith.maxsi %[[SLOT]], %[[C0]]
// CHECK: %[[ROWS:.*]] = arith.select %[[LIVE]], %{{.*}}, %[[C0]]
// CHECK: %[[S0:.*]] = gdn_tile.load %{{.*}}[%[[ENTRY]], {{.*}}] dims [2, 3] valid(%[[ROWS]], %{{.*}}) : memref<9x1x16x16xf32>
// CHECK: %[[ZEROS:.*]] = arith.select %[[LIVE]], %[[C0]], %{{.*}}
// CHECK: scf.for %{{.*}} = %[[C0]] to %[[ZEROS]]
// CHECK:   gdn_tile.store %{{.*}} dims [2, 0] {{.*}} : vector<16x16xbf16>, memref<70x1x16xbf16>
// CHECK: %[[CHUNKS:.*]] = arith.select %[[LIVE]], %{{.*}}, %[[C0]]
// CHECK: scf.for %{{.*}} = %[[C0]] to %[[CHUNKS]] {{.*}} iter_args(%{{.*}} = %[[S0]])
// CHECK: gdn_tile.store %{{.*}}[%[[ENTRY]], {{.*}} valid(%{{.*}}, %{{.*}}) : {{.*}} memref<9x1x16x16xf32>
func.func @pool_split(%q: memref<1x70x1x16xbf16>, %cu: memref<3xi32>, %at: memref<2xi64>, %s: memref<9x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x70x1x16xbf16>, memref<1x70x1x16xbf16>, memref<1x70x1x16xbf16>)
      offsets(%cu : memref<3xi32>) slots(%at : memref<2xi64>) outs(%q, %s : memref<1x70x1x16xbf16>, memref<9x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// A verify step: every token's state to the checkpoints, the pool untouched.

// CHECK-LABEL: func @verify_step
// CHECK: scf.if
// CHECK:   %[[S0:.*]] = gdn_tile.load %{{.*}} : memref<9x2x16x16xf32>
// CHECK:   gdn_tile.after_loads
// CHECK:   %[[S1:.*]] = arith.addf %[[S0]]
// CHECK:   %[[K1:.*]] = arith.truncf %[[S1]]
// CHECK:   gdn_tile.store %[[K1]], {{.*}} : vector<8x16xbf16>, memref<6x2x16x16xbf16>
// CHECK:   %[[S2:.*]] = arith.addf %[[S1]]
// CHECK:   gdn_tile.store
// CHECK:   %[[S3:.*]] = arith.addf %[[S2]]
// CHECK:   %[[K3:.*]] = arith.truncf %[[S3]]
// CHECK:   gdn_tile.store %[[K3]], {{.*}} : vector<8x16xbf16>, memref<6x2x16x16xbf16>
// CHECK-NOT: memref<9x2x16x16xf32>
// CHECK: } else {
func.func @verify(%q: memref<2x3x1x16xbf16>, %v: memref<2x3x2x16xbf16>, %at: memref<2xi32>, %i: memref<9x2x16x16xf32>, %c: memref<2x3x2x16x16xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x16xbf16>, memref<2x3x1x16xbf16>, memref<2x3x2x16xbf16>)
      slots(%at : memref<2xi32>) initial(%i : memref<9x2x16x16xf32>) outs(%v : memref<2x3x2x16xbf16>)
      checkpoints(%c : memref<2x3x2x16x16xbf16>) {every = 1 : i64, schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// Checkpoints of a prefill: behind every second chunk, if all of it is there.

// CHECK-LABEL: func @kept_scan
// CHECK: scf.for {{.*}} iter_args
// CHECK:   %[[NEXT:.*]] = gdn_tile.mma %{{.*}} acc(%{{.*}} : vector<16x16xf32>) :
// CHECK:   %[[DONE:.*]] = arith.addi %{{.*}}, %c16
// CHECK:   %[[LEFT:.*]] = arith.remui %[[DONE]], %c32
// CHECK:   %[[DUE:.*]] = arith.cmpi eq, %[[LEFT]], %c0
// CHECK:   %[[WHOLE:.*]] = arith.cmpi sle, %[[DONE]], %{{.*}}
// CHECK:   %[[BOTH:.*]] = arith.andi %[[DUE]], %[[WHOLE]]
// CHECK:   %[[ROWS:.*]] = arith.select %[[BOTH]], %{{.*}}, %c0
// CHECK:   gdn_tile.store %[[NEXT]], {{.*}} dims [2, 3] valid(%[[ROWS]], %{{.*}}) : vector<16x16xf32>, memref<?x1x16x16xf32>
// CHECK-LABEL: func @kept(
// CHECK: cf.assert %{{.*}}, "size of dimension 1 of 'checkpoints' must be that of dimension 1 of 'q' / 32"
// CHECK: gdn_tile.launch @kept_prepare
func.func @kept(%q: memref<2x?x1x16xbf16>, %s: memref<2x1x16x16xf32>, %c: memref<2x?x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<2x?x1x16xbf16>, memref<2x?x1x16xbf16>, memref<2x?x1x16xbf16>)
      outs(%q, %s : memref<2x?x1x16xbf16>, memref<2x1x16x16xf32>) checkpoints(%c : memref<2x?x1x16x16xf32>)
      {every = 32 : i64, schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

func.func @odd_checkpoints(%q: memref<1x64x1x16xbf16>, %s: memref<1x1x16x16xf32>, %c: memref<1x2x1x16x16xf32>) {
  // expected-error @+1 {{stores a checkpoint every 24 tokens, no multiple of its chunks of 16}}
  gdn.recurrence ins(%q, %q, %q : memref<1x64x1x16xbf16>, memref<1x64x1x16xbf16>, memref<1x64x1x16xbf16>)
      outs(%q, %s : memref<1x64x1x16xbf16>, memref<1x1x16x16xf32>) checkpoints(%c : memref<1x2x1x16x16xf32>)
      {every = 24 : i64, schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

func.func @tensors(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  // expected-error @+1 {{has no tile form on tensors; bufferize first}}
  %0 = gdn.l2norm ins(%x : tensor<4x16xf32>) outs(%x : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

func.func @row_size(%x: memref<4x16400xf32>, %y: memref<4x16400xf32>) {
  // expected-error @+1 {{has no tile form for rows of 16400 elements; the limit is 16384}}
  gdn.l2norm ins(%x : memref<4x16400xf32>) outs(%y : memref<4x16400xf32>)
  return
}

// -----

func.func @gate_row_size(%a: memref<1x4x16400xf32>, %l: memref<16400xf32>, %y: memref<1x4x16400xf32>) {
  // expected-error @+1 {{has no tile form for rows of 16400 elements; the limit is 16384}}
  gdn.gate ins(%a, %l : memref<1x4x16400xf32>, memref<16400xf32>) outs(%y : memref<1x4x16400xf32>)
  return
}

// -----

func.func @taps(%x: memref<1x4x8xf32>, %w: memref<8x65xf32>, %y: memref<1x4x8xf32>, %s: memref<1x8x64xf32>) {
  // expected-error @+1 {{has no tile form for 65 taps and 64 inputs in the state; the limits are 64 and 256}}
  gdn.short_conv ins(%x, %w : memref<1x4x8xf32>, memref<8x65xf32>) outs(%y, %s : memref<1x4x8xf32>, memref<1x8x64xf32>)
  return
}

// -----

// Nowhere to put the kernel.
gpu.module @kernels {
  gpu.func @no_func(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
    // expected-error @+1 {{has no tile form outside of the module's functions}}
    gdn.l2norm ins(%x : memref<4x64xf32>) outs(%y : memref<4x64xf32>)
    gpu.return
  }
}
