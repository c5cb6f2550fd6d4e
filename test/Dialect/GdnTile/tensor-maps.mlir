// RUN: gdn-opt %s | gdn-opt | FileCheck %s

#shared = #gpu.address_space<workgroup>
!keys = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
!chunks = !gdn_tile.tensor_map<memref<?x4x2x64x64xf32>, dims = [3, 4], box = [64, 64]>

// CHECK-LABEL: func @copies
// CHECK-SAME: %[[K:.*]]: memref<?x16x128xbf16>, %[[MAP:.*]]: !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
func.func @copies(%k: memref<?x16x128xbf16>, %map: !keys, %i: index, %rows: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %tile = memref.alloc() : memref<64x128xbf16, #shared>
  // CHECK: gdn_tile.copy_in %[[K]][%{{.*}}] dims [0, 2] valid(%{{.*}}, %{{.*}}) to %[[TILE:.*]] map(%[[MAP]] : !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>) : memref<?x16x128xbf16> to memref<64x128xbf16, #gpu.address_space<workgroup>>
  gdn_tile.copy_in %k[%i, %c0, %c0] dims [0, 2] valid(%rows, %c128) to %tile map(%map : !keys)
      : memref<?x16x128xbf16> to memref<64x128xbf16, #shared>
  // CHECK: gdn_tile.copy_out %[[TILE]] to %[[K]][%{{.*}}] dims [0, 2] valid(%{{.*}}, %{{.*}}) map(%[[MAP]] : !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>) : memref<64x128xbf16, #gpu.address_space<workgroup>> to memref<?x16x128xbf16>
  gdn_tile.copy_out %tile to %k[%i, %c0, %c0] dims [0, 2] valid(%rows, %c128) map(%map : !keys)
      : memref<64x128xbf16, #shared> to memref<?x16x128xbf16>
  return
}

// CHECK-LABEL: func @host
func.func @host(%k: memref<?x16x128xbf16>, %t: memref<?x4x2x64x64xf32>, %n: index) {
  // CHECK: %[[KEYS:.*]] = gdn_tile.make_tensor_map %{{.*}} : <memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
  %keys = gdn_tile.make_tensor_map %k : !keys
  // CHECK: gdn_tile.make_tensor_map %{{.*}} : <memref<?x4x2x64x64xf32>, dims = [3, 4], box = [64, 64]>
  %chunks = gdn_tile.make_tensor_map %t : !chunks
  // CHECK: gdn_tile.launch @copies grid(%{{.*}}) (%{{.*}}, %[[KEYS]], %{{.*}}, %{{.*}} : memref<?x16x128xbf16>, !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>, index, index)
  gdn_tile.launch @copies grid(%n) (%k, %keys, %n, %n : memref<?x16x128xbf16>, !keys, index, index)
  return
}
