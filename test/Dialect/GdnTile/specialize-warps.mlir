// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-specialize-warps))' --split-input-file | FileCheck %s

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Copies in, the work, copies out: three roles and two rings. What all roles need stands in front of them, what waits for a number
// from memory behind the rings; the initial and the final state are of the first role alone.

// CHECK-LABEL: func @loop
// CHECK: %[[NUMBER:.*]] = memref.load
// CHECK-NOT: {{arith.index_cast|gdn_tile.load}}
// CHECK: %[[K:.*]] = memref.alloc() : memref<3x64x128xbf16
// CHECK: %[[G:.*]] = memref.alloc() : memref<3x64xf32
// CHECK: %[[IN:.*]] = gdn_tile.ring(%[[K]], %[[G]] : {{.*}}) producers(3) consumers(4) : <3>
// CHECK: %[[O:.*]] = memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[OUT:.*]] = gdn_tile.ring(%[[O]] : {{.*}}) producers(4) consumers(1) : <2>
// CHECK-NEXT: %[[COUNT:.*]] = arith.index_cast %[[NUMBER]]
// CHECK-NEXT: gdn_tile.roles {
// CHECK-NEXT: gdn_tile.role "math" warps(4) {
// CHECK: %[[INIT:.*]] = gdn_tile.load %arg2
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1 iter_args(%[[S:.*]] = %[[INIT]])
// CHECK-NEXT: gdn_tile.ring_wait %[[IN]][%[[I]]]
// CHECK: %[[STAGE:.*]] = arith.remui %[[I]]
// CHECK: %[[KT:.*]] = gdn_tile.stage %[[K]][%[[STAGE]]]
// CHECK: %[[GT:.*]] = gdn_tile.stage %[[G]][%[[STAGE]]]
// CHECK-NOT: gdn_tile.copy_in
// CHECK: gdn_tile.mma %{{.*}}, %[[KT]] {transpose_b}
// CHECK: gdn_tile.load %[[GT]]
// CHECK: gdn_tile.mma %{{.*}}, %[[KT]] acc
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[OUT]][%[[I]]]
// CHECK: %[[OT:.*]] = gdn_tile.stage %[[O]]
// CHECK: gdn_tile.store %{{.*}}, %[[OT]]
// CHECK-NEXT: gdn_tile.ring_commit %[[SLOT]]
// CHECK-NEXT: gdn_tile.ring_release %[[IN]][%[[I]]]
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NOT: gdn_tile.stages
// CHECK: gdn_tile.store %[[LOOP]], %arg2

// CHECK: gdn_tile.role "load" warps(3) {
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1 {
// CHECK: %[[ROW:.*]] = arith.muli %[[I]], %c64
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[IN]][%[[I]]]
// CHECK: %[[STAGE:.*]] = arith.remui %[[I]]
// CHECK: %[[KT:.*]] = gdn_tile.stage %[[K]][%[[STAGE]]]
// CHECK: gdn_tile.copy_in %arg0[%[[ROW]], %c0] dims [0, 1] valid(%{{.*}}, %c128) to %[[KT]] signal(%[[SLOT]])
// CHECK: %[[GT:.*]] = gdn_tile.stage %[[G]][%[[STAGE]]]
// CHECK: gdn_tile.copy_in %arg1[%[[I]], %c0] dims [1] to %[[GT]] signal(%[[SLOT]])
// CHECK-NEXT: gdn_tile.ring_commit %[[SLOT]]
// CHECK-NEXT: }

// CHECK: gdn_tile.role "store" warps(1) {
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1 {
// CHECK: gdn_tile.ring_wait %[[OUT]][%[[I]]]
// CHECK: %[[OT:.*]] = gdn_tile.stage %[[O]]
// CHECK: gdn_tile.copy_out %[[OT]] to %arg3
// CHECK-NEXT: gdn_tile.ring_release %[[OUT]][%[[I]]]
// CHECK-NEXT: }
func.func @loop(%k: memref<?x128xbf16>, %g: memref<?x64xf32>, %s: memref<64x128xf32>, %o: memref<?x64xbf16>, %counts: memref<?xi32>, %rows: index)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %id = gdn_tile.block_id : index
  %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x128xf32>, vector<64x128xf32>
  %number = memref.load %counts[%id] : memref<?xi32>
  %count = arith.index_cast %number : i32 to index
  %kt = memref.alloc() : memref<64x128xbf16, #shared>
  %gt = memref.alloc() : memref<64xf32, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %r = scf.for %i = %c0 to %count step %c1 iter_args(%state = %initial) -> (vector<64x128xf32>) {
    %row = arith.muli %i, %c64 : index
    %left = arith.subi %rows, %row : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] valid(%left, %c128) to %kt : memref<?x128xbf16> to memref<64x128xbf16, #shared>
    gdn_tile.copy_in %g[%i, %c0] dims [1] to %gt : memref<?x64xf32> to memref<64xf32, #shared>
    %a = arith.truncf %state : vector<64x128xf32> to vector<64x128xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
    %f = gdn_tile.load %gt[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
    %fb = vector.broadcast %f : vector<1x64xf32> to vector<64x64xf32>
    %x = arith.mulf %w, %fb : vector<64x64xf32>
    %b = arith.truncf %x : vector<64x64xf32> to vector<64x64xbf16>
    %next = gdn_tile.mma %b, %kt acc(%state : vector<64x128xf32>) : vector<64x64xbf16>, memref<64x128xbf16, #shared> -> vector<64x128xf32>
    gdn_tile.store %b, %ot[%c0, %c0] dims [1, 0] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%row, %c0] dims [0, 1] valid(%left, %c64) : memref<64x64xbf16, #shared> to memref<?x64xbf16>
    scf.yield %next : vector<64x128xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x128xf32>, memref<64x128xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Where the program waits for the launch in front every role does: math behind its load of the state.

// CHECK-LABEL: func @waits
// CHECK-NOT: gdn_tile.await_launch
// CHECK: gdn_tile.role "math"
// CHECK: gdn_tile.load %arg1
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for
// CHECK: gdn_tile.role "load"
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for
// CHECK: gdn_tile.role "store"
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for
// CHECK-NOT: gdn_tile.await_launch
func.func @waits(%k: memref<64x64xbf16>, %s: memref<64x64xf32>, %o: memref<64x64xbf16>, %n: index)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  gdn_tile.await_launch
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %next = gdn_tile.mma %a, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %a, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<64x64xbf16>
    scf.yield %next : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// What all roles need is not read in front of their waits: there are no roles.

// CHECK-LABEL: func @reads_behind
// CHECK-NOT: gdn_tile.roles
func.func @reads_behind(%k: memref<64x64xbf16>, %s: memref<64x64xf32>, %o: memref<64x64xbf16>, %n: memref<index>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  gdn_tile.await_launch
  %count = memref.load %n[] : memref<index>
  %r = scf.for %i = %c0 to %count step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %next = gdn_tile.mma %a, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %a, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<64x64xbf16>
    scf.yield %next : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Iterations count from 0, whatever the bounds are. A copy that converts and
// one to global memory whose tile two stores fill stay where they are.

// CHECK-LABEL: func @remains
// CHECK: gdn_tile.ring(
// CHECK-NOT: gdn_tile.ring(
// CHECK: gdn_tile.role "math"
// CHECK: scf.for %[[I:.*]] = %c2 to %arg3 step %c2
// CHECK-NEXT: %[[FROM:.*]] = arith.subi %[[I]], %c2
// CHECK-NEXT: %[[NUMBER:.*]] = arith.divui %[[FROM]], %c2
// CHECK-NEXT: gdn_tile.ring_wait %{{.*}}[%[[NUMBER]]]
// CHECK: gdn_tile.copy_in %{{.*}} : memref<64x64xbf16> to memref<64x64xf32
// CHECK: gdn_tile.copy_out
// CHECK: gdn_tile.role "load"
// CHECK-NOT: gdn_tile.role
func.func @remains(%k: memref<64x64xbf16>, %o: memref<64x64xbf16>, %s: memref<64x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %wide = memref.alloc() : memref<64x64xf32, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  scf.for %i = %c2 to %n step %c2 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %wide : memref<64x64xbf16> to memref<64x64xf32, #shared>
    %a = gdn_tile.load %wide[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<64x64xf32>
    %b = arith.truncf %a : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %b, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %x = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %b, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.store %x, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<64x64xbf16>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Products of two warps are no warpgroup products.

// CHECK-LABEL: func @two_warps
// CHECK-NOT: gdn_tile.roles
// CHECK: gdn_tile.stages = 2
func.func @two_warps(%k: memref<64x64xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<32x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %a, %kt : vector<32x64xbf16>, memref<64x64xbf16, #shared> -> vector<32x64xf32>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// An op that all warps of the block run together.

// CHECK-LABEL: func @meets
// CHECK-NOT: gdn_tile.roles
func.func @meets(%k: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %sums = memref.alloc() : memref<64xf32, #shared>
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %a, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.cumsum %sums : memref<64xf32, #shared>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// The number of iterations comes from shared memory, which roles do not share.

// CHECK-LABEL: func @bound_from_shared
// CHECK-NOT: gdn_tile.roles
func.func @bound_from_shared(%k: memref<64x64xbf16>, %x: memref<64xi32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %numbers = memref.alloc() : memref<64xi32, #shared>
  gdn_tile.copy_in %x[%c0] dims [0] to %numbers : memref<64xi32> to memref<64xi32, #shared>
  %number = memref.load %numbers[%c0] : memref<64xi32, #shared>
  %n = arith.index_cast %number : i32 to index
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %a, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// One stage asks for no copies ahead; a loop in a loop stays, too.

// CHECK-LABEL: func @one_stage
// CHECK-NOT: gdn_tile.roles
// CHECK-LABEL: func @nested
// CHECK-NOT: gdn_tile.roles
func.func @one_stage(%k: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %a, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  } {gdn_tile.stages = 1 : i64}
  return
}
func.func @nested(%k: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  scf.for %j = %c0 to %n step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
      %w = gdn_tile.mma %a, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    } {gdn_tile.stages = 2 : i64}
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// The block finds its place by a division by a number of run time and in a
// loop over numbers: every role may do both. A branch of fragments is the math
// role's.

// CHECK-LABEL: func @place
// CHECK: arith.divui
// CHECK: scf.while
// CHECK: gdn_tile.roles
// CHECK: gdn_tile.role "math"
// CHECK: scf.if {{.*}} -> (vector<64x64xf32>)
func.func @place(%k: memref<?x64xbf16>, %s: memref<?x64x64xf32>, %offsets: memref<?xi32>, %parts: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %id = gdn_tile.block_id : index
  %place = arith.divui %id, %parts : index
  %n = scf.while (%i = %c0) : (index) -> index {
    %start = memref.load %offsets[%i] : memref<?xi32>
    %first = arith.index_cast %start : i32 to index
    %behind = arith.cmpi slt, %first, %place : index
    scf.condition(%behind) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  %is_first = arith.cmpi eq, %n, %c0 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %init = scf.if %is_first -> vector<64x64xf32> {
    scf.yield %zero : vector<64x64xf32>
  } else {
    %loaded = gdn_tile.load %s[%n, %c0, %c0] dims [1, 2] : memref<?x64x64xf32>, vector<64x64xf32>
    scf.yield %loaded : vector<64x64xf32>
  }
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> vector<64x64xf32> {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %a, %kt acc(%acc : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %w : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %r, %s[%n, %c0, %c0] dims [1, 2] : vector<64x64xf32>, memref<?x64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Two warpgroups compute; the warps that copy are a third, which gives its
// registers to them. One tile of results is enough.

// CHECK-LABEL: func @two_warpgroups
// CHECK: gdn_tile.ring({{.*}}) producers(3) consumers(8) : <2>
// CHECK: gdn_tile.ring({{.*}}) producers(8) consumers(1) : <1>
// CHECK: gdn_tile.role "math" warps(8) registers(240) {
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.role "load" warps(3) registers(24) {
// CHECK: gdn_tile.role "store" warps(1) registers(24) {
func.func @two_warpgroups(%k: memref<64x64xbf16>, %o: memref<128x64xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<128x64xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<128x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %zero, %kt : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
    %x = arith.truncf %w : vector<128x64xf32> to vector<128x64xbf16>
    gdn_tile.store %x, %ot[%c0, %c0] dims [0, 1] : vector<128x64xbf16>, memref<128x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%c0, %c0] dims [0, 1] : memref<128x64xbf16, #shared> to memref<128x64xbf16>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Nor would two tiles of float32 leave room for a stage of what is read.

// CHECK-LABEL: func @large_results
// CHECK: gdn_tile.ring({{.*}} : memref<1x64x64xf32{{.*}}) producers(4) consumers(1) : <1>
func.func @large_results(%k: memref<64x64xbf16>, %o: memref<64x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xf32, #shared>
  %zero = arith.constant dense<0.0> : vector<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %zero, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %w, %ot[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    gdn_tile.copy_out %ot to %o[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared> to memref<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Nothing to store: four warps copy, since a warpgroup gives its registers as a
// whole.

// CHECK-LABEL: func @two_warpgroups_without_output
// CHECK: gdn_tile.ring({{.*}}) producers(4) consumers(8) : <2>
// CHECK: gdn_tile.role "math" warps(8) registers(240) {
// CHECK: gdn_tile.role "load" warps(4) registers(24) {
// CHECK-NOT: gdn_tile.role
func.func @two_warpgroups_without_output(%k: memref<64x64xbf16>, %o: memref<128x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<128x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %zero, %kt : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
    gdn_tile.store %w, %o[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Products of three warpgroups have no asynchronous form.

// CHECK-LABEL: func @three_warpgroups
// CHECK-NOT: gdn_tile.roles
func.func @three_warpgroups(%k: memref<64x64xbf16>, %o: memref<192x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 12, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<192x64xbf16>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %k[%c0, %c0] dims [0, 1] to %kt : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    %w = gdn_tile.mma %zero, %kt : vector<192x64xbf16>, memref<64x64xbf16, #shared> -> vector<192x64xf32>
    gdn_tile.store %w, %o[%c0, %c0] dims [0, 1] : vector<192x64xf32>, memref<192x64xf32>
  } {gdn_tile.stages = 2 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// A tile that is needed only where an element of another copy says so: it has a ring of one stage. The warps that
// copy read the element where that copy does, and count how often it was so; the refinement decides by itself, waits for
// the tile and releases it.

// CHECK-LABEL: func @rare
// CHECK: %[[RARE:.*]] = memref.alloc() : memref<1x64x64xbf16
// CHECK-NEXT: %[[RING:.*]] = gdn_tile.ring(%[[RARE]] : {{.*}}) producers(3) consumers(4) : <1>
// CHECK: gdn_tile.role "math" warps(4) {
// CHECK: scf.for
// CHECK: %[[ANY:.*]] = gdn_tile.any
// CHECK: %[[U:.*]] = gdn_tile.mma
// CHECK-NEXT: gdn_tile.refine if %[[ANY]] a(%{{.*}}, %{{.*}}, %[[RING]]) acc(%[[U]]) state(%{{.*}}, %{{.*}}) factors(%{{.*}}) count 128 scale 64
// CHECK-NOT: scf.if
// CHECK: gdn_tile.role "load" warps(3) {
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[COUNT:.*]] = %{{.*}}) -> (index) {
// CHECK-COUNT-2: gdn_tile.copy_in
// CHECK: gdn_tile.ring_commit
// CHECK: %[[AT:.*]] = arith.addi %c0, %c128
// CHECK: %[[FLAG:.*]] = memref.load %arg1[%[[I]], %[[AT]]]
// CHECK: %[[ISRARE:.*]] = arith.cmpf ogt, %[[FLAG]], %{{.*}} : f32
// CHECK: %[[NEXT:.*]] = scf.if %[[ISRARE]] -> (index) {
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[RING]][%[[COUNT]]]
// CHECK: gdn_tile.copy_in %arg0[%[[I]], %c1, %c0, %c0] dims [2, 3] to %{{.*}} signal(%[[SLOT]])
// CHECK: gdn_tile.ring_commit %[[SLOT]]
// CHECK: %[[MORE:.*]] = arith.addi %[[COUNT]]
// CHECK: scf.yield %[[MORE]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[COUNT]]
// CHECK: scf.yield %[[NEXT]]

// The condition is not one of a copied tile: the branch stays, and its copy.

// CHECK-LABEL: func @given
// CHECK-NOT: gdn_tile.refine if
// CHECK: gdn_tile.role "math"
// CHECK: scf.if %arg4
// CHECK-NEXT: gdn_tile.copy_in
// CHECK-NOT: gdn_tile.refine if

// Nor is a tile that something else reads.

// CHECK-LABEL: func @read_elsewhere
// CHECK-NOT: gdn_tile.refine if
// CHECK: scf.if
// CHECK-NEXT: gdn_tile.copy_in
// CHECK-NOT: gdn_tile.refine if
func.func @rare(%t: memref<?x2x64x64xbf16>, %f: memref<?x136xf32>, %o: memref<64x64xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %limit = arith.constant dense<0.5> : vector<1x1xf32>
  %high = memref.alloc() : memref<64x64xbf16, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  %flags = memref.alloc() : memref<136xf32, #shared>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %t[%i, %c0, %c0, %c0] dims [2, 3] to %high : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %f[%i, %c0] dims [1] to %flags : memref<?x136xf32> to memref<136xf32, #shared>
    %v = gdn_tile.load %flags[%c128] dims [0] : memref<136xf32, #shared>, vector<1x1xf32>
    %isLarge = arith.cmpf ogt, %v, %limit : vector<1x1xf32>
    %any = gdn_tile.any %isLarge : vector<1x1xi1> to i1
    %a = arith.truncf %acc : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %a, %high {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %r:2 = scf.if %any -> (vector<64x64xf32>, vector<64x64xf32>) {
      gdn_tile.copy_in %t[%i, %c1, %c0, %c0] dims [2, 3] to %low : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
      %w:2 = gdn_tile.refine a(%a, %high, %low) acc(%u) state(%acc, %high) factors(%flags) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
      scf.yield %w#0, %w#1 : vector<64x64xf32>, vector<64x64xf32>
    } else {
      scf.yield %u, %acc : vector<64x64xf32>, vector<64x64xf32>
    }
    %sum = arith.addf %r#0, %r#1 : vector<64x64xf32>
    scf.yield %sum : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %s, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

func.func @given(%t: memref<?x2x64x64xbf16>, %f: memref<?x136xf32>, %o: memref<64x64xf32>, %n: index, %any: i1) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %high = memref.alloc() : memref<64x64xbf16, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  %flags = memref.alloc() : memref<136xf32, #shared>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %t[%i, %c0, %c0, %c0] dims [2, 3] to %high : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %acc : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %a, %high {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %r:2 = scf.if %any -> (vector<64x64xf32>, vector<64x64xf32>) {
      gdn_tile.copy_in %t[%i, %c1, %c0, %c0] dims [2, 3] to %low : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
      %w:2 = gdn_tile.refine a(%a, %high, %low) acc(%u) state(%acc, %high) factors(%flags) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
      scf.yield %w#0, %w#1 : vector<64x64xf32>, vector<64x64xf32>
    } else {
      scf.yield %u, %acc : vector<64x64xf32>, vector<64x64xf32>
    }
    %sum = arith.addf %r#0, %r#1 : vector<64x64xf32>
    scf.yield %sum : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %s, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

func.func @read_elsewhere(%t: memref<?x2x64x64xbf16>, %f: memref<?x136xf32>, %o: memref<64x64xf32>, %x: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %limit = arith.constant dense<0.5> : vector<1x1xf32>
  %high = memref.alloc() : memref<64x64xbf16, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  %flags = memref.alloc() : memref<136xf32, #shared>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %t[%i, %c0, %c0, %c0] dims [2, 3] to %high : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %f[%i, %c0] dims [1] to %flags : memref<?x136xf32> to memref<136xf32, #shared>
    %v = gdn_tile.load %flags[%c128] dims [0] : memref<136xf32, #shared>, vector<1x1xf32>
    %isLarge = arith.cmpf ogt, %v, %limit : vector<1x1xf32>
    %any = gdn_tile.any %isLarge : vector<1x1xi1> to i1
    %a = arith.truncf %acc : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %a, %high {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %r:2 = scf.if %any -> (vector<64x64xf32>, vector<64x64xf32>) {
      gdn_tile.copy_in %t[%i, %c1, %c0, %c0] dims [2, 3] to %low : memref<?x2x64x64xbf16> to memref<64x64xbf16, #shared>
      %w:2 = gdn_tile.refine a(%a, %high, %low) acc(%u) state(%acc, %high) factors(%flags) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
      scf.yield %w#0, %w#1 : vector<64x64xf32>, vector<64x64xf32>
    } else {
      scf.yield %u, %acc : vector<64x64xf32>, vector<64x64xf32>
    }
    %sum = arith.addf %r#0, %r#1 : vector<64x64xf32>
    %again = gdn_tile.load %low[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
    gdn_tile.store %again, %x[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16>
    scf.yield %sum : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %s, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

