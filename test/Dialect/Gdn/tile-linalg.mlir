// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-tile-linalg),canonicalize,cse)" --split-input-file | FileCheck %s

// 8 x 32 results, filled inside the loops; the sum goes by single columns of
// the left factor. Both products have their own accumulator.
// CHECK-LABEL: func @product
// CHECK-COUNT-2: linalg.fill {{.*}} outs(%{{.+}} : tensor<8x16xf32>)
//   CHECK-NOT: linalg.fill
//       CHECK: return

// CHECK-LABEL: func @one_product
//  CHECK-SAME:   %[[A:[a-z0-9]+]]: tensor<16x24xf32>, %[[B:[a-z0-9]+]]: tensor<24x64xf32>, %[[C:[a-z0-9]+]]: tensor<16x64xf32>
//       CHECK: scf.for %[[I:.+]] = %c0 to %c16 step %c8 iter_args(%[[CI:.+]] = %[[C]])
//       CHECK:   scf.for %[[J:.+]] = %c0 to %c64 step %c32 iter_args(%[[CJ:.+]] = %[[CI]])
//       CHECK:     %[[T:.+]] = tensor.extract_slice %[[CJ]][%[[I]], %[[J]]] [8, 32]
//       CHECK:     %[[F:.+]] = linalg.fill {{.*}} outs(%[[T]]
//       CHECK:     scf.for %[[K:.+]] = %c0 to %c24 step %c1 iter_args(%[[ACC:.+]] = %[[F]])
//       CHECK:       linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<8x1xf32>, tensor<1x32xf32>) outs(%{{.+}} : tensor<8x32xf32>)
func.func @product(%a: tensor<16x24xf32>, %b: tensor<24x16xf32>, %c: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = linalg.matmul ins(%0, %c : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
}
func.func @one_product(%a: tensor<16x24xf32>, %b: tensor<24x64xf32>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x64xf32>) outs(%f : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// 37 has no divisor near 32: 32 and 5.
// CHECK-LABEL: func @odd
//       CHECK: linalg.matmul {{.*}} outs(%{{.+}} : tensor<8x32xf32>)
//       CHECK: linalg.matmul {{.*}} outs(%{{.+}} : tensor<8x5xf32>)
func.func @odd(%a: tensor<16x4xf32>, %b: tensor<4x37xf32>, %c: tensor<16x37xf32>) -> tensor<16x37xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x4xf32>, tensor<4x37xf32>) outs(%c : tensor<16x37xf32>) -> tensor<16x37xf32>
  return %0 : tensor<16x37xf32>
}

// -----

// Rows of 64, single steps of a dynamic size, unit dimensions dropped; a
// transpose goes by squares of 16.
// CHECK-LABEL: func @elementwise
//       CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<1x64xf32>)
//       CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<16x16xf32>)
func.func @elementwise(%x: tensor<1x?x1x128xf32>, %m: tensor<32x64xf32>, %t: tensor<64x32xf32>) -> (tensor<1x?x1x128xf32>, tensor<64x32xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%x : tensor<1x?x1x128xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<1x?x1x128xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<32x64xf32>) outs(%t : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64x32xf32>
  return %0, %1 : tensor<1x?x1x128xf32>, tensor<64x32xf32>
}
