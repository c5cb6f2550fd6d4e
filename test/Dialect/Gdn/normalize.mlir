// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-normalize))" | FileCheck %s

// CHECK-LABEL: func @default_scale
// CHECK: gdn.recurrence {{.*}}scale = 2.500000e-01
func.func @default_scale(%q: tensor<1x4x1x16xf32>, %s: tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
      outs(%q, %s : tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>
  return %0#0 : tensor<1x4x1x16xf32>
}

// Memrefs become tensors; one memref is one tensor.
// CHECK-LABEL: func @on_memrefs
//  CHECK-SAME:   %[[Q:.+]]: memref<1x4x1x16xf32>, %[[S:.+]]: memref<1x1x16x16xf32>
//   CHECK-DAG: %[[QT:.+]] = bufferization.to_tensor %[[Q]] restrict writable
//   CHECK-DAG: %[[ST:.+]] = bufferization.to_tensor %[[S]] restrict writable
//       CHECK: %[[R:.+]]:2 = gdn.recurrence ins(%[[QT]], %[[QT]], %[[QT]] : {{.*}}) outs(%[[QT]], %[[ST]] : {{.*}}scale = 1.000000e+00
//       CHECK: bufferization.materialize_in_destination %[[R]]#0 in restrict writable %[[Q]]
//       CHECK: bufferization.materialize_in_destination %[[R]]#1 in restrict writable %[[S]]
func.func @on_memrefs(%q: memref<1x4x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x16xf32>, memref<1x4x1x16xf32>, memref<1x4x1x16xf32>)
      outs(%q, %s : memref<1x4x1x16xf32>, memref<1x1x16x16xf32>) {scale = 1.0}
  return
}

// CHECK-LABEL: func @one_sequence
// CHECK: gdn.recurrence
// CHECK-NOT: offsets
// CHECK: return
func.func @one_sequence(%q: tensor<1x4x1x16xf32>, %cu: tensor<2xi32>, %s: tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
      offsets(%cu : tensor<2xi32>)
      outs(%q, %s : tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>
  return %0#0 : tensor<1x4x1x16xf32>
}

// CHECK-LABEL: func @two_sequences
// CHECK: gdn.recurrence {{.*}} offsets(
func.func @two_sequences(%q: tensor<1x4x1x16xf32>, %cu: tensor<3xi32>, %s: tensor<2x1x16x16xf32>) -> tensor<1x4x1x16xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
      offsets(%cu : tensor<3xi32>)
      outs(%q, %s : tensor<1x4x1x16xf32>, tensor<2x1x16x16xf32>) -> tensor<1x4x1x16xf32>, tensor<2x1x16x16xf32>
  return %0#0 : tensor<1x4x1x16xf32>
}

// CHECK-LABEL: func @no_tokens
// CHECK-SAME: %[[Q:.+]]: tensor<1x0x1x16xf32>, %[[S:.+]]: tensor<1x1x16x16xf32>
// CHECK-NEXT: return %[[Q]], %[[S]]
func.func @no_tokens(%q: tensor<1x0x1x16xf32>, %s: tensor<1x1x16x16xf32>) -> (tensor<1x0x1x16xf32>, tensor<1x1x16x16xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x0x1x16xf32>, tensor<1x0x1x16xf32>, tensor<1x0x1x16xf32>)
      outs(%q, %s : tensor<1x0x1x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x0x1x16xf32>, tensor<1x1x16x16xf32>
  return %0#0, %0#1 : tensor<1x0x1x16xf32>, tensor<1x1x16x16xf32>
}

// One sequence and a pool of many entries.
// CHECK-LABEL: func @one_sequence_of_a_pool
// CHECK: gdn.recurrence
// CHECK-NOT: offsets
// CHECK-SAME: slots(
func.func @one_sequence_of_a_pool(%q: tensor<1x4x1x16xf32>, %cu: tensor<2xi32>, %at: tensor<1xi32>, %s: tensor<9x1x16x16xf32>) -> tensor<1x4x1x16xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
      offsets(%cu : tensor<2xi32>) slots(%at : tensor<1xi32>)
      outs(%q, %s : tensor<1x4x1x16xf32>, tensor<9x1x16x16xf32>) -> tensor<1x4x1x16xf32>, tensor<9x1x16x16xf32>
  return %0#0 : tensor<1x4x1x16xf32>
}

// Many sequences and a pool of one entry: the offsets stay.
// CHECK-LABEL: func @pool_of_one
// CHECK: gdn.recurrence {{.*}} offsets({{.*}} slots(
func.func @pool_of_one(%q: tensor<1x4x1x16xf32>, %cu: tensor<3xi32>, %at: tensor<2xi32>, %s: tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>)
      offsets(%cu : tensor<3xi32>) slots(%at : tensor<2xi32>)
      outs(%q, %s : tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x4x1x16xf32>, tensor<1x1x16x16xf32>
  return %0#0 : tensor<1x4x1x16xf32>
}
