// RUN: gdn-opt %s --transform-interpreter --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// One sequence of a packed row, one value head, a value block: the time slice of
// the sequence, the key head of the group, no offsets; v_first cuts rows.
// CHECK-DAG: #[[$VALUES:.+]] = affine_map<(d0) -> (d0 * 4)>
// CHECK-DAG: #[[$KEY_HEAD:.+]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-LABEL: func @packed
//  CHECK-SAME:   %[[Q:[a-z0-9_]+]]: tensor<1x?x2x8xf32>, %[[V:[a-z0-9_]+]]: tensor<1x?x4x12xf32>, %[[G:[a-z0-9_]+]]: tensor<1x?x4xf32>, %[[B:[a-z0-9_]+]]: tensor<1x?x4xf32>, %[[CU:[a-z0-9_]+]]: tensor<?xi32>
//       CHECK: scf.forall (%[[N:[a-z0-9_]+]], %[[H:[a-z0-9_]+]], %[[XB:[a-z0-9_]+]]) in (%{{.+}}, 4, 3) shared_outs(%[[O:[a-z0-9_]+]] = %{{.+}}, %[[S:[a-z0-9_]+]] = %{{.+}})
//   CHECK-DAG:   %[[X:[a-z0-9_]+]] = affine.apply #[[$VALUES]](%[[XB]])
//   CHECK-DAG:   %[[START:[a-z0-9_]+]] = tensor.extract %[[CU]][%[[N]]]
//   CHECK-DAG:   %[[T0:[a-z0-9_]+]] = arith.index_cast %[[START]] : i32 to index
//   CHECK-DAG:   %[[HK:[a-z0-9_]+]] = affine.apply #[[$KEY_HEAD]](%[[H]])
//       CHECK:   %[[QT:[a-z0-9_]+]] = tensor.extract_slice %[[Q]][0, %[[T0]], %[[HK]], 0] [1, %[[LEN:[a-z0-9_]+]], 1, 8]
//       CHECK:   %[[VT:[a-z0-9_]+]] = tensor.extract_slice %[[V]][0, %[[T0]], %[[H]], %[[X]]] [1, %[[LEN]], 1, 4]
//       CHECK:   %[[GT:[a-z0-9_]+]] = tensor.extract_slice %[[G]][0, %[[T0]], %[[H]]] [1, %[[LEN]], 1]
//       CHECK:   %[[BT:[a-z0-9_]+]] = tensor.extract_slice %[[B]][0, %[[T0]], %[[H]]] [1, %[[LEN]], 1]
//       CHECK:   %[[OT:[a-z0-9_]+]] = tensor.extract_slice %[[O]][0, %[[T0]], %[[H]], %[[X]]] [1, %[[LEN]], 1, 4]
//       CHECK:   %[[ST:[a-z0-9_]+]] = tensor.extract_slice %[[S]][%[[N]], %[[H]], %[[X]], 0] [1, 1, 4, 8]
//       CHECK:   %[[R:[a-z0-9_]+]]:2 = gdn.recurrence ins(%[[QT]], %[[QT]], %[[VT]]
//   CHECK-NOT:     offsets
//  CHECK-SAME:     gate(%[[GT]] : tensor<1x?x1xf32>) beta(%[[BT]] : tensor<1x?x1xf32>) outs(%[[OT]], %[[ST]] : tensor<1x?x1x4xf32>, tensor<1x1x4x8xf32>)
//       CHECK:   tensor.parallel_insert_slice %[[R]]#0 into %[[O]][0, %[[T0]], %[[H]], %[[X]]] [1, %[[LEN]], 1, 4]
//       CHECK:   tensor.parallel_insert_slice %[[R]]#1 into %[[S]][%[[N]], %[[H]], %[[X]], 0] [1, 1, 4, 8]
module attributes {transform.with_named_sequence} {
  func.func @packed(%q: tensor<1x?x2x8xf32>, %v: tensor<1x?x4x12xf32>, %g: tensor<1x?x4xf32>,
      %b: tensor<1x?x4xf32>, %cu: tensor<?xi32>, %o: tensor<1x?x4x12xf32>, %s: tensor<?x4x12x8xf32>)
      -> (tensor<1x?x4x12xf32>, tensor<?x4x12x8xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>, tensor<1x?x4x12xf32>)
        gate(%g : tensor<1x?x4xf32>) beta(%b : tensor<1x?x4xf32>) offsets(%cu : tensor<?xi32>)
        outs(%o, %s : tensor<1x?x4x12xf32>, tensor<?x4x12x8xf32>)
        -> tensor<1x?x4x12xf32>, tensor<?x4x12x8xf32>
    return %0#0, %0#1 : tensor<1x?x4x12xf32>, tensor<?x4x12x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_forall %0 tile_sizes [1, 1, 4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads only: the offsets stay. A tile of 4 value heads covers 2 key heads;
// k_first cuts columns; erase, write and a gate per channel follow their heads.
// CHECK-DAG: #[[$HEADS:.+]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-LABEL: func @heads
//  CHECK-SAME:   %[[Q:[a-z0-9_]+]]: tensor<1x20x4x8xf32>, %[[V:[a-z0-9_]+]]: tensor<1x20x8x12xf32>, %[[G:[a-z0-9_]+]]: tensor<1x20x8x8xf32>, %[[CU:[a-z0-9_]+]]: tensor<?xi64>
//       CHECK: scf.for %[[H:[a-z0-9_]+]] = %{{.+}} iter_args(%[[O:[a-z0-9_]+]] = %{{.+}}, %[[S:[a-z0-9_]+]] = %{{.+}})
//       CHECK:   scf.for %[[X:[a-z0-9_]+]] = %{{.+}} iter_args(%[[O2:[a-z0-9_]+]] = %[[O]], %[[S2:[a-z0-9_]+]] = %[[S]])
//   CHECK-DAG:   %[[HK:[a-z0-9_]+]] = affine.apply #[[$HEADS]](%[[H]])
//   CHECK-DAG:   tensor.extract_slice %[[Q]][0, 0, %[[HK]], 0] [1, 20, 2, 8]
//   CHECK-DAG:   %[[GT:[a-z0-9_]+]] = tensor.extract_slice %[[G]][0, 0, %[[H]], 0] [1, 20, 4, 8]
//   CHECK-DAG:   %[[VT:[a-z0-9_]+]] = tensor.extract_slice %[[V]][0, 0, %[[H]], %[[X]]] [1, 20, 4, 6]
//   CHECK-DAG:   tensor.extract_slice %[[S2]][0, %[[H]], 0, %[[X]]] [%{{.+}}, 4, 8, 6]
//       CHECK:   gdn.recurrence
//  CHECK-SAME:     gate(%[[GT]] : tensor<1x20x4x8xf32>) erase(%[[GT]] : tensor<1x20x4x8xf32>) write(%[[VT]] : tensor<1x20x4x6xf32>) offsets(%[[CU]] : tensor<?xi64>)
//  CHECK-SAME:     scale = 5.000000e-01
//  CHECK-SAME:     state_layout = #gdn.state_layout<k_first>
module attributes {transform.with_named_sequence} {
  func.func @heads(%q: tensor<1x20x4x8xf32>, %v: tensor<1x20x8x12xf32>, %g: tensor<1x20x8x8xf32>,
      %cu: tensor<?xi64>, %o: tensor<1x20x8x12xf32>, %s: tensor<?x8x8x12xf32>)
      -> (tensor<1x20x8x12xf32>, tensor<?x8x8x12xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x20x4x8xf32>, tensor<1x20x4x8xf32>, tensor<1x20x8x12xf32>)
        gate(%g : tensor<1x20x8x8xf32>) erase(%g : tensor<1x20x8x8xf32>) write(%v : tensor<1x20x8x12xf32>)
        offsets(%cu : tensor<?xi64>) outs(%o, %s : tensor<1x20x8x12xf32>, tensor<?x8x8x12xf32>)
        {scale = 0.5, state_layout = #gdn.state_layout<k_first>}
        -> tensor<1x20x8x12xf32>, tensor<?x8x8x12xf32>
    return %0#0, %0#1 : tensor<1x20x8x12xf32>, tensor<?x8x8x12xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2, %3 = transform.structured.tile_using_for %0 tile_sizes [0, 4, 6, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Time in order: the state is carried whole.
// CHECK-LABEL: func @time
//       CHECK: scf.for %[[T:[a-z0-9_]+]] = %{{.+}} iter_args(%[[O:[a-z0-9_]+]] = %{{.+}}, %[[S:[a-z0-9_]+]] = %{{.+}}) -> (tensor<2x20x1x12xf32>, tensor<2x1x12x8xf32>)
//       CHECK:   %[[OT:[a-z0-9_]+]] = tensor.extract_slice %[[O]][0, %[[T]], 0, 0] [2, 5, 1, 12]
//       CHECK:   %[[R:[a-z0-9_]+]]:2 = gdn.recurrence {{.*}} outs(%[[OT]], %[[S]] :
//       CHECK:   %[[I:[a-z0-9_]+]] = tensor.insert_slice %[[R]]#0 into %[[O]][0, %[[T]], 0, 0] [2, 5, 1, 12]
//       CHECK:   scf.yield %[[I]], %[[R]]#1
module attributes {transform.with_named_sequence} {
  func.func @time(%q: tensor<2x20x1x8xf32>, %v: tensor<2x20x1x12xf32>, %o: tensor<2x20x1x12xf32>, %s: tensor<2x1x12x8xf32>)
      -> (tensor<2x20x1x12xf32>, tensor<2x1x12x8xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<2x20x1x8xf32>, tensor<2x20x1x8xf32>, tensor<2x20x1x12xf32>)
        outs(%o, %s : tensor<2x20x1x12xf32>, tensor<2x1x12x8xf32>) -> tensor<2x20x1x12xf32>, tensor<2x1x12x8xf32>
    return %0#0, %0#1 : tensor<2x20x1x12xf32>, tensor<2x1x12x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 0, 0, 5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @straddle(%q: tensor<1x4x2x8xf32>, %v: tensor<1x4x6x8xf32>, %s: tensor<1x6x8x8xf32>) {
    // expected-error @below {{cannot be tiled by 2 value heads: a tile must lie within a group of 3 or cover whole groups}}
    // expected-error @below {{failed to generate tiling loops}}
    // expected-error @below {{faild to tile operation}}
    %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x6x8xf32>)
        outs(%v, %s : tensor<1x4x6x8xf32>, tensor<1x6x8x8xf32>) -> tensor<1x4x6x8xf32>, tensor<1x6x8x8xf32>
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 2, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @packed_time(%q: tensor<1x8x1x8xf32>, %cu: tensor<3xi32>, %s: tensor<2x1x8x8xf32>) {
    // expected-error @below {{cannot be tiled along time while it has 'offsets': tile the sequences by 1 first}}
    // expected-error @below {{failed to generate tiling loops}}
    // expected-error @below {{faild to tile operation}}
    %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>)
        offsets(%cu : tensor<3xi32>) outs(%q, %s : tensor<1x8x1x8xf32>, tensor<2x1x8x8xf32>) -> tensor<1x8x1x8xf32>, tensor<2x1x8x8xf32>
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @packed_pairs(%q: tensor<1x8x1x8xf32>, %cu: tensor<5xi32>, %s: tensor<4x1x8x8xf32>) {
    // expected-error @below {{cannot be tiled by several sequences while it has 'offsets': the tile size must be 1 or all}}
    // expected-error @below {{failed to generate tiling loops}}
    // expected-error @below {{faild to tile operation}}
    %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>)
        offsets(%cu : tensor<5xi32>) outs(%q, %s : tensor<1x8x1x8xf32>, tensor<4x1x8x8xf32>) -> tensor<1x8x1x8xf32>, tensor<4x1x8x8xf32>
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [2, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A pool: the tile of one sequence has entry slots[n] as its slot 0, or no entry
// and slot -1.
// CHECK-LABEL: func @pool
//  CHECK-SAME:   %[[Q:[a-z0-9_]+]]: tensor<?x3x1x8xf32>, %[[AT:[a-z0-9_]+]]: tensor<?xi32>
//   CHECK-DAG: %[[I0:[a-z0-9_]+]] = arith.constant 0 : i32
//   CHECK-DAG: %[[N:[a-z0-9_]+]] = tensor.dim %[[AT]]
//       CHECK: scf.forall (%[[SEQ:[a-z0-9_]+]], %[[H:[a-z0-9_]+]]) in (%[[N]], 2) shared_outs(%[[O:[a-z0-9_]+]] = %{{.+}}, %[[S:[a-z0-9_]+]] = %{{.+}})
//   CHECK-DAG:   %[[SLOT:[a-z0-9_]+]] = tensor.extract %[[AT]][%[[SEQ]]]
//   CHECK-DAG:   %[[LIVE:[a-z0-9_]+]] = arith.cmpi sge, %[[SLOT]], %[[I0]]
//   CHECK-DAG:   %[[ENTRY32:[a-z0-9_]+]] = arith.maxsi %[[SLOT]], %[[I0]]
//   CHECK-DAG:   %[[ENTRY:[a-z0-9_]+]] = arith.index_cast %[[ENTRY32]]
//   CHECK-DAG:   %[[COUNT:[a-z0-9_]+]] = arith.index_castui %[[LIVE]] : i1 to index
//   CHECK-DAG:   %[[OWN32:[a-z0-9_]+]] = arith.minsi %[[SLOT]], %[[I0]]
//   CHECK-DAG:   %[[OWN:[a-z0-9_]+]] = tensor.from_elements %[[OWN32]] : tensor<1xi32>
//   CHECK-DAG:   tensor.extract_slice %[[Q]][%[[SEQ]], 0, %{{.+}}, 0] [1, 3, 1, 8]
//   CHECK-DAG:   %[[ST:[a-z0-9_]+]] = tensor.extract_slice %[[S]][%[[ENTRY]], %[[H]], 0, 0] [%[[COUNT]], 1, 8, 8]
//       CHECK:   %[[R:[a-z0-9_]+]]:2 = gdn.recurrence {{.*}} slots(%[[OWN]] : tensor<1xi32>) outs(%{{.+}}, %[[ST]] : tensor<1x3x1x8xf32>, tensor<?x1x8x8xf32>)
//       CHECK:   tensor.parallel_insert_slice %[[R]]#1 into %[[S]][%[[ENTRY]], %[[H]], 0, 0] [%[[COUNT]], 1, 8, 8]
module attributes {transform.with_named_sequence} {
  func.func @pool(%q: tensor<?x3x1x8xf32>, %at: tensor<?xi32>, %o: tensor<?x3x2x8xf32>, %s: tensor<40x2x8x8xf32>)
      -> (tensor<?x3x2x8xf32>, tensor<40x2x8x8xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %o : tensor<?x3x1x8xf32>, tensor<?x3x1x8xf32>, tensor<?x3x2x8xf32>)
        slots(%at : tensor<?xi32>) outs(%o, %s : tensor<?x3x2x8xf32>, tensor<40x2x8x8xf32>)
        -> tensor<?x3x2x8xf32>, tensor<40x2x8x8xf32>
    return %0#0, %0#1 : tensor<?x3x2x8xf32>, tensor<40x2x8x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_forall %0 tile_sizes [1, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads of a pool: all slots and all entries stay.
// CHECK-LABEL: func @pool_heads
//  CHECK-SAME:   %[[AT:[a-z0-9_]+]]: tensor<?xi64>
//       CHECK: scf.for %[[H:[a-z0-9_]+]] = {{.*}} iter_args(%[[O:[a-z0-9_]+]] = %{{.+}}, %[[S:[a-z0-9_]+]] = %{{.+}})
//       CHECK:   tensor.extract_slice %[[S]][0, %[[H]], 0, 0] [%{{.+}}, 1, 8, 8]
//       CHECK:   gdn.recurrence {{.*}} slots(%[[AT]] : tensor<?xi64>)
module attributes {transform.with_named_sequence} {
  func.func @pool_heads(%at: tensor<?xi64>, %q: tensor<?x3x1x8xf32>, %o: tensor<?x3x2x8xf32>, %s: tensor<?x2x8x8xf32>)
      -> (tensor<?x3x2x8xf32>, tensor<?x2x8x8xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %o : tensor<?x3x1x8xf32>, tensor<?x3x1x8xf32>, tensor<?x3x2x8xf32>)
        slots(%at : tensor<?xi64>) outs(%o, %s : tensor<?x3x2x8xf32>, tensor<?x2x8x8xf32>)
        -> tensor<?x3x2x8xf32>, tensor<?x2x8x8xf32>
    return %0#0, %0#1 : tensor<?x3x2x8xf32>, tensor<?x2x8x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @pool_pairs(%q: tensor<4x8x1x8xf32>, %at: tensor<4xi32>, %s: tensor<9x1x8x8xf32>) {
    // expected-error @below {{cannot be tiled by several sequences while it has 'slots': the tile size must be 1 or all}}
    // expected-error @below {{failed to generate tiling loops}}
    // expected-error @below {{faild to tile operation}}
    %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<4x8x1x8xf32>, tensor<4x8x1x8xf32>, tensor<4x8x1x8xf32>)
        slots(%at : tensor<4xi32>) outs(%q, %s : tensor<4x8x1x8xf32>, tensor<9x1x8x8xf32>) -> tensor<4x8x1x8xf32>, tensor<9x1x8x8xf32>
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [2, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The checkpoints of one sequence start at its first token / every.
// CHECK-DAG: #[[$OF:.+]] = affine_map<(d0) -> (d0 floordiv 4)>
// CHECK-LABEL: func @checkpoints
//  CHECK-SAME:   %[[CU:[a-z0-9_]+]]: tensor<?xi32>, %[[I:[a-z0-9_]+]]: tensor<?x2x8x8xf32>
//       CHECK: scf.forall (%[[N:[a-z0-9_]+]], %[[H:[a-z0-9_]+]]) in (%{{.+}}, 2) shared_outs(%{{.+}} = %{{.+}}, %[[C:[a-z0-9_]+]] = %{{.+}})
//       CHECK:   %[[START:[a-z0-9_]+]] = arith.index_cast
//   CHECK-DAG:   %[[FIRST:[a-z0-9_]+]] = affine.apply #[[$OF]](%[[START]])
//   CHECK-DAG:   tensor.extract_slice %[[I]][%[[N]], %[[H]], 0, 0] [1, 1, 8, 8]
//   CHECK-DAG:   %[[CT:[a-z0-9_]+]] = tensor.extract_slice %[[C]][0, %[[FIRST]], %[[H]], 0, 0] [1, %[[COUNT:[a-z0-9_]+]], 1, 8, 8]
//       CHECK:   %[[R:[a-z0-9_]+]]:2 = gdn.recurrence {{.*}} initial({{.*}} checkpoints(%[[CT]] : tensor<1x?x1x8x8xf32>) {every = 4 : i64}
//       CHECK:   tensor.parallel_insert_slice %[[R]]#1 into %[[C]][0, %[[FIRST]], %[[H]], 0, 0] [1, %[[COUNT]], 1, 8, 8]
module attributes {transform.with_named_sequence} {
  func.func @checkpoints(%cu: tensor<?xi32>, %i: tensor<?x2x8x8xf32>, %q: tensor<1x?x1x8xf32>, %o: tensor<1x?x2x8xf32>, %c: tensor<1x?x2x8x8xf32>)
      -> (tensor<1x?x2x8xf32>, tensor<1x?x2x8x8xf32>) {
    %0:2 = gdn.recurrence ins(%q, %q, %o : tensor<1x?x1x8xf32>, tensor<1x?x1x8xf32>, tensor<1x?x2x8xf32>)
        offsets(%cu : tensor<?xi32>) initial(%i : tensor<?x2x8x8xf32>) outs(%o : tensor<1x?x2x8xf32>)
        checkpoints(%c : tensor<1x?x2x8x8xf32>) {every = 4 : i64}
        -> tensor<1x?x2x8xf32>, tensor<1x?x2x8x8xf32>
    return %0#0, %0#1 : tensor<1x?x2x8xf32>, tensor<1x?x2x8x8xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_forall %0 tile_sizes [1, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

module attributes {transform.with_named_sequence} {
  func.func @checkpoints_in_time(%q: tensor<1x8x1x8xf32>, %s: tensor<1x1x8x8xf32>, %c: tensor<1x2x1x8x8xf32>) {
    // expected-error @below {{cannot be tiled along time while it has 'checkpoints'}}
    // expected-error @below {{failed to generate tiling loops}}
    // expected-error @below {{faild to tile operation}}
    %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>, tensor<1x8x1x8xf32>)
        outs(%q, %s : tensor<1x8x1x8xf32>, tensor<1x1x8x8xf32>) checkpoints(%c : tensor<1x2x1x8x8xf32>) {every = 4 : i64}
        -> tensor<1x8x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x2x1x8x8xf32>
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["gdn.recurrence"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
