// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// One head with K = V = 1, q = k = 1, scale 1: every value is one number.

func.func private @printMemrefF32(tensor<*xf32>)

!t = tensor<1x5x1x1xf32>
!s = tensor<1x1x1x1xf32>

// A gate of -inf resets the state exactly, whatever was in it, and leaves later
// tokens alone. S0 = 100, v = 1..5, g = 0, 0, -inf, 0, 0 (linear attention):
//   100 + 1, 101 + 2, 0 + 3, 3 + 4, 7 + 5.
// With beta = 0.5 (u = 0.5 (v - S)):
//   100 - 49.5 = 50.5, 50.5 - 24.25 = 26.25, 0 + 1.5, 1.5 + 1.25, 2.75 + 1.125.

func.func @reset() {
  %one = arith.constant dense<1.0> : !t
  %v = arith.constant dense<[[[[1.]], [[2.]], [[3.]], [[4.]], [[5.]]]]> : !t
  %g = arith.constant dense<[[[0.0], [0.0], [0xFF800000], [0.0], [0.0]]]> : tensor<1x5x1xf32>
  %b = arith.constant dense<0.5> : tensor<1x5x1xf32>
  %o0 = arith.constant dense<0x7FC00000> : !t
  %s0 = arith.constant dense<100.0> : !s
  // CHECK: sizes = [1, 5, 1, 1]
  // CHECK-NEXT: [101]
  // CHECK-NEXT: [103]
  // CHECK-NEXT: [3]
  // CHECK-NEXT: [7]
  // CHECK-NEXT: [12]
  // CHECK: sizes = [1, 1, 1, 1]
  // CHECK-NEXT: [12]
  %o, %s = gdn.recurrence ins(%one, %one, %v : !t, !t, !t) gate(%g : tensor<1x5x1xf32>)
      outs(%o0, %s0 : !t, !s) {scale = 1.0} -> !t, !s
  %ou = tensor.cast %o : !t to tensor<*xf32>
  call @printMemrefF32(%ou) : (tensor<*xf32>) -> ()
  %su = tensor.cast %s : !s to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()
  // CHECK: sizes = [1, 5, 1, 1]
  // CHECK-NEXT: [50.5]
  // CHECK-NEXT: [26.25]
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [2.75]
  // CHECK-NEXT: [3.875]
  %p, %r = gdn.recurrence ins(%one, %one, %v : !t, !t, !t) gate(%g : tensor<1x5x1xf32>)
      beta(%b : tensor<1x5x1xf32>) outs(%o0, %s0 : !t, !s) {scale = 1.0} -> !t, !s
  %pu = tensor.cast %p : !t to tensor<*xf32>
  call @printMemrefF32(%pu) : (tensor<*xf32>) -> ()
  return
}

// beta = 0 only decays: 1000 tokens of g = -1e-3 take 1 to exp(-1) = 0.367879,
// in one call and in 1000 calls of one token.

func.func @decay(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %rate = arith.constant -1.0e-3 : f32
  %x = tensor.splat %one[%c1000] : tensor<1x?x1x1xf32>
  %g = tensor.splat %rate[%c1000] : tensor<1x?x1xf32>
  %b = tensor.splat %zero[%c1000] : tensor<1x?x1xf32>
  %s0 = arith.constant dense<1.0> : !s
  // CHECK: sizes = [1, 1, 1, 1]
  // CHECK-NEXT: 0.3678{{[0-9]*}}]
  %o, %s = gdn.recurrence ins(%x, %x, %x : tensor<1x?x1x1xf32>, tensor<1x?x1x1xf32>, tensor<1x?x1x1xf32>)
      gate(%g : tensor<1x?x1xf32>) beta(%b : tensor<1x?x1xf32>) outs(%x, %s0 : tensor<1x?x1x1xf32>, !s)
      -> tensor<1x?x1x1xf32>, !s
  %su = tensor.cast %s : !s to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()

  %x1 = arith.constant dense<1.0> : !s
  %g1 = arith.constant dense<-1.0e-3> : tensor<1x1x1xf32>
  %b1 = arith.constant dense<0.0> : tensor<1x1x1xf32>
  // CHECK: sizes = [1, 1, 1, 1]
  // CHECK-NEXT: 0.3678{{[0-9]*}}]
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s0) -> !s {
    %p, %next = gdn.recurrence ins(%x1, %x1, %x1 : !s, !s, !s) gate(%g1 : tensor<1x1x1xf32>)
        beta(%b1 : tensor<1x1x1xf32>) outs(%x1, %state : !s, !s) -> !s, !s
    scf.yield %next : !s
  }
  %lu = tensor.cast %last : !s to tensor<*xf32>
  call @printMemrefF32(%lu) : (tensor<*xf32>) -> ()
  return
}

// A bf16 state is float32 inside a call and rounded once at its end: 1000
// tokens in one call give bf16(exp(-1)) = 0.367188; in 1000 calls the state
// stays at 1 for ever, since 0.999 rounds to 1.

func.func @bf16State(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %zero = arith.constant 0.0 : f32
  %rate = arith.constant -1.0e-3 : f32
  %x = tensor.splat %zero[%c1000] : tensor<1x?x1x1xf32>
  %g = tensor.splat %rate[%c1000] : tensor<1x?x1xf32>
  %s0 = arith.constant dense<1.0> : tensor<1x1x1x1xbf16>
  // CHECK: sizes = [1, 1, 1, 1]
  // CHECK-NEXT: [0.367188]
  %o, %s = gdn.recurrence ins(%x, %x, %x : tensor<1x?x1x1xf32>, tensor<1x?x1x1xf32>, tensor<1x?x1x1xf32>)
      gate(%g : tensor<1x?x1xf32>) outs(%x, %s0 : tensor<1x?x1x1xf32>, tensor<1x1x1x1xbf16>)
      -> tensor<1x?x1x1xf32>, tensor<1x1x1x1xbf16>
  %sf = arith.extf %s : tensor<1x1x1x1xbf16> to !s
  %su = tensor.cast %sf : !s to tensor<*xf32>
  call @printMemrefF32(%su) : (tensor<*xf32>) -> ()

  %x1 = arith.constant dense<0.0> : !s
  %g1 = arith.constant dense<-1.0e-3> : tensor<1x1x1xf32>
  // CHECK: sizes = [1, 1, 1, 1]
  // CHECK-NEXT: [1]
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%state = %s0) -> tensor<1x1x1x1xbf16> {
    %p, %next = gdn.recurrence ins(%x1, %x1, %x1 : !s, !s, !s) gate(%g1 : tensor<1x1x1xf32>)
        outs(%x1, %state : !s, tensor<1x1x1x1xbf16>) -> !s, tensor<1x1x1x1xbf16>
    scf.yield %next : tensor<1x1x1x1xbf16>
  }
  %lf = arith.extf %last : tensor<1x1x1x1xbf16> to !s
  %lu = tensor.cast %lf : !s to tensor<*xf32>
  call @printMemrefF32(%lu) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %c1000 = arith.constant 1000 : index
  call @reset() : () -> ()
  call @decay(%c1000) : (index) -> ()
  call @bf16State(%c1000) : (index) -> ()
  return
}
