// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 -canonicalize -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// A lower triangular matrix of 64 columns: ten blocks of 16x16, 32 rows of 8 each, but for 8 rows of those on the diagonal, in
// memory, four panels of 16 columns, 128 rows, in shared memory. By threads pieces of 16 bytes: row r of a panel p is read where
// r >= 32 p + 8, and is row r + 16 p (7 - p) - 8 (p + 1) of the blocks; others are zero.

// CHECK-LABEL: llvm.func @by_threads
// CHECK-DAG: %[[SEVEN:.*]] = llvm.mlir.constant(7 : i32)
// CHECK: %[[PANEL:.*]] = llvm.lshr %[[ROW:.*]], %{{.*}} : i32
// CHECK: %[[IN:.*]] = llvm.and %[[ROW]], %{{.*}} : i32
// CHECK: %[[BLOCK:.*]] = llvm.shl %[[PANEL]], %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = llvm.add %[[BLOCK]], %[[EIGHT:.*]] : i32
// CHECK: %[[IS:.*]] = llvm.icmp "uge" %[[IN]], %[[FIRST]] : i32
// CHECK: llvm.select %[[IS]]
// CHECK: %[[BYTE:.*]] = llvm.shl %[[ROW]], %{{.*}} : i32
// CHECK: %[[OWN:.*]] = llvm.getelementptr %{{.*}}[%[[BYTE]]]
// CHECK: %[[REST:.*]] = llvm.sub %[[SEVEN]], %[[PANEL]] : i32
// CHECK: llvm.mul %[[PANEL]], %[[REST]] : i32
// CHECK: llvm.sub
// CHECK: llvm.intr.smax
// CHECK: nvvm.cp.async.shared.global %[[OWN]], {{.*}}, 16, cache = cg
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[OWN]][512]
// CHECK: %[[PANEL1:.*]] = llvm.getelementptr %[[OWN]][2048]
// A k step of 16 and 16 columns are 32 rows of 16 bytes, one for each lane, read transposed: as the lane's first piece was copied,
// and from byte 512 on the next 16 columns, from 2048 on the next panel.
// CHECK: nvvm.ldmatrix %[[OWN]] {{.*}} layout = #nvvm.mma_layout<col>
// CHECK: nvvm.mma.sync
// CHECK: nvvm.ldmatrix %[[NEXT]] {
// CHECK: nvvm.ldmatrix {{.*}}
// CHECK: nvvm.ldmatrix {{.*}}
// CHECK: nvvm.ldmatrix %[[PANEL1]] {
func.func @by_threads(%x: memref<?x288x8xbf16>, %s: memref<16x64xf32>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<512x8xbf16, #shared>
  %token = gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x288x8xbf16> to memref<512x8xbf16, #shared> -> !gdn_tile.token
  %all = gdn_tile.join %token
  gdn_tile.wait %all
  gdn_tile.barrier
  %a = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<16x64xf32>, vector<16x64xf32>
  %a16 = arith.truncf %a : vector<16x64xf32> to vector<16x64xbf16>
  %r = gdn_tile.mma %a16, %t {transpose_b} : vector<16x64xbf16>, memref<512x8xbf16, #shared> -> vector<16x64xf32>
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<16x64xf32>, memref<16x64xf32>
  return
}

// A transposed block: word p of lane l at byte 128 (p xor 1) + 4 l behind row 64, a part being 4608 bytes. Of one on the diagonal word
// 1 is left out and the others are 128 bytes in front of that.

// CHECK-LABEL: llvm.func @block
// CHECK-DAG: %[[PART:.*]] = llvm.mlir.constant(4608 : i64)
// CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.constant(1024 : i64)
// CHECK-DAG: %[[SIZE:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: %[[OFFSET:.*]] = llvm.mul %{{.*}}, %[[PART]] : i64
// CHECK-NEXT: llvm.add %[[OFFSET]], %[[FIRST]]
// CHECK: %[[BYTE:.*]] = llvm.add %{{.*}}, %{{.*}} : i64
// CHECK-NEXT: %[[BLOCK:.*]] = llvm.getelementptr %{{.*}}[%[[BYTE]]]
// CHECK: %[[LANE:.*]] = llvm.and
// CHECK: %[[WORD:.*]] = llvm.shl %[[LANE]], %[[SIZE]]
// CHECK: %[[OWN:.*]] = llvm.getelementptr %[[BLOCK]][%[[WORD]]]
// CHECK-NEXT: %[[P1:.*]] = llvm.bitcast %[[PAIR1:.*]] : vector<2xbf16> to i32
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[OWN]], %[[P1]]
// CHECK-NEXT: %[[AT1:.*]] = llvm.getelementptr %[[OWN]][128]
// CHECK-NEXT: %[[P0:.*]] = llvm.bitcast %[[PAIR0:.*]] : vector<2xbf16> to i32
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[AT1]], %[[P0]]
// CHECK-NEXT: %[[AT2:.*]] = llvm.getelementptr %[[OWN]][256]
// CHECK-NEXT: %[[P3:.*]] = llvm.bitcast %[[PAIR3:.*]] :
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[AT2]], %[[P3]]
// CHECK-NEXT: %[[AT3:.*]] = llvm.getelementptr %[[OWN]][384]
// CHECK-NEXT: %[[P2:.*]] = llvm.bitcast %[[PAIR2:.*]] :
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[AT3]], %[[P2]]
// CHECK: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[DIAGONAL:.*]], %[[P0]]
// CHECK-NEXT: %[[AT1:.*]] = llvm.getelementptr %[[DIAGONAL]][128]
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[AT1]], %[[P3]]
// CHECK-NEXT: %[[AT2:.*]] = llvm.getelementptr %[[DIAGONAL]][256]
// CHECK-NEXT: llvm.inline_asm {{.*}} "st.global.cs.b32 [$0], $1;", "l,r" %[[AT2]], %[[P2]]
// CHECK-NOT: st.global
func.func @block(%x: memref<?x288x8xbf16>, %s: memref<16x16xf32>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gdn_tile.each_warp (%item) in (%c1) {
    %a = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<16x16xf32>, vector<16x16xf32>
    %z = arith.truncf %a : vector<16x16xf32> to vector<16x16xbf16>
    gdn_tile.store_block %z, %x[%i, %c64, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    gdn_tile.store_block %z, %x[%i, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}

// -----

// What is stored is loaded by the same lanes; on the diagonal the matrix that is not there is zero.
// CHECK-LABEL: llvm.func @again
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-COUNT-4: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: st.global.cs.b32
// CHECK-COUNT-3: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: llvm.load
// CHECK-COUNT-3: st.global.cs.b32
// CHECK: st.global.cs.b32 [$0], $1;", "l,r" %{{.*}}, %[[ZERO]] :
// CHECK-COUNT-3: st.global.cs.b32
// CHECK-NOT: st.global
func.func @again(%x: memref<?x288x8xbf16>, %y: memref<?x288x8xbf16>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gdn_tile.each_warp (%item) in (%c1) {
    %a = gdn_tile.load_block %x[%i, %c64, %c0] : memref<?x288x8xbf16> -> vector<16x16xbf16>
    gdn_tile.store_block %a, %y[%i, %c64, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    %b = gdn_tile.load_block %x[%i, %c0, %c0] {diagonal} : memref<?x288x8xbf16> -> vector<16x16xbf16>
    gdn_tile.store_block %b, %y[%i, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x288x8xbf16>
    gdn_tile.store_block %b, %y[%i, %c64, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}
