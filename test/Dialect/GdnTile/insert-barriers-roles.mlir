// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-insert-barriers))' | FileCheck %s

// Each role has barriers of its own; rings order what the roles exchange.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// CHECK-LABEL: func @ring_tiles
// CHECK-NOT: gdn_tile.barrier
// CHECK: return
func.func @ring_tiles(%x: memref<?x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %in = memref.alloc() : memref<2x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%in : memref<2x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %v = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
        gdn_tile.store %v, %x[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<?x64xbf16>
        gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      }
    }
    gdn_tile.role "load" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %tile signal(%slot) : memref<?x64xbf16> to memref<64x64xbf16, #shared>
        gdn_tile.ring_commit %slot
      }
    }
  }
  return
}

// What one role keeps for itself; the other has nothing to do with it.
// CHECK-LABEL: func @own_tile
// CHECK: gdn_tile.role "math"
// CHECK: gdn_tile.store
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.load
// CHECK: gdn_tile.role "rest"
// CHECK-NOT: gdn_tile.barrier
func.func @own_tile(%v: f32) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x8xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %a = vector.broadcast %v : f32 to vector<64x8xf32>
      gdn_tile.store %a, %tile[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<64x8xf32, #shared>
      %b = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x8xf32, #shared>, vector<64x8xf32>
    }
    gdn_tile.role "rest" warps(4) {
    }
  }
  return
}

// All warps have copied: they meet in front of the roles.
// CHECK-LABEL: func @before_roles
// CHECK: gdn_tile.copy_in
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.roles
// CHECK-NOT: gdn_tile.barrier
func.func @before_roles(%x: memref<64x8xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x8xf32, #shared>
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile : memref<64x8xf32> to memref<64x8xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %b = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x8xf32, #shared>, vector<64x8xf32>
    }
  }
  return
}

// They meet where a ring is made, too.
// CHECK-LABEL: func @before_ring
// CHECK-NOT: gdn_tile.barrier
// CHECK: return
func.func @before_ring(%x: memref<64x8xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x8xf32, #shared>
  %in = memref.alloc() : memref<2x64x64xbf16, #shared>
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile : memref<64x8xf32> to memref<64x8xf32, #shared>
  %ring = gdn_tile.ring(%in : memref<2x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %b = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x8xf32, #shared>, vector<64x8xf32>
    }
  }
  return
}

// The ring says nothing about the warps of one role: what one wrote into its
// tile, the others read behind a barrier. Its ops need none around them.
// CHECK-LABEL: func @ring_tile_within_a_role
// CHECK: gdn_tile.role "make"
// CHECK: gdn_tile.ring_acquire
// CHECK-NOT: gdn_tile.barrier
// CHECK: gdn_tile.each_warp
// CHECK-NOT: gdn_tile.barrier
// CHECK: gdn_tile.store
// CHECK-NEXT: }
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.load
// CHECK-NEXT: gdn_tile.store
// CHECK-NEXT: gdn_tile.ring_commit
// CHECK-NEXT: }
// CHECK: gdn_tile.role "read"
// CHECK-NOT: gdn_tile.barrier
// CHECK: return
func.func @ring_tile_within_a_role(%x: memref<64x64xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : vector<16x64xf32>
  %in = memref.alloc() : memref<2x64x64xf32, #shared>
  %ring = gdn_tile.ring(%in : memref<2x64x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "make" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xf32, #shared> to memref<64x64xf32, #shared>
        gdn_tile.each_warp (%w) in (%c4) {
          %row = arith.muli %w, %c16 : index
          gdn_tile.store %one, %tile[%row, %c0] dims [0, 1] : vector<16x64xf32>, memref<64x64xf32, #shared>
        }
        %t = gdn_tile.load %tile[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
        gdn_tile.store %t, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
        gdn_tile.ring_commit %slot
      }
    }
    gdn_tile.role "read" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xf32, #shared> to memref<64x64xf32, #shared>
        %t = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<64x64xf32>
        gdn_tile.store %t, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
        gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      }
    }
  }
  return
}

// A ring orders its own tiles, all of them, and no others across its ops.
// CHECK-LABEL: func @ring_tiles_and_others
// CHECK: gdn_tile.role "math"
// CHECK-NOT: gdn_tile.barrier
// CHECK: gdn_tile.store
// CHECK-NEXT: gdn_tile.store %{{.*}}, %[[OWN:.*]][%c0, %c0]
// CHECK-NEXT: gdn_tile.ring_release
// CHECK-NOT: gdn_tile.barrier
// CHECK: gdn_tile.ring_wait
// CHECK-NOT: gdn_tile.barrier
// CHECK: gdn_tile.load %{{.*}} : memref<64x8xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: gdn_tile.store
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.load %[[OWN]]
// CHECK-NOT: gdn_tile.barrier
// CHECK: return
func.func @ring_tiles_and_others(%v: f32, %o: memref<64x8xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<1x64x8xf32, #shared>
  %b = memref.alloc() : memref<1x64x8xf32, #shared>
  %own = memref.alloc() : memref<64x8xf32, #shared>
  %ring = gdn_tile.ring(%a, %b : memref<1x64x8xf32, #shared>, memref<1x64x8xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %x = vector.broadcast %v : f32 to vector<64x8xf32>
      gdn_tile.ring_wait %ring[%c0] : !gdn_tile.ring<1>
      %second = gdn_tile.stage %b[%c0] : memref<1x64x8xf32, #shared> to memref<64x8xf32, #shared>
      gdn_tile.store %x, %second[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<64x8xf32, #shared>
      gdn_tile.store %x, %own[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<64x8xf32, #shared>
      gdn_tile.ring_release %ring[%c0] : !gdn_tile.ring<1>
      gdn_tile.ring_wait %ring[%c1] : !gdn_tile.ring<1>
      %y = gdn_tile.load %second[%c0, %c0] dims [0, 1] : memref<64x8xf32, #shared>, vector<64x8xf32>
      gdn_tile.store %y, %o[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<64x8xf32>
      %z = gdn_tile.load %own[%c0, %c0] dims [0, 1] : memref<64x8xf32, #shared>, vector<64x8xf32>
      gdn_tile.store %z, %o[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<64x8xf32>
      gdn_tile.ring_release %ring[%c1] : !gdn_tile.ring<1>
    }
  }
  return
}
