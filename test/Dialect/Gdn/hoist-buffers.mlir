// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-hoist-buffers))" --split-input-file | FileCheck %s

// Out of the branch and both loops.
// CHECK-LABEL: func @branch
//       CHECK: memref.alloc() : memref<4xf32>
//       CHECK: scf.for
//       CHECK:   scf.if
//   CHECK-NOT:   memref.alloc
func.func @branch(%n: index, %p: i1, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.if %p {
        %a = memref.alloc() : memref<4xf32>
        %v = memref.subview %a[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
        memref.store %x, %v[%c0] : memref<2xf32, strided<[1], offset: 1>>
      }
    }
  }
  return
}

// -----

// As far as the size is known.
// CHECK-LABEL: func @size
//       CHECK: scf.for
//       CHECK:   %[[S:.+]] = arith.addi
//       CHECK:   memref.alloc(%[[S]])
//       CHECK:   scf.for
func.func @size(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %s = arith.addi %i, %c1 : index
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.alloc(%s) : memref<?xf32>
      memref.store %x, %a[%c0] : memref<?xf32>
    }
  }
  return
}

// -----

// A buffer that the next iteration reads has to be a new one each time.
// CHECK-LABEL: func @carried
//       CHECK: scf.for
//  CHECK-NEXT:   memref.alloc
func.func @carried(%n: index, %x: f32, %b: memref<4xf32>) -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %b) -> memref<4xf32> {
    %a = memref.alloc() : memref<4xf32>
    %y = memref.load %old[%c0] : memref<4xf32>
    memref.store %y, %a[%c1] : memref<4xf32>
    scf.yield %a : memref<4xf32>
  }
  return %r : memref<4xf32>
}
