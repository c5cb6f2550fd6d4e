// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_90a -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// At most as many items as warps: a branch. Which warp has which item depends on
// the block. Each item has its own tile, 256 bytes from one to the next, in the
// bytes of the block's tile whose life has ended; its barrier is one of lanes, and
// the owners of equal elements are lanes.
// CHECK-LABEL: llvm.func @branch
// CHECK-SAME: gdn.shared_bytes = 1024 : i64
// CHECK: nvvm.barrier
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[WARP:.*]] = llvm.lshr %[[TID]], %{{.*}} : i32
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[TURN:.*]] = llvm.lshr %[[BLOCK]]
// CHECK: %[[SUM:.*]] = llvm.add %[[WARP]], %[[TURN]]
// CHECK: %[[FIRST:.*]] = llvm.and %[[SUM]]
// CHECK: %[[ITEM:.*]] = llvm.zext %[[FIRST]] : i32 to i64
// CHECK: %[[MINE:.*]] = llvm.icmp "slt" %[[ITEM]]
// CHECK: scf.if %[[MINE]]
// CHECK-NOT: scf.for
// CHECK: %[[SMEM:.*]] = llvm.mlir.addressof @smem
// CHECK: %[[NUMBER:.*]] = llvm.trunc %[[ITEM]] : i64 to i32
// CHECK: %[[OWN:.*]] = llvm.shl %[[NUMBER]], %{{.*}} : i32
// CHECK: llvm.getelementptr %[[SMEM]][%[[OWN]]]
// The replicated lanes: bits 2 to 4, none of the warp's.
// CHECK: llvm.mlir.constant(28 : i32)
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.barrier
func.func @branch(%x: memref<?x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %block = memref.alloc() : memref<8x32xf32, #shared>
  gdn_tile.barrier
  gdn_tile.free %block : memref<8x32xf32, #shared>
  gdn_tile.each_warp (%i) in (%c3) {
    %g = memref.alloc() : memref<64xf32, #shared>
    %v = gdn_tile.load %x[%i, %c0] dims [1] : memref<?x64xf32>, vector<1x64xf32>
    gdn_tile.store %v, %g[%c0] dims [0] : vector<1x64xf32>, memref<64xf32, #shared>
    gdn_tile.barrier
    gdn_tile.cumsum %g : memref<64xf32, #shared>
    gdn_tile.free %g : memref<64xf32, #shared>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// More items, or an unknown number of them: a loop in steps of the warps.
// CHECK-LABEL: llvm.func @loop
// CHECK: %[[WARPS:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[WARPS]]
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> vector<2xi32>
func.func @loop(%x: memref<?x16xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%i) in (%n) {
    %v = gdn_tile.load %x[%i, %c0] dims [0, 1] : memref<?x16xf32>, vector<16x16xf32>
    gdn_tile.store %v, %x[%i, %c0] dims [0, 1] : vector<16x16xf32>, memref<?x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two column tiles: tf32 in two steps of k, bf16 in three products of parts.
// CHECK-LABEL: llvm.func @products
// CHECK-COUNT-4: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK-COUNT-6: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK-COUNT-12: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK-NOT: nvvm.mma.sync
func.func @products(%x: memref<?x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  gdn_tile.each_warp (%i) in (%c4) {
    %v = gdn_tile.load %x[%i, %c0] dims [0, 1] : memref<?x16xf32>, vector<16x16xf32>
    %a = gdn_tile.warp_mma %v, %v tf32 : vector<16x16xf32> -> vector<16x16xf32>
    %b = gdn_tile.warp_mma %a, %v acc(%v : vector<16x16xf32>) bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
    %c = gdn_tile.warp_mma %b, %v tf32x3 : vector<16x16xf32> -> vector<16x16xf32>
    gdn_tile.store %c, %x[%i, %c0] dims [0, 1] : vector<16x16xf32>, memref<?x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Eight halves of blocks, four lanes each: rows in pieces of four, the columns c by 0 + 1 + ... + 7 products, the
// columns c + 4 by 0 + ... + 3; then two columns of results. What is below the halves: two products of three parts for
// each block, in pairs of blocks, of eight columns.
// CHECK-LABEL: llvm.func @blocks
// CHECK: scf.if
// CHECK-NOT: scf.if
// CHECK-COUNT-28: llvm.intr.fma
// CHECK-COUNT-6: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-COUNT-4: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-12: llvm.nvvm.mma.m16n8k8.row.col.bf16
// CHECK-NOT: mma
// CHECK-COUNT-2: llvm.store {{.*}} : vector<2xi32>, !llvm.ptr<3>
// CHECK-COUNT-12: llvm.nvvm.mma.m16n8k8.row.col.bf16
// CHECK-NOT: mma
// CHECK-COUNT-2: llvm.store {{.*}} : vector<2xi32>, !llvm.ptr<3>
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: llvm.store
func.func @blocks() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<65x72xf32, #shared>
  %s = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.each_warp (%i) in (%c1) {
    %d = memref.alloc() : memref<768xf32, #shared>
    %x:8 = gdn_tile.block_inverse %m, %s in %d bf16x3 : memref<65x72xf32, #shared>, memref<64xf32, #shared>, memref<768xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Operands of TF32: a product each for what takes three of parts. Products with columns above the diagonal are left out:
// three of four with an inverse as right operand.
// CHECK-LABEL: llvm.func @blocks_of_tf32
// CHECK-COUNT-4: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<tf32>, {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK-COUNT-3: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<tf32>, {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 8>
// CHECK-NOT: mma
func.func @blocks_of_tf32() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<32x40xf32, #shared>
  %s = memref.alloc() : memref<32xf32, #shared>
  gdn_tile.each_warp (%i) in (%c1) {
    %d = memref.alloc() : memref<384xf32, #shared>
    %x:4 = gdn_tile.block_inverse %m, %s in %d tf32 : memref<32x40xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
    %y = gdn_tile.warp_mma %x#0, %x#3 tf32 : vector<16x16xf32> -> vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A single block: only eight lanes store columns, and all take part in the products. A product of the inverse as right
// operand knows of the zeros above the diagonal.
// CHECK-LABEL: llvm.func @single_block
// CHECK: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: %[[OWN:.*]] = llvm.icmp "slt" %{{.*}}, %[[EIGHT]]
// CHECK-COUNT-4: "@$1 st.shared.v4.b32 {{.*}} %[[OWN]],
// CHECK-COUNT-6: llvm.nvvm.mma.m16n8k8.row.col.bf16
// CHECK-COUNT-3: llvm.nvvm.mma.m16n8k8.row.col.bf16
// CHECK-COUNT-3: nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT: mma
func.func @single_block() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<16x16xf32, #shared>
  %s = memref.alloc() : memref<16xf32, #shared>
  gdn_tile.each_warp (%i) in (%c1) {
    %d = memref.alloc() : memref<16x16xf32, #shared>
    %x:2 = gdn_tile.block_inverse %m, %s in %d bf16x3 : memref<16x16xf32, #shared>, memref<16xf32, #shared>, memref<16x16xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>
    %y = gdn_tile.warp_mma %x#0, %x#1 bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A vote of the lanes on what each of them holds; for columns the ballot, and in it the lanes that hold the
// same column: every fourth one from the own number modulo 4 on.
// CHECK-LABEL: llvm.func @votes
// CHECK: %[[OWN:.*]] = llvm.call_intrinsic "llvm.nvvm.vote.any.sync"(%{{.*}}, %{{.*}}) : {{.*}} -> i1
// CHECK: scf.if %[[OWN]]
// CHECK: %[[EVERY:.*]] = llvm.mlir.constant(286331153 : i32)
// CHECK: %[[LANES:.*]] = llvm.shl %[[EVERY]]
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.vote.ballot.sync"
// CHECK-NOT: vote
func.func @votes(%x: memref<?x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %limits = arith.constant dense<1.0> : vector<16x16xf32>
  %ones = arith.constant dense<1.0> : vector<1x16xf32>
  %zeros = arith.constant dense<0.0> : vector<1x16xf32>
  gdn_tile.each_warp (%i) in (%c4) {
    %v = gdn_tile.load %x[%i, %c0] dims [0, 1] : memref<?x16xf32>, vector<16x16xf32>
    %c = arith.cmpf ogt, %v, %limits : vector<16x16xf32>
    %any = gdn_tile.any %c : vector<16x16xi1> to i1
    scf.if %any {
      %columns = gdn_tile.any %c : vector<16x16xi1> to vector<1x16xi1>
      %r = arith.select %columns, %ones, %zeros : vector<1x16xi1>, vector<1x16xf32>
      gdn_tile.store %r, %x[%i, %c0] dims [1] : vector<1x16xf32>, memref<?x16xf32>
    }
  }
  return
}

// -----

// Item w is warp w's where it takes rows of a fragment of all warps: these registers, here of columns 16 to 31, 64 bytes
// behind the first. Operands of 16 bits enter as they are, two m16n8k16 for a product: of the rows 0 to 7 and 8 to 15 of
// the right one, k from 0 and from 8.
// CHECK-LABEL: llvm.func @own_rows
// CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[64]
// CHECK: %[[LOADED:.*]] = llvm.load %[[AT]]
// CHECK: %[[WORD:.*]] = llvm.extractelement %[[LOADED]]
// CHECK: %[[X:.*]] = llvm.bitcast %[[WORD]] : i32 to f32
// CHECK-NOT: nvvm.read.ptx.sreg.ctaid
// CHECK: scf.if
// CHECK: llvm.insertelement %[[X]]
// CHECK: llvm.fptrunc
// CHECK: nvvm.mma.sync A[%[[A0:.*]], %[[A1:.*]], %[[A2:.*]], %[[A3:.*]]] B[%[[A0]], %[[A2]]] C[{{.*}}] {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]] B[%[[A1]], %[[A3]]]
// CHECK-NOT: nvvm.mma.sync
func.func @own_rows(%o: memref<64x32xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %x = gdn_tile.load %o[%c0, %c0] dims [0, 1] : memref<64x32xf32>, vector<64x32xf32>
  gdn_tile.each_warp (%w) in (%c4) {
    %own = gdn_tile.own_rows %x[16] : vector<64x32xf32> to vector<16x16xf32>
    %a = arith.truncf %own : vector<16x16xf32> to vector<16x16xbf16>
    %p = gdn_tile.warp_mma %a, %a exact : vector<16x16xbf16> -> vector<16x16xf32>
    %row = arith.muli %w, %c16 : index
    gdn_tile.store %p, %o[%row, %c0] dims [0, 1] : vector<16x16xf32>, memref<64x32xf32>
  }
  return
}
