// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Convolution with W = 3 taps [100, 10, 1] (the last meets the current token), so
// that an output shows its three inputs as digits, oldest first.

func.func private @printMemrefF32(tensor<*xf32>)

!y = tensor<1x5x1xf32>

func.func @show(%y: tensor<?x?x?xf32>, %s: tensor<?x?x?xf32>) {
  %yu = tensor.cast %y : tensor<?x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%yu) : (tensor<*xf32>) -> ()
  %su = tensor.cast %s : tensor<?x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()
  return
}

// S = W - 1 = 2: history 8, 9, then 1 2 3 4 5; the new state is 4, 5.

func.func @minimalState(%x: !y, %w: tensor<1x3xf32>) {
  %y0 = arith.constant dense<0x7FC00000> : !y
  %s0 = arith.constant dense<[[[8., 9.]]]> : tensor<1x1x2xf32>
  // CHECK: sizes = [1, 5, 1]
  // CHECK-NEXT: [891]
  // CHECK-NEXT: [912]
  // CHECK-NEXT: [123]
  // CHECK-NEXT: [234]
  // CHECK-NEXT: [345]
  // CHECK: sizes = [1, 1, 2]
  // CHECK-NEXT: [4, {{ *}}5]
  %y, %s = gdn.short_conv ins(%x, %w : !y, tensor<1x3xf32>) outs(%y0, %s0 : !y, tensor<1x1x2xf32>)
      -> !y, tensor<1x1x2xf32>
  %yd = tensor.cast %y : !y to tensor<?x?x?xf32>
  %sd = tensor.cast %s : tensor<1x1x2xf32> to tensor<?x?x?xf32>
  call @show(%yd, %sd) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> ()
  return
}

// S = W = 3: the oldest entry, 7, is not used; one token (decode) shifts the
// state by one. A bias of 0.5.

func.func @decode(%w: tensor<1x3xf32>) {
  %x = arith.constant dense<1.0> : tensor<1x1x1xf32>
  %bias = arith.constant dense<0.5> : tensor<1xf32>
  %y0 = arith.constant dense<0x7FC00000> : tensor<1x1x1xf32>
  %s0 = arith.constant dense<[[[7., 8., 9.]]]> : tensor<1x1x3xf32>
  // CHECK: sizes = [1, 1, 1]
  // CHECK-NEXT: [891.5]
  // CHECK: sizes = [1, 1, 3]
  // CHECK-NEXT: [8, {{ *}}9, {{ *}}1]
  %y, %s = gdn.short_conv ins(%x, %w : tensor<1x1x1xf32>, tensor<1x3xf32>) bias(%bias : tensor<1xf32>)
      outs(%y0, %s0 : tensor<1x1x1xf32>, tensor<1x1x3xf32>) -> tensor<1x1x1xf32>, tensor<1x1x3xf32>
  %yd = tensor.cast %y : tensor<1x1x1xf32> to tensor<?x?x?xf32>
  %sd = tensor.cast %s : tensor<1x1x3xf32> to tensor<?x?x?xf32>
  call @show(%yd, %sd) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> ()
  return
}

// Packed sequences of 1, 0 and 4 tokens: they do not see each other, and the
// empty one keeps its state.

func.func @packed(%x: !y, %w: tensor<1x3xf32>) {
  %y0 = arith.constant dense<0x7FC00000> : !y
  %s0 = arith.constant dense<[[[0., 8., 9.]], [[5., 6., 7.]], [[0., 6., 7.]]]> : tensor<3x1x3xf32>
  %cu = arith.constant dense<[0, 1, 1, 5]> : tensor<4xi64>
  // CHECK: sizes = [1, 5, 1]
  // CHECK-NEXT: [891]
  // CHECK-NEXT: [672]
  // CHECK-NEXT: [723]
  // CHECK-NEXT: [234]
  // CHECK-NEXT: [345]
  // CHECK: sizes = [3, 1, 3]
  // CHECK-NEXT: [8, {{ *}}9, {{ *}}1]
  // CHECK-NEXT: [5, {{ *}}6, {{ *}}7]
  // CHECK-NEXT: [3, {{ *}}4, {{ *}}5]
  %y, %s = gdn.short_conv ins(%x, %w : !y, tensor<1x3xf32>) offsets(%cu : tensor<4xi64>)
      outs(%y0, %s0 : !y, tensor<3x1x3xf32>) -> !y, tensor<3x1x3xf32>
  %yd = tensor.cast %y : !y to tensor<?x?x?xf32>
  %sd = tensor.cast %s : tensor<3x1x3xf32> to tensor<?x?x?xf32>
  call @show(%yd, %sd) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> ()
  return
}

// Two channels with their own taps, two batch rows, one tap each (W = 1, S = 0:
// no state at all) and SiLU: silu(1) = 0.731059, silu(-2) = -0.238406,
// silu(0) = 0, silu(-100) = -0, silu(100) = 100.

func.func @channels() {
  %x = arith.constant dense<[[[1., 1.], [0., 50.]], [[-100., 0.], [100., 1.]]]> : tensor<2x2x2xf32>
  %w = arith.constant dense<[[1.], [-2.]]> : tensor<2x1xf32>
  %y0 = arith.constant dense<0x7FC00000> : tensor<2x2x2xf32>
  %s0 = tensor.empty() : tensor<2x2x0xf32>
  // CHECK: sizes = [2, 2, 2]
  // CHECK-NEXT: [0.731059, {{ *}}-0.238406]
  // CHECK-NEXT: [0, {{ *}}-0]
  // CHECK-NEXT: [-0, {{ *}}0]
  // CHECK-NEXT: [100, {{ *}}-0.238406]
  // CHECK: sizes = [2, 2, 0]
  %y, %s = gdn.short_conv ins(%x, %w : tensor<2x2x2xf32>, tensor<2x1xf32>) outs(%y0, %s0 : tensor<2x2x2xf32>, tensor<2x2x0xf32>)
      {activation = #gdn.activation<silu>} -> tensor<2x2x2xf32>, tensor<2x2x0xf32>
  %yd = tensor.cast %y : tensor<2x2x2xf32> to tensor<?x?x?xf32>
  %sd = tensor.cast %s : tensor<2x2x0xf32> to tensor<?x?x?xf32>
  call @show(%yd, %sd) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[[1.], [2.], [3.], [4.], [5.]]]> : !y
  %w = arith.constant dense<[[100., 10., 1.]]> : tensor<1x3xf32>
  call @minimalState(%x, %w) : (!y, tensor<1x3xf32>) -> ()
  call @decode(%w) : (tensor<1x3xf32>) -> ()
  call @packed(%x, %w) : (!y, tensor<1x3xf32>) -> ()
  call @channels() : () -> ()
  return
}
