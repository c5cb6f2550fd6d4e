// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a -canonicalize -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// A kernel between one that it runs beside and one that waits for it: the warps that copy let the latter start when they have
// issued the last copy, while those that compute are still at work. What the latter copy themselves does not
// make them early.

// CHECK-LABEL: llvm.func @between(
// CHECK-NOT: griddepcontrol launch_dependents
// CHECK: llvm.urem
// CHECK-NOT: griddepcontrol launch_dependents
// CHECK: nvvm.cp.async.shared.global
// CHECK: cp.async.mbarrier.arrive
// CHECK-NEXT: {{^ *}$}}
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: griddepcontrol launch_dependents
// CHECK: griddepcontrol.wait
// CHECK-NOT: griddepcontrol launch_dependents
// CHECK: llvm.return
func.func @between(%x: memref<?x64x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<2x64x64xf32, #shared>
  %own = memref.alloc() : memref<64x64xf32, #shared>
  %ring = gdn_tile.ring(%a : memref<2x64x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      gdn_tile.copy_in %x[%c0, %c0, %c0] dims [1, 2] to %own : memref<?x64x64xf32> to memref<64x64xf32, #shared>
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      }
    }
    gdn_tile.role "load" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %tile = gdn_tile.stage %a[%c0] : memref<2x64x64xf32, #shared> to memref<64x64xf32, #shared>
        gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %tile signal(%slot) : memref<?x64x64xf32> to memref<64x64xf32, #shared>
        gdn_tile.ring_commit %slot
      }
    }
  }
  return
}

func.func @front(%x: memref<?x64x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  return
}

func.func @behind(%x: memref<?x64x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.await_launch
  return
}

func.func @host(%x: memref<?x64x64xf32>, %n: index) {
  gdn_tile.launch @front grid(%n) (%x, %n : memref<?x64x64xf32>, index)
  gdn_tile.launch @between grid(%n) (%x, %n : memref<?x64x64xf32>, index) {beside}
  gdn_tile.launch @behind grid(%n) (%x, %n : memref<?x64x64xf32>, index) {beside}
  return
}
