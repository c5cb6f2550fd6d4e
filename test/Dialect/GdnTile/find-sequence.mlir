// RUN: gdn-opt %s -split-input-file -verify-diagnostics | gdn-opt -split-input-file -allow-unregistered-dialect | FileCheck %s

// CHECK-LABEL: func @find
// CHECK: gdn_tile.find_sequence %arg0 in %arg1 count %arg2 chunk 64 : memref<?xi32>
func.func @find(%slot: index, %offsets: memref<?xi32>, %count: index) -> index {
  %n = gdn_tile.find_sequence %slot in %offsets count %count chunk 64 : memref<?xi32>
  return %n : index
}

// -----

func.func @type(%slot: index, %offsets: memref<?xi16>) {
  // expected-error@+1 {{'gdn_tile.find_sequence' op expects offsets of i32 or i64 in one dimension of global memory, but has 'memref<?xi16>'}}
  %n = gdn_tile.find_sequence %slot in %offsets count %slot chunk 64 : memref<?xi16>
  return
}

// -----

func.func @rank(%slot: index, %offsets: memref<2x4xi32>) {
  // expected-error@+1 {{but has 'memref<2x4xi32>'}}
  %n = gdn_tile.find_sequence %slot in %offsets count %slot chunk 64 : memref<2x4xi32>
  return
}

// -----

func.func @space(%slot: index, %offsets: memref<4xi32, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{of global memory}}
  %n = gdn_tile.find_sequence %slot in %offsets count %slot chunk 64 : memref<4xi32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @chunk(%slot: index, %offsets: memref<4xi32>) {
  // expected-error@+1 {{'gdn_tile.find_sequence' op expects chunks of a power of two of tokens, but they have 48}}
  %n = gdn_tile.find_sequence %slot in %offsets count %slot chunk 48 : memref<4xi32>
  return
}
