// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a -cse | FileCheck %s

// Teams of a role share its program. Each has tiles of its own, here 256 bytes, and a named barrier: 2 and 3 behind that
// of the first role, so that of the role behind is 4. Warps and threads count from the first of their team. With few
// registers the number of the thread is read in each iteration and for each region of single warps: LLVM would hoist
// what follows from it.
// CHECK-LABEL: llvm.func @teams
// CHECK-SAME: gdn.shared_bytes = 512 : i64
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK: nvvm.setmaxregister decrease 120
// CHECK: %[[FIRST:.*]] = llvm.mlir.constant(-4 : i32)
// CHECK: %[[WARP:.*]] = llvm.add %{{.*}}, %[[FIRST]]
// CHECK-NEXT: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-NEXT: %[[TEAM:.*]] = llvm.lshr %[[WARP]], %[[TWO]]
// CHECK-NEXT: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
// CHECK-NEXT: %[[OFFSET:.*]] = llvm.shl %[[TEAM]], %[[EIGHT]]
// CHECK: %[[TILE:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]]
// CHECK: llvm.zext %[[TEAM]]
// CHECK: scf.for
// CHECK-NOT: nvvm.read.ptx.sreg.tid.x
// CHECK: %[[ID:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.u32 $0, %tid.x;"
// CHECK: %[[BACK:.*]] = llvm.mlir.constant(-128 : i32)
// CHECK: %[[IN_ROLE:.*]] = llvm.add %[[ID]], %[[BACK]]
// CHECK: %[[MASK:.*]] = llvm.mlir.constant(127 : i32)
// CHECK: llvm.and %[[IN_ROLE]], %[[MASK]]
// CHECK: %[[OWN_WARP:.*]] = llvm.lshr %[[ID]]
// CHECK: %[[OWN:.*]] = llvm.add %[[OWN_WARP]], %[[FIRST]]
// CHECK: %[[OWN_TEAM:.*]] = llvm.lshr %[[OWN]], %[[TWO]]
// CHECK: %[[BARRIER:.*]] = llvm.add %[[TWO]], %[[OWN_TEAM]]
// CHECK: %[[THREADS:.*]] = llvm.mlir.constant(128 : i32)
// CHECK: nvvm.barrier id = %[[BARRIER]] number_of_threads = %[[THREADS]]
// CHECK-NEXT: %[[AGAIN:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.u32 $0, %tid.x;"
// CHECK-NEXT: %[[SECOND:.*]] = llvm.lshr %[[AGAIN]]
// CHECK-NEXT: %[[IN_TEAM:.*]] = llvm.add %[[SECOND]], %[[FIRST]]
// CHECK-NEXT: %[[THREE:.*]] = llvm.mlir.constant(3 : i32)
// CHECK-NEXT: llvm.and %[[IN_TEAM]], %[[THREE]]
// CHECK-NOT: nvvm.read.ptx.sreg.tid.x
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: nvvm.barrier id = %[[FOUR]]
#shared = #gpu.address_space<workgroup>
func.func @teams(%o: memref<?x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(240) {
    }
    gdn_tile.role "ahead" warps(8) teams(2) registers(120) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %t = memref.alloc() : memref<64xf32, #shared>
      %team = gdn_tile.team
      scf.for %i = %team to %n step %c2 {
        gdn_tile.copy_in %o[%i, %c0] dims [1] to %t : memref<?x64xf32> to memref<64xf32, #shared>
        gdn_tile.barrier
        gdn_tile.each_warp (%w) in (%c4) {
          %y = gdn_tile.load %t[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
          gdn_tile.store %y, %o[%w, %c0] dims [1] : vector<1x64xf32>, memref<?x64xf32>
        }
      }
    }
    gdn_tile.role "load" warps(4) registers(24) {
      gdn_tile.barrier
    }
  }
  return
}
