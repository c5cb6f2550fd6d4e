//===- Pipelines.h - pass pipelines -----------------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PIPELINES_PIPELINES_H
#define GDN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
namespace gdn {

/// How `gdn-to-cpu` computes the gdn ops.
enum class CpuPath { Loops, Linalg, Tile, PipelinedTile, RotatedTile };

struct GdnToCpuOptions : PassPipelineOptions<GdnToCpuOptions> {
  Option<CpuPath> path{
      *this, "path", llvm::cl::desc("how the gdn ops are computed"),
      llvm::cl::init(CpuPath::Linalg),
      llvm::cl::values(
          clEnumValN(CpuPath::Loops, "loops",
                     "token by token with scalar loops: the reference"),
          clEnumValN(CpuPath::Linalg, "linalg", "by chunks, vectorized"),
          clEnumValN(CpuPath::Tile, "tile",
                     "by the tile programs of a GPU, block by block"),
          clEnumValN(CpuPath::PipelinedTile, "pipelined-tile",
                     "the same with barriers and copies that run ahead"),
          clEnumValN(CpuPath::RotatedTile, "rotated-tile",
                     "as tile, with products that span two iterations"))};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("the GPU of the tile programs, as gdn-select-schedule"),
      llvm::cl::init("sm_90a")};
};

struct GpuPipelineOptions : PassPipelineOptions<GpuPipelineOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("the GPU, as gdn-select-schedule"),
                             llvm::cl::init("sm_90a")};
  Option<std::string> precision{
      *this, "precision",
      llvm::cl::desc("default or high, as gdn-select-schedule"),
      llvm::cl::init("default")};
};

/// Tensors or memrefs with gdn ops to synchronous tile programs.
void buildGdnToTilePipeline(OpPassManager &pm,
                            const GpuPipelineOptions &options);

/// Synchronous tile programs to asynchronous ones with barriers; where the
/// target has warpgroup products, those too, and with `roles` warps for copies
/// alone, which have no form on the CPU.
void buildOverlapPipeline(OpPassManager &pm, const GpuPipelineOptions &options,
                          bool roles = true);

/// Tile programs to kernels in the LLVM and NVVM dialects, and their launches.
void buildGdnTileToNVVMPipeline(OpPassManager &pm,
                                const GpuPipelineOptions &options);

/// Tensors or memrefs with gdn ops to a gpu.binary that holds PTX, and
/// launches.
void buildGdnToPtxPipeline(OpPassManager &pm,
                           const GpuPipelineOptions &options);

/// Tensors or memrefs with gdn ops to the LLVM dialect.
void buildGdnToCpuPipeline(OpPassManager &pm, const GdnToCpuOptions &options);

/// Tensors with gdn ops to chunkwise linalg on tensors.
void buildGdnToLinalgPipeline(OpPassManager &pm);

/// One-shot bufferization across functions, with identity layouts at their
/// boundaries. Nothing is released: a function may return its arguments.
/// `loopsMayAllocate`: a loop may hand on another buffer than it was given.
void buildBufferizePipeline(OpPassManager &pm, bool loopsMayAllocate = false);

/// What is left on memrefs (linalg, vector, scf, arith, math) to the LLVM
/// dialect.
void buildLowerToLLVMPipeline(OpPassManager &pm);

void registerPipelines();

} // namespace gdn
} // namespace mlir

#endif // GDN_PIPELINES_PIPELINES_H
