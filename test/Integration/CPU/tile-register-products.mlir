// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Products in registers against the sums of their definitions. All numbers are
// small integers, exact in bf16, so every difference is 0.

func.func @products(%s: memref<16x64xbf16>, %k: memref<8x64xbf16>, %l: memref<8x8xf32>,
                    %d: memref<16x8xf32>, %x: memref<16x8xf32>, %n: memref<16x64xf32>)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4, chunk = 8>} {
  %c0 = arith.constant 0 : index
  %state = gdn_tile.load %s[%c0, %c0] dims [0, 1] {streaming} : memref<16x64xbf16>, vector<16x64xbf16>
  %loaded = gdn_tile.load %k[%c0, %c0] dims [0, 1] : memref<8x64xbf16>, vector<8x64xbf16>
  %keys = gdn_tile.after_loads %loaded : vector<8x64xbf16>
  %dot = gdn_tile.dot %state times(%keys) : vector<16x64xbf16>, vector<8x64xbf16> -> vector<16x8xf32>
  gdn_tile.store %dot, %d[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32>
  %factors = gdn_tile.load %l[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %solution = gdn_tile.tri_solve %factors, %dot {count = 5 : i64} : vector<8x8xf32>, vector<16x8xf32>
  gdn_tile.store %solution, %x[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32>
  %acc = arith.extf %state : vector<16x64xbf16> to vector<16x64xf32>
  %next = gdn_tile.outer %dot, %keys acc(%acc) : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xf32>
  gdn_tile.store %next, %n[%c0, %c0] dims [0, 1] {streaming} : vector<16x64xf32>, memref<16x64xf32>
  return
}

// -2..2, of both indices.
func.func private @number(%i: index, %j: index) -> f32 {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %a = arith.muli %i, %c7 : index
  %b = arith.muli %j, %c3 : index
  %c = arith.muli %i, %j : index
  %ab = arith.addi %a, %b : index
  %abc = arith.addi %ab, %c : index
  %m = arith.remui %abc, %c5 : index
  %n = arith.index_cast %m : index to i32
  %two = arith.constant 2 : i32
  %r = arith.subi %n, %two : i32
  %f = arith.sitofp %r : i32 to f32
  return %f : f32
}

func.func private @larger(%max: memref<f32>, %a: f32, %b: f32) {
  %d = arith.subf %a, %b : f32
  %abs = math.absf %d : f32
  %old = memref.load %max[] : memref<f32>
  %new = arith.maximumf %abs, %old : f32
  memref.store %new, %max[] : memref<f32>
  return
}

// CHECK: 0
// CHECK-NEXT: 0
// CHECK-NEXT: 0
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<16x64xbf16>
  %k = memref.alloc() : memref<8x64xbf16>
  %l = memref.alloc() : memref<8x8xf32>
  %d = memref.alloc() : memref<16x8xf32>
  %x = memref.alloc() : memref<16x8xf32>
  %n = memref.alloc() : memref<16x64xf32>
  %max = memref.alloc() : memref<f32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %c = %c0 to %c64 step %c1 {
      %v = func.call @number(%i, %c) : (index, index) -> f32
      %b = arith.truncf %v : f32 to bf16
      memref.store %b, %s[%i, %c] : memref<16x64xbf16>
    }
  }
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %c = %c0 to %c64 step %c1 {
      %v = func.call @number(%c, %i) : (index, index) -> f32
      %b = arith.truncf %v : f32 to bf16
      memref.store %b, %k[%i, %c] : memref<8x64xbf16>
    }
    scf.for %c = %c0 to %c8 step %c1 {
      %v = func.call @number(%i, %c) : (index, index) -> f32
      memref.store %v, %l[%i, %c] : memref<8x8xf32>
    }
  }
  gdn_tile.launch @products grid(%c1) (%s, %k, %l, %d, %x, %n
      : memref<16x64xbf16>, memref<8x64xbf16>, memref<8x8xf32>, memref<16x8xf32>, memref<16x8xf32>, memref<16x64xf32>)

  memref.store %zero, %max[] : memref<f32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %sum = scf.for %c = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
        %a = func.call @number(%i, %c) : (index, index) -> f32
        %b = func.call @number(%c, %j) : (index, index) -> f32
        %ab = arith.mulf %a, %b : f32
        %next = arith.addf %acc, %ab : f32
        scf.yield %next : f32
      }
      %got = memref.load %d[%i, %j] : memref<16x8xf32>
      func.call @larger(%max, %got, %sum) : (memref<f32>, f32, f32) -> ()
    }
  }
  %dot = memref.load %max[] : memref<f32>
  vector.print %dot : f32
  // x + strictlower(l) x of the first five columns is the right-hand side; the others are 0.
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %t = %c0 to %c8 step %c1 {
      %own = memref.load %x[%i, %t] : memref<16x8xf32>
      %known = arith.cmpi slt, %t, %c5 : index
      %rhs = scf.if %known -> f32 {
        %loaded = memref.load %d[%i, %t] : memref<16x8xf32>
        scf.yield %loaded : f32
      } else {
        scf.yield %zero : f32
      }
      %end = arith.select %known, %t, %c0 : index
      %sum = scf.for %c = %c0 to %end step %c1 iter_args(%acc = %own) -> f32 {
        %a = memref.load %l[%t, %c] : memref<8x8xf32>
        %b = memref.load %x[%i, %c] : memref<16x8xf32>
        %ab = arith.mulf %a, %b : f32
        %next = arith.addf %acc, %ab : f32
        scf.yield %next : f32
      }
      func.call @larger(%max, %sum, %rhs) : (memref<f32>, f32, f32) -> ()
    }
  }
  %solve = memref.load %max[] : memref<f32>
  vector.print %solve : f32
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %c = %c0 to %c64 step %c1 {
      %init = func.call @number(%i, %c) : (index, index) -> f32
      %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%acc = %init) -> f32 {
        %a = memref.load %d[%i, %j] : memref<16x8xf32>
        %b = func.call @number(%c, %j) : (index, index) -> f32
        %ab = arith.mulf %a, %b : f32
        %next = arith.addf %acc, %ab : f32
        scf.yield %next : f32
      }
      %got = memref.load %n[%i, %c] : memref<16x64xf32>
      func.call @larger(%max, %got, %sum) : (memref<f32>, f32, f32) -> ()
    }
  }
  %outer = memref.load %max[] : memref<f32>
  vector.print %outer : f32
  return
}
