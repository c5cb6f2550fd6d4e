// RUN: gdn-opt %s -split-input-file -verify-diagnostics

#shared = #gpu.address_space<workgroup>

func.func @f(%a: vector<64x16xbf16>, %b: memref<16x16xbf16, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{'gdn_tile.mma' op is not an op of a single warp}}
    %0 = gdn_tile.mma %a, %b : vector<64x16xbf16>, memref<16x16xbf16, #shared> -> vector<64x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%x: memref<?x16xf32>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %a = memref.alloc() : memref<16x16xf32, #shared>
    // expected-error @+1 {{'gdn_tile.copy_in' op is not an op of a single warp}}
    %t = gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %a : memref<?x16xf32> to memref<16x16xf32, #shared> -> !gdn_tile.token
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %a = memref.alloc() : memref<16x16xf32, #shared>
    // expected-error @+1 {{'gdn_tile.cumsum' op is not an op of a single warp}}
    gdn_tile.cumsum %a : memref<16x16xf32, #shared>
  }
  return
}

// -----

// Sums over columns are those of lanes; over rows they meet in memory of the block.
func.func @sum(%n: index, %v: vector<16x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.each_warp (%w) in (%n) {
    %columns = gdn_tile.sum %v : vector<16x8xf32> to vector<16x1xf32>
    // expected-error @+1 {{'gdn_tile.sum' op is not an op of a single warp}}
    %rows = gdn_tile.sum %v : vector<16x8xf32> to vector<1x8xf32>
  }
  return
}

// -----

func.func @f(%n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{'gdn_tile.each_warp' op is not an op of a single warp}}
    gdn_tile.each_warp (%j) in (%n) {
    }
  }
  return
}

// -----

func.func @f(%x: memref<?x16xf32>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{has a fragment of type 'vector<64x16xf32>', but a fragment of one warp has 1 or 16 rows}}
    %0 = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x16xf32>, vector<64x16xf32>
  }
  return
}

// -----

func.func @f(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = rows, lanes = 16>} {
  // expected-error @+1 {{needs a kernel of the accumulator layout}}
  gdn_tile.each_warp (%i) in (%n) {
  }
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{expects a region with one index argument, the item}}
  "gdn_tile.each_warp"(%n) ({
  ^bb0:
    "gdn_tile.warp_end"() : () -> ()
  }) : (index) -> ()
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%tile: memref<16x16xf32, #shared>) {
  // expected-error @+1 {{expects a shared-memory allocation of its own block}}
  gdn_tile.free %tile : memref<16x16xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%n: index) {
  %tile = memref.alloc() : memref<16xf32, #shared>
  // expected-error @+1 {{frees a tile that is used behind it}}
  gdn_tile.free %tile : memref<16xf32, #shared>
  gdn_tile.each_warp (%i) in (%n) {
    %0 = gdn_tile.load %tile[%i] dims [0] : memref<16xf32, #shared>, vector<1x16xf32>
  }
  return
}

// -----

func.func @f(%a: vector<16x16xf32>) {
  // expected-error @+1 {{stands outside of gdn_tile.each_warp}}
  %0 = gdn_tile.warp_mma %a, %a tf32 : vector<16x16xf32> -> vector<16x16xf32>
  return
}

// -----

func.func @f(%a: vector<16x8xf32>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{expects operands vector<16xKxT>, K a multiple of 16, T = f32, bf16 or f16, and a result vector<16x16xf32>, but has 'vector<16x8xf32>' and 'vector<16x16xf32>'}}
    %0 = gdn_tile.warp_mma %a, %a tf32 : vector<16x8xf32> -> vector<16x16xf32>
  }
  return
}

// -----

func.func @f(%a: vector<16x16xf32>, %b: vector<16x32xf32>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{expects 'acc' to have the type of the result, but it is 'vector<16x32xf32>'}}
    %0 = gdn_tile.warp_mma %a, %a acc(%b : vector<16x32xf32>) tf32 : vector<16x16xf32> -> vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<32x32xf32, #shared>, %s: memref<32xf32, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %d = memref.alloc() : memref<32x8xf32, #shared>
    // expected-error @+1 {{expects products of at least C rows and columns, scale of C and scratch of at least 12 C elements, C = 16, 32 or 64, but has 'memref<32x32xf32, #gpu.address_space<workgroup>>', 'memref<32xf32, #gpu.address_space<workgroup>>' and 'memref<32x8xf32, #gpu.address_space<workgroup>>'}}
    %x:4 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<32x32xf32, #shared>, memref<32xf32, #shared>, memref<32x8xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<24x32xf32, #shared>, %s: memref<32xf32, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %d = memref.alloc() : memref<384xf32, #shared>
    // expected-error @+1 {{expects products of at least C rows and columns, scale of C and scratch of at least 12 C elements, C = 16, 32 or 64, but has 'memref<24x32xf32, #gpu.address_space<workgroup>>', 'memref<32xf32, #gpu.address_space<workgroup>>' and 'memref<384xf32, #gpu.address_space<workgroup>>'}}
    %x:4 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<24x32xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<32x32xf32, #shared>, %s: memref<32xf32, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %d = memref.alloc() : memref<384xf32, #shared>
    // expected-error @+1 {{expects 4 results of 'vector<16x16xf32>' for 32 tokens}}
    %x:2 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<32x32xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<32x32xbf16, #shared>, %s: memref<32xf32, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %d = memref.alloc() : memref<384xf32, #shared>
    // expected-error @+1 {{expects static shared-memory tiles of f32, but has 'memref<32x32xbf16, #gpu.address_space<workgroup>>'}}
    %x:4 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<32x32xbf16, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<32x32xf32, #shared>, %s: memref<32xf32, #shared>) {
  %d = memref.alloc() : memref<384xf32, #shared>
  // expected-error @+1 {{stands outside of gdn_tile.each_warp}}
  %x:4 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<32x32xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  return
}

// -----

func.func @f(%x: vector<16x16xf32>) {
  // expected-error @+1 {{expects a fragment of i1 and a result i1 or 'vector<1x16xi1>', but has 'vector<16x16xf32>' and 'i1'}}
  %0 = gdn_tile.any %x : vector<16x16xf32> to i1
  return
}

// -----

func.func @f(%x: vector<16x16xi1>) {
  // expected-error @+1 {{expects a fragment of i1 and a result i1 or 'vector<1x16xi1>', but has 'vector<16x16xi1>' and 'vector<16x1xi1>'}}
  %0 = gdn_tile.any %x : vector<16x16xi1> to vector<16x1xi1>
  return
}

// -----

func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %x = arith.constant dense<true> : vector<64x16xi1>
  // expected-error @+1 {{needs a fragment that each warp holds as a whole, but the rows of 'vector<64x16xi1>' lie in 4 warps}}
  %0 = gdn_tile.any %x : vector<64x16xi1> to i1
  return
}

// -----

func.func @precision(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %a = arith.constant dense<0.0> : vector<16x16xbf16>
  gdn_tile.each_warp (%w) in (%n) {
    // expected-error @+1 {{takes operands of f32 with precision bf16x3, but has 'vector<16x16xbf16>'}}
    %0 = gdn_tile.warp_mma %a, %a bf16x3 : vector<16x16xbf16> -> vector<16x16xf32>
  }
  return
}

// -----

func.func @exact(%n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %a = arith.constant dense<0.0> : vector<16x16xf32>
  gdn_tile.each_warp (%w) in (%n) {
    // expected-error @+1 {{takes operands of 16 bits with precision exact, but has 'vector<16x16xf32>'}}
    %0 = gdn_tile.warp_mma %a, %a exact : vector<16x16xf32> -> vector<16x16xf32>
  }
  return
}

// -----

func.func @own_rows_column(%x: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c4 = arith.constant 4 : index
  gdn_tile.each_warp (%w) in (%c4) {
    // expected-error @+1 {{cannot take 'vector<16x32xf32>' at column 48 of 'vector<64x64xf32>'}}
    %0 = gdn_tile.own_rows %x[48] : vector<64x64xf32> to vector<16x32xf32>
  }
  return
}

// -----

func.func @own_rows_items(%x: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c2 = arith.constant 2 : index
  gdn_tile.each_warp (%w) in (%c2) {
    // expected-error @+1 {{needs a gdn_tile.each_warp of 4 items, one for every 16 rows of 'vector<64x64xf32>'}}
    %0 = gdn_tile.own_rows %x[16] : vector<64x64xf32> to vector<16x16xf32>
  }
  return
}

// -----

func.func @own_rows_outside(%x: vector<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  // expected-error @+1 {{stands outside of gdn_tile.each_warp}}
  %0 = gdn_tile.own_rows %x[16] : vector<64x64xf32> to vector<16x16xf32>
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{stands outside of gdn_tile.each_warp}}
  gdn_tile.store_block %z, %x[%i, %c0, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
  return
}

// -----

func.func @f(%x: memref<?x288x8xf32>, %z: vector<16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{stores 16x16 elements of 16 bits to rows of 8 in global memory, but has 'vector<16x16xf32>' and 'memref<?x288x8xf32>'}}
    gdn_tile.store_block %z, %x[%i, %c0, %c0] : vector<16x16xf32>, memref<?x288x8xf32>
  }
  return
}

// -----

func.func @f(%x: memref<?x160x16xbf16>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{stores 16x16 elements of 16 bits to rows of 8 in global memory}}
    gdn_tile.store_block %z, %x[%i, %c0, %c0] : vector<16x16xbf16>, memref<?x160x16xbf16>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %z: vector<16x32xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{stores 16x16 elements of 16 bits}}
    gdn_tile.store_block %z, %x[%i, %c0, %c0] : vector<16x32xbf16>, memref<?x288x8xbf16>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xf16>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{stores 16x16 elements of 16 bits}}
    gdn_tile.store_block %z, %x[%i, %c0, %c0] : vector<16x16xbf16>, memref<?x288x8xf16>
  }
  return
}

// -----

func.func @f(%x: memref<512x8xbf16, #gpu.address_space<workgroup>>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{in global memory, but has 'vector<16x16xbf16>' and 'memref<512x8xbf16, #gpu.address_space<workgroup>>'}}
    gdn_tile.store_block %z, %x[%c0, %c0] : vector<16x16xbf16>, memref<512x8xbf16, #gpu.address_space<workgroup>>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{expects 3 indices for 'memref<?x288x8xbf16>', but has 2}}
    gdn_tile.store_block %z, %x[%i, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{expects a block to begin in column 0 of a row that is a multiple of 8}}
    gdn_tile.store_block %z, %x[%i, %c4, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{expects a block to begin in column 0}}
    gdn_tile.store_block %z, %x[%i, %c0, %c4] : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @f(%m: memref<32x32xf32, #shared>, %s: memref<32xf32, #shared>, %n: index) {
  gdn_tile.each_warp (%i) in (%n) {
    %d = memref.alloc() : memref<384xf32, #shared>
    // expected-error @+1 {{expects products of tf32 or bf16x3, but has tf32x3}}
    %x:4 = gdn_tile.block_inverse %m, %s in %d tf32x3 : memref<32x32xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

func.func @f(%x: memref<?x288x8xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{stands outside of gdn_tile.each_warp}}
  %z = gdn_tile.load_block %x[%i, %c0, %c0] : memref<?x288x8xbf16> -> vector<16x16xbf16>
  return
}

// -----

func.func @f(%x: memref<?x288x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    // expected-error @+1 {{loads 16x16 elements of 16 bits from rows of 8 in global memory, but has 'vector<16x16xf32>' and 'memref<?x288x8xf32>'}}
    %z = gdn_tile.load_block %x[%i, %c0, %c0] : memref<?x288x8xf32> -> vector<16x16xf32>
  }
  return
}
