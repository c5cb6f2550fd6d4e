// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{tensor_map: expects elements of type f16, bf16 or f32, but has 'memref<?x64xi32>'}}
func.func private @element(!gdn_tile.tensor_map<memref<?x64xi32>, dims = [0, 1], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects a contiguous memref of rank 2 or more in global memory with static sizes behind the first, but has 'memref<?x?xf32>'}}
func.func private @dynamic(!gdn_tile.tensor_map<memref<?x?xf32>, dims = [0, 1], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects a contiguous memref of rank 2 or more in global memory with static sizes behind the first, but has 'memref<64xf32>'}}
func.func private @rank(!gdn_tile.tensor_map<memref<64xf32>, dims = [0, 0], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects a contiguous memref of rank 2 or more in global memory with static sizes behind the first, but has 'memref<64x64xf32, #gpu.address_space<workgroup>>'}}
func.func private @shared(!gdn_tile.tensor_map<memref<64x64xf32, #gpu.address_space<workgroup>>, dims = [0, 1], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects a contiguous memref of rank 2 or more in global memory with static sizes behind the first, but has 'memref<64x64xf32, strided<[128, 1]>>'}}
func.func private @strided(!gdn_tile.tensor_map<memref<64x64xf32, strided<[128, 1]>>, dims = [0, 1], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects dims [d, 2] with d < 2, the columns contiguous, but has [0, 1]}}
func.func private @columns(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 1], box = [64, 16]>)

// -----

// expected-error @+1 {{tensor_map: expects dims [d, 2] with d < 2, the columns contiguous, but has [2, 2]}}
func.func private @same(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [2, 2], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects dims [d, 2] with d < 2, the columns contiguous, but has [2]}}
func.func private @vector(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [2], box = [64, 64]>)

// -----

// expected-error @+1 {{tensor_map: expects a box of rows and columns, but has [64]}}
func.func private @box(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64]>)

// -----

// expected-error @+1 {{tensor_map: expects a box of rows and columns, but has [0, 64]}}
func.func private @empty(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [0, 64]>)

// -----

// expected-error @+1 {{expects a multiple of 8 rows, at most 256, and rows of a multiple of 32 bytes, at most 256 panels, but the box has 12 rows of 128 bytes}}
func.func private @eight(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [12, 64]>)

// -----

// expected-error @+1 {{expects a multiple of 8 rows, at most 256, and rows of a multiple of 32 bytes, at most 256 panels, but the box has 264 rows of 128 bytes}}
func.func private @high(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [264, 64]>)

// -----

// expected-error @+1 {{expects a multiple of 8 rows, at most 256, and rows of a multiple of 32 bytes, at most 256 panels, but the box has 64 rows of 48 bytes}}
func.func private @narrow(!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 24]>)

// -----

// expected-error @+1 {{tensor_map: dimension 0 of 'memref<?x4x33xbf16>' steps by 264 bytes, but a map needs a multiple of 16 up to 2147483648}}
func.func private @stride(!gdn_tile.tensor_map<memref<?x4x33xbf16>, dims = [0, 2], box = [64, 32]>)

// -----

// expected-error @+1 {{tensor_map: dimension 0 of 'memref<?x65536x65536xf32>' steps by 17179869184 bytes, but a map needs a multiple of 16 up to 2147483648}}
func.func private @far(!gdn_tile.tensor_map<memref<?x65536x65536xf32>, dims = [1, 2], box = [64, 32]>)

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>

func.func @rows(%k: memref<?x16x128xbf16>, %map: !map) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<32x128xbf16, #shared>
  // expected-error @+1 {{moves 'memref<32x128xbf16, #gpu.address_space<workgroup>>' along dims [0, 2] of 'memref<?x16x128xbf16>', which its map does not describe: '!gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>'}}
  gdn_tile.copy_in %k[%c0, %c0, %c0] dims [0, 2] to %tile map(%map : !map) : memref<?x16x128xbf16> to memref<32x128xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>

func.func @dims(%k: memref<?x16x128xbf16>, %map: !map) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x128xbf16, #shared>
  // expected-error @+1 {{along dims [1, 2] of 'memref<?x16x128xbf16>', which its map does not describe}}
  gdn_tile.copy_out %tile to %k[%c0, %c0, %c0] dims [1, 2] map(%map : !map) : memref<64x128xbf16, #shared> to memref<?x16x128xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>

func.func @convert(%k: memref<?x16x128xbf16>, %map: !map) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x128xf32, #shared>
  // expected-error @+1 {{which its map does not describe}}
  gdn_tile.copy_in %k[%c0, %c0, %c0] dims [0, 2] to %tile map(%map : !map) : memref<?x16x128xbf16> to memref<64x128xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>

func.func @token(%k: memref<?x16x128xbf16>, %map: !map) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x128xbf16, #shared>
  // expected-error @+1 {{a copy with a tensor map gives no token}}
  %t = gdn_tile.copy_in %k[%c0, %c0, %c0] dims [0, 2] to %tile map(%map : !map) : memref<?x16x128xbf16> to memref<64x128xbf16, #shared> -> !gdn_tile.token
  return
}

// -----

func.func @other(%k: memref<?x32x128xbf16>) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{use of value '%k' expects different type than prior uses: 'memref<?x16x128xbf16>' vs 'memref<?x32x128xbf16>'}}
  %map = gdn_tile.make_tensor_map %k : !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
  return
}
