// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Distinct one-hot keys, no gate, beta = 0.75: the state is a lookup table.
// Token t writes 0.75 v_t under key t, query t reads key t / 2 (so o_1 reads
// what o_0 read). Everything is exact. K = 4, V = 2, scale 1.

func.func private @printMemrefF32(tensor<*xf32>)

func.func @main() {
  %q = arith.constant dense<[[[[1., 0., 0., 0.]], [[1., 0., 0., 0.]], [[0., 1., 0., 0.]], [[0., 1., 0., 0.]]]]> : tensor<1x4x1x4xf32>
  %k = arith.constant dense<[[[[1., 0., 0., 0.]], [[0., 1., 0., 0.]], [[0., 0., 1., 0.]], [[0., 0., 0., 1.]]]]> : tensor<1x4x1x4xf32>
  %v = arith.constant dense<[[[[1., -2.]], [[3., -4.]], [[5., -6.]], [[7., -8.]]]]> : tensor<1x4x1x2xf32>
  %b = arith.constant dense<0.75> : tensor<1x4x1xf32>
  %nan = arith.constant 0x7FC00000 : f32
  %zero = arith.constant 0.0 : f32
  %o0 = tensor.splat %nan : tensor<1x4x1x2xf32>
  %s0 = tensor.splat %zero : tensor<1x1x2x4xf32>
  %o, %s = gdn.recurrence ins(%q, %k, %v : tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x2xf32>)
      beta(%b : tensor<1x4x1xf32>) outs(%o0, %s0 : tensor<1x4x1x2xf32>, tensor<1x1x2x4xf32>) {scale = 1.0}
      -> tensor<1x4x1x2xf32>, tensor<1x1x2x4xf32>

  // CHECK: sizes = [1, 4, 1, 2]
  // CHECK: [0.75, -1.5]
  // CHECK: [0.75, -1.5]
  // CHECK: [2.25, -3]
  // CHECK: [2.25, -3]
  %ou = tensor.cast %o : tensor<1x4x1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [1, 1, 2, 4]
  // CHECK: [0.75, 2.25, 3.75, 5.25]
  // CHECK: [-1.5, -3, -4.5, -6]
  %su = tensor.cast %s : tensor<1x1x2x4xf32> to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()
  return
}
