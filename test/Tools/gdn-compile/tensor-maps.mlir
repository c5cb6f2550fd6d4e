// RUN: rm -rf %t && gdn-compile %s --target=sm_90a --to=ptx -o %t
// RUN: FileCheck %s --check-prefix=PTX < %t/move.ptx
// RUN: %python -c "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))" %t/move.json | FileCheck %s

#shared = #gpu.address_space<workgroup>
!keys = !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
!copies = !gdn_tile.tensor_map<memref<?x16x64x32xf32>, dims = [2, 3], box = [64, 32]>

// The maps lie in the parameters; each tile is one instruction.
// PTX: .version 8.0
// PTX: .entry tiles(
// PTX: .param .align 64 .b8 tiles_param_1[128]
// PTX: .param .align 64 .b8 tiles_param_3[128]
// PTX: mov.b32 %[[BYTES:.*]], 16384;
// PTX-NEXT: mbarrier.arrive.expect_tx.shared.b64 %{{.*}}, [smem+24576], %[[BYTES]];
// PTX: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [
// PTX: bar.sync 0;
// PTX: mbarrier.try_wait.parity.shared::cta.b64
// PTX: cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [
// PTX: cp.async.bulk.commit_group;
// PTX: cp.async.bulk.wait_group.read 0;
// PTX-NOT: cp.async.bulk

// One dimension of the keys is that of all batches and tokens; of the copies that of slots and heads.
// CHECK: "buffers": [{"dtype": "f32", "shape": {{\[\[}}"ceildiv", ["dim", 0, 1], 64], 16, 64, 32]}]
// CHECK: "parameters": [{"argument": 0},
// CHECK-SAME: {"box": [64, 64, 2, 1], "dtype": "bf16", "sizes": [128, ["mul", ["dim", 0, 0], ["dim", 0, 1]], 2, 16], "strides": [4096, 128, 256], "swizzle": 128, "tensor_map": {"argument": 0}},
// CHECK-SAME: {"buffer": 0},
// CHECK-SAME: {"box": [32, 64, 1], "dtype": "f32", "sizes": [32, 64, ["mul", ["ceildiv", ["dim", 0, 1], 64], 16]], "strides": [128, 8192], "swizzle": 128, "tensor_map": {"buffer": 0}},
// CHECK-SAME: {"dtype": "i64", "scalar": ["dim", 0, 0]}]
func.func @tiles(%k: memref<?x16x128xbf16>, %keys: !keys, %c: memref<?x16x64x32xf32>, %copies: !copies, %rows: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %id = gdn_tile.block_id : index
  %in = memref.alloc() : memref<64x128xbf16, #shared>
  %out = memref.alloc() : memref<64x32xf32, #shared>
  gdn_tile.copy_in %k[%id, %c0, %c0] dims [0, 2] valid(%rows, %c128) to %in map(%keys : !keys) : memref<?x16x128xbf16> to memref<64x128xbf16, #shared>
  gdn_tile.copy_out %out to %c[%id, %c0, %c0, %c0] dims [2, 3] map(%copies : !copies) : memref<64x32xf32, #shared> to memref<?x16x64x32xf32>
  return
}

func.func @move(%k: memref<?x?x16x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %batch = memref.dim %k, %c0 : memref<?x?x16x128xbf16>
  %length = memref.dim %k, %c1 : memref<?x?x16x128xbf16>
  %slots = arith.ceildivui %length, %c64 : index
  %flat = memref.collapse_shape %k [[0, 1], [2], [3]] : memref<?x?x16x128xbf16> into memref<?x16x128xbf16>
  %copies = memref.alloc(%slots) : memref<?x16x64x32xf32>
  %0 = gdn_tile.make_tensor_map %flat : !keys
  %1 = gdn_tile.make_tensor_map %copies : !copies
  gdn_tile.launch @tiles grid(%c1) (%flat, %0, %copies, %1, %batch : memref<?x16x128xbf16>, !keys, memref<?x16x64x32xf32>, !copies, index)
  return
}
