// RUN: gdn-opt %s --pass-pipeline="builtin.module(convert-gdn-to-tile,canonicalize)" --split-input-file --verify-diagnostics | FileCheck %s

// Inputs may be slices of wider rows: kernels take the whole and index its
// first heads or channels.

// CHECK-LABEL: func @step_step(
// CHECK-SAME: %[[Q:arg[0-9]+]]: memref<?x8x16xbf16>, %[[K:arg[0-9]+]]: memref<?x1x16xbf16>, %[[V:arg[0-9]+]]: memref<?x5x8xbf16>
// CHECK: gdn_tile.load %[[K]][{{.*}}] dims [2] valid(%c16) : memref<?x1x16xbf16>, vector<1x16xbf16>
// CHECK: gdn_tile.load %[[Q]][{{.*}}] dims [2] valid(%c16) : memref<?x8x16xbf16>, vector<1x16xbf16>
// CHECK: gdn_tile.load %[[V]][{{.*}}] dims [2] valid(%c8) : memref<?x5x8xbf16>, vector<8x1xbf16>
// CHECK: math.rsqrt
// CHECK-LABEL: func @step(
// CHECK-NOT: memref.subview
// CHECK: gdn_tile.launch @step_step grid
// CHECK-NOT: gdn_tile.launch
func.func @step(%qs: memref<?x1x8x16xbf16>, %k: memref<?x1x1x16xbf16>, %vs: memref<?x1x5x8xbf16>, %o: memref<?x1x2x8xbf16>,
                %s: memref<?x2x8x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %qs, %c0 : memref<?x1x8x16xbf16>
  %nv = memref.dim %vs, %c0 : memref<?x1x5x8xbf16>
  %q = memref.subview %qs[0, 0, 0, 0] [%n, 1, 1, 16] [1, 1, 1, 1] : memref<?x1x8x16xbf16> to memref<?x1x1x16xbf16, strided<[128, 128, 16, 1]>>
  %v = memref.subview %vs[0, 0, 0, 0] [%nv, 1, 2, 8] [1, 1, 1, 1] : memref<?x1x5x8xbf16> to memref<?x1x2x8xbf16, strided<[40, 40, 8, 1]>>
  %qn = memref.alloc(%n) : memref<?x1x1x16xbf16>
  gdn.l2norm ins(%q : memref<?x1x1x16xbf16, strided<[128, 128, 16, 1]>>) outs(%qn : memref<?x1x1x16xbf16>)
  gdn.recurrence ins(%qn, %k, %v : memref<?x1x1x16xbf16>, memref<?x1x1x16xbf16>, memref<?x1x2x8xbf16, strided<[40, 40, 8, 1]>>)
      outs(%o, %s : memref<?x1x2x8xbf16>, memref<?x2x8x16xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>}
  return
}

// -----

// A norm of its own goes head by head.

// CHECK-LABEL: func @norm_l2norm(
// CHECK-SAME: %[[X:arg[0-9]+]]: memref<?x8x16xbf16>, %[[Y:arg[0-9]+]]: memref<?x2x16xbf16>
// CHECK: gdn_tile.load %[[X]][%[[ROW:.+]], %[[HEAD:.+]], %c0] dims [0, 2]
// CHECK: gdn_tile.store %{{.+}}, %[[Y]][%[[ROW]], %[[HEAD]], %c0] dims [0, 2]
func.func @norm(%xs: memref<?x4x8x16xbf16>, %y: memref<?x4x2x16xbf16>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %xs, %c0 : memref<?x4x8x16xbf16>
  %x = memref.subview %xs[0, 0, 0, 0] [%n, 4, 2, 16] [1, 1, 1, 1] : memref<?x4x8x16xbf16> to memref<?x4x2x16xbf16, strided<[512, 128, 16, 1]>>
  gdn.l2norm ins(%x : memref<?x4x2x16xbf16, strided<[512, 128, 16, 1]>>) outs(%y : memref<?x4x2x16xbf16>)
  return
}

// -----

// CHECK-LABEL: func @conv_short_conv_edge(
// CHECK-SAME: %{{arg[0-9]+}}: memref<?x24xf32>, %{{arg[0-9]+}}: memref<8x4xf32>
// CHECK-LABEL: func @conv(
// CHECK: gdn_tile.launch @conv_short_conv_edge grid
// CHECK-NOT: gdn_tile.launch
func.func @conv(%xs: memref<?x2x24xf32>, %w: memref<8x4xf32>, %y: memref<?x2x8xf32>, %s: memref<?x8x3xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %xs, %c0 : memref<?x2x24xf32>
  %x = memref.subview %xs[0, 0, 0] [%n, 2, 8] [1, 1, 1] : memref<?x2x24xf32> to memref<?x2x8xf32, strided<[48, 24, 1]>>
  gdn.short_conv ins(%x, %w : memref<?x2x8xf32, strided<[48, 24, 1]>>, memref<8x4xf32>) outs(%y, %s : memref<?x2x8xf32>, memref<?x8x3xf32>)
  return
}

// -----

// So do gates, and arithmetic on the first channels of rows.

// CHECK-LABEL: func @gates_map(
// CHECK-SAME: %[[B:arg[0-9]+]]: memref<16x6xbf16>, %[[Y:arg[0-9]+]]: memref<16x4xf32>
// CHECK: gdn_tile.load %[[B]][%{{.+}}, %c0] dims [0, 1] valid(%{{.+}}, %c4) : memref<16x6xbf16>
// CHECK-LABEL: func @gates_map_0(
// CHECK-SAME: %[[C:arg[0-9]+]]: memref<16x6x16xf32>, %[[Z:arg[0-9]+]]: memref<16x4x16xf32>
// CHECK: gdn_tile.load %[[C]][%[[ROW:.+]], %[[HEAD:.+]], %c0] dims [0, 2]
// CHECK: gdn_tile.store %{{.+}}, %[[Z]][%[[ROW]], %[[HEAD]], %c0] dims [0, 2]
// CHECK-LABEL: func @gates_gate(
// CHECK-SAME: %[[A:arg[0-9]+]]: memref<16x6xbf16>, %{{arg[0-9]+}}: memref<4xf32>, %[[G:arg[0-9]+]]: memref<16x4xf32>
// CHECK: gdn_tile.load %[[A]][%{{.+}}, %c0] dims [0, 1] valid(%{{.+}}, %c4) : memref<16x6xbf16>
#head = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#channel = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @gates(%as: memref<2x8x6xbf16>, %rate: memref<4xf32>, %cs: memref<2x8x6x16xf32>, %g: memref<2x8x4xf32>,
                 %y: memref<2x8x4xf32>, %z: memref<2x8x4x16xf32>) {
  %a = memref.subview %as[0, 0, 0] [2, 8, 4] [1, 1, 1] : memref<2x8x6xbf16> to memref<2x8x4xbf16, strided<[48, 6, 1]>>
  %c = memref.subview %cs[0, 0, 0, 0] [2, 8, 4, 16] [1, 1, 1, 1] : memref<2x8x6x16xf32> to memref<2x8x4x16xf32, strided<[768, 96, 16, 1]>>
  gdn.gate ins(%a, %rate : memref<2x8x4xbf16, strided<[48, 6, 1]>>, memref<4xf32>) outs(%g : memref<2x8x4xf32>)
  linalg.generic {indexing_maps = [#head, #head], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : memref<2x8x4xbf16, strided<[48, 6, 1]>>) outs(%y : memref<2x8x4xf32>) {
  ^bb0(%e: bf16, %old: f32):
    %0 = arith.extf %e : bf16 to f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : memref<2x8x4x16xf32, strided<[768, 96, 16, 1]>>) outs(%z : memref<2x8x4x16xf32>) {
  ^bb0(%e: f32, %old: f32):
    %0 = arith.mulf %e, %e : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Other strides have no tile form: a slice of the tokens, and a destination.

func.func @tokens(%xs: memref<2x8x2x16xbf16>, %y: memref<2x4x2x16xbf16>) {
  %x = memref.subview %xs[0, 0, 0, 0] [2, 4, 2, 16] [1, 1, 1, 1] : memref<2x8x2x16xbf16> to memref<2x4x2x16xbf16, strided<[256, 32, 16, 1]>>
  // expected-error @+1 {{has no tile form for the strided operand}}
  gdn.l2norm ins(%x : memref<2x4x2x16xbf16, strided<[256, 32, 16, 1]>>) outs(%y : memref<2x4x2x16xbf16>)
  return
}

// -----

func.func @destination(%x: memref<2x4x2x16xbf16>, %ys: memref<2x4x8x16xbf16>) {
  %y = memref.subview %ys[0, 0, 0, 0] [2, 4, 2, 16] [1, 1, 1, 1] : memref<2x4x8x16xbf16> to memref<2x4x2x16xbf16, strided<[512, 128, 16, 1]>>
  // expected-error @+1 {{has no tile form for the strided operand}}
  gdn.l2norm ins(%x : memref<2x4x2x16xbf16>) outs(%y : memref<2x4x2x16xbf16, strided<[512, 128, 16, 1]>>)
  return
}

// -----

// A norm in place right behind a convolution is part of its kernels, with a head in each block.

// CHECK-LABEL: func @conv_norm_short_conv_edge({{.*}} lanes = 32, chunk = 2>
// CHECK: %[[Y:.+]] = arith.mulf %{{.+}}, %{{.+}} : vector<1x64xf32>
// CHECK: %[[SUM:.+]] = gdn_tile.sum %{{.+}} : vector<1x64xf32> to vector<1x1xf32>
// CHECK: math.rsqrt
// CHECK: arith.cmpi slt, %{{.+}}, %{{.+}} : vector<1x64xi32>
// CHECK: arith.select {{.*}} : vector<1x64xi1>, vector<1x64xf32>
// CHECK-LABEL: func @conv_norm(
// CHECK-NOT: memref.copy
// CHECK: gdn_tile.launch @conv_norm_short_conv_edge grid
// CHECK-NOT: gdn_tile.launch
func.func @conv_norm(%x: memref<?x2x200xf32>, %w: memref<200x4xf32>, %y: memref<?x2x200xf32>, %s: memref<?x200x3xf32>) {
  %c0 = arith.constant 0 : index
  gdn.short_conv ins(%x, %w : memref<?x2x200xf32>, memref<200x4xf32>) outs(%y, %s : memref<?x2x200xf32>, memref<?x200x3xf32>)
  %n = memref.dim %y, %c0 : memref<?x2x200xf32>
  %p = memref.subview %y[0, 0, 0] [%n, 2, 128] [1, 1, 1] : memref<?x2x200xf32> to memref<?x2x128xf32, strided<[400, 200, 1]>>
  %h = memref.expand_shape %p [[0], [1], [2, 3]] output_shape [%n, 2, 2, 64] : memref<?x2x128xf32, strided<[400, 200, 1]>> into memref<?x2x2x64xf32, strided<[400, 200, 64, 1]>>
  gdn.l2norm ins(%h : memref<?x2x2x64xf32, strided<[400, 200, 64, 1]>>) outs(%h : memref<?x2x2x64xf32, strided<[400, 200, 64, 1]>>)
  %f = memref.collapse_shape %h [[0], [1], [2, 3]] : memref<?x2x2x64xf32, strided<[400, 200, 64, 1]>> into memref<?x2x128xf32, strided<[400, 200, 1]>>
  %q = memref.subview %y[0, 0, 0] [%n, 2, 128] [1, 1, 1] : memref<?x2x200xf32> to memref<?x2x128xf32, strided<[400, 200, 1]>>
  memref.copy %f, %q : memref<?x2x128xf32, strided<[400, 200, 1]>> to memref<?x2x128xf32, strided<[400, 200, 1]>>
  return
}

// -----

// Not with heads that a warp does not hold.

func.func @conv_norm_size(%x: memref<1x2x96xf32>, %w: memref<96x4xf32>, %y: memref<1x2x96xf32>, %s: memref<1x96x3xf32>) {
  gdn.short_conv ins(%x, %w : memref<1x2x96xf32>, memref<96x4xf32>) outs(%y, %s : memref<1x2x96xf32>, memref<1x96x3xf32>)
  %p = memref.subview %y[0, 0, 0] [1, 2, 48] [1, 1, 1] : memref<1x2x96xf32> to memref<1x2x48xf32, strided<[192, 96, 1]>>
  %h = memref.expand_shape %p [[0], [1], [2, 3]] output_shape [1, 2, 1, 48] : memref<1x2x48xf32, strided<[192, 96, 1]>> into memref<1x2x1x48xf32, strided<[192, 96, 48, 1]>>
  // expected-error @+1 {{has no tile form for the strided operand}}
  gdn.l2norm ins(%h : memref<1x2x1x48xf32, strided<[192, 96, 48, 1]>>) outs(%h : memref<1x2x1x48xf32, strided<[192, 96, 48, 1]>>)
  return
}
