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

// Blocks of 2x2 pairs, 16 channels at a time: the difference of the gates comes before the exponential.
// CHECK-LABEL: llvm.func @scores
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[DIFFERENCE:.*]] = llvm.fsub
// CHECK: %[[SCALED:.*]] = llvm.fmul %[[DIFFERENCE]], %{{.*}} : f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[SCALED]])
// CHECK-COUNT-63: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-NOT: llvm.nvvm.ex2
func.func @scores() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %x = memref.alloc() : memref<16x32xbf16, #shared>
  %g = memref.alloc() : memref<16x32xf32, #shared>
  %p = memref.alloc() : memref<16x16xf32, #shared>
  gdn_tile.scores %x, %x, %g to %p : memref<16x32xbf16, #shared>, memref<16x32xbf16, #shared>, memref<16x32xf32, #shared> to memref<16x16xf32, #shared>
  return
}
