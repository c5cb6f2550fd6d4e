// RUN: gdn-compile %s --target=sm_90a -o %t
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))" %t/decode.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t/decode.ptx
// RUN: gdn-compile %s --target=sm_80 -o %t.80
// RUN: FileCheck %s --check-prefix=SM80 --input-file=%t.80/decode.json

// A step of any number of sequences: the launch for a few, which may overlap with the one in
// front and waits for it before it loads anything, and that for many. One of them has no blocks.

// CHECK: "launches": [{"block": 256, "grid": ["mul", ["sub", ["dim", 5, 0], {{.*}}], 8], "kernel": "decode_step", "overlaps": true, "parameters":
// CHECK-SAME: {"block": 32, "grid": ["mul", ["mul", ["dim", 5, 0], ["min", ["floordiv", ["dim", 5, 0], 129], 1]], 16], "kernel": "decode_step_wide", "overlaps": true, "parameters":
// PTX-LABEL: .entry decode_step(
// PTX-NOT: ld.global
// PTX: griddepcontrol.launch_dependents;
// PTX-NOT: ld.global
// PTX: griddepcontrol.wait;
// PTX: ld.global
// PTX-LABEL: .entry decode_step_wide(
// PTX-NOT: ld.global
// PTX: griddepcontrol.wait;
// SM80-NOT: overlaps
func.func @decode(%q: tensor<?x1x1x128xbf16> {gdn.name = "q"}, %k: tensor<?x1x1x128xbf16> {gdn.name = "k"}, %v: tensor<?x1x1x128xbf16> {gdn.name = "v"},
    %g: tensor<?x1x1xf32> {gdn.name = "gate"}, %o: tensor<?x1x1x128xbf16> {gdn.name = "o", bufferization.writable = true},
    %s: tensor<?x1x128x128xf32> {gdn.name = "state", bufferization.writable = true}) -> (tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>) {
  %y, %final = gdn.recurrence ins(%q, %k, %v : tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>) gate(%g : tensor<?x1x1xf32>)
      beta(%g : tensor<?x1x1xf32>) outs(%o, %s : tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>) -> tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>
  return %y, %final : tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>
}
