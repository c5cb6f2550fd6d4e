// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s

#shared = #gpu.address_space<workgroup>

// Four n tiles of 8 and one k step of 16: two ldmatrix, four mma. The state's pairs are A as they stand.
// CHECK-LABEL: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx78">]
// CHECK: llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @transposed(%{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64})
// CHECK-SAME: gdn.shared_bytes = 1024 : i64
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 64>
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>{{.*}}num = 4
// CHECK-NOT: nvvm.ldmatrix
func.func @transposed(%o: memref<?x32xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<32x16xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<32x16xbf16>
  %r = gdn_tile.mma %a, %b {transpose_b} : vector<32x16xbf16>, memref<32x16xbf16, #shared> -> vector<32x32xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<32x32xf32>, memref<?x32xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: llvm.func @plain
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-COUNT-2: nvvm.mma.sync {{.*}}(vector<2xf16>, vector<2xf16>, f32)
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-COUNT-2: nvvm.mma.sync {{.*}}(vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT: nvvm.mma.sync
func.func @plain(%o: memref<?x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<32x16xf16, #shared>
  %a = arith.constant dense<1.0> : vector<16x32xf16>
  %r = gdn_tile.mma %a, %b : vector<16x32xf16>, memref<32x16xf16, #shared> -> vector<16x16xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<?x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Three TF32 products per k step of 8: low x high, high x low, high x high.
// The low part is not fused with what the number comes from.
// CHECK-LABEL: llvm.func @three_passes
// CHECK: llvm.fsub %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK-COUNT-6: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK-NOT: nvvm.mma.sync
func.func @three_passes(%o: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<16x8xf32, #shared>
  %a = arith.constant dense<1.0> : vector<16x16xf32>
  %r = gdn_tile.mma %a, %b : vector<16x16xf32>, memref<16x8xf32, #shared> -> vector<16x8xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Rounded in integers; the product takes the upper bits.
// CHECK-LABEL: llvm.func @one_pass
// CHECK: %[[HALF:.*]] = llvm.mlir.constant(4096 : i32)
// CHECK: llvm.add %{{.*}}, %[[HALF]]
// CHECK-NOT: nvvm.convert.float.to.tf32
// CHECK-COUNT-2: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK-NOT: nvvm.mma.sync
func.func @one_pass(%o: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<16x8xf32, #shared>
  %a = arith.constant dense<1.0> : vector<16x16xf32>
  %r = gdn_tile.mma %a, %b {passes = 1 : i64} : vector<16x16xf32>, memref<16x8xf32, #shared> -> vector<16x8xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A refinement without a condition is five products of two mma each, and what rounding leaves of d and twice of u. Barriers
// part it, so that less is live; behind the second the first of the last columns is found again.
// CHECK-LABEL: llvm.func @refine(
// CHECK-COUNT-2: nvvm.mma.sync
// d = acc - a n^T, and what a lacks of it, in the last columns.
// CHECK: llvm.fsub
// CHECK: llvm.fsub
// CHECK: llvm.fptosi
// CHECK: %[[LATE:.*]] = llvm.icmp "sge"
// CHECK: llvm.select %[[LATE]]
// CHECK: nvvm.barrier
// CHECK-NOT: llvm.fptosi
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK: llvm.fptosi
// CHECK: llvm.icmp "sge"
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
func.func @refine(%x: memref<16x16xbf16>, %y: memref<16x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %n = memref.alloc() : memref<16x16xbf16, #shared>
  %f = memref.alloc() : memref<34xf32, #shared>
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x16xbf16>, vector<16x16xbf16>
  %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<16x16xf32>, vector<16x16xf32>
  %r:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%u, %n) output(%u, %n) factors(%f) count 32 scale 0
      : (vector<16x16xbf16>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, vector<16x16xf32>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, memref<34xf32, #shared>)
      -> (vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>)
  gdn_tile.store %r#0, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %r#1, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %r#2, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// With the second part of P there are three products more: P transposed, what p has of it, by the unit matrix, and that part
// with u, from a tile of its own.
// CHECK-LABEL: llvm.func @refine_scores(
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK-COUNT-2: nvvm.mma.sync
// Not where exp(G) has no digits, in front of the last columns or below the diagonal.
// CHECK: llvm.icmp "sle"
// CHECK: llvm.icmp "sge"
// CHECK: llvm.fcmp "ogt"
// CHECK: llvm.icmp "eq"
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
func.func @refine_scores(%x: memref<16x16xbf16>, %y: memref<16x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %n = memref.alloc() : memref<16x16xbf16, #shared>
  %f = memref.alloc() : memref<50xf32, #shared>
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x16xbf16>, vector<16x16xbf16>
  %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<16x16xf32>, vector<16x16xf32>
  %r:3 = gdn_tile.refine a(%a, %n, %n) acc(%u) state(%u, %n) output(%u, %n) scores(%n) factors(%f) count 48 scale 0 {beta = 16 : i64, factor = 0.25 : f64, grown = 32 : i64}
      : (vector<16x16xbf16>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, vector<16x16xf32>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<50xf32, #shared>)
      -> (vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>)
  gdn_tile.store %r#0, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %r#1, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %r#2, %y[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  return
}

// -----

// Two products for each 16 columns, of the registers of the fragment alone: with the rows above eight and below. Of the
// four threads that share rows one has the diagonal.

// CHECK-LABEL: llvm.func @squares(
// CHECK-COUNT-4: nvvm.mma.sync A[{{.*}}] B[{{.*}}] {{.*}}bf16
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
func.func @squares(%x: memref<64x32xbf16>, %y: memref<64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x32xbf16>, vector<64x32xbf16>
  %s = gdn_tile.sum_squares %v : vector<64x32xbf16> to vector<64x1xf32>
  gdn_tile.store %s, %y[%c0] dims [0] : vector<64x1xf32>, memref<64xf32>
  return
}
