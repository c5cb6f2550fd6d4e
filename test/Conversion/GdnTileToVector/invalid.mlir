// RUN: gdn-opt %s -convert-gdn-tile-to-vector -split-input-file -verify-diagnostics

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

func.func @transpose(%x: memref<16x16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %0 = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x16xf32>, vector<16x16xf32>
  // expected-error @below {{'vector.transpose' op is not allowed on fragments}}
  %1 = vector.transpose %0, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
  gdn_tile.store %1, %x[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<16x16xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

func.func @table(%x: memref<16x2xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'arith.constant' op is not allowed on fragments unless all elements are equal}}
  %0 = arith.constant dense<[[1.0, 2.0]]> : vector<1x2xf32>
  gdn_tile.store %0, %x[%c0, %c0] dims [1] : vector<1x2xf32>, memref<16x2xf32>
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

func.func @parallel(%n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.parallel' op is not allowed in a tile program}}
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
  }
  return
}

// -----

#kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>

// expected-error @below {{a tile program has a body of one block}}
func.func @blocks() attributes {gdn_tile.kernel = #kernel} {
  cf.br ^end
^end:
  return
}
