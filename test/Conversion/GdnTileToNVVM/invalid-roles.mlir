// RUN: gdn-opt %s --convert-gdn-tile-to-nvvm="target=sm_90a" --split-input-file --verify-diagnostics

// Fragments and ops of the whole block beside roles.

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{holds a fragment in front of the roles}}
  %0 = gdn_tile.iota : vector<64x1xi32>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
    }
    gdn_tile.role "load" warps(4) {
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      // expected-error @+1 {{needs all warps of the block, but stands in a role}}
      gdn_tile.cumsum %tile : memref<64xf32, #shared>
    }
  }
  return
}

// -----

func.func @f(%x: memref<64x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %0 = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x8xf32>, vector<64x8xf32>
      // expected-error @+1 {{needs all warps of the block, but stands in a role}}
      %1 = gdn_tile.sum %0 : vector<64x8xf32> to vector<1x8xf32>
    }
  }
  return
}

// -----

// Beside another one too.
func.func private @other(%x: memref<?xf32>) {
  return
}
module @nested {
  func.func @kernel(%x: memref<?xf32>)
      attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
    return
  }
  func.func @host(%x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{launches a tile program of a nested module}}
    gdn_tile.launch @kernel grid(%c1) (%x : memref<?xf32>)
    gdn_tile.launch @kernel grid(%c1) (%x : memref<?xf32>) {beside}
    return
  }
}

// -----

// Three at once: what the first writes nobody has waited for when the last starts.
func.func @part(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @host(%x: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @part grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @part grid(%c1) (%x : memref<?xf32>) {beside}
  // expected-error @+1 {{is beside @part, which is beside another launch and does not await it}}
  gdn_tile.launch @part grid(%c1) (%x : memref<?xf32>) {beside}
  return
}
