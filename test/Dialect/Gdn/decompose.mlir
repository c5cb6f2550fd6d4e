// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-decompose))" --split-input-file --verify-diagnostics | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline="builtin.module(func.func(gdn-decompose{ops=gdn.recurrence}))" --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=CHUNK

// The chunk form: gates clamped and summed, strict scores inverted, the state
// read twice and updated by a transposed product.
// CHUNK-LABEL: func @gated_delta_rule
//  CHUNK-SAME:   %[[Q:.+]]: tensor<1x16x1x8xbf16>, %[[K:.+]]: tensor<1x16x1x8xbf16>, %[[V:.+]]: tensor<1x16x1x4xbf16>, %[[G:.+]]: tensor<1x16x1xf32>, %[[B:.+]]: tensor<1x16x1xf32>,
//       CHUNK: %[[KS:.+]] = tensor.extract_slice %[[K]][0, 0, 0, 0] [1, 16, 1, 8] [1, 1, 1, 1] : tensor<1x16x1x8xbf16> to tensor<16x8xbf16>
//       CHUNK: %[[KF:.+]] = linalg.generic {{.*}} ins(%[[KS]] : tensor<16x8xbf16>)
//       CHUNK:   arith.extf
//       CHUNK: %[[QF:.+]] = linalg.generic {{.*}} ins(%{{.+}} : tensor<16x8xbf16>)
//       CHUNK:   arith.mulf {{.*}} fastmath<contract>
//       CHUNK: %[[CLAMPED:.+]] = linalg.generic {{.*}} ins(%{{.+}} : tensor<16xf32>)
//       CHUNK:   %[[MIN:.+]] = arith.constant -1.040000e+02 : f32
//       CHUNK:   arith.maximumf %{{.+}}, %[[MIN]]
//       CHUNK: %[[SUMS:.+]] = gdn.cumsum ins(%[[CLAMPED]]
//       CHUNK: %[[LAST:.+]] = tensor.extract_slice %[[SUMS]][15] [1] [1] : tensor<16xf32> to tensor<f32>
//       CHUNK: %[[DECAY:.+]] = linalg.generic {{.*}} ins(%[[SUMS]]
//       CHUNK:   math.exp
//       CHUNK: %[[TOEND:.+]] = linalg.generic {{.*}} ins(%[[LAST]], %[[SUMS]]
//       CHUNK:   arith.subf
//       CHUNK:   math.exp
//       CHUNK: %[[S:.+]] = linalg.generic {{.*}} ins(%{{.+}} : tensor<4x8xf32>) outs(%{{.+}} : tensor<8x4xf32>)
//       CHUNK: %[[BK:.+]] = linalg.generic {{.*}} ins(%[[KF]], %{{.+}} : tensor<16x8xf32>, tensor<16xf32>)
//       CHUNK: %[[L:.+]] = gdn.scores ins(%[[BK]], %[[KF]] : {{.*}}) gate(%[[SUMS]] : tensor<16xf32>) {{.*}}strict
//       CHUNK: %[[X:.+]] = gdn.tri_inverse ins(%[[L]]
//       CHUNK: %[[BKD:.+]] = linalg.generic {{.*}} ins(%[[BK]], %[[DECAY]]
//       CHUNK: %[[READ:.+]] = linalg.matmul ins(%[[BKD]], %[[S]]
//       CHUNK: %[[W:.+]] = linalg.generic {{.*}} ins(%{{.+}}, %{{.+}}, %[[READ]] : tensor<16x4xbf16>, tensor<16xf32>, tensor<16x4xf32>)
//       CHUNK: %[[U:.+]] = linalg.matmul ins(%[[X]], %[[W]]
//       CHUNK: %[[P:.+]] = gdn.scores ins(%[[QF]], %[[KF]] : {{.*}}) gate(%[[SUMS]] : tensor<16xf32>)
//   CHUNK-NOT:   strict
//       CHUNK: %[[QD:.+]] = linalg.generic {{.*}} ins(%[[QF]], %[[DECAY]]
//       CHUNK: %[[CARRIED:.+]] = linalg.matmul ins(%[[QD]], %[[S]]
//       CHUNK: %[[SUM:.+]] = linalg.matmul ins(%[[P]], %[[U]] : {{.*}}) outs(%[[CARRIED]]
//       CHUNK: %[[O:.+]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<16x4xf32>) outs(%{{.+}} : tensor<16x4xbf16>)
//       CHUNK:   arith.truncf
//       CHUNK: %[[SD:.+]] = linalg.generic {{.*}} ins(%{{.+}} : tensor<f32>) outs(%[[S]] : tensor<8x4xf32>)
//       CHUNK: %[[KD:.+]] = linalg.generic {{.*}} ins(%[[KF]], %[[TOEND]]
//       CHUNK: %[[SN:.+]] = linalg.matmul indexing_maps = [{{.*}}] ins(%[[KD]], %[[U]] : {{.*}}) outs(%[[SD]]
//       CHUNK: linalg.generic {{.*}} ins(%[[SN]] : tensor<8x4xf32>) outs(%{{.+}} : tensor<4x8xf32>)
//       CHUNK: tensor.insert_slice %[[O]] into
// CHECK-LABEL: func @gated_delta_rule
//   CHECK-NOT: gdn.
//       CHECK: return
func.func @gated_delta_rule(%q: tensor<1x16x1x8xbf16>, %k: tensor<1x16x1x8xbf16>, %v: tensor<1x16x1x4xbf16>, %g: tensor<1x16x1xf32>,
    %b: tensor<1x16x1xf32>, %o: tensor<1x16x1x4xbf16>, %s: tensor<1x1x4x8xf32>) -> (tensor<1x16x1x4xbf16>, tensor<1x1x4x8xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x16x1x8xbf16>, tensor<1x16x1x8xbf16>, tensor<1x16x1x4xbf16>)
      gate(%g : tensor<1x16x1xf32>) beta(%b : tensor<1x16x1xf32>) outs(%o, %s : tensor<1x16x1x4xbf16>, tensor<1x1x4x8xf32>)
      -> tensor<1x16x1x4xbf16>, tensor<1x1x4x8xf32>
  return %0#0, %0#1 : tensor<1x16x1x4xbf16>, tensor<1x1x4x8xf32>
}

// -----

// Linear attention: no gate, no inverse; a k_first state in float32 is updated
// where it is.
// CHUNK-LABEL: func @linear_attention
//  CHUNK-SAME:   %[[S0:[a-z0-9]+]]: tensor<1x1x8x4xf32>)
//   CHUNK-NOT: gdn.cumsum
//   CHUNK-NOT: gdn.tri_inverse
//       CHUNK: %[[S:.+]] = tensor.extract_slice %[[S0]]
//       CHUNK: gdn.scores
//   CHUNK-NOT:   gate
//   CHUNK-NOT: math.exp
//       CHUNK: linalg.matmul indexing_maps = [{{.*}}] ins(%{{.+}}, %{{.+}} : tensor<16x8xf32>, tensor<16x4xf32>) outs(%[[S]]
func.func @linear_attention(%q: tensor<1x16x1x8xf32>, %v: tensor<1x16x1x4xf32>, %s: tensor<1x1x8x4xf32>) -> tensor<1x1x8x4xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x16x1x8xf32>, tensor<1x16x1x8xf32>, tensor<1x16x1x4xf32>)
      outs(%v, %s : tensor<1x16x1x4xf32>, tensor<1x1x8x4xf32>) {state_layout = #gdn.state_layout<k_first>}
      -> tensor<1x16x1x4xf32>, tensor<1x1x8x4xf32>
  return %0#1 : tensor<1x1x8x4xf32>
}

// -----

// One gate per token: a product, then the factor; the mask comes before exp.
// CHECK-LABEL: func @scores_per_token
//       CHECK: linalg.matmul
//       CHECK: linalg.generic
//       CHECK:   %[[MASK:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : index
//       CHECK:   %[[D:.+]] = arith.subf
//       CHECK:   %[[E:.+]] = arith.select %[[MASK]], %[[D]], %{{.+}} : f32
//       CHECK:   math.exp %[[E]]
//       CHECK:   arith.select %[[MASK]]
func.func @scores_per_token(%x: tensor<32x8xf32>, %g: tensor<32xf32>, %o: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = gdn.scores ins(%x, %x : tensor<32x8xf32>, tensor<32x8xf32>) gate(%g : tensor<32xf32>) outs(%o : tensor<32x32xf32>) {strict} -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// A gate per channel: diagonal blocks of 16 take the difference per pair, the
// block below them is a product anchored at row 16.
// CHECK-LABEL: func @scores_per_channel
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<20x8xf32>, %[[G:[a-z0-9]+]]: tensor<20x8xf32>
//       CHECK: %[[D0:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} {{.*}} outs(%{{.+}} : tensor<16x16xf32>)
//       CHECK: tensor.insert_slice %[[D0]] into %{{.+}}[0, 0] [16, 16]
//       CHECK: %[[ANCHOR:.+]] = tensor.extract_slice %[[G]][16, 0] [1, 8] [1, 1] : tensor<20x8xf32> to tensor<8xf32>
//       CHECK: %[[XR:.+]] = linalg.generic {{.*}} ins(%{{.+}}, %{{.+}}, %[[ANCHOR]] : tensor<4x8xf32>
//       CHECK: %[[YR:.+]] = linalg.generic {{.*}} ins(%{{.+}}, %{{.+}}, %[[ANCHOR]] : tensor<16x8xf32>
//       CHECK: %[[P:.+]] = linalg.matmul ins(%[[XR]], %{{.+}} : tensor<4x8xf32>, tensor<8x16xf32>)
//       CHECK: tensor.insert_slice %[[P]] into %{{.+}}[16, 0] [4, 16]
//       CHECK: tensor.insert_slice %{{.+}} into %{{.+}}[16, 16] [4, 4]
func.func @scores_per_channel(%x: tensor<20x8xf32>, %g: tensor<20x8xf32>, %o: tensor<20x20xf32>) -> tensor<20x20xf32> {
  %0 = gdn.scores ins(%x, %x : tensor<20x8xf32>, tensor<20x8xf32>) gate(%g : tensor<20x8xf32>) outs(%o : tensor<20x20xf32>) -> tensor<20x20xf32>
  return %0 : tensor<20x20xf32>
}

// -----

// CHECK-LABEL: func @chunk_parts
//       CHECK: scf.for {{.*}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) -> (f32, tensor<16xf32>)
//       CHECK: scf.for {{.*}} -> (tensor<8xf32>, tensor<16x8xf32>)
//       CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<16x16xf32>)
//       CHECK:   arith.cmpi eq
//       CHECK: scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args({{.*}}) -> (tensor<16x16xf32>)
//       CHECK:   scf.for %[[J:.+]] = %{{.+}} to %[[I]] step
//       CHECK:     tensor.extract %{{.+}}[%[[I]], %[[J]]]
func.func @chunk_parts(%g: tensor<16xf32>, %c: tensor<16x8xf32>, %m: tensor<16x16xf32>) -> (tensor<16xf32>, tensor<16x8xf32>, tensor<16x16xf32>) {
  %0 = gdn.cumsum ins(%g : tensor<16xf32>) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  %1 = gdn.cumsum ins(%c : tensor<16x8xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  %2 = gdn.tri_inverse ins(%m : tensor<16x16xf32>) outs(%m : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0, %1, %2 : tensor<16xf32>, tensor<16x8xf32>, tensor<16x16xf32>
}

// -----

// CHECK-LABEL: func @mixer
//   CHECK-NOT: gdn.
//       CHECK: math.sqrt
//       CHECK: math.log1p
//       CHECK: scf.for
//       CHECK:   tensor.extract
//       CHECK:   math.exp
//       CHECK: math.sqrt
//   CHECK-NOT: gdn.
//       CHECK: return
func.func @mixer(%x: tensor<2x?x2x16xbf16>, %a: tensor<2x?x4xbf16>, %A: tensor<4xf32>, %dt: tensor<4xf32>,
    %g: tensor<2x?x4xf32>, %c: tensor<1x?x8xbf16>, %w: tensor<8x4xbf16>, %cu: tensor<?xi32>, %cs: tensor<?x8x4xbf16>,
    %rw: tensor<16xf32>) -> (tensor<2x?x4xf32>, tensor<1x?x8xbf16>, tensor<2x?x2x16xbf16>) {
  %0 = gdn.l2norm ins(%x : tensor<2x?x2x16xbf16>) outs(%x : tensor<2x?x2x16xbf16>) -> tensor<2x?x2x16xbf16>
  %1 = gdn.gate ins(%a, %A : tensor<2x?x4xbf16>, tensor<4xf32>) bias(%dt : tensor<4xf32>)
      outs(%g : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %2:2 = gdn.short_conv ins(%c, %w : tensor<1x?x8xbf16>, tensor<8x4xbf16>) offsets(%cu : tensor<?xi32>)
      outs(%c, %cs : tensor<1x?x8xbf16>, tensor<?x8x4xbf16>) {activation = #gdn.activation<silu>}
      -> tensor<1x?x8xbf16>, tensor<?x8x4xbf16>
  %3 = gdn.gated_rms_norm ins(%x, %0, %rw : tensor<2x?x2x16xbf16>, tensor<2x?x2x16xbf16>, tensor<16xf32>)
      outs(%x : tensor<2x?x2x16xbf16>) -> tensor<2x?x2x16xbf16>
  return %1, %2#0, %3 : tensor<2x?x4xf32>, tensor<1x?x8xbf16>, tensor<2x?x2x16xbf16>
}

// -----

func.func @untiled(%q: tensor<1x?x1x8xf32>, %s: tensor<1x1x8x8xf32>) {
  // expected-error @+1 {{can be decomposed on one block and one chunk only (B = Hqk = Hv = 1, T static; no offsets, slots, initial or checkpoints), but q is 'tensor<1x?x1x8xf32>' and v is 'tensor<1x?x1x8xf32>': run gdn-tile-blocks and gdn-tile-chunks first}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>)
      outs(%q, %s : tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x?x1x8xf32>, tensor<1x1x8x8xf32>
  return
}

// -----

func.func @memrefs(%q: memref<1x4x1x8xf32>, %s: memref<1x1x8x8xf32>) {
  // expected-error @+1 {{can be decomposed on tensors only}}
  gdn.recurrence ins(%q, %q, %q : memref<1x4x1x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>)
      outs(%q, %s : memref<1x4x1x8xf32>, memref<1x1x8x8xf32>)
  return
}

// -----

func.func @slots(%q: tensor<1x4x1x8xf32>, %at: tensor<1xi32>, %s: tensor<1x1x8x8xf32>) {
  // expected-error @+1 {{can be decomposed on one block and one chunk only (B = Hqk = Hv = 1, T static; no offsets, slots, initial or checkpoints), but q is}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
      slots(%at : tensor<1xi32>) outs(%q, %s : tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>
  return
}

// -----

func.func @initial(%q: tensor<1x4x1x8xf32>, %s: tensor<1x1x8x8xf32>) {
  // expected-error @+1 {{can be decomposed on one block and one chunk only (B = Hqk = Hv = 1, T static; no offsets, slots, initial or checkpoints), but q is}}
  %0 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
      initial(%s : tensor<1x1x8x8xf32>) outs(%q : tensor<1x4x1x8xf32>) -> tensor<1x4x1x8xf32>
  return
}

// -----

func.func @checkpoints(%q: tensor<1x4x1x8xf32>, %s: tensor<1x1x8x8xf32>, %c: tensor<1x1x1x8x8xf32>) {
  // expected-error @+1 {{can be decomposed on one block and one chunk only (B = Hqk = Hv = 1, T static; no offsets, slots, initial or checkpoints), but q is}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
      outs(%q, %s : tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>) checkpoints(%c : tensor<1x1x1x8x8xf32>) {every = 4 : i64}
      -> tensor<1x4x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x1x8x8xf32>
  return
}
