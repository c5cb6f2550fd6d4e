// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a -canonicalize -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// A ring of two stages, 16384 bytes: zeros before it is used, made visible to the copy engine and to products. One thread
// issues a copy for each column of blocks: 1920, 1408, 896 and 384 bytes, each in its panel behind the first matrix of the diagonal.
// Products read matrices of 8x8 without swizzle, whose rows are those of k (the last modifier): the next 8 rows k 128 bytes on, the
// next 8 columns n 256 bytes, k steps 2048 bytes. Columns 8 to 15 of 16 come first, so of the left operand too.

// CHECK-LABEL: llvm.func @in_a_ring
// CHECK-DAG: %[[DESCRIPTOR:.*]] = llvm.mlir.constant(68720001024 : i64)
// CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(4608 : i32)
// CHECK-DAG: %[[BYTES0:.*]] = llvm.mlir.constant(1920 : i32)
// CHECK-DAG: %[[BYTES1:.*]] = llvm.mlir.constant(1408 : i32)
// CHECK-DAG: %[[BYTES2:.*]] = llvm.mlir.constant(896 : i32)
// CHECK-DAG: %[[BYTES3:.*]] = llvm.mlir.constant(384 : i32)
// CHECK: scf.for
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier
// CHECK: llvm.or %{{.*}}, %[[DESCRIPTOR]]
// CHECK: add.s64 d, $48, 0; wgmma.mma_async.sync.aligned.m64n64k16
// CHECK-SAME: {$34, $35, $32, $33}, d, none, 1, 1, 1; add.s64 d, $48, 128; wgmma
// CHECK-SAME: {$38, $39, $36, $37}, d, all,
// CHECK-SAME: 1, 1, 1; add.s64 d, $48, 256; wgmma
// CHECK-SAME: 1, 1, 1; add.s64 d, $48, 384; wgmma
// CHECK-SAME: 1, 1, 1; wgmma.commit_group
// CHECK: nvvm.mbarrier.expect_tx %[[BARRIER:.*]], %[[ALL]] :
// CHECK: %[[FROM:.*]] = llvm.getelementptr %arg0
// CHECK: llvm.getelementptr %{{.*}}[128]
// CHECK: %[[TO:.*]] = llvm.addrspacecast
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %[[FROM]], %[[BARRIER]], %[[BYTES0]]
// Panel p from its diagonal on: 2560 bytes from one to the next.
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %[[BARRIER]], %[[BYTES1]]
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %[[BARRIER]], %[[BYTES2]]
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %[[BARRIER]], %[[BYTES3]]
func.func @in_a_ring(%x: memref<?x288x8xbf16>, %o: memref<?x64xf32>, %s: memref<64x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : memref<2x512x8xbf16, #shared>
  %ring = gdn_tile.ring(%t : memref<2x512x8xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %a = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %a16 = arith.truncf %a : vector<64x64xf32> to vector<64x64xbf16>
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
        %tile = gdn_tile.stage %t[%c0] : memref<2x512x8xbf16, #shared> to memref<512x8xbf16, #shared>
        %r = gdn_tile.mma %a16, %tile {transpose_b} : vector<64x64xbf16>, memref<512x8xbf16, #shared> -> vector<64x64xf32>
        gdn_tile.store %r, %o[%i, %c0] dims [0, 1] : vector<64x64xf32>, memref<?x64xf32>
        gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      }
    }
    gdn_tile.role "load" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %tile = gdn_tile.stage %t[%c0] : memref<2x512x8xbf16, #shared> to memref<512x8xbf16, #shared>
        gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %tile signal(%slot) {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #shared>
        gdn_tile.ring_commit %slot
      }
    }
  }
  return
}

// Two rings one behind the other: the block meets once, behind a fence for the zeros of both.

// CHECK-LABEL: llvm.func @two_rings
// CHECK: scf.for
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: nvvm.fence.proxy
// CHECK-NOT: nvvm.barrier
// CHECK: scf.for
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.shfl.sync
func.func @two_rings(%x: memref<?x288x8xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : memref<2x512x8xbf16, #shared>
  %first = gdn_tile.ring(%t : memref<2x512x8xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  %u = memref.alloc() : memref<1x512x8xbf16, #shared>
  %second = gdn_tile.ring(%u : memref<1x512x8xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %first[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_wait %second[%i] : !gdn_tile.ring<1>
        gdn_tile.ring_release %first[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_release %second[%i] : !gdn_tile.ring<1>
      }
    }
    gdn_tile.role "load" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %a = gdn_tile.ring_acquire %first[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %ta = gdn_tile.stage %t[%c0] : memref<2x512x8xbf16, #shared> to memref<512x8xbf16, #shared>
        gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %ta signal(%a) {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #shared>
        gdn_tile.ring_commit %a
        %b = gdn_tile.ring_acquire %second[%i] : !gdn_tile.ring<1> -> !gdn_tile.slot
        %tb = gdn_tile.stage %u[%c0] : memref<1x512x8xbf16, #shared> to memref<512x8xbf16, #shared>
        gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %tb signal(%b) {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #shared>
        gdn_tile.ring_commit %b
      }
    }
  }
  return
}
