// RUN: gdn-opt %s -split-input-file -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s

#shared = #gpu.address_space<workgroup>

// CHECK: module attributes {gpu.container_module}
// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx78">]
// CHECK-NEXT: llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

// The tile of 64-byte rows goes first: 256 rows of its panel repeat every 512 bytes.
// CHECK-LABEL: llvm.func @structure(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[N:.*]]: i64)
// CHECK-SAME: gdn.shared_bytes = 1088 : i64
// CHECK-SAME: gpu.kernel
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 128>
func.func @structure(%x: memref<?x8xf32>, %n: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK-DAG: llvm.getelementptr %{{.*}}[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %small = memref.alloc() : memref<16xf32, #shared>
  %large = memref.alloc() : memref<16x32xbf16, #shared>
  // CHECK-DAG: %[[ID32:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK-DAG: %[[ID:.*]] = llvm.zext %[[ID32]] : i32 to i64
  %id = gdn_tile.block_id : index
  %limit = arith.addi %id, %n : index
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args({{.*}}) -> (f32, f32, f32, f32)
  %init = arith.constant dense<0.0> : vector<64x8xf32>
  %sum = scf.for %i = %c0 to %limit step %c1 iter_args(%s = %init) -> (vector<64x8xf32>) {
    // A scalar that all threads read.
    // CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
    %value = memref.load %x[%i, %c0] : memref<?x8xf32>
    %all = vector.broadcast %value : f32 to vector<64x8xf32>
    // CHECK-COUNT-4: llvm.fadd %{{.*}}, %{{.*}} {fastmathFlags = #llvm.fastmath<contract>} : f32
    %sum_of = arith.addf %s, %all fastmath<contract> : vector<64x8xf32>
    // Without the flag an op is not fused with others.
    // CHECK: llvm.fsub %{{[^ ]*}}, %{{[^ ]*}} : f32
    %next = arith.subf %all, %sum_of : vector<64x8xf32>
    scf.yield %next : vector<64x8xf32>
  }
  // CHECK: nvvm.barrier
  gdn_tile.barrier
  gdn_tile.store %sum, %x[%c0, %c0] dims [0, 1] : vector<64x8xf32>, memref<?x8xf32>
  // Only the first thread stores a scalar.
  // CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
  // CHECK: scf.if %[[FIRST]] {
  // CHECK-NEXT: llvm.store
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%id, %c1] : memref<?x8xf32>
  // CHECK: llvm.return
  return
}

// CHECK: func.func @host(%[[X:.*]]: memref<?x8xf32>, %[[N:.*]]: index)
// CHECK: %[[BYTES:.*]] = arith.constant 1088 : i32
// CHECK: gpu.launch_func @kernels::@structure blocks in (%[[N]], %{{.*}}, %{{.*}}) threads in (%{{.*}}, %{{.*}}, %{{.*}}) dynamic_shared_memory_size %[[BYTES]] args(%[[X]] : memref<?x8xf32>, %[[N]] : index)
func.func @host(%x: memref<?x8xf32>, %n: index) {
  gdn_tile.launch @structure grid(%n) (%x, %n : memref<?x8xf32>, index)
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// One stage of three: 16 rows of 64 bytes apart.
// CHECK-LABEL: llvm.func @stage
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(10 : i32)
// CHECK: %[[OFFSET:.*]] = llvm.shl %{{.*}}, %[[BYTES]] : i32
// CHECK: llvm.getelementptr %{{.*}}[%[[OFFSET]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
func.func @stage(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %tiles = memref.alloc() : memref<3x16x32xbf16, #shared>
  %tile = gdn_tile.stage %tiles[%i] : memref<3x16x32xbf16, #shared> to memref<16x32xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<16x32xbf16>
  gdn_tile.store %zero, %tile[%c0, %c0] dims [0, 1] : vector<16x32xbf16>, memref<16x32xbf16, #shared>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// The stage of an iteration: a remainder of 32 bits.
// CHECK-LABEL: llvm.func @stage_of(
// CHECK: %[[I:.*]] = llvm.trunc %{{.*}} : i64 to i32
// CHECK: %[[STAGES:.*]] = llvm.mlir.constant(3 : i32)
// CHECK: %[[STAGE:.*]] = llvm.urem %[[I]], %[[STAGES]] : i32
// CHECK: llvm.shl %[[STAGE]], %{{.*}} : i32
func.func @stage_of(%i: index) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %stage = arith.remui %i, %c3 : index
  %tiles = memref.alloc() : memref<3x16x32xbf16, #shared>
  %tile = gdn_tile.stage %tiles[%stage] : memref<3x16x32xbf16, #shared> to memref<16x32xbf16, #shared>
  %zero = arith.constant dense<0.0> : vector<16x32xbf16>
  gdn_tile.store %zero, %tile[%c0, %c0] dims [0, 1] : vector<16x32xbf16>, memref<16x32xbf16, #shared>
  return
}

// -----

// Counted from the last block: the number of blocks less this one's and 1.
// CHECK-LABEL: llvm.func @from_end(
// CHECK: %[[ID:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[COUNT:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[NEXT:.*]] = llvm.add %[[ID]], %{{.*}} : i32
// CHECK: %[[LAST:.*]] = llvm.inline_asm {{.*}}"sub.u32 $0, $1, $2;", "=r,r,r" %[[COUNT]], %[[NEXT]]
// CHECK: llvm.zext %[[LAST]] : i32 to i64
func.func @from_end(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %zero = arith.constant 0.0 : f32
  %id = gdn_tile.block_id from_end : index
  memref.store %zero, %x[%id] : memref<?xf32>
  return
}

// -----

// A function without launches still has PTX: of no kernels.
// CHECK: gpu.module @kernels
// CHECK-NOT: llvm.func
// CHECK: func.func @nothing
func.func @nothing() {
  return
}
