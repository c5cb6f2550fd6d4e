//===- Passes.td - gdn passes ------------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GdnSelectSchedulePass : InterfacePass<"gdn-select-schedule", "mlir::FunctionOpInterface"> {
  let summary = "write #gdn.schedule on each recurrence that has none";
  let description = [{
    Before: `gdn.recurrence` with or without a schedule. After: each carries one.
    The only place that decides; every later pass reads the attribute.

    | target | phases | chunk | value_block | stages |
    |---|---|---|---|---|
    | `cpu` | `fused` | 64, less for a shorter static T | V, at most 128 | 1 |
    | GPU, static T <= 8 without offsets | `step` | 16 (not used) | 8 | 1 |
    | GPU, else | `split` | the largest of 64 (32 where K > 128), 32, 16 that fits | V rounded up to 16, at most 64 | 2, or 1 where no chunk fits with 2 |

    A chunk fits when the tiles of the prepare and of the scan kernel fit the
    target's shared memory per block. It is an error when none does.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "cpu, sm_80, sm_86, sm_89, sm_90a, sm_100 or sm_120">
  ];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
