// RUN: gdn-opt %s --pass-pipeline="builtin.module(gdn-to-ptx{target=sm_80})" | FileCheck %s --check-prefix=BINARY
// RUN: gdn-compile %s --target=sm_80 | FileCheck %s --check-prefix=SM80 --implicit-check-not=__nv_ --implicit-check-not=.local
// RUN: gdn-compile %s --target=sm_80 | sed -n '/.entry forward_scan/,/^}/p' | grep -c mma.sync | FileCheck %s --check-prefix=COUNT
// RUN: gdn-compile %s --target=sm_90a | FileCheck %s --check-prefix=SM90 --implicit-check-not=__nv_ --implicit-check-not=.local --implicit-check-not=mma.sync

// BINARY: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_80"
// BINARY-SAME: .entry forward_scan
// BINARY: gpu.launch_func @kernels::@forward_scan

// SM80-DAG: .extern .shared .align 1024 .b8 smem[];
// SM80-DAG: .entry forward_prepare
// SM80-DAG: cp.async.cg.shared.global
// SM80-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// SM80-DAG: movmatrix.sync.aligned.m8n8.trans.b16

// S K^T 64x64x128, W T^T in two parts, S Q^T, U P^T and U K 64x128x64 in m16n8k16, for one of four warps:
// 64 + 2 * 32 + 64 + 32 + 64.
// COUNT: {{^}}288{{$}}

// SM90-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// SM90-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// SM90-DAG: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
func.func @forward(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>,
                   %g: tensor<1x?x32xf32>, %b: tensor<1x?x32xf32>, %o: tensor<1x?x32x128xbf16> {bufferization.writable = true},
                   %s: tensor<1x32x128x128xf32> {bufferization.writable = true}) -> (tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) {
  %y, %f = gdn.recurrence ins(%q, %k, %v : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>) gate(%g : tensor<1x?x32xf32>) beta(%b : tensor<1x?x32xf32>) outs(%o, %s : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>} -> tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
  return %y, %f : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
}
