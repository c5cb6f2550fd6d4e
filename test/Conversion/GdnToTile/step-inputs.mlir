// RUN: gdn-opt %s --pass-pipeline="builtin.module(convert-gdn-to-tile,canonicalize)" --split-input-file | FileCheck %s

// A step kernel normalises q and k, computes gates and applies elementwise
// arithmetic to beta itself: one launch, and no buffer between.

// CHECK-LABEL: func @fused_step(
// CHECK-SAME: %[[Q:arg[0-9]+]]: memref<?x1x16xbf16>, %[[K:arg[0-9]+]]: memref<?x1x16xbf16>, %{{arg[0-9]+}}: memref<?x2x8xbf16>,
// CHECK-SAME: %[[A:arg[0-9]+]]: memref<?x2xbf16>, %[[RATE:arg[0-9]+]]: memref<2xf32>, %[[BIAS:arg[0-9]+]]: memref<2xf32>, %[[B:arg[0-9]+]]: memref<?x2xbf16>
// CHECK: gdn_tile.load %[[K]]
// CHECK: gdn_tile.load %[[Q]]
// CHECK: %[[AT:.+]] = memref.load %[[A]]
// CHECK: %[[BT:.+]] = memref.load %[[B]]
// CHECK: memref.load %[[RATE]]
// CHECK: memref.load %[[BIAS]]
// CHECK: gdn_tile.after_loads
// CHECK: gdn_tile.sum %{{.+}} : vector<1x16xf32> to vector<1x1xf32>
// CHECK: math.rsqrt
// CHECK: math.rsqrt
// CHECK: arith.extf %[[AT]]
// CHECK: %[[BF:.+]] = arith.extf %[[BT]]
// CHECK: arith.negf %[[BF]]
// CHECK-LABEL: func @fused(
// CHECK-NOT: memref.alloc
// CHECK: gdn_tile.launch @fused_step grid
// CHECK-NOT: gdn_tile.launch
// CHECK-NOT: linalg
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @fused(%q: memref<?x1x1x16xbf16>, %k: memref<?x1x1x16xbf16>, %v: memref<?x1x2x8xbf16>, %a: memref<?x1x2xbf16>,
                 %rate: memref<2xf32>, %bias: memref<2xf32>, %b: memref<?x1x2xbf16>, %o: memref<?x1x2x8xbf16>,
                 %s: memref<?x2x8x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %q, %c0 : memref<?x1x1x16xbf16>
  %qn = memref.alloc(%n) : memref<?x1x1x16xbf16>
  gdn.l2norm ins(%q : memref<?x1x1x16xbf16>) outs(%qn : memref<?x1x1x16xbf16>)
  %kn = memref.alloc(%n) : memref<?x1x1x16xbf16>
  gdn.l2norm ins(%k : memref<?x1x1x16xbf16>) outs(%kn : memref<?x1x1x16xbf16>)
  %g = memref.alloc(%n) : memref<?x1x2xf32>
  gdn.gate ins(%a, %rate : memref<?x1x2xbf16>, memref<2xf32>) bias(%bias : memref<2xf32>) outs(%g : memref<?x1x2xf32>)
  %beta = memref.alloc(%n) : memref<?x1x2xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : memref<?x1x2xbf16>) outs(%beta : memref<?x1x2xf32>) {
  ^bb0(%e: bf16, %old: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  }
  gdn.recurrence ins(%qn, %kn, %v : memref<?x1x1x16xbf16>, memref<?x1x1x16xbf16>, memref<?x1x2x8xbf16>)
      gate(%g : memref<?x1x2xf32>) beta(%beta : memref<?x1x2xf32>) outs(%o, %s : memref<?x1x2x8xbf16>, memref<?x2x8x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// What something else reads too keeps its kernel, and in prefill the norm of k
// with that of q.

// CHECK-LABEL: func @kept(
// CHECK: gdn_tile.launch @kept_l2norm grid
// CHECK: gdn_tile.launch @kept_step grid
// CHECK: gdn_tile.launch @kept_l2norm_0 grid
// CHECK: gdn_tile.launch @kept_prepare grid
func.func @kept(%q: memref<2x1x1x16xbf16>, %k: memref<2x1x1x16xbf16>, %v: memref<2x1x2x8xbf16>, %o: memref<2x1x2x8xbf16>,
                %s: memref<2x2x8x16xf32>, %p: memref<2x1x2x8xbf16>, %t: memref<2x2x8x16xf32>) {
  %qn = memref.alloc() : memref<2x1x1x16xbf16>
  gdn.l2norm ins(%q : memref<2x1x1x16xbf16>) outs(%qn : memref<2x1x1x16xbf16>)
  gdn.recurrence ins(%qn, %k, %v : memref<2x1x1x16xbf16>, memref<2x1x1x16xbf16>, memref<2x1x2x8xbf16>)
      outs(%o, %s : memref<2x1x2x8xbf16>, memref<2x2x8x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  %kn = memref.alloc() : memref<2x1x1x16xbf16>
  gdn.l2norm ins(%k : memref<2x1x1x16xbf16>) outs(%kn : memref<2x1x1x16xbf16>)
  gdn.recurrence ins(%qn, %kn, %v : memref<2x1x1x16xbf16>, memref<2x1x1x16xbf16>, memref<2x1x2x8xbf16>)
      outs(%p, %t : memref<2x1x2x8xbf16>, memref<2x2x8x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// One normalisation that serves both keeps its kernel.

// CHECK-LABEL: func @shared_norm(
// CHECK: gdn_tile.launch @shared_norm_l2norm grid
// CHECK: gdn_tile.launch @shared_norm_step grid
func.func @shared_norm(%q: memref<2x1x1x16xbf16>, %v: memref<2x1x2x8xbf16>, %o: memref<2x1x2x8xbf16>, %s: memref<2x2x8x16xf32>) {
  %qn = memref.alloc() : memref<2x1x1x16xbf16>
  gdn.l2norm ins(%q : memref<2x1x1x16xbf16>) outs(%qn : memref<2x1x1x16xbf16>)
  gdn.recurrence ins(%qn, %qn, %v : memref<2x1x1x16xbf16>, memref<2x1x1x16xbf16>, memref<2x1x2x8xbf16>)
      outs(%o, %s : memref<2x1x2x8xbf16>, memref<2x2x8x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// Eight tokens at a time: norms are factors of the products, whose squares are
// a diagonal, and tokens behind the end keep the gate 0.

// CHECK-LABEL: func @eights_step(
// CHECK-COUNT-2: gdn_tile.load {{.*}} vector<8x32xbf16>
// CHECK: %[[COUNT:.+]] = gdn_tile.iota : vector<1x8xi32>
// CHECK: arith.cmpi slt, %[[COUNT]], %{{.+}} : vector<1x8xi32>
// CHECK: arith.negf
// CHECK: %[[SQUARES:.+]] = gdn_tile.dot %[[KEYS:[0-9]+]]{{.*}} : vector<8x32xbf16>
// CHECK: arith.select %{{.+}}, %[[SQUARES]]
// CHECK: math.rsqrt {{.*}} : vector<1x8xf32>
// CHECK: math.rsqrt {{.*}} : vector<8x1xf32>
// CHECK-LABEL: func @eights(
// CHECK-NOT: memref.alloc
// CHECK: gdn_tile.launch @eights_step grid
// CHECK-NOT: gdn_tile.launch
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @eights(%q: memref<?x4x1x32xbf16>, %k: memref<?x4x1x32xbf16>, %v: memref<?x4x2x16xbf16>, %a: memref<?x4x2xbf16>,
                  %rate: memref<2xf32>, %bias: memref<2xf32>, %b: memref<?x4x2xbf16>, %o: memref<?x4x2x16xbf16>,
                  %s: memref<?x2x16x32xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %q, %c0 : memref<?x4x1x32xbf16>
  %qn = memref.alloc(%n) : memref<?x4x1x32xbf16>
  gdn.l2norm ins(%q : memref<?x4x1x32xbf16>) outs(%qn : memref<?x4x1x32xbf16>)
  %kn = memref.alloc(%n) : memref<?x4x1x32xbf16>
  gdn.l2norm ins(%k : memref<?x4x1x32xbf16>) outs(%kn : memref<?x4x1x32xbf16>)
  %g = memref.alloc(%n) : memref<?x4x2xf32>
  gdn.gate ins(%a, %rate : memref<?x4x2xbf16>, memref<2xf32>) bias(%bias : memref<2xf32>) outs(%g : memref<?x4x2xf32>)
  %beta = memref.alloc(%n) : memref<?x4x2xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b : memref<?x4x2xbf16>) outs(%beta : memref<?x4x2xf32>) {
  ^bb0(%e: bf16, %old: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  }
  gdn.recurrence ins(%qn, %kn, %v : memref<?x4x1x32xbf16>, memref<?x4x1x32xbf16>, memref<?x4x2x16xbf16>)
      gate(%g : memref<?x4x2xf32>) beta(%beta : memref<?x4x2xf32>) outs(%o, %s : memref<?x4x2x16xbf16>, memref<?x2x16x32xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>}
  return
}
