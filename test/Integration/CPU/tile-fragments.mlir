// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Row sums and column sums, sums of squares, bounded and transposed accesses, fragments that
// are carried by scf.for, scf.while and scf.if.

#rows = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 4>
#accumulator = #gdn_tile.kernel<warps = 1, layout = accumulator>

// y[block * 8 + i] = sum of row i; sums[block] = sum of column j over the 8 rows. Rows
// at or behind `valid` do not exist.
func.func @sums(%x: memref<?x16xf32>, %y: memref<?xf32>, %sums: memref<?x16xf32>, %valid: index)
    attributes {gdn_tile.kernel = #rows} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %block = gdn_tile.block_id : index
  %start = arith.muli %block, %c8 : index
  %rows = arith.subi %valid, %start : index
  %v = gdn_tile.load %x[%start, %c0] dims [0, 1] valid(%rows, %c16) : memref<?x16xf32>, vector<8x16xf32>
  %twice = arith.addf %v, %v : vector<8x16xf32>
  %s = gdn_tile.sum %twice : vector<8x16xf32> to vector<8x1xf32>
  %t = gdn_tile.sum %v : vector<8x16xf32> to vector<1x16xf32>
  gdn_tile.store %s, %y[%start] dims [0] valid(%rows) : vector<8x1xf32>, memref<?xf32>
  gdn_tile.store %t, %sums[%block, %c0] dims [1] : vector<1x16xf32>, memref<?x16xf32>
  return
}

// Carried values: Fibonacci numbers by exchanging two fragments `n` times, then
// doubled while the total is below `limit`, then negated if n is odd.
func.func @carried(%out: memref<?x8xf32>, %n: index, %limitIndex: index)
    attributes {gdn_tile.kernel = #accumulator} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %limitInteger = arith.index_cast %limitIndex : index to i32
  %limit = arith.sitofp %limitInteger : i32 to f32
  %remainder = arith.remui %n, %c2 : index
  %isOdd = arith.cmpi eq, %remainder, %c1 : index
  %zero = arith.constant dense<0.0> : vector<16x8xf32>
  %one = arith.constant dense<1.0> : vector<16x8xf32>
  %two = arith.constant dense<2.0> : vector<16x8xf32>
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %one) -> (vector<16x8xf32>, vector<16x8xf32>) {
    %next = arith.addf %x, %y : vector<16x8xf32>
    scf.yield %y, %next : vector<16x8xf32>, vector<16x8xf32>
  }
  %first = arith.constant 1.0 : f32
  %doubled, %factor = scf.while (%x = %a, %f = %first) : (vector<16x8xf32>, f32) -> (vector<16x8xf32>, f32) {
    %less = arith.cmpf olt, %f, %limit : f32
    scf.condition(%less) %x, %f : vector<16x8xf32>, f32
  } do {
  ^bb0(%x: vector<16x8xf32>, %f: f32):
    %x2 = arith.mulf %x, %two : vector<16x8xf32>
    %f2 = arith.addf %f, %f : f32
    scf.yield %x2, %f2 : vector<16x8xf32>, f32
  }
  %signed = scf.if %isOdd -> vector<16x8xf32> {
    %minus = arith.negf %doubled : vector<16x8xf32>
    scf.yield %minus : vector<16x8xf32>
  } else {
    scf.yield %doubled : vector<16x8xf32>
  }
  // Columns at or above the row number only.
  %r = gdn_tile.iota : vector<16x1xi32>
  %c = gdn_tile.iota : vector<1x8xi32>
  %rows = vector.broadcast %r : vector<16x1xi32> to vector<16x8xi32>
  %columns = vector.broadcast %c : vector<1x8xi32> to vector<16x8xi32>
  %keep = arith.cmpi sge, %columns, %rows : vector<16x8xi32>
  %flipped = arith.select %keep, %signed, %zero : vector<16x8xi1>, vector<16x8xf32>
  %used = arith.select %isOdd, %flipped, %zero : vector<16x8xf32>
  // The mask has two uses: it is stored and read back.
  %counted = arith.uitofp %keep : vector<16x8xi1> to vector<16x8xf32>
  %sum = arith.addf %used, %counted : vector<16x8xf32>
  gdn_tile.store %sum, %out[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<?x8xf32>
  return
}

// Transposes a 3 x 5 corner of an f32 matrix; what is behind it reads as 0.
func.func @corner(%x: memref<?x8xf32>, %y: memref<?x4xf32>, %m: index, %n: index)
    attributes {gdn_tile.kernel = #accumulator} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %v = gdn_tile.load %x[%c1, %c1] dims [1, 0] valid(%n, %m) : memref<?x8xf32>, vector<16x8xf32>
  %one = arith.constant 1.0 : f32
  %ones = vector.broadcast %one : f32 to vector<16x8xf32>
  %w = arith.addf %v, %ones : vector<16x8xf32>
  gdn_tile.store %w, %y[%c0, %c0] dims [0, 1] valid(%c5, %c4) : vector<16x8xf32>, memref<?x4xf32>
  return
}

// squares[i] = sum of the squares of row i, of bf16.
func.func @squares(%x: memref<?x16xf32>, %squares: memref<?xf32>, %rows: index) attributes {gdn_tile.kernel = #accumulator} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] valid(%rows, %c16) : memref<?x16xf32>, vector<16x16xf32>
  %half = arith.truncf %v : vector<16x16xf32> to vector<16x16xbf16>
  %s = gdn_tile.sum_squares %half : vector<16x16xbf16> to vector<16x1xf32>
  gdn_tile.store %s, %squares[%c0] dims [0] valid(%rows) : vector<16x1xf32>, memref<?xf32>
  return
}

func.func @host(%x: memref<?x16xf32>, %y: memref<?xf32>, %sums: memref<?x16xf32>, %squares: memref<?xf32>,
                %a: memref<?x8xf32>, %b: memref<?x4xf32>) {
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %c11 = arith.constant 11 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @sums grid(%c2) (%x, %y, %sums, %c11 : memref<?x16xf32>, memref<?xf32>, memref<?x16xf32>, index)
  gdn_tile.launch @squares grid(%c1) (%x, %squares, %c11 : memref<?x16xf32>, memref<?xf32>, index)
  gdn_tile.launch @carried grid(%c1) (%a, %c7, %c4 : memref<?x8xf32>, index, index)
  gdn_tile.launch @corner grid(%c1) (%a, %b, %c3, %c5 : memref<?x8xf32>, memref<?x4xf32>, index, index)
  return
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c12 = arith.constant 12 : index
  %c16 = arith.constant 16 : index
  %mark = arith.constant -5.0 : f32
  %x = memref.alloc(%c12) : memref<?x16xf32>
  %y = memref.alloc(%c12) : memref<?xf32>
  %sums = memref.alloc(%c2) : memref<?x16xf32>
  %squares = memref.alloc(%c12) : memref<?xf32>
  %a = memref.alloc(%c16) : memref<?x8xf32>
  %b = memref.alloc(%c6) : memref<?x4xf32>
  scf.for %i = %c0 to %c12 step %c1 {
    memref.store %mark, %y[%i] : memref<?xf32>
    memref.store %mark, %squares[%i] : memref<?xf32>
    scf.for %j = %c0 to %c16 step %c1 {
      %p = arith.addi %i, %j : index
      %q = arith.index_cast %p : index to i32
      %f = arith.sitofp %q : i32 to f32
      memref.store %f, %x[%i, %j] : memref<?x16xf32>
    }
  }
  linalg.fill ins(%mark : f32) outs(%b : memref<?x4xf32>)
  call @host(%x, %y, %sums, %squares, %a, %b) : (memref<?x16xf32>, memref<?xf32>, memref<?x16xf32>, memref<?xf32>, memref<?x8xf32>, memref<?x4xf32>) -> ()

  // Row i holds i .. i + 15: 2 (16 i + 120). The twelfth row is not valid.
  // CHECK: sizes = [12]
  // CHECK-NEXT: [240, 272, 304, 336, 368, 400, 432, 464, 496, 528, 560, -5]
  %0 = memref.cast %y : memref<?xf32> to memref<*xf32>
  call @printMemrefF32(%0) : (memref<*xf32>) -> ()
  // Block 0 sums j + 0..7, block 1 only j + 8..10.
  // CHECK: sizes = [2, 16]
  // CHECK-NEXT: [28,   36,   44,   52,   60,   68,   76,   84,   92,   100,   108,   116,   124,   132,   140,   148],
  // CHECK-NEXT: [27,   30,   33,   36,   39,   42,   45,   48,   51,   54,   57,   60,   63,   66,   69,   72]
  %1 = memref.cast %sums : memref<?x16xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  // 16 i^2 + 240 i + 1240.
  // CHECK: sizes = [12]
  // CHECK-NEXT: [1240, 1496, 1784, 2104, 2456, 2840, 3256, 3704, 4184, 4696, 5240, -5]
  %9 = memref.cast %squares : memref<?xf32> to memref<*xf32>
  call @printMemrefF32(%9) : (memref<*xf32>) -> ()
  // The seventh Fibonacci number is 13; doubled twice, negated, + 1.
  // CHECK: sizes = [16, 8]
  // CHECK-NEXT: [-51,   -51,   -51,   -51,   -51,   -51,   -51,   -51],
  // CHECK-NEXT: [0,   -51,   -51,   -51,   -51,   -51,   -51,   -51],
  // CHECK-NEXT: [0,   0,   -51,   -51,   -51,   -51,   -51,   -51],
  // CHECK-NEXT: [0,   0,   0,   -51,   -51,   -51,   -51,   -51],
  // CHECK: [0,   0,   0,   0,   0,   0,   0,   0]]
  %2 = memref.cast %a : memref<?x8xf32> to memref<*xf32>
  call @printMemrefF32(%2) : (memref<*xf32>) -> ()
  // Rows 1..3 and columns 1..5 of that, transposed, + 1.
  // CHECK: sizes = [6, 4]
  // CHECK-NEXT: [-50,   1,   1,   1],
  // CHECK-NEXT: [-50,   -50,   1,   1],
  // CHECK-NEXT: [-50,   -50,   -50,   1],
  // CHECK-NEXT: [-50,   -50,   -50,   1],
  // CHECK-NEXT: [-50,   -50,   -50,   1],
  // CHECK-NEXT: [-5,   -5,   -5,   -5]]
  %3 = memref.cast %b : memref<?x4xf32> to memref<*xf32>
  call @printMemrefF32(%3) : (memref<*xf32>) -> ()
  return
}
