// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

func.func private @printMemrefF32(tensor<*xf32>)

!m = tensor<3x2xf32>

// [3, 4] / 5; a zero row gives zeros; with eps = 16, [0, 3] / sqrt(9 + 16).
// bf16 rounds once: 0.6 -> 0.601562, 0.8 -> 0.800781.

func.func @l2norm() {
  %y0 = arith.constant dense<0x7FC00000> : !m
  %x = arith.constant dense<[[3., 4.], [0., 0.], [0., -7.]]> : !m
  // CHECK: sizes = [3, 2]
  // CHECK-NEXT: [0.6, {{ *}}0.8]
  // CHECK-NEXT: [0, {{ *}}0]
  // CHECK-NEXT: [0, {{ *}}-1]
  %y = gdn.l2norm ins(%x : !m) outs(%y0 : !m) -> !m
  %yu = tensor.cast %y : !m to tensor<*xf32>
  call @printMemrefF32(%yu) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [3, 2]
  // CHECK-NEXT: [0.468521, {{ *}}0.624695]
  // CHECK-NEXT: [0, {{ *}}0]
  // CHECK-NEXT: [0, {{ *}}-0.868243]
  %z = gdn.l2norm ins(%x : !m) outs(%y0 : !m) {eps = 16.0} -> !m
  %zu = tensor.cast %z : !m to tensor<*xf32>
  call @printMemrefF32(%zu) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [3, 2]
  // CHECK-NEXT: [0.601562, {{ *}}0.800781]
  %xb = arith.truncf %x : !m to tensor<3x2xbf16>
  %yb0 = tensor.empty() : tensor<3x2xbf16>
  %yb = gdn.l2norm ins(%xb : tensor<3x2xbf16>) outs(%yb0 : tensor<3x2xbf16>) -> tensor<3x2xbf16>
  %yf = arith.extf %yb : tensor<3x2xbf16> to !m
  %yfu = tensor.cast %yf : !m to tensor<*xf32>
  call @printMemrefF32(%yfu) : (tensor<*xf32>) -> ()
  return
}

// mean([1, 7]^2) = 25: [0.2, 1.4], times w = [10, 1]: [2, 1.4], times act(z)
// with z = [2, -1]:
//   none [4, -1.4]
//   sigmoid [2 * 0.880797, 1.4 * 0.268941]
//   silu (the default) [4 * 0.880797, -1.4 * 0.268941].
// eps = 11 gives [1, 7] / 6.

func.func @gatedRMSNorm() {
  %x = arith.constant dense<[[1., 7.]]> : tensor<1x2xf32>
  %z = arith.constant dense<[[2., -1.]]> : tensor<1x2xf32>
  %w = arith.constant dense<[10., 1.]> : tensor<2xf32>
  %y0 = arith.constant dense<0x7FC00000> : tensor<1x2xf32>
  // CHECK: sizes = [1, 2]
  // CHECK-NEXT: [4, {{ *}}-1.4]
  %none = gdn.gated_rms_norm ins(%x, %z, %w : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>) outs(%y0 : tensor<1x2xf32>)
      {activation = #gdn.activation<none>, eps = 0.0} -> tensor<1x2xf32>
  %u0 = tensor.cast %none : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u0) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [1, 2]
  // CHECK-NEXT: [1.76159, {{ *}}0.376518]
  %sigmoid = gdn.gated_rms_norm ins(%x, %z, %w : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>) outs(%y0 : tensor<1x2xf32>)
      {activation = #gdn.activation<sigmoid>} -> tensor<1x2xf32>
  %u1 = tensor.cast %sigmoid : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u1) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [1, 2]
  // CHECK-NEXT: [3.52319, {{ *}}-0.376518]
  %silu = gdn.gated_rms_norm ins(%x, %z, %w : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>) outs(%y0 : tensor<1x2xf32>)
      -> tensor<1x2xf32>
  %u2 = tensor.cast %silu : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u2) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [1, 2]
  // CHECK-NEXT: [3.33333, {{ *}}-1.16667]
  %eps = gdn.gated_rms_norm ins(%x, %z, %w : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>) outs(%y0 : tensor<1x2xf32>)
      {activation = #gdn.activation<none>, eps = 11.0} -> tensor<1x2xf32>
  %u3 = tensor.cast %eps : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%u3) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  call @l2norm() : () -> ()
  call @gatedRMSNorm() : () -> ()
  return
}
