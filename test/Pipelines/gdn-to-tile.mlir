// RUN: gdn-opt %s -gdn-to-tile=target=sm_90a | FileCheck %s
// RUN: gdn-opt %s -gdn-to-tile=target=sm_90a | gdn-opt | FileCheck %s

// From tensors to tile programs: o and the state are updated in place, so the
// function returns nothing and allocates only the workspaces.

// CHECK-LABEL: func.func @forward_prepare
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator
// CHECK-LABEL: func.func @forward_scan
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator
// CHECK-LABEL: func.func @forward_segments
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator
// CHECK-LABEL: func.func @forward_scan_later
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>
// CHECK-LABEL: func.func @forward(
// CHECK-COUNT-6: memref.alloc
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// 128 chunks of 16 key heads; 32 value heads of 2 value blocks, in 3 segments.
// CHECK: gdn_tile.launch @forward_prepare grid(%c2048)
// CHECK: gdn_tile.launch @forward_scan grid(%c64)
// CHECK: gdn_tile.launch @forward_segments grid(%c64)
// CHECK-NEXT: gdn_tile.launch @forward_scan_later grid(%c128)
// CHECK-NOT: memref.copy
// CHECK: return
func.func @forward(
    %q: tensor<1x8192x16x128xbf16>, %k: tensor<1x8192x16x128xbf16>, %v: tensor<1x8192x32x128xbf16>,
    %g: tensor<1x8192x32xf32>, %b: tensor<1x8192x32xf32>,
    %o: tensor<1x8192x32x128xbf16> {bufferization.writable = true},
    %s: tensor<1x32x128x128xf32> {bufferization.writable = true})
    -> (tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x8192x16x128xbf16>, tensor<1x8192x16x128xbf16>, tensor<1x8192x32x128xbf16>)
      gate(%g : tensor<1x8192x32xf32>) beta(%b : tensor<1x8192x32xf32>)
      outs(%o, %s : tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>)
      -> tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>
  return %0#0, %0#1 : tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>
}
