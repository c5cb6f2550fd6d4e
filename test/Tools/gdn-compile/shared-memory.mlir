// The message alone, without the kernel; on a larger target it compiles.
// RUN: not gdn-compile %s --target=sm_120 -o %t 2>&1 | FileCheck %s
// RUN: not ls %t
// RUN: gdn-compile %s --target=sm_80 | FileCheck %s --check-prefix=PTX

// CHECK: error: 'func.func' op kernel 'fill' needs 131072 bytes of shared memory, but sm_120 has 101376 bytes a block
// CHECK-NOT: note:
// PTX: .entry fill
func.func @fill(%x: memref<256x128xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tile = memref.alloc() : memref<256x128xf32, #gpu.address_space<workgroup>>
  gdn_tile.copy_in %x[%c0, %c0] dims [0, 1] to %tile : memref<256x128xf32> to memref<256x128xf32, #gpu.address_space<workgroup>>
  gdn_tile.copy_out %tile to %x[%c0, %c0] dims [0, 1] : memref<256x128xf32, #gpu.address_space<workgroup>> to memref<256x128xf32>
  return
}

func.func @host(%x: memref<256x128xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @fill grid(%c1) (%x : memref<256x128xf32>)
  return
}
