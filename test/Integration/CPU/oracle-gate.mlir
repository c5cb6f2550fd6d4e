// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// The edges of gdn.gate. Three heads with A_log = -inf, 0, ln 16, so the rates
// are 0, 1, 16; one token per value of a.

func.func private @printMemrefF32(tensor<*xf32>)

!a = tensor<1x6x3xf32>

func.func @main() {
  %a = arith.constant dense<[[[-100., -100., -100.], [-20., -20., -20.], [0., 0., 0.],
                              [20., 20., 20.], [20.001, 20.001, 20.001], [100., 100., 100.]]]> : !a
  %A = arith.constant dense<[0xFF800000, 0.0, 2.77258872]> : tensor<3xf32>
  %g0 = arith.constant dense<0x7FC00000> : !a

  // -rate * softplus(a): softplus(-100) = 4e-44, softplus(-20) = 2.06115e-09,
  // softplus(0) = ln 2, softplus(x) = x for large x without a jump at 20.
  // CHECK: sizes = [1, 6, 3]
  // CHECK-NEXT: [-0, {{ *}}-3.{{[0-9]+}}e-44, {{ *}}-{{[56]\.[0-9]+}}e-43]
  // CHECK-NEXT: [-0, {{ *}}-2.06115e-09, {{ *}}-3.29785e-08]
  // CHECK-NEXT: [-0, {{ *}}-0.693147, {{ *}}-11.0904]
  // CHECK-NEXT: [-0, {{ *}}-20, {{ *}}-320]
  // CHECK-NEXT: [-0, {{ *}}-20.001, {{ *}}-320.016]
  // CHECK-NEXT: [-0, {{ *}}-100, {{ *}}-1600]
  %g = gdn.gate ins(%a, %A : !a, tensor<3xf32>) outs(%g0 : !a) -> !a
  %gu = tensor.cast %g : !a to tensor<*xf32>
  call @printMemrefF32(%gu) : (tensor<*xf32>) -> ()

  // -4 * sigmoid(rate * a): half of the bound where rate or a is 0, no overflow
  // far from it.
  // CHECK: sizes = [1, 6, 3]
  // CHECK-NEXT: [-2, {{ *}}-{{.*}}, {{ *}}-0]
  // CHECK-NEXT: [-2, {{ *}}-8.24461e-09, {{ *}}-0]
  // CHECK-NEXT: [-2, {{ *}}-2, {{ *}}-2]
  // CHECK-NEXT: [-2, {{ *}}-4, {{ *}}-4]
  // CHECK-NEXT: [-2, {{ *}}-4, {{ *}}-4]
  // CHECK-NEXT: [-2, {{ *}}-4, {{ *}}-4]
  %b = gdn.gate ins(%a, %A : !a, tensor<3xf32>) outs(%g0 : !a) {lower_bound = -4.0} -> !a
  %bu = tensor.cast %b : !a to tensor<*xf32>
  call @printMemrefF32(%bu) : (tensor<*xf32>) -> ()

  // A bias per head and channel, a in bf16: a + bias = 0 and 20 in head 0,
  // -20 and 1 in head 1 (softplus(1) = 1.31326), rate 1.
  // CHECK: sizes = [1, 1, 2, 2]
  // CHECK-NEXT: [-0.693147, {{ *}}-20]
  // CHECK-NEXT: [-2.06115e-09, {{ *}}-1.31326]
  %c = arith.constant dense<[[[[1.5, 18.0], [-19.0, 0.5]]]]> : tensor<1x1x2x2xbf16>
  %rate = arith.constant dense<0.0> : tensor<2xf32>
  %dt = arith.constant dense<[[-1.5, 2.0], [-1.0, 0.5]]> : tensor<2x2xf32>
  %d0 = arith.constant dense<0x7FC00000> : tensor<1x1x2x2xf32>
  %d = gdn.gate ins(%c, %rate : tensor<1x1x2x2xbf16>, tensor<2xf32>) bias(%dt : tensor<2x2xf32>)
      outs(%d0 : tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %du = tensor.cast %d : tensor<1x1x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%du) : (tensor<*xf32>) -> ()
  return
}
