//===- Manifest.h - how to launch a compiled function -----------*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TARGET_MANIFEST_H
#define GDN_TARGET_MANIFEST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace mlir::gdn {

/// The manifest of a host function behind `gdn-tile-to-nvvm`: what a launcher
/// needs beside the PTX.
///
///     {"version": 1, "target": "sm_90a", "function": "forward", "ptx":
///     "forward.ptx",
///      "arguments": [{"name": "q", "dtype": "bf16", "shape": [null, 16]},
///      ...], "buffers":   [{"dtype": "f32", "shape": [E, ...]}, ...],
///      "results":   [{"argument": 6}, {"buffer": 0}],
///      "checks":    [[E, E], ...],
///      "launches":  [{"kernel": "forward_scan", "grid": E, "block": 128,
///      "shared": 65536,
///                     "parameters": [{"argument": 0}, {"buffer": 1},
///                     {"scalar": E, "dtype": "i64"}]}]}
///
/// E is an integer, ["dim", argument, dimension], [op, E, E] with op one of
/// add, sub, mul, floordiv, ceildiv, min, max, or ["value", i]: the expression
/// number i of "values", a list of those that would stand in several places,
/// each of which uses earlier ones only. Arguments keep null for dynamic
/// sizes. Buffers are allocated by the launcher; launches run in order, a grid
/// of 0 not at all. The two sides of each of the checks must be equal. With
/// "beside": true a launch starts as soon as the one in front of it allows
/// (programmatic stream serialization), if that has blocks; else in order. With
/// "overlaps": true it does so in any case: it waits for what runs in front.
///
/// Fails with an error at the op that this cannot express.
FailureOr<llvm::json::Object> buildManifest(func::FuncOp function,
                                            StringRef target);

} // namespace mlir::gdn

#endif // GDN_TARGET_MANIFEST_H
