// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 -canonicalize -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// A lower triangular matrix of 64 columns: ten blocks of 16x16 in memory, four panels of 16 columns in shared memory. By threads
// pieces of 16 bytes: row r of a panel p is read where r >= 16 p, and is row r + 8 p (7 - p) of the blocks; others are zero.
// As they lie there: no swizzle of addresses on either side.

// CHECK-LABEL: llvm.func @by_threads
// CHECK-DAG: %[[SEVEN:.*]] = llvm.mlir.constant(7 : i32)
// CHECK: %[[ROW:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: %[[PANEL:.*]] = llvm.lshr %[[ROW]], %{{.*}} : i32
// CHECK: %[[IN:.*]] = llvm.and %[[ROW]], %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = llvm.shl %[[PANEL]], %{{.*}} : i32
// CHECK: %[[IS:.*]] = llvm.icmp "uge" %[[IN]], %[[FIRST]] : i32
// CHECK: llvm.select %[[IS]]
// CHECK: %[[REST:.*]] = llvm.sub %[[SEVEN]], %[[PANEL]] : i32
// CHECK: llvm.mul %[[PANEL]], %[[REST]] : i32
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// Each piece of a k step of 16 is read from a panel: rows 0 and 16 of the first, rows 64 and 80 of the second.
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
func.func @by_threads(%x: memref<?x160x16xbf16>, %s: memref<16x64xf32>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<256x16xbf16, #shared>
  %token = gdn_tile.copy_in %x[%i, %c0, %c0] dims [1, 2] to %t {lower} : memref<?x160x16xbf16> to memref<256x16xbf16, #shared> -> !gdn_tile.token
  %all = gdn_tile.join %token
  gdn_tile.wait %all
  gdn_tile.barrier
  %a = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<16x64xf32>, vector<16x64xf32>
  %a16 = arith.truncf %a : vector<16x64xf32> to vector<16x64xbf16>
  %r = gdn_tile.mma %a16, %t {transpose_b} : vector<16x64xbf16>, memref<256x16xbf16, #shared> -> vector<16x64xf32>
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<16x64xf32>, memref<16x64xf32>
  return
}

// Raw: bytes 16 l of both sides by lane l.

// CHECK-LABEL: llvm.func @raw
// CHECK: %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-NOT: llvm.xor
// CHECK: llvm.return
func.func @raw(%x: memref<?x160x16xbf16>, %s: memref<16x16xf32>, %i: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %t = memref.alloc() : memref<16x16xbf16, #shared>
  gdn_tile.barrier
  gdn_tile.copy_out %t to %x[%i, %c32, %c0] dims [1, 2] {raw} : memref<16x16xbf16, #shared> to memref<?x160x16xbf16>
  return
}
