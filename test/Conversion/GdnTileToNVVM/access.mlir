// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_90a -cse | FileCheck %s --check-prefixes=CHECK,SM90

#shared = #gpu.address_space<workgroup>

// Rows of 16-byte chunks: one load and one store of 16 bytes per thread and row.
// CHECK-LABEL: llvm.func @rows
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT: llvm.store
func.func @rows(%x: memref<?x4x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%n, %c0, %c0] dims [1, 2] : memref<?x4x64xf32>, vector<4x64xf32>
  gdn_tile.store %v, %x[%n, %c0, %c0] dims [1, 2] : vector<4x64xf32>, memref<?x4x64xf32>
  return
}

// -----

// An offset of two elements, or one that is unknown: narrower accesses.
// CHECK-LABEL: llvm.func @alignment
// CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
func.func @alignment(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 8>} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %even = gdn_tile.load %x[%c0, %c2] dims [0, 1] : memref<?x64xf32>, vector<4x32xf32>
  %any = gdn_tile.load %x[%c0, %n] dims [0, 1] : memref<?x64xf32>, vector<4x32xf32>
  %sum = arith.addf %even, %any : vector<4x32xf32>
  gdn_tile.store %sum, %y[%c0, %c0] dims [0, 1] : vector<4x32xf32>, memref<?x64xf32>
  return
}

// -----

// Rows behind the bound: predicated, not read, zero. The bound is clamped in 64 bits.
// CHECK-LABEL: llvm.func @masked
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {{.*}}, %[[N:.*]]: i64)
// CHECK: %[[LOW:.*]] = llvm.intr.smax(%[[N]], %{{.*}}) : (i64, i64) -> i64
// CHECK: %[[CLAMPED:.*]] = llvm.intr.smin(%[[LOW]], %{{.*}}) : (i64, i64) -> i64
// CHECK: %[[LIMIT:.*]] = llvm.trunc %[[CLAMPED]] : i64 to i32
// CHECK: %[[INSIDE:.*]] = llvm.icmp "slt" %{{.*}}, %[[LIMIT]] : i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$3 ld.global.v2.b32 {$0, $1}, [$2];", "=r,=r,l,b,0,1" %{{.*}}, %[[INSIDE]],
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$1 st.global.v2.b32 [$0], {$2, $3};", "l,b,r,r" %{{.*}}, %[[INSIDE]],
func.func @masked(%x: memref<?x8xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] valid(%n, %c8) : memref<?x8xf32>, vector<16x8xf32>
  gdn_tile.store %v, %x[%c0, %c0] dims [0, 1] valid(%n, %c8) : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

// The bound 128 - 64 * (block mod 2) is never below 64: no predicate.
// CHECK-LABEL: llvm.func @known_bound
// CHECK-NOT: inline_asm
// CHECK: llvm.return
func.func @known_bound(%x: memref<128x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %id = gdn_tile.block_id : index
  %half = arith.remui %id, %c2 : index
  %first = arith.muli %half, %c64 : index
  %left = arith.subi %c128, %first : index
  %v = gdn_tile.load %x[%first, %c0] dims [0, 1] valid(%left, %c8) : memref<128x8xf32>, vector<64x8xf32>
  gdn_tile.store %v, %x[%first, %c0] dims [0, 1] valid(%left, %c8) : vector<64x8xf32>, memref<128x8xf32>
  return
}

// -----

// Nor is 128 - (block and 64).
// CHECK-LABEL: llvm.func @known_mask
// CHECK-NOT: inline_asm
// CHECK: llvm.return
func.func @known_mask(%x: memref<128x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %id = gdn_tile.block_id : index
  %first = arith.andi %id, %c64 : index
  %left = arith.subi %c128, %first : index
  %v = gdn_tile.load %x[%first, %c0] dims [0, 1] valid(%left, %c8) : memref<128x8xf32>, vector<64x8xf32>
  gdn_tile.store %v, %x[%first, %c0] dims [0, 1] valid(%left, %c8) : vector<64x8xf32>, memref<128x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// 16-bit fragments in shared memory: whole 8x8 matrices, also transposed.
// CHECK-LABEL: llvm.func @matrices
// CHECK: nvvm.ldmatrix %{{.*}} {eltType = {{.*}}, layout = #nvvm.mma_layout<row>, num = 4 : i32
// SM80-NOT: movmatrix
// SM80-COUNT-4: llvm.store {{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
// SM90: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<row>
// CHECK: nvvm.ldmatrix %{{.*}} {eltType = {{.*}}, layout = #nvvm.mma_layout<col>, num = 4 : i32
// SM80-COUNT-4: movmatrix.sync.aligned.m8n8.trans.b16
// SM90: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<col>
func.func @matrices() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %x = memref.alloc() : memref<16x16xbf16, #shared>
  %plain = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x16xbf16, #shared>, vector<16x16xbf16>
  gdn_tile.store %plain, %x[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  %transposed = gdn_tile.load %x[%c0, %c0] dims [1, 0] : memref<16x16xbf16, #shared>, vector<16x16xbf16>
  gdn_tile.store %transposed, %x[%c0, %c0] dims [1, 0] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A column vector lies in all four lanes of a group: the first stores it.
// CHECK-LABEL: llvm.func @replicated
// CHECK: %[[LANE:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CHECK: %[[OWNER:.*]] = llvm.icmp "eq" %[[LANE]], %{{.*}} : i32
// CHECK-COUNT-2: "@$1 st.shared.b32 [$0], $2;", "l,b,r" %{{.*}}, %[[OWNER]],
func.func @replicated(%g: memref<?x1xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %x = memref.alloc() : memref<16xf32, #shared>
  %v = gdn_tile.load %g[%c0, %c0] dims [0] : memref<?x1xf32>, vector<16x1xf32>
  gdn_tile.store %v, %x[%c0] dims [0] : vector<16x1xf32>, memref<16xf32, #shared>
  return
}
