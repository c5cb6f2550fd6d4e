// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-tile-overlap-products))" | FileCheck %s

#shared = #gpu.address_space<workgroup>

// The chunk of a scan: the second product on %a is issued with the first, the
// pair that continues %u is waited for once, the elementwise work on %s and %o
// lies under younger products, and nothing crosses the barrier.

// CHECK-LABEL: func @chunk(
// CHECK: gdn_tile.barrier
// CHECK: %[[SK:.*]] = gdn_tile.mma %[[A:.*]], %[[K:.*]] {transpose_b} {{.*}} -> !gdn_tile.pending<vector<64x64xf32>>
// CHECK-NEXT: %[[SQ:.*]] = gdn_tile.mma %[[A]], %[[Q:.*]] {transpose_b}
// CHECK-NEXT: %[[S:.*]] = gdn_tile.mma_wait %[[SK]] {pending = 1 : i64} : <vector<64x64xf32>>
// CHECK-NEXT: %[[W:.*]] = arith.truncf %[[S]]
// CHECK-NEXT: %[[U0:.*]] = gdn_tile.mma %[[W]]
// CHECK-NEXT: %[[U1:.*]] = gdn_tile.mma %[[W]], %{{.*}} acc(%[[U0]] : !gdn_tile.pending<vector<64x64xf32>>)
// CHECK-NEXT: %[[O:.*]] = gdn_tile.mma_wait %[[SQ]] {pending = 2 : i64}
// CHECK-NEXT: %[[OS:.*]] = arith.addf %[[O]], %[[O]]
// CHECK-NEXT: %[[U:.*]] = gdn_tile.mma_wait %[[U1]] :
// CHECK-NEXT: %[[UB:.*]] = arith.truncf %[[U]]
// CHECK-NEXT: %[[KV:.*]] = gdn_tile.mma %[[UB]], %[[K]] acc(%{{.*}} : vector<64x128xf32>) :
// CHECK-NEXT: %[[PU:.*]] = gdn_tile.mma %[[UB]], %{{.*}} acc(%[[OS]] : vector<64x64xf32>) {transpose_b}
// CHECK-NEXT: %[[END:.*]] = gdn_tile.mma_wait %[[PU]] :
// CHECK-NEXT: gdn_tile.store %[[END]]
// Done since the wait for a younger one.
// CHECK-NEXT: %[[NEXT:.*]] = gdn_tile.mma_wait %[[KV]] :
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: arith.mulf %[[NEXT]]
func.func @chunk(%state: vector<64x128xf32>, %a: vector<64x128xbf16>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x128xbf16, #shared>
  %q = memref.alloc() : memref<64x128xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %out = memref.alloc() : memref<64x64xf32, #shared>
  gdn_tile.barrier
  %s = gdn_tile.mma %a, %k {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
  %w = arith.truncf %s : vector<64x64xf32> to vector<64x64xbf16>
  %u0 = gdn_tile.mma %w, %t {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %u = gdn_tile.mma %w, %t acc(%u0 : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %o = gdn_tile.mma %a, %q {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
  %os = arith.addf %o, %o : vector<64x64xf32>
  %ub = arith.truncf %u : vector<64x64xf32> to vector<64x64xbf16>
  %next = gdn_tile.mma %ub, %k acc(%state : vector<64x128xf32>) : vector<64x64xbf16>, memref<64x128xbf16, #shared> -> vector<64x128xf32>
  %end = gdn_tile.mma %ub, %t acc(%os : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  gdn_tile.store %end, %out[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
  gdn_tile.barrier
  %use = arith.mulf %next, %next : vector<64x128xf32>
  return
}

// Copies of the next iteration are issued behind the products that are ready,
// but not over a fence.

// CHECK-LABEL: func @copies(
// CHECK: %[[FIRST:.*]] = gdn_tile.copy_in
// CHECK-NEXT: %[[GROUP:.*]] = gdn_tile.join %[[FIRST]]
// CHECK-NEXT: gdn_tile.wait %[[GROUP]]
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: %[[P:.*]] = gdn_tile.mma
// CHECK-NEXT: %[[NEXT:.*]] = gdn_tile.copy_in
// CHECK-NEXT: gdn_tile.join %[[NEXT]]
// CHECK-NEXT: gdn_tile.mma_wait %[[P]]
func.func @copies(%x: memref<?x64xbf16>, %i: index, %a: vector<64x64xbf16>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %l = memref.alloc() : memref<64x64xbf16, #shared>
  %t0 = gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %k : memref<?x64xbf16> to memref<64x64xbf16, #shared> -> !gdn_tile.token
  %g0 = gdn_tile.join %t0
  gdn_tile.wait %g0
  gdn_tile.barrier
  %t1 = gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %l : memref<?x64xbf16> to memref<64x64xbf16, #shared> -> !gdn_tile.token
  %g1 = gdn_tile.join %t1
  %s = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %u = arith.mulf %s, %s : vector<64x64xf32>
  gdn_tile.wait %g1
  return
}

// Products that no warpgroup can take stay synchronous: two warps, f32, rows
// of 64 bytes.

// CHECK-LABEL: func @two_warps(
// CHECK-NOT: pending
func.func @two_warps(%a: vector<32x64xbf16>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %s = gdn_tile.mma %a, %k : vector<32x64xbf16>, memref<64x64xbf16, #shared> -> vector<32x64xf32>
  return
}

// CHECK-LABEL: func @others(
// CHECK-NOT: pending
func.func @others(%a: vector<64x64xf32>, %b: vector<64x64xbf16>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %k = memref.alloc() : memref<64x64xf32, #shared>
  %l = memref.alloc() : memref<64x32xbf16, #shared>
  %0 = gdn_tile.mma %a, %k : vector<64x64xf32>, memref<64x64xf32, #shared> -> vector<64x64xf32>
  %1 = gdn_tile.mma %b, %l : vector<64x64xbf16>, memref<64x32xbf16, #shared> -> vector<64x32xf32>
  return
}

// A product passes only those that wait for more others: the second one goes in
// front of the one that waits for the first, but stays behind the first.

// CHECK-LABEL: func @levels(
// CHECK: %[[P:.*]] = gdn_tile.mma %arg0, %alloc :
// CHECK: %[[Q:.*]] = gdn_tile.mma %arg0, %alloc_0
// CHECK-NEXT: %[[W:.*]] = gdn_tile.mma_wait %[[P]] {pending = 1 : i64}
// CHECK: %[[R:.*]] = gdn_tile.mma %{{.*}}, %alloc :
// CHECK-NEXT: gdn_tile.mma %{{.*}}, %alloc_0
func.func @levels(%a: vector<64x64xbf16>, %o: memref<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %l = memref.alloc() : memref<64x64xbf16, #shared>
  %p = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %b = arith.truncf %p : vector<64x64xf32> to vector<64x64xbf16>
  %r = gdn_tile.mma %b, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %q = gdn_tile.mma %a, %l : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %s = gdn_tile.mma %b, %l : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  gdn_tile.store %q, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  gdn_tile.store %r, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  gdn_tile.store %s, %o[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// In a role, the rows that are used in the shadow of a product are loaded in
// front of it, 40 registers of them, and single numbers. A product waits until
// the stage that it reads is full, and is complete before that stage is released;
// those of other stages run on.

// CHECK-LABEL: func @stages(
// CHECK: gdn_tile.ring_wait %[[RING:.*]][%arg2]
// CHECK: gdn_tile.load %{{.*}} : memref<64xf32, {{.*}}>, vector<1x64xf32>
// CHECK-NEXT: gdn_tile.load %{{.*}} : memref<64xf32, {{.*}}>, vector<1x64xf32>
// CHECK-NEXT: memref.load
// CHECK-NEXT: %[[P:.*]] = gdn_tile.mma
// CHECK: gdn_tile.load %{{.*}} : memref<64xf32, {{.*}}>, vector<1x64xf32>
// CHECK: gdn_tile.ring_wait %[[RING]]
// CHECK: %[[Q:.*]] = gdn_tile.mma
// CHECK: gdn_tile.mma_wait %[[P]] {pending = 1 : i64}
// CHECK: gdn_tile.ring_release %[[RING]][%arg2]
// CHECK: gdn_tile.mma_wait %[[Q]]
func.func @stages(%x: memref<64x64xf32>, %n: index, %i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ks = memref.alloc() : memref<2x64x64xbf16, #shared>
  %gs = memref.alloc() : memref<2x64xf32, #shared>
  %ring = gdn_tile.ring(%ks, %gs : memref<2x64x64xbf16, #shared>, memref<2x64xf32, #shared>) producers(4) consumers(4) : !gdn_tile.ring<2>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %a = arith.constant dense<1.0> : vector<64x64xbf16>
      gdn_tile.ring_wait %ring[%i] : !gdn_tile.ring<2>
      %s = arith.remui %i, %c2 : index
      %k = gdn_tile.stage %ks[%s] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %g = gdn_tile.stage %gs[%s] : memref<2x64xf32, #shared> to memref<64xf32, #shared>
      %p = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      %f0 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %f1 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %f2 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %one = memref.load %g[%c0] : memref<64xf32, #shared>
      %ones = vector.broadcast %one : f32 to vector<1x64xf32>
      gdn_tile.store %ones, %x[%c0, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %f0, %x[%c0, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %f1, %x[%c1, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %f2, %x[%c2, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      %j = arith.addi %i, %c1 : index
      gdn_tile.ring_wait %ring[%j] : !gdn_tile.ring<2>
      %t = arith.remui %j, %c2 : index
      %l = gdn_tile.stage %ks[%t] : memref<2x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %q = gdn_tile.mma %a, %l : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      gdn_tile.ring_release %ring[%i] : !gdn_tile.ring<2>
      gdn_tile.store %p, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.store %q, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      gdn_tile.ring_release %ring[%j] : !gdn_tile.ring<2>
    }
  }
  return
}

// Two warpgroups have fewer registers each. A fragment that is only rounded leaves
// them in front of the second product behind its own; loads are issued in front
// of them all. Outside of loops, loads stay where they are.

// CHECK-LABEL: func @two_warpgroups(
// CHECK: gdn_tile.load %alloc_2
// CHECK-NEXT: %[[P:.*]] = gdn_tile.mma %{{.*}} acc(
// CHECK-NEXT: %[[K:.*]] = gdn_tile.mma %[[A:.*]], %alloc {transpose_b}
// CHECK-NEXT: %[[O:.*]] = gdn_tile.mma_wait %[[P]] {pending = 1 : i64}
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[O]]
// CHECK-NEXT: %[[Q:.*]] = gdn_tile.mma %[[A]], %alloc_0 {transpose_b}
// CHECK-NEXT: gdn_tile.store %[[R]]
// CHECK: gdn_tile.mma_wait %[[K]]
// CHECK: gdn_tile.mma %
// CHECK-NEXT: gdn_tile.load %alloc_2

// One warpgroup rounds where the fragment is needed.

// CHECK-LABEL: func @one_warpgroup(
// CHECK: gdn_tile.load %alloc_2
// CHECK-NEXT: %[[P:.*]] = gdn_tile.mma %{{.*}} acc(
// CHECK-NEXT: gdn_tile.mma
// CHECK-NEXT: gdn_tile.mma
// CHECK-NEXT: gdn_tile.mma_wait %[[P]] {pending = 2 : i64}
// CHECK: gdn_tile.load %alloc_2
// CHECK-NEXT: gdn_tile.mma
func.func @two_warpgroups(%x: memref<128x64xf32>, %z: memref<64x128xbf16>, %p: vector<128x64xf32>, %b: vector<128x64xbf16>, %s: vector<128x128xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloc() : memref<64x128xbf16, #shared>
  %q = memref.alloc() : memref<64x128xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %v = memref.alloc() : memref<64x128xbf16, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(8) {
      scf.for %i = %c0 to %n step %c1 {
        %p0 = gdn_tile.mma %b, %t acc(%p : vector<128x64xf32>) {transpose_b} : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
        %p1 = gdn_tile.mma %s, %k {transpose_b} : vector<128x128xbf16>, memref<64x128xbf16, #shared> -> vector<128x64xf32>
        %p2 = gdn_tile.mma %s, %q {transpose_b} : vector<128x128xbf16>, memref<64x128xbf16, #shared> -> vector<128x64xf32>
        %r = arith.truncf %p0 : vector<128x64xf32> to vector<128x64xbf16>
        gdn_tile.store %r, %z[%c0, %c0] dims [1, 0] : vector<128x64xbf16>, memref<64x128xbf16>
        %f = gdn_tile.load %v[%c0, %c0] dims [1, 0] : memref<64x128xbf16, #shared>, vector<128x64xbf16>
        %g = arith.extf %f : vector<128x64xbf16> to vector<128x64xf32>
        %d = arith.subf %g, %p1 : vector<128x64xf32>
        gdn_tile.store %d, %x[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
        gdn_tile.store %p2, %x[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
      }
      %p1 = gdn_tile.mma %s, %k {transpose_b} : vector<128x128xbf16>, memref<64x128xbf16, #shared> -> vector<128x64xf32>
      %f = gdn_tile.load %v[%c0, %c0] dims [1, 0] : memref<64x128xbf16, #shared>, vector<128x64xbf16>
      %g = arith.extf %f : vector<128x64xbf16> to vector<128x64xf32>
      %d = arith.subf %g, %p1 : vector<128x64xf32>
      gdn_tile.store %d, %x[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
    }
  }
  return
}

func.func @one_warpgroup(%x: memref<64x64xf32>, %z: memref<64x64xbf16>, %p: vector<64x64xf32>, %b: vector<64x64xbf16>, %s: vector<64x128xbf16>, %n: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloc() : memref<64x128xbf16, #shared>
  %q = memref.alloc() : memref<64x128xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %v = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      scf.for %i = %c0 to %n step %c1 {
        %p0 = gdn_tile.mma %b, %t acc(%p : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
        %p1 = gdn_tile.mma %s, %k {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
        %p2 = gdn_tile.mma %s, %q {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
        %r = arith.truncf %p0 : vector<64x64xf32> to vector<64x64xbf16>
        gdn_tile.store %r, %z[%c0, %c0] dims [1, 0] : vector<64x64xbf16>, memref<64x64xbf16>
        %f = gdn_tile.load %v[%c0, %c0] dims [1, 0] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
        %g = arith.extf %f : vector<64x64xbf16> to vector<64x64xf32>
        %d = arith.subf %g, %p1 : vector<64x64xf32>
        gdn_tile.store %d, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
        gdn_tile.store %p2, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
      }
      %p1 = gdn_tile.mma %s, %k {transpose_b} : vector<64x128xbf16>, memref<64x128xbf16, #shared> -> vector<64x64xf32>
      %f = gdn_tile.load %v[%c0, %c0] dims [1, 0] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      %g = arith.extf %f : vector<64x64xbf16> to vector<64x64xf32>
      %d = arith.subf %g, %p1 : vector<64x64xf32>
      gdn_tile.store %d, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
  }
  return
}

// A branch that only computes keeps no product from running on; one with a product in it does, and so does a
// use of the product in a branch.

// CHECK-LABEL: func @branches(
// CHECK: %[[P:.*]] = gdn_tile.mma %[[A:.*]], %[[K:.*]] {transpose_b}
// CHECK-NEXT: %[[Q:.*]] = gdn_tile.mma %[[A]], %[[T:.*]] {transpose_b}
// CHECK-NEXT: %[[X:.*]] = gdn_tile.mma_wait %[[P]] {pending = 1 : i64}
// CHECK-NEXT: %[[START:.*]] = scf.if
// CHECK: arith.mulf %[[X]]
// CHECK: %[[R:.*]] = arith.truncf %[[START]]
// CHECK-NEXT: %[[U:.*]] = gdn_tile.mma %[[R]], %{{.*}} acc(%[[START]]
// CHECK-NEXT: %[[W:.*]] = gdn_tile.mma_wait %[[Q]] {pending = 1 : i64}
// CHECK-NEXT: arith.addf %[[W]]
// CHECK-NEXT: %[[V:.*]] = gdn_tile.mma_wait %[[U]] :
// CHECK-NEXT: scf.if
// CHECK: gdn_tile.barrier
// CHECK-NEXT: %[[L:.*]] = gdn_tile.mma %[[R]], %{{.*}} acc(%[[V]]
// CHECK-NEXT: %[[E:.*]] = gdn_tile.mma_wait %[[L]] :
// CHECK-NEXT: scf.yield %[[E]]
func.func @branches(%x: memref<64x64xbf16>, %a: vector<64x64xbf16>, %c: i1, %y: memref<64x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.barrier
  %p = gdn_tile.mma %a, %k {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %start = scf.if %c -> vector<64x64xf32> {
    %s = arith.mulf %p, %p : vector<64x64xf32>
    scf.yield %s : vector<64x64xf32>
  } else {
    scf.yield %p : vector<64x64xf32>
  }
  %r = arith.truncf %start : vector<64x64xf32> to vector<64x64xbf16>
  %u = gdn_tile.mma %r, %k acc(%start : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %q = gdn_tile.mma %a, %t {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  %w = arith.addf %q, %q : vector<64x64xf32>
  %v = scf.if %c -> vector<64x64xf32> {
    gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %low : memref<64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.barrier
    %l = gdn_tile.mma %r, %low acc(%u : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %l : vector<64x64xf32>
  } else {
    scf.yield %u : vector<64x64xf32>
  }
  gdn_tile.store %v, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  gdn_tile.store %w, %y[%c0, %c0] dims [1, 0] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// A product is not issued in front of the wait for a stage, even if its operands are there.

// CHECK-LABEL: func @behind_the_wait
// CHECK: gdn_tile.ring_wait
// CHECK-NEXT: gdn_tile.mma
// CHECK-NEXT: gdn_tile.ring_wait
// CHECK-NEXT: gdn_tile.mma
func.func @behind_the_wait(%x: memref<64x64xbf16>, %y: memref<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<1x64x64xbf16, #shared>
  %u = memref.alloc() : memref<1x64x64xbf16, #shared>
  %first = gdn_tile.ring(%t : memref<1x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  %second = gdn_tile.ring(%u : memref<1x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<1>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xbf16>, vector<64x64xbf16>
      %ts = gdn_tile.stage %t[%c0] : memref<1x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      %us = gdn_tile.stage %u[%c0] : memref<1x64x64xbf16, #shared> to memref<64x64xbf16, #shared>
      gdn_tile.ring_wait %first[%c0] : !gdn_tile.ring<1>
      %p = gdn_tile.mma %a, %ts {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      gdn_tile.ring_wait %second[%c0] : !gdn_tile.ring<1>
      %q = gdn_tile.mma %a, %us {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      %r = arith.addf %p, %q : vector<64x64xf32>
      gdn_tile.store %r, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
  }
  return
}

// A fragment that is stored and continued is waited for; one that is only continued is not.

// CHECK-LABEL: func @stored_and_continued
// CHECK: %[[P:.*]] = gdn_tile.mma %arg0
// CHECK-NEXT: %[[W:.*]] = gdn_tile.mma_wait %[[P]] :
// CHECK-NEXT: gdn_tile.mma %arg0, %{{.*}} acc(%[[W]] : vector<64x64xf32>)
// CHECK-NEXT: gdn_tile.store %[[W]]
// CHECK-NEXT: gdn_tile.mma_wait
func.func @stored_and_continued(%a: vector<64x64xbf16>, %x: memref<64x64xf32>, %y: memref<64x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %p = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  gdn_tile.store %p, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  %q = gdn_tile.mma %a, %k acc(%p : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  gdn_tile.store %q, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// What joins the tokens of copies moves behind the products with them, where their operands hold the products back.

// CHECK-LABEL: func @joined
// CHECK: gdn_tile.barrier
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: gdn_tile.mma
// CHECK-NEXT: %[[A:.*]] = gdn_tile.copy_in
// CHECK-NEXT: %[[B:.*]] = gdn_tile.copy_in
// CHECK-NEXT: %[[T:.*]] = gdn_tile.join %[[A]], %[[B]]
// CHECK: gdn_tile.wait %[[T]]
func.func @joined(%x: memref<64x64xbf16>, %f: vector<64x64xf32>, %y: memref<64x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %l = memref.alloc() : memref<64x64xbf16, #shared>
  %m = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.barrier
  %t0 = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %l : memref<64x64xbf16> to memref<64x64xbf16, #shared> -> !gdn_tile.token
  %t1 = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %m : memref<64x64xbf16> to memref<64x64xbf16, #shared> -> !gdn_tile.token
  %t = gdn_tile.join %t0, %t1
  %a = arith.truncf %f : vector<64x64xf32> to vector<64x64xbf16>
  %p = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
  gdn_tile.store %p, %y[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  gdn_tile.wait %t
  return
}

// Rows that fill the 40 registers leave no room for another, but for a single number, which all lanes share.

// CHECK-LABEL: func @single
// CHECK-COUNT-2: gdn_tile.load %{{.*}} vector<1x64xf32>
// CHECK-NEXT: gdn_tile.load %{{.*}} vector<1x32xf32>
// CHECK-NEXT: memref.load
// CHECK-NEXT: gdn_tile.mma
func.func @single(%x: memref<64x64xf32>, %f: memref<64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %g = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(4) {
      %a = arith.constant dense<1.0> : vector<64x64xbf16>
      %p = gdn_tile.mma %a, %k : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      %f0 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %f1 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %f2 = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x32xf32>
      %one = memref.load %g[%c0] : memref<64xf32, #shared>
      %ones = vector.broadcast %one : f32 to vector<1x64xf32>
      gdn_tile.store %f0, %x[%c0, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %f1, %x[%c1, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %f2, %x[%c2, %c0] dims [1] : vector<1x32xf32>, memref<64x64xf32>
      gdn_tile.store %ones, %x[%c3, %c0] dims [1] : vector<1x64xf32>, memref<64x64xf32>
      gdn_tile.store %p, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
    }
  }
  return
}

// Warps of few registers: the two products of one left operand are waited for together, so that it is free; what only makes
// more registers of a row is made where it is used, and no load stands in front of the products.

// CHECK-LABEL: func @few_registers(
// CHECK: gdn_tile.role "math" warps(8) registers(208)
// CHECK: %[[SK:.*]] = gdn_tile.mma %[[A:.*]], %[[K:.*]] {transpose_b}
// CHECK-NEXT: %[[SQ:.*]] = gdn_tile.mma %[[A]], %{{.*}} {transpose_b}
// CHECK-NEXT: %[[S:.*]] = gdn_tile.mma_wait %[[SK]] {pending = 1 : i64} :
// CHECK-NEXT: %[[READ:.*]] = gdn_tile.mma_wait %[[SQ]] :
// CHECK-NEXT: %[[ROW:.*]] = gdn_tile.load
// CHECK-NEXT: %[[FACTOR:.*]] = vector.broadcast %[[ROW]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[S]], %[[FACTOR]]
// CHECK-NEXT: %[[START:.*]] = arith.addf %[[READ]], %[[READ]]
// CHECK-NEXT: %[[W:.*]] = arith.truncf %[[SCALED]]
// CHECK-NEXT: gdn_tile.mma %[[W]], %{{.*}} acc(%[[START]]
func.func @few_registers(%s: memref<128x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %k = memref.alloc() : memref<64x64xbf16, #shared>
  %q = memref.alloc() : memref<64x64xbf16, #shared>
  %g = memref.alloc() : memref<64xf32, #shared>
  gdn_tile.roles {
    gdn_tile.role "math" warps(8) registers(208) {
      %a = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<128x64xf32>, vector<128x64xf32>
      %a16 = arith.truncf %a : vector<128x64xf32> to vector<128x64xbf16>
      %row = gdn_tile.load %g[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %factor = vector.broadcast %row : vector<1x64xf32> to vector<128x64xf32>
      %sk = gdn_tile.mma %a16, %k {transpose_b} : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
      %scaled = arith.mulf %sk, %factor : vector<128x64xf32>
      %sq = gdn_tile.mma %a16, %q {transpose_b} : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
      %os = arith.addf %sq, %sq : vector<128x64xf32>
      %w = arith.truncf %scaled : vector<128x64xf32> to vector<128x64xbf16>
      %o = gdn_tile.mma %w, %k acc(%os : vector<128x64xf32>) {transpose_b} : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
      gdn_tile.store %o, %s[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
    }
  }
  return
}
