//===- RegisterPipelines.cpp - registration of the pass pipelines ---------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void mlir::gdn::registerPipelines() {
  PassPipelineRegistration<GdnToCpuOptions>(
      "gdn-to-cpu", "gdn ops to the LLVM dialect, to be run on the host",
      buildGdnToCpuPipeline);
  PassPipelineRegistration<>(
      "gdn-lower-to-llvm",
      "linalg, vector, scf, arith and math on memrefs to the LLVM dialect",
      buildLowerToLLVMPipeline);
  PassPipelineRegistration<GpuPipelineOptions>(
      "gdn-to-tile", "gdn ops to synchronous tile programs and their launches",
      buildGdnToTilePipeline);
  PassPipelineRegistration<>("gdn-to-linalg",
                             "gdn ops to chunkwise linalg on tensors",
                             buildGdnToLinalgPipeline);
  PassPipelineRegistration<GpuPipelineOptions>(
      "gdn-tile-to-nvvm", "tile programs to kernels in the NVVM dialect",
      buildGdnTileToNVVMPipeline);
  PassPipelineRegistration<GpuPipelineOptions>(
      "gdn-to-ptx", "gdn ops to PTX in a gpu.binary and its launches",
      buildGdnToPtxPipeline);
}
