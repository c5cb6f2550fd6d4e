// Object code for this processor: one entry that takes memref descriptors, and
// nothing of MLIR's runtime library.

// RUN: rm -rf %t.out
// RUN: gdn-compile %s --to=object -o %t.out
// RUN: llvm-readelf -h %t.out/scale.o | FileCheck %s --check-prefix=HEADER
// HEADER: Type: REL (Relocatable file)
// RUN: llvm-nm --format=just-symbols %t.out/scale.o | sort | FileCheck %s --check-prefix=SYMBOLS
// SYMBOLS-NOT: memrefCopy
// SYMBOLS: {{^}}_mlir_ciface_scale{{$}}
// SYMBOLS-NOT: memrefCopy

// The features that LLVM adds to the processor's own are checked by LLVM.
// RUN: gdn-compile %s --to=object --host-features=-avx512f -o %t.other
// RUN: not gdn-compile %s --to=object --ptxas -o %t.other 2>&1 | FileCheck %s --check-prefix=PTXAS
// PTXAS: gdn-compile: error: --ptxas needs --to=ptx

// A returned destination is not returned: the entry has the arguments only.
// RUN: llvm-objdump -d --no-show-raw-insn %t.out/scale.o | FileCheck %s --check-prefix=CODE
// CODE: <_mlir_ciface_scale>:

func.func @scale(%x: tensor<?x16xf32> {gdn.name = "x"},
                 %y: tensor<?x16xf32> {gdn.name = "y", bufferization.writable = true}) -> tensor<?x16xf32> {
  %r = gdn.l2norm ins(%x : tensor<?x16xf32>) outs(%y : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}
