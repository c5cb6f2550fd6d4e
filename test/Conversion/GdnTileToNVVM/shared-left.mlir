// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a | FileCheck %s

#shared = #gpu.address_space<workgroup>

// A warpgroup beside two that compute: 64 rows are its own. With few registers it does not hold the left operand of a
// product that is a whole stage of the ring of the right one: wgmma reads both by descriptors, in steps of k of 32 bytes.
// %part starts at a row of its own, and is loaded.

// CHECK-LABEL: llvm.func @shared_left
// CHECK: nvvm.setmaxregister decrease 64
// CHECK-NOT: ldmatrix
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred all, none; .reg .b64 d, l;
// CHECK-SAME: wgmma.fence.sync.aligned; add.s64 d, $33, 0; add.s64 l, $32, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, $1
// CHECK-SAME: $31}, l, d, none, 1, 1, 0, 0;
// CHECK-SAME: add.s64 d, $33, 2; add.s64 l, $32, 2;
// CHECK-SAME: $31}, l, d, all, 1, 1, 0, 0;
// CHECK-SAME: wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }", "=f
// CHECK-SAME: ,l,l,~{memory}"
// CHECK: ldmatrix
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred all, none; .reg .b64 d;
// CHECK-SAME: {$32, $33, $34, $35}, d, none
func.func @shared_left(%x: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %q = memref.alloc() : memref<2x64x64xbf16, #shared>
  %k = memref.alloc() : memref<2x128x64xbf16, #shared>
  %ring = gdn_tile.ring(%q, %k : memref<2x64x64xbf16, #shared>, memref<2x128x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(8) registers(208) {
    }
    gdn_tile.role "ahead" warps(4) registers(64) {
      scf.for %i = %c0 to %n step %c1 {
        gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
        %qt = gdn_tile.stage %q[%c0] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %kt = gdn_tile.stage %k[%c0] : memref<2x128x64xbf16, #shared> to memref<128x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        %whole = gdn_tile.load %qt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
        %p = gdn_tile.mma %whole, %qt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        gdn_tile.store %p, %o[%row, %c0] dims [0, 1] : vector<64x64xf32>, memref<?x64xf32>
        %part = gdn_tile.load %kt[%c64, %c0] dims [0, 1] : memref<128x64xbf16, #shared>, vector<64x64xbf16>
        %r = gdn_tile.mma %part, %qt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        gdn_tile.store %r, %o[%row, %c0] dims [0, 1] : vector<64x64xf32>, memref<?x64xf32>
        gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      }
    }
    gdn_tile.role "load" warps(4) registers(32) {
      scf.for %i = %c0 to %n step %c1 {
        %slot = gdn_tile.ring_acquire %ring[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %qt = gdn_tile.stage %q[%c0] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %kt = gdn_tile.stage %k[%c0] : memref<2x128x64xbf16, #shared> to memref<128x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        gdn_tile.copy_in %x[%row, %c0] dims [0, 1] to %qt signal(%slot) : memref<?x64xbf16> to memref<64x64xbf16, #shared>
        gdn_tile.copy_in %x[%row, %c0] dims [0, 1] to %kt signal(%slot) : memref<?x64xbf16> to memref<128x64xbf16, #shared>
        gdn_tile.ring_commit %slot
      }
    }
  }
  return
}
