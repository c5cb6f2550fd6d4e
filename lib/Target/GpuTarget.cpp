//===- GpuTarget.cpp - table of GPU targets -------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/GpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;

// CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability": maximum shared memory per thread block. Multiprocessors are
// those of A100, A10, L4, H100 and H200, B200, RTX 5090.
static constexpr GpuTarget kTargets[] = {
    {"sm_80", 80, 163 * 1024, 108},   {"sm_86", 86, 99 * 1024, 72},
    {"sm_89", 89, 99 * 1024, 58},     {"sm_90a", 90, 227 * 1024, 132},
    {"sm_100", 100, 227 * 1024, 148}, {"sm_120", 120, 99 * 1024, 170},
};

ArrayRef<GpuTarget> mlir::gdn::getGpuTargets() { return kTargets; }

std::optional<GpuTarget> mlir::gdn::lookUpGpuTarget(StringRef name) {
  const GpuTarget *target = llvm::find_if(
      kTargets, [&](const GpuTarget &entry) { return entry.name == name; });
  if (target == std::end(kTargets))
    return std::nullopt;
  return *target;
}

std::string mlir::gdn::listGpuTargets() {
  return llvm::join(
      llvm::map_range(
          kTargets, [](const GpuTarget &target) { return target.name.str(); }),
      ", ");
}
