// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=linalg" | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// The lookup table of oracle-lookup-table.mlir in 16 bits and at full size:
// T = K = V = 64, k_t = e_t, beta = 0.75, v small integers, q_t = e_(t / 2),
// scale 1. Then o_t = 0.75 v_(t / 2) and the state is 0.75 v transposed, bit for
// bit. Printed is the number of wrong elements in o and in the state.

func.func private @printI64(i64)
func.func private @printNewline()

func.func @countWrongOutputs(%o: tensor<1x64x1x64xf32>, %v: tensor<1x64x1x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0 : i64
  %factor = arith.constant 0.75 : f32
  %n = scf.for %t = %c0 to %c64 step %c1 iter_args(%nt = %zero) -> i64 {
    %m = scf.for %i = %c0 to %c64 step %c1 iter_args(%ni = %nt) -> i64 {
      %half = arith.divui %t, %c2 : index
      %have = tensor.extract %o[%c0, %t, %c0, %i] : tensor<1x64x1x64xf32>
      %source = tensor.extract %v[%c0, %half, %c0, %i] : tensor<1x64x1x64xf32>
      %want = arith.mulf %source, %factor : f32
      %wrong = arith.cmpf une, %have, %want : f32
      %one = arith.extui %wrong : i1 to i64
      %next = arith.addi %ni, %one : i64
      scf.yield %next : i64
    }
    scf.yield %m : i64
  }
  func.call @printI64(%n) : (i64) -> ()
  func.call @printNewline() : () -> ()
  return
}

func.func @countWrongStates(%s: tensor<1x1x64x64xf32>, %v: tensor<1x64x1x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0 : i64
  %factor = arith.constant 0.75 : f32
  %n = scf.for %t = %c0 to %c64 step %c1 iter_args(%nt = %zero) -> i64 {
    %m = scf.for %i = %c0 to %c64 step %c1 iter_args(%ni = %nt) -> i64 {
      %have = tensor.extract %s[%c0, %c0, %i, %t] : tensor<1x1x64x64xf32>
      %source = tensor.extract %v[%c0, %t, %c0, %i] : tensor<1x64x1x64xf32>
      %want = arith.mulf %source, %factor : f32
      %wrong = arith.cmpf une, %have, %want : f32
      %one = arith.extui %wrong : i1 to i64
      %next = arith.addi %ni, %one : i64
      scf.yield %next : i64
    }
    scf.yield %m : i64
  }
  func.call @printI64(%n) : (i64) -> ()
  func.call @printNewline() : () -> ()
  return
}

// e_(t / divisor) as [1, 64, 1, 64].
func.func @unitVectors(%divisor: index) -> tensor<1x64x1x64xf32> {
  %r = tensor.generate {
  ^bb0(%b: index, %t: index, %h: index, %c: index):
    %row = arith.divui %t, %divisor : index
    %hit = arith.cmpi eq, %row, %c : index
    %f = arith.uitofp %hit : i1 to f32
    tensor.yield %f : f32
  } : tensor<1x64x1x64xf32>
  return %r : tensor<1x64x1x64xf32>
}

// Integers in [-8, 8].
func.func @values() -> tensor<1x64x1x64xf32> {
  %c7 = arith.constant 7 : index
  %c3 = arith.constant 3 : index
  %c17 = arith.constant 17 : index
  %c8 = arith.constant 8.0 : f32
  %r = tensor.generate {
  ^bb0(%b: index, %t: index, %h: index, %i: index):
    %x = arith.muli %t, %c7 : index
    %y = arith.muli %i, %c3 : index
    %z = arith.addi %x, %y : index
    %m = arith.remui %z, %c17 : index
    %m32 = arith.index_cast %m : index to i32
    %f = arith.sitofp %m32 : i32 to f32
    %g = arith.subf %f, %c8 : f32
    tensor.yield %g : f32
  } : tensor<1x64x1x64xf32>
  return %r : tensor<1x64x1x64xf32>
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = call @unitVectors(%c1) : (index) -> tensor<1x64x1x64xf32>
  %q = call @unitVectors(%c2) : (index) -> tensor<1x64x1x64xf32>
  %v = call @values() : () -> tensor<1x64x1x64xf32>
  %beta = arith.constant dense<0.75> : tensor<1x64x1xf32>

  // CHECK: {{^}}0{{$}}
  // CHECK-NEXT: {{^}}0{{$}}
  %qb = arith.truncf %q : tensor<1x64x1x64xf32> to tensor<1x64x1x64xbf16>
  %kb = arith.truncf %k : tensor<1x64x1x64xf32> to tensor<1x64x1x64xbf16>
  %vb = arith.truncf %v : tensor<1x64x1x64xf32> to tensor<1x64x1x64xbf16>
  %ob0 = arith.constant dense<0xFFFF> : tensor<1x64x1x64xbf16>
  %sb0 = arith.constant dense<0.0> : tensor<1x1x64x64xbf16>
  %ob, %sb = gdn.recurrence ins(%qb, %kb, %vb : tensor<1x64x1x64xbf16>, tensor<1x64x1x64xbf16>, tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) outs(%ob0, %sb0 : tensor<1x64x1x64xbf16>, tensor<1x1x64x64xbf16>) {scale = 1.0}
      -> tensor<1x64x1x64xbf16>, tensor<1x1x64x64xbf16>
  %obf = arith.extf %ob : tensor<1x64x1x64xbf16> to tensor<1x64x1x64xf32>
  %sbf = arith.extf %sb : tensor<1x1x64x64xbf16> to tensor<1x1x64x64xf32>
  call @countWrongOutputs(%obf, %v) : (tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>) -> ()
  call @countWrongStates(%sbf, %v) : (tensor<1x1x64x64xf32>, tensor<1x64x1x64xf32>) -> ()

  // CHECK-NEXT: {{^}}0{{$}}
  // CHECK-NEXT: {{^}}0{{$}}
  %qh = arith.truncf %q : tensor<1x64x1x64xf32> to tensor<1x64x1x64xf16>
  %kh = arith.truncf %k : tensor<1x64x1x64xf32> to tensor<1x64x1x64xf16>
  %vh = arith.truncf %v : tensor<1x64x1x64xf32> to tensor<1x64x1x64xf16>
  %betah = arith.constant dense<0.75> : tensor<1x64x1xf16>
  %oh0 = arith.constant dense<0xFFFF> : tensor<1x64x1x64xf16>
  %sh0 = arith.constant dense<0.0> : tensor<1x1x64x64xf16>
  %oh, %sh = gdn.recurrence ins(%qh, %kh, %vh : tensor<1x64x1x64xf16>, tensor<1x64x1x64xf16>, tensor<1x64x1x64xf16>)
      beta(%betah : tensor<1x64x1xf16>) outs(%oh0, %sh0 : tensor<1x64x1x64xf16>, tensor<1x1x64x64xf16>) {scale = 1.0}
      -> tensor<1x64x1x64xf16>, tensor<1x1x64x64xf16>
  %ohf = arith.extf %oh : tensor<1x64x1x64xf16> to tensor<1x64x1x64xf32>
  %shf = arith.extf %sh : tensor<1x1x64x64xf16> to tensor<1x1x64x64xf32>
  call @countWrongOutputs(%ohf, %v) : (tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>) -> ()
  call @countWrongStates(%shf, %v) : (tensor<1x1x64x64xf32>, tensor<1x64x1x64xf32>) -> ()
  return
}
