// RUN: gdn-opt %s --gdn-to-cpu | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu="path=loops" | FileCheck %s
// RUN: gdn-opt %s --gdn-to-cpu --mlir-print-ir-after=gdn-lower-vectors -o /dev/null 2>&1 | FileCheck %s --check-prefix=VECTORS
// RUN: gdn-opt %s --gdn-to-cpu --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=PASSES

// PASSES: convert-elementwise-to-linalg
// PASSES: gdn-normalize
// PASSES: gdn-select-schedule{precision=default target=cpu}
// PASSES: gdn-tile-blocks
// PASSES: gdn-tile-chunks
// PASSES: gdn-decompose
// PASSES: gdn-tile-linalg
// PASSES: gdn-vectorize-linalg
// PASSES: eliminate-empty-tensors
// PASSES: one-shot-bufferize
// PASSES: scf-forall-to-for
// PASSES: gdn-hoist-buffers
// PASSES: ownership-based-buffer-deallocation
// PASSES: gdn-lower-vectors
// PASSES: convert-linalg-to-loops
// PASSES: convert-vector-to-llvm
// PASSES: reconcile-unrealized-casts

// Nothing is allocated or copied in the loops over heads and chunks; the seven
// products of a chunk keep their tiles in registers.
// VECTORS-LABEL: func @forward
//         VECTORS: memref.alloc() {{.*}} : memref<32x128xf32>
//         VECTORS: scf.for
//     VECTORS-NOT: {{memref.alloc|memref.copy|memref.dealloc}}
//         VECTORS: scf.for %{{.+}} = %c0 to %c4096 step %c32 {
//     VECTORS-NOT: {{memref.alloc|memref.copy|memref.dealloc|vector.contract}}
// VECTORS-COUNT-7: -> (vector<8x32xf32>)
//     VECTORS-NOT: {{memref.alloc\(|memref.copy|memref.dealloc|vector.contract}}
//         VECTORS: scf.for %{{.+}} = %c0 to %c128 step %c16
//         VECTORS: memref.dealloc

// CHECK-LABEL: llvm.func @forward
//   CHECK-NOT: {{gdn|linalg|scf|memref|vector}}.{{[a-z_]+}}
//       CHECK: llvm.return
func.func @forward(%q: tensor<1x4096x2x128xbf16>, %k: tensor<1x4096x2x128xbf16>, %v: tensor<1x4096x4x128xbf16>,
    %g: tensor<1x4096x4xf32>, %b: tensor<1x4096x4xf32>, %o: tensor<1x4096x4x128xbf16>, %s: tensor<1x4x128x128xf32>)
    -> (tensor<1x4096x4x128xbf16>, tensor<1x4x128x128xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x4096x2x128xbf16>, tensor<1x4096x2x128xbf16>, tensor<1x4096x4x128xbf16>)
      gate(%g : tensor<1x4096x4xf32>) beta(%b : tensor<1x4096x4xf32>)
      outs(%o, %s : tensor<1x4096x4x128xbf16>, tensor<1x4x128x128xf32>)
      -> tensor<1x4096x4x128xbf16>, tensor<1x4x128x128xf32>
  return %0#0, %0#1 : tensor<1x4096x4x128xbf16>, tensor<1x4x128x128xf32>
}
