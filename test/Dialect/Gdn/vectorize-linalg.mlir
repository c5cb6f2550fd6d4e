// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-vectorize-linalg),canonicalize,cse)" --split-input-file | FileCheck %s

// The tile that every step of the sum reads and writes is carried as a vector.
// CHECK-LABEL: func @sum
//  CHECK-SAME:   %[[A:[a-z0-9]+]]: tensor<8x24xf32>, %[[B:[a-z0-9]+]]: tensor<24x32xf32>, %[[C:[a-z0-9]+]]: tensor<8x32xf32>
//       CHECK: %[[C0:.+]] = vector.transfer_read %[[C]]
//       CHECK: %[[R:.+]] = scf.for %[[K:.+]] = {{.*}} iter_args(%[[ACC:.+]] = %[[C0]]) -> (vector<8x32xf32>)
//       CHECK:   %[[AK:.+]] = vector.transfer_read %[[A]][%{{.+}}, %[[K]]]
//       CHECK:   %[[BK:.+]] = vector.transfer_read %[[B]][%[[K]], %{{.+}}]
//       CHECK:   %[[N:.+]] = vector.contract {{.*}} %[[AK]], %[[BK]], %[[ACC]]
//       CHECK:   scf.yield %[[N]]
//       CHECK: vector.transfer_write %[[R]], %[[C]]
func.func @sum(%a: tensor<8x24xf32>, %b: tensor<24x32xf32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %r = scf.for %k = %c0 to %c24 step %c1 iter_args(%acc = %c) -> tensor<8x32xf32> {
    %ak = tensor.extract_slice %a[0, %k] [8, 1] [1, 1] : tensor<8x24xf32> to tensor<8x1xf32>
    %bk = tensor.extract_slice %b[%k, 0] [1, 32] [1, 1] : tensor<24x32xf32> to tensor<1x32xf32>
    %n = linalg.matmul ins(%ak, %bk : tensor<8x1xf32>, tensor<1x32xf32>) outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>
    scf.yield %n : tensor<8x32xf32>
  }
  return %r : tensor<8x32xf32>
}

// -----

// Masks by index, extension and rounding are vector arithmetic.
// CHECK-LABEL: func @mask
//       CHECK: vector.transfer_read {{.*}} vector<4x16xbf16>
//       CHECK: arith.cmpi sle, {{.*}} : vector<4x16xindex>
//       CHECK: arith.extf {{.*}} vector<4x16xbf16> to vector<4x16xf32>
//       CHECK: arith.select {{.*}} vector<4x16xi1>, vector<4x16xf32>
//   CHECK-NOT: linalg
func.func @mask(%x: tensor<4x16xbf16>, %y: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x16xbf16>) outs(%y : tensor<4x16xf32>) {
  ^bb0(%a: bf16, %b: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.cmpi sle, %j, %i : index
    %e = arith.extf %a : bf16 to f32
    %s = arith.select %p, %e, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// Too large for straight-line code, or of dynamic size: left to loops.
// CHECK-LABEL: func @left
// CHECK-COUNT-2: linalg.generic
//   CHECK-NOT: vector
func.func @left(%x: tensor<128x64xf32>, %y: tensor<?xf32>) -> (tensor<128x64xf32>, tensor<?xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<128x64xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<128x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<128x64xf32>, tensor<?xf32>
}
