// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s

// 64 columns of 16 bits are 4 steps of 16; registers are operands as they are.
// CHECK-LABEL: llvm.func @halves
// CHECK-COUNT-4: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: nvvm.shfl.sync
// CHECK-NOT: !llvm.ptr<3>
func.func @halves(%x: memref<?x64xbf16>, %o: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xbf16>, vector<16x64xbf16>
  %b = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xbf16>, vector<8x64xbf16>
  %r = gdn_tile.dot %a times(%b) : vector<16x64xbf16>, vector<8x64xbf16> -> vector<16x8xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

// float32 in two parts, split once for both right operands: 2 steps of 8 columns, 2 parts, 2 operands.
// CHECK-LABEL: llvm.func @floats
// CHECK-COUNT-8: llvm.mlir.constant(-8192 : i32)
// CHECK-NOT: llvm.mlir.constant(-8192 : i32)
// CHECK-NOT: nvvm.shfl.sync
func.func @floats(%x: memref<?x16xf32>, %y: memref<?x16xbf16>, %o: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x16xf32>, vector<16x16xf32>
  %b = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<?x16xbf16>, vector<8x16xbf16>
  %r:2 = gdn_tile.dot %a times(%b, %b) : vector<16x16xf32>, vector<8x16xbf16>, vector<8x16xbf16> -> vector<16x8xf32>, vector<16x8xf32>
  gdn_tile.store %r#0, %o[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  gdn_tile.store %r#1, %o[%c16, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

// Both float32: three products a step.
// CHECK-LABEL: llvm.func @both_floats
// CHECK-COUNT-3: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK-NOT: nvvm.mma.sync
func.func @both_floats(%o: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %o[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<16x8xf32>
  %b = gdn_tile.load %o[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<8x8xf32>
  %r = gdn_tile.dot %a times(%b) : vector<16x8xf32>, vector<8x8xf32> -> vector<16x8xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

// Per 8 columns one transposition and one product, of bf16 with both parts of u side by side ...
// CHECK-LABEL: llvm.func @outer_bf16
// CHECK: movmatrix
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-COUNT-3: movmatrix
// CHECK-NOT: movmatrix
func.func @outer_bf16(%x: memref<?x32xbf16>, %o: memref<?x32xf32>, %p: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %u = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<16x8xf32>
  %k = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x32xbf16>, vector<8x32xbf16>
  %acc = gdn_tile.load %o[%c0, %c0] dims [0, 1] : memref<?x32xf32>, vector<16x32xf32>
  %r = gdn_tile.outer %u, %k acc(%acc) : vector<16x8xf32>, vector<8x32xbf16>, vector<16x32xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x32xf32>, memref<?x32xf32>
  return
}

// -----

// ... or two of TF32; f16 has too small a range for the parts of u.
// CHECK-LABEL: llvm.func @outer_f16
// CHECK: movmatrix
// CHECK-COUNT-2: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK: movmatrix
func.func @outer_f16(%x: memref<?x32xf16>, %o: memref<?x32xf32>, %p: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %u = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<16x8xf32>
  %k = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x32xf16>, vector<8x32xf16>
  %acc = gdn_tile.load %o[%c0, %c0] dims [0, 1] : memref<?x32xf32>, vector<16x32xf32>
  %r = gdn_tile.outer %u, %k acc(%acc) : vector<16x8xf32>, vector<8x32xf16>, vector<16x32xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x32xf32>, memref<?x32xf32>
  return
}

// -----

// Three factors for all rows, and three columns of each of the two rows of a lane.
// CHECK-LABEL: llvm.func @solve
// CHECK-COUNT-9: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl.sync
func.func @solve(%p: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  %c0 = arith.constant 0 : index
  %l = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<8x8xf32>
  %w = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<16x8xf32>
  %x = gdn_tile.tri_solve %l, %w {count = 3 : i64} : vector<8x8xf32>, vector<16x8xf32>
  gdn_tile.store %x, %p[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

// The values depend on a vote of the block behind the loads. Hints of streaming data.
// CHECK-LABEL: llvm.func @after_loads
// CHECK-COUNT-2: ld.global.L1::no_allocate.v4.b32
// CHECK: %[[ZERO:.*]] = llvm.inline_asm has_side_effects {{.*}}"bar.red.popc.u32 $0, 0, $1;", "=r,b,~{memory}"
// CHECK-COUNT-8: llvm.or %{{.*}}, %[[ZERO]] : i32
// CHECK-NOT: llvm.or
// CHECK-COUNT-2: st.global.cs.v4.b32
func.func @after_loads(%x: memref<?x32xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] {streaming} : memref<?x32xf32>, vector<8x32xf32>
  %b = gdn_tile.after_loads %a : vector<8x32xf32>
  gdn_tile.store %b, %x[%c0, %c0] dims [0, 1] {streaming} : vector<8x32xf32>, memref<?x32xf32>
  return
}

// -----

// A sum with a state of 16 bits: each product is rounded before the next is issued, of
// what is scaled for it.
// CHECK-LABEL: llvm.func @outer_stored
// CHECK-COUNT-4: llvm.fmul
// CHECK-NOT: llvm.fmul
// CHECK: nvvm.mma.sync
// CHECK-COUNT-2: llvm.fptrunc {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-4: llvm.fmul
// CHECK: nvvm.mma.sync
func.func @outer_stored(%x: memref<?x32xbf16>, %p: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %u = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<16x8xf32>
  %k = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x32xbf16>, vector<8x32xbf16>
  %acc = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x32xbf16>, vector<16x32xbf16>
  %row = gdn_tile.load %p[%c0, %c0] dims [1] : memref<?x8xf32>, vector<1x8xf32>
  %scale = gdn_tile.sum %row : vector<1x8xf32> to vector<1x1xf32>
  %r = gdn_tile.outer %u, %k acc(%acc) scale(%scale : vector<1x1xf32>) : vector<16x8xf32>, vector<8x32xbf16>, vector<16x32xbf16>
  gdn_tile.store %r, %x[%c0, %c0] dims [0, 1] : vector<16x32xbf16>, memref<?x32xbf16>
  return
}

// -----

// Eight pairs of 64 columns pass from the lanes of the first four rows to the others; zeros do not.
// CHECK-LABEL: llvm.func @stack
// CHECK: %[[FIFTEEN:.*]] = llvm.mlir.constant(15 : i32)
// CHECK: %[[FROM:.*]] = llvm.and %{{.*}}, %[[FIFTEEN]] : i32
// CHECK-COUNT-8: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[FROM]], %{{.*}} : i32 -> i32
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
func.func @stack(%x: memref<?x64xbf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x64xbf16>
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xbf16>, vector<8x64xbf16>
  %b = gdn_tile.stack %a, %a : vector<8x64xbf16>
  %c = gdn_tile.stack %b, %zero : vector<8x64xbf16>
  gdn_tile.store %c, %x[%c0, %c0] dims [0, 1] : vector<8x64xbf16>, memref<?x64xbf16>
  return
}
