// RUN: gdn-opt %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func @gated_delta_rule
// CHECK: gdn.recurrence ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, tensor<1x?x4x32xbf16>)
// CHECK-SAME: gate(%{{.*}} : tensor<1x?x4xf32>) beta(%{{.*}} : tensor<1x?x4xf32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<1x?x4x32xbf16>, tensor<1x4x32x16xf32>)
// CHECK-SAME: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 32, stages = 2>
func.func @gated_delta_rule(
    %q: tensor<1x?x2x16xbf16>, %k: tensor<1x?x2x16xbf16>, %v: tensor<1x?x4x32xbf16>,
    %g: tensor<1x?x4xf32>, %b: tensor<1x?x4xf32>,
    %o: tensor<1x?x4x32xbf16>, %s: tensor<1x4x32x16xf32>)
    -> (tensor<1x?x4x32xbf16>, tensor<1x4x32x16xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, tensor<1x?x4x32xbf16>)
      gate(%g : tensor<1x?x4xf32>) beta(%b : tensor<1x?x4xf32>)
      outs(%o, %s : tensor<1x?x4x32xbf16>, tensor<1x4x32x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 32, stages = 2>}
      -> tensor<1x?x4x32xbf16>, tensor<1x4x32x16xf32>
  return %0#0, %0#1 : tensor<1x?x4x32xbf16>, tensor<1x4x32x16xf32>
}

// CHECK-LABEL: func @gated_delta_net_2
// CHECK: gdn.recurrence
// CHECK-SAME: gate(%{{.*}} : memref<1x9x2x8xf32>) erase(%{{.*}} : memref<1x9x2x8xf32>) write(%{{.*}} : memref<1x9x2x4xf32>)
// CHECK-SAME: offsets(%{{.*}} : memref<3xi32>)
// CHECK-SAME: {scale = 5.000000e-01 : f64, state_layout = #gdn.state_layout<k_first>}
func.func @gated_delta_net_2(
    %q: memref<1x9x1x8xf32>, %v: memref<1x9x2x4xf32>, %g: memref<1x9x2x8xf32>,
    %w: memref<1x9x2x4xf32>, %cu: memref<3xi32>, %s: memref<2x2x8x4xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x9x1x8xf32>, memref<1x9x1x8xf32>, memref<1x9x2x4xf32>)
      gate(%g : memref<1x9x2x8xf32>) erase(%g : memref<1x9x2x8xf32>) write(%w : memref<1x9x2x4xf32>)
      offsets(%cu : memref<3xi32>) outs(%v, %s : memref<1x9x2x4xf32>, memref<2x2x8x4xf32>)
      {scale = 0.5, state_layout = #gdn.state_layout<k_first>}
  return
}

// A pool of 40 states.
// CHECK-LABEL: func @pool
// CHECK: gdn.recurrence
// CHECK-SAME: offsets(%{{.*}} : tensor<3xi32>) slots(%{{.*}} : tensor<2xi64>) outs(%{{.*}}, %{{.*}} : tensor<1x9x2x4xf32>, tensor<40x2x4x8xf32>)
func.func @pool(
    %q: tensor<1x9x1x8xf32>, %v: tensor<1x9x2x4xf32>, %cu: tensor<3xi32>, %at: tensor<2xi64>, %s: tensor<40x2x4x8xf32>)
    -> (tensor<1x9x2x4xf32>, tensor<40x2x4x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x9x1x8xf32>, tensor<1x9x1x8xf32>, tensor<1x9x2x4xf32>)
      offsets(%cu : tensor<3xi32>) slots(%at : tensor<2xi64>) outs(%v, %s : tensor<1x9x2x4xf32>, tensor<40x2x4x8xf32>)
      -> tensor<1x9x2x4xf32>, tensor<40x2x4x8xf32>
  return %0#0, %0#1 : tensor<1x9x2x4xf32>, tensor<40x2x4x8xf32>
}

// Verify: the pool is only read, the state behind each token goes to checkpoints.
// CHECK-LABEL: func @verify
// CHECK: gdn.recurrence
// CHECK-SAME: slots(%{{.*}} : memref<2xi32>) initial(%{{.*}} : memref<9x2x4x8xf32>) outs(%{{.*}} : memref<2x3x2x4xf32>) checkpoints(%{{.*}} : memref<2x3x2x4x8xbf16>) {every = 1 : i64}
func.func @verify(
    %q: memref<2x3x1x8xf32>, %v: memref<2x3x2x4xf32>, %at: memref<2xi32>, %s: memref<9x2x4x8xf32>, %c: memref<2x3x2x4x8xbf16>) {
  gdn.recurrence ins(%q, %q, %v : memref<2x3x1x8xf32>, memref<2x3x1x8xf32>, memref<2x3x2x4xf32>)
      slots(%at : memref<2xi32>) initial(%s : memref<9x2x4x8xf32>) outs(%v : memref<2x3x2x4xf32>)
      checkpoints(%c : memref<2x3x2x4x8xbf16>) {every = 1 : i64}
  return
}

// CHECK-LABEL: func @prefill_with_checkpoints
// CHECK: %{{.*}}:3 = gdn.recurrence {{.*}} outs(%{{.*}}, %{{.*}} : tensor<1x?x2x4xf32>, tensor<?x2x8x4xf32>) checkpoints(%{{.*}} : tensor<1x?x2x8x4xf32>) {every = 64 : i64, state_layout = #gdn.state_layout<k_first>} -> tensor<1x?x2x4xf32>, tensor<?x2x8x4xf32>, tensor<1x?x2x8x4xf32>
func.func @prefill_with_checkpoints(
    %q: tensor<1x?x1x8xf32>, %v: tensor<1x?x2x4xf32>, %cu: tensor<?xi32>, %s: tensor<?x2x8x4xf32>, %c: tensor<1x?x2x8x4xf32>)
    -> tensor<1x?x2x8x4xf32> {
  %0:3 = gdn.recurrence ins(%q, %q, %v : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x2x4xf32>)
      offsets(%cu : tensor<?xi32>) outs(%v, %s : tensor<1x?x2x4xf32>, tensor<?x2x8x4xf32>)
      checkpoints(%c : tensor<1x?x2x8x4xf32>) {every = 64 : i64, state_layout = #gdn.state_layout<k_first>}
      -> tensor<1x?x2x4xf32>, tensor<?x2x8x4xf32>, tensor<1x?x2x8x4xf32>
  return %0#2 : tensor<1x?x2x8x4xf32>
}

// CHECK-LABEL: func @mixer
// CHECK: gdn.l2norm ins(%{{.*}} : tensor<2x5x2x16xbf16>) outs(%{{.*}} : tensor<2x5x2x16xbf16>) -> tensor<2x5x2x16xbf16>
// CHECK: gdn.gate ins(%{{.*}}, %{{.*}} : tensor<2x5x4xbf16>, tensor<4xf32>) bias(%{{.*}} : tensor<4xf32>) outs(%{{.*}} : tensor<2x5x4xf32>) {lower_bound = -5.000000e+00 : f64} -> tensor<2x5x4xf32>
// CHECK: gdn.short_conv ins(%{{.*}}, %{{.*}} : tensor<2x5x8xbf16>, tensor<8x4xbf16>) outs(%{{.*}}, %{{.*}} : tensor<2x5x8xbf16>, tensor<2x8x4xbf16>) {activation = #gdn.activation<silu>} -> tensor<2x5x8xbf16>, tensor<2x8x4xbf16>
// CHECK: gdn.gated_rms_norm ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x5x2x16xbf16>, tensor<2x5x2x16xbf16>, tensor<16xf32>) outs(%{{.*}} : tensor<2x5x2x16xbf16>) {eps = 1.000000e-05 : f64} -> tensor<2x5x2x16xbf16>
func.func @mixer(%x: tensor<2x5x2x16xbf16>, %a: tensor<2x5x4xbf16>, %A: tensor<4xf32>, %dt: tensor<4xf32>,
    %g: tensor<2x5x4xf32>, %c: tensor<2x5x8xbf16>, %w: tensor<8x4xbf16>, %cs: tensor<2x8x4xbf16>,
    %rw: tensor<16xf32>) {
  %0 = gdn.l2norm ins(%x : tensor<2x5x2x16xbf16>) outs(%x : tensor<2x5x2x16xbf16>) -> tensor<2x5x2x16xbf16>
  %1 = gdn.gate ins(%a, %A : tensor<2x5x4xbf16>, tensor<4xf32>) bias(%dt : tensor<4xf32>)
      outs(%g : tensor<2x5x4xf32>) {lower_bound = -5.0} -> tensor<2x5x4xf32>
  %2:2 = gdn.short_conv ins(%c, %w : tensor<2x5x8xbf16>, tensor<8x4xbf16>)
      outs(%c, %cs : tensor<2x5x8xbf16>, tensor<2x8x4xbf16>) {activation = #gdn.activation<silu>}
      -> tensor<2x5x8xbf16>, tensor<2x8x4xbf16>
  %3 = gdn.gated_rms_norm ins(%x, %0, %rw : tensor<2x5x2x16xbf16>, tensor<2x5x2x16xbf16>, tensor<16xf32>)
      outs(%x : tensor<2x5x2x16xbf16>) {eps = 1.0e-5} -> tensor<2x5x2x16xbf16>
  return
}

// CHECK-LABEL: func @chunk
// CHECK: gdn.cumsum ins(%{{.*}} : tensor<16xf32>) outs(%{{.*}} : tensor<16xf32>) -> tensor<16xf32>
// CHECK: gdn.scores ins(%{{.*}}, %{{.*}} : tensor<16x8xbf16>, tensor<16x8xbf16>) gate(%{{.*}} : tensor<16xf32>) outs(%{{.*}} : tensor<16x16xf32>) {strict} -> tensor<16x16xf32>
// CHECK: gdn.tri_inverse ins(%{{.*}} : tensor<16x16xf32>) outs(%{{.*}} : tensor<16x16xf32>) -> tensor<16x16xf32>
func.func @chunk(%g: tensor<16xf32>, %x: tensor<16x8xbf16>, %m: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = gdn.cumsum ins(%g : tensor<16xf32>) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  %1 = gdn.scores ins(%x, %x : tensor<16x8xbf16>, tensor<16x8xbf16>) gate(%0 : tensor<16xf32>)
      outs(%m : tensor<16x16xf32>) {strict} -> tensor<16x16xf32>
  %2 = gdn.tri_inverse ins(%1 : tensor<16x16xf32>) outs(%m : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// Fields of a schedule in any order, those with a default left out.

// CHECK-LABEL: func @segmented
// CHECK: schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 32, segments = 8>
// CHECK: schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 32, stages = 3, segments = 8, segment_chunks = 4>
// CHECK: schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 32, wide_from = 133, scores_ahead = true, resident_from = 7>
func.func @segmented(%q: memref<1x9x1x16xf32>, %o: memref<1x9x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xf32>, memref<1x9x1x16xf32>, memref<1x9x1x16xf32>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<segments = 8, phases = segmented, chunk = 16, value_block = 32>}
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xf32>, memref<1x9x1x16xf32>, memref<1x9x1x16xf32>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 32, stages = 3, segments = 8, segment_chunks = 4>}
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xf32>, memref<1x9x1x16xf32>, memref<1x9x1x16xf32>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<wide_from = 133, resident_from = 7, scores_ahead = true, phases = split, chunk = 16, value_block = 32>}
  return
}

// Precision alone leaves the rest to gdn-select-schedule; o of float32 beside 16-bit inputs.

// CHECK-LABEL: func @high
// CHECK: outs(%{{.*}}, %{{.*}} : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>)
// CHECK-SAME: schedule = #gdn.schedule<precision = high>
// CHECK: schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, precision = high>
// CHECK: schedule = #gdn.schedule<>
func.func @high(%q: memref<1x9x1x16xbf16>, %o: memref<1x9x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>) {schedule = #gdn.schedule<precision = high>}
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<precision = high, phases = split, chunk = 16, value_block = 16>}
  gdn.recurrence ins(%q, %q, %q : memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>, memref<1x9x1x16xbf16>)
      outs(%o, %s : memref<1x9x1x16xf32>, memref<1x1x16x16xf32>) {schedule = #gdn.schedule<precision = default>}
  return
}
