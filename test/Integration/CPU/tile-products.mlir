// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Linear attention in chunks of 16 tokens: per chunk o = (S k^T)^T and then
// S += v^T k, with S in registers (16 values by 32 keys). 20 tokens, so the second chunk
// is a tail of 4. All numbers are small integers, exact in bf16. Compared
// with the sums written down token by token.

#shared = #gpu.address_space<workgroup>

func.func @scan(%k: memref<?x2x32xbf16>, %v: memref<?x2x16xbf16>, %o: memref<?x2x16xf32>,
                %states: memref<2x32x16xf32>, %t: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %h = gdn_tile.block_id : index
  %k_tile = memref.alloc() : memref<16x32xbf16, #shared>
  %v_tile = memref.alloc() : memref<16x16xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<16x32xf32>
  %final = scf.for %i = %c0 to %t step %c16 iter_args(%state = %zero) -> vector<16x32xf32> {
    %rows = arith.subi %t, %i : index
    %copy = gdn_tile.copy_in %k[%i, %h, %c0] dims [0, 2] valid(%rows, %c32) to %k_tile
        : memref<?x2x32xbf16> to memref<16x32xbf16, #shared> -> !gdn_tile.token
    %group = gdn_tile.join %copy
    gdn_tile.copy_in %v[%i, %h, %c0] dims [0, 2] valid(%rows, %c16) to %v_tile
        : memref<?x2x16xbf16> to memref<16x16xbf16, #shared>
    gdn_tile.wait %group
    gdn_tile.barrier
    %a = arith.truncf %state : vector<16x32xf32> to vector<16x32xbf16>
    %out = gdn_tile.mma %a, %k_tile {transpose_b} : vector<16x32xbf16>, memref<16x32xbf16, #shared> -> vector<16x16xf32>
    gdn_tile.store %out, %o[%i, %h, %c0] dims [2, 0] valid(%c16, %rows) : vector<16x16xf32>, memref<?x2x16xf32>
    %vt = gdn_tile.load %v_tile[%c0, %c0] dims [1, 0] : memref<16x16xbf16, #shared>, vector<16x16xbf16>
    %next = gdn_tile.mma %vt, %k_tile acc(%state : vector<16x32xf32>) : vector<16x16xbf16>, memref<16x32xbf16, #shared> -> vector<16x32xf32>
    gdn_tile.barrier
    scf.yield %next : vector<16x32xf32>
  }
  // Through shared memory in 32-bit, and transposed.
  %tile = memref.alloc() : memref<32x16xf32, #shared>
  gdn_tile.store %final, %tile[%c0, %c0] dims [1, 0] : vector<16x32xf32>, memref<32x16xf32, #shared>
  gdn_tile.copy_out %tile to %states[%h, %c0, %c0] dims [1, 2] : memref<32x16xf32, #shared> to memref<2x32x16xf32>
  return
}

func.func @host(%k: memref<?x2x32xbf16>, %v: memref<?x2x16xbf16>, %o: memref<?x2x16xf32>, %states: memref<2x32x16xf32>, %t: index) {
  %c2 = arith.constant 2 : index
  gdn_tile.launch @scan grid(%c2) (%k, %v, %o, %states, %t
      : memref<?x2x32xbf16>, memref<?x2x16xbf16>, memref<?x2x16xf32>, memref<2x32x16xf32>, index)
  return
}

// Small integers -2..2 that depend on all three indices.
func.func private @number(%t: index, %h: index, %c: index, %seed: index) -> bf16 {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %0 = arith.muli %t, %c7 : index
  %1 = arith.muli %c, %c3 : index
  %2 = arith.muli %t, %c : index
  %3 = arith.addi %0, %1 : index
  %4 = arith.addi %3, %2 : index
  %5 = arith.addi %4, %h : index
  %6 = arith.addi %5, %seed : index
  %7 = arith.remui %6, %c5 : index
  %8 = arith.index_cast %7 : index to i32
  %c2 = arith.constant 2 : i32
  %9 = arith.subi %8, %c2 : i32
  %10 = arith.sitofp %9 : i32 to f32
  %11 = arith.truncf %10 : f32 to bf16
  return %11 : bf16
}

// Sum over c of k[t, h, c] k[u, h, c].
func.func private @dot(%k: memref<?x2x32xbf16>, %t: index, %u: index, %h: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %c = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> f32 {
    %a = memref.load %k[%t, %h, %c] : memref<?x2x32xbf16>
    %b = memref.load %k[%u, %h, %c] : memref<?x2x32xbf16>
    %ax = arith.extf %a : bf16 to f32
    %bx = arith.extf %b : bf16 to f32
    %p = arith.mulf %ax, %bx : f32
    %next = arith.addf %acc, %p : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

func.func private @printF32(f32)
func.func private @printNewline()

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %c22 = arith.constant 22 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %mark = arith.constant 99.0 : f32
  // Two rows more than there are tokens: the tail must leave them alone.
  %k = memref.alloc(%c22) : memref<?x2x32xbf16>
  %v = memref.alloc(%c22) : memref<?x2x16xbf16>
  %o = memref.alloc(%c22) : memref<?x2x16xf32>
  %states = memref.alloc() : memref<2x32x16xf32>
  scf.for %t = %c0 to %c22 step %c1 {
    scf.for %h = %c0 to %c2 step %c1 {
      scf.for %c = %c0 to %c32 step %c1 {
        %x = func.call @number(%t, %h, %c, %c0) : (index, index, index, index) -> bf16
        memref.store %x, %k[%t, %h, %c] : memref<?x2x32xbf16>
      }
      scf.for %c = %c0 to %c16 step %c1 {
        %x = func.call @number(%t, %h, %c, %c2) : (index, index, index, index) -> bf16
        memref.store %x, %v[%t, %h, %c] : memref<?x2x16xbf16>
        memref.store %mark, %o[%t, %h, %c] : memref<?x2x16xf32>
      }
    }
  }
  call @host(%k, %v, %o, %states, %c20) : (memref<?x2x32xbf16>, memref<?x2x16xbf16>, memref<?x2x16xf32>, memref<2x32x16xf32>, index) -> ()

  // o[t] = sum of v[u] k[u].k[t] over the tokens u of earlier chunks.
  %count, %different, %size = scf.for %t = %c0 to %c22 step %c1
      iter_args(%n0 = %zero, %d0 = %zero, %s0 = %zero) -> (f32, f32, f32) {
    %isTail = arith.cmpi uge, %t, %c16 : index
    %end = arith.select %isTail, %c16, %c0 : index
    %isBehind = arith.cmpi uge, %t, %c20 : index
    %h1, %h2, %h3 = scf.for %h = %c0 to %c2 step %c1 iter_args(%n1 = %n0, %d1 = %d0, %s1 = %s0) -> (f32, f32, f32) {
      %v1, %v2, %v3 = scf.for %c = %c0 to %c16 step %c1 iter_args(%n2 = %n1, %d2 = %d1, %s2 = %s1) -> (f32, f32, f32) {
        %want = scf.for %u = %c0 to %end step %c1 iter_args(%acc = %zero) -> f32 {
          %x = memref.load %v[%u, %h, %c] : memref<?x2x16xbf16>
          %xf = arith.extf %x : bf16 to f32
          %dot = func.call @dot(%k, %t, %u, %h) : (memref<?x2x32xbf16>, index, index, index) -> f32
          %p = arith.mulf %xf, %dot : f32
          %next = arith.addf %acc, %p : f32
          scf.yield %next : f32
        }
        %expected = arith.select %isBehind, %mark, %want : f32
        %got = memref.load %o[%t, %h, %c] : memref<?x2x16xf32>
        %ne = arith.cmpf une, %got, %expected : f32
        %add = arith.select %ne, %one, %zero : f32
        %d3 = arith.addf %d2, %add : f32
        %n3 = arith.addf %n2, %one : f32
        %abs = math.absf %want : f32
        %s3 = arith.addf %s2, %abs : f32
        scf.yield %n3, %d3, %s3 : f32, f32, f32
      }
      scf.yield %v1, %v2, %v3 : f32, f32, f32
    }
    scf.yield %h1, %h2, %h3 : f32, f32, f32
  }
  // CHECK: 704
  call @printF32(%count) : (f32) -> ()
  call @printNewline() : () -> ()
  // CHECK-NEXT: {{^}}0{{$}}
  call @printF32(%different) : (f32) -> ()
  call @printNewline() : () -> ()
  // The sums are not all zero.
  // CHECK-NEXT: {{^[1-9][0-9]+}}
  call @printF32(%size) : (f32) -> ()
  call @printNewline() : () -> ()

  // The state holds sum_u v[u] k[u] over all 20 tokens, keys outermost.
  %wrong = scf.for %h = %c0 to %c2 step %c1 iter_args(%d0 = %zero) -> f32 {
    %h1 = scf.for %c = %c0 to %c32 step %c1 iter_args(%d1 = %d0) -> f32 {
      %v1 = scf.for %d = %c0 to %c16 step %c1 iter_args(%d2 = %d1) -> f32 {
        %want = scf.for %u = %c0 to %c20 step %c1 iter_args(%acc = %zero) -> f32 {
          %x = memref.load %v[%u, %h, %d] : memref<?x2x16xbf16>
          %y = memref.load %k[%u, %h, %c] : memref<?x2x32xbf16>
          %xf = arith.extf %x : bf16 to f32
          %yf = arith.extf %y : bf16 to f32
          %p = arith.mulf %xf, %yf : f32
          %next = arith.addf %acc, %p : f32
          scf.yield %next : f32
        }
        %got = memref.load %states[%h, %c, %d] : memref<2x32x16xf32>
        %ne = arith.cmpf une, %got, %want : f32
        %add = arith.select %ne, %one, %zero : f32
        %d3 = arith.addf %d2, %add : f32
        scf.yield %d3 : f32
      }
      scf.yield %v1 : f32
    }
    scf.yield %h1 : f32
  }
  // CHECK-NEXT: {{^}}0{{$}}
  call @printF32(%wrong) : (f32) -> ()
  call @printNewline() : () -> ()
  return
}
