// RUN: gdn-opt %s --convert-gdn-to-loops --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Packed sequences, two value heads per key head, bf16 state with K first: the
// state of a head lives in a float32 buffer [V, K] and is rounded once.

// CHECK-LABEL: func @gated_delta_rule
// CHECK-SAME: (%[[Q:.*]]: memref<1x?x1x8xbf16>, %[[K:.*]]: memref<1x?x1x8xbf16>, %[[V:.*]]: memref<1x?x2x4xbf16>, %[[G:.*]]: memref<1x?x2xf32>, %[[B:.*]]: memref<1x?x2xf32>, %[[CU:.*]]: memref<?xi32>, %[[O:.*]]: memref<1x?x2x4xbf16>, %[[S:.*]]: memref<?x2x8x4xbf16>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[STATE:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-DAG: %[[DECAY:.*]] = memref.alloc() : memref<8xf32>
// CHECK-DAG: %[[N:.*]] = memref.dim %[[S]], %[[C0]]
// CHECK: scf.for %[[SEQ:.*]] = %[[C0]] to %[[N]]
// CHECK: scf.for %[[HEAD:.*]] = %[[C0]] to %[[C2]]
// The state in.
// CHECK: scf.for %[[I0:.*]] = %[[C0]] to %[[C4]]
// CHECK: scf.for %[[K0:.*]] = %[[C0]] to %[[C8]]
// CHECK: %[[IN:.*]] = memref.load %[[S]][%[[SEQ]], %[[HEAD]], %[[K0]], %[[I0]]]
// CHECK: %[[INF:.*]] = arith.extf %[[IN]] : bf16 to f32
// CHECK: memref.store %[[INF]], %[[STATE]][%[[I0]], %[[K0]]]
// The tokens of the sequence.
// CHECK: %[[NEXT:.*]] = arith.addi %[[SEQ]], %[[C1]]
// CHECK: %[[FIRST32:.*]] = memref.load %[[CU]][%[[SEQ]]]
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[FIRST32]]
// CHECK: %[[END32:.*]] = memref.load %[[CU]][%[[NEXT]]]
// CHECK: %[[END:.*]] = arith.index_cast %[[END32]]
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[END]] step %[[C1]]
// CHECK: %[[KEYHEAD:.*]] = arith.divui %[[HEAD]], %[[C2]]
// CHECK: scf.for %[[C:.*]] = %[[C0]] to %[[C8]]
// CHECK: %[[GATE:.*]] = memref.load %[[G]][%[[C0]], %[[T]], %[[HEAD]]]
// CHECK: %[[EXP:.*]] = math.exp %[[GATE]]
// CHECK: memref.store %[[EXP]], %[[DECAY]][%[[C]]]
// Decay, error, update, read.
// CHECK: scf.for %[[I:.*]] = %[[C0]] to %[[C4]]
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: memref.store %{{.*}}, %[[STATE]]
// CHECK: memref.load %[[V]][%[[C0]], %[[T]], %[[HEAD]], %[[I]]]
// CHECK: %[[BETA:.*]] = memref.load %[[B]][%[[C0]], %[[T]], %[[HEAD]]]
// CHECK: %[[READ:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]]) -> (f32)
// CHECK: memref.load %[[K]][%[[C0]], %[[T]], %[[KEYHEAD]], %{{.*}}]
// CHECK: scf.yield
// CHECK: %[[BV:.*]] = arith.mulf %[[BETA]], %{{.*}} : f32
// CHECK: %[[U:.*]] = arith.subf %[[BV]], %[[READ]]
// CHECK: scf.for
// CHECK: arith.mulf %[[U]], %{{.*}}
// CHECK: memref.store %{{.*}}, %[[STATE]][%[[I]], %{{.*}}]
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK: memref.load %[[Q]][%[[C0]], %[[T]], %[[KEYHEAD]], %{{.*}}]
// CHECK: %[[OUT:.*]] = arith.mulf %[[SUM]], %[[SCALE]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[OUT]] : f32 to bf16
// CHECK: memref.store %[[ROUNDED]], %[[O]][%[[C0]], %[[T]], %[[HEAD]], %[[I]]]
// The state out.
// CHECK: %[[FINAL:.*]] = memref.load %[[STATE]]
// CHECK: %[[FINALR:.*]] = arith.truncf %[[FINAL]] : f32 to bf16
// CHECK: memref.store %[[FINALR]], %[[S]]
// CHECK-DAG: memref.dealloc %[[STATE]]
// CHECK-DAG: memref.dealloc %[[DECAY]]
// CHECK-NOT: gdn.
func.func @gated_delta_rule(%q: memref<1x?x1x8xbf16>, %k: memref<1x?x1x8xbf16>, %v: memref<1x?x2x4xbf16>,
    %g: memref<1x?x2xf32>, %b: memref<1x?x2xf32>, %cu: memref<?xi32>, %o: memref<1x?x2x4xbf16>, %s: memref<?x2x8x4xbf16>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x?x1x8xbf16>, memref<1x?x1x8xbf16>, memref<1x?x2x4xbf16>)
      gate(%g : memref<1x?x2xf32>) beta(%b : memref<1x?x2xf32>) offsets(%cu : memref<?xi32>)
      outs(%o, %s : memref<1x?x2x4xbf16>, memref<?x2x8x4xbf16>) {scale = 0.5, state_layout = #gdn.state_layout<k_first>}
  return
}

// Neither gate nor beta: no exponential, no error term.

// CHECK-LABEL: func @linear_attention
// CHECK-NOT: math.exp
// CHECK-NOT: arith.subf
// CHECK: return
func.func @linear_attention(%q: memref<1x3x1x8xf32>, %v: memref<1x3x1x4xf32>, %o: memref<1x3x1x4xf32>, %s: memref<1x1x4x8xf32>) {
  gdn.recurrence ins(%q, %q, %v : memref<1x3x1x8xf32>, memref<1x3x1x8xf32>, memref<1x3x1x4xf32>)
      outs(%o, %s : memref<1x3x1x4xf32>, memref<1x1x4x8xf32>)
  return
}

// CHECK-LABEL: func @cumsum
// CHECK-SAME: (%[[X:.*]]: memref<?x3xf32, strided<[?, ?], offset: ?>>, %[[Y:.*]]: memref<?x3xf32>)
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[BEFORE:.*]] = arith.subi %[[I]], %{{.*}}
// CHECK: %[[SUM:.*]] = scf.if
// CHECK: memref.load %[[Y]][%[[BEFORE]], %[[J]]]
// CHECK: %[[TERM:.*]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[TERM]]
// CHECK: memref.store %[[NEXT]], %[[Y]][%[[I]], %[[J]]]
func.func @cumsum(%x: memref<?x3xf32, strided<[?, ?], offset: ?>>, %y: memref<?x3xf32>) {
  gdn.cumsum ins(%x : memref<?x3xf32, strided<[?, ?], offset: ?>>) outs(%y : memref<?x3xf32>)
  return
}

// The difference of the gates is taken before the exponential.

// CHECK-LABEL: func @scores
// CHECK: arith.cmpi slt, %[[J:.*]], %[[I:.*]] : index
// CHECK: scf.if
// CHECK: scf.for
// CHECK: %[[D:.*]] = arith.subf
// CHECK: math.exp %[[D]]
func.func @scores(%x: memref<4x2xbf16>, %g: memref<4x2xf32>, %a: memref<4x4xf32>) {
  gdn.scores ins(%x, %x : memref<4x2xbf16>, memref<4x2xbf16>) gate(%g : memref<4x2xf32>) outs(%a : memref<4x4xf32>) {strict}
  return
}

// CHECK-LABEL: func @mixer
// CHECK-NOT: gdn.
// CHECK: math.rsqrt
// CHECK: math.log1p
// CHECK: memref.store
// CHECK: return
func.func @mixer(%x: memref<2x5x16xbf16>, %a: memref<2x5x4xbf16>, %A: memref<4xf32>, %g: memref<2x5x4xf32>, %l: memref<4x4xf32>,
    %w: memref<16x4xf32>, %s: memref<2x16x3xbf16>, %rw: memref<16xf32>, %y: memref<2x5x16xbf16>) {
  gdn.l2norm ins(%x : memref<2x5x16xbf16>) outs(%y : memref<2x5x16xbf16>)
  gdn.gate ins(%a, %A : memref<2x5x4xbf16>, memref<4xf32>) outs(%g : memref<2x5x4xf32>)
  gdn.short_conv ins(%x, %w : memref<2x5x16xbf16>, memref<16x4xf32>) outs(%y, %s : memref<2x5x16xbf16>, memref<2x16x3xbf16>)
  gdn.gated_rms_norm ins(%x, %x, %rw : memref<2x5x16xbf16>, memref<2x5x16xbf16>, memref<16xf32>) outs(%y : memref<2x5x16xbf16>)
  gdn.tri_inverse ins(%l : memref<4x4xf32>) outs(%l : memref<4x4xf32>)
  return
}

// -----

func.func @tensors(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{convert-gdn-to-loops works on memrefs; bufferize first}}
  %0 = gdn.cumsum ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A pool: the entry that the slot names, or zeros for o.

// CHECK-LABEL: func @pool
// CHECK-SAME: (%[[Q:.*]]: memref<?x2x1x4xf32>, %[[O:.*]]: memref<?x2x1x4xf32>, %[[AT:.*]]: memref<?xi64>, %[[S:.*]]: memref<?x1x4x4xf32>)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[N:.*]] = memref.dim %[[AT]], %[[C0]]
// CHECK: scf.for %[[SEQ:.*]] = %[[C0]] to %[[N]]
// CHECK: %[[SLOT64:.*]] = memref.load %[[AT]][%[[SEQ]]]
// CHECK: %[[SLOT:.*]] = arith.index_cast %[[SLOT64]] : i64 to index
// CHECK: %[[NONE:.*]] = arith.cmpi slt, %[[SLOT]], %[[C0]]
// CHECK: scf.if %[[NONE]] {
// CHECK-NOT: memref.load
// CHECK: memref.store %[[ZERO]], %[[O]][%[[SEQ]],
// CHECK: } else {
// CHECK: memref.load %[[S]][%[[SLOT]],
// CHECK: memref.load %[[Q]][%[[SEQ]],
// CHECK: memref.store %{{.*}}, %[[O]][%[[SEQ]],
// CHECK: memref.store %{{.*}}, %[[S]][%[[SLOT]],
func.func @pool(%q: memref<?x2x1x4xf32>, %o: memref<?x2x1x4xf32>, %at: memref<?xi64>, %s: memref<?x1x4x4xf32>) {
  gdn.recurrence ins(%q, %q, %q : memref<?x2x1x4xf32>, memref<?x2x1x4xf32>, memref<?x2x1x4xf32>)
      slots(%at : memref<?xi64>) outs(%o, %s : memref<?x2x1x4xf32>, memref<?x1x4x4xf32>)
  return
}

// -----

// Checkpoints of packed sequences, and a state that is only read.

// CHECK-LABEL: func @checkpoints
// CHECK-SAME: (%[[Q:.*]]: memref<1x?x1x4xf32>, %[[O:.*]]: memref<1x?x1x4xf32>, %[[CU:.*]]: memref<?xi32>, %[[I:.*]]: memref<?x1x4x4xf32>, %[[C:.*]]: memref<1x?x1x4x4xbf16>)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK: memref.load %[[I]]
// CHECK: scf.for %[[T:.*]] = %[[FIRST:.*]] to %{{.*}} step
// The token's number in its sequence, from 1.
// CHECK: %[[BEFORE:.*]] = arith.subi %[[T]], %[[FIRST]]
// CHECK: %[[DONE:.*]] = arith.addi %[[BEFORE]], %[[C1]]
// CHECK: %[[LEFT:.*]] = arith.remui %[[DONE]], %[[C3]]
// CHECK: %[[OFF:.*]] = arith.cmpi sgt, %[[LEFT]], %[[C0]]
// CHECK: scf.if %[[OFF]] {
// CHECK-NEXT: } else {
// CHECK: %[[COUNT:.*]] = arith.divui %[[DONE]], %[[C3]]
// CHECK: %[[J:.*]] = arith.subi %[[COUNT]], %[[C1]]
// CHECK: %[[BASE:.*]] = arith.divui %[[FIRST]], %[[C3]]
// CHECK: %[[PLACE:.*]] = arith.addi %[[BASE]], %[[J]]
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: memref.store %{{.*}}, %[[C]][%[[C0]], %[[PLACE]], %[[C0]],
// CHECK-NOT: memref.store %{{.*}}, %[[I]]
func.func @checkpoints(%q: memref<1x?x1x4xf32>, %o: memref<1x?x1x4xf32>, %cu: memref<?xi32>, %i: memref<?x1x4x4xf32>, %c: memref<1x?x1x4x4xbf16>) {
  gdn.recurrence ins(%q, %q, %q : memref<1x?x1x4xf32>, memref<1x?x1x4xf32>, memref<1x?x1x4xf32>)
      offsets(%cu : memref<?xi32>) initial(%i : memref<?x1x4x4xf32>) outs(%o : memref<1x?x1x4xf32>)
      checkpoints(%c : memref<1x?x1x4x4xbf16>) {every = 3 : i64}
  return
}
