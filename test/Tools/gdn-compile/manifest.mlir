// RUN: rm -rf %t && gdn-compile %s --target=sm_80 --to=ptx -o %t/new/folder
// RUN: FileCheck %s --check-prefix=PTX < %t/new/folder/varlen.ptx
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))" %t/new/folder/varlen.json | FileCheck %s
// RUN: ls %t/new/folder | FileCheck %s --check-prefix=FILES

// Nothing but the two files.
// FILES: varlen.json
// FILES-NEXT: varlen.ptx
// FILES-NOT: {{.}}

// PTX: .target sm_80
// PTX: .entry varlen_prepare
// PTX: .entry varlen_scan
// PTX-NOT: __nv_

// CHECK: "arguments": [{"dtype": "bf16", "name": "q", "shape": [1, null, 4, 64]},
// CHECK-SAME: {"dtype": "bf16", "name": "arg1", "shape": [1, null, 4, 64]},
// CHECK-SAME: {"dtype": "i32", "name": "arg5", "shape": [null]},
// CHECK-SAME: {"dtype": "f32", "name": "arg6", "shape": [null, 8, 96, 64]}]
// The result of tensor.empty and the workspaces: chunks are at most T / 64 + N.
// CHECK-SAME: "buffers": [{"dtype": "bf16", "shape": [1, ["dim", 0, 1], 8, 96]},
// CHECK-SAME: {"dtype": "f32", "shape": {{\[\[}}"add", ["floordiv", ["dim", 0, 1], 64], ["dim", 6, 0]], 8, 264]}]
// CHECK-SAME: "checks": {{\[\[}}["dim", 1, 1], ["dim", 0, 1]],
// CHECK-SAME: {{\[}}["dim", 6, 0], ["sub", ["dim", 5, 0], 1]]]
// CHECK-SAME: "function": "varlen"
// CHECK-SAME: "launches": [{"block": 128, "grid": ["mul", {{.*}}, 4], "kernel": "varlen_prepare", "parameters": [{"argument": 5}, {"dtype": "i64", "scalar": ["dim", 6, 0]}, {"argument": 0}, {"argument": 1},
// CHECK-SAME: "kernel": "varlen_scan"
// CHECK-SAME: "ptx": "varlen.ptx", "results": [{"buffer": 0}, {"argument": 6}], "target": "sm_80", "version": 1}
func.func @varlen(%q: tensor<1x?x4x64xbf16> {gdn.name = "q"}, %k: tensor<1x?x4x64xbf16>, %v: tensor<1x?x8x96xbf16>,
                  %g: tensor<1x?x8xf32>, %b: tensor<1x?x8xf32>, %cu: tensor<?xi32>,
                  %s: tensor<?x8x96x64xf32> {bufferization.writable = true}) -> (tensor<1x?x8x96xbf16>, tensor<?x8x96x64xf32>) {
  %c1 = arith.constant 1 : index
  %t = tensor.dim %q, %c1 : tensor<1x?x4x64xbf16>
  %o = tensor.empty(%t) : tensor<1x?x8x96xbf16>
  %y, %f = gdn.recurrence ins(%q, %k, %v : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x8x96xbf16>) gate(%g : tensor<1x?x8xf32>) beta(%b : tensor<1x?x8xf32>) offsets(%cu : tensor<?xi32>) outs(%o, %s : tensor<1x?x8x96xbf16>, tensor<?x8x96x64xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>} -> tensor<1x?x8x96xbf16>, tensor<?x8x96x64xf32>
  return %y, %f : tensor<1x?x8x96xbf16>, tensor<?x8x96x64xf32>
}
