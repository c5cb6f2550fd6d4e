// RUN: gdn-opt %s -convert-gdn-tile-to-vector -gdn-lower-to-llvm \
// RUN:   | mlir-runner -e main -entry-point-result=void -shared-libs=%runner_libs | FileCheck %s

// Inverses of blocks and products of fragments against values that are known exactly, an item after the other.

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 2, layout = accumulator>

// M has ones below the diagonal and sevens, which do not matter, elsewhere. The inverse for the scale s has
// -s (1 - s)^(i-j-1) below its diagonal; the transposes come first, then the inverses themselves. s is the item's number + 1 in the first block
// of 16 tokens, in the second 0 but for token 18, of which only column 2 of the block shows anything. The
// product of M with the inverse is the unit matrix.
func.func @inverse(%out: memref<2x32x16xf32>, %plain: memref<2x32x16xf32>, %units: memref<2x16x16xf32>) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = gdn_tile.iota : vector<32x1xi32>
  %c = gdn_tile.iota : vector<1x32xi32>
  %rows = vector.broadcast %r : vector<32x1xi32> to vector<32x32xi32>
  %columns = vector.broadcast %c : vector<1x32xi32> to vector<32x32xi32>
  %isLower = arith.cmpi sgt, %rows, %columns : vector<32x32xi32>
  %one = arith.constant dense<1.0> : vector<32x32xf32>
  %seven = arith.constant dense<7.0> : vector<32x32xf32>
  %m = arith.select %isLower, %one, %seven : vector<32x32xi1>, vector<32x32xf32>
  %products = memref.alloc() : memref<32x40xf32, #shared>
  gdn_tile.store %m, %products[%c0, %c0] dims [0, 1] : vector<32x32xf32>, memref<32x40xf32, #shared>
  %limit = arith.constant dense<16> : vector<1x32xi32>
  %isFirst = arith.cmpi slt, %c, %limit : vector<1x32xi32>
  %ones = arith.constant dense<1.0> : vector<1x32xf32>
  %twos = arith.constant dense<2.0> : vector<1x32xf32>
  %zeros = arith.constant dense<0.0> : vector<1x32xf32>
  %token = arith.constant dense<18> : vector<1x32xi32>
  %is18 = arith.cmpi eq, %c, %token : vector<1x32xi32>
  %rest = arith.select %is18, %ones, %zeros : vector<1x32xi1>, vector<1x32xf32>
  %s1 = arith.select %isFirst, %ones, %rest : vector<1x32xi1>, vector<1x32xf32>
  %s2 = arith.select %isFirst, %twos, %zeros : vector<1x32xi1>, vector<1x32xf32>
  %scales = memref.alloc() : memref<2x32xf32, #shared>
  %first = gdn_tile.stage %scales[%c0] : memref<2x32xf32, #shared> to memref<32xf32, #shared>
  %second = gdn_tile.stage %scales[%c1] : memref<2x32xf32, #shared> to memref<32xf32, #shared>
  gdn_tile.store %s1, %first[%c0] dims [0] : vector<1x32xf32>, memref<32xf32, #shared>
  gdn_tile.store %s2, %second[%c0] dims [0] : vector<1x32xf32>, memref<32xf32, #shared>
  gdn_tile.each_warp (%item) in (%c2) {
    %scale = gdn_tile.stage %scales[%item] : memref<2x32xf32, #shared> to memref<32xf32, #shared>
    %d = memref.alloc() : memref<384xf32, #shared>
    %x, %x1, %y, %y1 = gdn_tile.block_inverse %products, %scale in %d tf32 : memref<32x40xf32, #shared>, memref<32xf32, #shared>, memref<384xf32, #shared> -> vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
    gdn_tile.store %x, %out[%item, %c0, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x32x16xf32>
    gdn_tile.store %x1, %out[%item, %c16, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x32x16xf32>
    gdn_tile.store %y, %plain[%item, %c0, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x32x16xf32>
    gdn_tile.store %y1, %plain[%item, %c16, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x32x16xf32>
    %i = gdn_tile.iota : vector<16x1xi32>
    %j = gdn_tile.iota : vector<1x16xi32>
    %is = vector.broadcast %i : vector<16x1xi32> to vector<16x16xi32>
    %js = vector.broadcast %j : vector<1x16xi32> to vector<16x16xi32>
    %below = arith.cmpi sgt, %is, %js : vector<16x16xi32>
    %factor = gdn_tile.load %scale[%c0] dims [0] : memref<32xf32, #shared>, vector<16x1xf32>
    %factors = vector.broadcast %factor : vector<16x1xf32> to vector<16x16xf32>
    %none = arith.constant dense<0.0> : vector<16x16xf32>
    %l = arith.select %below, %factors, %none : vector<16x16xi1>, vector<16x16xf32>
    // L X + I X, of the transpose of X.
    %xl = gdn_tile.warp_mma %l, %x tf32x3 : vector<16x16xf32> -> vector<16x16xf32>
    %equal = arith.cmpi eq, %is, %js : vector<16x16xi32>
    %diagonal = arith.constant dense<1.0> : vector<16x16xf32>
    %unit = arith.select %equal, %diagonal, %none : vector<16x16xi1>, vector<16x16xf32>
    %sum = gdn_tile.warp_mma %unit, %x acc(%xl : vector<16x16xf32>) bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
    gdn_tile.store %sum, %units[%item, %c0, %c0] dims [1, 2] : vector<16x16xf32>, memref<2x16x16xf32>
  }
  return
}

func.func @host(%out: memref<2x32x16xf32>, %plain: memref<2x32x16xf32>, %units: memref<2x16x16xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @inverse grid(%c1) (%out, %plain, %units : memref<2x32x16xf32>, memref<2x32x16xf32>, memref<2x16x16xf32>)
  return
}

// A warp's own rows, from column 16 on, less the same entries of memory. Products in parts: 1 + 2^-9 and 1 + 2^-10 are 1
// in bfloat16, so all that is left of them here are their low parts.
func.func @operands(%x: memref<32x32xf32>, %rest: memref<32x16xf32>, %parts: memref<32x16xf32>)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %all = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<32x32xf32>, vector<32x32xf32>
  gdn_tile.each_warp (%item) in (%c2) {
    %row = arith.muli %item, %c16 : index
    %own = gdn_tile.own_rows %all[16] : vector<32x32xf32> to vector<16x16xf32>
    %same = gdn_tile.load %x[%row, %c16] dims [0, 1] : memref<32x32xf32>, vector<16x16xf32>
    %difference = arith.subf %own, %same : vector<16x16xf32>
    gdn_tile.store %difference, %rest[%row, %c0] dims [0, 1] : vector<16x16xf32>, memref<32x16xf32>
    %i = gdn_tile.iota : vector<16x1xi32>
    %j = gdn_tile.iota : vector<1x16xi32>
    %is = vector.broadcast %i : vector<16x1xi32> to vector<16x16xi32>
    %js = vector.broadcast %j : vector<1x16xi32> to vector<16x16xi32>
    %equal = arith.cmpi eq, %is, %js : vector<16x16xi32>
    %none = arith.constant dense<0.0> : vector<16x16xf32>
    %one = arith.constant dense<1.0> : vector<16x16xf32>
    %more = arith.constant dense<1.001953125> : vector<16x16xf32>
    %little = arith.constant dense<1.0009765625> : vector<16x16xf32>
    %unit = arith.select %equal, %one, %none : vector<16x16xi1>, vector<16x16xf32>
    %a = arith.select %equal, %more, %none : vector<16x16xi1>, vector<16x16xf32>
    %b = arith.select %equal, %little, %none : vector<16x16xi1>, vector<16x16xf32>
    %ab = gdn_tile.warp_mma %a, %b bf16x3 : vector<16x16xf32> -> vector<16x16xf32>
    %low = arith.subf %ab, %unit : vector<16x16xf32>
    %scale = arith.constant dense<1024.0> : vector<16x16xf32>
    %scaled = arith.mulf %low, %scale : vector<16x16xf32>
    gdn_tile.store %scaled, %parts[%row, %c0] dims [0, 1] : vector<16x16xf32>, memref<32x16xf32>
  }
  return
}

func.func @host2(%x: memref<32x32xf32>, %rest: memref<32x16xf32>, %parts: memref<32x16xf32>) {
  %c1 = arith.constant 1 : index
  gdn_tile.launch @operands grid(%c1) (%x, %rest, %parts : memref<32x32xf32>, memref<32x16xf32>, memref<32x16xf32>)
  return
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %out = memref.alloc() : memref<2x32x16xf32>
  %plain = memref.alloc() : memref<2x32x16xf32>
  %units = memref.alloc() : memref<2x16x16xf32>
  call @host(%out, %plain, %units) : (memref<2x32x16xf32>, memref<2x32x16xf32>, memref<2x16x16xf32>) -> ()
  // CHECK: sizes = [2, 32, 16]
  // CHECK-NEXT: {{^}}{{\[}}{{\[}}[1,    -1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    1,    -1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK: [0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    1],
  // CHECK-NEXT: [1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    0,    1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1,    -1],
  // CHECK-NEXT: [0,    0,    0,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK: {{\[}}[1,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2],
  // CHECK-NEXT: [0,    1,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2,    -2,    2],
  %0 = memref.cast %out : memref<2x32x16xf32> to memref<*xf32>
  call @printMemrefF32(%0) : (memref<*xf32>) -> ()
  // CHECK: sizes = [2, 32, 16]
  // CHECK-NEXT: {{^}}{{\[}}{{\[}}[1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [-1,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK: [0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    -1,    1],
  // CHECK-NEXT: [1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    0,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    0,    -1,    1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  %3 = memref.cast %plain : memref<2x32x16xf32> to memref<*xf32>
  call @printMemrefF32(%3) : (memref<*xf32>) -> ()
  // CHECK: sizes = [2, 16, 16]
  // CHECK-COUNT-2: [1,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  %1 = memref.cast %units : memref<2x16x16xf32> to memref<*xf32>
  call @printMemrefF32(%1) : (memref<*xf32>) -> ()
  %x = memref.alloc() : memref<32x32xf32>
  %rest = memref.alloc() : memref<32x16xf32>
  %parts = memref.alloc() : memref<32x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %row = arith.muli %i, %c32 : index
      %at = arith.addi %row, %j : index
      %word = arith.index_cast %at : index to i32
      %number = arith.sitofp %word : i32 to f32
      memref.store %number, %x[%i, %j] : memref<32x32xf32>
    }
  }
  call @host2(%x, %rest, %parts) : (memref<32x32xf32>, memref<32x16xf32>, memref<32x16xf32>) -> ()
  // CHECK: sizes = [32, 16]
  // CHECK-COUNT-32: [0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0]
  %2 = memref.cast %rest : memref<32x16xf32> to memref<*xf32>
  call @printMemrefF32(%2) : (memref<*xf32>) -> ()
  // CHECK: sizes = [32, 16]
  // CHECK-NEXT: [3,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK-NEXT: [0,    3,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0],
  // CHECK: [0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    3]{{\]}}
  %4 = memref.cast %parts : memref<32x16xf32> to memref<*xf32>
  call @printMemrefF32(%4) : (memref<*xf32>) -> ()
  return
}
