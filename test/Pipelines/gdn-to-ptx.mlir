// RUN: gdn-opt %s --pass-pipeline="builtin.module(gdn-to-ptx{target=sm_80})" | FileCheck %s --check-prefix=BINARY
// RUN: gdn-compile %s --target=sm_80 | FileCheck %s --check-prefix=SM80 --implicit-check-not=__nv_ --implicit-check-not=.local
// RUN: gdn-compile %s --target=sm_80 | sed -n '/.entry forward_scan/,/^}/p' | grep -c mma.sync | FileCheck %s --check-prefix=COUNT
// RUN: gdn-compile %s --target=sm_90a | FileCheck %s --check-prefix=SM90 --implicit-check-not=__nv_ --implicit-check-not=.local --implicit-check-not=mma.sync
// RUN: gdn-compile %s --target=sm_90a | sed -n '/.entry forward_scan/,/^}/p' > %t
// RUN: grep -c "cp.async.bulk.tensor.*shared::cluster.global.tile" %t | FileCheck %s --check-prefix=TILES
// RUN: grep -c "cp.async.bulk.shared::cluster.global" %t | FileCheck %s --check-prefix=ROWS
// RUN: grep -c "cp.async.bulk.tensor.*global.shared::cta.tile" %t | FileCheck %s --check-prefix=STORES
// RUN: grep -c "cp.async.c[ag]" %t | FileCheck %s --check-prefix=PARTIAL
// RUN: not grep noinc %t

// A chunk of k, v and q by one instruction each, T in two parts and P by one for each of four panels, and the row of
// gates; o by one.
// TILES: {{^}}3{{$}}
// ROWS: {{^}}13{{$}}
// STORES: {{^}}1{{$}}
// What may end inside of a tile, k, v and q, has a loop of copies by threads too.
// PARTIAL: {{^}}3{{$}}

// BINARY: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_80"
// BINARY-SAME: .entry forward_scan
// BINARY: gpu.launch_func @kernels::@forward_scan

// SM80-DAG: .extern .shared .align 1024 .b8 smem[];
// SM80-DAG: .entry forward_prepare
// SM80-DAG: cp.async.cg.shared.global
// SM80-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// SM80-DAG: movmatrix.sync.aligned.m8n8.trans.b16

// S K^T 64x64x128, D N^T, S Q^T, U P^T and U K 64x128x64 in m16n8k16, for one of four warps: 64 + 32 + 64 + 32 + 64. In the
// branch of second parts D N^T again, and those of N, D, U for P and for K: 3 * 32 + 32 + 64.
// COUNT: {{^}}448{{$}}

// SM90-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// SM90-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// SM90-DAG: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
func.func @forward(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>,
                   %g: tensor<1x?x32xf32>, %b: tensor<1x?x32xf32>, %o: tensor<1x?x32x128xbf16> {bufferization.writable = true},
                   %s: tensor<1x32x128x128xf32> {bufferization.writable = true}) -> (tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) {
  %y, %f = gdn.recurrence ins(%q, %k, %v : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>) gate(%g : tensor<1x?x32xf32>) beta(%b : tensor<1x?x32xf32>) outs(%o, %s : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>} -> tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
  return %y, %f : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
}
