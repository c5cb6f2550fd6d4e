// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse -verify-diagnostics | FileCheck %s

// Eight tokens at a time: products with the state as it is stored, of 16 bits, and
// a solution in place of a walk; what lies behind the third token is masked off. As many
// blocks on a multiprocessor as 96 registers allow.

// CHECK-LABEL: func @eight_step
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8, blocks = 20>
// CHECK: %[[K:.*]] = gdn_tile.load %{{.*}} dims [0, 2] valid(%c3, %c32) : memref<6x1x32xbf16>, vector<8x32xbf16>
// CHECK: %[[Q:.*]] = gdn_tile.load %{{.*}} dims [0, 2] valid(%c3, %c32) : memref<6x1x32xbf16>, vector<8x32xbf16>
// CHECK: gdn_tile.load %{{.*}} dims [2, 0] valid({{.*}}, %c3) : memref<6x2x16xbf16>, vector<16x8xbf16>
// CHECK: %[[S:.*]] = gdn_tile.load {{.*}} {streaming} : memref<2x2x16x32xbf16>, vector<16x32xbf16>
// CHECK: %[[KQ:.*]]:2 = gdn_tile.after_loads %[[K]], %[[Q]] :
// CHECK: %[[READ:.*]]:2 = gdn_tile.dot %[[S]] times(%[[KQ]]#0, %[[KQ]]#1) :
// CHECK: gdn_tile.dot %[[KQ]]#0 times(%[[KQ]]#0)
// CHECK: %[[U:.*]] = gdn_tile.tri_solve %{{.*}}, %{{.*}} {count = 3 : i64}
// CHECK: %[[P:.*]] = gdn_tile.dot %[[KQ]]#1 times(%[[KQ]]#0)
// CHECK: gdn_tile.dot %[[U]] times(
// CHECK: gdn_tile.store {{.*}} dims [2, 0] valid({{.*}}, %c3) : vector<16x8xbf16>, memref<6x2x16xbf16>
// CHECK: %[[DECAY:.*]] = math.exp2 %{{.*}} : vector<1x1xf32>
// CHECK: %[[NEXT:.*]] = gdn_tile.outer %{{.*}}, %[[KQ]]#0 acc(%[[S]]) scale(%[[DECAY]] : vector<1x1xf32>) : vector<16x8xf32>, vector<8x32xbf16>, vector<16x32xbf16>
// CHECK: gdn_tile.store %[[NEXT]], {{.*}} {streaming}
// CHECK-LABEL: func @eight(
func.func @eight(%q: memref<2x3x1x32xbf16>, %v: memref<2x3x2x16xbf16>, %g: memref<2x3x2xf32>, %o: memref<2x3x2x16xbf16>, %s: memref<2x2x16x32xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x32xbf16>, memref<2x3x1x32xbf16>, memref<2x3x2x16xbf16>)
      gate(%g : memref<2x3x2xf32>) beta(%g : memref<2x3x2xf32>) outs(%o, %s : memref<2x3x2x16xbf16>, memref<2x2x16x32xbf16>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16, streaming = true>}
  return
}

// -----

// Of float32 states, which are split in two for their products, up to four tokens have keys and queries in one operand.

// CHECK-LABEL: func @stacked_step
// CHECK-SAME: #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>
// CHECK: %[[S:.*]] = gdn_tile.load {{.*}} : memref<2x2x16x32xf32>, vector<16x32xf32>
// CHECK: %[[KQ:.*]]:2 = gdn_tile.after_loads
// Keys and queries in one operand: its product with itself has both, and what the queries read goes to their tokens
// with the product that adds the new values.
// CHECK: %[[TOKEN:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<1x8xi32>
// CHECK: %[[BOTH:.*]] = gdn_tile.stack %[[KQ]]#0, %[[KQ]]#1 :
// CHECK: %[[READ:.*]] = gdn_tile.dot %[[S]] times(%[[BOTH]]) :
// CHECK: %[[GROWN:.*]] = arith.mulf %[[READ]], %{{.*}} : vector<16x8xf32>
// CHECK: %[[G:.*]] = gdn_tile.dot %[[BOTH]] times(%[[BOTH]])
// CHECK: arith.subf %{{.*}}, %[[GROWN]]
// CHECK: %[[U:.*]] = gdn_tile.tri_solve %{{.*}}, %{{.*}} {count = 3 : i64}
// CHECK: %[[E:.*]] = arith.select {{.*}} : vector<8x8xi1>, vector<8x8xf32>
// CHECK: %[[P:.*]] = gdn_tile.dot %[[E]] times(%[[G]])
// CHECK: %[[DP:.*]] = arith.mulf %[[P]]
// CHECK: %[[RIGHT:.*]] = arith.select %{{.*}}, %[[DP]], %[[E]]
// CHECK: %[[LEFT:.*]] = arith.select %{{.*}}, %[[U]], %[[GROWN]]
// CHECK: %[[K0:.*]] = gdn_tile.stack %[[BOTH]], %{{.*}} :
// CHECK: gdn_tile.dot %[[LEFT]] times(%[[RIGHT]])
// CHECK: gdn_tile.store {{.*}} dims [2, 0] valid({{.*}}, %c3) : vector<16x8xbf16>, memref<6x2x16xbf16>
// CHECK: gdn_tile.outer %{{.*}}, %[[K0]] acc(%[[S]])
// CHECK-LABEL: func @stacked(
func.func @stacked(%q: memref<2x3x1x32xbf16>, %v: memref<2x3x2x16xbf16>, %g: memref<2x3x2xf32>, %o: memref<2x3x2x16xbf16>, %s: memref<2x2x16x32xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x32xbf16>, memref<2x3x1x32xbf16>, memref<2x3x2x16xbf16>)
      gate(%g : memref<2x3x2xf32>) beta(%g : memref<2x3x2xf32>) outs(%o, %s : memref<2x3x2x16xbf16>, memref<2x2x16x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

// CHECK-LABEL: func @five_step
// CHECK-NOT: gdn_tile.stack
// CHECK-LABEL: func @five(
func.func @five(%q: memref<2x5x1x32xbf16>, %v: memref<2x5x2x16xbf16>, %s: memref<2x2x16x32xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x5x1x32xbf16>, memref<2x5x1x32xbf16>, memref<2x5x2x16xbf16>)
      outs(%v, %s : memref<2x5x2x16xbf16>, memref<2x2x16x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

// New values enter a float32 state in two parts of TF32: two of bfloat16 would be what
// the state is stored as loses anyway, but a hundred times float32's own rounding.

// CHECK-LABEL: func @eight_float_step
// CHECK-SAME: #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>
// CHECK: gdn_tile.outer %{{.*}} acc(%{{.*}}) {exact} : vector<16x8xf32>, vector<8x32xbf16>, vector<16x32xf32>
// CHECK-LABEL: func @eight_float(
func.func @eight_float(%q: memref<2x3x1x32xbf16>, %v: memref<2x3x2x16xbf16>, %o: memref<2x3x2x16xbf16>, %s: memref<2x2x16x32xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x32xbf16>, memref<2x3x1x32xbf16>, memref<2x3x2x16xbf16>)
      outs(%o, %s : memref<2x3x2x16xbf16>, memref<2x2x16x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

// So they do where high precision is asked for; o may be float32 beside 16-bit inputs.

// CHECK-LABEL: func @eight_high_step
// CHECK: gdn_tile.store {{.*}} : vector<16x8xf32>, memref<6x2x16xf32>
// CHECK: gdn_tile.outer %{{.*}} acc(%{{.*}}) {exact} : vector<16x8xf32>, vector<8x32xbf16>, vector<16x32xbf16>
// CHECK-LABEL: func @eight_high(
func.func @eight_high(%q: memref<2x3x1x32xbf16>, %v: memref<2x3x2x16xbf16>, %o: memref<2x3x2x16xf32>, %s: memref<2x2x16x32xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x32xbf16>, memref<2x3x1x32xbf16>, memref<2x3x2x16xbf16>)
      outs(%o, %s : memref<2x3x2x16xf32>, memref<2x2x16x32xbf16>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16, precision = high>}
  return
}

// -----

// Packed sequences: as many chunks of eight as there are, the state float32 between.

// CHECK-LABEL: func @eights_step
// CHECK: %[[S0:.*]] = arith.extf %{{.*}} : vector<16x32xbf16> to vector<16x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %[[S0]]) -> (vector<16x32xf32>)
// CHECK:   arith.minsi %{{.*}}, %c8
// CHECK:   gdn_tile.dot %[[S]] times(
// CHECK:   gdn_tile.outer
// CHECK: arith.truncf
func.func @eights(%q: memref<1x?x1x32xbf16>, %v: memref<1x?x2x16xbf16>, %cu: memref<?xi32>, %o: memref<1x?x2x16xbf16>, %s: memref<?x2x16x32xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x?x1x32xbf16>, memref<1x?x1x32xbf16>, memref<1x?x2x16xbf16>)
      offsets(%cu : memref<?xi32>) outs(%o, %s : memref<1x?x2x16xbf16>, memref<?x2x16x32xbf16>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

func.func @eight_k_first(%q: memref<1x4x1x32xbf16>, %s: memref<1x1x32x32xf32>) {
  // expected-error @+1 {{step phases in chunks of 8 tokens need a v_first state; with another chunk they go token by token}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x32xbf16>, memref<1x4x1x32xbf16>, memref<1x4x1x32xbf16>)
      outs(%q, %s : memref<1x4x1x32xbf16>, memref<1x1x32x32xf32>)
      {state_layout = #gdn.state_layout<k_first>, schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

func.func @eight_channels(%q: memref<1x4x1x32xbf16>, %g: memref<1x4x1x32xf32>, %s: memref<1x1x32x32xf32>) {
  // expected-error @+1 {{step phases in chunks of 8 tokens need no gate and no erase per channel}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x32xbf16>, memref<1x4x1x32xbf16>, memref<1x4x1x32xbf16>)
      gate(%g : memref<1x4x1x32xf32>) outs(%q, %s : memref<1x4x1x32xbf16>, memref<1x1x32x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

func.func @eight_f32(%q: memref<1x4x1x32xf32>, %s: memref<1x1x32x32xf32>) {
  // expected-error @+1 {{step phases in chunks of 8 tokens need q, k and v of f16 or bf16}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x32xf32>, memref<1x4x1x32xf32>, memref<1x4x1x32xf32>)
      outs(%q, %s : memref<1x4x1x32xf32>, memref<1x1x32x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

func.func @eight_dynamic(%q: memref<1x?x1x32xbf16>, %s: memref<1x1x32x32xf32>, %c: memref<1x?x1x32x32xf32>) {
  // expected-error @+1 {{step phases in chunks of 8 tokens need a known number of tokens to store checkpoints}}
  gdn.recurrence ins(%q, %q, %q : memref<1x?x1x32xbf16>, memref<1x?x1x32xbf16>, memref<1x?x1x32xbf16>)
      outs(%q, %s : memref<1x?x1x32xbf16>, memref<1x1x32x32xf32>) checkpoints(%c : memref<1x?x1x32x32xf32>)
      {every = 1 : i64, schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}

// -----

func.func @eight_registers(%q: memref<1x4x1x256xbf16>, %s: memref<1x1x256x256xf32>) {
  // expected-error @+1 {{step phases in chunks of 8 tokens need a value_block that is a multiple of 16 and a state of at most 128 registers a thread, but value_block = 32 with K = 256 needs 256}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x256xbf16>, memref<1x4x1x256xbf16>, memref<1x4x1x256xbf16>)
      outs(%q, %s : memref<1x4x1x256xbf16>, memref<1x1x256x256xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 32>}
  return
}

// -----

// Products of 16-bit operands take 32 key channels at once: 20 have as many as 32.

// CHECK-LABEL: func @eight_narrow_step
// CHECK: gdn_tile.load %{{.*}} dims [0, 2] valid(%c3, %c20) : memref<6x1x20xbf16>, vector<8x32xbf16>
// CHECK: gdn_tile.load %{{.*}} dims [2, 3] valid({{.*}}, %c20) : memref<2x2x16x20xf32>, vector<16x32xf32>
func.func @eight_narrow(%q: memref<2x3x1x20xbf16>, %v: memref<2x3x2x16xbf16>, %s: memref<2x2x16x20xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x20xbf16>, memref<2x3x1x20xbf16>, memref<2x3x2x16xbf16>)
      outs(%v, %s : memref<2x3x2x16xbf16>, memref<2x2x16x20xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}
