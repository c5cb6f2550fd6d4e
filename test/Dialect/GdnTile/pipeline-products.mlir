// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-pipeline-products))' --split-input-file | FileCheck %s

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// The carried product %t waits for %w, so it and %o move to the next iteration
// of the new loop, where the first product of the iteration behind follows it.

// CHECK-LABEL: func @chain
// CHECK: %[[S0:.*]] = gdn_tile.load %arg1
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0, %arg3
// CHECK: %[[RESULT:.*]] = scf.if %[[ANY]] -> (vector<64x64xf32>) {
// The first half of iteration 0.
// CHECK: gdn_tile.copy_in %arg0[%c0, %c0]
// CHECK: %[[A0:.*]] = arith.truncf %[[S0]]
// CHECK: %[[W0:.*]] = gdn_tile.mma %[[A0]]
// CHECK: %[[D0:.*]] = arith.mulf %[[S0]]
// CHECK: %[[LAST:.*]] = arith.subi %arg3, %c1
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[I:.*]] = %c0 to %[[LAST]] step %c1 iter_args(%[[W:.*]] = %[[W0]], %[[D:.*]] = %[[D0]])
// The second half of iteration i, as far as products need it.
// CHECK-NEXT: %[[B:.*]] = arith.truncf %[[W]]
// CHECK-NEXT: %[[T:.*]] = gdn_tile.mma %[[B]], %[[K:.*]] acc(%[[D]]
// CHECK-NEXT: %[[O:.*]] = gdn_tile.mma %[[B]], %[[K]]
// CHECK-SAME: transpose_b
// The first half of iteration i + 1.
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT: gdn_tile.copy_in %arg0[%[[NEXT]], %c0]
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[T]]
// CHECK-NEXT: %[[W1:.*]] = gdn_tile.mma %[[A]], %[[K]] {transpose_b}
// The rest of iteration i: rounded at once, stored behind the products.
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[O]]
// CHECK-NEXT: gdn_tile.store %[[R]], %[[OT:.*]][%c0, %c0]
// CHECK-NEXT: gdn_tile.copy_out %[[OT]] to %arg2[%[[I]], %c0]
// CHECK: %[[D1:.*]] = arith.mulf %[[T]]
// CHECK-NEXT: scf.yield %[[W1]], %[[D1]]
// The second half of the last iteration.
// CHECK: %[[BL:.*]] = arith.truncf %[[LOOP]]#0
// CHECK: %[[TL:.*]] = gdn_tile.mma %[[BL]], %{{.*}} acc(%[[LOOP]]#1
// CHECK: gdn_tile.copy_out %{{.*}} to %arg2[%[[LAST]], %c0]
// CHECK: scf.yield %[[TL]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[S0]]
// CHECK: gdn_tile.store %[[RESULT]], %arg1
func.func @chain(%k: memref<?x64xbf16>, %s: memref<64x64xf32>, %o: memref<?x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %decay = arith.constant dense<0.5> : vector<64x64xf32>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %d = arith.mulf %state, %decay : vector<64x64xf32>
    %t = gdn_tile.mma %b, %kt acc(%d : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %x = gdn_tile.mma %b, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %y = arith.truncf %x : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %y, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%i, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<?x64xbf16>
    scf.yield %t : vector<64x64xf32>
  }
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// In a role: this iteration's stage is released behind the product that gives
// the state, since the next iteration starts with that; then comes the wait for
// the next stage. The stage of the results, which may have to be waited for,
// comes last. A broadcast is
// computed again where it is needed: only the row is carried.

// CHECK-LABEL: func @rings
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} iter_args(%[[W:.*]] = %{{.*}}, %[[S:.*]] = %{{.*}}, %[[ROW:.*]] = %{{.*}}) -> (vector<64x64xf32>, vector<64x64xf32>, vector<1x64xf32>)
// CHECK: %[[BROAD:.*]] = vector.broadcast %[[ROW]]
// CHECK: %[[X:.*]] = arith.mulf %[[W]], %[[BROAD]]
// CHECK: %[[T:.*]] = gdn_tile.mma %{{.*}} acc(%[[S]]
// CHECK: gdn_tile.ring_release %[[IN:.*]][%[[I]]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK: gdn_tile.ring_wait %[[IN]][%[[NEXT]]]
// CHECK: gdn_tile.mma %{{.*}} {transpose_b}
// CHECK: %[[Y:.*]] = arith.truncf %[[T]]
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %{{.*}}[%[[I]]]
// CHECK: gdn_tile.store %[[Y]]
// CHECK: gdn_tile.ring_commit %[[SLOT]]
// CHECK: %[[ROW1:.*]] = gdn_tile.load
// CHECK: scf.yield %{{.*}}, %[[T]], %[[ROW1]]
func.func @rings(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ks = memref.alloc() : memref<2x64x64xbf16, #shared>
  %gs = memref.alloc() : memref<2x64xf32, #shared>
  %os = memref.alloc() : memref<2x64x64xbf16, #shared>
  %in = gdn_tile.ring(%ks, %gs : memref<2x64x64xbf16, #shared>, memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  %out = gdn_tile.ring(%os : memref<2x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %initial = arith.constant dense<1.0> : vector<64x64xf32>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
        gdn_tile.ring_wait %in[%i] : !gdn_tile.ring<2>
        %stage = arith.remui %i, %c2 : index
        %kt = gdn_tile.stage %ks[%stage] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %gt = gdn_tile.stage %gs[%stage] : memref<2x64xf32, #shared> to memref<64xf32, #shared>
        %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
        %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %f = gdn_tile.load %gt[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
        %fb = vector.broadcast %f : vector<1x64xf32> to vector<64x64xf32>
        %x = arith.mulf %w, %fb : vector<64x64xf32>
        %b = arith.truncf %x : vector<64x64xf32> to vector<64x64xbf16>
        %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %y = arith.truncf %t : vector<64x64xf32> to vector<64x64xbf16>
        %slot = gdn_tile.ring_acquire %out[%i] : !gdn_tile.ring<2> -> !gdn_tile.slot
        %ot = gdn_tile.stage %os[%stage] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        gdn_tile.store %y, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
        gdn_tile.ring_commit %slot
        gdn_tile.ring_release %in[%i] : !gdn_tile.ring<2>
        scf.yield %t : vector<64x64xf32>
      }
    }
    gdn_tile.role "rest" warps(4) {
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// The carried product waits for no other: one half is all there is.

// CHECK-LABEL: func @one_level
// CHECK-NOT: scf.if
func.func @one_level(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %a = arith.constant dense<1.0> : vector<64x64xbf16>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %t = gdn_tile.mma %a, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// A barrier, another step, fragments of 192 registers, and a copy into the tile
// that the second half still reads by a load: these loops stay, too.

// CHECK-LABEL: func @barrier
// CHECK-NOT: scf.if
func.func @barrier(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.barrier
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// CHECK-LABEL: func @step
// CHECK-NOT: scf.if
func.func @step(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// CHECK-LABEL: func @registers
// CHECK-NOT: scf.if
func.func @registers(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x256xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x256xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x256xf32>) {
    %a = arith.truncf %state : vector<64x256xf32> to vector<64x256xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x256xbf16>, memref<64x256xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x256xf32>) : vector<64x64xbf16>, memref<64x256xbf16, #shared> -> vector<64x256xf32>
    scf.yield %t : vector<64x256xf32>
  }
  return
}

// CHECK-LABEL: func @memory
// CHECK-NOT: scf.if
func.func @memory(%k: memref<?x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %u = arith.truncf %t : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %u, %k[%i, %c0] dims [0, 1] : vector<64x64xbf16>, memref<?x64xbf16>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// The next iteration starts with what comes back from memory at the end of this one.

// CHECK-LABEL: func @late
// CHECK-NOT: scf.if
func.func @late(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %f = arith.constant dense<1.0> : vector<64x64xbf16>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s, %left = %f) -> (vector<64x64xf32>, vector<64x64xbf16>) {
    %w = gdn_tile.mma %left, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %u = arith.truncf %t : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %u, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    %next = gdn_tile.load %ot[%c0, %c0] dims [1, 0] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
    scf.yield %t, %next : vector<64x64xf32>, vector<64x64xbf16>
  }
  return
}

// 128 registers over the back edge and 64 of left operands with which an iteration opens.

// CHECK-LABEL: func @opening
// CHECK-NOT: scf.if
func.func @opening(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x128xbf16, #shared>
  %pt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xf32, #shared>
  %s = arith.constant dense<1.0> : vector<64x128xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x128xf32>) {
    %high = arith.truncf %state : vector<64x128xf32> to vector<64x128xbf16>
    %back = arith.extf %high : vector<64x128xbf16> to vector<64x128xf32>
    %left = arith.subf %state, %back : vector<64x128xf32>
    %low = arith.truncf %left : vector<64x128xf32> to vector<64x128xbf16>
    %w0 = gdn_tile.mma %low, %kt {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
    %w = gdn_tile.mma %high, %kt acc(%w0 : vector<64x64xf32>) {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
    %o = gdn_tile.mma %high, %kt {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x128xf32>) : vector<64x64xbf16>, memref<64x128xbf16, #shared> -> vector<64x128xf32>
    %p = gdn_tile.mma %b, %pt acc(%o : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %p, %ot[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    scf.yield %t : vector<64x128xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Two rings: the wait for the second comes behind the product that reads the first alone. The stage that only the
// product of the state reads is released in front of the next wait, that of the other product behind it.

// CHECK-LABEL: func @two_rings
// CHECK: scf.for %[[I:.*]] = %c0 to
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.ring_release %[[K:.*]][%[[I]]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK: gdn_tile.ring_wait %[[K]][%[[NEXT]]]
// CHECK: gdn_tile.mma %{{.*}} {transpose_b}
// CHECK: gdn_tile.ring_release %[[T:.*]][%[[I]]]
// CHECK: gdn_tile.ring_wait %[[T]][%[[NEXT]]]
// CHECK: gdn_tile.mma %{{.*}} {transpose_b}
func.func @two_rings(%n: index, %o: memref<64x64xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ks = memref.alloc() : memref<2x64x64xbf16, #shared>
  %ts = memref.alloc() : memref<2x64x64xbf16, #shared>
  %kring = gdn_tile.ring(%ks : memref<2x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  %tring = gdn_tile.ring(%ts : memref<2x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %initial = arith.constant dense<1.0> : vector<64x64xf32>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
        gdn_tile.ring_wait %kring[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_wait %tring[%i] : !gdn_tile.ring<2>
        %stage = arith.remui %i, %c2 : index
        %kt = gdn_tile.stage %ks[%stage] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %tt = gdn_tile.stage %ts[%stage] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
        %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
        %x = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %x16 = arith.truncf %x : vector<64x64xf32> to vector<64x64xbf16>
        %u = gdn_tile.mma %x16, %tt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %u16 = arith.truncf %u : vector<64x64xf32> to vector<64x64xbf16>
        %next = gdn_tile.mma %u16, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %y = gdn_tile.mma %u16, %tt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        gdn_tile.store %y, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
        gdn_tile.ring_release %kring[%i] : !gdn_tile.ring<2>
        gdn_tile.ring_release %tring[%i] : !gdn_tile.ring<2>
        scf.yield %next : vector<64x64xf32>
      }
      gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// 160 registers over the back edge: the products and their results have too few left, even with 16 of left operands.

// CHECK-LABEL: func @carried
// CHECK-NOT: scf.if
func.func @carried(%n: index, %o: memref<64x64xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %x = arith.mulf %state, %s : vector<64x64xf32>
    %y = arith.addf %state, %s : vector<64x64xf32>
    %z = arith.subf %state, %s : vector<64x64xf32>
    %d = arith.mulf %state, %state : vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%d : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %p = gdn_tile.mma %b, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %px = arith.mulf %p, %x : vector<64x64xf32>
    %py = arith.mulf %px, %y : vector<64x64xf32>
    %pz = arith.mulf %py, %z : vector<64x64xf32>
    gdn_tile.store %pz, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// What the tile held before would be read behind the copy, which opens an iteration.

// CHECK-LABEL: func @overwritten
// CHECK-NOT: scf.if
func.func @overwritten(%k: memref<?x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %old = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %d = arith.extf %old : vector<64x64xbf16> to vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%d : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// The products that follow the first ones need what comes back from memory at the end of this iteration.

// CHECK-LABEL: func @late_for_others
// CHECK-NOT: scf.if
func.func @late_for_others(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xf32, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s, %sum = %s) -> (vector<64x64xf32>, vector<64x64xf32>) {
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %b, %kt acc(%sum : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %c = arith.truncf %u : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %c, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %t, %ot[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    %next = gdn_tile.load %ot[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
    scf.yield %t, %next : vector<64x64xf32>, vector<64x64xf32>
  }
  return
}

// Products wait for one another in front of a branch: of what is left of an iteration it comes last.

// CHECK-LABEL: func @branch_last
// CHECK: scf.for
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.mma
// CHECK-NEXT: gdn_tile.store
// CHECK-NEXT: scf.if
func.func @branch_last(%n: index, %c: i1, %x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %s = arith.constant dense<1.0> : vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s) -> (vector<64x64xf32>) {
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %p = gdn_tile.mma %b, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.if %c {
      gdn_tile.store %p, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
    gdn_tile.store %p, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Warps of few registers have none for what spans two iterations, and what runs ahead stays in its loop.

// CHECK-LABEL: func @few_registers
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %arg2 step %c1
// CHECK-LABEL: func @ahead
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %arg2 step %c1
// CHECK: gdn_tile.ahead
func.func @few_registers(%s: memref<64x64xf32>, %o: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) registers(208) {
      %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
        %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
        %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
        %t = gdn_tile.mma %b, %kt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        scf.yield %t : vector<64x64xf32>
      }
      gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
  }
  return
}
func.func @ahead(%s: memref<64x64xf32>, %o: memref<64x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %pt = memref.alloc() : memref<64x64xbf16, #shared>
  %initial = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %initial) -> (vector<64x64xf32>) {
    gdn_tile.ahead teams(1) {
      %p = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      gdn_tile.store %p, %pt[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    %a = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %w = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %b = arith.truncf %w : vector<64x64xf32> to vector<64x64xbf16>
    %t = gdn_tile.mma %b, %pt acc(%state : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %t : vector<64x64xf32>
  }
  gdn_tile.store %r, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
