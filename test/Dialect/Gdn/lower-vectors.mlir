// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-lower-vectors),canonicalize,cse)" --split-input-file | FileCheck %s

// Row by row: one multiply-add per row of the tile.
// CHECK-LABEL: func @product
//   CHECK-NOT: vector.contract
// CHECK-COUNT-8: vector.fma {{.*}} : vector<32xf32>
//   CHECK-NOT: vector.fma
// CHECK-COUNT-8: vector.store {{.*}} : memref<8x32xf32>, vector<32xf32>
//   CHECK-NOT: vector.transfer
func.func @product(%a: memref<8x1xf32>, %b: memref<1x32xf32>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %av = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<8x1xf32>, vector<8x1xf32>
  %bv = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<1x32xf32>, vector<1x32xf32>
  %cv = vector.transfer_read %c[%c0, %c0], %z {in_bounds = [true, true]} : memref<8x32xf32>, vector<8x32xf32>
  %r = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %av, %bv, %cv : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
  vector.transfer_write %r, %c[%c0, %c0] {in_bounds = [true, true]} : vector<8x32xf32>, memref<8x32xf32>
  return
}

// -----

// exp is a polynomial, other functions stay; sums may be reordered.
// CHECK-LABEL: func @functions
//   CHECK-NOT: math.exp
//       CHECK: math.log1p
//       CHECK: vector.reduction <add>, %{{.+}} fastmath<reassoc> : vector<16xf32> into f32
func.func @functions(%x: vector<16xf32>) -> f32 {
  %e = math.exp %x : vector<16xf32>
  %l = math.log1p %e : vector<16xf32>
  %z = arith.constant 0.0 : f32
  %s = vector.multi_reduction <add>, %l, %z [0] : vector<16xf32> to f32
  return %s : f32
}

// -----

// CHECK-LABEL: func @transpose
//   CHECK-NOT: vector.transpose
//       CHECK: vector.shuffle
func.func @transpose(%a: memref<16x16xf32>, %b: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x16xf32>
  %t = vector.transpose %v, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
  vector.transfer_write %t, %b[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  return
}
