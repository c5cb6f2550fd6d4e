// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Factors per channel on one token, K = V = 2, scale 1, q = [1, 0], k = [1, 1],
// v = [10, 20], S0 = [[1, 2], [3, 4]].

func.func private @printMemrefF32(tensor<*xf32>)

!x = tensor<1x1x1x2xf32>
!s = tensor<1x1x2x2xf32>

func.func @show(%o: !x, %s: !s) {
  %ou = tensor.cast %o : !x to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()
  %su = tensor.cast %s : !s to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %q = arith.constant dense<[[[[1., 0.]]]]> : !x
  %k = arith.constant dense<[[[[1., 1.]]]]> : !x
  %v = arith.constant dense<[[[[10., 20.]]]]> : !x
  %s0 = arith.constant dense<[[[[1., 2.], [3., 4.]]]]> : !s
  %o0 = arith.constant dense<0x7FC00000> : !x

  // Erase [1, 0] and write [2, 0.5]: S (e o k) = [1, 3], w o v = [20, 10],
  // u = [19, 7], S = S0 + u k^T.
  // CHECK: sizes = [1, 1, 1, 2]
  // CHECK-NEXT: [20, {{ *}}10]
  // CHECK: sizes = [1, 1, 2, 2]
  // CHECK-NEXT: [20, {{ *}}21]
  // CHECK-NEXT: [10, {{ *}}11]
  %e = arith.constant dense<[[[[1., 0.]]]]> : !x
  %w = arith.constant dense<[[[[2., 0.5]]]]> : !x
  %oa, %sa = gdn.recurrence ins(%q, %k, %v : !x, !x, !x) erase(%e : !x) write(%w : !x)
      outs(%o0, %s0 : !x, !s) {scale = 1.0} -> !x, !s
  call @show(%oa, %sa) : (!x, !s) -> ()

  // A gate of ln 0.5 on channel 0 and -inf on channel 1 decays the columns
  // first, [[0.5, 0], [1.5, 0]]; beta = 0.5: S k = [0.5, 1.5],
  // u = [4.75, 9.25].
  // CHECK: sizes = [1, 1, 1, 2]
  // CHECK-NEXT: [5.25, {{ *}}10.75]
  // CHECK: sizes = [1, 1, 2, 2]
  // CHECK-NEXT: [5.25, {{ *}}4.75]
  // CHECK-NEXT: [10.75, {{ *}}9.25]
  %g = arith.constant dense<[[[[-0.693147181, 0xFF800000]]]]> : !x
  %b = arith.constant dense<0.5> : tensor<1x1x1xf32>
  %ob, %sb = gdn.recurrence ins(%q, %k, %v : !x, !x, !x) gate(%g : !x) beta(%b : tensor<1x1x1xf32>)
      outs(%o0, %s0 : !x, !s) {scale = 1.0} -> !x, !s
  call @show(%ob, %sb) : (!x, !s) -> ()

  // A gate above 0 is growth and computed as given: ln 2 on channel 1,
  // [[1, 4], [3, 8]] + v k^T.
  // CHECK: sizes = [1, 1, 1, 2]
  // CHECK-NEXT: [11, {{ *}}23]
  // CHECK: sizes = [1, 1, 2, 2]
  // CHECK-NEXT: [11, {{ *}}14]
  // CHECK-NEXT: [23, {{ *}}28]
  %h = arith.constant dense<[[[[0.0, 0.693147181]]]]> : !x
  %oc, %sc = gdn.recurrence ins(%q, %k, %v : !x, !x, !x) gate(%h : !x)
      outs(%o0, %s0 : !x, !s) {scale = 1.0} -> !x, !s
  call @show(%oc, %sc) : (!x, !s) -> ()
  return
}
