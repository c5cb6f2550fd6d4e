// RUN: rm -rf %t && split-file %s %t
// RUN: not gdn-compile %t/scalar.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not gdn-compile %t/branch.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=BRANCH
// RUN: not gdn-compile %t/write.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=WRITE
// RUN: not gdn-compile %t/grid.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=GRID
// RUN: not ls %t/out

//--- scalar.mlir
// SCALAR: error: 'func.func' op argument 1 has type 'index', but a manifest describes contiguous arrays
func.func @nothing(%x: memref<16x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @host(%x: memref<16x8xf32>, %n: index) {
  gdn_tile.launch @nothing grid(%n) (%x : memref<16x8xf32>)
  return
}

//--- branch.mlir
// BRANCH: error: 'scf.if' op cannot be expressed in a manifest
func.func @nothing(%x: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @host(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %some = arith.cmpi sgt, %n, %c0 : index
  scf.if %some {
    gdn_tile.launch @nothing grid(%n) (%x : memref<?x8xf32>)
  }
  return
}

//--- write.mlir
// WRITE: error: 'memref.store' op cannot be expressed in a manifest
func.func @nothing(%x: memref<16x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @host(%x: memref<16x8xf32>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%c1, %c1] : memref<16x8xf32>
  gdn_tile.launch @nothing grid(%c1) (%x : memref<16x8xf32>)
  return
}

//--- grid.mlir
// GRID: error: 'arith.xori' op cannot be expressed in a manifest
func.func @nothing(%x: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}
func.func @host(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %odd = arith.xori %n, %c5 : index
  gdn_tile.launch @nothing grid(%odd) (%x : memref<?x8xf32>)
  return
}
