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
  // CHECK-NOT: nvvm.mbarrier.init
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: nvvm.barrier
  %full = gdn_tile.ring(%in : memref<3x64x64xbf16, #shared>) producers(2) consumers(4) : !gdn_tile.ring<3>
  // Warps that store tell it once each.
  // CHECK: scf.if
  // CHECK: %[[WRITERS:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK: nvvm.mbarrier.init %{{.*}}, %[[WRITERS]]
  // CHECK: nvvm.barrier
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

// One piece of assembly that does nothing where the condition does not hold; else the warp's own parity, behind the
// two barriers of the ring, says which phase of the stage it waits for. The products are complete when it is released.

// CHECK-LABEL: llvm.func @rare_product
// The barriers, and the parities of four warps.
// CHECK-COUNT-2: nvvm.mbarrier.init
// CHECK-COUNT-4: llvm.store {{.*}} : i32, !llvm.ptr<3>
// CHECK: llvm.inline_asm has_side_effects {{.*}}@!$49 bra.uni SKIP; ld.shared.b32 parity, [$51]; AGAIN: mbarrier.try_wait
// CHECK-SAME: xor.b32 parity, parity, 1; st.shared.b32 [$51], parity;
// CHECK-SAME: wgmma.fence.sync.aligned;
// CHECK-SAME: wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.warp.sync -1;
// CHECK-SAME: @done mbarrier.arrive.shared::cta.b64 _, [$50+8]; SKIP: }
func.func @rare_product(%x: memref<64x64xbf16>, %y: memref<64x32xf32>, %f: memref<1xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<1x32x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x32x64xbf16, #shared>) producers(1) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %zero = arith.constant 0.0 : f32
      %v = memref.load %f[%c0] : memref<1xf32>
      %c = arith.cmpf ogt, %v, %zero : f32
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xbf16>, vector<64x64xbf16>
      %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x32xf32>, vector<64x32xf32>
      %r = gdn_tile.rare_mma %c, %a, %ring acc(%u) : vector<64x64xbf16>, !gdn_tile.ring<1> -> vector<64x32xf32>
      gdn_tile.store %r, %y[%c0, %c0] dims [0, 1] : vector<64x32xf32>, memref<64x32xf32>
    }
    gdn_tile.role "load" warps(1) {
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// With a tile there is nothing to wait for. A second role of as many warps holds fragments, too: its threads find
// their place in the fragment by the number in their warpgroup, meet at a barrier of their own, and what they have
// stored is visible to products behind a fence of the threads that stored it.

// CHECK-LABEL: llvm.func @rare_tile
// CHECK: llvm.inline_asm has_side_effects {{.*}}@!$49 bra.uni SKIP; setp.eq.b32 all, 0, 0; wgmma.fence
// CHECK-SAME: wgmma.wait_group.sync.aligned 0; SKIP: }
// CHECK: %[[GROUP:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK: llvm.and %[[GROUP]], %{{.*}} : i32
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive
func.func @rare_tile(%x: memref<64x64xbf16>, %y: memref<64x32xf32>, %f: memref<1xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<1x32x64xbf16, #shared>
  %ring = gdn_tile.ring(%b : memref<1x32x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %zero = arith.constant 0.0 : f32
      %v = memref.load %f[%c0] : memref<1xf32>
      %c = arith.cmpf ogt, %v, %zero : f32
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xbf16>, vector<64x64xbf16>
      %u = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x32xf32>, vector<64x32xf32>
      gdn_tile.ring_wait %ring[%c0] : !gdn_tile.ring<1>
      %t = gdn_tile.stage %b[%c0] : memref<1x32x64xbf16, #shared> to memref<32x64xbf16, #shared>
      %r = gdn_tile.rare_mma %c, %a, %t acc(%u) : vector<64x64xbf16>, memref<32x64xbf16, #shared> -> vector<64x32xf32>
      gdn_tile.store %r, %y[%c0, %c0] dims [0, 1] : vector<64x32xf32>, memref<64x32xf32>
    }
    gdn_tile.role "ahead" warps(4) {
      %slot = gdn_tile.ring_acquire %ring[%c0] : !gdn_tile.ring<1> -> !gdn_tile.slot
      %t = gdn_tile.stage %b[%c0] : memref<1x32x64xbf16, #shared> to memref<32x64xbf16, #shared>
      %a = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<64x32xf32>, vector<64x32xf32>
      %a16 = arith.truncf %a : vector<64x32xf32> to vector<64x32xbf16>
      gdn_tile.store %a16, %t[%c0, %c0] dims [1, 0] : vector<64x32xbf16>, memref<32x64xbf16, #shared>
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
// CHECK-NEXT: nvvm.griddepcontrol wait
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
