// RUN: gdn-opt %s -split-input-file -verify-diagnostics -convert-gdn-tile-to-nvvm=target=sm_86

#shared = #gpu.address_space<workgroup>

// expected-error @+1 {{kernel 'large' needs 131072 bytes of shared memory, but sm_86 has 101376 bytes a block}}
func.func @large() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %tile = memref.alloc() : memref<256x128xf32, #shared>
  return
}

// -----

func.func @rows() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{fragment 'vector<32x8xf32>' has 32 rows, but 4 warps hold 64 in the accumulator layout}}
  %x = arith.constant dense<0.0> : vector<32x8xf32>
  return
}

// -----

func.func @columns() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{fragment 'vector<64x12xf32>' has 12 columns, no multiple of 8, in the accumulator layout}}
  %x = arith.constant dense<0.0> : vector<64x12xf32>
  return
}

// -----

func.func @lanes() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>} {
  // expected-error @+1 {{fragment 'vector<2x48xf32>' has 48 columns, neither a multiple of 64 (16 lanes of 4 elements) nor that over a power of two}}
  %x = arith.constant dense<0.0> : vector<2x48xf32>
  return
}

// -----

func.func @element() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  // expected-error @+1 {{has a fragment of type 'vector<16x8xf64>', but the GPU lowering has f32, f16, bf16, i32 and i1}}
  %x = arith.constant dense<0.0> : vector<16x8xf64>
  return
}

// -----

func.func @op(%x: memref<4xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  // expected-error @+1 {{is not supported in a tile program for the GPU}}
  memref.copy %x, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{argument 0 has type 'memref<4x?xf32>', but only the outermost dimension of a contiguous memref in global memory may be dynamic}}
func.func @argument(%x: memref<4x?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// -----

// expected-error @+1 {{argument 0 has type 'f32', but a kernel takes memrefs, tensor maps and index values}}
func.func @scalar(%x: f32) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @product() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 2, chunk = 8>} {
  %b = memref.alloc() : memref<16x16xbf16, #shared>
  %a = arith.constant dense<0.0> : vector<16x16xbf16>
  // expected-error @+1 {{needs a kernel of the accumulator layout}}
  %r = gdn_tile.mma %a, %b : vector<16x16xbf16>, memref<16x16xbf16, #shared> -> vector<16x16xf32>
  return
}

// -----

func.func @power(%x: memref<16x8xbf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x8xbf16>, vector<16x8xbf16>
  // expected-error @+1 {{is lowered for f32 only, but has 'bf16'}}
  %r = math.exp %a : vector<16x8xbf16>
  gdn_tile.store %r, %x[%c0, %c0] dims [0, 1] : vector<16x8xbf16>, memref<16x8xbf16>
  return
}

// -----

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
    return
  }
}

// -----

// expected-error @+1 {{argument 1 is a tensor map, but sm_86 has no copy engine for it}}
func.func @map(%x: memref<?x64xf32>, %map: !gdn_tile.tensor_map<memref<?x64xf32>, dims = [0, 1], box = [64, 64]>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// -----

func.func @lanes_of_products() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 8>} {
  %a = arith.constant dense<0.0> : vector<8x64xbf16>
  // expected-error @+1 {{needs a kernel of one warp in the rows layout with 4 lanes a row and chunks of 4 elements or more}}
  %r = gdn_tile.dot %a times(%a) : vector<8x64xbf16>, vector<8x64xbf16> -> vector<8x8xf32>
  return
}

// -----

func.func @chunks_of_solutions() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 2>} {
  %l = arith.constant dense<0.0> : vector<8x8xf32>
  // expected-error @+1 {{needs a kernel of one warp in the rows layout with 4 lanes a row and chunks of 4 elements or more}}
  %r = gdn_tile.tri_solve %l, %l : vector<8x8xf32>, vector<8x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @streaming() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<8x16xf32, #shared>
  // expected-error @+1 {{cannot be streaming: it moves shared memory}}
  %r = gdn_tile.load %b[%c0, %c0] dims [0, 1] {streaming} : memref<8x16xf32, #shared>, vector<8x16xf32>
  return
}

// -----

func.func @no_warpgroup() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  // expected-error @+1 {{fragment 'vector<64x1xi32>' has 64 rows, but the 8 warps that it stands in hold 128}}
  %r = gdn_tile.iota : vector<64x1xi32>
  return
}

// -----

func.func @all_rows_in_a_warpgroup() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(8) {
    }
    gdn_tile.role "ahead" warps(4) {
      // expected-error @+1 {{fragment 'vector<128x1xi32>' has 128 rows, but the 4 warps that it stands in hold 64}}
      %r = gdn_tile.iota : vector<128x1xi32>
    }
  }
  return
}
