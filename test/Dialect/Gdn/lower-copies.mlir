// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-lower-copies))" | FileCheck %s

// CHECK-LABEL: func @strided
//   CHECK-NOT:   memref.copy
//       CHECK:   linalg.generic
//  CHECK-SAME:     ins(%{{.+}} : memref<4x?xf32, strided<[?, 1]>>) outs(%{{.+}} : memref<4x?xf32>)
//       CHECK:   linalg.yield %{{.+}} : f32
func.func @strided(%a: memref<4x?xf32, strided<[?, 1]>>, %b: memref<4x?xf32>) {
  memref.copy %a, %b : memref<4x?xf32, strided<[?, 1]>> to memref<4x?xf32>
  return
}

// Dense memory is copied at once.
// CHECK-LABEL: func @dense
//       CHECK:   memref.copy
//   CHECK-NOT:   linalg
func.func @dense(%a: memref<4x?xf32>, %b: memref<4x?xf32>) {
  memref.copy %a, %b : memref<4x?xf32> to memref<4x?xf32>
  return
}
