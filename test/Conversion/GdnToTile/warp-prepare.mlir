// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Two value heads of a key head in one block of two warps: one pair of products for both, then a warp each.

// CHECK-LABEL: func @pair_prepare
// CHECK-SAME: gdn_tile.kernel = #gdn_tile.kernel<warps = 2, layout = accumulator, blocks = 8>
// CHECK: %[[K:.*]] = memref.alloc() : memref<32x64xbf16
// CHECK: %[[Q:.*]] = memref.alloc() : memref<32x64xbf16
// The gates and betas of both heads.
// CHECK: %[[G:.*]] = memref.alloc() : memref<32x2xf32
// CHECK: %[[B:.*]] = memref.alloc() : memref<32x2xf32
// CHECK: gdn_tile.copy_in %{{.*}} dims [0, 1] valid(%{{.*}}, %c2) to %[[G]] : memref<64x4xf32>
// CHECK: gdn_tile.copy_in %{{.*}} dims [0, 1] valid(%{{.*}}, %c2) to %[[B]] : memref<64x4xf32>
// K Q^T above the diagonal and on it, K K^T below, in the bytes of the tiles of q and k.
// CHECK: %[[KEYS:.*]] = gdn_tile.load %[[K]]
// CHECK: %[[KQ:.*]] = gdn_tile.mma %[[KEYS]], %[[Q]] {transpose_b}
// CHECK: %[[SCALED:.*]] = arith.mulf %[[KQ]]
// CHECK: %[[KK:.*]] = gdn_tile.mma %[[KEYS]], %[[K]] {transpose_b}
// CHECK: %[[LOWER:.*]] = arith.cmpi sgt
// CHECK: %[[MERGED:.*]] = arith.select %[[LOWER]], %[[KK]], %[[SCALED]]
// CHECK-NEXT: gdn_tile.free %[[K]]
// CHECK-NEXT: gdn_tile.free %[[Q]]
// CHECK-NEXT: %[[M:.*]] = memref.alloc() : memref<33x40xf32
// CHECK-NEXT: gdn_tile.store %[[MERGED]], %[[M]]
// CHECK-NEXT: gdn_tile.each_warp (%[[ITEM:.*]]) in (%c2) {
// A head's column as a vector, 16 tokens at a time; of the gates the sums of it.
// CHECK: %[[BETA:.*]] = memref.alloc() : memref<32xf32
// CHECK: gdn_tile.load %[[B]][%c0, %[[ITEM]]] dims [0]
// CHECK: gdn_tile.load %[[B]][%c16, %[[ITEM]]] dims [0]
// CHECK: gdn_tile.cumsum %[[SUMS:.*]] of %[[G]] column %[[ITEM]] {factor = 1.44{{.*}}, least = -1.04{{.*}}} : memref<32xf32
// beta is a factor of exp(G_C - G), the second of three rows.
// CHECK: gdn_tile.decays %[[SUMS]] times %[[BETA]] to %{{.*}} {scale = {{.*}}}
// CHECK: gdn_tile.copy_out {{.*}} : memref<96xf32, {{.*}} to memref<?x4x136xf32>
// CHECK: %[[D:.*]] = memref.alloc() : memref<384xf32
// CHECK: %[[X:.*]]:4 = gdn_tile.block_inverse %[[M]], %[[BETA]] in %[[D]] tf32
// Which rows are split, and how many.
// CHECK-NEXT: %[[MARKS:.*]] = memref.alloc() : memref<32xf32
// CHECK-NEXT: %[[FLAGS:.*]] = memref.alloc() : memref<8xf32
// -beta is a factor of the left operands.
// CHECK: %[[BETA0:.*]] = gdn_tile.load %[[BETA]][%c0] dims [0] : {{.*}}, vector<1x16xf32>
// CHECK: %[[MINUS:.*]] = arith.mulf %[[BETA0]]
// CHECK: %[[SPREAD0:.*]] = vector.broadcast %[[MINUS]]
// CHECK: %[[LEFT0:.*]] = arith.mulf %[[X]]#0, %[[SPREAD0]]
// Row 0, without a branch between its blocks.
// The exponent is masked before exp2, and so is the score, which beta is a factor of.
// CHECK: %[[MASK:.*]] = arith.cmpi sle
// CHECK: %[[E:.*]] = arith.select %[[MASK]]
// CHECK: math.exp2 %[[E]]
// CHECK: %[[COLUMN:.*]] = gdn_tile.load %[[BETA]][%c0] dims [0] : {{.*}}, vector<16x1xf32>
// CHECK: %[[SPREAD:.*]] = vector.broadcast %[[COLUMN]]
// CHECK: %[[SCORE:.*]] = arith.mulf %{{.*}}, %[[SPREAD]]
// CHECK: arith.select %[[MASK]], %[[SCORE]]
// CHECK: gdn_tile.store_block %{{.*}}, %[[SCORES:.*]][%{{.*}}, %{{.*}}, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x4x80x8xbf16>
// N without its diagonal, rounded.
// CHECK: %[[STRICT:.*]] = arith.cmpi slt
// CHECK: %[[N:.*]] = arith.select %[[STRICT]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[N]]
// CHECK: gdn_tile.store_block %[[ROUNDED]], %[[INVERSE:.*]][%{{.*}}, %{{.*}}, %c0, %c0, %c0] {diagonal} : vector<16x16xbf16>, memref<?x4x2x80x8xbf16>
// Large entries below the diagonal, anywhere in the block, or on it large beta.
// CHECK: %[[BETAS:.*]] = gdn_tile.load %[[BETA]][%c0] dims [0] : {{.*}}, vector<1x16xf32>
// CHECK: %[[MEASURED:.*]] = arith.mulf %[[BETAS]]
// CHECK: %[[SIZE:.*]] = math.absf %[[X]]#0
// CHECK: %[[OTHER:.*]] = vector.broadcast %[[MEASURED]]
// CHECK: %[[BELOW:.*]] = arith.select %[[STRICT]], %[[SIZE]], %[[OTHER]]
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[BELOW]]
// CHECK: %[[SPLIT0:.*]] = gdn_tile.any %[[LARGE]] : vector<16x16xi1> to i1
// Split are the rows from the first such one on: what a row's tokens say is read back as a column.
// CHECK: scf.if %[[SPLIT0]] {
// CHECK-NEXT: %[[ANY:.*]] = gdn_tile.any %[[LARGE]] : vector<16x16xi1> to vector<1x16xi1>
// CHECK: %[[ONES:.*]] = arith.select %[[ANY]]
// CHECK-NEXT: gdn_tile.store %[[ONES]], %[[MARKS]][%c0]
// CHECK-NEXT: %[[AGAIN:.*]] = gdn_tile.load %[[MARKS]][%c0] dims [0] : {{.*}}, vector<16x1xf32>
// CHECK: %[[FOUND:.*]] = arith.andi %[[MASK]]
// CHECK: gdn_tile.any %[[FOUND]] : vector<16x16xi1> to vector<1x16xi1>
// CHECK: gdn_tile.store %{{.*}}, %[[MARKS]][%c0]
// CHECK-NEXT: }
// Row 1: Z01 = (Z00 -beta) M10^T D1^T.
// CHECK: %[[M10:.*]] = gdn_tile.load %[[M]][%c16, %c0]
// CHECK: %[[Y:.*]] = gdn_tile.warp_mma %[[LEFT0]], %[[M10]] tf32
// CHECK: %[[Z01:.*]] = gdn_tile.warp_mma %[[Y]], %[[X]]#3 tf32
// Block (1, 1) behind (1, 0); all rows are split behind one of row 0.
// CHECK-NOT: scf.if
// CHECK: gdn_tile.store_block %{{.*}}, %[[SCORES]][%{{.*}}, %{{.*}}, %c24, %c0] :
// CHECK: arith.mulf %[[Z01]]
// CHECK: gdn_tile.store_block %{{.*}}, %[[INVERSE]][%{{.*}}, %{{.*}}, %c0, %c24, %c0] :
// CHECK-NOT: scf.if
// CHECK: gdn_tile.store_block %{{.*}}, %[[SCORES]][%{{.*}}, %{{.*}}, %c56, %c0] {diagonal}
// CHECK: gdn_tile.store_block %{{.*}}, %[[INVERSE]][%{{.*}}, %{{.*}}, %c0, %c56, %c0] {diagonal}
// CHECK: %[[ANY1:.*]] = gdn_tile.any
// CHECK-NEXT: %[[SPLIT1:.*]] = arith.ori %[[SPLIT0]], %[[ANY1]]
// CHECK-NEXT: scf.if %[[SPLIT1]] {
// CHECK: %[[BEFORE:.*]] = arith.select %[[SPLIT0]]
// CHECK: vector.broadcast %[[BEFORE]]
// CHECK: gdn_tile.store %{{.*}}, %[[MARKS]][%c16]
// CHECK-NEXT: }
// The number of split rows, if there is one, and second parts: what the first ones lack of an inverse once more, more
// exact; zeros for the rows of blocks without a split one. And beta.
// CHECK: gdn_tile.store %{{.*}}, %[[FLAGS]][%c0] dims [0] : vector<1x8xf32>
// CHECK: scf.if %[[SPLIT1]] {
// CHECK: gdn_tile.sum
// CHECK: %[[OWN0:.*]] = arith.select %[[SPLIT0]]
// CHECK: %[[OWN1:.*]] = gdn_tile.sum
// CHECK-NEXT: %[[COUNT:.*]] = arith.addf %{{.*}}, %[[OWN1]]
// CHECK: %[[SPREADCOUNT:.*]] = vector.broadcast %[[COUNT]]
// CHECK: gdn_tile.store %[[SPREADCOUNT]], %[[FLAGS]][%c0]
// CHECK: %[[EXACT:.*]]:4 = gdn_tile.block_inverse %[[M]], %[[BETA]] in %[[D]] bf16x3
// CHECK: scf.if %[[SPLIT0]] {
// CHECK: math.exp2
// CHECK: %[[N0:.*]] = arith.select %[[STRICT]]
// CHECK: %[[HIGH:.*]] = gdn_tile.load_block %[[INVERSE]][%{{.*}}, %{{.*}}, %c0, %c0, %c0] {diagonal}
// CHECK-DAG: %[[BACK:.*]] = arith.extf %[[HIGH]]
// CHECK-DAG: %[[ERROR:.*]] = arith.subf %[[N0]], %[[BACK]]
// CHECK-DAG: %[[ROWS:.*]] = gdn_tile.load %[[MARKS]][%c0] dims [0] : {{.*}}, vector<1x16xf32>
// CHECK-DAG: %[[ARE:.*]] = arith.cmpf ogt, %[[ROWS]]
// CHECK-DAG: %[[OWN:.*]] = vector.broadcast %[[ARE]]
// CHECK: %[[LOW:.*]] = arith.select %[[OWN]], %[[ERROR]]
// CHECK: %[[LOW16:.*]] = arith.truncf %[[LOW]]
// CHECK: gdn_tile.store_block %[[LOW16]], %[[INVERSE]][%{{.*}}, %{{.*}}, %c1, %c0, %c0] {diagonal}
// CHECK-NEXT: } else {
// CHECK-NEXT: gdn_tile.store_block %[[ZERO:.*]], %[[INVERSE]][%{{.*}}, %{{.*}}, %c1, %c0, %c0] {diagonal}
// CHECK-NEXT: }
// CHECK: gdn_tile.warp_mma %{{.*}}, %{{.*}} bf16x3
// CHECK: gdn_tile.warp_mma %{{.*}}, %[[EXACT]]#3 bf16x3
// CHECK-NOT: scf.if
// CHECK: gdn_tile.load_block %[[INVERSE]][%{{.*}}, %{{.*}}, %c0, %c24, %c0] :
// CHECK: gdn_tile.store_block %{{.*}}, %[[INVERSE]][%{{.*}}, %{{.*}}, %c1, %c24, %c0] :
// CHECK: gdn_tile.store_block %{{.*}}, %[[INVERSE]][%{{.*}}, %{{.*}}, %c1, %c56, %c0] {diagonal}
// CHECK: gdn_tile.copy_out %[[BETA]] to %{{.*}}[%{{.*}}, %{{.*}}, %c96]
// CHECK: gdn_tile.copy_out %[[FLAGS]] to %{{.*}}[%{{.*}}, %{{.*}}, %c128]
// What the lanes exchange lives until the second inverse, and no longer.
// CHECK-NEXT: gdn_tile.free %[[MARKS]]
// CHECK-NEXT: gdn_tile.free %[[FLAGS]]
// CHECK-NEXT: gdn_tile.free %[[D]]
// CHECK-NOT: gdn_tile.copy_out
// CHECK-LABEL: func @pair_scan
// CHECK-LABEL: func @pair(
// Two chunks of two key heads.
// CHECK: gdn_tile.launch @pair_prepare grid(%c4)
func.func @pair(
    %q: memref<1x64x2x64xbf16>, %k: memref<1x64x2x64xbf16>, %v: memref<1x64x4x64xbf16>,
    %g: memref<1x64x4xf32>, %b: memref<1x64x4xf32>, %o: memref<1x64x4x64xbf16>, %s: memref<1x4x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x64x2x64xbf16>, memref<1x64x2x64xbf16>, memref<1x64x4x64xbf16>)
      gate(%g : memref<1x64x4xf32>) beta(%b : memref<1x64x4xf32>)
      outs(%o, %s : memref<1x64x4x64xbf16>, memref<1x4x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 2>}
  return
}

// -----

// More value heads than warps: two blocks for a key head, of which the second has one head less. Its copies
// stay inside the arrays.

// CHECK-LABEL: func @three_prepare
// CHECK-DAG: %[[IN_SLOT:.*]] = arith.remui %{{.*}}, %c4
// CHECK-DAG: %[[PART:.*]] = arith.remui %[[IN_SLOT]], %c2
// CHECK-DAG: %[[SKIPPED:.*]] = arith.muli %[[PART]], %c2
// CHECK-DAG: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[SKIPPED]]
// CHECK: %[[LEFT:.*]] = arith.subi %c3
// CHECK: %[[COUNT:.*]] = arith.minsi %[[LEFT]], %c2
// CHECK: gdn_tile.copy_in %{{.*}}[%{{.*}}, %[[FIRST]]] dims [0, 1] valid(%{{.*}}, %[[COUNT]])
// CHECK: gdn_tile.each_warp (%{{.*}}) in (%[[COUNT]])
// Linear attention: no gates, no inverse.
// CHECK-LABEL: func @plain_prepare
// CHECK-NOT: math.exp2
// CHECK-NOT: gdn_tile.block_inverse
// CHECK-NOT: gdn_tile.warp_mma
// CHECK: gdn_tile.each_warp
// CHECK-NOT: math.exp2
// CHECK-NOT: gdn_tile.block_inverse
// CHECK-NOT: gdn_tile.warp_mma
// CHECK-LABEL: func @plain_scan
func.func @three(
    %q: memref<1x64x2x64xbf16>, %k: memref<1x64x2x64xbf16>, %v: memref<1x64x6x64xbf16>,
    %g: memref<1x64x6xf32>, %b: memref<1x64x6xf32>, %o: memref<1x64x6x64xbf16>, %s: memref<1x6x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x64x2x64xbf16>, memref<1x64x2x64xbf16>, memref<1x64x6x64xbf16>)
      gate(%g : memref<1x64x6xf32>) beta(%b : memref<1x64x6xf32>)
      outs(%o, %s : memref<1x64x6x64xbf16>, memref<1x6x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 2>}
  return
}

func.func @plain(
    %q: memref<1x64x2x64xbf16>, %k: memref<1x64x2x64xbf16>, %v: memref<1x64x2x64xbf16>,
    %o: memref<1x64x2x64xbf16>, %s: memref<1x2x64x64xf32>) {
  gdn.recurrence ins(%q, %k, %v : memref<1x64x2x64xbf16>, memref<1x64x2x64xbf16>, memref<1x64x2x64xbf16>)
      outs(%o, %s : memref<1x64x2x64xbf16>, memref<1x2x64x64xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>}
  return
}
