// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-tile-chunks),canonicalize,cse)" --split-input-file --verify-diagnostics | FileCheck %s

// T is a multiple of the chunk: one loop, the state carried as it is stored.
// CHECK-LABEL: func @exact
//  CHECK-SAME:   %[[Q:.+]]: tensor<1x48x1x8xf32>, %[[G:.+]]: tensor<1x48x1xf32>, %[[O:.+]]: tensor<1x48x1x8xf32>, %[[S:.+]]: tensor<1x1x8x8xf32>
//   CHECK-DAG: %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG: %[[C16:.+]] = arith.constant 16 : index
//   CHECK-DAG: %[[C48:.+]] = arith.constant 48 : index
//   CHECK-NOT: linalg
//       CHECK: %[[R:.+]]:2 = scf.for %[[T:.+]] = %[[C0]] to %[[C48]] step %[[C16]] iter_args(%[[OI:.+]] = %[[O]], %[[SI:.+]] = %[[S]])
//       CHECK:   %[[OC:.+]] = tensor.extract_slice %[[OI]][0, %[[T]], 0, 0] [1, 16, 1, 8]
//       CHECK:   %[[QC:.+]] = tensor.extract_slice %[[Q]][0, %[[T]], 0, 0] [1, 16, 1, 8]
//       CHECK:   %[[GC:.+]] = tensor.extract_slice %[[G]][0, %[[T]], 0] [1, 16, 1]
//       CHECK:   %[[X:.+]]:2 = gdn.recurrence ins(%[[QC]], %[[QC]], %[[QC]]
//  CHECK-SAME:     gate(%[[GC]] : tensor<1x16x1xf32>) outs(%[[OC]], %[[SI]] : tensor<1x16x1x8xf32>, tensor<1x1x8x8xf32>)
//       CHECK:   %[[ON:.+]] = tensor.insert_slice %[[X]]#0 into %[[OI]][0, %[[T]], 0, 0] [1, 16, 1, 8]
//       CHECK:   scf.yield %[[ON]], %[[X]]#1
//   CHECK-NOT: gdn.recurrence
//       CHECK: return %[[R]]#0, %[[R]]#1
func.func @exact(%q: tensor<1x48x1x8xf32>, %g: tensor<1x48x1xf32>, %o: tensor<1x48x1x8xf32>, %s: tensor<1x1x8x8xf32>)
    -> (tensor<1x48x1x8xf32>, tensor<1x1x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x48x1x8xf32>, tensor<1x48x1x8xf32>, tensor<1x48x1x8xf32>)
      gate(%g : tensor<1x48x1xf32>) outs(%o, %s : tensor<1x48x1x8xf32>, tensor<1x1x8x8xf32>)
      {state_layout = #gdn.state_layout<k_first>, schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x48x1x8xf32>, tensor<1x1x8x8xf32>
  return %0#0, %0#1 : tensor<1x48x1x8xf32>, tensor<1x1x8x8xf32>
}

// -----

// A tail of 5 tokens is padded with zeros behind the loop; the state is carried
// as float32, transposed once before and once after.
// CHECK-LABEL: func @tail
//  CHECK-SAME:   %[[Q:.+]]: tensor<1x21x1x8xbf16>, %[[B:.+]]: tensor<1x21x1xbf16>, %[[O:.+]]: tensor<1x21x1x8xbf16>, %[[S:.+]]: tensor<1x1x8x8xbf16>
//       CHECK: %[[S0:.+]] = linalg.generic {{.*}} ins(%[[S]] : tensor<1x1x8x8xbf16>) outs(%{{.+}} : tensor<1x1x8x8xf32>)
//       CHECK:   arith.extf
//       CHECK: %[[R:.+]]:2 = gdn.recurrence {{.*}} -> tensor<1x16x1x8xbf16>, tensor<1x1x8x8xf32>
//       CHECK: %[[ON:.+]] = tensor.insert_slice %[[R]]#0 into %[[O]][0, 0, 0, 0] [1, 16, 1, 8]
//       CHECK: %[[Z:.+]] = linalg.fill ins(%{{.+}} : bf16) outs(%{{.+}} : tensor<1x16x1x8xbf16>)
//       CHECK: %[[QT:.+]] = tensor.extract_slice %[[Q]][0, 16, 0, 0] [1, 5, 1, 8]
//       CHECK: %[[QC:.+]] = linalg.copy ins(%[[QT]]
//       CHECK: %[[QP:.+]] = tensor.insert_slice %[[QC]] into %[[Z]][0, 0, 0, 0] [1, 5, 1, 8]
//       CHECK: %[[BP:.+]] = tensor.insert_slice %{{.+}} into %{{.+}}[0, 0, 0] [1, 5, 1]
//       CHECK: %[[L:.+]]:2 = gdn.recurrence ins(%[[QP]], %{{.+}}, %{{.+}} : tensor<1x16x1x8xbf16>, tensor<1x16x1x8xbf16>, tensor<1x16x1x8xbf16>)
//  CHECK-SAME:   beta(%[[BP]] : tensor<1x16x1xbf16>) outs(%{{.+}}, %[[R]]#1 : tensor<1x16x1x8xbf16>, tensor<1x1x8x8xf32>)
//  CHECK-SAME:   state_layout = #gdn.state_layout<k_first>
//       CHECK: %[[LT:.+]] = tensor.extract_slice %[[L]]#0[0, 0, 0, 0] [1, 5, 1, 8]
//       CHECK: %[[LC:.+]] = linalg.copy ins(%[[LT]]
//       CHECK: %[[OL:.+]] = tensor.insert_slice %[[LC]] into %[[ON]][0, 16, 0, 0] [1, 5, 1, 8]
//       CHECK: %[[SL:.+]] = linalg.generic {{.*}} ins(%[[L]]#1 : tensor<1x1x8x8xf32>) outs(%[[S]] : tensor<1x1x8x8xbf16>)
//       CHECK:   arith.truncf
//       CHECK: return %[[OL]], %[[SL]]
func.func @tail(%q: tensor<1x21x1x8xbf16>, %b: tensor<1x21x1xbf16>, %o: tensor<1x21x1x8xbf16>, %s: tensor<1x1x8x8xbf16>)
    -> (tensor<1x21x1x8xbf16>, tensor<1x1x8x8xbf16>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x21x1x8xbf16>, tensor<1x21x1x8xbf16>, tensor<1x21x1x8xbf16>)
      beta(%b : tensor<1x21x1xbf16>) outs(%o, %s : tensor<1x21x1x8xbf16>, tensor<1x1x8x8xbf16>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x21x1x8xbf16>, tensor<1x1x8x8xbf16>
  return %0#0, %0#1 : tensor<1x21x1x8xbf16>, tensor<1x1x8x8xbf16>
}

// -----

// T is dynamic: the tail is conditional.
// CHECK-LABEL: func @dynamic
//       CHECK: %[[R:.+]]:2 = scf.for
//       CHECK:   gdn.recurrence
//       CHECK: %[[IF:.+]]:2 = scf.if
//       CHECK:   gdn.recurrence {{.*}} outs(%{{.+}}, %[[R]]#1
//       CHECK: } else {
//       CHECK:   scf.yield %[[R]]#0, %[[R]]#1
//       CHECK: return %[[IF]]#0, %[[IF]]#1
func.func @dynamic(%q: tensor<1x?x1x8xf32>, %o: tensor<1x?x1x8xf32>, %s: tensor<1x1x8x8xf32>)
    -> (tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>)
      outs(%o, %s : tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>)
      {state_layout = #gdn.state_layout<k_first>, schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>
  return %0#0, %0#1 : tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>
}

// -----

// step: one token at a time, never a tail.
// CHECK-LABEL: func @step
//       CHECK: scf.for %[[T:.+]] = %{{.+}} to %{{.+}} step %[[C1:.+]] iter_args
//       CHECK:   gdn.recurrence ins(%{{.+}} : tensor<1x1x1x8xf32>
//   CHECK-NOT: gdn.recurrence
//       CHECK: return
func.func @step(%q: tensor<1x?x1x8xf32>, %o: tensor<1x?x1x8xf32>, %s: tensor<1x1x8x8xf32>)
    -> (tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>)
      outs(%o, %s : tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>)
      {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 64>}
      -> tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>
  return %0#0, %0#1 : tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>
}

// -----

func.func @two_heads(%q: tensor<1x4x2x8xf32>, %s: tensor<1x2x8x8xf32>) {
  // expected-error @+1 {{can be tiled by chunks on one block only (B = Hqk = Hv = 1, no offsets), but q is 'tensor<1x4x2x8xf32>' and v is 'tensor<1x4x2x8xf32>': run gdn-tile-blocks first}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>)
      outs(%q, %s : tensor<1x4x2x8xf32>, tensor<1x2x8x8xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>} -> tensor<1x4x2x8xf32>, tensor<1x2x8x8xf32>
  return
}

// -----

// A block with a slot: the loop works on the entry that it names, and on none if
// it is negative.
// CHECK-LABEL: func @slot
//  CHECK-SAME:   %[[Q:.+]]: tensor<1x16x1x8xf32>, %[[AT:.+]]: tensor<1xi32>, %[[O:.+]]: tensor<1x16x1x8xf32>, %[[S:.+]]: tensor<?x1x8x8xf32>
//       CHECK: %[[SLOT:.+]] = tensor.extract %[[AT]]
//       CHECK: %[[LIVE:.+]] = arith.cmpi sge, %[[SLOT]], %{{.+}} : i32
//       CHECK: %[[R:.+]]:2 = scf.if %[[LIVE]]
//       CHECK:   %[[ENTRY:.+]] = arith.index_cast %[[SLOT]]
//       CHECK:   %[[ST:.+]] = tensor.extract_slice %[[S]][%[[ENTRY]], 0, 0, 0] [1, 1, 8, 8] [1, 1, 1, 1] : tensor<?x1x8x8xf32> to tensor<1x1x8x8xf32>
//       CHECK:   %[[X:.+]]:2 = gdn.recurrence ins(%[[Q]], %[[Q]], %[[Q]]
//   CHECK-NOT:   slots
//  CHECK-SAME:   outs(%[[O]], %[[ST]] :
//       CHECK:   %[[NEXT:.+]] = tensor.insert_slice %[[X]]#1 into %[[S]][%[[ENTRY]], 0, 0, 0] [1, 1, 8, 8]
//       CHECK:   scf.yield %{{.+}}, %[[NEXT]]
//       CHECK: } else {
//       CHECK:   %[[Z:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[O]] :
//       CHECK:   scf.yield %[[Z]], %[[S]]
//       CHECK: return %[[R]]#0, %[[R]]#1
func.func @slot(%q: tensor<1x16x1x8xf32>, %at: tensor<1xi32>, %o: tensor<1x16x1x8xf32>, %s: tensor<?x1x8x8xf32>)
    -> (tensor<1x16x1x8xf32>, tensor<?x1x8x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>)
      slots(%at : tensor<1xi32>) outs(%o, %s : tensor<1x16x1x8xf32>, tensor<?x1x8x8xf32>)
      {state_layout = #gdn.state_layout<k_first>, schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x16x1x8xf32>, tensor<?x1x8x8xf32>
  return %0#0, %0#1 : tensor<1x16x1x8xf32>, tensor<?x1x8x8xf32>
}

// -----

// A checkpoint behind every second chunk; the state is only read, so that what
// the loop carries is its own.
// CHECK: #[[$LEFT:.+]] = affine_map<(d0) -> (d0 - ((d0 + 16) floordiv 32) * 32 + 16)>
// CHECK: #[[$AT:.+]] = affine_map<(d0) -> ((d0 + 16) floordiv 32 - 1)>
// CHECK-LABEL: func @checkpoints
//  CHECK-SAME:   %[[I:[a-z0-9_]+]]: tensor<1x1x8x8xf32>, %[[O:[a-z0-9_]+]]: tensor<1x64x1x8xf32>, %[[C:[a-z0-9_]+]]: tensor<1x2x1x8x8xbf16>
//       CHECK: %[[S0:.+]] = linalg.generic {{.*}} ins(%[[I]] : tensor<1x1x8x8xf32>)
//       CHECK: %[[R:.+]]:3 = scf.for %[[T:.+]] = {{.*}} iter_args(%[[OI:.+]] = %[[O]], %[[SI:.+]] = %[[S0]], %[[CI:.+]] = %[[C]])
//       CHECK:   %[[X:.+]]:2 = gdn.recurrence {{.*}} outs(%{{.+}}, %[[SI]] :
//   CHECK-DAG:   %[[LEFT:.+]] = affine.apply #[[$LEFT]](%[[T]])
//       CHECK:   %[[DUE:.+]] = arith.cmpi eq, %[[LEFT]]
//       CHECK:   %[[CN:.+]] = scf.if %[[DUE]]
//       CHECK:     %[[AT:.+]] = affine.apply #[[$AT]](%[[T]])
//       CHECK:     %[[PLACE:.+]] = tensor.extract_slice %[[CI]][0, %[[AT]], 0, 0, 0] [1, 1, 1, 8, 8] [1, 1, 1, 1, 1] : tensor<1x2x1x8x8xbf16> to tensor<1x1x8x8xbf16>
//       CHECK:     %[[KEPT:.+]] = linalg.generic {{.*}} ins(%[[X]]#1 : tensor<1x1x8x8xf32>) outs(%[[PLACE]] : tensor<1x1x8x8xbf16>)
//       CHECK:     tensor.insert_slice %[[KEPT]] into %[[CI]][0, %[[AT]], 0, 0, 0] [1, 1, 1, 8, 8]
//       CHECK:   scf.yield %{{.+}}, %[[X]]#1, %[[CN]]
//       CHECK: return %[[R]]#0, %[[R]]#2
func.func @checkpoints(%q: tensor<1x64x1x8xf32>, %i: tensor<1x1x8x8xf32>, %o: tensor<1x64x1x8xf32>, %c: tensor<1x2x1x8x8xbf16>)
    -> (tensor<1x64x1x8xf32>, tensor<1x2x1x8x8xbf16>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x64x1x8xf32>, tensor<1x64x1x8xf32>, tensor<1x64x1x8xf32>)
      initial(%i : tensor<1x1x8x8xf32>) outs(%o : tensor<1x64x1x8xf32>) checkpoints(%c : tensor<1x2x1x8x8xbf16>)
      {every = 32 : i64, schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x64x1x8xf32>, tensor<1x2x1x8x8xbf16>
  return %0#0, %0#1 : tensor<1x64x1x8xf32>, tensor<1x2x1x8x8xbf16>
}

// -----

func.func @odd_checkpoints(%q: tensor<1x64x1x8xf32>, %s: tensor<1x1x8x8xf32>, %c: tensor<1x2x1x8x8xf32>) {
  // expected-error @+1 {{stores a checkpoint every 24 tokens, no multiple of its chunks of 16}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<1x64x1x8xf32>, tensor<1x64x1x8xf32>, tensor<1x64x1x8xf32>)
      outs(%q, %s : tensor<1x64x1x8xf32>, tensor<1x1x8x8xf32>) checkpoints(%c : tensor<1x2x1x8x8xf32>)
      {every = 24 : i64, schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 64>}
      -> tensor<1x64x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x1x8x8xf32>
  return
}
