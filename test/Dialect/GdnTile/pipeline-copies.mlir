// RUN: gdn-opt %s -gdn-tile-pipeline-copies -split-input-file -verify-diagnostics | FileCheck %s

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x8xf32, #gpu.address_space<workgroup>>
!row = memref<16xf32, #gpu.address_space<workgroup>>

// Two stages: one group before the loop, one in flight during the work.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[X:.*]]: memref<?x8xf32>, %[[N:.*]]: index)
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK:         %[[BUFFERS:.*]] = memref.alloc() : memref<2x16x8xf32, #gpu.address_space<workgroup>>
// The first iteration's copy has rows if there is a first iteration.
// CHECK:         %[[HAS:.*]] = arith.cmpi slt, %[[C0]], %[[N]]
// CHECK:         %[[ROWS:.*]] = arith.subi %[[N]], %[[C0]]
// CHECK:         %[[VALID:.*]] = arith.select %[[HAS]], %[[ROWS]], %{{.*}}
// CHECK:         %[[TILE:.*]] = gdn_tile.stage %[[BUFFERS]][%{{.*}}]
// CHECK:         %[[T:.*]] = gdn_tile.copy_in %[[X]][%[[C0]], %[[C0]]] dims [0, 1] valid(%[[VALID]], %{{.*}}) to %[[TILE]]
// CHECK-SAME:      -> !gdn_tile.token
// CHECK:         %[[G:.*]] = gdn_tile.join %[[T]]
// CHECK:         %[[E:.*]]:3 = scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C16]]
// CHECK-SAME:      iter_args(%[[ACC:.*]] = %{{.*}}, %[[H:.*]] = %[[G]], %[[S:.*]] = %{{.*}}) -> (vector<16x8xf32>, !gdn_tile.token, index)
// CHECK-NEXT:      gdn_tile.wait %[[H]]
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %[[C16]]
// CHECK:           %[[OTHER:.*]] = arith.select
// CHECK:           %[[HAS:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK:           %[[ROWS:.*]] = arith.subi %[[N]], %[[NEXT]]
// CHECK:           %[[VALID:.*]] = arith.select %[[HAS]], %[[ROWS]], %{{.*}}
// CHECK:           %[[TILE:.*]] = gdn_tile.stage %[[BUFFERS]][%[[OTHER]]]
// CHECK:           %[[T:.*]] = gdn_tile.copy_in %[[X]][%[[NEXT]], %[[C0]]] dims [0, 1] valid(%[[VALID]], %{{.*}}) to %[[TILE]]
// CHECK:           %[[J:.*]] = gdn_tile.join %[[T]]
// CHECK:           %[[UP:.*]] = arith.select
// CHECK:           %[[TILE:.*]] = gdn_tile.stage %[[BUFFERS]][%[[S]]]
// CHECK-NOT:       gdn_tile.copy_in
// CHECK:           %[[V:.*]] = gdn_tile.load %[[TILE]]
// CHECK:           %[[SUM:.*]] = arith.addf %[[ACC]], %[[V]]
// CHECK:           scf.yield %[[SUM]], %[[J]], %[[UP]]
// CHECK-NEXT:    }
// CHECK-NOT:     gdn_tile.stages
// CHECK:         gdn_tile.wait %[[E]]#1
// CHECK:         gdn_tile.store %[[E]]#0
func.func @two(%x: memref<?x8xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16x8xf32>
  %tile = memref.alloc() : !tile
  %sum = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> vector<16x8xf32> {
    %rows = arith.subi %n, %i : index
    gdn_tile.copy_in %x[%i, %c0] dims [0, 1] valid(%rows, %c8) to %tile : memref<?x8xf32> to !tile
    %v = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : !tile, vector<16x8xf32>
    %next = arith.addf %acc, %v : vector<16x8xf32>
    scf.yield %next : vector<16x8xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %sum, %x[%n, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// Three stages: two groups before the loop, waits leave one in flight.
// CHECK-LABEL: func.func @three(
// CHECK:         memref.alloc() : memref<3x16x8xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[G0:.*]] = gdn_tile.join
// CHECK:         %[[G1:.*]] = gdn_tile.join
// CHECK:         %[[E:.*]]:3 = scf.for
// CHECK-SAME:      iter_args(%[[H0:.*]] = %[[G0]], %[[H1:.*]] = %[[G1]], %{{.*}} = %{{.*}}) -> (!gdn_tile.token, !gdn_tile.token, index)
// CHECK-NEXT:      gdn_tile.wait %[[H0]] {pending = 1 : i64}
// CHECK:           %[[J:.*]] = gdn_tile.join
// CHECK:           scf.yield %[[H1]], %[[J]], %{{.*}}
// CHECK:         gdn_tile.wait %[[E]]#1{{$}}
func.func @three(%x: memref<?x8xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %tile = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c16 {
    gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %tile : memref<?x8xf32> to !tile
    gdn_tile.cumsum %tile : !tile
  } {gdn_tile.stages = 3 : i64}
  return
}

// An index that is loaded is loaded only for iterations that exist.
// CHECK-LABEL: func.func @table(
// CHECK-SAME:    %[[X:.*]]: memref<?x8xf32>, %[[STARTS:.*]]: memref<?xindex>, %[[N:.*]]: index)
// CHECK-NOT:     memref.load
// CHECK:         %[[HAS:.*]] = arith.cmpi slt, %[[I:.*]], %[[N]]
// CHECK:         %[[START:.*]]:2 = scf.if %[[HAS]] -> (index, index) {
// CHECK-NEXT:      %[[V:.*]] = memref.load %[[STARTS]][%[[I]]]
// CHECK-NEXT:      scf.yield %[[V]], %{{.*}}
// CHECK:         gdn_tile.copy_in %[[X]][%[[START]]#0, %[[START]]#1]
// CHECK:         scf.for
// CHECK-NOT:       memref.load
// CHECK:           scf.if
// CHECK:             memref.load
// CHECK-NOT:       memref.load
// CHECK:         return
func.func @table(%x: memref<?x8xf32>, %starts: memref<?xindex>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tile = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c1 {
    %start = memref.load %starts[%i] : memref<?xindex>
    gdn_tile.copy_in %x[%start, %c0] dims [0, 1] to %tile : memref<?x8xf32> to !tile
    gdn_tile.cumsum %tile : !tile
  } {gdn_tile.stages = 2 : i64}
  return
}

// What does not qualify stays: %b converts, %c is read before it is filled, %d is
// filled twice, %e depends on a carried value, %f comes from what the
// loop writes, %g is used behind the loop.
// CHECK-LABEL: func.func @others(
// CHECK:         memref.alloc() : memref<2x16xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-1: gdn_tile.copy_in {{.*}} -> !gdn_tile.token
// CHECK:         scf.for
// CHECK:           gdn_tile.copy_in {{.*}} -> !gdn_tile.token
// CHECK-NOT:       gdn_tile.token
// CHECK-COUNT-7:   gdn_tile.copy_in {{.*}} {{to memref<16xf32, #gpu.address_space<workgroup>>$}}
// CHECK-NOT:       gdn_tile.copy_in
// CHECK:         return
func.func @others(%x: memref<?xf32>, %y: memref<?xbf16>, %z: memref<?xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %a = memref.alloc() : !row
  %b = memref.alloc() : !row
  %c = memref.alloc() : !row
  %d = memref.alloc() : !row
  %e = memref.alloc() : !row
  %f = memref.alloc() : !row
  %g = memref.alloc() : !row
  %last = scf.for %i = %c0 to %n step %c16 iter_args(%j = %n) -> index {
    gdn_tile.cumsum %c : !row
    gdn_tile.copy_in %x[%i] dims [0] to %a : memref<?xf32> to !row
    gdn_tile.copy_in %y[%i] dims [0] to %b : memref<?xbf16> to !row
    gdn_tile.copy_in %x[%i] dims [0] to %c : memref<?xf32> to !row
    gdn_tile.copy_in %x[%i] dims [0] to %d : memref<?xf32> to !row
    gdn_tile.copy_in %x[%i] dims [0] to %d : memref<?xf32> to !row
    gdn_tile.copy_in %x[%j] dims [0] to %e : memref<?xf32> to !row
    gdn_tile.copy_in %z[%i] dims [0] to %f : memref<?xf32> to !row
    gdn_tile.copy_in %x[%i] dims [0] to %g : memref<?xf32> to !row
    gdn_tile.copy_out %a to %z[%i] dims [0] : !row to memref<?xf32>
    %k = arith.subi %j, %c16 : index
    scf.yield %k : index
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.cumsum %g : !row
  return
}

// CHECK-LABEL: func.func @none(
// CHECK-NOT:     gdn_tile.token
// CHECK-NOT:     gdn_tile.stages
func.func @none(%y: memref<?xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %b = memref.alloc() : !row
  // expected-remark @below {{has no copy that can run ahead}}
  scf.for %i = %c0 to %n step %c16 {
    gdn_tile.copy_in %y[%i] dims [0] to %b : memref<?xbf16> to !row
  } {gdn_tile.stages = 2 : i64}
  // One stage asks for nothing.
  scf.for %i = %c0 to %n step %c16 {
    gdn_tile.copy_in %y[%i] dims [0] to %b : memref<?xbf16> to !row
  } {gdn_tile.stages = 1 : i64}
  return
}

// -----

func.func @attribute(%n: index) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'gdn_tile.stages' must be a positive i64 on an scf.for}}
  scf.for %i = %c0 to %n step %n {
  } {gdn_tile.stages = 0 : i64}
  return
}
