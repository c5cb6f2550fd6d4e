// The dialects, passes and pipelines in stock mlir-opt.
// RUN: mlir-opt %load_gdn %s --pass-pipeline='builtin.module(canonicalize)' | FileCheck %s
// RUN: mlir-opt %load_gdn %s --pass-pipeline='builtin.module(one-shot-bufferize{bufferize-function-boundaries},convert-gdn-to-loops)' \
// RUN:   | FileCheck %s --check-prefix=LOOPS
// RUN: mlir-opt %load_gdn %s --pass-pipeline='builtin.module(gdn-to-cpu{path=loops})' | FileCheck %s --check-prefix=LLVM

// CHECK-LABEL: func.func @normalize
// CHECK: gdn.l2norm ins(%{{.*}} : tensor<2x4xf32>)
// LOOPS-LABEL: func.func @normalize
// LOOPS: scf.for
// LOOPS: math.rsqrt
// LOOPS-NOT: gdn.l2norm
// LLVM-LABEL: llvm.func @normalize
// LLVM-NOT: gdn.l2norm
func.func @normalize(%x: tensor<2x4xf32>, %y0: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = gdn.l2norm ins(%x : tensor<2x4xf32>) outs(%y0 : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @tile_program
// CHECK: gdn_tile.block_id
func.func @tile_program(%out: memref<?xindex>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %i = gdn_tile.block_id : index
  memref.store %i, %out[%c0] : memref<?xindex>
  return
}
