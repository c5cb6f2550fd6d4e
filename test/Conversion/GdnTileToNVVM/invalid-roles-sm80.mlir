// RUN: gdn-opt %s --convert-gdn-tile-to-nvvm="target=sm_80" --split-input-file --verify-diagnostics

// Targets without waits on mbarriers, and without registers of warpgroups.

#shared = #gpu.address_space<workgroup>
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = memref.alloc() : memref<2x64xf32, #shared>
  // expected-error @+1 {{needs sm_90 or later, but the target is sm_80}}
  %0 = gdn_tile.ring(%x : memref<2x64xf32, #shared>) producers(1) consumers(1) : !gdn_tile.ring<2>
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{sets registers, which sm_80 cannot}}
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(240) {
    }
  }
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  // expected-error @+1 {{needs sm_90 or later, but the target is sm_80}}
  gdn_tile.overlap_launches
  return
}
