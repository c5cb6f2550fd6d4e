// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s --check-prefix=SM80

#shared = #gpu.address_space<workgroup>

// SM80-NOT: wgmma
// SM80-NOT: fence.proxy
// SM80: nvvm.mma.sync

// K-major operand of two panels: 8 k steps, the first starts the accumulator, k
// steps of 16 are 32 bytes in a panel, the second panel lies 64 rows of 128 bytes
// further. The wait of the asynchronous product ties its registers.

// CHECK-LABEL: llvm.func @k_major
// Writes of the block are made visible to wgmma.
// CHECK: nvvm.fence.proxy
// CHECK-SAME: async.shared
// CHECK-NEXT: nvvm.barrier
// Swizzle 128 bytes, 1024 bytes from one group of 8 rows to the next.
// CHECK-DAG: llvm.mlir.constant(4611686293305294848 : i64)
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred all, none;
// CHECK-SAME: wgmma.fence.sync.aligned; add.s64 d, $64, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, $1
// CHECK-SAME: {$32, $33, $34, $35}, d, none, 1, 1, 0;
// CHECK-SAME: add.s64 d, $64, 2;
// CHECK-SAME: {$36, $37, $38, $39}, d, all, 1, 1, 0;
// CHECK-SAME: add.s64 d, $64, 512;
// CHECK-SAME: wgmma.commit_group.sync.aligned; }", "=f
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f
// CHECK-SAME: ,0,1,2,
func.func @k_major(%out: memref<64x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x128xbf16, #shared>
  gdn_tile.barrier
  %a = gdn_tile.load %k[%c0, %c0] dims [0, 1] : memref<64x128xbf16, #shared>, vector<64x128xbf16>
  %p = gdn_tile.mma %a, %k {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> !gdn_tile.pending<vector<64x64xf32>>
  %r = gdn_tile.mma_wait %p : !gdn_tile.pending<vector<64x64xf32>>
  gdn_tile.store %r, %out[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// Only barriers in front of which a product's tile may have been written fence
// the proxies: not the one behind the store to %out, and none behind the last
// product. The bound on registers comes from the blocks that an SM shall hold.

// CHECK-LABEL: llvm.func @fences
// CHECK-SAME: nvvm.minctasm = 3 : i32
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.fence.proxy
// CHECK: nvvm.barrier
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.fence.proxy
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.fence.proxy
// CHECK: llvm.return
func.func @fences()
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator, blocks = 3>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %out = memref.alloc() : memref<64x64xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<64x64xbf16>
  gdn_tile.store %zero, %k[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
  gdn_tile.barrier
  %s = gdn_tile.mma %zero, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %r = arith.truncf %s : vector<64x64xf32> to vector<64x64xbf16>
  gdn_tile.store %r, %out[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
  gdn_tile.barrier
  gdn_tile.store %r, %k[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
  gdn_tile.barrier
  %t = gdn_tile.mma %zero, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %u = arith.truncf %t : vector<64x64xf32> to vector<64x64xbf16>
  gdn_tile.store %u, %k[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
  gdn_tile.barrier
  return
}

// In a loop the next iteration's product follows.

// CHECK-LABEL: llvm.func @fences_in_a_loop
// CHECK: wgmma
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier
func.func @fences_in_a_loop(%n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = gdn_tile.mma %zero, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %u = arith.truncf %t : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %u, %k[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.barrier
  }
  return
}

// MN-major operand of two panels: the leading dimension offset is the panel
// (8192 bytes), 16 k rows are 2048 bytes, and the accumulator continues. A
// synchronous product waits itself.

// CHECK-LABEL: llvm.func @mn_major
// CHECK-DAG: llvm.mlir.constant(4611686293338849280 : i64)
// CHECK: llvm.inline_asm
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {$0, $1
// CHECK-SAME: {$128, $129, $130, $131}, d, all, 1, 1, 1;
// CHECK-SAME: add.s64 d, $144, 128;
// CHECK-SAME: wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }", "=f
func.func @mn_major(%out: memref<64x128xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x128xf16, #shared>
  %u = memref.alloc() : memref<64x64xf16, #shared>
  %a = gdn_tile.load %u[%c0, %c0] dims [0, 1] : memref<64x64xf16, #shared>, vector<64x64xf16>
  %s = gdn_tile.load %out[%c0, %c0] dims [0, 1] : memref<64x128xf32>, vector<64x128xf32>
  %r = gdn_tile.mma %a, %k acc(%s : vector<64x128xf32>) : vector<64x64xf16>, memref<64x128xf16, #shared> -> vector<64x128xf32>
  gdn_tile.store %r, %out[%c0, %c0] dims [0, 1] : vector<64x128xf32>, memref<64x128xf32>
  return
}
