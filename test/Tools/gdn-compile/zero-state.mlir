// RUN: rm -rf %t && gdn-compile %s --target=sm_80 --to=ptx -o %t
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))" %t/forward.json | FileCheck %s

// A state that starts at zero in the function, as a filled or a constant
// tensor, is a buffer that is returned; nothing fills it, the scan starts at 0.

// CHECK: "buffers": [{"dtype": "f32", "shape": [1, 2, 16, 16]}
// CHECK-NOT: "kernel": "forward_fill"
// CHECK-SAME: "kernel": "forward_prepare"
// CHECK-SAME: "kernel": "forward_scan"
// CHECK-SAME: "results": [{"argument": 1}, {"buffer": 0}]
func.func @forward(%q: tensor<1x?x2x16xbf16> {gdn.name = "q"}, %o: tensor<1x?x2x16xbf16> {gdn.name = "o", bufferization.writable = true})
   -> (tensor<1x?x2x16xbf16>, tensor<1x2x16x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1x2x16x16xf32>
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>)
      outs(%o, %zero : tensor<1x?x2x16xbf16>, tensor<1x2x16x16xf32>) -> tensor<1x?x2x16xbf16>, tensor<1x2x16x16xf32>
  return %0#0, %0#1 : tensor<1x?x2x16xbf16>, tensor<1x2x16x16xf32>
}
