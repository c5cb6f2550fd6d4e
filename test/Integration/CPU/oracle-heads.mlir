// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Two batch rows, two key heads, four value heads, K = 2, V = 3, one token, zero
// state, no gate, no beta: S = v k^T and o = scale (k . q) v = K^-1/2 (k . q) v.
// Value heads 0 and 1 use key head 0, heads 2 and 3 key head 1.

func.func private @printMemrefF32(tensor<*xf32>)

!q = tensor<2x1x2x2xf32>
!v = tensor<2x1x4x3xf32>

func.func @main() {
  // k . q = 1 and 2 in row 0, 4 and 0 in row 1, times sqrt(2).
  %q = arith.constant dense<[[[[1.41421356, 0.], [0., 1.41421356]]],
                             [[[2.82842712, 0.], [0., 0.]]]]> : !q
  %k = arith.constant dense<[[[[1., 5.], [6., 2.]]], [[[2., 7.], [8., 9.]]]]> : !q
  %v = arith.constant dense<[[[[1., 2., 3.], [4., 5., 6.], [7., 8., 9.], [1., 0., -1.]]],
                             [[[1., 1., 1.], [2., 2., 2.], [3., 3., 3.], [4., 4., 4.]]]]> : !v
  %zero = arith.constant 0.0 : f32
  %o0 = arith.constant dense<0x7FC00000> : !v
  // CHECK: sizes = [2, 1, 4, 3]
  // CHECK-NEXT: [1, {{ *}}2, {{ *}}3]
  // CHECK-NEXT: [4, {{ *}}5, {{ *}}6]
  // CHECK-NEXT: [14, {{ *}}16, {{ *}}18]
  // CHECK-NEXT: [2, {{ *}}0, {{ *}}-2]
  // CHECK-NEXT: [4, {{ *}}4, {{ *}}4]
  // CHECK-NEXT: [8, {{ *}}8, {{ *}}8]
  // CHECK-NEXT: [0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [0, {{ *}}0, {{ *}}0]
  %s0 = tensor.splat %zero : tensor<2x4x3x2xf32>
  %o, %s = gdn.recurrence ins(%q, %k, %v : !q, !q, !v) outs(%o0, %s0 : !v, tensor<2x4x3x2xf32>)
      -> !v, tensor<2x4x3x2xf32>
  %ou = tensor.cast %o : !v to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()

  // The state is v k^T: [V, K], here of row 0, heads 0 and 2.
  // CHECK: sizes = [2, 4, 3, 2]
  // CHECK-NEXT: [1, {{ *}}5]
  // CHECK-NEXT: [2, {{ *}}10]
  // CHECK-NEXT: [3, {{ *}}15]
  // CHECK: [42, {{ *}}14]
  // CHECK-NEXT: [48, {{ *}}16]
  // CHECK-NEXT: [54, {{ *}}18]
  %su = tensor.cast %s : tensor<2x4x3x2xf32> to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()

  // The other layout holds the transposes: [K, V].
  // CHECK: sizes = [2, 4, 2, 3]
  // CHECK-NEXT: [1, {{ *}}2, {{ *}}3]
  // CHECK-NEXT: [5, {{ *}}10, {{ *}}15]
  // CHECK: [42, {{ *}}48, {{ *}}54]
  // CHECK-NEXT: [14, {{ *}}16, {{ *}}18]
  %r0 = tensor.splat %zero : tensor<2x4x2x3xf32>
  %p, %r = gdn.recurrence ins(%q, %k, %v : !q, !q, !v) outs(%o0, %r0 : !v, tensor<2x4x2x3xf32>)
      {state_layout = #gdn.state_layout<k_first>} -> !v, tensor<2x4x2x3xf32>
  %ru = tensor.cast %r : tensor<2x4x2x3xf32> to tensor<*xf32>
  call @printMemrefF32(%ru) : (tensor<*xf32>) -> ()
  return
}
