// RUN: gdn-opt %s --split-input-file --verify-diagnostics

#shared = #gpu.address_space<workgroup>
func.func @f(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects other rings in `before`}}
      gdn_tile.ring_drain %ring[%n] before(%ring : !gdn_tile.ring<2>) : !gdn_tile.ring<2>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %y = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  %next = gdn_tile.ring(%y : memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %slot = gdn_tile.ring_acquire %next[%n] : !gdn_tile.ring<2> -> !gdn_tile.slot
      gdn_tile.ring_commit %slot
      // expected-error @+1 {{stands behind 'gdn_tile.ring_acquire' on a ring in `before`}}
      gdn_tile.ring_drain %ring[%n] before(%next : !gdn_tile.ring<2>) : !gdn_tile.ring<2>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{runs in a role of 4 warps, but the ring has 1 producers}}
      gdn_tile.ring_drain %ring[%n] : !gdn_tile.ring<2>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%n: index, %other: !gdn_tile.ring<2>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects other rings in `before`}}
      gdn_tile.ring_drain %ring[%n] before(%other : !gdn_tile.ring<2>) : !gdn_tile.ring<2>
    }
  }
  return
}
