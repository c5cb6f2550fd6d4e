// RUN: gdn-opt %s -split-input-file -verify-diagnostics

#shared = #gpu.address_space<workgroup>
func.func @shape(%i: index) {
  %buffers = memref.alloc() : memref<2x64x32xf32, #shared>
  // expected-error @below {{cannot take a tile 'memref<32x64xf32, #gpu.address_space<workgroup>>' from 'memref<2x64x32xf32, #gpu.address_space<workgroup>>'}}
  %tile = gdn_tile.stage %buffers[%i] : memref<2x64x32xf32, #shared> to memref<32x64xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @space(%buffers: memref<2x64x32xf32>, %i: index) {
  // expected-error @below {{cannot take a tile}}
  %tile = gdn_tile.stage %buffers[%i] : memref<2x64x32xf32> to memref<64x32xf32, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
func.func @number() {
  %c2 = arith.constant 2 : index
  %buffers = memref.alloc() : memref<2x64xf32, #shared>
  // expected-error @below {{takes stage 2 of 2}}
  %tile = gdn_tile.stage %buffers[%c2] : memref<2x64xf32, #shared> to memref<64xf32, #shared>
  return
}
