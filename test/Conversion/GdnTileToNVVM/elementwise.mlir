// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s

// An accumulator rounded to 16 bits: pairs of neighbouring columns, and back.
// CHECK-LABEL: llvm.func @round
// CHECK-COUNT-2: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-NOT: llvm.fptrunc
// CHECK-COUNT-2: llvm.fadd %{{.*}} : vector<2xbf16>
// Both halves of a register, by a shift and a mask.
// CHECK: %[[WORD:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: %[[LOW:.*]] = llvm.shl %[[WORD]], %{{.*}} : i32
// CHECK: llvm.bitcast %[[LOW]] : i32 to f32
// CHECK: %[[HIGH:.*]] = llvm.and %[[WORD]], %{{.*}} : i32
// CHECK: llvm.bitcast %[[HIGH]] : i32 to f32
// CHECK-NOT: llvm.fpext
func.func @round(%x: memref<16x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x8xf32>, vector<16x8xf32>
  %b = arith.truncf %a : vector<16x8xf32> to vector<16x8xbf16>
  %c = arith.addf %b, %b : vector<16x8xbf16>
  %d = arith.extf %c : vector<16x8xbf16> to vector<16x8xf32>
  gdn_tile.store %d, %x[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32>
  return
}

// -----

// A lower triangle: row g and g + 8 against columns 2t, 2t + 1; the broadcasts cost nothing.
// CHECK-LABEL: llvm.func @triangle
// CHECK-COUNT-4: llvm.icmp "sge" %{{.*}} : i32
// CHECK-NOT: llvm.icmp
// CHECK-COUNT-4: llvm.select %{{.*}} : i1, f32
func.func @triangle(%x: memref<16x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x8xf32>, vector<16x8xf32>
  %zero = arith.constant dense<0.0> : vector<16x8xf32>
  %i = gdn_tile.iota : vector<16x1xi32>
  %j = gdn_tile.iota : vector<1x8xi32>
  %ii = vector.broadcast %i : vector<16x1xi32> to vector<16x8xi32>
  %jj = vector.broadcast %j : vector<1x8xi32> to vector<16x8xi32>
  %keep = arith.cmpi sge, %ii, %jj : vector<16x8xi32>
  %b = arith.select %keep, %a, %zero : vector<16x8xi1>, vector<16x8xf32>
  gdn_tile.store %b, %x[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32>
  return
}

// -----

// CHECK-LABEL: llvm.func @math
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[SCALED:.*]] = llvm.fmul
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[SCALED]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
// CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"
// CHECK: llvm.intr.fabs
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK: llvm.intr.fma
func.func @math(%x: memref<1xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0] : memref<1xf32>
  %1 = math.exp2 %0 : f32
  %2 = math.exp %1 : f32
  %3 = math.log %2 : f32
  %4 = math.rsqrt %3 : f32
  %5 = math.sqrt %4 : f32
  %6 = math.absf %5 : f32
  %7 = arith.divf %6, %0 : f32
  %8 = math.fma %7, %0, %1 : f32
  memref.store %8, %x[%c0] : memref<1xf32>
  return
}
