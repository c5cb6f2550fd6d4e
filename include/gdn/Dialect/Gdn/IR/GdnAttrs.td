//===- GdnAttrs.td - gdn attributes ------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNATTRS_TD
#define GDN_DIALECT_GDN_IR_GDNATTRS_TD

include "gdn/Dialect/Gdn/IR/GdnBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Gdn_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::gdn";
  let genSpecializedAttr = 0;
}

def Gdn_StateLayout : Gdn_Enum<"StateLayout", "order of the last two state dimensions", [
  I32EnumAttrCase<"VFirst", 0, "v_first">,
  I32EnumAttrCase<"KFirst", 1, "k_first">
]>;

def Gdn_StateLayoutAttr : EnumAttr<Gdn_Dialect, Gdn_StateLayout, "state_layout"> {
  let summary = "`v_first`: state [N, Hv, V, K]; `k_first`: state [N, Hv, K, V]";
  let assemblyFormat = "`<` $value `>`";
}

def Gdn_Activation : Gdn_Enum<"Activation", "elementwise activation function", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"SiLU", 1, "silu">,
  I32EnumAttrCase<"Sigmoid", 2, "sigmoid">
]>;

def Gdn_ActivationAttr : EnumAttr<Gdn_Dialect, Gdn_Activation, "activation"> {
  let summary = "`none`: x; `silu`: x / (1 + exp(-x)); `sigmoid`: 1 / (1 + exp(-x))";
  let assemblyFormat = "`<` $value `>`";
}

def Gdn_Phases : Gdn_Enum<"Phases", "how a recurrence is cut into kernels", [
  I32EnumAttrCase<"Fused", 0, "fused">,
  I32EnumAttrCase<"Split", 1, "split">,
  I32EnumAttrCase<"Step", 2, "step">
]>;

def Gdn_ScheduleAttr : AttrDef<Gdn_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how one recurrence is executed";
  let description = [{
    The only tuning attribute of the compiler. `gdn-select-schedule` writes it
    where it is absent, every later pass only reads it.

    | field | meaning |
    |---|---|
    | `phases` | `fused`: chunkwise, one program (CPU); `split`: a chunk-parallel *prepare* kernel and a serial *scan* kernel (GPU); `step`: token by token, the state in registers (decode) |
    | `chunk` | tokens per chunk: a power of two, 16 to 64 |
    | `value_block` | rows of the state (value index) per work item, a multiple of 16 on the GPU |
    | `stages` | buffers per shared-memory tile of the scan: 1 (synchronous) or more |

    Example: `#gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>`.
  }];
  let parameters = (ins
    EnumParameter<Gdn_Phases>:$phases,
    "int64_t":$chunk,
    "int64_t":$valueBlock,
    DefaultValuedParameter<"int64_t", "1">:$stages);
  let assemblyFormat = [{
    `<` `phases` `=` $phases `,` `chunk` `=` $chunk `,` `value_block` `=`
    $valueBlock (`,` `stages` `=` $stages^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNATTRS_TD
