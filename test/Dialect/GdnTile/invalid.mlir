// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// Kernels and launches

// expected-error @+1 {{kernel: warps must lie in 1..16, but is 0}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 0, layout = accumulator>} {
  return
}

// -----

// expected-error @+1 {{kernel: warps must lie in 1..16, but is 17}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 17, layout = accumulator>} {
  return
}

// -----

// expected-error @+1 {{kernel: chunk must be 1, 2, 4 or 8, but is 3}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16, chunk = 3>} {
  return
}

// -----

// expected-error @+1 {{kernel: lanes must be a power of two in 1..32, but is 12}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 12>} {
  return
}

// -----

// expected-error @+1 {{kernel: lanes must be a power of two in 1..32, but is 0}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows>} {
  return
}

// -----

// expected-error @+1 {{kernel: lanes is for the rows layout only}}
func.func @f() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator, lanes = 4>} {
  return
}

// -----

// expected-error @+1 {{'gdn_tile.kernel' must be a #gdn_tile.kernel on a function}}
func.func @f() attributes {gdn_tile.kernel = 4 : i32} {
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'gdn_tile.kernel' must be a #gdn_tile.kernel on a function}}
  %0 = arith.constant {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} 1 : index
  return
}

// -----

// expected-error @+1 {{a tile program has no results, but has 1}}
func.func @f() -> index attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %0 = arith.constant 1 : index
  return %0 : index
}

// -----

func.func @g(%i: index, %x: memref<4x?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index, %x: memref<4x?xf32>) {
  // expected-error @+1 {{expects argument 1 to be an index, a tensor map or a memref in the default memory space and layout with static sizes behind the first, but it is 'memref<4x?xf32>'}}
  gdn_tile.launch @g grid(%n) (%n, %x : index, memref<4x?xf32>)
  return
}

// -----

func.func @g(%i: index, %x: memref<4x4xf32, strided<[?, 1]>>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index, %x: memref<4x4xf32, strided<[?, 1]>>) {
  // expected-error @+1 {{but it is 'memref<4x4xf32, strided<[?, 1]>>'}}
  gdn_tile.launch @g grid(%n) (%n, %x : index, memref<4x4xf32, strided<[?, 1]>>)
  return
}

// -----

func.func @g(%i: index, %x: memref<4x4xf32, #gpu.address_space<workgroup>>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index, %x: memref<4x4xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{but it is 'memref<4x4xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.launch @g grid(%n) (%n, %x : index, memref<4x4xf32, #gpu.address_space<workgroup>>)
  return
}

// -----

func.func @g(%i: index, %x: memref<*xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index, %x: memref<*xf32>) {
  // expected-error @+1 {{but it is 'memref<*xf32>'}}
  gdn_tile.launch @g grid(%n) (%n, %x : index, memref<*xf32>)
  return
}

// -----

func.func @g(%i: index, %x: i32) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index, %x: i32) {
  // expected-error @+1 {{but it is 'i32'}}
  gdn_tile.launch @g grid(%n) (%n, %x : index, i32)
  return
}

// -----

func.func @g() {
  return
}
func.func @f(%n: index) {
  // expected-error @+1 {{'g' does not name a tile program (a function with gdn_tile.kernel)}}
  gdn_tile.launch @g grid(%n) ()
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{'missing' does not name a tile program (a function with gdn_tile.kernel)}}
  gdn_tile.launch @missing grid(%n) ()
  return
}

// -----

func.func @g(%x: memref<?x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @f(%n: index) {
  // expected-error @+1 {{operand types do not match the arguments of 'g'}}
  gdn_tile.launch @g grid(%n) (%n : index)
  return
}

// -----

// Copies

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16x64xf32, #shared>
  // expected-error @+1 {{expects 2 indices, but has 1}}
  gdn_tile.copy_in %x[%i] dims [0, 1] to %tile : memref<?x64xf32> to memref<16x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16x64xf32, #shared>
  // expected-error @+1 {{dims names dimension 2 of a memref of rank 2}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 2] to %tile : memref<?x64xf32> to memref<16x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16xf32, #shared>
  // expected-error @+1 {{dims names dimension -1 of a memref of rank 2}}
  gdn_tile.copy_out %tile to %x[%i, %i] dims [-1] : memref<16xf32, #shared> to memref<?x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16x64xf32, #shared>
  // expected-error @+1 {{dims names dimension 1 twice}}
  gdn_tile.copy_out %tile to %x[%i, %i] dims [1, 1] : memref<16x64xf32, #shared> to memref<?x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16x64xf32, #shared>
  // expected-error @+1 {{expects one valid bound per entry of dims (2), but has 1}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] valid(%i) to %tile : memref<?x64xf32> to memref<16x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %i: index) {
  %tile = memref.alloc() : memref<16x64xf32, #shared>
  // expected-error @+1 {{expects one entry of dims per tile dimension (2), but has 1}}
  gdn_tile.copy_in %x[%i, %i] dims [0] to %tile : memref<?x64xf32> to memref<16x64xf32, #shared>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %tile: memref<16x64xf32>, %i: index) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<16x64xf32>'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<?x64xf32> to memref<16x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %tile: memref<2x16x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<2x16x64xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1, 1] to %tile : memref<?x64xf32> to memref<2x16x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %tile: memref<?x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<?x64xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_out %tile to %x[%i, %i] dims [0, 1] : memref<?x64xf32, #shared> to memref<?x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %tile: memref<16x64xf32, strided<[64, 1], offset: ?>, #shared>, %i: index) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has}}
  gdn_tile.copy_out %tile to %x[%i, %i] dims [0, 1] : memref<16x64xf32, strided<[64, 1], offset: ?>, #shared> to memref<?x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xindex>, %tile: memref<16x64xindex, #shared>, %i: index) {
  // expected-error @+1 {{expects a shared-memory tile of integers or floats that is not empty, but has 'memref<16x64xindex, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<?x64xindex> to memref<16x64xindex, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %tile: memref<0x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a shared-memory tile of integers or floats that is not empty, but has 'memref<0x64xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<?x64xf32> to memref<0x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x64xf32, #shared>, %tile: memref<16x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a memref in global memory, but has 'memref<16x64xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<16x64xf32, #shared> to memref<16x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32>, %tile: memref<16x64xbf16, #shared>, %i: index) {
  // expected-error @+1 {{expects equal element types or an f32 tile, but has 'f32' to 'bf16'}}
  gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<?x64xf32> to memref<16x64xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xbf16>, %tile: memref<16x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{an asynchronous copy cannot convert 'bf16' to 'f32'}}
  %0 = gdn_tile.copy_in %x[%i, %i] dims [0, 1] to %tile : memref<?x64xbf16> to memref<16x64xf32, #shared> -> !gdn_tile.token
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xbf16>, %tile: memref<16x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects equal element types, but has 'f32' to 'bf16'}}
  gdn_tile.copy_out %tile to %x[%i, %i] dims [0, 1] : memref<16x64xf32, #shared> to memref<?x64xbf16>
  return
}

// -----

func.func @f() {
  %0 = gdn_tile.join
  // expected-error @+1 {{cannot leave -1 groups pending}}
  gdn_tile.wait %0 {pending = -1}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @lower(%x: memref<?x288x8xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<480x8xbf16, #shared>
  // expected-error @+1 {{copies all blocks of a lower triangular matrix into panels of 16 columns of 16 bits, or none, but moves 'memref<480x8xbf16, #gpu.address_space<workgroup>>' along dims [1, 2] of 'memref<?x288x8xbf16>'}}
  gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x288x8xbf16> to memref<480x8xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @lower_of_three_panels(%x: memref<?x192x8xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<288x8xbf16, #shared>
  // expected-error @+1 {{copies all blocks of a lower triangular matrix}}
  gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x192x8xbf16> to memref<288x8xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @lower_of_fewer_blocks(%x: memref<?x96x8xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<512x8xbf16, #shared>
  // expected-error @+1 {{copies all blocks of a lower triangular matrix}}
  gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x96x8xbf16> to memref<512x8xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @panels(%a: vector<16x64xbf16>, %t: memref<504x8xbf16, #shared>) {
  // expected-error @+1 {{shapes do not fit: 16x64 times 64x63 into 16x64}}
  %r = gdn_tile.mma %a, %t {transpose_b} : vector<16x64xbf16>, memref<504x8xbf16, #shared> -> vector<16x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

func.func @lower_rows_of_the_source(%x: memref<?x288x8xbf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c320 = arith.constant 320 : index
  %t = memref.alloc() : memref<512x8xbf16, #shared>
  // expected-error @+1 {{copies all blocks of a lower triangular matrix into panels of 16 columns of 16 bits, or none}}
  gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] valid(%c320, %c8) to %t {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #shared>
  return
}
