// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Packed and empty sequences, T = 0 and T = 1. K = V = 1, q = k = 1, scale 1,
// linear attention: a state is the sum of its initial value and its v.

func.func private @printMemrefF32(tensor<*xf32>)

!t = tensor<1x?x1x1xf32>

// offsets 0 0 3 3 4, initial states 10 20 30 40, v = 1 2 3 4: sequences 0 and 2
// are empty. Works for 32- and 64-bit offsets.

func.func @packed(%one: !t, %v: !t) {
  %s0 = arith.constant dense<[[[[10.]]], [[[20.]]], [[[30.]]], [[[40.]]]]> : tensor<4x1x1x1xf32>
  %cu = arith.constant dense<[0, 0, 3, 3, 4]> : tensor<5xi32>
  // CHECK: sizes = [1, 4, 1, 1]
  // CHECK-NEXT: [21]
  // CHECK-NEXT: [23]
  // CHECK-NEXT: [26]
  // CHECK-NEXT: [44]
  // CHECK: sizes = [4, 1, 1, 1]
  // CHECK-NEXT: [10]
  // CHECK-NEXT: [26]
  // CHECK-NEXT: [30]
  // CHECK-NEXT: [44]
  %o, %s = gdn.recurrence ins(%one, %one, %v : !t, !t, !t) offsets(%cu : tensor<5xi32>)
      outs(%one, %s0 : !t, tensor<4x1x1x1xf32>) {scale = 1.0} -> !t, tensor<4x1x1x1xf32>
  %ou = tensor.cast %o : !t to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()
  %su = tensor.cast %s : tensor<4x1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()

  %cu64 = arith.constant dense<[0, 1, 4]> : tensor<3xi64>
  %s1 = arith.constant dense<[[[[10.]]], [[[20.]]]]> : tensor<2x1x1x1xf32>
  // CHECK: sizes = [2, 1, 1, 1]
  // CHECK-NEXT: [11]
  // CHECK-NEXT: [29]
  %p, %r = gdn.recurrence ins(%one, %one, %v : !t, !t, !t) offsets(%cu64 : tensor<3xi64>)
      outs(%one, %s1 : !t, tensor<2x1x1x1xf32>) {scale = 1.0} -> !t, tensor<2x1x1x1xf32>
  %ru = tensor.cast %r : tensor<2x1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%ru) : (tensor<*xf32>) -> ()
  return
}

// T tokens of two rows of a batch: T = 0 keeps the states, T = 1 is one decode
// step of each row.

func.func @batch(%n: index) {
  %unit = arith.constant 1.0 : f32
  %x = tensor.splat %unit[%n] : tensor<2x?x1x1xf32>
  %s0 = arith.constant dense<[[[[10.]]], [[[20.]]]]> : tensor<2x1x1x1xf32>
  %o, %s = gdn.recurrence ins(%x, %x, %x : tensor<2x?x1x1xf32>, tensor<2x?x1x1xf32>, tensor<2x?x1x1xf32>)
      outs(%x, %s0 : tensor<2x?x1x1xf32>, tensor<2x1x1x1xf32>) {scale = 2.0} -> tensor<2x?x1x1xf32>, tensor<2x1x1x1xf32>
  %ou = tensor.cast %o : tensor<2x?x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()
  %su = tensor.cast %s : tensor<2x1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<1x4x1x1xf32>
  %v = arith.constant dense<[[[[1.]], [[2.]], [[3.]], [[4.]]]]> : tensor<1x4x1x1xf32>
  %od = tensor.cast %one : tensor<1x4x1x1xf32> to !t
  %vd = tensor.cast %v : tensor<1x4x1x1xf32> to !t
  call @packed(%od, %vd) : (!t, !t) -> ()
  // CHECK: sizes = [2, 0, 1, 1]
  // CHECK: sizes = [2, 1, 1, 1]
  // CHECK-NEXT: [10]
  // CHECK-NEXT: [20]
  call @batch(%c0) : (index) -> ()
  // CHECK: sizes = [2, 1, 1, 1]
  // CHECK-NEXT: [22]
  // CHECK-NEXT: [42]
  // CHECK: sizes = [2, 1, 1, 1]
  // CHECK-NEXT: [11]
  // CHECK-NEXT: [21]
  call @batch(%c1) : (index) -> ()
  return
}
