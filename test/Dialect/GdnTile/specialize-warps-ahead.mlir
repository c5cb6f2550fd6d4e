// RUN: gdn-opt %s --pass-pipeline='builtin.module(func.func(gdn-tile-specialize-warps))' --split-input-file | FileCheck %s

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>
// What runs ahead gets a role of two teams that take turns, each with scratch tiles of its own. Tiles that the same roles read
// have a ring together: k is read ahead only, v by the math role only, so that has fewer stages. What runs ahead is
// stored in a stage that is acquired late, and committed at the end; the refinement with one of them decides by itself. The math
// role waits for each stage where it needs it first.

// CHECK-LABEL: func @ahead
// CHECK: %[[K:.*]] = memref.alloc() : memref<3x64x64xbf16
// CHECK: %[[G:.*]] = memref.alloc() : memref<3x64xf32
// CHECK: %[[READ:.*]] = gdn_tile.ring(%[[K]], %[[G]] : {{.*}}) producers(3) consumers(4) : <3>
// CHECK: %[[V:.*]] = memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[VALUES:.*]] = gdn_tile.ring(%[[V]] : {{.*}}) producers(3) consumers(4) : <2>
// CHECK: %[[T:.*]] = memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[F:.*]] = memref.alloc() : memref<2x136xf32
// CHECK: %[[LOW:.*]] = memref.alloc() : memref<2x64x64xbf16
// CHECK: %[[MADE:.*]] = gdn_tile.ring(%[[T]], %[[F]], %[[LOW]] : {{.*}}) producers(4) consumers(4) : <2>
// CHECK: %[[OUT:.*]] = gdn_tile.ring(%{{.*}} : memref<1x64x64xbf16, {{.*}}>) producers(4) consumers(1) : <1>
// CHECK: gdn_tile.role "math" warps(4) registers(240) {
// CHECK: scf.for %[[I:.*]] = %c0 to %arg5 step %c1
// CHECK-NOT: gdn_tile.ring_wait
// CHECK-NOT: gdn_tile.ahead
// CHECK: gdn_tile.ring_wait %[[MADE]][%[[I]]]
// CHECK: %[[FACTORS:.*]] = gdn_tile.stage %[[F]]
// CHECK: gdn_tile.load %[[FACTORS]]
// CHECK: gdn_tile.mma
// CHECK-NEXT: gdn_tile.ring_wait %[[VALUES]][%[[I]]]
// CHECK: %[[VT:.*]] = gdn_tile.stage %[[V]]
// CHECK-NEXT: gdn_tile.refine if {{.*}} state(%{{.*}}, %[[VT]])
// CHECK: gdn_tile.ring_release %[[VALUES]][%[[I]]]
// CHECK-NEXT: gdn_tile.ring_release %[[MADE]][%[[I]]]
// CHECK: gdn_tile.role "ahead" warps(8) teams(2) registers(120) {
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01>
// CHECK: %[[TEAM:.*]] = gdn_tile.team
// CHECK-NEXT: %[[TEAMS:.*]] = arith.constant 2 : index
// CHECK-NEXT: gdn_tile.await_launch
// CHECK-NEXT: scf.for %[[I:.*]] = %[[TEAM]] to %arg5 step %[[TEAMS]] {
// CHECK-NEXT: gdn_tile.ring_wait %[[READ]][%[[I]]]
// CHECK: %[[SCRATCH:.*]] = memref.alloc() : memref<64x64xf32
// CHECK: gdn_tile.mma
// CHECK: arith.mulf %{{.*}}, %[[HALF]]
// CHECK: gdn_tile.store %{{.*}}, %[[SCRATCH]]
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[MADE]][%[[I]]]
// CHECK: gdn_tile.store
// CHECK: gdn_tile.load
// CHECK-NEXT: gdn_tile.ring_release %[[READ]][%[[I]]]
// CHECK: gdn_tile.store
// CHECK: gdn_tile.ring_commit %[[SLOT]]
// CHECK-NEXT: }
// CHECK-NOT: gdn_tile.role "ahead
// CHECK: gdn_tile.role "load" warps(3) registers(24) {
// CHECK: gdn_tile.ring_acquire %[[READ]]
// CHECK-COUNT-2: gdn_tile.copy_in
// CHECK: gdn_tile.ring_commit
// CHECK: gdn_tile.ring_acquire %[[VALUES]]
// CHECK: gdn_tile.copy_in
// CHECK: gdn_tile.role "store" warps(1) registers(24) {
func.func @ahead(%k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %g: memref<?xf32>, %s: memref<64x64xf32>, %o: memref<?x64xbf16>, %chunks: index)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<1x1xf32>
  %half = arith.constant dense<0.5> : vector<64x64xf32>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %vt = memref.alloc() : memref<64x64xbf16, #shared>
  %gt = memref.alloc() : memref<64xf32, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %low = memref.alloc() : memref<64x64xbf16, #shared>
  %f = memref.alloc() : memref<136xf32, #shared>
  %ot = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  gdn_tile.await_launch
  %final = scf.for %i = %c0 to %chunks step %c1 iter_args(%state = %init) -> vector<64x64xf32> {
    %row = arith.muli %i, %c64 : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %v[%row, %c0] dims [0, 1] to %vt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %g[%row] dims [0] to %gt : memref<?xf32> to memref<64xf32, #shared>
    gdn_tile.ahead teams(2) {
      %scratch = memref.alloc() : memref<64x64xf32, #shared>
      %a = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      %p = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      %h = arith.mulf %p, %half : vector<64x64xf32>
      gdn_tile.store %h, %scratch[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
      %x = gdn_tile.load %scratch[%c0, %c0] dims [1, 0] : memref<64x64xf32, #shared>, vector<64x64xf32>
      %gates = gdn_tile.load %gt[%c0] dims [0] : memref<64xf32, #shared>, vector<1x64xf32>
      %all = vector.broadcast %gates : vector<1x64xf32> to vector<64x64xf32>
      %y = arith.mulf %x, %all : vector<64x64xf32>
      %r = arith.truncf %y : vector<64x64xf32> to vector<64x64xbf16>
      gdn_tile.store %r, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
      %one = gdn_tile.load %gt[%c0] dims [0] : memref<64xf32, #shared>, vector<1x1xf32>
      gdn_tile.store %one, %f[%c0] dims [0] : vector<1x1xf32>, memref<136xf32, #shared>
      gdn_tile.store %r, %low[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    %flag = gdn_tile.load %f[%c0] dims [0] : memref<136xf32, #shared>, vector<1x1xf32>
    %is = arith.cmpf ogt, %flag, %zero : vector<1x1xf32>
    %any = gdn_tile.any %is : vector<1x1xi1> to i1
    %s16 = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %s16, %t {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %w:2 = scf.if %any -> (vector<64x64xf32>, vector<64x64xf32>) {
      %m:2 = gdn_tile.refine a(%s16, %t, %low) acc(%u) state(%state, %vt) factors(%f) count 128 scale 64 : (vector<64x64xbf16>, memref<64x64xbf16, #shared>, memref<64x64xbf16, #shared>, vector<64x64xf32>, vector<64x64xf32>, memref<64x64xbf16, #shared>, memref<136xf32, #shared>) -> (vector<64x64xf32>, vector<64x64xf32>)
      scf.yield %m#0, %m#1 : vector<64x64xf32>, vector<64x64xf32>
    } else {
      scf.yield %u, %state : vector<64x64xf32>, vector<64x64xf32>
    }
    %w16 = arith.truncf %w#0 : vector<64x64xf32> to vector<64x64xbf16>
    %next = gdn_tile.mma %w16, %vt acc(%w#1 : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %w16, %ot[%c0, %c0] dims [1, 0] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%row, %c0] dims [0, 1] : memref<64x64xbf16, #shared> to memref<?x64xbf16>
    scf.yield %next : vector<64x64xf32>
  } {gdn_tile.stages = 3 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// The rest of the iteration writes the tile too: what runs ahead stays in its place.

// CHECK-LABEL: func @written
// CHECK: gdn_tile.role "math" warps(4) {
// CHECK: gdn_tile.ahead
// CHECK-NOT: gdn_tile.role "ahead
func.func @written(%k: memref<?x64xbf16>, %s: memref<64x64xf32>, %chunks: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %final = scf.for %i = %c0 to %chunks step %c1 iter_args(%state = %init) -> vector<64x64xf32> {
    %row = arith.muli %i, %c64 : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.ahead teams(1) {
      %a = gdn_tile.load %kt[%c0, %c0] dims [1, 0] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      gdn_tile.store %a, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    %s16 = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %s16, %t acc(%state : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    gdn_tile.store %s16, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    scf.yield %u : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>

// A tile that math reads too has consumers in both roles, one at a time of those that take turns. Sums of one warp are
// no op of all warps. A tile's life does not end in a role: another role's bytes would lie there. Of a loop that starts
// anywhere with any step a team begins with the iteration of its number.

// CHECK-LABEL: func @both
// CHECK: gdn_tile.ring(%{{.*}} : memref<2x64x64xbf16, {{.*}}>) producers({{[34]}}) consumers(8) : <2>
// CHECK: gdn_tile.role "math"
// CHECK: gdn_tile.role "ahead" warps(8) teams(2)
// CHECK: %[[TEAM:.*]] = gdn_tile.team
// CHECK: %[[OFFSET:.*]] = arith.muli %[[TEAM]], %arg4
// CHECK: %[[FIRST:.*]] = arith.addi %arg3, %[[OFFSET]]
// CHECK: %[[STEP:.*]] = arith.muli %arg4, %c2
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %arg2 step %[[STEP]] {
// CHECK: gdn_tile.cumsum
// CHECK-NOT: gdn_tile.free
// CHECK: gdn_tile.role "load"
func.func @both(%k: memref<?x64xbf16>, %s: memref<64x64xf32>, %chunks: index, %first: index, %step: index)
    attributes {gdn_tile.kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : vector<1x64xf32>
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<64x64xf32>, vector<64x64xf32>
  %final = scf.for %i = %first to %chunks step %step iter_args(%state = %init) -> vector<64x64xf32> {
    %row = arith.muli %i, %c64 : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.ahead teams(2) {
      %sums = memref.alloc() : memref<64xf32, #shared>
      gdn_tile.each_warp (%w) in (%c1) {
        gdn_tile.store %one, %sums[%c0] dims [0] : vector<1x64xf32>, memref<64xf32, #shared>
        gdn_tile.cumsum %sums : memref<64xf32, #shared>
      }
      %a = gdn_tile.load %kt[%c0, %c0] dims [1, 0] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      gdn_tile.free %sums : memref<64xf32, #shared>
      gdn_tile.store %a, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    %s16 = arith.truncf %state : vector<64x64xf32> to vector<64x64xbf16>
    %u = gdn_tile.mma %s16, %t acc(%state : vector<64x64xf32>) {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    %u16 = arith.truncf %u : vector<64x64xf32> to vector<64x64xbf16>
    %v = gdn_tile.mma %u16, %kt acc(%u : vector<64x64xf32>) : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
    scf.yield %v : vector<64x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 8, layout = accumulator>

// Beside two warpgroups one runs ahead, whatever the kernel's warps: 12 warps read k, 4 make what 8 read. All 512 threads
// together have 65536 registers.

// CHECK-LABEL: func @wide
// CHECK: gdn_tile.ring(%{{.*}} : memref<2x64x64xbf16, {{.*}}>) producers(3) consumers(12) : <2>
// CHECK: gdn_tile.ring(%{{.*}} : memref<2x64x64xbf16, {{.*}}>) producers(4) consumers(8) : <2>
// CHECK: gdn_tile.role "math" warps(8) registers(208) {
// CHECK: gdn_tile.role "ahead" warps(4) registers(64) {
// CHECK-NOT: gdn_tile.team
// CHECK: gdn_tile.mma {{.*}} -> vector<64x64xf32>
// CHECK: gdn_tile.role "load" warps(3) registers(32) {
// CHECK: gdn_tile.role "store" warps(1) registers(32) {
func.func @wide(%k: memref<?x64xbf16>, %s: memref<128x64xf32>, %o: memref<?x128xbf16>, %chunks: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %t = memref.alloc() : memref<64x64xbf16, #shared>
  %ot = memref.alloc() : memref<64x128xbf16, #shared>
  %init = gdn_tile.load %s[%c0, %c0] dims [0, 1] : memref<128x64xf32>, vector<128x64xf32>
  %final = scf.for %i = %c0 to %chunks step %c1 iter_args(%state = %init) -> vector<128x64xf32> {
    %row = arith.muli %i, %c64 : index
    gdn_tile.copy_in %k[%row, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.ahead teams(1) {
      %a = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      %p = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      %r = arith.truncf %p : vector<64x64xf32> to vector<64x64xbf16>
      gdn_tile.store %r, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    %s16 = arith.truncf %state : vector<128x64xf32> to vector<128x64xbf16>
    %u = gdn_tile.mma %s16, %t {transpose_b} : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
    %u16 = arith.truncf %u : vector<128x64xf32> to vector<128x64xbf16>
    %next = gdn_tile.mma %u16, %kt acc(%state : vector<128x64xf32>) : vector<128x64xbf16>, memref<64x64xbf16, #shared> -> vector<128x64xf32>
    gdn_tile.store %u16, %ot[%c0, %c0] dims [1, 0] : vector<128x64xbf16>, memref<64x128xbf16, #shared>
    gdn_tile.copy_out %ot to %o[%row, %c0] dims [0, 1] : memref<64x128xbf16, #shared> to memref<?x128xbf16>
    scf.yield %next : vector<128x64xf32>
  } {gdn_tile.stages = 2 : i64}
  gdn_tile.store %final, %s[%c0, %c0] dims [0, 1] : vector<128x64xf32>, memref<128x64xf32>
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// What does not run ahead is of single warps, which take turns: the warpgroup that runs ahead comes first, and each of the others finds
// its iterations by its number. Of what it makes there are as many stages as warps take turns, of what only these read so many
// more as are copied ahead. The rows of an iteration are looked for by the role that copies.

// CHECK-LABEL: func @teams
// CHECK: %[[KEYS:.*]] = gdn_tile.ring(%{{.*}} : memref<3x64x64xbf16, {{.*}}>) producers(3) consumers(4) : <3>
// CHECK: %[[GATES:.*]] = gdn_tile.ring(%{{.*}} : memref<8x64xf32, {{.*}}>) producers(3) consumers(1) : <8>
// CHECK: %[[MADE:.*]] = gdn_tile.ring(%{{.*}} : memref<5x64x64xf32, {{.*}}>) producers(4) consumers(1) : <5>
// CHECK: gdn_tile.roles {
// CHECK-NEXT: gdn_tile.role "ahead" warps(4) {
// CHECK: scf.for %[[I:.*]] = %c0 to %arg4 step %c1 {
// CHECK-NOT: gdn_tile.find_sequence
// CHECK: gdn_tile.ring_wait %[[KEYS]][%[[I]]]
// CHECK: gdn_tile.mma
// CHECK: gdn_tile.ring_release %[[KEYS]][%[[I]]]
// CHECK: %[[SLOT:.*]] = gdn_tile.ring_acquire %[[MADE]][%[[I]]]
// CHECK: gdn_tile.ring_commit %[[SLOT]]
// CHECK: gdn_tile.role "math" warps(5) teams(5) {
// CHECK: %[[TEAM:.*]] = gdn_tile.team
// CHECK-NEXT: %[[FIVE:.*]] = arith.constant 5 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[TEAM]] to %arg4 step %[[FIVE]] {
// CHECK-DAG: gdn_tile.ring_wait %[[GATES]][%[[I]]]
// CHECK-DAG: gdn_tile.ring_wait %[[MADE]][%[[I]]]
// CHECK: gdn_tile.each_warp
// CHECK: gdn_tile.ring_release %[[GATES]][%[[I]]]
// CHECK-NEXT: gdn_tile.ring_release %[[MADE]][%[[I]]]
// CHECK-NEXT: }
// CHECK-NOT: gdn_tile.teams
// CHECK: gdn_tile.role "load" warps(3) {
// CHECK: scf.for
// CHECK: gdn_tile.find_sequence
// CHECK: gdn_tile.ring_acquire %[[KEYS]]
// CHECK: gdn_tile.ring_acquire %[[GATES]]
func.func @teams(%k: memref<?x64xbf16>, %g: memref<?xf32>, %at: memref<?xi32>, %o: memref<?x64xf32>, %n: index)
    attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %gt = memref.alloc() : memref<64xf32, #shared>
  %m = memref.alloc() : memref<64x64xf32, #shared>
  scf.for %i = %c0 to %n step %c1 {
    %s = gdn_tile.find_sequence %i in %at count %c2 chunk 64 : memref<?xi32>
    gdn_tile.copy_in %k[%s, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.copy_in %g[%s] dims [0] to %gt : memref<?xf32> to memref<64xf32, #shared>
    gdn_tile.ahead teams(1) {
      %a = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      %p = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      gdn_tile.store %p, %m[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    }
    gdn_tile.each_warp (%w) in (%c1) {
      %x = gdn_tile.load %m[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<16x16xf32>
      %f = gdn_tile.load %gt[%c0] dims [0] : memref<64xf32, #shared>, vector<1x16xf32>
      %fs = vector.broadcast %f : vector<1x16xf32> to vector<16x16xf32>
      %y = arith.mulf %x, %fs : vector<16x16xf32>
      gdn_tile.store %y, %o[%i, %c0] dims [0, 1] : vector<16x16xf32>, memref<?x64xf32>
    }
  } {gdn_tile.stages = 3 : i64, gdn_tile.teams = 5 : i64}
  return
}

// -----

#shared = #gpu.address_space<workgroup>
#kernel = #gdn_tile.kernel<warps = 4, layout = accumulator>

// A value that goes from iteration to iteration leaves no turns to take.

// CHECK-LABEL: func @no_turns
// CHECK-NOT: gdn_tile.roles
func.func @no_turns(%k: memref<?x64xbf16>, %n: index) attributes {gdn_tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kt = memref.alloc() : memref<64x64xbf16, #shared>
  %m = memref.alloc() : memref<64x64xf32, #shared>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> index {
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %kt : memref<?x64xbf16> to memref<64x64xbf16, #shared>
    gdn_tile.ahead teams(1) {
      %a = gdn_tile.load %kt[%c0, %c0] dims [0, 1] : memref<64x64xbf16, #shared>, vector<64x64xbf16>
      %p = gdn_tile.mma %a, %kt {transpose_b} : vector<64x64xbf16>, memref<64x64xbf16, #shared> -> vector<64x64xf32>
      gdn_tile.store %p, %m[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<64x64xf32, #shared>
    }
    gdn_tile.each_warp (%w) in (%c1) {
      %x = gdn_tile.load %m[%c0, %c0] dims [0, 1] : memref<64x64xf32, #shared>, vector<16x16xf32>
      gdn_tile.store %x, %m[%c0, %c0] dims [0, 1] : vector<16x16xf32>, memref<64x64xf32, #shared>
    }
    %next = arith.addi %sum, %i : index
    scf.yield %next : index
  } {gdn_tile.stages = 3 : i64, gdn_tile.teams = 5 : i64}
  return
}
