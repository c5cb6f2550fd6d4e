// RUN: gdn-opt %s --convert-gdn-tile-to-nvvm="target=sm_90a" --split-input-file | FileCheck %s

#shared = #gpu.address_space<workgroup>

// Three roles, of which two share warpgroups, and two rings.

// CHECK-LABEL: llvm.func @pipeline
// CHECK-SAME: gdn.shared_bytes = 41040 : i64
// CHECK-SAME: nvvm.reqntid = array<i32: 384>
func.func @pipeline(%x: memref<?x64xbf16>, %o: memref<?x64xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %in = memref.alloc() : memref<3x64x64xbf16, #shared>
  %out = memref.alloc() : memref<2x64x64xbf16, #shared>
  // Behind the tiles: full and empty barriers of three stages. Each of the 64
  // threads that copy arrives, but of the warps that read only one lane.
  // CHECK: %[[RING:.*]] = llvm.getelementptr %{{.*}}[40960]
  // CHECK: scf.if
  // CHECK: %[[COPIERS:.*]] = llvm.mlir.constant(64 : i32)
  // CHECK: nvvm.mbarrier.init %[[RING]], %[[COPIERS]]
  // CHECK: %[[EMPTY:.*]] = llvm.getelementptr %[[RING]][24]
  // CHECK: %[[READERS:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: nvvm.mbarrier.init %[[EMPTY]], %[[READERS]]
  // CHECK-COUNT-4: nvvm.mbarrier.init
  // The block meets once, behind the last of several rings.
  // CHECK-NOT: nvvm.mbarrier.init
  // CHECK-NOT: nvvm.fence.mbarrier.init
  // CHECK-NOT: nvvm.barrier
  %full = gdn_tile.ring(%in : memref<3x64x64xbf16, #shared>) producers(2) consumers(4) : !gdn_tile.ring<3>
  // Warps that store tell it once each.
  // CHECK: scf.if
  // CHECK: %[[WRITERS:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: nvvm.mbarrier.init %{{.*}}, %[[WRITERS]]
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: nvvm.barrier
  // CHECK-NOT: nvvm.barrier
  %done = gdn_tile.ring(%out : memref<2x64x64xbf16, #shared>) producers(4) consumers(6) : !gdn_tile.ring<2>
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx
  // CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: %[[MATH:.*]] = llvm.icmp "slt" %[[WARP]], %[[FOUR]]
  // CHECK: scf.if %[[MATH]] {
  gdn_tile.roles {
    // CHECK-NEXT: nvvm.setmaxregister increase 240
    gdn_tile.role "math" warps(4) registers(240) {
      // CHECK: scf.for
      scf.for %i = %c0 to %n step %c1 {
        // Stage i mod 3, whose barrier completes for the (i / 3)-th time.
        // CHECK: %[[I:.*]] = llvm.trunc %{{.*}} : i64 to i32
        // CHECK: %[[N:.*]] = llvm.mlir.constant(3 : i32)
        // CHECK: %[[STAGE:.*]] = llvm.urem %[[I]], %[[N]]
        // CHECK: %[[ROUND:.*]] = llvm.udiv %[[I]], %[[N]]
        // CHECK: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
        // CHECK: %[[PARITY:.*]] = llvm.and %[[ROUND]], %[[ONE]]
        // CHECK: mbarrier.try_wait.parity.shared::cta.b64
        gdn_tile.ring_wait %full[%i] : !gdn_tile.ring<3>
        // No product reads the tiles.
        // CHECK-NOT: nvvm.fence.proxy
        %s = arith.remui %i, %c3 : index
        %tile = gdn_tile.stage %in[%s] : memref<3x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %v = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
        // CHECK: nvvm.bar.warp.sync
        // CHECK: mbarrier.arrive.shared::cta.b64
        gdn_tile.ring_release %full[%i] : !gdn_tile.ring<3>
        // All stages start free: the parity of the round before.
        // CHECK: llvm.xor
        // CHECK: mbarrier.try_wait.parity.shared::cta.b64
        %slot = gdn_tile.ring_acquire %done[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %t = arith.remui %i, %c2 : index
        %to = gdn_tile.stage %out[%t] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        // CHECK-COUNT-4: nvvm.stmatrix
        gdn_tile.store %v, %to[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
        // A barrier of the role: number 1, 128 threads.
        // CHECK: %[[ID:.*]] = llvm.mlir.constant(1 : i32)
        // CHECK: %[[THREADS:.*]] = llvm.mlir.constant(128 : i32)
        // CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
        gdn_tile.barrier
        // CHECK: mbarrier.arrive.shared::cta.b64
        gdn_tile.ring_commit %slot
      }
    }
    // CHECK: } else {
    // CHECK-NEXT: nvvm.setmaxregister decrease 24
    // CHECK: %[[SIX:.*]] = llvm.mlir.constant(6 : i32)
    // CHECK: %[[LOAD:.*]] = llvm.icmp "slt" %[[WARP]], %[[SIX]]
    // CHECK: scf.if %[[LOAD]] {
    gdn_tile.role "load" warps(2) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        // CHECK: mbarrier.try_wait.parity.shared::cta.b64
        %slot = gdn_tile.ring_acquire %full[%i] : !gdn_tile.ring<3> -> !gdn_tile.slot
        %s = arith.remui %i, %c3 : index
        %tile = gdn_tile.stage %in[%s] : memref<3x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        // The threads of the role count from its first.
        // CHECK: %[[BACK:.*]] = llvm.mlir.constant(-128 : i32)
        // CHECK: llvm.add %{{.*}}, %[[BACK]]
        // CHECK-COUNT-8: nvvm.cp.async.shared.global
        // CHECK-NOT: nvvm.cp.async.shared.global
        gdn_tile.copy_in %x[%row, %c0] dims [0, 1] to %tile signal(%slot) : memref<?x64xbf16> to memref<64x64xbf16, #shared>
        // CHECK: cp.async.mbarrier.arrive.noinc.shared.b64
        gdn_tile.ring_commit %slot
      }
    }
    // CHECK: } else {
    // CHECK-NOT: nvvm.setmaxregister
    gdn_tile.role "store" warps(6) registers(24) {
      scf.for %i = %c0 to %n step %c1 {
        // CHECK: mbarrier.try_wait.parity.shared::cta.b64
        gdn_tile.ring_wait %done[%i] : !gdn_tile.ring<2>
        %s = arith.remui %i, %c2 : index
        %tile = gdn_tile.stage %out[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %row = arith.muli %i, %c64 : index
        // CHECK: llvm.mlir.constant(-192 : i32)
        gdn_tile.copy_out %tile to %o[%row, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<?x64xbf16>
        // CHECK: mbarrier.arrive.shared::cta.b64
        gdn_tile.ring_release %done[%i] : !gdn_tile.ring<2>
      }
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Products read by the asynchronous proxy what cp.async has written.

// CHECK-LABEL: llvm.func @products
func.func @products(%x: memref<64x64xbf16>, %o: memref<64x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %in = memref.alloc() : memref<1x64x64xbf16, #shared>
  %full = gdn_tile.ring(%in : memref<1x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    // CHECK-NOT: nvvm.setmaxregister
    gdn_tile.role "math" warps(4) {
      // CHECK: mbarrier.try_wait
      // CHECK: nvvm.fence.proxy
      // CHECK: wgmma
      gdn_tile.ring_wait %full[%c0] : !gdn_tile.ring<1>
      %tile = gdn_tile.stage %in[%c0] : memref<1x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %a = arith.constant dense<1.0> : vector<64x64xbf16>
      %r = gdn_tile.mma %a, %tile : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
    gdn_tile.role "load" warps(1) {
      %slot = gdn_tile.ring_acquire %full[%c0] : !gdn_tile.ring<1> -> !gdn_tile.slot
      %tile = gdn_tile.stage %in[%c0] : memref<1x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile signal(%slot) : memref<64x64xbf16> to memref<64x64xbf16, #shared>
      gdn_tile.ring_commit %slot
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// One piece of assembly that does nothing where the condition does not hold. d is made again, 16 of its columns at a
// time, and what a lacks of it is rounded, in the last columns; the warp's own parity, behind the two barriers of the
// ring, says which phase of the stage it waits for, and the products are complete when it is released. Then what is left
// of the result, scaled, times k, and of the result itself, in the last columns, times p.

// CHECK-LABEL: llvm.func @refine
// The barriers, and the parities of four warps.
// CHECK-COUNT-2: nvvm.mbarrier.init
// CHECK-COUNT-4: llvm.store {{.*}} : i32, !llvm.ptr<3>
// 96 results, as many accumulators, 16 registers of a, four tiles; 212 is the condition, 213 the factors.
// CHECK: llvm.inline_asm has_side_effects {{.*}}@!$212 bra.uni SKIP; setp.eq.b32 all, 0, 0; setp.ne.b32 none, 0, 0; ld.shared.f32 e0, [$213+512]; cvt.rzi.s32.f32 first, e0; shr.u32 h, first, 31; mov.u32 lane, %laneid; add.u32 lane, lane, h; and.b32 place, lane, 3;
// The first of the last columns, from the thread's own first one on.
// CHECK-SAME: sub.s32 first, 64, first; shl.b32 h, place, 1; sub.s32 first, first, h; shl.b32 place, place, 3; add.u32 place, place, $213;
// CHECK-SAME: bfe.u32 h, $208, 4, 14;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {t0, t1, t2, t3, t4, t5, t6, t7}, {$192, $193, $194, $195}, d, none, 1, 1, 0;
// CHECK-SAME: wgmma.wait_group.sync.aligned 0; shl.b32 h, $192, 16;
// CHECK-SAME: sub.rn.f32 t0, $0, t0; sub.rn.f32 t0, t0, e0; setp.le.s32 done, first, 0; selp.f32 t0, t0, 0f00000000, done;
// CHECK-SAME: cvt.rn.bf16x2.f32 y0, t1, t0;
// Rows 16 and later of n, columns 16 and later of the rest.
// CHECK-SAME: add.s64 d, right, 128;
// CHECK-SAME: setp.le.s32 done, first, 16; selp.f32 t0,
// CHECK-SAME: cvt.rn.bf16x2.f32 y15, t7, t6; ld.shared.b32 parity, [$215]; AGAIN: mbarrier.try_wait
// CHECK-SAME: xor.b32 parity, parity, 1; st.shared.b32 [$215], parity;
// CHECK-SAME: bfe.u32 h, $209, 4, 14;
// CHECK-SAME: {$192, $193, $194, $195}, d, all,
// CHECK-SAME: bfe.u32 h, $208, 4, 14;
// CHECK-SAME: {y12, y13, y14, y15}, d, all, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.warp.sync -1;
// CHECK-SAME: @done mbarrier.arrive.shared::cta.b64 _, [$214+8];
// CHECK-SAME: [place+256]; mul.rn.f32 t0, $0, f0; mul.rn.f32 t1, $1, f1; cvt.rn.bf16x2.f32 y0, t1, t0; shl.b32 h, y0, 16; mov.b32 e0, h; and.b32 h, y0, 0xffff0000; mov.b32 e1, h; sub.rn.f32 t0, t0, e0; sub.rn.f32 t1, t1, e1; cvt.rn.bf16x2.f32 y0, t1, t0;
// CHECK-SAME: bfe.u32 h, $210, 4, 14;
// CHECK-SAME: $63}, {y0, y1, y2, y3}, d, all, 1, 1, 1;
// CHECK-SAME: mov.f32 t0, $0; mov.f32 t1, $1; cvt.rn.bf16x2.f32 y16, t1, t0;
// CHECK-SAME: sub.rn.f32 t0, t0, e0; setp.le.s32 done, first, 0; selp.f32 t0, t0, 0f00000000, done;
// CHECK-SAME: bfe.u32 h, $211, 4, 14;
// CHECK-SAME: $95}, {y16, y17, y18, y19}, d, all, 1, 1, 0;
// CHECK-SAME: wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; SKIP: }
func.func @refine(%x: memref<64x64xbf16>, %y: memref<64x64xf32>, %z: memref<64x64xf32>, %f: memref<1xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %n = memref.alloc() : memref<64x64xbf16, #shared>
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %p = memref.alloc() : memref<64x64xbf16, #shared>
  %g = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %zero = arith.constant 0.0 : f32
      %v = memref.load %f[%c0] : memref<1xf32>
      %c = arith.cmpf ogt, %v, %zero : f32
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xbf16>, vector<64x64xbf16>
      %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %s = gdn_tile.load %z[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %r:3 = gdn_tile.refine if %c a(%a, %n, %ring) acc(%u) state(%s, %k) output(%s, %p) factors(%g) count 128 scale 64
          : (i1, vector<64x64xbf16>, memref<64x64xbf16, #shared>, !gdn_tile.ring<1>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
      gdn_tile.store %r#0, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %r#1, %z[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %r#2, %z[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
    gdn_tile.role "load" warps(1) {
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// With the second part of P the ring's stage is released at the end: that part takes the place of n's. P is the product of
// two tiles of shared memory; each warp reads its 16 rows of p, of panels transposed, and stores what they lack. All
// warps of the role meet in front of that, when none reads the stage any more, and behind it.

// CHECK-LABEL: llvm.func @refine_scores
// 96 results, as many accumulators, 16 registers of a; then n, low, k, p, q, condition, factors, ring and the warp's word.
// CHECK: llvm.inline_asm has_side_effects {{.*}}@!$213 bra.uni SKIP;
// CHECK-SAME: wgmma.wait_group.sync.aligned 0; ld.shared.v2.f32 {f0, f1}, [place+0]; mul.rn.f32 t0, $0, f0;
// CHECK-NOT: mbarrier.arrive
// CHECK-SAME: add.u32 h, $212, 0; bfe.u32 h, h, 4, 14; cvt.u64.u32 left, h;
// CHECK-SAME: bfe.u32 h, $210, 4, 14; cvt.u64.u32 right, h;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {s0,
// CHECK-SAME: s31}, l, d, none, 1, 1, 0, 0;
// CHECK-SAME: wgmma.wait_group.sync.aligned 0; shr.u32 h, lane, 5; add.u32 row, $216, h; sub.u32 row, row, $215; bfe.u32 row, row, 2, 2;
// The thread's last columns: up to the row, if that is late enough and exp(G) of it is a number to divide by.
// CHECK-SAME: add.u32 top1, row, 8; setp.ge.s32 done, top1, last; sub.s32 top1, top1, h; selp.b32 top1, top1, -8, done; ld.shared.f32 g1, [at+800]; setp.gt.f32 done, g1, 0f0DA24260; selp.b32 top1, top1, -8, done;
// A matrix of panels has rows of 16 bytes, one of a tile rows of 128.
// CHECK-SAME: mul.lo.u32 from, h, 16; bfe.u32 h, lane, 3, 1; mad.lo.u32 from, h, 256, from; mad.lo.u32 from, group, 32, from; add.u32 from, from, $211;
// CHECK-SAME: mul.lo.u32 to, h, 128; shl.b32 h, h, 4; or.b32 to, to, h; bfe.u32 h, lane, 3, 1; mad.lo.u32 to, h, 1024, to; mad.lo.u32 to, group, 128, to; add.u32 to, to, $209; bar.sync 1, 128;
// CHECK-SAME: ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {m0, m1}, [from+128]; ld.shared.v2.f32 {f0, f1}, [place+256]; ld.shared.v2.f32 {e0, e1}, [place+768]; mul.rn.f32 f0, f0, 0f3E000000; rcp.approx.ftz.f32 e0, e0; mul.rn.f32 f0, f0, e0;
// CHECK-SAME: shl.b32 h, m0, 16;
// CHECK-SAME: mul.rn.f32 t0, s0, f0; mul.rn.f32 t0, t0, g0; sub.rn.f32 t0, t0, e0; setp.ge.s32 done, top0, 0; selp.f32 t0, t0, 0f00000000, done;
// CHECK-SAME: mul.rn.f32 t1, s3, f1; mul.rn.f32 t1, t1, g1; sub.rn.f32 t1, t1, e1; setp.ge.s32 done, top1, 1; selp.f32 t1, t1, 0f00000000, done; cvt.rn.bf16x2.f32 m1, t1, t0;
// CHECK-SAME: xor.b32 at, to, 0; stmatrix.sync.aligned.m8n8.x2.shared.b16 [at], {m0, m1};
// CHECK-SAME: [from+0]; ld.shared.v2.f32 {f0, f1}, [place+288];
// CHECK-SAME: [from+2048];
// CHECK-SAME: xor.b32 at, to, 112; stmatrix.sync.aligned.m8n8.x2.shared.b16 [at], {m0, m1}; fence.proxy.async.shared::cta; bar.sync 1, 128;
// CHECK-SAME: mov.f32 t0, $0; mov.f32 t1, $1; cvt.rn.bf16x2.f32 y0, t1, t0;
// CHECK-SAME: bfe.u32 h, $209, 4, 14;
// CHECK-SAME: $95}, {y12, y13, y14, y15}, d, all, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.warp.sync -1;
// CHECK-SAME: @done mbarrier.arrive.shared::cta.b64 _, [$215+8]; SKIP: }

// One place for both tiles that lie in stages of the same number: q is at a distance from k.
// CHECK: llvm.inline_asm has_side_effects {{.*}}add.u32 h, $210, 16384; bfe.u32 h, h, 4, 14; cvt.u64.u32 left, h;
// Without a ring the number of the warp comes with it.
// CHECK-SAME: add.u32 row, $214, h; and.b32 row, row, 3;
// CHECK-NOT: rcp.approx
// CHECK-SAME: SKIP: }
func.func @refine_scores(%x: memref<64x64xbf16>, %y: memref<64x64xf32>, %f: memref<1xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.alloc() : memref<512x8xbf16, #shared>
  %ks = memref.alloc() : memref<2x64x64xbf16, #shared>
  %qs = memref.alloc() : memref<2x64x64xbf16, #shared>
  %p = memref.alloc() : memref<512x8xbf16, #shared>
  %g = memref.alloc() : memref<264xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %zero = arith.constant 0.0 : f32
      %v = memref.load %f[%c0] : memref<1xf32>
      %c = arith.cmpf ogt, %v, %zero : f32
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xbf16>, vector<64x64xbf16>
      %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %k = gdn_tile.stage %ks[%c1] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %q = gdn_tile.stage %qs[%c0] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %r:3 = gdn_tile.refine if %c a(%a, %n, %ring) acc(%u) state(%u, %k) output(%u, %p) scores(%q) factors(%g) count 256 scale 0 {beta = 64 : i64, factor = 0.125 : f64, grown = 192 : i64}
          : (i1, vector<64x64xbf16>, memref<512x8xbf16, #shared>, !gdn_tile.ring<1>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<512x8xbf16, #shared>, memref<64x64xbf16, #shared>, memref<264xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
      %q1 = gdn_tile.stage %qs[%c1] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %low = gdn_tile.stage %b[%c0] : memref<1x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %t:3 = gdn_tile.refine if %c a(%a, %n, %low) acc(%r#0) state(%r#1, %k) output(%r#2, %p) scores(%q1) factors(%g) count 256 scale 0 {beta = 64 : i64, factor = 0.125 : f64}
          : (i1, vector<64x64xbf16>, memref<512x8xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, vector<64x64xf32>, memref<512x8xbf16, #shared>, memref<64x64xbf16, #shared>, memref<264xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>, vector<64x64xf32>)
      gdn_tile.store %t#0, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %t#1, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %t#2, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
    gdn_tile.role "load" warps(1) {
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// With a tile there is nothing to wait for, and without an output nothing to round for it. A second role of as many warps
// holds fragments, too: its threads find
// their place in the fragment by the number in their warpgroup, meet at a barrier of their own, and what they have
// stored is visible to products behind a fence of the threads that stored it.

// CHECK-LABEL: llvm.func @refine_tile
// CHECK: llvm.inline_asm has_side_effects {{.*}}@!$147 bra.uni SKIP;
// CHECK-NOT: try_wait
// CHECK-SAME: cvt.rn.f16x2.f32 y0, t1, t0; mov.b32 {low16, high16}, y0; cvt.f32.f16 e0, low16; cvt.f32.f16 e1, high16;
// CHECK-NOT: y16, y17
// CHECK-SAME: wgmma.wait_group.sync.aligned 0; SKIP: }
// CHECK: %[[GROUP:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: llvm.and %[[GROUP]], %{{.*}} : i32
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive
func.func @refine_tile(%x: memref<64x64xf16>, %y: memref<64x64xf32>, %z: memref<64x64xf32>, %f: memref<1xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %n = memref.alloc() : memref<64x64xf16, #shared>
  %g = memref.alloc() : memref<136xf32, #shared>
  %b = memref.alloc() : memref<1x64x64xf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x64x64xf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %zero = arith.constant 0.0 : f32
      %v = memref.load %f[%c0] : memref<1xf32>
      %c = arith.cmpf ogt, %v, %zero : f32
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xf16>, vector<64x64xf16>
      %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %s = gdn_tile.load %z[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      gdn_tile.ring_wait %ring[%c0] : !gdn_tile.ring<1>
      %t = gdn_tile.stage %b[%c0] : memref<1x64x64xf16, #shared> to memref<64x64xf16, #shared>
      %r:2 = gdn_tile.refine if %c a(%a, %n, %t) acc(%u) state(%s, %n) factors(%g) count 128 scale 64
          : (i1, vector<64x64xf16>, memref<64x64xf16, #shared>, memref<64x64xf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
      gdn_tile.store %r#0, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %r#1, %z[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
    gdn_tile.role "ahead" warps(4) {
      %slot = gdn_tile.ring_acquire %ring[%c0] : !gdn_tile.ring<1> -> !gdn_tile.slot
      %t = gdn_tile.stage %b[%c0] : memref<1x64x64xf16, #shared> to memref<64x64xf16, #shared>
      %a = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %a16 = arith.truncf %a : vector<64x64xf32> to vector<64x64xf16>
      gdn_tile.store %a16, %t[%c0, %c0] dims [1, 0] : vector<64x64xf16>, memref<64x64xf16, #shared>
      gdn_tile.barrier
      gdn_tile.ring_commit %slot
    }
  }
  return
}

// -----

// The launch behind may start at once; this kernel waits for the one in front.
// CHECK: llvm.func @overlapping
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
// CHECK: gpu.launch_func @kernels::@overlapping {{.*}}gdn_tile.overlaps
// CHECK: gpu.launch_func @kernels::@other
// CHECK-NOT: gdn_tile.overlaps
func.func @overlapping() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  gdn_tile.overlap_launches
  return
}
func.func @other() attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>} {
  return
}
func.func @host(%n: index) {
  gdn_tile.launch @overlapping grid(%n) ()
  gdn_tile.launch @other grid(%n) ()
  return
}
