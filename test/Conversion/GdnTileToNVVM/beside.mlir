// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: rm -rf %t && gdn-compile %s --target=sm_90a -o %t
// RUN: FileCheck %s --check-prefix=PTX < %t/host.ptx
// RUN: %python -c "import json, sys; print([(x['kernel'], x.get('beside')) for x in json.load(open(sys.argv[1]))['launches']])" %t/host.json | FileCheck %s --check-prefix=MANIFEST

// SM80-NOT: griddepcontrol
// SM80-NOT: beside

// A kernel in front of one that is launched beside it lets it start at once; the
// last block of the other ends no earlier, so what is launched behind it sees the results of both.

// CHECK-LABEL: llvm.func @front(
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: llvm.return
// PTX: .entry front(
// PTX: griddepcontrol.launch_dependents;
// PTX: st.global
func.func @front(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%c0] : memref<?xf32>
  return
}

// CHECK-LABEL: llvm.func @other(
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: llvm.store
// CHECK: %[[ID:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[COUNT:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[LAST:.*]] = llvm.sub %[[COUNT]], %{{.*}} : i32
// CHECK: %[[IS_LAST:.*]] = llvm.icmp "eq" %[[ID]], %[[LAST]] : i32
// CHECK: scf.if %[[IS_LAST]] {
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: }
// CHECK-NEXT: llvm.return
// PTX: .entry other(
// PTX: st.global
// PTX: setp.ne.b32 %[[OTHER:.*]], %{{.*}}, %{{.*}};
// PTX: @%[[OTHER]] bra
// PTX: griddepcontrol.wait;
func.func @other(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%c1] : memref<?xf32>
  return
}

// CHECK-LABEL: llvm.func @behind(
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: llvm.return
// PTX: .entry behind(
// PTX-NOT: griddepcontrol
func.func @behind(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// CHECK: func.func @host(
// CHECK: gpu.launch_func @kernels::@front
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@other {{.*}} {gdn_tile.beside}
// CHECK: gpu.launch_func @kernels::@behind
// CHECK-NOT: beside
// MANIFEST: [('front', None), ('other', True), ('behind', None), ('front', None)]
func.func @host(%x: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @front grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @other grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @behind grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @front grid(%c1) (%x : memref<?xf32>)
  return
}
