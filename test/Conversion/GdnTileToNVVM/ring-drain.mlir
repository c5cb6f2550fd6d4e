// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a -canonicalize -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// 64 KB of the first ring, and 48 and 16 KB of two that are first written behind its drain, one of them by another role: they share
// their bytes. 4 (two stages) + 2 + 2 barriers of 8 bytes come on top.
// Behind a drain of n iterations both stages have been released: as iterations n and n + 1 would find them.

// CHECK-LABEL: llvm.func @drained
// CHECK-SAME: gdn.shared_bytes = 65600 : i64
// CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: mbarrier.try_wait
// CHECK: nvvm.cp.async
// CHECK: cp.async.mbarrier.arrive
// CHECK: %[[AT:.*]] = llvm.trunc %{{.*}} : i64 to i32
// CHECK: llvm.urem %[[AT]], %[[C2]]
// CHECK: mbarrier.try_wait
// CHECK: %[[NEXT:.*]] = llvm.add %{{.*}}, %{{.*}} : i64
// CHECK: %[[AT1:.*]] = llvm.trunc %[[NEXT]] : i64 to i32
// CHECK: llvm.urem %[[AT1]], %[[C2]]
// CHECK: mbarrier.try_wait
// CHECK-NOT: mbarrier.try_wait
// CHECK: scf.for
func.func @drained(%x: memref<?x128x64xf32>, %y: memref<?x192x64xf32>, %o: memref<64x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<2x128x64xf32, #shared>
  %b = memref.alloc() : memref<1x192x64xf32, #shared>
  %d = memref.alloc() : memref<1x64x64xf32, #shared>
  %first = gdn_tile.ring(%a : memref<2x128x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  %next = gdn_tile.ring(%b : memref<1x192x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  %out = gdn_tile.ring(%d : memref<1x64x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %first[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_release %first[%i] : !gdn_tile.ring<2>
      }
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %next[%i] : !gdn_tile.ring<1>
        gdn_tile.ring_release %next[%i] : !gdn_tile.ring<1>
      }
    }
    gdn_tile.role "load" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %first[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %tile = gdn_tile.stage %a[%c0] : memref<2x128x64xf32, #shared> to memref<128x64xf32, #shared>
        gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %tile signal(%slot) : memref<?x128x64xf32> to memref<128x64xf32, #shared>
        gdn_tile.ring_commit %slot
      }
      gdn_tile.ring_drain %first[%n] before(%next, %out : !gdn_tile.ring<1>, !gdn_tile.ring<1>) : !gdn_tile.ring<2>
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %next[%i] : !gdn_tile.ring<1> -> !gdn_tile.slot
        %tile = gdn_tile.stage %b[%c0] : memref<1x192x64xf32, #shared> to memref<192x64xf32, #shared>
        gdn_tile.copy_in %y[%i, %c0, %c0] dims [1, 2] to %tile signal(%slot) : memref<?x192x64xf32> to memref<192x64xf32, #shared>
        gdn_tile.ring_commit %slot
      }
    }
  }
  return
}

// A ring that is not behind the drain has bytes of its own: 16 KB of the first one, and as many; 3 barriers of 8 bytes each way.
// CHECK-LABEL: llvm.func @beside_the_drained
// CHECK-SAME: gdn.shared_bytes = 32800 : i64
func.func @beside_the_drained(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %a = memref.alloc() : memref<1x64x64xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xf32, #shared>
  %first = gdn_tile.ring(%a : memref<1x64x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  %beside = gdn_tile.ring(%b : memref<1x64x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    gdn_tile.role "load" warps(4) {
      gdn_tile.ring_drain %first[%n] : !gdn_tile.ring<1>
    }
  }
  return
}
