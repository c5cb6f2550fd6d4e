// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_90a | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: rm -rf %t && gdn-compile %s --target=sm_90a -o %t
// RUN: FileCheck %s --check-prefix=PTX < %t/host.ptx
// RUN: %python -c "import json, sys; print([(x['kernel'], x.get('beside'), x.get('overlaps')) for x in json.load(open(sys.argv[1]))['launches']])" %t/host.json | FileCheck %s --check-prefix=MANIFEST

// SM80-NOT: griddepcontrol
// SM80-NOT: beside

// A kernel in front of one that is launched beside it lets it start at once; the
// last block of the other ends no earlier, so what is launched behind it sees the results of both.

// CHECK-LABEL: llvm.func @front(
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: griddepcontrol
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
// CHECK-NOT: griddepcontrol
// CHECK: llvm.store
// CHECK: %[[ID:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[COUNT:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[LAST:.*]] = llvm.sub %[[COUNT]], %{{.*}} : i32
// CHECK: %[[IS_LAST:.*]] = llvm.icmp "eq" %[[ID]], %[[LAST]] : i32
// CHECK: scf.if %[[IS_LAST]] {
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
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
// CHECK-NOT: griddepcontrol
// CHECK: llvm.return
// PTX: .entry behind(
// PTX-NOT: griddepcontrol
func.func @behind(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// One that says where it waits does so there, all of its blocks, and lets the next one start only then.
// The kernel in front of it lets it start at its end; where its blocks are few, at most two waves, when all have started.

// CHECK-LABEL: llvm.func @awaited(
// CHECK: %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[WAVES:.*]] = llvm.mlir.constant(264 : i32)
// CHECK: %[[FEW:.*]] = llvm.icmp "ule" %[[BLOCKS]], %[[WAVES]] : i32
// CHECK: scf.if %[[FEW]] {
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: }
// CHECK: llvm.store
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.return
// PTX: .entry awaited(
// PTX: %nctaid.x
// PTX: griddepcontrol.launch_dependents;
// PTX: st.global
// PTX: griddepcontrol.launch_dependents;
func.func @awaited(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %x[%c0] : memref<?xf32>
  return
}

// CHECK-LABEL: llvm.func @waits(
// CHECK-NOT: griddepcontrol
// CHECK: llvm.load
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.store
// CHECK-NOT: griddepcontrol
// CHECK: llvm.return
// PTX: .entry waits(
// PTX: ld.global
// PTX: griddepcontrol.wait;
// PTX: griddepcontrol.launch_dependents;
// PTX: st.global
func.func @waits(%x: memref<?xf32>, %y: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %value = memref.load %y[%c0] : memref<?xf32>
  gdn_tile.await_launch
  memref.store %value, %x[%c0] : memref<?xf32>
  return
}

// One that waits and that the next one waits for lets it start behind its own wait, and not again at its end.
// It reads nothing before, so it may overlap with whatever runs in front.

// CHECK-LABEL: llvm.func @waits_too(
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: griddepcontrol
// CHECK: llvm.return
func.func @waits_too(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  gdn_tile.await_launch
  return
}

// One that does not wait, in front of one that does: its last block waits, and the next starts when all have ended.

// CHECK-LABEL: llvm.func @between(
// CHECK: scf.if
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
// CHECK-NEXT: }
// CHECK-NEXT: llvm.return
func.func @between(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// A launch that may have no blocks: then that in front of it is the one in front.

// CHECK-LABEL: llvm.func @maybe_none(
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.return
func.func @maybe_none(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// CHECK-LABEL: llvm.func @last(
// CHECK: griddepcontrol.wait
// CHECK-NOT: launch_dependents
// CHECK: llvm.return
func.func @last(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  gdn_tile.await_launch
  return
}

// Launched in order, there is nothing to wait for.

// CHECK-LABEL: llvm.func @in_order(
// CHECK-NOT: griddepcontrol
// CHECK: llvm.return
func.func @in_order(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  gdn_tile.await_launch
  return
}

// The one in front of a launch that may have no blocks lets the next one start as well.

// CHECK-LABEL: llvm.func @in_front_of_maybe_none(
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.return
func.func @in_front_of_maybe_none(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// CHECK-LABEL: llvm.func @maybe_none_again(
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.return
func.func @maybe_none_again(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  return
}

// One that waits, in front of one that waits as well.

// CHECK-LABEL: llvm.func @waits_in_between(
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: griddepcontrol
// CHECK: llvm.return
func.func @waits_in_between(%x: memref<?xf32>) attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 1, layout = accumulator>} {
  gdn_tile.await_launch
  return
}

// CHECK: func.func @host(
// CHECK: gpu.launch_func @kernels::@front
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@other {{.*}} {gdn_tile.beside}
// CHECK: gpu.launch_func @kernels::@behind
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@awaited
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@waits {{.*}} {gdn_tile.beside}
// CHECK: gpu.launch_func @kernels::@other {{.*}} {gdn_tile.beside}
// CHECK: gpu.launch_func @kernels::@awaited
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@waits_too {{.*}} {gdn_tile.overlaps}
// CHECK: gpu.launch_func @kernels::@between {{.*}} {gdn_tile.beside}
// CHECK: gpu.launch_func @kernels::@maybe_none
// CHECK: gpu.launch_func @kernels::@last {{.*}} {gdn_tile.overlaps}
// CHECK: gpu.launch_func @kernels::@in_order
// CHECK-NOT: beside
// CHECK: gpu.launch_func @kernels::@waits_in_between {{.*}} {gdn_tile.overlaps}
// CHECK: gpu.launch_func @kernels::@last {{.*}} {gdn_tile.overlaps}
// MANIFEST: [('front', None, None), ('other', True, None), ('behind', None, None), ('awaited', None, None), ('waits', True, None), ('other', True, None), ('awaited', None, None), ('waits_too', None, True), ('between', True, None), ('maybe_none', None, None), ('last', None, True), ('in_order', None, None), ('in_front_of_maybe_none', None, None), ('maybe_none_again', None, None), ('waits_in_between', None, True), ('last', None, True)]
func.func @host(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %some = memref.dim %x, %c0 : memref<?xf32>
  gdn_tile.launch @front grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @other grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @behind grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @awaited grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @waits grid(%c1) (%x, %y : memref<?xf32>, memref<?xf32>) {beside}
  gdn_tile.launch @other grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @awaited grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @waits_too grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @between grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @maybe_none grid(%some) (%x : memref<?xf32>)
  gdn_tile.launch @last grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @in_order grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @in_front_of_maybe_none grid(%c1) (%x : memref<?xf32>)
  gdn_tile.launch @maybe_none_again grid(%some) (%x : memref<?xf32>)
  gdn_tile.launch @waits_in_between grid(%c1) (%x : memref<?xf32>) {beside}
  gdn_tile.launch @last grid(%c1) (%x : memref<?xf32>) {beside}
  return
}
