// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// Roles

// expected-error @+1 {{ring: expects at least one stage, but has 0}}
func.func private @f(!gdn_tile.ring<0>)

// -----

func.func @f() {
  // expected-error @+1 {{expects a tile program around it}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{is not the last op of its tile program}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
  }
  gdn_tile.barrier
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{has no role}}
  gdn_tile.roles {
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{holds gdn_tile.role ops only, but has 'gdn_tile.barrier'}}
  gdn_tile.roles {
    gdn_tile.barrier
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{expects the 4 warps of the kernel in its first role, but it has 2}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(2) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 16, layout = accumulator>} {
  // expected-error @+1 {{has 33 warps, more than 32}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(16) {
    }
    gdn_tile.role "load" warps(16) {
    }
    gdn_tile.role "store" warps(1) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    // expected-error @+1 {{expects 1 to 16 warps, but has 0}}
    gdn_tile.role "load" warps(0) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    // expected-error @+1 {{expects registers to be a multiple of 8 in 24..256, but they are 100}}
    gdn_tile.role "math" warps(4) registers(100) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{sets registers, so its warps must fill warpgroups of 4, but it has 5}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(240) {
    }
    gdn_tile.role "load" warps(1) registers(24) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{sets the registers of warp 6 unlike those of the first warp of its warpgroup}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(240) {
    }
    gdn_tile.role "load" warps(2) registers(24) {
    }
    gdn_tile.role "store" warps(2) registers(32) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    // expected-error @+1 {{holds fragments, but 3 warps behind 4 are neither a warpgroup nor placed like the 4 warps of the kernel}}
    gdn_tile.role "load" warps(3) {
      %0 = gdn_tile.iota : vector<64x1xi32>
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    gdn_tile.role "load" warps(2) {
    }
    // expected-error @+1 {{holds fragments, but 4 warps behind 6 are neither a warpgroup nor placed like the 4 warps of the kernel}}
    gdn_tile.role "ahead" warps(4) {
      %0 = gdn_tile.iota : vector<64x1xi32>
    }
  }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{stands outside of the body of an scf.for}}
  gdn_tile.ahead teams(1) {
  }
  return
}

// -----

func.func @f(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{expects 1 to 3 teams, but has 4}}
    gdn_tile.ahead teams(4) {
    }
  }
  return
}

// -----

// Rings

func.func @f(%x: memref<3x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{expects allocations in shared memory, but has 'memref<3x64xf32>'}}
  %0 = gdn_tile.ring(%x : memref<3x64xf32>) producers(1) consumers(1) : !gdn_tile.ring<3>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  // expected-error @+1 {{expects buffers of 3 tiles, but has 'memref<2x64xf32, #gpu.address_space<workgroup>>'}}
  %0 = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(1) : !gdn_tile.ring<3>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  // expected-error @+1 {{shares the buffer 'memref<2x64xf32, #gpu.address_space<workgroup>>' with another ring}}
  %0 = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(1) : !gdn_tile.ring<2>
  %1 = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(1) : !gdn_tile.ring<2>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  // expected-error @+1 {{expects 1 to 16 producers and consumers, but has 0 and 1}}
  %0 = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(0) consumers(1) : !gdn_tile.ring<2>
  return
}

// -----

func.func @f(%ring: !gdn_tile.ring<2>, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects the ring of a gdn_tile.ring}}
      gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(1) : !gdn_tile.ring<2>
  // expected-error @+1 {{stands outside of a role}}
  gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(2) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{runs in a role of 4 warps, but the ring has 2 consumers}}
      gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(2) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{runs in a role of 4 warps, but the ring has 1 producers}}
      %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
    }
  }
  return
}

// -----

func.func @f(%slot: !gdn_tile.slot) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects the slot of a gdn_tile.ring_acquire}}
      gdn_tile.ring_commit %slot
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %slot: !gdn_tile.slot, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<64x64xf32, #shared>
  // expected-error @+1 {{expects the slot of a gdn_tile.ring_acquire}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile signal(%slot) : memref<?x64xf32> to memref<64x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %slot: !gdn_tile.slot, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<64x64xf32, #shared>
  // expected-error @+1 {{cannot both signal a slot and return a token}}
  %t = gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile signal(%slot) : memref<?x64xf32> to memref<64x64xf32, #shared> -> !gdn_tile.token
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xbf16>, %slot: !gdn_tile.slot, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<64x64xf32, #shared>
  // expected-error @+1 {{an asynchronous copy cannot convert 'bf16' to 'f32'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile signal(%slot) : memref<?x64xbf16> to memref<64x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<64x64xf32, #shared>
  %buffers = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%buffers : memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
      // expected-error @+1 {{signals a slot of a ring that does not hold its tile}}
      gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile signal(%slot) : memref<?x64xf32> to memref<64x64xf32, #shared>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<2x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<2x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<2>
  // expected-error @+1 {{expects a ring of one stage with one tile}}
  %0:2 = gdn_tile.refine if %c a(%a, %n, %ring) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (i1, vector<64x64xbf16>, memref<64x64xbf16, #shared>, !gdn_tile.ring<2>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  // expected-error @+1 {{has a condition outside of a role}}
  %0:2 = gdn_tile.refine if %c a(%a, %n, %ring) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (i1, vector<64x64xbf16>, memref<64x64xbf16, #shared>, !gdn_tile.ring<1>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  // expected-error @+1 {{expects a condition beside a ring}}
  %0:2 = gdn_tile.refine a(%a, %n, %ring) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, !gdn_tile.ring<1>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xbf16, #shared>) producers(1) consumers(8) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects to stand in a role whose warps are the 8 consumers of the ring}}
      %0:2 = gdn_tile.refine if %c a(%a, %n, %ring) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (i1, vector<64x64xbf16>, memref<64x64xbf16, #shared>, !gdn_tile.ring<1>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x32xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  // expected-error @+1 {{expects fragments MxC of 16 bits and of f32, and tiles CxC, or their panels, but has 'vector<64x64xbf16>', 'vector<64x64xf32>', 'memref<64x32xbf16, #gpu.address_space<workgroup>>' and 'memref<64x64xbf16, #gpu.address_space<workgroup>>'}}
  %0:2 = gdn_tile.refine a(%a, %n, %low) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (vector<64x64xbf16>, memref<64x32xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x32xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  // expected-error @+1 {{expects a state MxK of f32 and a tile CxK, but has 'vector<64x64xf32>' and 'memref<64x32xbf16, #gpu.address_space<workgroup>>' beside 'vector<64x64xbf16>'}}
  %0:2 = gdn_tile.refine a(%a, %n, %low) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x32xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  // expected-error @+1 {{expects an output MxC of f32, a result and a tile CxC, or its panels, or none of them}}
  %0:2 = gdn_tile.refine a(%a, %n, %low) acc(%u) state(%s, %k) output(%u, %k) factors(%f) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  // expected-error @+1 {{expects an element and rows of 64 in 'memref<136xf32, #gpu.address_space<workgroup>>', but has element 128 and rows at 80, 0, 0 and 0}}
  %0:2 = gdn_tile.refine a(%a, %n, %low) acc(%u) state(%s, %k) factors(%f) count 128 scale 80 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects beside scores an output, a tile of the type of k, `beta` and `factor`, but has 'memref<64x64xbf16, #gpu.address_space<workgroup>>' beside 'memref<64x64xbf16, #gpu.address_space<workgroup>>'}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 0 : i64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects an element and rows of 64 in 'memref<136xf32, #gpu.address_space<workgroup>>', but has element 136 and rows at 64, 0, 0 and 0}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 136 scale 64 {beta = 0 : i64, factor = 1.0 : f64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects an element and rows of 64 in 'memref<136xf32, #gpu.address_space<workgroup>>', but has element 128 and rows at 64, 73, 0 and 0}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 73 : i64, factor = 1.0 : f64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects an element and rows of 64 in 'memref<136xf32, #gpu.address_space<workgroup>>', but has element 128 and rows at 64, 0, 73 and 0}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 0 : i64, factor = 1.0 : f64, grown = 73 : i64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects an element and rows of 64 in 'memref<136xf32, #gpu.address_space<workgroup>>', but has element 128 and rows at 64, 0, 0 and 73}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 0 : i64, factor = 1.0 : f64, grown = 0 : i64, scaled = 73 : i64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  // expected-error @+1 {{expects `grown` beside `scaled`}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 0 : i64, factor = 1.0 : f64, scaled = 0 : i64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32>
  // expected-error @+1 {{expects factors of f32 in shared memory, but has 'memref<136xf32>'}}
  %0:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 128 scale 64 {beta = 0 : i64, factor = 1.0 : f64} : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, memref<136xf32>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x128xbf16>, %u: vector<64x128xf32>, %s: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<128x128xbf16, #shared>
  %k = memref.alloc() : memref<128x64xbf16, #shared>
  %f = memref.alloc() : memref<264xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    // expected-error @+1 {{expects 64 columns beside a condition and scores, but has 'vector<64x128xbf16>'}}
    %0:3 = gdn_tile.refine if %c a(%a, %n, %n) acc(%u) state(%s, %k) output(%u, %n) scores(%k) factors(%f) count 256 scale 0 {beta = 128 : i64, factor = 1.0 : f64} : (i1, vector<64x128xbf16>, memref<128x128xbf16, #shared>, memref<128x128xbf16, #shared>, vector<64x128xf32>, vector<64x64xf32>, memref<128x64xbf16, #shared>, vector<64x128xf32>, memref<128x128xbf16, #shared>, memref<128x64xbf16, #shared>, memref<264xf32, #shared>) -> (vector<64x128xf32>, vector<64x64xf32>, vector<64x128xf32>)
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%c: i1, %a: vector<64x64xbf16>, %u: vector<64x64xf32>, %s: vector<64x32xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x32xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{expects multiples of 64 beside a condition, but has 'vector<64x64xbf16>' and 'memref<64x32xbf16, #gpu.address_space<workgroup>>'}}
      %0:2 = gdn_tile.refine if %c a(%a, %n, %low) acc(%u) state(%s, %k) factors(%f) count 128 scale 64 : (i1, vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x32xf32>, memref<64x32xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x32xf32>)
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    // expected-error @+1 {{expects 1 to 8 teams of as many warps each, a power of two, but has 2 teams of 3 warps}}
    gdn_tile.role "ahead" warps(3) teams(2) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{stands outside of gdn_tile.role}}
  %0 = gdn_tile.team
  return
}
