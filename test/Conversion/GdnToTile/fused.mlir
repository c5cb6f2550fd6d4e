// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize | FileCheck %s

// One kernel, no workspace: what a prepare kernel does runs ahead in the loop over the chunks, on the tiles that its
// copies fill. The second part of N is there only where a row is split.

// CHECK-LABEL: func @forward_scan
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator
// CHECK: scf.for
// CHECK-COUNT-5: gdn_tile.copy_in
// CHECK-NOT: gdn_tile.copy_in
// CHECK: gdn_tile.ahead teams(2) {
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c1)
// CHECK: gdn_tile.cumsum %{{.*}} of
// CHECK: gdn_tile.mma %{{.*}} {transpose_b} : vector<64x64xbf16>
// The rows of M that a warp holds: in front of the diagonal, and the diagonal block for its inverse.
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK: gdn_tile.own_rows %{{.*}}[0]
// CHECK: gdn_tile.own_rows %{{.*}}[48]
// CHECK: gdn_tile.block_inverse %{{.*}} : memref<16x16xf32
// CHECK: gdn_tile.mma %{{.*}} {transpose_b} : vector<64x64xbf16>
// A column of N in nine products, then a row of P.
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK-COUNT-9: gdn_tile.warp_mma {{.*}} tf32
// CHECK-NOT: gdn_tile.warp_mma
// CHECK: gdn_tile.any
// CHECK: gdn_tile.own_rows %{{.*}}[0]
// CHECK: gdn_tile.own_rows %{{.*}}[48]
// CHECK: gdn_tile.any
// Rare: the split rows, and their second parts from an inverse that is more exact.
// CHECK: scf.if
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK-COUNT-9: gdn_tile.warp_mma {{.*}} tf32
// CHECK-NOT: gdn_tile.warp_mma
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK: gdn_tile.sum
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK: gdn_tile.block_inverse {{.*}} bf16x3
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%c4)
// CHECK-COUNT-9: gdn_tile.warp_mma {{.*}} bf16x3
// CHECK-NOT: gdn_tile.warp_mma
// CHECK: gdn_tile.any %{{.*}} : vector<1x1xi1> to i1
// CHECK: scf.if %{{.*}} -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
// CHECK-NEXT: gdn_tile.refine
// CHECK: gdn_tile.copy_out
// CHECK: gdn_tile.stages = 3
// CHECK-LABEL: func @forward(
// CHECK-NOT: memref.alloc
// CHECK: gdn_tile.launch @forward_scan
// CHECK-NOT: gdn_tile.launch
func.func @forward(%q: memref<1x128x1x64xbf16>, %k: memref<1x128x1x64xbf16>, %v: memref<1x128x2x64xbf16>, %g: memref<1x128x2xf32>,
                   %b: memref<1x128x2xf32>, %o: memref<1x128x2x64xbf16>, %s: memref<1x2x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x128x1x64xbf16>, memref<1x128x1x64xbf16>, memref<1x128x2x64xbf16>)
      gate(%g : memref<1x128x2xf32>) beta(%b : memref<1x128x2xf32>)
      outs(%o, %s : memref<1x128x2x64xbf16>, memref<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64, stages = 3>}
  return
}
