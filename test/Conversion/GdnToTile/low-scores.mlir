// RUN: gdn-opt %s --gdn-to-tile=target=sm_90a | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: gdn-opt %s --gdn-to-tile=target=sm_80 | FileCheck %s --check-prefixes=CHECK,ONE

// The second part of P, where warpgroups have registers for it, of tiles of q and k themselves; a gate per channel has copies
// of them with decays.

// CHECK-LABEL: func @head_scan
// BOTH: gdn_tile.refine {{.*}} scores(%{{.*}}) factors(%{{.*}}) count 256 scale 64 {beta = 192 : i64, factor = {{.*}} : f64, grown = 0 : i64}
// ONE: gdn_tile.refine {{.*}}) factors(%{{.*}}) count 256 scale 64 :
// CHECK-LABEL: func @head(
func.func @head(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x2x64xbf16>,
    %g: tensor<1x256x2xf32>, %b: tensor<1x256x2xf32>, %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      gate(%g : tensor<1x256x2xf32>) beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// Without gates beta is the only row.
// CHECK-LABEL: func @none_scan
// BOTH: gdn_tile.refine {{.*}} scores(%{{.*}}) factors(%{{.*}}) count 64 scale 0 {beta = 0 : i64, factor = {{[^,]*}} : f64} :
// ONE: gdn_tile.refine {{.*}}) factors(%{{.*}}) count 64 scale 0 :
// CHECK-LABEL: func @none(
func.func @none(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x2x64xbf16>,
    %b: tensor<1x256x2xf32>, %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// CHECK-LABEL: func @channel_scan
// CHECK: gdn_tile.refine {{.*}}) factors(%{{.*}}) count 64 scale 0 :
// CHECK-LABEL: func @channel(
func.func @channel(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x2x64xbf16>,
    %g: tensor<1x256x2x64xf32>, %b: tensor<1x256x2xf32>, %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      gate(%g : tensor<1x256x2x64xf32>) beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x64xf32>
}

// 32 key channels are none for products of warpgroups.
// CHECK-LABEL: func @narrow_scan
// CHECK: gdn_tile.refine {{.*}}) factors(%{{.*}}) count 64 scale 0 :
// CHECK-LABEL: func @narrow(
func.func @narrow(%q: tensor<1x256x2x32xbf16>, %k: tensor<1x256x2x32xbf16>, %v: tensor<1x256x2x64xbf16>,
    %b: tensor<1x256x2xf32>, %o: tensor<1x256x2x64xbf16>, %s: tensor<1x2x64x32xf32>)
    -> (tensor<1x256x2x64xbf16>, tensor<1x2x64x32xf32>) {
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x256x2x32xbf16>, tensor<1x256x2x32xbf16>, tensor<1x256x2x64xbf16>)
      beta(%b : tensor<1x256x2xf32>) outs(%o, %s : tensor<1x256x2x64xbf16>, tensor<1x2x64x32xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
      -> tensor<1x256x2x64xbf16>, tensor<1x2x64x32xf32>
  return %0#0, %0#1 : tensor<1x256x2x64xbf16>, tensor<1x2x64x32xf32>
}
