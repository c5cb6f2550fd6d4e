// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt %s -cse | FileCheck %s --check-prefix=CSE
// RUN: gdn-opt %s -gdn-tile-batch-copies -gdn-tile-insert-barriers | FileCheck %s --check-prefix=BARRIERS
// A second run finds nothing to do.
// RUN: gdn-opt %s -gdn-tile-batch-copies -gdn-tile-insert-barriers -gdn-tile-insert-barriers | FileCheck %s --check-prefix=BARRIERS

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: func @heads
// BARRIERS-LABEL: func @heads
func.func @heads(%x: memref<?x4x64xf32>, %y: memref<?x4x16x16xbf16>, %count: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %id = gdn_tile.block_id : index
  %first = memref.alloc() : memref<64x64xf32, #shared>
  %betas = memref.alloc() : memref<2x64xf32, #shared>
  // BARRIERS: gdn_tile.copy_in {{.*}} to %[[FIRST:.*]] : memref<?x4x64xf32> to memref<64x64xf32,
  gdn_tile.copy_in %x[%id, %c0, %c0] dims [0, 2] to %first : memref<?x4x64xf32> to memref<64x64xf32, #shared>
  %v = gdn_tile.load %first[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<64x64xf32>
  // What the tile was read for is done before another one may take its bytes.
  // CHECK: gdn_tile.free %{{.*}} : memref<64x64xf32, #gpu.address_space<workgroup>>
  // BARRIERS: gdn_tile.load %[[FIRST]]
  // BARRIERS-NEXT: gdn_tile.barrier
  // BARRIERS-NEXT: gdn_tile.free %[[FIRST]]
  gdn_tile.free %first : memref<64x64xf32, #shared>
  %products = memref.alloc() : memref<64x72xf32, #shared>
  gdn_tile.store %v, %products[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x72xf32, #shared>
  // One barrier of the block in front; inside those of a warp, also where a
  // tile's life ends and at the end of an item. What the warps only read needs none.
  // CHECK: gdn_tile.each_warp (%[[ITEM:.*]]) in (%{{.*}}) {
  // BARRIERS: gdn_tile.barrier
  // BARRIERS-NEXT: gdn_tile.each_warp
  gdn_tile.each_warp (%item) in (%count) {
    // BARRIERS-NEXT: gdn_tile.stage
    // BARRIERS-NEXT: memref.alloc
    %beta = gdn_tile.stage %betas[%item] : memref<2x64xf32, #shared> to memref<64xf32, #shared>
    %d = memref.alloc() : memref<64x24xf32, #shared>
    // CHECK: gdn_tile.block_inverse %{{.*}}, %{{.*}} in %{{.*}} : memref<64x72xf32, #gpu.address_space<workgroup>>, memref<64xf32, #gpu.address_space<workgroup>>, memref<64x24xf32, #gpu.address_space<workgroup>> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
    // BARRIERS-NEXT: gdn_tile.block_inverse
    // BARRIERS-NEXT: gdn_tile.barrier
    // BARRIERS-NEXT: gdn_tile.store
    // BARRIERS-NEXT: gdn_tile.barrier
    // BARRIERS-NEXT: gdn_tile.load
    // BARRIERS-NEXT: gdn_tile.barrier
    // BARRIERS-NEXT: gdn_tile.free
    %inverses:8 = gdn_tile.block_inverse %products, %beta in %d bf16x3
        : memref<64x72xf32, #shared>, memref<64xf32, #shared>, memref<64x24xf32, #shared>
        -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
    // The tile of the lanes' exchange may be written behind it.
    gdn_tile.store %inverses#0, %d[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<64x24xf32, #shared>
    %a = gdn_tile.load %d[%c0, %c0] dims [1, 0] : memref<64x24xf32, #shared>, vector<16x16xf32>
    gdn_tile.free %d : memref<64x24xf32, #shared>
    %b = arith.addf %inverses#1, %inverses#7 : vector<16x16xf32>
    // CHECK: %[[P:.*]] = gdn_tile.warp_mma %{{.*}}, %{{.*}} tf32 : vector<16x16xf32> -> vector<16x16xf32>
    // CHECK: gdn_tile.warp_mma %[[P]], %{{.*}} acc(%{{.*}} : vector<16x16xf32>) bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
    // CHECK: gdn_tile.warp_mma %{{.*}}, %{{.*}} tf32x3 : vector<16x16xf32> -> vector<16x16xf32>
    %p = gdn_tile.warp_mma %a, %b tf32 : vector<16x16xf32> -> vector<16x16xf32>
    %q = gdn_tile.warp_mma %p, %b acc(%a : vector<16x16xf32>) bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
    %r = gdn_tile.warp_mma %q, %b tf32x3 : vector<16x16xf32> -> vector<16x16xf32>
    // CHECK: gdn_tile.warp_mma %{{.*}}, %{{.*}} exact : vector<16x16xbf16> -> vector<16x16xf32>
    %half = arith.truncf %r : vector<16x16xf32> to vector<16x16xbf16>
    %e = gdn_tile.warp_mma %half, %half exact : vector<16x16xbf16> -> vector<16x16xf32>
    %h = arith.truncf %r : vector<16x16xf32> to vector<16x16xbf16>
    %out = memref.alloc() : memref<16x16xbf16, #shared>
    // BARRIERS: gdn_tile.store
    // BARRIERS-NEXT: gdn_tile.barrier
    // BARRIERS-NEXT: gdn_tile.copy_out
    // BARRIERS-NEXT: gdn_tile.barrier
    // BARRIERS-NEXT: }
    gdn_tile.store %h, %out[%c0, %c0] dims [1, 0] : vector<16x16xbf16>, memref<16x16xbf16, #shared>
    gdn_tile.copy_out %out to %y[%id, %item, %c0, %c0] dims [2, 3] : memref<16x16xbf16, #shared> to memref<?x4x16x16xbf16>
  }
  return
}

// Copies of a warp stay synchronous: a wait would be one of the block.
// CHECK-LABEL: func @copies
// BARRIERS-LABEL: func @copies
// BARRIERS: gdn_tile.copy_in {{.*}} : memref<?x16xf32> to memref<16x16xf32, #gpu.address_space<workgroup>>{{$}}
// BARRIERS: gdn_tile.copy_in {{.*}} : memref<?x16xf32> to memref<16x16xf32, #gpu.address_space<workgroup>>{{$}}
func.func @copies(%x: memref<?x16xf32>, %count: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  gdn_tile.each_warp (%item) in (%count) {
    %a = memref.alloc() : memref<16x16xf32, #shared>
    %b = memref.alloc() : memref<16x16xf32, #shared>
    gdn_tile.copy_in %x[%item, %c0] dims [0, 1] to %a : memref<?x16xf32> to memref<16x16xf32, #shared>
    gdn_tile.copy_in %x[%item, %c0] dims [0, 1] to %b : memref<?x16xf32> to memref<16x16xf32, #shared>
  }
  return
}

// CHECK-LABEL: func @votes
func.func @votes(%c: vector<16x16xi1>, %r: vector<1x64xi1>, %count: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  // CHECK: gdn_tile.any %{{.*}} : vector<1x64xi1> to i1
  %row = gdn_tile.any %r : vector<1x64xi1> to i1
  gdn_tile.each_warp (%item) in (%count) {
    // CHECK: gdn_tile.any %{{.*}} : vector<16x16xi1> to i1
    // CHECK: gdn_tile.any %{{.*}} : vector<16x16xi1> to vector<1x16xi1>
    %any = gdn_tile.any %c : vector<16x16xi1> to i1
    %columns = gdn_tile.any %c : vector<16x16xi1> to vector<1x16xi1>
  }
  return
}

// What is loaded again behind a store may be something else.
// CHECK-LABEL: func @load_again
// CSE-LABEL: func @load_again
// CSE: %[[BEFORE:.*]] = gdn_tile.load_block
// CSE: gdn_tile.store_block
// CSE: %[[BEHIND:.*]] = gdn_tile.load_block
// CSE: gdn_tile.store_block %[[BEFORE]]
// CSE: gdn_tile.store_block %[[BEHIND]]
func.func @load_again(%x: memref<?x288x8xbf16>, %z: vector<16x16xbf16>, %count: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  gdn_tile.each_warp (%item) in (%count) {
    %a = gdn_tile.load_block %x[%item, %c0, %c0] : memref<?x288x8xbf16> -> vector<16x16xbf16>
    gdn_tile.store_block %z, %x[%item, %c0, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    %b = gdn_tile.load_block %x[%item, %c0, %c0] : memref<?x288x8xbf16> -> vector<16x16xbf16>
    gdn_tile.store_block %a, %x[%item, %c64, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
    gdn_tile.store_block %b, %x[%item, %c96, %c0] : vector<16x16xbf16>, memref<?x288x8xbf16>
  }
  return
}
