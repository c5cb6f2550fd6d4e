// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s

// The lanes look at 32 sequences of a range, evenly spread; the first always counts. What is left is a stretch of them.
// CHECK-LABEL: llvm.func @find
// CHECK: %[[RANGE:.*]]:2 = scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, i32) -> (i32, i32)
// CHECK: llvm.icmp "ugt"
// CHECK: ^bb0(%[[FIRST:.*]]: i32, %[[COUNT:.*]]: i32):
// CHECK: llvm.add %[[COUNT]], %{{.*}} : i32
// CHECK: %[[STRIDE:.*]] = llvm.lshr
// CHECK: %[[OWN:.*]] = llvm.mul %{{.*}}, %[[STRIDE]] : i32
// CHECK: %[[IN:.*]] = llvm.icmp "slt" %[[OWN]], %[[COUNT]]
// CHECK: %[[N:.*]] = llvm.add %[[FIRST]], %[[OWN]]
// CHECK: ld.global
// CHECK: %[[SLOT:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: %[[PLACE:.*]] = llvm.add %[[SLOT]], %[[N]]
// CHECK: %[[FITS:.*]] = llvm.icmp "ule" %[[PLACE]]
// CHECK: %[[VOTE:.*]] = llvm.and %[[IN]], %[[FITS]] : i1
// CHECK: llvm.call_intrinsic "llvm.nvvm.vote.ballot.sync"(%{{.*}}, %[[VOTE]])
// CHECK: llvm.or
// CHECK: llvm.intr.ctpop
// CHECK: llvm.intr.umin(%[[STRIDE]]
// CHECK: scf.yield
// CHECK: llvm.zext %[[RANGE]]#0 : i32 to i64
func.func @find(%offsets: memref<?xi32>, %slot: index, %count: index, %out: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %n = gdn_tile.find_sequence %slot in %offsets count %count chunk 64 : memref<?xi32>
  %x = arith.constant dense<1.0> : vector<1x16xf32>
  gdn_tile.store %x, %out[%n] dims [0] : vector<1x16xf32>, memref<?xf32>
  return
}

// Of offsets of 64 bits the lower half.
// CHECK-LABEL: llvm.func @find_long
// CHECK: %[[EIGHT:.*]] = llvm.mlir.constant(3 : i64) : i64
// CHECK: llvm.shl %{{.*}}, %[[EIGHT]] : i64
// CHECK: ld.global.b32
func.func @find_long(%offsets: memref<?xi64>, %slot: index, %count: index, %out: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %n = gdn_tile.find_sequence %slot in %offsets count %count chunk 64 : memref<?xi64>
  %x = arith.constant dense<1.0> : vector<1x16xf32>
  gdn_tile.store %x, %out[%n] dims [0] : vector<1x16xf32>, memref<?xf32>
  return
}
