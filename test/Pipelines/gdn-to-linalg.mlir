// RUN: gdn-opt %s --gdn-to-linalg | FileCheck %s
// RUN: gdn-opt %s --gdn-to-linalg --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=PASSES

// PASSES: Pass Manager with 9 passes:
// PASSES: canonicalize
// PASSES: gdn-normalize
// PASSES: gdn-select-schedule{precision=default target=cpu}
// PASSES: gdn-tile-blocks
// PASSES: cse
// PASSES: gdn-tile-chunks
// PASSES: gdn-decompose
// PASSES: canonicalize
// PASSES: cse

// Sequences and heads in parallel, chunks in order with the state carried
// (transposed once), the body in linalg, a conditional tail.
// CHECK-LABEL: func @forward
//   CHECK-NOT: gdn.
//       CHECK: scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 4)
//       CHECK:   %[[S0:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<1x1x16x32xf32>)
//       CHECK:   %[[R:.+]]:2 = scf.for {{.*}} step %c32 iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %[[S0]])
// CHECK-COUNT-7: linalg.matmul
//       CHECK:     scf.yield
//       CHECK:   scf.if
// CHECK-COUNT-7: linalg.matmul
//       CHECK:   } else {
//       CHECK:     scf.yield %[[R]]#0, %[[R]]#1
//       CHECK:   scf.forall.in_parallel
//   CHECK-NOT: gdn.
//       CHECK: return
func.func @forward(%q: tensor<1x?x2x16xbf16>, %k: tensor<1x?x2x16xbf16>, %v: tensor<1x?x4x32xbf16>,
    %g: tensor<1x?x4xf32>, %b: tensor<1x?x4xf32>, %cu: tensor<?xi32>,
    %o: tensor<1x?x4x32xbf16>, %s: tensor<?x4x32x16xf32>) -> (tensor<1x?x4x32xbf16>, tensor<?x4x32x16xf32>) {
  %kn = gdn.l2norm ins(%k : tensor<1x?x2x16xbf16>) outs(%k : tensor<1x?x2x16xbf16>) -> tensor<1x?x2x16xbf16>
  %0:2 = gdn.recurrence ins(%q, %kn, %v : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, tensor<1x?x4x32xbf16>)
      gate(%g : tensor<1x?x4xf32>) beta(%b : tensor<1x?x4xf32>) offsets(%cu : tensor<?xi32>)
      outs(%o, %s : tensor<1x?x4x32xbf16>, tensor<?x4x32x16xf32>)
      -> tensor<1x?x4x32xbf16>, tensor<?x4x32x16xf32>
  return %0#0, %0#1 : tensor<1x?x4x32xbf16>, tensor<?x4x32x16xf32>
}
