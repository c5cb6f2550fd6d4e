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

// x = 1, y = 2 in 16 columns, gate[i, c] = -200 i: the decay from j to i < j
// is 0 in float32 for i > j and 1 for i = j; above the diagonal exp(200)
// would overflow. So inclusive scores are 32 on the diagonal, strict ones 0.
func.func @scores(%inclusive: memref<16x16xf32>, %strict: memref<16x16xf32>, %free: memref<16x16xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %x1 = arith.constant dense<1.0> : vector<16x16xbf16>
  %y2 = arith.constant dense<2.0> : vector<16x16xbf16>
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %r = gdn_tile.iota : vector<16x1xi32>
  %f = arith.sitofp %r : vector<16x1xi32> to vector<16x1xf32>
  %scale = arith.constant dense<-200.0> : vector<16x1xf32>
  %g1 = arith.mulf %f, %scale : vector<16x1xf32>
  %g = vector.broadcast %g1 : vector<16x1xf32> to vector<16x16xf32>
  %x = memref.alloc() : memref<16x16xbf16, #shared>
  %y = memref.alloc() : memref<16x16xbf16, #shared>
  %gate = memref.alloc() : memref<16x16xf32, #shared>
  %a = memref.alloc() : memref<16x16xf32, #shared>
  gdn_tile.store %x1, %x[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  gdn_tile.store %y2, %y[%c0, %c0] dims [0, 1] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
  gdn_tile.store %g, %gate[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32, #shared>
  gdn_tile.scores %x, %y, %gate to %a : memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<16x16xf32, #shared> to memref<16x16xf32, #shared>
  gdn_tile.copy_out %a to %inclusive[%c0, %c0] dims [0, 1] : memref<16x16xf32, #shared> to memref<16x16xf32>
  gdn_tile.scores %x, %y, %gate to %a {strict} : memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<16x16xf32, #shared> to memref<16x16xf32, #shared>
  gdn_tile.copy_out %a to %strict[%c0, %c0] dims [0, 1] : memref<16x16xf32, #shared> to memref<16x16xf32>
  gdn_tile.store %zero, %gate[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32, #shared>
  gdn_tile.scores %x, %y, %gate to %a {strict} : memref<16x16xbf16, #shared>, memref<16x16xbf16, #shared>, memref<16x16xf32, #shared> to memref<16x16xf32, #shared>
  gdn_tile.copy_out %a to %free[%c0, %c0] dims [0, 1] : memref<16x16xf32, #shared> to memref<16x16xf32>
  return
}

func.func @host(%sums: memref<16x4xf32>, %line: memref<16xf32>, %a: memref<16x16xf32>, %b: memref<16x16xf32>, %c: memref<16x16xf32>, %d: memref<16x16xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @cumsum grid(%c1) (%sums, %line : memref<16x4xf32>, memref<16xf32>)
  gdn_tile.launch @inverse grid(%c1) (%a : memref<16x16xf32>)
  gdn_tile.launch @scores grid(%c1) (%b, %c, %d : memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>)
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
  call @host(%sums, %line, %a, %b, %c, %d) : (memref<16x4xf32>, memref<16xf32>, memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>) -> ()
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
  // CHECK-NEXT: {{^}}{{\[}}[32,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [0,   32,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK: [0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   32]]
  %3 = memref.cast %b : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%3) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK: [0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0]]
  %4 = memref.cast %c : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%4) : (memref<*xf32>) -> ()
  // CHECK: sizes = [16, 16]
  // CHECK-NEXT: {{^}}{{\[}}[0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [32,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [32,   32,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK: [32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   0]]
  %5 = memref.cast %d : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%5) : (memref<*xf32>) -> ()
  return
}
