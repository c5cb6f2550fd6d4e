// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Offsets of 64 bits.

// CHECK-LABEL: func @long_offsets_prepare
// CHECK: gdn_tile.find_sequence %{{.*}} in %{{.*}} chunk 16 : memref<?xi64>
// CHECK-LABEL: func @long_offsets_scan
func.func @long_offsets(%q: memref<1x?x1x16xbf16>, %cu: memref<?xi64>, %s: memref<?x1x16x16xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x?x1x16xbf16>, memref<1x?x1x16xbf16>, memref<1x?x1x16xbf16>)
      offsets(%cu : memref<?xi64>)
      outs(%q, %s : memref<1x?x1x16xbf16>, memref<?x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
  return
}

// -----

// Packed sequences: q and k of a block further on, as if it were of the same sequence, which starts at no row before the first.

// CHECK-LABEL: func @packed_prepare(
// CHECK: %[[SLOT:.*]] = gdn_tile.find_sequence
// CHECK: gdn_tile.copy_in
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK-COUNT-2: gdn_tile.prefetch %{{.*}}[%[[ROW]], %{{.*}}, %c0]
func.func @packed(%q: memref<1x?x1x64xbf16>, %k: memref<1x?x1x64xbf16>, %v: memref<1x?x2x64xbf16>, %g: memref<1x?x2xf32>, %b: memref<1x?x2xf32>,
                  %offsets: memref<3xi32>, %o: memref<1x?x2x64xbf16>, %s: memref<2x2x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x1x64xbf16>, memref<1x?x1x64xbf16>, memref<1x?x2x64xbf16>)
      gate(%g : memref<1x?x2xf32>) beta(%b : memref<1x?x2xf32>) offsets(%offsets : memref<3xi32>)
      outs(%o, %s : memref<1x?x2x64xbf16>, memref<2x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
  return
}

// -----

// Not with four value heads per key head.

// CHECK-LABEL: func @packed_of_four_prepare(
// CHECK: gdn_tile.find_sequence
// CHECK-NOT: gdn_tile.prefetch
// CHECK-LABEL: func @packed_of_four_scan(
func.func @packed_of_four(%q: memref<1x?x1x64xbf16>, %k: memref<1x?x1x64xbf16>, %v: memref<1x?x4x64xbf16>, %g: memref<1x?x4xf32>, %b: memref<1x?x4xf32>,
                          %offsets: memref<3xi32>, %o: memref<1x?x4x64xbf16>, %s: memref<2x4x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x1x64xbf16>, memref<1x?x1x64xbf16>, memref<1x?x4x64xbf16>)
      gate(%g : memref<1x?x4xf32>) beta(%b : memref<1x?x4xf32>) offsets(%offsets : memref<3xi32>)
      outs(%o, %s : memref<1x?x4x64xbf16>, memref<2x4x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
  return
}
