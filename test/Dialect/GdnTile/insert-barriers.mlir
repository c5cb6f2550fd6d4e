// RUN: gdn-opt %s -gdn-tile-insert-barriers -split-input-file -verify-diagnostics | FileCheck %s
// A second run finds nothing to do.
// RUN: gdn-opt %s -gdn-tile-insert-barriers -gdn-tile-insert-barriers -split-input-file -verify-diagnostics | FileCheck %s

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

// Read behind write, write behind read, write behind write; reads of one tile and
// accesses to different tiles need nothing, nor does global memory.
// CHECK-LABEL: func.func @line
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    memref.alloc
// CHECK-NEXT:    memref.alloc
// CHECK-NEXT:    gdn_tile.copy_in
// CHECK-NEXT:    gdn_tile.copy_in
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.copy_out
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    return
func.func @line(%x: memref<16x32xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  %b = memref.alloc() : !tile
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<16x32xf32> to !tile
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %b : memref<16x32xf32> to !tile
  %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.copy_out %b to %x[%c0, %c0] dims [0, 1] : !tile to memref<16x32xf32>
  %1 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.store %0, %a[%c0, %c0] dims [0, 1] : vector<16x32xf32>, !tile
  gdn_tile.store %0, %x[%c0, %c0] dims [0, 1] : vector<16x32xf32>, memref<16x32xf32>
  gdn_tile.store %1, %b[%c0, %c0] dims [0, 1] : vector<16x32xf32>, !tile
  gdn_tile.store %1, %b[%c0, %c0] dims [0, 1] : vector<16x32xf32>, !tile
  %2 = memref.load %b[%c0, %c0] : !tile
  return
}

// A tile of a program is no business of other functions.
// CHECK-LABEL: func.func @other
// CHECK-NOT:     gdn_tile.barrier
func.func @other(%i: index, %v: f32) {
  %a = memref.alloc() : !tile
  memref.store %v, %a[%i, %i] : !tile
  %0 = memref.load %a[%i, %i] : !tile
  return
}

// Every op on shared tiles counts: b of a product, prefix sums, scores, inverse.
// CHECK-LABEL: func.func @ops
// CHECK:         gdn_tile.copy_in
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.mma
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.cumsum
// CHECK-NEXT:    gdn_tile.copy_sums
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.scores
// CHECK-NEXT:    gdn_tile.tri_inverse
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.copy_sums
// CHECK-NEXT:    gdn_tile.load
func.func @ops(%x: memref<16x32xf32>, %v: vector<16x32xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  %l = memref.alloc() : memref<16x16xf32, #shared>
  %s = memref.alloc() : memref<17x32xf32, #shared>
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<16x32xf32> to !tile
  %0 = gdn_tile.mma %v, %a {transpose_b} : vector<16x32xf32>, !tile -> vector<16x16xf32>
  gdn_tile.cumsum %a : !tile
  gdn_tile.copy_sums %x[%c0, %c0] dims [0, 1] to %s {columns = 32 : i64, least = -104.0, factor = 1.0} : memref<16x32xf32> to memref<17x32xf32, #shared>
  %1 = gdn_tile.scores %a, %a, %s acc(%0) : (!tile, !tile, memref<17x32xf32, #shared>, vector<16x16xf32>) -> vector<16x16xf32>
  gdn_tile.tri_inverse %l : memref<16x16xf32, #shared>
  gdn_tile.copy_sums %x[%c0, %c0] dims [0, 1] to %s {columns = 32 : i64, least = -104.0, factor = 1.0} : memref<16x32xf32> to memref<17x32xf32, #shared>
  %2 = gdn_tile.load %l[%c0, %c0] dims [0, 1] : memref<16x16xf32, #shared>, vector<16x16xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

// Loads and stores of other columns are no conflict, those of unknown ones are.
// CHECK-LABEL: func.func @columns
// CHECK:         gdn_tile.load
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.store
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
func.func @columns(%i: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %a = memref.alloc() : !tile
  %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x16xf32>
  %1 = gdn_tile.load %a[%c0, %c16] dims [0, 1] : !tile, vector<16x16xf32>
  gdn_tile.store %1, %a[%c0, %c0] dims [0, 1] : vector<16x16xf32>, !tile
  gdn_tile.store %0, %a[%c0, %c16] dims [0, 1] : vector<16x16xf32>, !tile
  %2 = gdn_tile.load %a[%c0, %c16] dims [0, 1] : !tile, vector<16x16xf32>
  %3 = gdn_tile.load %a[%c0, %c0] dims [1] : !tile, vector<1x16xf32>
  gdn_tile.store %2, %a[%c0, %i] dims [0, 1] : vector<16x16xf32>, !tile
  %4 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x16xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

// The next iteration overwrites what this one reads.
// CHECK-LABEL: func.func @back_edge
// CHECK:         scf.for
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.copy_in
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.load
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @back_edge(%x: memref<?x32xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile
    %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  }
  return
}

// Two tiles in turn: what is read at the end of one iteration is separated from
// the next one's copy by the barrier between.
// CHECK-LABEL: func.func @one_is_enough
// CHECK:         scf.for
// CHECK-NEXT:      gdn_tile.copy_in
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.load %[[A:[a-z0-9_]+]][
// CHECK-NEXT:      gdn_tile.store %{{.*}}, %[[B:[a-z0-9_]+]][
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.copy_out %[[B]]
// CHECK-NEXT:    }
func.func @one_is_enough(%x: memref<?x32xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !tile
  %b = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile
    %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
    gdn_tile.store %0, %b[%c0, %c0] dims [0, 1] : vector<16x32xf32>, !tile
    gdn_tile.copy_out %b to %x[%i, %c0] dims [0, 1] : !tile to memref<?x32xf32>
  }
  return
}

// Only the first iteration needs it: in front of the loop, also two levels up.
// CHECK-LABEL: func.func @entry
// CHECK:         gdn_tile.copy_in
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        gdn_tile.load
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.cumsum
func.func @entry(%x: memref<?x32xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !tile
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
    }
  }
  %1 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.cumsum %a : !tile
  return
}

// A loop may run no iteration: what was written in front of it is still
// not visible behind it.
// CHECK-LABEL: func.func @no_iteration
// CHECK:         gdn_tile.copy_in
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      gdn_tile.copy_in
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.load %[[B:[a-z0-9_]+]][
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:    }
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load %[[A:[a-z0-9_]+]][
func.func @no_iteration(%x: memref<?x32xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !tile
  %b = memref.alloc() : !tile
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %b : memref<?x32xf32> to !tile
    %0 = gdn_tile.load %b[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
    gdn_tile.barrier
  }
  %1 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

// One branch writes, so the reader behind needs a barrier; the other reads.
// CHECK-LABEL: func.func @branch
// CHECK:         gdn_tile.copy_in
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.cumsum
// CHECK-NEXT:    } else {
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.load
// CHECK-NEXT:    }
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      gdn_tile.load
// CHECK-NEXT:    }
// CHECK-NEXT:    gdn_tile.load
func.func @branch(%x: memref<?x32xf32>, %c: i1) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile
  scf.if %c {
    gdn_tile.cumsum %a : !tile
  } else {
    %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  }
  %1 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  scf.if %c {
    %2 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  }
  %3 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  return
}

// The region `before` reads what the region `after` wrote.
// CHECK-LABEL: func.func @while
// CHECK:         scf.while
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      arith.cmpf
// CHECK-NEXT:      scf.condition
// CHECK-NEXT:    } do {
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.cumsum
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.cumsum
func.func @while(%limit: f32) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  scf.while : () -> () {
    %0 = memref.load %a[%c0, %c0] : !tile
    %less = arith.cmpf olt, %0, %limit : f32
    scf.condition(%less)
  } do {
    gdn_tile.cumsum %a : !tile
    scf.yield
  }
  %1 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.cumsum %a : !tile
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

// The copy is issued behind a barrier that ends the reading of its tile; it is
// written at the wait, and others see it behind the next barrier. What
// happens to other tiles in between does not matter.
// CHECK-LABEL: func.func @async
// CHECK:         gdn_tile.load %[[A:[a-z0-9_]+]][
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    %[[T:.*]] = gdn_tile.copy_in
// CHECK-NEXT:    %[[G:.*]] = gdn_tile.join %[[T]]
// CHECK-NEXT:    gdn_tile.store %{{.*}}, %[[B:[a-z0-9_]+]][
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load %[[B]][
// CHECK-NEXT:    gdn_tile.wait %[[G]]
// CHECK-NEXT:    gdn_tile.load %[[B]][
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load %[[A]][
// CHECK-NEXT:    return
func.func @async(%x: memref<?x32xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  %b = memref.alloc() : !tile
  %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  %t = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile -> !gdn_tile.token
  %g = gdn_tile.join %t
  gdn_tile.store %0, %b[%c0, %c0] dims [0, 1] : vector<16x32xf32>, !tile
  %1 = gdn_tile.load %b[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.wait %g
  %2 = gdn_tile.load %b[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  %3 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  return
}

// Pipelined, tokens carried by the loop: one barrier per iteration.
// CHECK-LABEL: func.func @pipelined
// CHECK:         gdn_tile.copy_in
// CHECK-NEXT:    gdn_tile.join
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      gdn_tile.wait
// CHECK-NEXT:      arith.subi
// CHECK-NEXT:      gdn_tile.stage
// CHECK-NEXT:      gdn_tile.barrier
// CHECK-NEXT:      gdn_tile.copy_in
// CHECK-NEXT:      gdn_tile.join
// CHECK-NEXT:      gdn_tile.stage
// CHECK-NEXT:      gdn_tile.load
// CHECK-NEXT:      scf.yield
func.func @pipelined(%x: memref<?x32xf32>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<2x16x32xf32, #gpu.address_space<workgroup>>
  %first = gdn_tile.stage %a[%c0] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
  %t = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %first : memref<?x32xf32> to !tile -> !gdn_tile.token
  %g = gdn_tile.join %t
  %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %g, %s = %c0) -> (!gdn_tile.token, index) {
    gdn_tile.wait %h
    %o = arith.subi %c1, %s : index
    %next = gdn_tile.stage %a[%o] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
    %u = gdn_tile.copy_in %x[%i, %c0] dims [0, 1] to %next : memref<?x32xf32> to !tile -> !gdn_tile.token
    %k = gdn_tile.join %u
    %tile = gdn_tile.stage %a[%s] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
    %0 = gdn_tile.load %tile[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
    scf.yield %k, %o : !gdn_tile.token, index
  }
  return
}

// Tokens through branches and while loops lead to their tiles, too.
// CHECK-LABEL: func.func @tokens
// CHECK:         gdn_tile.wait
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
func.func @tokens(%x: memref<?x32xf32>, %c: i1) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : !tile
  %t = scf.if %c -> !gdn_tile.token {
    %u = gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %a : memref<?x32xf32> to !tile -> !gdn_tile.token
    %g = gdn_tile.join %u
    scf.yield %g : !gdn_tile.token
  } else {
    %g = gdn_tile.join
    scf.yield %g : !gdn_tile.token
  }
  %w = scf.while (%v = %t) : (!gdn_tile.token) -> !gdn_tile.token {
    scf.condition(%c) %v : !gdn_tile.token
  } do {
  ^bb0(%v: !gdn_tile.token):
    scf.yield %v : !gdn_tile.token
  }
  gdn_tile.wait %w
  %0 = gdn_tile.load %a[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  return
}

// Stages with different constant numbers are different tiles; unknown numbers
// may be any of them.
// CHECK-LABEL: func.func @stages
// CHECK:         gdn_tile.cumsum
// CHECK-NEXT:    gdn_tile.load
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.cumsum
// CHECK-NEXT:    gdn_tile.barrier
// CHECK-NEXT:    gdn_tile.load
func.func @stages(%i: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<2x16x32xf32, #gpu.address_space<workgroup>>
  %x = gdn_tile.stage %a[%c0] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
  %y = gdn_tile.stage %a[%c1] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
  %z = gdn_tile.stage %a[%i] : memref<2x16x32xf32, #gpu.address_space<workgroup>> to !tile
  gdn_tile.cumsum %x : !tile
  %0 = gdn_tile.load %y[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  gdn_tile.cumsum %y : !tile
  %1 = gdn_tile.load %z[%c0, %c0] dims [0, 1] : !tile, vector<16x32xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

func.func @argument(%a: !tile) attributes {gdn_tile.kernel = #kernel} {
  // expected-error @below {{'gdn_tile.cumsum' op accesses shared memory that is not a memref.alloc}}
  gdn_tile.cumsum %a : !tile
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>
!tile = memref<16x32xf32, #gpu.address_space<workgroup>>

func.func private @f(!tile)
func.func @call() attributes {gdn_tile.kernel = #kernel} {
  %a = memref.alloc() : !tile
  // expected-error @below {{'func.call' op has unknown effects on shared memory}}
  func.call @f(%a) : (!tile) -> ()
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

func.func @parallel(%n: index) attributes {gdn_tile.kernel = #kernel} {
  // expected-error @below {{'scf.execute_region' op is not allowed in a tile program}}
  scf.execute_region {
    scf.yield
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// What runs ahead in its place is part of the program: its stores are there for what is behind it.

// CHECK-LABEL: func @ahead_in_place
// CHECK: gdn_tile.ahead
// CHECK: gdn_tile.store
// CHECK: gdn_tile.barrier
// CHECK: gdn_tile.load
func.func @ahead_in_place(%x: memref<64x64xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : memref<64x64xf32, #shared>
  scf.for %i = %c0 to %n step %c1 {
    gdn_tile.ahead teams(1) {
      %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
      gdn_tile.store %a, %t[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    }
    %b = gdn_tile.load %t[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
    gdn_tile.store %b, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  }
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// What either branch may have written counts behind both.

// CHECK-LABEL: func @branches_join
// CHECK: scf.if
// CHECK: } else {
// CHECK: gdn_tile.store
// CHECK: }
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.load
func.func @branches_join(%x: memref<64x64xf32>, %c: i1) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : memref<64x64xf32, #shared>
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  scf.if %c {
  } else {
    gdn_tile.store %a, %t[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
  }
  %b = gdn_tile.load %t[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
  gdn_tile.store %b, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// Warps may write parts of a tile of the block; all of it is there for the others behind a barrier.

// CHECK-LABEL: func @warps_write
// CHECK: gdn_tile.each_warp
// CHECK: gdn_tile.store
// CHECK-NEXT: }
// CHECK-NEXT: gdn_tile.barrier
// CHECK-NEXT: gdn_tile.load
func.func @warps_write(%x: memref<64x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : vector<16x64xf32>
  %t = memref.alloc() : memref<64x64xf32, #shared>
  gdn_tile.each_warp (%w) in (%c4) {
    %row = arith.muli %w, %c16 : index
    gdn_tile.store %one, %t[%row, %c0] dims [0, 1] : vector<16x64xf32>, memref<64x64xf32, #shared>
  }
  %b = gdn_tile.load %t[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
  gdn_tile.store %b, %x[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}
