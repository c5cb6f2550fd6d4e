// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-specialize-warps))' --split-input-file | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-specialize-warps))' --split-input-file | gdn-opt --split-input-file -o /dev/null

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// A loop in front of the one with the roles has rings of its own in the same roles: two stages of what products read, one of what
// is only added, waited for in front of its use. Their bytes are those of the other rings when the math role has released them all.

// CHECK-LABEL: func @walk
// CHECK: %[[M:.*]] = memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[LED:.*]] = gdn_tile.ring(%[[M]] : {{.*}}) producers(3) consumers(4) : <2>
// CHECK: %[[N:.*]] = memref.alloc() : memref<1x64x64xf32
// CHECK: %[[ADDED:.*]] = gdn_tile.ring(%[[N]] : {{.*}}) producers(3) consumers(4) : <1>
// CHECK: %[[K:.*]] = memref.alloc() : memref<3x64x64xbf16
// CHECK: %[[IN:.*]] = gdn_tile.ring(%[[K]] : {{.*}}) producers(3) consumers(4) : <3>
// CHECK: memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[OUT:.*]] = gdn_tile.ring({{.*}}) producers(4) consumers(1) : <2>

// CHECK: gdn_tile.role "math" warps(4) {
// CHECK-NEXT: gdn_tile.await_launch
// CHECK: %[[INIT:.*]] = gdn_tile.load %arg3
// CHECK: %[[START:.*]] = scf.for %[[J:.*]] = %c0 to %arg5 step %c1 iter_args(%{{.*}} = %[[INIT]])
// CHECK-NOT: gdn_tile.ring_wait %[[ADDED]]
// CHECK: gdn_tile.ring_wait %[[LED]][%[[J]]]
// CHECK-NOT: gdn_tile.ring_wait
// CHECK: gdn_tile.mma
// CHECK-NEXT: gdn_tile.ring_wait %[[ADDED]][%[[J]]]
// CHECK: gdn_tile.load
// CHECK: gdn_tile.ring_release %[[LED]][%[[J]]]
// CHECK-NEXT: gdn_tile.ring_release %[[ADDED]][%[[J]]]
// CHECK-NEXT: scf.yield
// CHECK: scf.for %[[I:.*]] = %c0 to %arg6 step %c1 iter_args(%{{.*}} = %[[START]])
// CHECK-NEXT: gdn_tile.ring_wait %[[IN]][%[[I]]]
// CHECK-NOT: gdn_tile.stages

// CHECK: gdn_tile.role "load" warps(3) {
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %arg5 step %c1 {
// CHECK-NEXT: gdn_tile.ring_acquire %[[LED]][%[[J]]]
// CHECK: gdn_tile.copy_in %arg1
// CHECK: gdn_tile.ring_commit
// CHECK: gdn_tile.ring_acquire %[[ADDED]][%[[J]]]
// CHECK: gdn_tile.copy_in %arg2
// CHECK: gdn_tile.ring_commit
// CHECK: }
// CHECK: %[[COUNT:.*]] = arith.maxsi %arg5, %c0
// CHECK-NEXT: gdn_tile.ring_drain %[[LED]][%[[COUNT]]] before(%[[IN]], %[[OUT]] : !gdn_tile.ring<3>, !gdn_tile.ring<2>) : <2>
// CHECK-NEXT: gdn_tile.ring_drain %[[ADDED]][%[[COUNT]]] before(%[[IN]], %[[OUT]] : !gdn_tile.ring<3>, !gdn_tile.ring<2>) : <1>
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %arg6 step %c1 {
// CHECK-NOT: gdn_tile.await_launch
// CHECK: gdn_tile.ring_acquire %[[IN]][%[[I]]]
// CHECK: gdn_tile.copy_in %arg0

// CHECK: gdn_tile.role "store" warps(1) {
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %arg6 step %c1 {
func.func @walk(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %n: memref<?x64x64xf32>, %s: memref<64x64xf32>, %o: memref<?x64xbf16>,
                %steps: index, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %nt = memref.alloc() : memref<64x64xf32, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.await_launch
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %steps step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %n[%j, %c0, %c0] dims [1, 2] to %nt : memref<?x64x64xf32> to memref<64x64xf32, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %local = gdn_tile.load %nt[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<64x64xf32>
    %next = arith.addf %p, %local : vector<64x64xf32>
    scf.yield %next : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    %row = arith.muli %i, %c64 : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %out = arith.truncf %p : vector<64x64xf32> to vector<64x64xbf16>
    gdn_tile.store %out, %ot[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%row, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<?x64xbf16>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Iterations of the loop in front are counted from 0: no roles for one that starts elsewhere.
// CHECK-LABEL: func @from_one
// CHECK-NOT: gdn_tile.roles
func.func @from_one(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %steps: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c1 to %steps step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %steps step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// How often the loop in front runs is read behind the wait for the launch in front, as is the place of what it copies: no roles.
// CHECK-LABEL: func @bound_behind
// CHECK-NOT: gdn_tile.roles
// CHECK-LABEL: func @place_behind
// CHECK-NOT: gdn_tile.roles
func.func @bound_behind(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %bounds: memref<2xindex>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.await_launch
  %steps = memref.load %bounds[%c0] : memref<2xindex>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %steps step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
func.func @place_behind(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %bounds: memref<2xindex>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.await_launch
  %first = memref.load %bounds[%c1] : memref<2xindex>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %count step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    %at = arith.addi %first, %j : index
    gdn_tile.copy_in %m[%at, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Nor for a loop in front that does not count by one, has one stage, or a copy that no other warps can issue: its place is known
// to the loop alone, or is read behind the wait for the launch in front.
// CHECK-LABEL: func @by_two
// CHECK-NOT: gdn_tile.roles
// CHECK-LABEL: func @one_stage
// CHECK-NOT: gdn_tile.roles
// CHECK-LABEL: func @copy_that_stays
// CHECK-NOT: gdn_tile.roles
// CHECK-LABEL: func @row_behind
// CHECK-NOT: gdn_tile.roles
func.func @by_two(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %count step %c2 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
func.func @one_stage(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %count step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 1 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
func.func @copy_that_stays(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %n: memref<?x64x64xbf16>, %places: memref<?xindex>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %nt = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start, %end = scf.for %j = %c0 to %count step %c1 iter_args(%state = %init, %at = %c0) -> (vector<64x64xf32>, index) {
    gdn_tile.copy_in %m[%j, %c0, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %n[%at, %c0, %c0] dims [1, 2] to %nt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %q = gdn_tile.mma %half, %nt acc(%p : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %next = memref.load %places[%at] : memref<?xindex>
    scf.yield %q, %next : vector<64x64xf32>, index
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
func.func @row_behind(%k: memref<?x64xbf16>, %m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %places: memref<2xindex>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %mt = memref.alloc() : memref<64x64xbf16, #shared>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  gdn_tile.await_launch
  %row = memref.load %places[%c1] : memref<2xindex>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %start = scf.for %j = %c0 to %count step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%j, %row, %c0] dims [1, 2] to %mt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %mt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %final = scf.for %i = %c0 to %count step %c1 iter_args(%state = %start) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %kt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// One loop in front, not two.
// CHECK-LABEL: func @two_in_front
// CHECK-NOT: gdn_tile.roles
func.func @two_in_front(%m: memref<?x64x64xbf16>, %s: memref<64x64xf32>, %count: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %at = memref.alloc() : memref<64x64xbf16, #shared>
  %bt = memref.alloc() : memref<64x64xbf16, #shared>
  %ct = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %first = scf.for %i = %c0 to %count step %c1 iter_args(%state = %init) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%i, %c0, %c0] dims [1, 2] to %at : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %at : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %second = scf.for %i = %c0 to %count step %c1 iter_args(%state = %first) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%i, %c0, %c0] dims [1, 2] to %bt : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %bt : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  %last = scf.for %i = %c0 to %count step %c1 iter_args(%state = %second) -> (vector<64x64xf32>) {
    gdn_tile.copy_in %m[%i, %c0, %c0] dims [1, 2] to %ct : memref<?x64x64xbf16> to memref<64x64xbf16, #shared>
    %half = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %p = gdn_tile.mma %half, %ct : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %last, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
