// RUN: gdn-opt %s --canonicalize | FileCheck %s

!q = tensor<1x?x1x8xf32>
!v = tensor<1x?x1x4xf32>
!s = tensor<1x1x4x8xf32>
!g = tensor<1x?x1xf32>

// A gate of zeros does not decay: a constant, or a fill or splat of 0.

// CHECK-LABEL: func @zero_gate
// CHECK-NOT: gate(
// CHECK: return
func.func @zero_gate(%q: tensor<1x3x1x8xf32>, %v: tensor<1x3x1x4xf32>, %o: tensor<1x3x1x4xf32>, %s: !s)
    -> (tensor<1x3x1x4xf32>, !s) {
  %g = arith.constant dense<-0.0> : tensor<1x3x1x8xf32>
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x3x1x8xf32>, tensor<1x3x1x8xf32>, tensor<1x3x1x4xf32>)
      gate(%g : tensor<1x3x1x8xf32>) outs(%o, %s : tensor<1x3x1x4xf32>, !s) -> tensor<1x3x1x4xf32>, !s
  return %0#0, %0#1 : tensor<1x3x1x4xf32>, !s
}

// CHECK-LABEL: func @zero_gate_dynamic
// CHECK-SAME: %[[B:[^:]*]]: tensor<1x?x1xf32>)
// CHECK-NOT: gate(
// CHECK: gdn.recurrence {{.*}} beta(%[[B]] : tensor<1x?x1xf32>) outs
// CHECK-NOT: gate(
// CHECK: gdn.recurrence {{.*}} beta(%[[B]] : tensor<1x?x1xf32>) outs
func.func @zero_gate_dynamic(%q: !q, %v: !v, %o: !v, %s: !s, %t: index, %b: !g) -> (!v, !s) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%t) : !g
  %filled = linalg.fill ins(%zero : f32) outs(%e : !g) -> !g
  %0:2 = gdn.recurrence ins(%q, %q, %v : !q, !q, !v) gate(%filled : !g) beta(%b : !g) outs(%o, %s : !v, !s) -> !v, !s
  %splat = tensor.splat %zero[%t] : !g
  %1:2 = gdn.recurrence ins(%q, %q, %v : !q, !q, !v) gate(%splat : !g) beta(%b : !g) outs(%0#0, %0#1 : !v, !s) -> !v, !s
  return %1#0, %1#1 : !v, !s
}

// CHECK-LABEL: func @other_gate
// CHECK-COUNT-2: gate(
func.func @other_gate(%q: tensor<1x2x1x8xf32>, %v: tensor<1x2x1x4xf32>, %o: tensor<1x2x1x4xf32>, %s: !s)
    -> (tensor<1x2x1x4xf32>, !s) {
  %g = arith.constant dense<[[[0.0], [-1.0]]]> : tensor<1x2x1xf32>
  %h = arith.constant dense<-1.0e-30> : tensor<1x2x1xf32>
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x4xf32>)
      gate(%g : tensor<1x2x1xf32>) outs(%o, %s : tensor<1x2x1x4xf32>, !s) -> tensor<1x2x1x4xf32>, !s
  %1:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x4xf32>)
      gate(%h : tensor<1x2x1xf32>) outs(%0#0, %0#1 : tensor<1x2x1x4xf32>, !s) -> tensor<1x2x1x4xf32>, !s
  return %1#0, %1#1 : tensor<1x2x1x4xf32>, !s
}

// Without tokens the final state is the initial state.

// CHECK-LABEL: func @no_tokens
// CHECK-SAME: %[[O:[^:]*]]: tensor<1x0x1x4xf32>, %[[S:[^:]*]]: tensor<1x1x4x8xf32>, %{{.*}}: tensor<?x?x8xf32>, %[[Y:[^:]*]]: tensor<?x0x8xf32>, %{{.*}}: tensor<8x4xf32>, %[[CS:[^:]*]]: tensor<?x8x3xf32>
// CHECK-NEXT: return %[[O]], %[[S]], %[[Y]], %[[CS]]
func.func @no_tokens(%q: !q, %v: !v, %o: tensor<1x0x1x4xf32>, %s: !s, %x: tensor<?x?x8xf32>, %y: tensor<?x0x8xf32>,
    %w: tensor<8x4xf32>, %cs: tensor<?x8x3xf32>)
    -> (tensor<1x0x1x4xf32>, !s, tensor<?x0x8xf32>, tensor<?x8x3xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %v : !q, !q, !v) outs(%o, %s : tensor<1x0x1x4xf32>, !s) -> tensor<1x0x1x4xf32>, !s
  %1:2 = gdn.short_conv ins(%x, %w : tensor<?x?x8xf32>, tensor<8x4xf32>) outs(%y, %cs : tensor<?x0x8xf32>, tensor<?x8x3xf32>)
      -> tensor<?x0x8xf32>, tensor<?x8x3xf32>
  return %0#0, %0#1, %1#0, %1#1 : tensor<1x0x1x4xf32>, !s, tensor<?x0x8xf32>, tensor<?x8x3xf32>
}

// CHECK-LABEL: func @no_tokens_memref
// CHECK-NEXT: return
func.func @no_tokens_memref(%q: memref<1x0x1x8xf32>, %v: memref<1x0x1x4xf32>, %o: memref<1x0x1x4xf32>, %s: memref<1x1x4x8xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x0x1x8xf32>, memref<1x0x1x8xf32>, memref<1x0x1x4xf32>)
      outs(%o, %s : memref<1x0x1x4xf32>, memref<1x1x4x8xf32>)
  return
}

// An initial state of zeros stays: it is the form of "no initial state".

// CHECK-LABEL: func @zero_state
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<1x1x4x8xf32>
// CHECK: gdn.recurrence {{.*}} outs(%{{.*}}, %[[Z]] :
func.func @zero_state(%q: !q, %v: !v, %o: !v) -> (!v, !s) {
  %s = arith.constant dense<0.0> : !s
  %0:2 = gdn.recurrence ins(%q, %q, %v : !q, !q, !v) outs(%o, %s : !v, !s) -> !v, !s
  return %0#0, %0#1 : !v, !s
}

// Casts fold into the op when it becomes more static.

// CHECK-LABEL: func @casts
// CHECK-SAME: (%[[Q:.*]]: tensor<1x5x1x8xf32>, %[[V:.*]]: tensor<1x5x1x4xf32>, %[[G:.*]]: tensor<1x5x1xf32>, %[[O:.*]]: tensor<1x5x1x4xf32>, %[[S:.*]]: tensor<1x1x4x8xf32>)
// CHECK: %[[R:.*]]:2 = gdn.recurrence ins(%[[Q]], %[[Q]], %[[V]] : tensor<1x5x1x8xf32>, tensor<1x5x1x8xf32>, tensor<1x5x1x4xf32>)
// CHECK-SAME: gate(%[[G]] : tensor<1x5x1xf32>) outs(%[[O]], %[[S]] : tensor<1x5x1x4xf32>, tensor<1x1x4x8xf32>)
// CHECK-SAME: scale = 5.000000e-01 : f64
// CHECK-SAME: -> tensor<1x5x1x4xf32>, tensor<1x1x4x8xf32>
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @casts(%q: tensor<1x5x1x8xf32>, %v: tensor<1x5x1x4xf32>, %g: tensor<1x5x1xf32>, %o: tensor<1x5x1x4xf32>, %s: !s)
    -> (tensor<1x5x1x4xf32>, !s) {
  %qd = tensor.cast %q : tensor<1x5x1x8xf32> to !q
  %vd = tensor.cast %v : tensor<1x5x1x4xf32> to !v
  %gd = tensor.cast %g : tensor<1x5x1xf32> to !g
  %od = tensor.cast %o : tensor<1x5x1x4xf32> to !v
  %sd = tensor.cast %s : !s to tensor<?x1x4x8xf32>
  %0:2 = gdn.recurrence ins(%qd, %qd, %vd : !q, !q, !v) gate(%gd : !g) outs(%od, %sd : !v, tensor<?x1x4x8xf32>) {scale = 0.5}
      -> !v, tensor<?x1x4x8xf32>
  %1 = tensor.cast %0#0 : !v to tensor<1x5x1x4xf32>
  %2 = tensor.cast %0#1 : tensor<?x1x4x8xf32> to !s
  return %1, %2 : tensor<1x5x1x4xf32>, !s
}

// CHECK-LABEL: func @cast_of_rows
// CHECK: gdn.l2norm ins(%{{.*}} : tensor<2x8xf32>) outs(%{{.*}} : tensor<2x8xf32>) -> tensor<2x8xf32>
func.func @cast_of_rows(%x: tensor<2x8xf32>) -> tensor<?x8xf32> {
  %0 = tensor.cast %x : tensor<2x8xf32> to tensor<?x8xf32>
  %1 = gdn.l2norm ins(%0 : tensor<?x8xf32>) outs(%0 : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// Normalising twice: without eps the second op changes nothing but rounding.
// With eps it does: sum x^2 = eps gives a row of length^2 1/2 first, then 1 - 2 eps.

// CHECK-LABEL: func @l2norm_twice
// CHECK: %[[Y:.*]] = gdn.l2norm ins(%{{.*}} : tensor<2x8xf32>) outs(%{{.*}} : tensor<2x8xf32>) {eps = 0.000000e+00 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @l2norm_twice(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%x : tensor<2x8xf32>) {eps = 0.0} -> tensor<2x8xf32>
  %1 = gdn.l2norm ins(%0 : tensor<2x8xf32>) outs(%x : tensor<2x8xf32>) {eps = 0.0} -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func @l2norm_twice_with_eps
// CHECK-COUNT-2: gdn.l2norm
func.func @l2norm_twice_with_eps(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%x : tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = gdn.l2norm ins(%0 : tensor<2x8xf32>) outs(%x : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func @l2norm_twice_other_shape
// CHECK-COUNT-2: gdn.l2norm
func.func @l2norm_twice_other_shape(%x: tensor<?x8xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = gdn.l2norm ins(%x : tensor<?x8xf32>) outs(%x : tensor<?x8xf32>) {eps = 0.0} -> tensor<?x8xf32>
  %1 = gdn.l2norm ins(%0 : tensor<?x8xf32>) outs(%y : tensor<2x8xf32>) {eps = 0.0} -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// Unused results on tensors go, an op on memrefs stays.

// CHECK-LABEL: func @unused
// CHECK-NEXT: gdn.cumsum ins(%{{.*}} : memref<4xf32>)
// CHECK-NEXT: return
func.func @unused(%x: tensor<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  %0 = gdn.cumsum ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  gdn.cumsum ins(%y : memref<4xf32>) outs(%z : memref<4xf32>)
  return
}
