// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 -cse | FileCheck %s

// Over the columns: registers, then the 16 lanes of a row.
// CHECK-LABEL: llvm.func @columns
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
func.func @columns(%x: memref<?x64xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xf32>, vector<2x64xf32>
  %sum = gdn_tile.sum %v : vector<2x64xf32> to vector<2x1xf32>
  gdn_tile.store %sum, %x[%c0, %c0] dims [0] : vector<2x1xf32>, memref<?x64xf32>
  return
}

// -----

// Only 4 of the 16 lanes hold different columns.
// CHECK-LABEL: llvm.func @narrow
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
func.func @narrow(%x: memref<?x16xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = rows, lanes = 16>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x16xf32>, vector<2x16xf32>
  %sum = gdn_tile.sum %v : vector<2x16xf32> to vector<2x1xf32>
  gdn_tile.store %sum, %x[%c0, %c0] dims [0] : vector<2x1xf32>, memref<?x16xf32>
  return
}

// -----

// Over the rows of several warps: through shared memory, 2 x 8 floats, between two barriers.
// CHECK-LABEL: llvm.func @rows
// CHECK-SAME: gdn.shared_bytes = 64 : i64
// CHECK-COUNT-6: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-2: st.shared.b32
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load {{.*}} !llvm.ptr<3> -> f32
// CHECK: nvvm.barrier
func.func @rows(%x: memref<?x8xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %v = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<32x8xf32>
  %sum = gdn_tile.sum %v : vector<32x8xf32> to vector<1x8xf32>
  gdn_tile.store %sum, %x[%c0, %c0] dims [1] : vector<1x8xf32>, memref<?x8xf32>
  return
}
