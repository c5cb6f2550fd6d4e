// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// q, k and v are slices of one packed buffer [B, T, q | k | v] (row stride 6), o
// is written into a slice of a larger buffer, the state is every second entry of
// a pool: all strides are honoured and nothing else is touched.

func.func private @printMemrefF32(memref<*xf32>)

!view = memref<1x3x1x2xf32, strided<[?, ?, ?, ?], offset: ?>>
!pool = memref<2x1x2x2xf32, strided<[?, ?, ?, ?], offset: ?>>

func.func @recurrence(%q: !view, %k: !view, %v: !view, %cu: memref<3xi32>, %o: !view, %s: !pool) {
  gdn.recurrence ins(%q, %k, %v : !view, !view, !view) offsets(%cu : memref<3xi32>) outs(%o, %s : !view, !pool) {scale = 1.0}
  return
}

func.func @main() {
  %packed = memref.get_global @packed : memref<1x3x1x6xf32>
  %q = memref.subview %packed[0, 0, 0, 0] [1, 3, 1, 2] [1, 1, 1, 1]
      : memref<1x3x1x6xf32> to memref<1x3x1x2xf32, strided<[18, 6, 6, 1]>>
  %k = memref.subview %packed[0, 0, 0, 2] [1, 3, 1, 2] [1, 1, 1, 1]
      : memref<1x3x1x6xf32> to memref<1x3x1x2xf32, strided<[18, 6, 6, 1], offset: 2>>
  %v = memref.subview %packed[0, 0, 0, 4] [1, 3, 1, 2] [1, 1, 1, 1]
      : memref<1x3x1x6xf32> to memref<1x3x1x2xf32, strided<[18, 6, 6, 1], offset: 4>>
  %cu = memref.get_global @offsets : memref<3xi32>
  %minus = arith.constant -1.0 : f32
  %out = memref.alloc() : memref<1x3x1x4xf32>
  linalg.fill ins(%minus : f32) outs(%out : memref<1x3x1x4xf32>)
  %o = memref.subview %out[0, 0, 0, 1] [1, 3, 1, 2] [1, 1, 1, 1]
      : memref<1x3x1x4xf32> to memref<1x3x1x2xf32, strided<[12, 4, 4, 1], offset: 1>>
  %pool = memref.alloc() : memref<4x1x2x2xf32>
  linalg.fill ins(%minus : f32) outs(%pool : memref<4x1x2x2xf32>)
  %s = memref.subview %pool[1, 0, 0, 0] [2, 1, 2, 2] [2, 1, 1, 1]
      : memref<4x1x2x2xf32> to memref<2x1x2x2xf32, strided<[8, 4, 2, 1], offset: 4>>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<2x1x2x2xf32, strided<[8, 4, 2, 1], offset: 4>>)

  %qv = memref.cast %q : memref<1x3x1x2xf32, strided<[18, 6, 6, 1]>> to !view
  %kv = memref.cast %k : memref<1x3x1x2xf32, strided<[18, 6, 6, 1], offset: 2>> to !view
  %vv = memref.cast %v : memref<1x3x1x2xf32, strided<[18, 6, 6, 1], offset: 4>> to !view
  %ov = memref.cast %o : memref<1x3x1x2xf32, strided<[12, 4, 4, 1], offset: 1>> to !view
  %sv = memref.cast %s : memref<2x1x2x2xf32, strided<[8, 4, 2, 1], offset: 4>> to !pool
  call @recurrence(%qv, %kv, %vv, %cu, %ov, %sv) : (!view, !view, !view, memref<3xi32>, !view, !pool) -> ()

  // Sequence 0 is token 0: S = [5, 6] [3, 4]^T, q = [1, 2]: q . k = 11.
  // Sequence 1 is tokens 1 and 2: S = [9, 10] [7, 8]^T read by [5, 6] (83), then
  // + [15, 16] [13, 14]^T read by [11, 12]: 173 [9, 10] + 311 [15, 16].
  // CHECK: sizes = [1, 3, 1, 4]
  // CHECK-NEXT: [-1, {{ *}}55, {{ *}}66, {{ *}}-1]
  // CHECK-NEXT: [-1, {{ *}}747, {{ *}}830, {{ *}}-1]
  // CHECK-NEXT: [-1, {{ *}}6222, {{ *}}6706, {{ *}}-1]
  %ou = memref.cast %out : memref<1x3x1x4xf32> to memref<*xf32>
  call @printMemrefF32(%ou) : (memref<*xf32>) -> ()
  // CHECK: sizes = [4, 1, 2, 2]
  // CHECK-NEXT: [-1, {{ *}}-1]
  // CHECK-NEXT: [-1, {{ *}}-1]
  // CHECK-NEXT: [15, {{ *}}20]
  // CHECK-NEXT: [18, {{ *}}24]
  // CHECK-NEXT: [-1, {{ *}}-1]
  // CHECK-NEXT: [-1, {{ *}}-1]
  // CHECK-NEXT: [258, {{ *}}282]
  // CHECK-NEXT: [278, {{ *}}304]
  %pu = memref.cast %pool : memref<4x1x2x2xf32> to memref<*xf32>
  call @printMemrefF32(%pu) : (memref<*xf32>) -> ()
  return
}

memref.global "private" constant @packed : memref<1x3x1x6xf32>
    = dense<[[[[1., 2., 3., 4., 5., 6.]], [[5., 6., 7., 8., 9., 10.]], [[11., 12., 13., 14., 15., 16.]]]]>
memref.global "private" constant @offsets : memref<3xi32> = dense<[0, 1, 3]>
