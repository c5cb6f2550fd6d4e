// RUN: gdn-opt %s -convert-nvvm-to-ptx -split-input-file -verify-diagnostics | FileCheck %s
// RUN: gdn-opt %s -convert-nvvm-to-ptx -split-input-file -verify-diagnostics -mlir-disable-threading | FileCheck %s

// One text: the version once, declarations once and in front of the kernels that use them, the kernels in order.
// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_80">
// CHECK-SAME: .version
// CHECK-NOT: .extern
// CHECK-SAME: .visible .entry first(
// CHECK-SAME: .extern .shared .align 1024 .b8 smem[];
// CHECK-SAME: .visible .entry second(
// CHECK-NOT: .version
// CHECK-NOT: .extern
// CHECK-SAME: .visible .entry third(
// CHECK-NOT: llvm.func
// CHECK: gpu.launch_func @kernels::@third
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80">] {
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @first(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.constant(1 : i32) : i32
      llvm.store %0, %p : i32, !llvm.ptr<1>
      llvm.return
    }
    llvm.func @second(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %1 = llvm.load volatile %0 : !llvm.ptr<3> -> i32
      llvm.store %1, %p : i32, !llvm.ptr<1>
      llvm.return
    }
    llvm.func @third(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %1 = llvm.load volatile %0 : !llvm.ptr<3> -> i32
      llvm.store %1, %p : i32, !llvm.ptr<1>
      llvm.return
    }
  }
  func.func @host(%p: !llvm.ptr<1>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@third blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !llvm.ptr<1>)
    return
  }
}

// -----

// A kernel that calls another function stays with it.
// CHECK: gpu.binary @shared [
// CHECK-SAME: .visible .func helper(
// CHECK-SAME: .visible .entry caller(
// CHECK-SAME: .visible .entry other(
// CHECK-NOT: .version
gpu.module @shared [#nvvm.target<chip = "sm_80">] {
  llvm.func @helper(%p: !llvm.ptr<1>) attributes {no_inline} {
    %0 = llvm.mlir.constant(1 : i32) : i32
    llvm.store volatile %0, %p : i32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @caller(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    llvm.call @helper(%p) : (!llvm.ptr<1>) -> ()
    llvm.return
  }
  llvm.func @other(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    llvm.call @helper(%p) : (!llvm.ptr<1>) -> ()
    llvm.return
  }
}

// -----

// Nothing to compile is a text too.
// CHECK: gpu.binary @empty [
// CHECK-SAME: .version
gpu.module @empty [#nvvm.target<chip = "sm_80">] {
}

// -----

// expected-error @below {{needs one target, but has 0}}
gpu.module @none {
}

// -----

// expected-error @below {{needs one target, but has 2}}
gpu.module @two [#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90a">] {
}

// -----

// expected-error @below {{Failed creating the llvm::Module}}
// expected-error @below {{cannot be compiled to PTX}}
gpu.module @wrong [#nvvm.target<chip = "sm_80">] {
  llvm.func @first(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
  llvm.func @second(%p: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    // expected-error @below {{cannot be converted to LLVM IR}}
    %0 = arith.constant 1 : i32
    llvm.store %0, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
