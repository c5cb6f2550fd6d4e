//===- GpuTarget.h - table of GPU targets -----------------------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TARGET_GPUTARGET_H
#define GDN_TARGET_GPUTARGET_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir::gdn {

struct GpuTarget {
  /// The name users give, which is also LLVM's chip name.
  llvm::StringLiteral name;
  /// 10 * major + minor.
  unsigned computeCapability;
  /// Bytes of shared memory that one block may have.
  int64_t sharedBytes;
  /// Multiprocessors of its usual devices.
  int64_t multiprocessors;

  /// Has warpgroup products (wgmma): architecture-specific features of sm_90a.
  bool hasWarpgroupMma() const { return name == "sm_90a"; }
  /// Has a copy engine (TMA) that takes tensor maps.
  bool hasTensorMaps() const { return computeCapability >= 90; }
  /// Starts kernels before those in front have ended (griddepcontrol).
  bool hasDependentLaunches() const { return computeCapability >= 90; }
  /// Has the instruction stmatrix.
  bool hasStMatrix() const { return computeCapability >= 90; }
};

/// All targets, ascending.
ArrayRef<GpuTarget> getGpuTargets();

std::optional<GpuTarget> lookUpGpuTarget(StringRef name);

/// "sm_80, sm_86, ...", for messages.
std::string listGpuTargets();

} // namespace mlir::gdn

#endif // GDN_TARGET_GPUTARGET_H
