// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// High precision: what is rounded for a product has two parts, and a product is the sum
// of those of the parts but for that of two second parts.

// CHECK-LABEL: func @high_prepare
// CHECK: gdn_tile.each_warp
// CHECK: gdn_tile.block_inverse {{.*}} bf16x3
// CHECK-NOT: tf32
// Rows of T and of P leave in two parts each.
// CHECK: gdn_tile.store_block {{.*}} {diagonal} : vector<16x16xbf16>, memref<?x2x2x24x8xbf16>
// CHECK: gdn_tile.store_block {{.*}} {diagonal} : vector<16x16xbf16>, memref<?x2x2x24x8xbf16>

// CHECK-LABEL: func @high_scan
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK:   gdn_tile.copy_in {{.*}} to %[[KEYS:.*]] : memref<64x1x16xbf16> to
// CHECK:   gdn_tile.copy_in {{.*}} to %[[QUERIES:.*]] : memref<64x1x16xbf16> to
// CHECK:   gdn_tile.copy_in {{.*}} to %[[T0:.*]] {lower} : memref<?x2x2x24x8xbf16> to
// CHECK:   gdn_tile.copy_in {{.*}} to %[[T1:.*]] {lower} : memref<?x2x2x24x8xbf16> to
// CHECK:   gdn_tile.copy_in {{.*}}, %c0, %c0, %c0] dims [3, 4] to %[[P0:.*]] {lower} : memref<?x2x2x24x8xbf16> to
// CHECK:   gdn_tile.copy_in {{.*}}, %c1, %c0, %c0] dims [3, 4] to %[[P1:.*]] {lower} : memref<?x2x2x24x8xbf16> to
// CHECK:   %[[S0:.*]] = arith.truncf %[[S]]
// CHECK:   %[[BACK:.*]] = arith.extf %[[S0]]
// CHECK:   %[[LEFT:.*]] = arith.subf %[[S]], %[[BACK]] : vector<16x16xf32>
// CHECK:   %[[S1:.*]] = arith.truncf %[[LEFT]]
// The last part first: it is made of the others, which nothing may read while their products run.
// CHECK:   %[[READ:.*]] = gdn_tile.mma %[[S1]], %[[KEYS]] {transpose_b}
// CHECK:   gdn_tile.mma %[[S0]], %[[KEYS]] acc(%[[READ]]
// CHECK:   %[[W0:.*]] = arith.truncf
// CHECK:   %[[W1:.*]] = arith.truncf
// CHECK:   %[[U0:.*]] = gdn_tile.mma %[[W1]], %[[T0]] {transpose_b}
// CHECK:   %[[U1:.*]] = gdn_tile.mma %[[W0]], %[[T0]] acc(%[[U0]]
// CHECK:   gdn_tile.mma %[[W0]], %[[T1]] acc(%[[U1]]
// CHECK:   %[[O:.*]] = gdn_tile.mma %[[S1]], %[[QUERIES]] {transpose_b}
// CHECK:   gdn_tile.mma %[[S0]], %[[QUERIES]] acc(%[[O]]
// CHECK:   %[[NEXT:.*]] = gdn_tile.mma %{{.*}}, %[[KEYS]] acc(%{{.*}}) :
// CHECK:   gdn_tile.mma %{{.*}}, %[[KEYS]] acc(%[[NEXT]]
// CHECK:   %[[O2:.*]] = gdn_tile.mma %[[L1:.*]], %[[P0]] acc(
// CHECK:   %[[O3:.*]] = gdn_tile.mma %[[L0:.*]], %[[P0]] acc(%[[O2]]
// CHECK:   %[[O4:.*]] = gdn_tile.mma %[[L0]], %[[P1]] acc(%[[O3]]
// o stays float32.
// CHECK-NOT: arith.truncf
// CHECK:   gdn_tile.store %[[O4]]
// CHECK:   gdn_tile.copy_out {{.*}} : memref<16x16xf32, #gpu.address_space<workgroup>> to memref<64x2x16xf32>

// CHECK-LABEL: func @high(
// CHECK: memref.alloc() : memref<4x2x2x24x8xbf16>
func.func @high(%q: memref<1x64x1x16xbf16>, %v: memref<1x64x2x16xbf16>, %b: memref<1x64x2xf32>, %o: memref<1x64x2x16xf32>, %s: memref<1x2x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x64x1x16xbf16>, memref<1x64x1x16xbf16>, memref<1x64x2x16xbf16>)
      gate(%b : memref<1x64x2xf32>) beta(%b : memref<1x64x2xf32>) outs(%o, %s : memref<1x64x2x16xf32>, memref<1x2x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, precision = high>}
  return
}

// -----

// Gates per channel: the scores are of float32 tiles, and the decayed copies have two parts.

// CHECK-LABEL: func @channels_prepare
// CHECK: gdn_tile.scores {{.*}} memref<16x16xf32, #gpu.address_space<workgroup>>
// CHECK: gdn_tile.block_inverse {{.*}} bf16x3
// CHECK-NOT: tf32
// CHECK-LABEL: func @channels_scan
// CHECK-COUNT-6: gdn_tile.copy_in {{.*}} : memref<?x2x2x16x16xbf16>
// CHECK-COUNT-2: gdn_tile.copy_in {{.*}} {lower} : memref<?x2x2x24x8xbf16>
// CHECK-COUNT-2: gdn_tile.copy_in {{.*}} : memref<?x2x2x16x16xbf16>
func.func @channels(%q: memref<1x64x1x16xbf16>, %v: memref<1x64x2x16xbf16>, %g: memref<1x64x2x16xf32>, %b: memref<1x64x2xf32>, %s: memref<1x2x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x64x1x16xbf16>, memref<1x64x1x16xbf16>, memref<1x64x2x16xbf16>)
      gate(%g : memref<1x64x2x16xf32>) beta(%b : memref<1x64x2xf32>) outs(%v, %s : memref<1x64x2x16xbf16>, memref<1x2x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, precision = high>}
  return
}

// -----

// Default precision: the inverse joins its blocks by TF32, but for that of which second parts are.

// CHECK-LABEL: func @one_part_prepare
// CHECK: gdn_tile.block_inverse {{.*}} tf32
// CHECK-NOT: bf16x3
// CHECK: scf.if
// CHECK: gdn_tile.block_inverse {{.*}} bf16x3
// CHECK-NOT: tf32
// CHECK-LABEL: func @one_part_scan
func.func @one_part(%q: memref<1x64x1x16xbf16>, %v: memref<1x64x2x16xbf16>, %g: memref<1x64x2x16xf32>, %b: memref<1x64x2xf32>, %s: memref<1x2x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x64x1x16xbf16>, memref<1x64x1x16xbf16>, memref<1x64x2x16xbf16>)
      gate(%g : memref<1x64x2x16xf32>) beta(%b : memref<1x64x2xf32>) outs(%v, %s : memref<1x64x2x16xbf16>, memref<1x2x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// Float32 inputs have one part, and products of three TF32 passes, with either precision.

// CHECK-LABEL: func @float_scan
// CHECK: %[[READ:.*]] = gdn_tile.mma %{{.*}}, %[[KEYS:.*]] {transpose_b}
// CHECK-NOT: gdn_tile.mma %{{.*}}, %[[KEYS]] acc(%[[READ]]
// CHECK-LABEL: func @float(
func.func @float(%q: memref<1x64x1x16xf32>, %b: memref<1x64x1xf32>, %o: memref<1x64x1x16xf32>, %s: memref<1x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x64x1x16xf32>, memref<1x64x1x16xf32>, memref<1x64x1x16xf32>)
      beta(%b : memref<1x64x1xf32>) outs(%o, %s : memref<1x64x1x16xf32>, memref<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16, precision = high>}
  return
}
