// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-tile-batch-copies))" | FileCheck %s

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: func @copies(
func.func @copies(%x: memref<?x64xbf16>, %g: memref<?x4xbf16>, %b: memref<?x4xf32>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %q = memref.alloc() : memref<64x64xbf16, #shared>
  %gate = memref.alloc() : memref<64xf32, #shared>
  %sums = memref.alloc() : memref<65x72xf32, #shared>
  // The copy that converts is no part of the group, but what follows it is.
  // CHECK: %[[K:.*]] = gdn_tile.copy_in %{{.*}} -> !gdn_tile.token
  // CHECK: arith.addi
  // CHECK: gdn_tile.copy_in %{{.*}} : memref<?x4xbf16> to memref<64xf32, #gpu.address_space<workgroup>>{{$}}
  // CHECK: %[[B:.*]] = gdn_tile.copy_in %{{.*}} -> !gdn_tile.token
  // CHECK-NEXT: %[[GROUP:.*]] = gdn_tile.join %[[K]], %[[B]]
  // CHECK-NEXT: gdn_tile.wait %[[GROUP]]
  // CHECK-NEXT: gdn_tile.cumsum
  gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %k : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  %j = arith.addi %i, %c1 : index
  gdn_tile.copy_in %g[%j, %c0] dims [0] to %gate : memref<?x4xbf16> to memref<64xf32, #shared>
  // An allocation between copies does not part them.
  %beta = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.copy_in %b[%j, %c0] dims [0] to %beta : memref<?x4xf32> to memref<64xf32, #shared>
  gdn_tile.cumsum %gate : memref<64xf32, #shared>
  // Running sums wait for memory at the same time: the group is waited for behind them.
  // CHECK: gdn_tile.copy_in %{{.*}} -> !gdn_tile.token
  // CHECK: gdn_tile.copy_in %{{.*}} -> !gdn_tile.token
  // CHECK-NEXT: gdn_tile.copy_sums
  // CHECK-NEXT: gdn_tile.join
  // CHECK-NEXT: gdn_tile.wait
  // CHECK-NEXT: gdn_tile.cumsum
  gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %k : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  gdn_tile.copy_in %x[%j, %c0] dims [0, 1] to %q : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  gdn_tile.copy_sums %x[%i, %c0] dims [0, 1] to %sums {columns = 64 : i64, least = -104.0, factor = 1.0} : memref<?x64xbf16> to memref<65x72xf32, #shared>
  gdn_tile.cumsum %beta : memref<64xf32, #shared>
  // A single copy gains nothing.
  // CHECK: gdn_tile.copy_in %{{.*}} : memref<?x64xbf16> to memref<64x64xbf16, #gpu.address_space<workgroup>>{{$}}
  // CHECK-NEXT: gdn_tile.cumsum
  gdn_tile.copy_in %x[%j, %c0] dims [0, 1] to %q : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  gdn_tile.cumsum %beta : memref<64xf32, #shared>
  // The same tile twice: the copies keep their order.
  // CHECK: gdn_tile.copy_in %{{.*}} #gpu.address_space<workgroup>>{{$}}
  // CHECK-NEXT: gdn_tile.copy_in %{{.*}} #gpu.address_space<workgroup>>{{$}}
  // CHECK-NEXT: return
  gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %q : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  gdn_tile.copy_in %x[%j, %c0] dims [0, 1] to %q : memref<?x64xbf16> to memref<64x64xbf16, #shared>
  return
}
