// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// Loads and stores

func.func @f(%x: memref<?x64xbf16>, %i: index) {
  // expected-error @+1 {{expects equal element types, but has 'f32' and 'bf16'}}
  %0 = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x64xbf16>, vector<16x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %i: index) {
  // expected-error @+1 {{expects dims with 2 entries, but has 1}}
  %0 = gdn_tile.load %x[%i, %i] dims [0] : memref<?x64xf32>, vector<16x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %v: vector<16x1xf32>, %i: index) {
  // expected-error @+1 {{expects dims with 1 or 2 entries, but has 3}}
  gdn_tile.store %v, %x[%i, %i] dims [0, 1, 1] : vector<16x1xf32>, memref<?x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %v: vector<16x1xf32>, %i: index) {
  // expected-error @+1 {{expects 2 indices, but has 3}}
  gdn_tile.store %v, %x[%i, %i, %i] dims [0] : vector<16x1xf32>, memref<?x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %i: index) {
  // expected-error @+1 {{dims names dimension 0 twice}}
  %0 = gdn_tile.load %x[%i, %i] dims [0, 0] : memref<?x64xf32>, vector<16x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %i: index) {
  // expected-error @+1 {{expects one valid bound per entry of dims (1), but has 2}}
  %0 = gdn_tile.load %x[%i, %i] dims [0] valid(%i, %i) : memref<?x64xf32>, vector<16x1xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<?x64xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<?x64xf32, #gpu.address_space<workgroup>>'}}
  %0 = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x64xf32, #shared>, vector<16x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %i: index) {
  // expected-error @+1 {{result #0 must be}}
  %0 = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x64xf32>, vector<2x16x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x64xf32>, %i: index) {
  // expected-error @+1 {{result #0 must be}}
  %0 = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x64xf32>, vector<[16]x64xf32>
  return
}

// -----

// Products

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xbf16>, %b: memref<16xbf16, #shared>) {
  // expected-error @+1 {{expects 'b' to have rank 2, but has 'memref<16xbf16, #gpu.address_space<workgroup>>'}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xbf16>, memref<16xbf16, #shared> -> vector<64x16xf32>
  return
}

// -----

func.func @f(%a: vector<64x16xbf16>, %b: memref<16x16xbf16>) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<16x16xbf16>'}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xbf16>, memref<16x16xbf16> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x32xbf16>, %b: memref<16x32xbf16, #shared>) {
  // expected-error @+1 {{shapes do not fit: 64x32 times 16x32 into 64x16}}
  %0 = gdn_tile.mma %a, %b : vector<64x32xbf16>, memref<16x32xbf16, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x32xbf16>, %b: memref<16x64xbf16, #shared>) {
  // expected-error @+1 {{shapes do not fit: 64x32 times 64x16 into 64x16}}
  %0 = gdn_tile.mma %a, %b {transpose_b} : vector<64x32xbf16>, memref<16x64xbf16, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xi8>, %b: memref<16x16xi8, #shared>) {
  // expected-error @+1 {{expects f16, bf16 or f32 operands, but has 'i8'}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xi8>, memref<16x16xi8, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x8xbf16>, %b: memref<8x16xbf16, #shared>) {
  // expected-error @+1 {{expects K a multiple of 16 and N a multiple of 16 for 'bf16', but has K = 8 and N = 16}}
  %0 = gdn_tile.mma %a, %b : vector<64x8xbf16>, memref<8x16xbf16, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xf32>, %b: memref<16x12xf32, #shared>) {
  // expected-error @+1 {{expects K a multiple of 16 and N a multiple of 8 for 'f32', but has K = 16 and N = 12}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xf32>, memref<16x12xf32, #shared> -> vector<64x12xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xbf16>, %b: memref<16x16xf16, #shared>) {
  // expected-error @+1 {{expects operands of one type, but has 'bf16' and 'f16'}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xbf16>, memref<16x16xf16, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xbf16>, %b: memref<16x16xbf16, #shared>) {
  // expected-error @+1 {{accumulates in f32: 'acc' and the result must have one f32 type}}
  %0 = gdn_tile.mma %a, %b : vector<64x16xbf16>, memref<16x16xbf16, #shared> -> vector<64x16xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xbf16>, %b: memref<16x16xbf16, #shared>, %c: vector<64x32xf32>) {
  // expected-error @+1 {{accumulates in f32: 'acc' and the result must have one f32 type}}
  %0 = gdn_tile.mma %a, %b acc(%c : vector<64x32xf32>) : vector<64x16xbf16>, memref<16x16xbf16, #shared> -> vector<64x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%a: vector<64x16xf32>, %b: memref<16x16xf32, #shared>) {
  // expected-error @+1 {{expects 1 or 3 passes, but has 2}}
  %0 = gdn_tile.mma %a, %b {passes = 2} : vector<64x16xf32>, memref<16x16xf32, #shared> -> vector<64x16xf32>
  return
}

// -----

// Sums and numbers

func.func @f(%a: vector<64x16xf32>) {
  // expected-error @+1 {{cannot sum 'vector<64x16xf32>' to 'vector<16x1xf32>'}}
  %0 = gdn_tile.sum %a : vector<64x16xf32> to vector<16x1xf32>
  return
}

// -----

func.func @f(%a: vector<64x24xbf16>) {
  // expected-error @+1 {{expects vector<MxK> of f16 or bf16, K a multiple of 16, to vector<Mx1xf32>, but has 'vector<64x24xbf16>' to 'vector<64x1xf32>'}}
  %0 = gdn_tile.sum_squares %a : vector<64x24xbf16> to vector<64x1xf32>
  return
}

// -----

func.func @f(%a: vector<64x16xf32>) {
  // expected-error @+1 {{but has 'vector<64x16xf32>' to 'vector<64x1xf32>'}}
  %0 = gdn_tile.sum_squares %a : vector<64x16xf32> to vector<64x1xf32>
  return
}

// -----

func.func @f(%a: vector<64x16xbf16>) {
  // expected-error @+1 {{but has 'vector<64x16xbf16>' to 'vector<1x16xf32>'}}
  %0 = gdn_tile.sum_squares %a : vector<64x16xbf16> to vector<1x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x16xbf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 2>} {
  // expected-error @+1 {{needs a kernel of the accumulator layout}}
  %0 = gdn_tile.sum_squares %a : vector<8x16xbf16> to vector<8x1xf32>
  return
}

// -----

func.func @f(%a: vector<64x16xbf16>) {
  // expected-error @+1 {{cannot sum 'vector<64x16xbf16>' to 'vector<64x1xbf16>'}}
  %0 = gdn_tile.sum %a : vector<64x16xbf16> to vector<64x1xbf16>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{expects vector<Mx1xi32> or vector<1xNxi32>, but has 'vector<2x4xi32>'}}
  %0 = gdn_tile.iota : vector<2x4xi32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{expects vector<Mx1xi32> or vector<1xNxi32>, but has 'vector<4x1xf32>'}}
  %0 = gdn_tile.iota : vector<4x1xf32>
  return
}

// -----

// Ops on shared tiles

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x4xbf16, #shared>) {
  // expected-error @+1 {{expects the elements of 'tile' to be f32, but they are 'bf16'}}
  gdn_tile.cumsum %x : memref<16x4xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<24xf32, #shared>) {
  // expected-error @+1 {{expects a chunk of 16, 32 or 64 tokens, but has 24}}
  gdn_tile.cumsum %x : memref<24xf32, #shared>
  return
}

// -----

func.func @f(%x: memref<16xf32>) {
  // expected-error @+1 {{expects a static shared-memory tile of rank 1 or 2, but has 'memref<16xf32>'}}
  gdn_tile.cumsum %x : memref<16xf32>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expects 'least' and 'factor' with a source, and only then}}
  gdn_tile.cumsum %x of %x {least = -1.0} : memref<16xf32, #gpu.address_space<workgroup>> of memref<16xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>, %y: memref<16x4xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expects a tile of C elements and a source of as many, or a column of a source of C rows, but has 'memref<16xf32, #gpu.address_space<workgroup>>' and 'memref<16x4xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.cumsum %x of %y {least = -1.0, factor = 1.0} : memref<16xf32, #gpu.address_space<workgroup>> of memref<16x4xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error @+1 {{has a column, but no source}}
  gdn_tile.cumsum %x column %i : memref<16xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>, %y: memref<40xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{expects shared-memory tiles of f32, sums, beta, keys and beside them queries of C and rows of at least 3 C elements, with keys 3 C + 8, C = 16, 32 or 64, but has 'memref<16xf32, #gpu.address_space<workgroup>>' and 'memref<40xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.decays %x to %y {scale = 1.0} : memref<16xf32, #gpu.address_space<workgroup>> to memref<40xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>, %y: memref<48xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{with keys 3 C + 8}}
  gdn_tile.decays %x keys %x to %y {scale = 1.0} : memref<16xf32, #gpu.address_space<workgroup>> keys memref<16xf32, #gpu.address_space<workgroup>> to memref<48xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%x: memref<16xf32, #gpu.address_space<workgroup>>, %y: memref<56xf32, #gpu.address_space<workgroup>>) {
  // expected-error @+1 {{keys and beside them queries of C}}
  gdn_tile.decays %x queries %x to %y {scale = 1.0} : memref<16xf32, #gpu.address_space<workgroup>> queries memref<16xf32, #gpu.address_space<workgroup>> to memref<56xf32, #gpu.address_space<workgroup>>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x16xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x8xf32, #shared>, %v: vector<16x16xf32>) {
  // expected-error @+1 {{expects q, k and left of one type CxK, but has 'memref<16x16xbf16, #gpu.address_space<workgroup>>' and 'memref<16x8xbf16, #gpu.address_space<workgroup>>'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x16xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x8xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x8xf32, #shared>, %v: vector<16x16xf32>, %l: memref<16x16xbf16, #shared>) {
  // expected-error @+1 {{expects q, k and left of one type CxK, but has 'memref<16x8xbf16, #gpu.address_space<workgroup>>' and 'memref<16x8xbf16, #gpu.address_space<workgroup>>' and 'memref<16x16xbf16, #gpu.address_space<workgroup>>'}}
  %p, %a = gdn_tile.scores %x, %y, %s acc(%v) strict(%l acc %v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x8xf32, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>) -> (vector<16x16xf32>, vector<16x16xf32>)
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xi8, #shared>, %y: memref<16x8xi8, #shared>, %s: memref<17x8xf32, #shared>, %v: vector<16x16xf32>) {
  // expected-error @+1 {{expects f16, bf16 or f32 operands, but has 'i8'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x8xi8, #shared>, memref<16x8xi8, #shared>, memref<17x8xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<16x8xf32, #shared>, %v: vector<16x16xf32>) {
  // expected-error @+1 {{expects sums of 17 rows and at least 8 columns, but has 'memref<16x8xf32, #gpu.address_space<workgroup>>'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<16x8xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x7xf32, #shared>, %v: vector<16x16xf32>) {
  // expected-error @+1 {{expects sums of 17 rows and at least 8 columns, but has 'memref<17x7xf32, #gpu.address_space<workgroup>>'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x7xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x8xbf16, #shared>, %v: vector<16x16xf32>) {
  // expected-error @+1 {{expects the elements of 'sums' to be f32, but they are 'bf16'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x8xbf16, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x8xf32, #shared>, %v: vector<16x8xf32>) {
  // expected-error @+1 {{expects accumulators and results 'vector<16x16xf32>'}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x8xf32, #shared>, vector<16x8xf32>) -> vector<16x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x8xbf16, #shared>, %y: memref<16x8xbf16, #shared>, %s: memref<17x8xf32, #shared>, %v: vector<16x16xf32>, %l: memref<16x8xbf16, #shared>) {
  // expected-error @+1 {{has two results with 'left' and one without it}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) strict(%l acc %v) : (memref<16x8xbf16, #shared>, memref<16x8xbf16, #shared>, memref<17x8xf32, #shared>, vector<16x16xf32>, memref<16x8xbf16, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<8x8xf32, #shared>, %y: memref<8x8xf32, #shared>, %s: memref<9x8xf32, #shared>, %v: vector<8x8xf32>) {
  // expected-error @+1 {{expects a chunk of 16, 32 or 64 tokens, but has 8}}
  %p = gdn_tile.scores %x, %y, %s acc(%v) : (memref<8x8xf32, #shared>, memref<8x8xf32, #shared>, memref<9x8xf32, #shared>, vector<8x8xf32>) -> vector<8x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xf32>, %s: memref<17x8xf32, #shared>, %i: index) {
  // expected-error @+1 {{sums 9 columns of a tile of 8}}
  gdn_tile.copy_sums %g[%i, %i] dims [0, 1] to %s {columns = 9 : i64, least = -104.0, factor = 1.0} : memref<?x8xf32> to memref<17x8xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xf32>, %s: memref<17x8xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects 'least' to be at most 0, but it is 1}}
  gdn_tile.copy_sums %g[%i, %i] dims [0, 1] to %s {columns = 8 : i64, least = 1.0, factor = 1.0} : memref<?x8xf32> to memref<17x8xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xf32>, %s: memref<17xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a tile of rank 2, but has 'memref<17xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.copy_sums %g[%i, %i] dims [0] to %s {columns = 8 : i64, least = -104.0, factor = 1.0} : memref<?x8xf32> to memref<17xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xf32>, %s: memref<16x8xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a chunk of 16, 32 or 64 tokens, but has 15}}
  gdn_tile.copy_sums %g[%i, %i] dims [0, 1] to %s {columns = 8 : i64, least = -104.0, factor = 1.0} : memref<?x8xf32> to memref<16x8xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xi32>, %s: memref<17x8xf32, #shared>, %i: index) {
  // expected-error @+1 {{expects a source of f16, bf16 or f32, but has 'memref<?x8xi32>'}}
  gdn_tile.copy_sums %g[%i, %i] dims [0, 1] to %s {columns = 8 : i64, least = -104.0, factor = 1.0} : memref<?x8xi32> to memref<17x8xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%g: memref<?x8xf32>, %s: memref<17x8xbf16, #shared>, %i: index) {
  // expected-error @+1 {{expects the elements of 'tile' to be f32, but they are 'bf16'}}
  gdn_tile.copy_sums %g[%i, %i] dims [0, 1] to %s {columns = 8 : i64, least = -104.0, factor = 1.0} : memref<?x8xf32> to memref<17x8xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16x32xf32, #shared>) {
  // expected-error @+1 {{expects a square tile, but has 'memref<16x32xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.tri_inverse %x : memref<16x32xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<16xf32, #shared>) {
  // expected-error @+1 {{expects a square tile, but has 'memref<16xf32, #gpu.address_space<workgroup>>'}}
  gdn_tile.tri_inverse %x : memref<16xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @f(%x: memref<128x128xf32, #shared>) {
  // expected-error @+1 {{expects a chunk of 16, 32 or 64 tokens, but has 128}}
  gdn_tile.tri_inverse %x : memref<128x128xf32, #shared>
  return
}
