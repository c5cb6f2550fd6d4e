// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_90a -cse | FileCheck %s

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>

// 64 rows of two panels by one instruction where all rows are valid; else by the threads, with zeros.
// CHECK-LABEL: llvm.func @in
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %[[ROW:[^ ]*]]: i64, %[[HEAD:[^ ]*]]: i64, %[[ROWS:[^ ]*]]: i64)
// The tile, and a barrier of 8 bytes.
// CHECK-SAME: gdn.shared_bytes = 16392 : i64
// CHECK: %[[C63:.*]] = llvm.mlir.constant(63 : i64) : i64
// CHECK: %[[WHOLE:.*]] = llvm.icmp "slt" %[[C63]], %[[ROWS]] : i64
// CHECK: scf.if %[[WHOLE]] {
// Columns from 0, rows, panels from 0, heads.
// CHECK-DAG: %[[COL:.*]] = llvm.trunc %{{.*}} : i64 to i32
// CHECK-DAG: %[[R:.*]] = llvm.trunc %[[ROW]] : i64 to i32
// CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[H:.*]] = llvm.trunc %[[HEAD]] : i64 to i32
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %[[C0]] : i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK: nvvm.mbarrier.init %[[BARRIER:.*]], %[[C1]] : !llvm.ptr<3>, i32
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(16384 : i32) : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx %[[BARRIER]], %[[BYTES]] : !llvm.ptr<3>, i32
// CHECK: %[[TILE:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr<7>
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TILE]], %[[MAP]], %[[BARRIER]], box[%[[COL]], %[[R]], %[[C0]], %[[H]]] : !llvm.ptr<7>, !llvm.ptr
// CHECK: }
// CHECK: nvvm.barrier
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[BARRIER]] : !llvm.ptr<3> to i32
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;{{.*}} %[[ADDRESS]], %[[C0]] :
// CHECK: nvvm.barrier
// CHECK: scf.if %[[FIRST]] {
// CHECK: nvvm.mbarrier.inval %[[BARRIER]]
// CHECK: } else {
// CHECK-NOT: bulk
// CHECK: scf.for
// CHECK: ld.global.v4.b32
// CHECK: llvm.return
func.func @in(%x: memref<?x16x128xbf16>, %map: !map, %row: index, %head: index, %rows: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %tile = memref.alloc() : memref<64x128xbf16, #shared>
  gdn_tile.copy_in %x[%row, %head, %c0] dims [0, 2] valid(%rows, %c128) to %tile map(%map : !map) : memref<?x16x128xbf16> to memref<64x128xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x4x2x64x32xf32>, dims = [3, 4], box = [64, 32]>

// No bounds: no branch. One panel; slots, heads and parts are one dimension.
// CHECK-LABEL: llvm.func @out
// CHECK-SAME: %[[MAP:[^ ]*]]: !llvm.ptr {{{.*}}}, %[[SLOT:[^ ]*]]: i64, %[[HEAD:[^ ]*]]: i64)
// CHECK-NOT: scf.if
// CHECK-NOT: llvm.load
// CHECK: %[[A:.*]] = llvm.shl %[[SLOT]], %{{.*}} : i64
// CHECK: %[[B:.*]] = llvm.add %[[A]], %[[HEAD]] : i64
// CHECK: %[[C:.*]] = llvm.shl %[[B]], %{{.*}} : i64
// CHECK: %[[D:.*]] = llvm.add %[[C]], %{{.*}} : i64
// CHECK: %[[LINEAR:.*]] = llvm.trunc %[[D]] : i64 to i32
// CHECK: scf.if %{{.*}} {
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.*}}, box[%{{.*}}, %{{.*}}, %[[LINEAR]]] : !llvm.ptr, <3>
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NOT: scf.if
// CHECK: llvm.return
func.func @out(%x: memref<?x4x2x64x32xf32>, %map: !map, %slot: index, %head: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tile = memref.alloc() : memref<64x32xf32, #shared>
  gdn_tile.copy_out %tile to %x[%slot, %head, %c1, %c0, %c0] dims [3, 4] map(%map : !map) : memref<64x32xf32, #shared> to memref<?x4x2x64x32xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
!map = !gdn_tile.tensor_map<memref<?x64xbf16>, dims = [0, 1], box = [64, 64]>

// A slot expects the bytes of what is whole; else the threads copy, see it landed and fence before they arrive.
// One lane of a warp arrives, and products need no fence of their own.
// CHECK-LABEL: llvm.func @ring
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.setmaxregister
// CHECK-NOT: nvvm.fence.proxy
// The load role: its thread 0 is thread 128.
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: scf.if %{{.*}} {
// CHECK: %[[C128:.*]] = llvm.mlir.constant(-128 : i32) : i32
// CHECK: %[[ID:.*]] = llvm.add %{{.*}}, %[[C128]] : i32
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[ID]], %{{.*}} : i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: nvvm.mbarrier.expect_tx %[[FULL:.*]], %{{.*}} : !llvm.ptr<3>, i32
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %[[FULL]], box[
// CHECK: } else {
// CHECK: scf.for
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.fence.proxy
// A row of 256 bytes needs no map.
// CHECK: nvvm.mbarrier.expect_tx %[[FULL]], %{{.*}} : !llvm.ptr<3>, i32
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %[[FULL]], %{{.*}} : !llvm.ptr<7>, <1>
// CHECK-NOT: noinc
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive.shared::cta.b64
// The store role.
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: } else {
// CHECK: scf.for
// CHECK: st.global.v4.b32
func.func @ring(%x: memref<?x64xbf16>, %g: memref<?x64xf32>, %map: !map, %n: index, %rows: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %in = memref.alloc() : memref<2x64x64xbf16, #shared>
  %gates = memref.alloc() : memref<2x64xf32, #shared>
  %out = memref.alloc() : memref<2x64x64xbf16, #shared>
  %full = gdn_tile.ring(%in, %gates : memref<2x64x64xbf16, #shared>, memref<2x64xf32, #shared>) producers(2) consumers(4) : !gdn_tile.ring<2>
  %done = gdn_tile.ring(%out : memref<2x64x64xbf16, #shared>) producers(4) consumers(2) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(240) {
      %a = arith.constant dense<1.0> : vector<64x64xbf16>
      scf.for %i = %c0 to %n step %c1 {
        %s = arith.remui %i, %c2 : index
        gdn_tile.ring_wait %full[%i] : !gdn_tile.ring<2>
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %p = gdn_tile.mma %a, %tile : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %v = arith.truncf %p : vector<64x64xf32> to vector<64x64xbf16>
        gdn_tile.ring_release %full[%i] : !gdn_tile.ring<2>
        %slot = gdn_tile.ring_acquire %done[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %to = gdn_tile.stage %out[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        gdn_tile.store %v, %to[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
        gdn_tile.ring_commit %slot
      }
    }
    gdn_tile.role "load" warps(2) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        %s = arith.remui %i, %c2 : index
        %slot = gdn_tile.ring_acquire %full[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %tile = gdn_tile.stage %in[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %gate = gdn_tile.stage %gates[%s] : memref<2x64xf32, #shared> to memref<64xf32, #shared>
        %row = arith.muli %i, %c64 : index
        gdn_tile.copy_in %x[%row, %c0] dims [0, 1] valid(%rows, %c64) to %tile map(%map : !map) signal(%slot) : memref<?x64xbf16> to memref<64x64xbf16, #shared>
        gdn_tile.copy_in %g[%i, %c0] dims [1] to %gate signal(%slot) : memref<?x64xf32> to memref<64xf32, #shared>
        gdn_tile.ring_commit %slot
      }
    }
    gdn_tile.role "store" warps(2) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        %s = arith.remui %i, %c2 : index
        gdn_tile.ring_wait %done[%i] : !gdn_tile.ring<2>
        %tile = gdn_tile.stage %out[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        gdn_tile.copy_out %tile to %x[%row, %c0] dims [0, 1] valid(%rows, %c64) map(%map : !map) : memref<64x64xbf16, #shared> to memref<?x64xbf16>
        gdn_tile.ring_release %done[%i] : !gdn_tile.ring<2>
      }
    }
  }
  return
}
