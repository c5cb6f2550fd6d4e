// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// cumsum, tri_inverse and scores against values that are known exactly.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// Prefix sums of ones times the column number + 1, and of ones.
func.func @cumsum(%out: memref<16x4xf32>, %line: memref<16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %column = gdn_tile.iota : vector<1x4xi32>
  %number = arith.sitofp %column : vector<1x4xi32> to vector<1x4xf32>
  %one = arith.constant dense<1.0> : vector<1x4xf32>
  %value = arith.addf %number, %one : vector<1x4xf32>
  %ones = arith.constant dense<1.0> : vector<1x16xf32>
  %all = vector.broadcast %value : vector<1x4xf32> to vector<16x4xf32>
  %tile = memref.alloc() : memref<16x4xf32, #shared>
  %row = memref.alloc() : memref<16xf32, #shared>
  gdn_tile.store %all, %tile[%c0, %c0] dims [0, 1] : vector<16x4xf32>, memref<16x4xf32, #shared>
  gdn_tile.store %ones, %row[%c0] dims [0] : vector<1x16xf32>, memref<16xf32, #shared>
  gdn_tile.cumsum %tile : memref<16x4xf32, #shared>
  gdn_tile.cumsum %row : memref<16xf32, #shared>
  gdn_tile.copy_out %tile to %out[%c0, %c0] dims [0, 1] : memref<16x4xf32, #shared> to memref<16x4xf32>
  gdn_tile.copy_out %row to %line[%c0] dims [0] : memref<16xf32, #shared> to memref<16xf32>
  return
}

// The inverse of a lower triangle of ones has -1 below its diagonal and
// nothing else. What stands on and above the diagonal does not matter: 7.
func.func @inverse(%out: memref<16x16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %r = gdn_tile.iota : vector<16x1xi32>
  %c = gdn_tile.iota : vector<1x16xi32>
  %rows = vector.broadcast %r : vector<16x1xi32> to vector<16x16xi32>
  %columns = vector.broadcast %c : vector<1x16xi32> to vector<16x16xi32>
  %isLower = arith.cmpi sgt, %rows, %columns : vector<16x16xi32>
  %one = arith.constant dense<1.0> : vector<16x16xf32>
  %seven = arith.constant dense<7.0> : vector<16x16xf32>
  %l = arith.select %isLower, %one, %seven : vector<16x16xi1>, vector<16x16xf32>
  %tile = memref.alloc() : memref<16x16xf32, #shared>
  gdn_tile.store %l, %tile[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32, #shared>
  gdn_tile.tri_inverse %tile : memref<16x16xf32, #shared>
  gdn_tile.copy_out %tile to %out[%c0, %c0] dims [0, 1] : memref<16x16xf32, #shared> to memref<16x16xf32>
  return
}

// Gates of -300 in row i, clamped to -100 and halved, 3 rows of 16: sums of -50 i, which stay at -150.
func.func @sums(%gate: memref<16x4xf32>, %out: memref<17x4xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %tile = memref.alloc() : memref<17x4xf32, #shared>
  gdn_tile.copy_sums %gate[%c0, %c0] dims [0, 1] valid(%c3, %c2) to %tile {columns = 4 : i64, least = -100.0, factor = 0.5} : memref<16x4xf32> to memref<17x4xf32, #shared>
  gdn_tile.copy_out %tile to %out[%c0, %c0] dims [0, 1] : memref<17x4xf32, #shared> to memref<17x4xf32>
  return
}

// The same of one column as a vector, all 16 rows: sums of -50 (i + 1). Factors that follow from the sums i - 15:
// 2^(i - 15), 3 times 2^(15 - i) and half of the first; for
// keys with the factor 3 and queries with i - 15 these times them, and the last decay, 1, eight times.
func.func @factors(%gate: memref<16x4xf32>, %line: memref<16xf32>, %rows: memref<48xf32>, %raw: memref<56xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %gates = memref.alloc() : memref<16x4xf32, #shared>
  %sums = memref.alloc() : memref<16xf32, #shared>
  %powers = memref.alloc() : memref<16xf32, #shared>
  %beta = memref.alloc() : memref<16xf32, #shared>
  %factors = memref.alloc() : memref<48xf32, #shared>
  gdn_tile.copy_in %gate[%c0, %c0] dims [0, 1] to %gates : memref<16x4xf32> to memref<16x4xf32, #shared>
  gdn_tile.cumsum %sums of %gates column %c2 {least = -100.0, factor = 0.5} : memref<16xf32, #shared> of memref<16x4xf32, #shared>
  gdn_tile.copy_out %sums to %line[%c0] dims [0] : memref<16xf32, #shared> to memref<16xf32>
  %i = gdn_tile.iota : vector<1x16xi32>
  %number = arith.sitofp %i : vector<1x16xi32> to vector<1x16xf32>
  %fifteen = arith.constant dense<15.0> : vector<1x16xf32>
  %power = arith.subf %number, %fifteen : vector<1x16xf32>
  %three = arith.constant dense<3.0> : vector<1x16xf32>
  gdn_tile.store %power, %powers[%c0] dims [0] : vector<1x16xf32>, memref<16xf32, #shared>
  gdn_tile.store %three, %beta[%c0] dims [0] : vector<1x16xf32>, memref<16xf32, #shared>
  gdn_tile.decays %powers times %beta to %factors {scale = 0.5} : memref<16xf32, #shared> times memref<16xf32, #shared> to memref<48xf32, #shared>
  gdn_tile.copy_out %factors to %rows[%c0] dims [0] : memref<48xf32, #shared> to memref<48xf32>
  %ofRaw = memref.alloc() : memref<56xf32, #shared>
  gdn_tile.decays %powers times %beta keys %beta queries %powers to %ofRaw {scale = 0.5} : memref<16xf32, #shared> times memref<16xf32, #shared>
      keys memref<16xf32, #shared> queries memref<16xf32, #shared> to memref<56xf32, #shared>
  gdn_tile.copy_out %ofRaw to %raw[%c0] dims [0] : memref<56xf32, #shared> to memref<56xf32>
  return
}

// q = 1, k = 2, left = 3 in 16 columns, sums[i, c] = -200 i: the decay from j
// to i is 0 in float32 for i > j and 1 for i = j; above the diagonal 2^200
// would overflow. So inclusive scores are 32 on the diagonal, strict ones 0;
// without decay they are 32 and 96 below it. The accumulators are 1.
func.func @scores(%inclusive: memref<16x16xf32>, %strict: memref<16x16xf32>, %free: memref<16x16xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %q1 = arith.constant dense<1.0> : vector<16x16xbf16>
  %k2 = arith.constant dense<2.0> : vector<16x16xbf16>
  %l3 = arith.constant dense<3.0> : vector<16x16xbf16>
  %zero = arith.constant dense<0.0> : vector<17x16xf32>
  %one = arith.constant dense<1.0> : vector<16x16xf32>
  %r = gdn_tile.iota : vector<17x1xi32>
  %f = arith.sitofp %r : vector<17x1xi32> to vector<17x1xf32>
  %scale = arith.constant dense<-200.0> : vector<17x1xf32>
  %g1 = arith.mulf %f, %scale : vector<17x1xf32>
  %g = vector.broadcast %g1 : vector<17x1xf32> to vector<17x16xf32>
  %q = memref.alloc() : memref<16x16xbf16, #shared>
  %k = memref.alloc() : memref<16x16xbf16, #shared>
  %left = memref.alloc() : memref<16x16xbf16, #shared>
  %sums = memref.alloc() : memref<17x16xf32, #shared>
  gdn_tile.store %q1, %q[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  gdn_tile.store %k2, %k[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  gdn_tile.store %l3, %left[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  gdn_tile.store %g, %sums[%c0, %c0] dims [0, 1] : vector<17x16xf32>, memref<17x16xf32, #shared>
  %p, %a = gdn_tile.scores %q, %k, %sums acc(%one) strict(%left acc %one) : (memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<17x16xf32, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>) -> (vector<16x16xf32>, vector<16x16xf32>)
  gdn_tile.store %p, %inclusive[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %a, %strict[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  gdn_tile.store %zero, %sums[%c0, %c0] dims [0, 1] : vector<17x16xf32>, memref<17x16xf32, #shared>
  %p2, %a2 = gdn_tile.scores %q, %k, %sums acc(%one) strict(%left acc %one) : (memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<17x16xf32, #shared>, vector<16x16xf32>, memref<16x16xbf16, #shared>, vector<16x16xf32>) -> (vector<16x16xf32>, vector<16x16xf32>)
  gdn_tile.store %a2, %free[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  return
}

func.func @host(%sums: memref<16x4xf32>, %line: memref<16xf32>, %a: memref<16x16xf32>, %b: memref<16x16xf32>, %c: memref<16x16xf32>, %d: memref<16x16xf32>, %gate: memref<16x4xf32>, %e: memref<17x4xf32>, %f: memref<16xf32>, %g: memref<48xf32>, %h: memref<56xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @cumsum grid(%c1) (%sums, %line : memref<16x4xf32>, memref<16xf32>)
  gdn_tile.launch @inverse grid(%c1) (%a : memref<16x16xf32>)
  gdn_tile.launch @scores grid(%c1) (%b, %c, %d : memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>)
  gdn_tile.launch @sums grid(%c1) (%gate, %e : memref<16x4xf32>, memref<17x4xf32>)
  gdn_tile.launch @factors grid(%c1) (%gate, %f, %g, %h : memref<16x4xf32>, memref<16xf32>, memref<48xf32>, memref<56xf32>)
  return
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %sums = memref.alloc() : memref<16x4xf32>
  %line = memref.alloc() : memref<16xf32>
  %a = memref.alloc() : memref<16x16xf32>
  %b = memref.alloc() : memref<16x16xf32>
  %c = memref.alloc() : memref<16x16xf32>
  %d = memref.alloc() : memref<16x16xf32>
  %gate = memref.alloc() : memref<16x4xf32>
  %e = memref.alloc() : memref<17x4xf32>
  %strong = arith.constant -3.0e+02 : f32
  linalg.fill ins(%strong : f32) outs(%gate : memref<16x4xf32>)
  %f = memref.alloc() : memref<16xf32>
  %g = memref.alloc() : memref<48xf32>
  %h = memref.alloc() : memref<56xf32>
  call @host(%sums, %line, %a, %b, %c, %d, %gate, %e, %f, %g, %h) : (memref<16x4xf32>, memref<16xf32>, memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>, memref<16x4xf32>, memref<17x4xf32>, memref<16xf32>, memref<48xf32>, memref<56xf32>) -> ()
  // CHECK: sizes = [16, 4]
  // CHECK-NEXT: {{^}}{{\[}}[1,   2,   3,   4],
  // CHECK-NEXT: [2,   4,   6,   8],
  // CHECK-NEXT: [3,   6,   9,   12],
  // CHECK: [16,   32,   48,   64]]
  %0 = memref.cast %sums : memref<16x4xf32> to memref<*xf32>
  call @printMemrefF32(%0) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16]
  // CHECK-NEXT: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
  %1 = memref.cast %line : memref<16xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[1,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [-1,   1,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [0,   -1,   1,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK: [0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   -1,   1]]
  %2 = memref.cast %a : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%2) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[33,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK-NEXT: [1,   33,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK: [1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   33]]
  %3 = memref.cast %b : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%3) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK-NEXT: [1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK: [1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1]]
  %4 = memref.cast %c : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%4) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK-NEXT: [97,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK-NEXT: [97,   97,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1,   1],
  // CHECK: [97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   97,   1]]
  %5 = memref.cast %d : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%5) : (memref<*xf32>) -> ()
  // CHECK: sizes = [17, 4]
  // CHECK-NEXT: {{^}}{{\[}}[0,   0,   0,   0],
  // CHECK-NEXT: [-50,   -50,   0,   0],
  // CHECK-NEXT: [-100,   -100,   0,   0],
  // CHECK-NEXT: [-150,   -150,   0,   0],
  // CHECK-NEXT: [-150,   -150,   0,   0],
  // CHECK: [-150,   -150,   0,   0]]
  %6 = memref.cast %e : memref<17x4xf32> to memref<*xf32>
  call @printMemrefF32(%6) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16]
  // CHECK-NEXT: [-50, -100, -150, -200, -250, -300, -350, -400, -450, -500, -550, -600, -650, -700, -750, -800]
  %7 = memref.cast %f : memref<16xf32> to memref<*xf32>
  call @printMemrefF32(%7) : (memref<*xf32>) -> ()
  // CHECK: sizes = [48]
  // CHECK-NEXT: 0.25, 0.5, 1, 98304, 49152,
  // CHECK-SAME: 12, 6, 3, 1.52588e-05,
  // CHECK-SAME: 0.125, 0.25, 0.5]
  %8 = memref.cast %g : memref<48xf32> to memref<*xf32>
  call @printMemrefF32(%8) : (memref<*xf32>) -> ()
  // CHECK: sizes = [56]
  // CHECK-NEXT: 0.75, 1.5, 3, 294912, 147456,
  // CHECK-SAME: 36, 18, 9, -0.00022
  // CHECK-SAME: -0.1875, -0.25, -0.25, 0, 1, 1, 1, 1, 1, 1, 1, 1]
  %9 = memref.cast %h : memref<56xf32> to memref<*xf32>
  call @printMemrefF32(%9) : (memref<*xf32>) -> ()
  return
}
