// RUN: gdn-opt %s | gdn-opt | FileCheck %s

// Warps with roles of their own, which exchange tiles through rings.

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: func @pipeline
func.func @pipeline(%x: memref<?x64xbf16>, %o: memref<?x64xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %in = memref.alloc() : memref<3x64x64xbf16, #shared>
  %out = memref.alloc() : memref<2x64x64xbf16, #shared>
  // CHECK: %[[IN:.*]] = gdn_tile.ring(%{{.*}} : memref<3x64x64xbf16, #gpu.address_space<workgroup>>) producers(2) consumers(4) : <3>
  %full = gdn_tile.ring(%in : memref<3x64x64xbf16, #shared>) producers(2) consumers(4) : !gdn_tile.ring<3>
  // CHECK: %[[OUT:.*]] = gdn_tile.ring(%{{.*}} : memref<2x64x64xbf16, #gpu.address_space<workgroup>>) producers(4) consumers(2) : <2>
  %done = gdn_tile.ring(%out : memref<2x64x64xbf16, #shared>) producers(4) consumers(2) : !gdn_tile.ring<2>
  // CHECK: gdn_tile.roles {
  gdn_tile.roles {
    // CHECK-NEXT: gdn_tile.role "math" warps(4) registers(240) {
    gdn_tile.role "math" warps(4) registers(240) {
      // CHECK: scf.for %[[I:.*]] = %{{.*}}
      scf.for %i = %c0 to %n step %c1 {
        // CHECK: gdn_tile.ring_wait %[[IN]][%[[I]]] : <3>
        gdn_tile.ring_wait %full[%i] : !gdn_tile.ring<3>
        %s = arith.remui %i, %c3 : index
        %tile = gdn_tile.stage %in[%s] : memref<3x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %v = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
        // CHECK: gdn_tile.ring_release %[[IN]][%[[I]]] : <3>
        gdn_tile.ring_release %full[%i] : !gdn_tile.ring<3>
        // CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[OUT]][%[[I]]] : <2> -> !gdn_tile.slot
        %slot = gdn_tile.ring_acquire %done[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %t = arith.remui %i, %c2 : index
        %to = gdn_tile.stage %out[%t] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        gdn_tile.store %v, %to[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
        // CHECK: gdn_tile.ring_commit %[[SLOT]]
        gdn_tile.ring_commit %slot
      }
    // CHECK-NOT: role_end
    // CHECK: }
    }
    // CHECK: gdn_tile.role "load" warps(2) registers(24) {
    gdn_tile.role "load" warps(2) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        // CHECK: %[[FREE:.*]] = gdn_tile.ring_acquire %[[IN]]
        %slot = gdn_tile.ring_acquire %full[%i] : !gdn_tile.ring<3> -> !gdn_tile.slot
        %s = arith.remui %i, %c3 : index
        %tile = gdn_tile.stage %in[%s] : memref<3x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        // CHECK: gdn_tile.copy_in %{{.*}} dims [0, 1] to %{{.*}} signal(%[[FREE]]) : memref<?x64xbf16> to memref<64x64xbf16, #gpu.address_space<workgroup>>
        gdn_tile.copy_in %x[%row, %c0] dims [0, 1] to %tile signal(%slot) : memref<?x64xbf16> to memref<64x64xbf16, #shared>
        gdn_tile.ring_commit %slot
      }
      // CHECK: gdn_tile.ring_drain %[[IN]][%{{.*}}] : <3>
      gdn_tile.ring_drain %full[%n] : !gdn_tile.ring<3>
    }
    // CHECK: gdn_tile.role "store" warps(2) registers(24) {
    gdn_tile.role "store" warps(2) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %done[%i] : !gdn_tile.ring<2>
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %out[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        gdn_tile.copy_out %tile to %o[%row, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<?x64xbf16>
        gdn_tile.ring_release %done[%i] : !gdn_tile.ring<2>
      }
    }
  }
  return
}

// CHECK-LABEL: func @without_registers
func.func @without_registers() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  gdn_tile.roles {
    // CHECK: gdn_tile.role "math" warps(2) {
    gdn_tile.role "math" warps(2) {
      gdn_tile.barrier
    }
    // CHECK: gdn_tile.role "rest" warps(1) {
    gdn_tile.role "rest" warps(1) {
    }
  }
  return
}
