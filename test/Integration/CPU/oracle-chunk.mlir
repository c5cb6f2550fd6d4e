// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// cumsum, scores and tri_inverse on chunks that a person can verify.

func.func private @printMemrefF32(tensor<*xf32>)

!a = tensor<4x4xf32>

func.func @show(%a: !a) {
  %u = tensor.cast %a : !a to tensor<*xf32>
  call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  return
}

func.func @cumsum() {
  %x = arith.constant dense<[[1., 10.], [2., 20.], [3., 30.]]> : tensor<3x2xf32>
  %y0 = arith.constant dense<0x7FC00000> : tensor<3x2xf32>
  // CHECK: sizes = [3, 2]
  // CHECK-NEXT: [1, {{ *}}10]
  // CHECK-NEXT: [3, {{ *}}30]
  // CHECK-NEXT: [6, {{ *}}60]
  %y = gdn.cumsum ins(%x : tensor<3x2xf32>) outs(%y0 : tensor<3x2xf32>) -> tensor<3x2xf32>
  %yu = tensor.cast %y : tensor<3x2xf32> to tensor<*xf32>
  call @printMemrefF32(%yu) : (tensor<*xf32>) -> ()
  %v = arith.constant dense<[1., 2., 4., 8.]> : tensor<4xf32>
  %v0 = arith.constant dense<0x7FC00000> : tensor<4xf32>
  // CHECK: sizes = [4]
  // CHECK-NEXT: [1, {{ *}}3, {{ *}}7, {{ *}}15]
  %w = gdn.cumsum ins(%v : tensor<4xf32>) outs(%v0 : tensor<4xf32>) -> tensor<4xf32>
  %wu = tensor.cast %w : tensor<4xf32> to tensor<*xf32>
  call @printMemrefF32(%wu) : (tensor<*xf32>) -> ()
  return
}

// x_i = [i + 1, 1], y_j = [10, j]: x_i . y_j = 10 (i + 1) + j.

func.func @scores() {
  %x = arith.constant dense<[[1., 1.], [2., 1.], [3., 1.], [4., 1.]]> : tensor<4x2xf32>
  %y = arith.constant dense<[[10., 0.], [10., 1.], [10., 2.], [10., 3.]]> : tensor<4x2xf32>
  %a0 = arith.constant dense<0x7FC00000> : !a
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [10, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [20, {{ *}}21, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [30, {{ *}}31, {{ *}}32, {{ *}}0]
  // CHECK-NEXT: [40, {{ *}}41, {{ *}}42, {{ *}}43]
  %a = gdn.scores ins(%x, %y : tensor<4x2xf32>, tensor<4x2xf32>) outs(%a0 : !a) -> !a
  call @show(%a) : (!a) -> ()
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [0, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [20, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [30, {{ *}}31, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [40, {{ *}}41, {{ *}}42, {{ *}}0]
  %b = gdn.scores ins(%x, %y : tensor<4x2xf32>, tensor<4x2xf32>) outs(%a0 : !a) {strict} -> !a
  call @show(%b) : (!a) -> ()

  // Cumulative gates 0, -ln 2, -1e4, -1e4 - 2: the pair (1, 0) is halved, all
  // pairs across the reset at token 2 vanish, (3, 2) decays by exp(-2) =
  // 0.135335; the masked pairs (exp(1e4) = inf) are not computed.
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [10, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [10, {{ *}}21, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [0, {{ *}}0, {{ *}}32, {{ *}}0]
  // CHECK-NEXT: [0, {{ *}}0, {{ *}}5.68408, {{ *}}43]
  %g = arith.constant dense<[0., -0.693147181, -1.0e4, -10002.]> : tensor<4xf32>
  %c = gdn.scores ins(%x, %y : tensor<4x2xf32>, tensor<4x2xf32>) gate(%g : tensor<4xf32>) outs(%a0 : !a) -> !a
  call @show(%c) : (!a) -> ()

  // Per channel: channel 0 (the 10 (i + 1)) halves per token, channel 1 stays.
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [10, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [10, {{ *}}21, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [7.5, {{ *}}16, {{ *}}32, {{ *}}0]
  // CHECK-NEXT: [5, {{ *}}11, {{ *}}22, {{ *}}43]
  %h = arith.constant dense<[[0., 0.], [-0.693147181, 0.], [-1.38629436, 0.], [-2.07944154, 0.]]> : tensor<4x2xf32>
  %d = gdn.scores ins(%x, %y : tensor<4x2xf32>, tensor<4x2xf32>) gate(%h : tensor<4x2xf32>) outs(%a0 : !a) -> !a
  call @show(%d) : (!a) -> ()
  return
}

// Equal keys with beta = 2 give 1, -2, 2, -2 down each column (the diagonal and
// the upper part of the input, here NaN, are not read); then a matrix with
// distinct entries: rows of the inverse by hand,
//   row 1: -2; row 2: -3 + 4 * 2 = 5, -4; row 3: -5 + 6 * 2 - 7 * 5 = -28, ...

func.func @triInverse() {
  %x0 = arith.constant dense<0x7FC00000> : !a
  %l = arith.constant dense<[[0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000],
                             [2., 0x7FC00000, 0x7FC00000, 0x7FC00000],
                             [2., 2., 0x7FC00000, 0x7FC00000], [2., 2., 2., 0x7FC00000]]> : !a
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [1, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [-2, {{ *}}1, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [2, {{ *}}-2, {{ *}}1, {{ *}}0]
  // CHECK-NEXT: [-2, {{ *}}2, {{ *}}-2, {{ *}}1]
  %x = gdn.tri_inverse ins(%l : !a) outs(%x0 : !a) -> !a
  call @show(%x) : (!a) -> ()
  %m = arith.constant dense<[[9., 9., 9., 9.], [2., 9., 9., 9.], [3., 4., 9., 9.], [5., 6., 7., 9.]]> : !a
  // CHECK: sizes = [4, 4]
  // CHECK-NEXT: [1, {{ *}}0, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [-2, {{ *}}1, {{ *}}0, {{ *}}0]
  // CHECK-NEXT: [5, {{ *}}-4, {{ *}}1, {{ *}}0]
  // CHECK-NEXT: [-28, {{ *}}22, {{ *}}-7, {{ *}}1]
  %y = gdn.tri_inverse ins(%m : !a) outs(%x0 : !a) -> !a
  call @show(%y) : (!a) -> ()
  return
}

func.func @main() {
  call @cumsum() : () -> ()
  call @scores() : () -> ()
  call @triInverse() : () -> ()
  return
}
