// RUN: gdn-opt %s -gdn-tile-form-tensor-maps | FileCheck %s
// Maps that are there already stay.
// RUN: gdn-opt %s -gdn-tile-form-tensor-maps -gdn-tile-form-tensor-maps | FileCheck %s

#shared = #gpu.address_space<workgroup>

// Two tiles of q share a map; the stored tile has one of its own.
// CHECK-LABEL: func @scan(
// CHECK-SAME: %[[Q:.*]]: memref<?x2x128xbf16>, %[[ODD:.*]]: memref<?x3xf32>, %[[G:.*]]: memref<?x64xf32>, %{{.*}}: index, %{{.*}}: index,
// CHECK-SAME: %[[QMAP:.*]]: !gdn_tile.tensor_map<memref<?x2x128xbf16>, dims = [0, 2], box = [32, 128]>,
// CHECK-SAME: %[[OMAP:.*]]: !gdn_tile.tensor_map<memref<?x2x128xbf16>, dims = [0, 2], box = [32, 64]>)
func.func @scan(%q: memref<?x2x128xbf16>, %odd: memref<?x3xf32>, %g: memref<?x64xf32>, %n: index, %rows: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %c128 = arith.constant 128 : index
  %a = memref.alloc() : memref<1x32x128xbf16, #shared>
  %b = memref.alloc() : memref<1x32x128xbf16, #shared>
  %c = memref.alloc() : memref<1x32x128xbf16, #shared>
  %d = memref.alloc() : memref<1x32xf32, #shared>
  %e = memref.alloc() : memref<1x64xf32, #shared>
  %o = memref.alloc() : memref<1x32x64xbf16, #shared>
  %in = gdn_tile.ring(%a, %b, %c, %d, %e : memref<1x32x128xbf16, #shared>, memref<1x32x128xbf16, #shared>, memref<1x32x128xbf16, #shared>, memref<1x32xf32, #shared>, memref<1x64xf32, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  %out = gdn_tile.ring(%o : memref<1x32x64xbf16, #shared>) producers(4) consumers(1) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    gdn_tile.role "load" warps(1) {
      %ta = gdn_tile.stage %a[%c0] : memref<1x32x128xbf16, #shared> to memref<32x128xbf16, #shared>
      %tb = gdn_tile.stage %b[%c0] : memref<1x32x128xbf16, #shared> to memref<32x128xbf16, #shared>
      %tc = gdn_tile.stage %c[%c0] : memref<1x32x128xbf16, #shared> to memref<32x128xbf16, #shared>
      %td = gdn_tile.stage %d[%c0] : memref<1x32xf32, #shared> to memref<32xf32, #shared>
      %te = gdn_tile.stage %e[%c0] : memref<1x64xf32, #shared> to memref<64xf32, #shared>
      %slot = gdn_tile.ring_acquire %in[%c0] : !gdn_tile.ring<1> -> !gdn_tile.slot
      // CHECK: gdn_tile.copy_in %[[Q]]{{.*}} map(%[[QMAP]] : {{.*}}) signal
      gdn_tile.copy_in %q[%n, %c0, %c0] dims [0, 2] valid(%rows, %c128) to %ta signal(%slot) : memref<?x2x128xbf16> to memref<32x128xbf16, #shared>
      // CHECK: gdn_tile.copy_in %[[Q]]{{.*}} map(%[[QMAP]] : {{.*}}) signal
      gdn_tile.copy_in %q[%n, %c1, %c0] dims [0, 2] to %tb signal(%slot) : memref<?x2x128xbf16> to memref<32x128xbf16, #shared>
      // Columns are always missing.
      // CHECK: gdn_tile.copy_in %[[Q]]{{.*}} to %{{[0-9]+}} signal
      gdn_tile.copy_in %q[%n, %c1, %c0] dims [0, 2] valid(%rows, %c100) to %tc signal(%slot) : memref<?x2x128xbf16> to memref<32x128xbf16, #shared>
      // No row of bytes.
      // CHECK: gdn_tile.copy_in %[[ODD]]{{.*}} to %{{[0-9]+}} signal
      gdn_tile.copy_in %odd[%n, %c1] dims [0] to %td signal(%slot) : memref<?x3xf32> to memref<32xf32, #shared>
      // A row of bytes needs no map.
      // CHECK: gdn_tile.copy_in %[[G]]{{.*}} to %{{[0-9]+}} signal
      gdn_tile.copy_in %g[%n, %c0] dims [1] to %te signal(%slot) : memref<?x64xf32> to memref<64xf32, #shared>
      gdn_tile.ring_commit %slot
    }
    gdn_tile.role "store" warps(1) {
      gdn_tile.ring_wait %out[%c0] : !gdn_tile.ring<1>
      %to = gdn_tile.stage %o[%c0] : memref<1x32x64xbf16, #shared> to memref<32x64xbf16, #shared>
      // CHECK: gdn_tile.copy_out %{{.*}} to %[[Q]]{{.*}} map(%[[OMAP]] : {{.*}})
      gdn_tile.copy_out %to to %q[%n, %c0, %c0] dims [0, 2] : memref<32x64xbf16, #shared> to memref<?x2x128xbf16>
      gdn_tile.ring_release %out[%c0] : !gdn_tile.ring<1>
    }
  }
  return
}

// Copies of the whole block stay as they are.
// CHECK-LABEL: func @block(
// CHECK-NOT: tensor_map
// CHECK: return
func.func @block(%q: memref<?x2x128xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<32x128xbf16, #shared>
  gdn_tile.copy_in %q[%n, %c0, %c0] dims [0, 2] to %a : memref<?x2x128xbf16> to memref<32x128xbf16, #shared>
  gdn_tile.copy_out %a to %q[%n, %c0, %c0] dims [0, 2] : memref<32x128xbf16, #shared> to memref<?x2x128xbf16>
  return
}

// Each launch makes its maps.
// CHECK-LABEL: func @host(
// CHECK-SAME: %[[X:.*]]: memref<?x2x128xbf16>, %[[Y:.*]]: memref<?x2x128xbf16>,
func.func @host(%x: memref<?x2x128xbf16>, %y: memref<?x2x128xbf16>, %odd: memref<?x3xf32>, %g: memref<?x64xf32>, %n: index) {
  // CHECK-DAG: %[[X1:.*]] = gdn_tile.make_tensor_map %[[X]] : <memref<?x2x128xbf16>, dims = [0, 2], box = [32, 128]>
  // CHECK-DAG: %[[X2:.*]] = gdn_tile.make_tensor_map %[[X]] : <memref<?x2x128xbf16>, dims = [0, 2], box = [32, 64]>
  // CHECK: gdn_tile.launch @scan grid(%{{.*}}) (%[[X]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[X1]], %[[X2]] :
  gdn_tile.launch @scan grid(%n) (%x, %odd, %g, %n, %n : memref<?x2x128xbf16>, memref<?x3xf32>, memref<?x64xf32>, index, index)
  // CHECK-DAG: %[[Y1:.*]] = gdn_tile.make_tensor_map %[[Y]] : <memref<?x2x128xbf16>, dims = [0, 2], box = [32, 128]>
  // CHECK-DAG: %[[Y2:.*]] = gdn_tile.make_tensor_map %[[Y]] : <memref<?x2x128xbf16>, dims = [0, 2], box = [32, 64]>
  // CHECK: gdn_tile.launch @scan grid(%{{.*}}) (%[[Y]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[Y1]], %[[Y2]] :
  gdn_tile.launch @scan grid(%n) (%y, %odd, %g, %n, %n : memref<?x2x128xbf16>, memref<?x3xf32>, memref<?x64xf32>, index, index)
  return
}
