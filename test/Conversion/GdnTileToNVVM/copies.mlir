// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>

// 16 rows of 128 bytes by 32 threads: four pieces of 16 bytes each; rows behind the bound are filled with zeros.
// CHECK-LABEL: llvm.func @async
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(16 : i32) : i32
// CHECK: %[[SIZE:.*]] = llvm.select %{{.*}}, %[[BYTES]], %[[ZERO]] : i1, i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[SIZE]]
// CHECK-COUNT-3: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-NOT: cp.async.shared
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 1
func.func @async(%x: memref<?x2x64xbf16>, %row: index, %rows: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %tile = memref.alloc() : memref<16x64xbf16, #shared>
  %t = gdn_tile.copy_in %x[%row, %c0, %c0] dims [0, 2] valid(%rows, %c64) to %tile : memref<?x2x64xbf16> to memref<16x64xbf16, #shared> -> !gdn_tile.token
  %g = gdn_tile.join %t
  gdn_tile.wait %g {pending = 1}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A stride of one element per token: pieces of 4 bytes; 2 bytes are too small for cp.async.
// CHECK-LABEL: llvm.func @narrow
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca
// CHECK: scf.if
// CHECK: llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: llvm.store {{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<3>
// CHECK: nvvm.cp.async.commit.group
func.func @narrow(%x: memref<?x3xf32>, %y: memref<?x3xbf16>, %row: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %wide = memref.alloc() : memref<16xf32, #shared>
  %half = memref.alloc() : memref<16xbf16, #shared>
  %t = gdn_tile.copy_in %x[%row, %c1] dims [0] to %wide : memref<?x3xf32> to memref<16xf32, #shared> -> !gdn_tile.token
  %u = gdn_tile.copy_in %y[%row, %c1] dims [0] to %half : memref<?x3xbf16> to memref<16xbf16, #shared> -> !gdn_tile.token
  %g = gdn_tile.join %t, %u
  gdn_tile.wait %g
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// bf16 to f32: 8 bytes in, 16 out.
// CHECK-LABEL: llvm.func @extend
// CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK-COUNT-4: llvm.fpext %{{.*}} : bf16 to f32
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
func.func @extend(%x: memref<?x32xbf16>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<4x32xf32, #shared>
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile : memref<?x32xbf16> to memref<4x32xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: llvm.func @out
// CHECK: %[[PIECE:.*]] = llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: "@$1 st.global.v4.b32 [$0], {$2, $3, $4, $5};"
func.func @out(%x: memref<?x32xbf16>, %rows: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %tile = memref.alloc() : memref<8x32xbf16, #shared>
  gdn_tile.copy_out %tile to %x[%c0, %c0] dims [0, 1] valid(%rows, %c32) : memref<8x32xbf16, #shared> to memref<?x32xbf16>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Many pieces per thread: a loop.
// CHECK-LABEL: llvm.func @loop
// CHECK: scf.for
// CHECK: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
func.func @loop(%x: memref<?x128xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<64x128xf32, #shared>
  %t = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile : memref<?x128xf32> to memref<64x128xf32, #shared> -> !gdn_tile.token
  %g = gdn_tile.join %t
  gdn_tile.wait %g
  return
}
