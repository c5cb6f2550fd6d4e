// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// One warp, two neighbours a lane: five steps and one to hand the sum on.
// CHECK-LABEL: llvm.func @vector
// CHECK: scf.if
// CHECK-COUNT-6: nvvm.shfl.sync up
// CHECK-NOT: nvvm.shfl.sync
func.func @vector() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %g = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.cumsum %g : memref<64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Of a column of another tile: two elements of a lane, clamped and multiplied before they are added, the product rounded.
// CHECK-LABEL: llvm.func @column
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK-COUNT-2: llvm.intr.maximum
// CHECK-NOT: contract
// CHECK: llvm.fmul %{{.*}}, %{{.*}} : f32
// CHECK-COUNT-6: nvvm.shfl.sync up
// CHECK: llvm.store {{.*}} : vector<2xi32>, !llvm.ptr<3>
func.func @column() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %g = memref.alloc() : memref<64x4xf32, #shared>
  %s = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.each_warp (%i) in (%c1) {
    gdn_tile.cumsum %s of %g column %i {least = -1.0e+02, factor = 0.5} : memref<64xf32, #shared> of memref<64x4xf32, #shared>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two tokens of a lane, three rows; with 16 tokens half of the lanes.
// CHECK-LABEL: llvm.func @decays
// CHECK-COUNT-4: ex2.approx
// CHECK-NOT: ex2.approx
// CHECK-COUNT-3: llvm.store {{.*}} : vector<2xi32>, !llvm.ptr<3>
// CHECK-COUNT-2: ex2.approx
// CHECK-NOT: ex2.approx
// CHECK-COUNT-3: "@$1 st.shared.b32
func.func @decays() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %s = memref.alloc() : memref<64xf32, #shared>
  %b = memref.alloc() : memref<64xf32, #shared>
  %r = memref.alloc() : memref<200xf32, #shared>
  %few = memref.alloc() : memref<16xf32, #shared>
  %rows = memref.alloc() : memref<48xf32, #shared>
  gdn_tile.decays %s times %b to %r {scale = 0.5} : memref<64xf32, #shared> times memref<64xf32, #shared> to memref<200xf32, #shared>
  gdn_tile.decays %few to %rows {scale = 0.5} : memref<16xf32, #shared> to memref<48xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Factors of keys and of queries, and the last decay in eight lanes.
// CHECK-LABEL: llvm.func @raw_decays
// CHECK-COUNT-4: ex2.approx
// CHECK: ex2.approx
// CHECK-NOT: ex2.approx
// CHECK: llvm.mlir.constant(8 : i32)
// CHECK: "@$1 st.shared.b32
func.func @raw_decays() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %s = memref.alloc() : memref<64xf32, #shared>
  %r = memref.alloc() : memref<200xf32, #shared>
  gdn_tile.decays %s times %s keys %s queries %s to %r {scale = 0.5} : memref<64xf32, #shared> times memref<64xf32, #shared>
      keys memref<64xf32, #shared> queries memref<64xf32, #shared> to memref<200xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A thread per column.
// CHECK-LABEL: llvm.func @matrix
// CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-15: llvm.fadd
// CHECK-NOT: llvm.fadd
func.func @matrix() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %g = memref.alloc() : memref<16x32xf32, #shared>
  gdn_tile.cumsum %g : memref<16x32xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two lanes a column: sums of the blocks behind the first are exchanged, 3 x 4 of them. All is read before anything is written.
// CHECK-LABEL: llvm.func @inverse
// CHECK-COUNT-12: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-NOT: llvm.store
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: llvm.load
// CHECK-COUNT-8: llvm.store {{.*}} : f32, !llvm.ptr<3>
// CHECK-NOT: llvm.store
func.func @inverse() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %l = memref.alloc() : memref<16x16xf32, #shared>
  gdn_tile.tri_inverse %l : memref<16x16xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two diagonal blocks of 32 by two warps, then two products of blocks: per warp
// 2 tiles, 4 k steps, 3 passes. Every operand is read before it is replaced.
// CHECK-LABEL: llvm.func @inverse_in_blocks
// CHECK: scf.if
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.barrier
// CHECK-COUNT-24: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK: nvvm.barrier
// CHECK-COUNT-24: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK: llvm.fneg
// CHECK: nvvm.barrier
func.func @inverse_in_blocks() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %l = memref.alloc() : memref<64x64xf32, #shared>
  gdn_tile.tri_inverse %l : memref<64x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: llvm.func @exact_inverse
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
func.func @exact_inverse() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %l = memref.alloc() : memref<32x32xf32, #shared>
  gdn_tile.tri_inverse %l {exact} : memref<32x32xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A warp has 16 rows, a lane four columns: all loads come before the first sum, those of a whole chunk without
// predicates. The sums of the warps in front come from the last of their rows.
// CHECK-LABEL: llvm.func @sums
// CHECK: scf.if
// CHECK-COUNT-16: @$5 ld.global.v4.b32
// CHECK: else
// CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: !llvm.ptr<1>
// CHECK-COUNT-60: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: nvvm.barrier
// CHECK: ld.shared.v4.b32
// CHECK: nvvm.barrier
// CHECK-COUNT-16: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
func.func @sums(%gate: memref<?x128xf32>, %rows: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %s = memref.alloc() : memref<33x136xf32, #shared>
  gdn_tile.copy_sums %gate[%c0, %c0] dims [0, 1] valid(%rows, %c128) to %s {columns = 128 : i64, least = -104.0, factor = 1.0} : memref<?x128xf32> to memref<33x136xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two warps, 16 channels: per k step of 8 channels one product for each half of the block's columns on the diagonal, and
// as many with the columns of the other warp, which leaves them in shared memory. Behind the vote the levels 0, 1, 2
// and 4 for each half of the block, and level 8. What the warps exchange lies over no operand, even one that ends here.
// CHECK-LABEL: llvm.func @scores(
// CHECK-SAME: gdn.shared_bytes = 6400 : i64
// CHECK: nvvm.ldmatrix
// CHECK: scf.if
// CHECK-COUNT-2: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.barrier
// CHECK: nvvm.vote.sync any
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: scf.for
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.vote.sync ballot
func.func @scores(%out: memref<32x32xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<32x32xf32>
  %x = memref.alloc() : memref<32x16xbf16, #shared>
  %s = memref.alloc() : memref<33x24xf32, #shared>
  %p = gdn_tile.scores %x, %x, %s acc(%zero) : (memref<32x16xbf16, #shared>, memref<32x16xbf16, #shared>, memref<33x24xf32, #shared>, vector<32x32xf32>) -> vector<32x32xf32>
  gdn_tile.free %x : memref<32x16xbf16, #shared>
  gdn_tile.store %p, %out[%c0, %c0] dims [0, 1] : vector<32x32xf32>, memref<32x32xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Operands of float32 are split in two parts: three products for one. One warp needs no one else's columns.
// CHECK-LABEL: llvm.func @scores_f32
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-12: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.vote.sync any
func.func @scores_f32(%out: memref<16x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %x = memref.alloc() : memref<16x16xf32, #shared>
  %s = memref.alloc() : memref<17x24xf32, #shared>
  %p = gdn_tile.scores %x, %x, %s acc(%zero) : (memref<16x16xf32, #shared>, memref<16x16xf32, #shared>, memref<17x24xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  gdn_tile.store %p, %out[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  return
}
