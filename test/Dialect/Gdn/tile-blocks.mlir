// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-tile-blocks),canonicalize,cse)" --split-input-file --verify-diagnostics | FileCheck %s

// V = 40 in blocks of 16: two blocks, then one of 8.
// CHECK-LABEL: func @rest
//       CHECK: %[[A:[a-z0-9_]+]]:2 = scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) = (0, 0, 0) to (2, 4, 32) step (1, 1, 16)
//       CHECK:   gdn.recurrence ins(%{{.+}} : tensor<1x24x1x8xbf16>, tensor<1x24x1x8xbf16>, tensor<1x24x1x16xbf16>)
//  CHECK-SAME:     outs(%{{.+}} : tensor<1x24x1x16xbf16>, tensor<1x1x16x8xf32>)
//       CHECK: %[[O1:[a-z0-9_]+]] = tensor.insert_slice %[[A]]#0 into %{{.+}}[0, 0, 0, 0] [2, 24, 4, 32]
//       CHECK: %[[S1:[a-z0-9_]+]] = tensor.insert_slice %[[A]]#1 into %{{.+}}[0, 0, 0, 0] [2, 4, 32, 8]
//       CHECK: %[[O2:[a-z0-9_]+]] = tensor.extract_slice %[[O1]][0, 0, 0, 32] [2, 24, 4, 8]
//       CHECK: %[[S2:[a-z0-9_]+]] = tensor.extract_slice %[[S1]][0, 0, 32, 0] [2, 4, 8, 8]
//       CHECK: %[[B:[a-z0-9_]+]]:2 = scf.forall (%{{.+}}, %{{.+}}) in (2, 4) shared_outs(%{{.+}} = %[[O2]], %{{.+}} = %[[S2]])
//       CHECK:   gdn.recurrence ins(%{{.+}} : tensor<1x24x1x8xbf16>, tensor<1x24x1x8xbf16>, tensor<1x24x1x8xbf16>)
//  CHECK-SAME:     outs(%{{.+}} : tensor<1x24x1x8xbf16>, tensor<1x1x8x8xf32>)
//       CHECK: tensor.insert_slice %[[B]]#0 into %[[O1]][0, 0, 0, 32] [2, 24, 4, 8]
//       CHECK: tensor.insert_slice %[[B]]#1 into %[[S1]][0, 0, 32, 0] [2, 4, 8, 8]
func.func @rest(%q: tensor<2x24x2x8xbf16>, %v: tensor<2x24x4x40xbf16>, %o: tensor<2x24x4x40xbf16>, %s: tensor<2x4x40x8xf32>)
    -> (tensor<2x24x4x40xbf16>, tensor<2x4x40x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<2x24x2x8xbf16>, tensor<2x24x2x8xbf16>, tensor<2x24x4x40xbf16>)
      outs(%o, %s : tensor<2x24x4x40xbf16>, tensor<2x4x40x8xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 16>}
      -> tensor<2x24x4x40xbf16>, tensor<2x4x40x8xf32>
  return %0#0, %0#1 : tensor<2x24x4x40xbf16>, tensor<2x4x40x8xf32>
}

// -----

// A value block beyond V is all of V; sequences come from the offsets.
// CHECK-LABEL: func @packed
//  CHECK-SAME:   %[[CU:[a-z0-9_]+]]: tensor<?xi64>
//       CHECK: %[[D:[a-z0-9_]+]] = tensor.dim %[[CU]]
//       CHECK: %[[N:[a-z0-9_]+]] = affine.apply #{{.+}}()[%[[D]]]
//       CHECK: scf.forall (%[[I:[a-z0-9_]+]], %{{.+}}) in (%[[N]], 2)
//       CHECK:   %[[E:[a-z0-9_]+]] = tensor.extract %[[CU]][%[[I]]]
//       CHECK:   arith.index_cast %[[E]]
//       CHECK:   gdn.recurrence ins(%{{.+}} : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>) outs
func.func @packed(%q: tensor<1x?x2x8xf32>, %cu: tensor<?xi64>, %o: tensor<1x?x2x8xf32>, %s: tensor<?x2x8x8xf32>)
    -> (tensor<1x?x2x8xf32>, tensor<?x2x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>)
      offsets(%cu : tensor<?xi64>) outs(%o, %s : tensor<1x?x2x8xf32>, tensor<?x2x8x8xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x?x2x8xf32>, tensor<?x2x8x8xf32>
  return %0#0, %0#1 : tensor<1x?x2x8xf32>, tensor<?x2x8x8xf32>
}

// -----

// A rest of the value channels of a pool: both parts find their entries.

// CHECK-LABEL: func @pool_rest(
// CHECK: scf.forall
// CHECK:   tensor.extract %{{.*}} : tensor<2xi32>
// CHECK:   gdn.recurrence {{.*}} slots({{.*}} outs(%{{.*}} : tensor<1x3x1x5xf32>, tensor<?x1x5x8xf32>)
// CHECK: scf.forall
// CHECK:   tensor.extract %{{.*}} : tensor<2xi32>
// CHECK:   gdn.recurrence {{.*}} slots({{.*}} outs(%{{.*}} : tensor<1x3x1x4xf32>, tensor<?x1x4x8xf32>)
func.func @pool_rest(%q: tensor<2x3x1x8xf32>, %v: tensor<2x3x1x24xf32>, %at: tensor<2xi32>,
    %o: tensor<2x3x1x24xf32>, %s: tensor<?x1x24x8xf32>) -> (tensor<2x3x1x24xf32>, tensor<?x1x24x8xf32>) {
  %y, %z = gdn.recurrence ins(%q, %q, %v : tensor<2x3x1x8xf32>, tensor<2x3x1x8xf32>, tensor<2x3x1x24xf32>)
      slots(%at : tensor<2xi32>) outs(%o, %s : tensor<2x3x1x24xf32>, tensor<?x1x24x8xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 5>}
      -> tensor<2x3x1x24xf32>, tensor<?x1x24x8xf32>
  return %y, %z : tensor<2x3x1x24xf32>, tensor<?x1x24x8xf32>
}

// -----

func.func @no_schedule(%q: tensor<1x4x1x8xf32>, %s: tensor<1x1x8x8xf32>) {
  // expected-error @+1 {{has no schedule; run gdn-select-schedule first}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
      outs(%q, %s : tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>
  return
}

// -----

func.func @memrefs(%q: memref<1x4x1x8xf32>, %s: memref<1x1x8x8xf32>) {
  // expected-error @+1 {{can be tiled on tensors only}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>)
      outs(%q, %s : memref<1x4x1x8xf32>, memref<1x1x8x8xf32>) {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
  return
}

// -----

// A rest of the value channels, packed sequences, dynamic time: each part is
// tiled by sequences.

// CHECK-LABEL: func @packed_rest(
// CHECK: scf.forall
// CHECK:   tensor.extract %{{.*}} : tensor<?xi32>
// CHECK:   gdn.recurrence {{.*}} outs(%{{.*}} : tensor<1x?x1x5xf32>, tensor<1x1x5x8xf32>)
// CHECK: scf.forall
// CHECK:   tensor.extract %{{.*}} : tensor<?xi32>
// CHECK:   gdn.recurrence {{.*}} outs(%{{.*}} : tensor<1x?x1x4xf32>, tensor<1x1x4x8xf32>)
func.func @packed_rest(%q: tensor<1x?x1x8xf32>, %v: tensor<1x?x1x24xf32>, %cu: tensor<?xi32>,
    %o: tensor<1x?x1x24xf32>, %s: tensor<?x1x24x8xf32>) -> (tensor<1x?x1x24xf32>, tensor<?x1x24x8xf32>) {
  %y, %z = gdn.recurrence ins(%q, %q, %v : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x24xf32>)
      offsets(%cu : tensor<?xi32>) outs(%o, %s : tensor<1x?x1x24xf32>, tensor<?x1x24x8xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 5>}
      -> tensor<1x?x1x24xf32>, tensor<?x1x24x8xf32>
  return %y, %z : tensor<1x?x1x24xf32>, tensor<?x1x24x8xf32>
}
