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

    On a GPU target `phases` is `step` when T is static and at most 8, else
    `split`; `chunk` is the largest of 64, 32, 16 whose tiles fit the target's
    shared memory, first with two stages, then with one; it is an error when
    none fits. On `cpu` it is `fused`.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "cpu, sm_80, sm_86, sm_89, sm_90a, sm_100 or sm_120">
  ];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
