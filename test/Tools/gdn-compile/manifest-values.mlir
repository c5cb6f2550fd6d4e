// RUN: rm -rf %t && gdn-compile %s --target=sm_80 --to=ptx -o %t
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))" %t/host.json | FileCheck %s

// A size of more than six operators that is needed in several places is named once; a smaller one stands in each.

// CHECK: "launches": [{"block": 32, "grid": ["value", 0], "kernel": "kernel",
// CHECK-SAME: "scalar": ["ceildiv", ["add", ["dim", 0, 0], 1], 16]}
// CHECK-SAME: {"block": 32, "grid": ["mul", ["value", 0], 2], "kernel": "kernel",
// CHECK-SAME: "values": {{\[\[}}"add", ["min", ["sub", ["mul", ["max", ["ceildiv", ["add", ["dim", 0, 0], 1], 16], 3], 5], ["ceildiv", ["add", ["dim", 0, 0], 1], 16]], ["dim", 0, 0]], ["max", ["ceildiv", ["add", ["dim", 0, 0], 1], 16], 3]]], "version": 1}
func.func @kernel(%x: memref<?xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%n] : memref<?xf32>
  return
}
func.func @host(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  %size = memref.dim %x, %c0 : memref<?xf32>
  %more = arith.addi %size, %c1 : index
  %pieces = arith.ceildivui %more, %c16 : index
  %some = arith.maxui %pieces, %c3 : index
  %many = arith.muli %some, %c5 : index
  %less = arith.subi %many, %pieces : index
  %bounded = arith.minui %less, %size : index
  %grid = arith.addi %bounded, %some : index
  %twice = arith.muli %grid, %c2 : index
  gdn_tile.launch @kernel grid(%grid) (%x, %pieces : memref<?xf32>, index)
  gdn_tile.launch @kernel grid(%twice) (%x, %c0 : memref<?xf32>, index)
  return
}
