// Each mistake: one clear message, a status other than 0, and no files.

// RUN: rm -rf %t.out
// RUN: not gdn-compile %t.missing.mlir -o %t.out 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: gdn-compile: error: cannot open input file '{{.*}}.missing.mlir': No such file or directory

// RUN: not gdn-compile %s --target=sm_75 -o %t.out 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: gdn-compile: error: unknown target 'sm_75': expected one of sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120

// RUN: echo "func.func @f() { gdn.nothing }" | not gdn-compile - -o %t.out 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: <stdin>:1:18: error: {{.*}}gdn.nothing

// RUN: echo "" | not gdn-compile - -o %t.out 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: gdn-compile: error: the input has no function

// Names that PTX does not have, and names that lead out of the directory.
// RUN: sed 's|@copy|@"co py"|' %s | not gdn-compile - -o %t.out 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: 'func.func' op names a kernel 'co py_l2norm', but names in PTX have letters, digits, _ and $ only and start with no digit
// RUN: sed 's|@copy|@"../copy"|' %s | not gdn-compile - --to=linalg -o %t.out 2>&1 | FileCheck %s --check-prefix=PATH
// PATH: error: 'func.func' op '../copy' cannot name a file of the output

// RUN: not env PATH=/nowhere %gdn-compile %s --ptxas -o %t.out 2>&1 | FileCheck %s --check-prefix=PTXAS
// PTXAS: gdn-compile: error: cannot find ptxas on the PATH; install a CUDA toolkit or leave --ptxas out

// RUN: not gdn-compile %s --ptxas --to=tile 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: gdn-compile: error: --ptxas needs --to=ptx

// The disk is full.
// RUN: not bash -c "gdn-compile %s > /dev/full" 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: gdn-compile: error: cannot write 'standard output': No space left on device

// A file does not fit; and neither temporary files nor the directory stay behind.
// RUN: not bash -c "ulimit -f 1; gdn-compile %s -o %t.out" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: gdn-compile: error: cannot write '{{.*}}copy.ptx': File too large

// The directory cannot be made.
// RUN: touch %t.file && not gdn-compile %s -o %t.file/out 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: gdn-compile: error: cannot make directory '{{.*}}.file/out': Not a directory

// A file is in its place, and stays.
// RUN: not gdn-compile %s -o %t.file 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: gdn-compile: error: cannot make directory '{{.*}}.file': Not a directory
// RUN: ls %t.file

// RUN: not ls %t.out
func.func @copy(%x: tensor<1x64x2x64xf32>, %y: tensor<1x64x2x64xf32> {bufferization.writable = true}) -> tensor<1x64x2x64xf32> {
  %r = gdn.l2norm ins(%x : tensor<1x64x2x64xf32>) outs(%y : tensor<1x64x2x64xf32>) {eps = 1.0e-06} -> tensor<1x64x2x64xf32>
  return %r : tensor<1x64x2x64xf32>
}
