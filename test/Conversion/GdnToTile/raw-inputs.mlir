// RUN: gdn-opt %s --gdn-to-tile=target=sm_90a -split-input-file | FileCheck %s

// The prefill of a layer: prepare normalises q and k, and makes gates and betas, of what it loads. Two launches, and no
// buffer but the workspaces.

// CHECK-LABEL: func @layer_prepare(
// CHECK-SAME: %[[Q:arg[0-9]+]]: memref<256x1x64xbf16>, %[[K:arg[0-9]+]]: memref<256x1x64xbf16>, %[[A:arg[0-9]+]]: memref<256x2xbf16>, %[[RATE:arg[0-9]+]]: memref<2xf32>, %[[BIAS:arg[0-9]+]]: memref<2xf32>, %[[B:arg[0-9]+]]: memref<256x2xbf16>
// CHECK-COUNT-2: gdn_tile.copy_in
// CHECK-NOT: gdn_tile.copy_in
// Gates of all heads of the block; tokens behind the end have none.
// CHECK: %[[RAW:.*]] = gdn_tile.load %[[A]]{{.*}} valid(%{{.*}}, %c2) : memref<256x2xbf16>, vector<64x8xbf16>
// CHECK: gdn_tile.load %[[RATE]]
// CHECK: gdn_tile.load %[[BIAS]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[RAW]]
// CHECK: math.exp2
// CHECK: %[[IS:.*]] = arith.cmpi slt, {{.*}} : vector<64x1xi32>
// CHECK: %[[ALL:.*]] = vector.broadcast %[[IS]] : vector<64x1xi1> to vector<64x8xi1>
// CHECK: %[[GATES:.*]] = arith.select %[[ALL]], %{{.*}}, %{{.*}} : vector<64x8xi1>, vector<64x8xf32>
// CHECK: gdn_tile.store %[[GATES]], %[[G:.*]][%c0, %c0]
// CHECK: %[[LOGITS:.*]] = gdn_tile.load %[[B]]{{.*}} vector<64x8xbf16>
// CHECK: arith.extf %[[LOGITS]]
// CHECK: arith.negf
// The factors of the keys and of the queries.
// CHECK: %[[ROWS:.*]] = gdn_tile.load %{{.*}} vector<64x64xbf16>
// CHECK: %[[KS:.*]] = gdn_tile.sum_squares %[[ROWS]] :
// CHECK: %[[QS:.*]] = gdn_tile.sum_squares %{{.*}} : vector<64x64xbf16> to vector<64x1xf32>
// CHECK: arith.addf %[[KS]]
// CHECK: %[[KF:.*]] = math.rsqrt {{.*}} : vector<64x1xf32>
// CHECK: gdn_tile.store %[[KF]], %[[KEYS:.*]][%c0]
// CHECK: arith.addf %[[QS]]
// CHECK: %[[QF:.*]] = math.rsqrt {{.*}} : vector<64x1xf32>
// CHECK: gdn_tile.store %[[QF]], %[[QUERIES:.*]][%c0]
// The products are of the raw tiles.
// CHECK: gdn_tile.load %[[QUERIES]]{{.*}} vector<1x64xf32>
// CHECK: gdn_tile.mma %[[ROWS]]
// CHECK: gdn_tile.mma %[[ROWS]]
// CHECK: gdn_tile.load %[[KEYS]]{{.*}} vector<1x64xf32>
// CHECK: arith.select
// CHECK: vector.broadcast %[[KF]]
// CHECK: gdn_tile.each_warp
// CHECK: gdn_tile.cumsum %{{.*}} of %[[G]] column
// CHECK: gdn_tile.decays %{{.*}} times %{{.*}} keys %[[KEYS]] queries %[[QUERIES]] to %{{.*}} : {{.*}} to memref<200xf32
// CHECK-LABEL: func @layer_scan(
// exp(G_C) stands behind the rows; the second part of P has the factors of the queries.
// CHECK: memref.load %{{.*}}[%c192] : memref<272xf32
// CHECK: gdn_tile.refine {{.*}} count 264 scale 64 {beta = 200 : i64, factor = {{.*}} : f64, grown = 0 : i64, scaled = 128 : i64}
// CHECK-LABEL: func @layer(
// CHECK-NOT: linalg
// CHECK: gdn_tile.launch @layer_prepare grid
// CHECK-NOT: gdn_tile.launch
// CHECK: gdn_tile.launch @layer_scan grid
// CHECK-NOT: gdn_tile.launch
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @layer(%q: tensor<1x256x1x64xbf16>, %k: tensor<1x256x1x64xbf16>, %v: tensor<1x256x2x64xbf16>,
    %a: tensor<1x256x2xbf16>, %rate: tensor<2xf32>, %bias: tensor<2xf32>, %b: tensor<1x256x2xbf16>,
    %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %e = tensor.empty() : tensor<1x256x1x64xbf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) -> tensor<1x256x1x64xbf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) -> tensor<1x256x1x64xbf16>
  %ge = tensor.empty() : tensor<1x256x2xf32>
  %g = gdn.gate ins(%a, %rate : tensor<1x256x2xbf16>, tensor<2xf32>) bias(%bias : tensor<2xf32>) outs(%ge : tensor<1x256x2xf32>) -> tensor<1x256x2xf32>
  %beta = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : tensor<1x256x2xbf16>) outs(%ge : tensor<1x256x2xf32>) {
  ^bb0(%x: bf16, %old: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x256x2xf32>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x1x64xbf16>, tensor<1x256x1x64xbf16>, tensor<1x256x2x64xbf16>)
      gate(%g : tensor<1x256x2xf32>) beta(%beta : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// -----

// Where P is made beside the scan, prepare reads no q: what makes P makes the factors of the queries too, and they
// multiply outputs. Without gates the rows are those of gates that are 0.

// CHECK-LABEL: func @ahead_prepare_inverse(
// CHECK-SAME: %arg0: memref<256x2x64xbf16>, %arg1: memref<256x2xf32>
// CHECK: %[[KEYS:.*]] = memref.alloc() : memref<2x64xf32
// CHECK: gdn_tile.each_warp
// CHECK: gdn_tile.decays %{{.*}} times %{{.*}} keys %{{.*}} to %{{.*}} : {{.*}} to memref<200xf32
// CHECK-LABEL: func @ahead_scan(
// CHECK: gdn_tile.ahead teams(1) {
// CHECK: gdn_tile.sum {{.*}} : vector<64x32xf32> to vector<64x1xf32>
// CHECK: %[[QF:.*]] = math.rsqrt {{.*}} : vector<64x1xf32>
// CHECK: gdn_tile.store %[[QF]], %[[QUERIES:.*]][%c0]
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.refine {{.*}} {beta = 200 : i64, factor = {{.*}} : f64, grown = 128 : i64}
// CHECK: %[[ROW:.*]] = gdn_tile.load %[[QUERIES]]{{.*}} vector<1x64xf32>
// CHECK: %[[ALL:.*]] = vector.broadcast %[[ROW]]
// CHECK: %[[OUT:.*]] = arith.mulf %{{.*}}, %[[ALL]]
// CHECK: arith.truncf %[[OUT]]
// CHECK-LABEL: func @ahead(
func.func @ahead(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x2x128xbf16>, %b: tensor<1x256x2xf32>,
    %o: tensor<1x256x2x128xbf16>, %s: tensor<1x2x128x64xf32>) -> (tensor<1x256x2x128xbf16>, tensor<1x2x128x64xf32>) {
  %e = tensor.empty() : tensor<1x256x2x64xbf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x2x64xbf16>) outs(%e : tensor<1x256x2x64xbf16>) -> tensor<1x256x2x64xbf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x2x64xbf16>) outs(%e : tensor<1x256x2x64xbf16>) -> tensor<1x256x2x64xbf16>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x128xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x128xbf16>, tensor<1x2x128x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 2, scores_ahead = true>}
      -> tensor<1x256x2x128xbf16>, tensor<1x2x128x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x128xbf16>, tensor<1x2x128x64xf32>
}

// -----

// With gates per channel their kernel stays, which prepare adds up while it copies them; q and k are normalised by factors
// of the copies with decays.

// CHECK-LABEL: func @channels_prepare(
// CHECK-COUNT-2: gdn_tile.sum_squares
// CHECK: gdn_tile.scores
// CHECK-LABEL: func @channels(
// CHECK-NOT: l2norm
// CHECK: gdn_tile.launch @channels_gate grid
// CHECK: gdn_tile.launch @channels_prepare grid
func.func @channels(%q: tensor<1x256x2x64xf16>, %k: tensor<1x256x2x64xf16>, %v: tensor<1x256x2x64xf16>,
    %a: tensor<1x256x2x64xf32>, %rate: tensor<2xf32>, %o: tensor<1x256x2x64xf16>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>) {
  %e = tensor.empty() : tensor<1x256x2x64xf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x2x64xf16>) outs(%e : tensor<1x256x2x64xf16>) -> tensor<1x256x2x64xf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x2x64xf16>) outs(%e : tensor<1x256x2x64xf16>) -> tensor<1x256x2x64xf16>
  %ge = tensor.empty() : tensor<1x256x2x64xf32>
  %g = gdn.gate ins(%a, %rate : tensor<1x256x2x64xf32>, tensor<2xf32>) outs(%ge : tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xf32>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x2x64xf16>, tensor<1x256x2x64xf16>, tensor<1x256x2x64xf16>)
      gate(%g : tensor<1x256x2x64xf32>) outs(%o, %s : tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>
}

// -----

// f16 has no range for what the scan rounds beside raw keys: only gates are made in prepare. Fused, all kernels stay.

// CHECK-LABEL: func @half(
// CHECK: gdn_tile.launch @half_l2norm grid
// CHECK: gdn_tile.launch @half_l2norm_0 grid
// CHECK-NOT: gdn_tile.launch @half_gate
// CHECK: gdn_tile.launch @half_prepare grid
func.func @half(%q: tensor<1x256x1x64xf16>, %k: tensor<1x256x1x64xf16>, %v: tensor<1x256x2x64xf16>,
    %a: tensor<1x256x2xf16>, %rate: tensor<2xf32>, %o: tensor<1x256x2x64xf16>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>) {
  %e = tensor.empty() : tensor<1x256x1x64xf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x1x64xf16>) outs(%e : tensor<1x256x1x64xf16>) -> tensor<1x256x1x64xf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x1x64xf16>) outs(%e : tensor<1x256x1x64xf16>) -> tensor<1x256x1x64xf16>
  %ge = tensor.empty() : tensor<1x256x2xf32>
  %g = gdn.gate ins(%a, %rate : tensor<1x256x2xf16>, tensor<2xf32>) outs(%ge : tensor<1x256x2xf32>) -> tensor<1x256x2xf32>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x1x64xf16>, tensor<1x256x1x64xf16>, tensor<1x256x2x64xf16>)
      gate(%g : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xf16>, tensor<1x2x64x64xf32>
}

// -----

// Without eps the factor of a token behind the end, of zeros, would be infinite.

// CHECK-LABEL: func @no_eps(
// CHECK: gdn_tile.launch @no_eps_l2norm grid
// CHECK: gdn_tile.launch @no_eps_l2norm_0 grid
// CHECK: gdn_tile.launch @no_eps_prepare grid
func.func @no_eps(%q: tensor<1x256x1x64xbf16>, %k: tensor<1x256x1x64xbf16>, %v: tensor<1x256x2x64xbf16>, %b: tensor<1x256x2xf32>,
    %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %e = tensor.empty() : tensor<1x256x1x64xbf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) -> tensor<1x256x1x64xbf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) {eps = 0.0} -> tensor<1x256x1x64xbf16>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x1x64xbf16>, tensor<1x256x1x64xbf16>, tensor<1x256x2x64xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// -----

// CHECK-LABEL: func @fused(
// CHECK: gdn_tile.launch @fused_l2norm grid
// CHECK: gdn_tile.launch @fused_scan grid
func.func @fused(%q: tensor<1x256x1x64xbf16>, %k: tensor<1x256x1x64xbf16>, %v: tensor<1x256x2x64xbf16>, %b: tensor<1x256x2xf32>,
    %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %e = tensor.empty() : tensor<1x256x1x64xbf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) -> tensor<1x256x1x64xbf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x1x64xbf16>) outs(%e : tensor<1x256x1x64xbf16>) -> tensor<1x256x1x64xbf16>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x1x64xbf16>, tensor<1x256x1x64xbf16>, tensor<1x256x2x64xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// -----

// The result takes the place of raw queries, of which a block of rows writes what another one still reads: their norm stays.

// CHECK-LABEL: func @in_place(
// CHECK: gdn_tile.launch @in_place_l2norm grid
// CHECK: gdn_tile.launch @in_place_l2norm_0 grid
// CHECK: gdn_tile.launch @in_place_prepare grid
func.func @in_place(%q: tensor<1x256x2x128xbf16>, %k: tensor<1x256x2x128xbf16>, %v: tensor<1x256x2x128xbf16>, %b: tensor<1x256x2xf32>,
    %s: tensor<1x2x128x128xf32>) -> (tensor<1x256x2x128xbf16>, tensor<1x2x128x128xf32>) {
  %e = tensor.empty() : tensor<1x256x2x128xbf16>
  %qn = gdn.l2norm ins(%q : tensor<1x256x2x128xbf16>) outs(%e : tensor<1x256x2x128xbf16>) -> tensor<1x256x2x128xbf16>
  %kn = gdn.l2norm ins(%k : tensor<1x256x2x128xbf16>) outs(%e : tensor<1x256x2x128xbf16>) -> tensor<1x256x2x128xbf16>
  %0:2 = gdn.recurrence ins(%qn, %kn, %v : tensor<1x256x2x128xbf16>, tensor<1x256x2x128xbf16>, tensor<1x256x2x128xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%q, %s : tensor<1x256x2x128xbf16>, tensor<1x2x128x128xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x128xbf16>, tensor<1x2x128x128xf32>
  return %0#0, %0#1 : tensor<1x256x2x128xbf16>, tensor<1x2x128x128xf32>
}
