// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Votes: of each item the columns with an element above 1, and whether there is one.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>

func.func @votes(%x: memref<3x16x16xf32>, %out: memref<3x16xf32>, %flags: memref<3xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %limits = arith.constant dense<1.0> : vector<16x16xf32>
  %ones = arith.constant dense<1.0> : vector<1x16xf32>
  %zeros = arith.constant dense<0.0> : vector<1x16xf32>
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  gdn_tile.each_warp (%i) in (%c3) {
    %v = gdn_tile.load %x[%i, %c0, %c0] dims [1, 2] : memref<3x16x16xf32>, vector<16x16xf32>
    %large = arith.cmpf ogt, %v, %limits : vector<16x16xf32>
    %any = gdn_tile.any %large : vector<16x16xi1> to i1
    %columns = gdn_tile.any %large : vector<16x16xi1> to vector<1x16xi1>
    %r = arith.select %columns, %ones, %zeros : vector<1x16xi1>, vector<1x16xf32>
    gdn_tile.store %r, %out[%i, %c0] dims [1] : vector<1x16xf32>, memref<3x16xf32>
    %f = arith.select %any, %one, %zero : f32
    memref.store %f, %flags[%i] : memref<3xf32>
  }
  return
}

func.func @host(%x: memref<3x16x16xf32>, %out: memref<3x16xf32>, %flags: memref<3xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @votes grid(%c1) (%x, %out, %flags : memref<3x16x16xf32>, memref<3x16xf32>, memref<3xf32>)
  return
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c13 = arith.constant 13 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %half = arith.constant 0.5 : f32
  %two = arith.constant 2.0 : f32
  %x = memref.alloc() : memref<3x16x16xf32>
  %out = memref.alloc() : memref<3x16xf32>
  %flags = memref.alloc() : memref<3xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      scf.for %k = %c0 to %c16 step %c1 {
        memref.store %half, %x[%i, %j, %k] : memref<3x16x16xf32>
      }
    }
  }
  memref.store %two, %x[%c0, %c15, %c2] : memref<3x16x16xf32>
  memref.store %two, %x[%c0, %c1, %c13] : memref<3x16x16xf32>
  memref.store %two, %x[%c2, %c0, %c0] : memref<3x16x16xf32>
  call @host(%x, %out, %flags) : (memref<3x16x16xf32>, memref<3x16xf32>, memref<3xf32>) -> ()
  // CHECK: sizes = [3, 16]
  // CHECK-NEXT: {{^}}{{\[}}[0,   0,   1,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   1,   0,   0],
  // CHECK-NEXT: [0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0],
  // CHECK-NEXT: [1,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0]
  %0 = memref.cast %out : memref<3x16xf32> to memref<*xf32>
  call @printMemrefF32(%0) : (memref<*xf32>) -> ()
  // CHECK: sizes = [3]
  // CHECK-NEXT: {{^}}[1,  0,  1]
  %1 = memref.cast %flags : memref<3xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  return
}
