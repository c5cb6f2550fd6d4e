// RUN: gdn-compile %s --to=linalg | FileCheck %s --check-prefix=LINALG
// RUN: gdn-compile --to=tile < %s | FileCheck %s --check-prefix=TILE
// RUN: gdn-compile %s --to=nvvm --target=sm_120 | FileCheck %s --check-prefix=NVVM
// RUN: gdn-compile %s --to=ptx --target=sm_89 | FileCheck %s --check-prefix=PTX
// The levels are entry points too: tile programs, perhaps edited by hand.
// RUN: gdn-compile %s --to=tile --target=sm_89 | gdn-compile - --to=ptx --target=sm_89 | FileCheck %s --check-prefix=PTX
// RUN: rm -rf %t && gdn-compile %s --to=tile -o %t && FileCheck %s --check-prefix=TILE < %t/normalize.mlir

// LINALG: linalg.
// TILE: func.func @normalize_l2norm{{.*}}gdn_tile.kernel
// TILE: gdn_tile.launch @normalize_l2norm
// NVVM: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_120">]
// NVVM: llvm.func @normalize_l2norm
// PTX: .target sm_89
// PTX: .entry normalize_l2norm
// PTX: rsqrt.approx.ftz.f32
func.func @normalize(%x: tensor<1x64x2x64xf32>, %y: tensor<1x64x2x64xf32> {bufferization.writable = true}) -> tensor<1x64x2x64xf32> {
  %r = gdn.l2norm ins(%x : tensor<1x64x2x64xf32>) outs(%y : tensor<1x64x2x64xf32>) {eps = 1.0e-06} -> tensor<1x64x2x64xf32>
  return %r : tensor<1x64x2x64xf32>
}

// Nothing to launch is no error.
// RUN: echo "func.func @empty(%%x: memref<0x8xf32>) { return }" | gdn-compile - --target=sm_120 | FileCheck %s --check-prefix=EMPTY
// EMPTY: .target sm_120
// EMPTY-NOT: .entry
