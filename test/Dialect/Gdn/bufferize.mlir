// RUN: gdn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --cse | FileCheck %s

// Writable arguments: outputs and state are updated in place, nothing is
// allocated or copied, and the results are the arguments themselves.

// CHECK-LABEL: func @in_place
// CHECK-SAME: (%[[Q:.*]]: memref<1x?x2x16xbf16>, %[[K:.*]]: memref<1x?x2x16xbf16>, %[[V:.*]]: memref<1x?x4x32xbf16>, %[[G:.*]]: memref<1x?x4xf32>, %[[B:.*]]: memref<1x?x4xf32>, %[[CU:.*]]: memref<?xi32>, %[[O:.*]]: memref<1x?x4x32xbf16>, %[[S:.*]]: memref<?x4x16x32xf32>)
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: gdn.recurrence ins(%[[Q]], %[[K]], %[[V]] : memref<1x?x2x16xbf16>, memref<1x?x2x16xbf16>, memref<1x?x4x32xbf16>)
// CHECK-SAME: gate(%[[G]] : memref<1x?x4xf32>) beta(%[[B]] : memref<1x?x4xf32>) offsets(%[[CU]] : memref<?xi32>)
// CHECK-SAME: outs(%[[O]], %[[S]] : memref<1x?x4x32xbf16>, memref<?x4x16x32xf32>)
// CHECK-SAME: {scale = 5.000000e-01 : f64, schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 32>, state_layout = #gdn.state_layout<k_first>}
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: return %[[O]], %[[S]]
func.func @in_place(%q: tensor<1x?x2x16xbf16>, %k: tensor<1x?x2x16xbf16>, %v: tensor<1x?x4x32xbf16>,
    %g: tensor<1x?x4xf32>, %b: tensor<1x?x4xf32>, %cu: tensor<?xi32>,
    %o: tensor<1x?x4x32xbf16> {bufferization.writable = true}, %s: tensor<?x4x16x32xf32> {bufferization.writable = true})
    -> (tensor<1x?x4x32xbf16>, tensor<?x4x16x32xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, tensor<1x?x4x32xbf16>)
      gate(%g : tensor<1x?x4xf32>) beta(%b : tensor<1x?x4xf32>) offsets(%cu : tensor<?xi32>)
      outs(%o, %s : tensor<1x?x4x32xbf16>, tensor<?x4x16x32xf32>)
      {scale = 0.5, schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 32>, state_layout = #gdn.state_layout<k_first>}
      -> tensor<1x?x4x32xbf16>, tensor<?x4x16x32xf32>
  return %0#0, %0#1 : tensor<1x?x4x32xbf16>, tensor<?x4x16x32xf32>
}

// The initial state is used afterwards: it is copied. The destination of o is
// used afterwards too, but nothing reads it, so it gets a new buffer, no copy.

// CHECK-LABEL: func @state_used_afterwards
// CHECK-SAME: (%[[Q:.*]]: memref<1x3x1x4xf32>, %[[V:.*]]: memref<1x3x1x8xf32>, %[[O:.*]]: memref<1x3x1x8xf32>, %[[S:.*]]: memref<1x1x8x4xf32>)
// CHECK-DAG: %[[NEWO:.*]] = memref.alloc() {{.*}} : memref<1x3x1x8xf32>
// CHECK-DAG: %[[NEWS:.*]] = memref.alloc() {{.*}} : memref<1x1x8x4xf32>
// CHECK: memref.copy %[[S]], %[[NEWS]]
// CHECK-NOT: memref.copy
// CHECK: gdn.recurrence ins(%[[Q]], %[[Q]], %[[V]]
// CHECK-SAME: outs(%[[NEWO]], %[[NEWS]]
// CHECK: return %[[O]], %[[S]], %[[NEWO]], %[[NEWS]]
func.func @state_used_afterwards(%q: tensor<1x3x1x4xf32>, %v: tensor<1x3x1x8xf32>,
    %o: tensor<1x3x1x8xf32> {bufferization.writable = true}, %s: tensor<1x1x8x4xf32> {bufferization.writable = true})
    -> (tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>, tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x8xf32>)
      outs(%o, %s : tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>) -> tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>
  return %o, %s, %0#0, %0#1 : tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>, tensor<1x3x1x8xf32>, tensor<1x1x8x4xf32>
}

// A destination that is also an input must not be overwritten while it is read.

// CHECK-LABEL: func @destination_is_input
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>,
// CHECK: %[[Y:.*]] = memref.alloc() {{.*}} : memref<4x8xf32>
// CHECK-NOT: memref.copy
// CHECK: gdn.gated_rms_norm ins(%[[X]], %[[X]], %{{.*}}) outs(%[[Y]] : memref<4x8xf32>)
// CHECK: return %[[Y]]
func.func @destination_is_input(%x: tensor<4x8xf32> {bufferization.writable = true}, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = gdn.gated_rms_norm ins(%x, %x, %w : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// l2norm reads a row before it writes it: it may work in place, on a slice too.

// CHECK-LABEL: func @normalised_in_place
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>)
// CHECK-NOT: memref.alloc
// CHECK: %[[S:.*]] = memref.subview %[[X]][0, 0] [3, 8] [1, 1]
// CHECK: gdn.l2norm ins(%[[S]] : {{.*}}) outs(%[[S]] : {{.*}})
// CHECK: return %[[X]]
func.func @normalised_in_place(%x: tensor<4x8xf32> {bufferization.writable = true}) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[0, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
  %0 = gdn.l2norm ins(%s : tensor<3x8xf32>) outs(%s : tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = tensor.insert_slice %0 into %x[0, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// The state of the decode loop stays in one buffer.

// CHECK-LABEL: func @decode
// CHECK-SAME: %[[O:[^:]*]]: memref<1x1x1x8xf32>, %[[S:[^:]*]]: memref<1x1x8x4xf32>
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: scf.for
// CHECK: gdn.recurrence
// CHECK-SAME: outs(%[[O]], %[[S]]
// CHECK-NOT: copy
// CHECK: return %[[O]], %[[S]]
func.func @decode(%q: tensor<1x1x1x4xf32>, %v: tensor<1x1x1x8xf32>, %steps: index,
    %o: tensor<1x1x1x8xf32> {bufferization.writable = true}, %s: tensor<1x1x8x4xf32> {bufferization.writable = true})
    -> (tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%oi = %o, %si = %s) -> (tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>) {
    %1:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x8xf32>)
        outs(%oi, %si : tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>) -> tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>
    scf.yield %1#0, %1#1 : tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>
  }
  return %0#0, %0#1 : tensor<1x1x1x8xf32>, tensor<1x1x8x4xf32>
}

// The parts of the mixer and of a chunk write their destinations; only the read-only
// state of the convolution is copied.

// CHECK-LABEL: func @parts
// CHECK-SAME: (%[[X:.*]]: memref<1x4x8xf32>, %[[W:.*]]: memref<8x2xf32>, %[[CS:[^:]*]]: memref<1x8x1xf32>, %[[Z:.*]]: memref<8xf32>, %[[M:.*]]: memref<4x4xf32>)
// CHECK-COUNT-1: memref.copy %[[CS]], %{{.*}}
// CHECK-NOT: memref.copy
// CHECK: gdn.short_conv {{.*}} bias(%[[Z]] : memref<8xf32>) {{.*}} {activation = #gdn.activation<silu>}
// CHECK: gdn.gated_rms_norm {{.*}} memref<1x4x8xf32>) {activation = #gdn.activation<sigmoid>}
// CHECK: gdn.gate ins({{.*}} memref<1x4x8xf32>, memref<8xf32>) bias(%[[Z]] : memref<8xf32>) outs({{.*}} : memref<1x4x8xf32>) {lower_bound = -5.000000e+00 : f64}
// CHECK: gdn.cumsum ins({{.*}} : memref<1x4x8xf32>) outs({{.*}} : memref<1x4x8xf32>)
// CHECK: gdn.scores ins(%[[M]], %[[M]] : memref<4x4xf32>, memref<4x4xf32>) outs({{.*}} : memref<4x4xf32>) {strict}
// CHECK: gdn.tri_inverse ins({{.*}} : memref<4x4xf32>) outs({{.*}} : memref<4x4xf32>)
// CHECK-NOT: tensor<
func.func @parts(%x: tensor<1x4x8xf32>, %w: tensor<8x2xf32>, %cs: tensor<1x8x1xf32> {bufferization.writable = false}, %z: tensor<8xf32>, %m: tensor<4x4xf32>)
    -> (tensor<1x8x1xf32>, tensor<1x4x8xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<1x4x8xf32>
  %em = tensor.empty() : tensor<4x4xf32>
  %0:2 = gdn.short_conv ins(%x, %w : tensor<1x4x8xf32>, tensor<8x2xf32>) bias(%z : tensor<8xf32>)
      outs(%e, %cs : tensor<1x4x8xf32>, tensor<1x8x1xf32>) {activation = #gdn.activation<silu>} -> tensor<1x4x8xf32>, tensor<1x8x1xf32>
  %1 = gdn.gated_rms_norm ins(%0#0, %x, %z : tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<8xf32>)
      outs(%e : tensor<1x4x8xf32>) {activation = #gdn.activation<sigmoid>} -> tensor<1x4x8xf32>
  %2 = gdn.gate ins(%1, %z : tensor<1x4x8xf32>, tensor<8xf32>) bias(%z : tensor<8xf32>)
      outs(%e : tensor<1x4x8xf32>) {lower_bound = -5.0} -> tensor<1x4x8xf32>
  %3 = gdn.cumsum ins(%2 : tensor<1x4x8xf32>) outs(%e : tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  %4 = gdn.scores ins(%m, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%em : tensor<4x4xf32>) {strict} -> tensor<4x4xf32>
  %5 = gdn.tri_inverse ins(%4 : tensor<4x4xf32>) outs(%em : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0#1, %3, %5 : tensor<1x8x1xf32>, tensor<1x4x8xf32>, tensor<4x4xf32>
}

// A pool is updated in place, as one buffer.

// CHECK-LABEL: func @pool
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: gdn.recurrence {{.*}} slots(%{{.*}} : memref<?xi32>) outs(%{{.*}}, %{{.*}} : memref<?x1x1x8xf32>, memref<?x1x8x8xf32>)
// CHECK-NOT: alloc
// CHECK-NOT: copy
// CHECK: return
func.func @pool(%q: tensor<?x1x1x8xf32>, %at: tensor<?xi32>,
    %o: tensor<?x1x1x8xf32> {bufferization.writable = true}, %s: tensor<?x1x8x8xf32> {bufferization.writable = true})
    -> (tensor<?x1x1x8xf32>, tensor<?x1x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x1x1x8xf32>, tensor<?x1x1x8xf32>, tensor<?x1x1x8xf32>)
      slots(%at : tensor<?xi32>) outs(%o, %s : tensor<?x1x1x8xf32>, tensor<?x1x8x8xf32>)
      -> tensor<?x1x1x8xf32>, tensor<?x1x8x8xf32>
  return %0#0, %0#1 : tensor<?x1x1x8xf32>, tensor<?x1x8x8xf32>
}
