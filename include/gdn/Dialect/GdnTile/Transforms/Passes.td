//===- Passes.td - gdn_tile passes -------------------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GdnTileBatchCopiesPass
    : Pass<"gdn-tile-batch-copies", "::mlir::func::FuncOp"> {
  let summary = "let neighbouring copies into shared memory run at once";
  let description = [{
    Before: a tile program with synchronous `gdn_tile.copy_in` ops, each of which waits
    for global memory. After: two or more of them that follow one another, with nothing
    but pure ops and allocations between, are asynchronous, joined, and waited for once
    behind the last. Copies that convert elements stay synchronous, but do not end a row
    of copies.

    ```mlir
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %a : ...
    gdn_tile.copy_in %q[%i, %c0] dims [0, 1] to %b : ...
    ```

    becomes

    ```mlir
    %0 = gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %a : ... -> !gdn_tile.token
    %1 = gdn_tile.copy_in %q[%i, %c0] dims [0, 1] to %b : ... -> !gdn_tile.token
    %2 = gdn_tile.join %0, %1
    gdn_tile.wait %2
    ```
  }];
  let dependentDialects = ["::mlir::gdn_tile::GdnTileDialect"];
}

def GdnTileFormTensorMapsPass
    : Pass<"gdn-tile-form-tensor-maps", "::mlir::ModuleOp"> {
  let summary = "let the copy engine (TMA) move the tiles of rings";
  let description = [{
    Before: tile programs with roles, and their launches. After: copies that fill the slot
    of a ring, and copies to global memory inside of a role, name a tensor map if one
    describes them. Each map is an argument of the tile program, and each launch makes it
    from the memref that it passes. Functions without roles stay as they are.

    A copy qualifies if its memref is an argument of the tile program,
    `!gdn_tile.tensor_map` takes its types and dims, and its tile may be valid as a
    whole. Copies with the same memref, dims and tile share a map. Other copies
    stay copies of the role's threads.

    ```mlir
    gdn_tile.copy_in %k[%i, %h, %c0] dims [0, 2] to %tile signal(%slot) : ...
    gdn_tile.launch @scan grid(%n) (%x : memref<?x16x128xbf16>)
    ```

    becomes

    ```mlir
    gdn_tile.copy_in %k[%i, %h, %c0] dims [0, 2] to %tile map(%map : !gdn_tile.tensor_map<...>) signal(%slot) : ...
    %map = gdn_tile.make_tensor_map %x : !gdn_tile.tensor_map<memref<?x16x128xbf16>, dims = [0, 2], box = [64, 128]>
    gdn_tile.launch @scan grid(%n) (%x, %map : memref<?x16x128xbf16>, !gdn_tile.tensor_map<...>)
    ```
  }];
  let dependentDialects = ["::mlir::gdn_tile::GdnTileDialect"];
}

def GdnTileInsertBarriersPass
    : Pass<"gdn-tile-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "insert the barriers that shared memory needs";
  let description = [{
    Before: tile programs without barriers, synchronous or pipelined. After: the same
    with `gdn_tile.barrier` where shared memory is read behind a write, written
    behind a read or written behind a write since the last barrier. Any two
    accesses may be of different threads. Functions that are no tile programs stay as they
    are.

    * A barrier stands as late as possible, in front of the op that needs it;
      one that only the first iteration of a loop needs stands in front of
      the loop. The state at the head of a loop is that of its entry joined with that of its end.
    * An asynchronous copy needs its tile free of readers when it is issued and
      has written it at the `gdn_tile.wait`; readers need a barrier behind the wait.
    * All stages of an allocation count as one tile unless their numbers are different
      constants.
    * Different allocations are different memory: whoever lays two of them over
      each other has to do it before this pass.
    * Between roles the ops of a ring order its tiles; between the warps of one
      role barriers do, which are those of its warps. All warps of a block meet
      where a ring is made.
    * Global memory is not looked at: a tile program does not read what another thread
      of the block wrote there.

    Conditions of `scf.if` and `scf.while` and bounds of `scf.for` are the same in all threads of a
    block, so barriers may stand inside.

    Errors: shared memory that is not a `memref.alloc` of the function; an op with unknown
    effects on shared memory.

    ```mlir
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %tile : ...
    %r = gdn_tile.mma %a, %tile : ...
    ```

    becomes

    ```mlir
    gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %tile : ...
    gdn_tile.barrier
    %r = gdn_tile.mma %a, %tile : ...
    ```
  }];
  let dependentDialects = ["::mlir::gdn_tile::GdnTileDialect"];
}

def GdnTilePipelineCopiesPass
    : Pass<"gdn-tile-pipeline-copies", "::mlir::func::FuncOp"> {
  let summary = "copy the tiles of later iterations while this one computes";
  let description = [{
    Before: `scf.for` with `gdn_tile.stages = n`, n >= 2, and synchronous copies in its
    body. After: the copies are asynchronous and run n - 1 iterations ahead, into n
    buffers per tile; the attribute is gone. A group of copies that would
    belong to an iteration behind the last has no valid rows, so loops of any
    length, also of none, read nothing that they did not read before.

    Each iteration waits for its group, issues the group n - 1 iterations
    ahead into the buffers that the previous iteration has read, and then does its work. So
    `gdn-tile-insert-barriers` needs one barrier for all of them.

    A copy qualifies if

    * it stands at the top level of the loop and does not convert elements;
    * its indices and bounds follow from the induction variable and from values outside, by
      ops without side effects and `memref.load`s from memory that the loop
      does not write;
    * the loop does not write its source;
    * its tile is a `memref.alloc` that no other copy fills and that is used only behind
      the copy in the same iteration.

    Other copies stay synchronous. A remark tells if no copy of a loop qualifies.

    ```mlir
    scf.for %i = %c0 to %n step %c64 {
      gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %tile : ...
      %r = gdn_tile.mma %a, %tile : ...
    } {gdn_tile.stages = 2}
    ```

    becomes

    ```mlir
    %t0 = gdn_tile.copy_in %k[%c0, %c0] ... valid(...) to %stage0 : ... -> !gdn_tile.token
    %g0 = gdn_tile.join %t0
    %e:2 = scf.for %i = %c0 to %n step %c64 iter_args(%g = %g0, %s = %c0) {
      gdn_tile.wait %g
      %next = arith.addi %i, %c64
      %t = gdn_tile.copy_in %k[%next, %c0] ... valid(...) to %other : ... -> !gdn_tile.token
      %h = gdn_tile.join %t
      %tile = gdn_tile.stage %buffers[%s]
      %r = gdn_tile.mma %a, %tile : ...
      scf.yield %h, %u
    }
    gdn_tile.wait %e#0
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gdn_tile::GdnTileDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def GdnTileSpecializeWarpsPass
    : Pass<"gdn-tile-specialize-warps", "::mlir::func::FuncOp"> {
  let summary = "give the copies of a loop, and what runs ahead, warps of their own";
  let description = [{
    Before: a synchronous tile program whose only loop with `gdn_tile.stages = n`, n >= 2,
    or the second of two, stands in the function's body. After: three roles. *load* makes the copies into
    shared memory, up to n iterations ahead, *math* does everything else, and *store*
    makes the copies from shared memory. Each waits for the launch in front where the program
    did (`gdn_tile.await_launch`). What stands in front of the loop and is numbers is of all; where it waits for one that is read from memory it
    moves behind the rings, which so are made meanwhile. They exchange the tiles through two rings: one of
    n stages for all tiles that load fills, one of 2 stages for those that math fills.
    Loops of any length, also of none.

    Copies into shared memory qualify as for `gdn-tile-pipeline-copies`. A copy to global
    memory qualifies if its tile is filled by one `gdn_tile.store` in front of it in the same
    iteration and its indices and bounds follow from the induction variable and from
    values outside. Others stay in the math role.

    A branch whose only ops are a copy and a `gdn_tile.refine` with its tile, on an element of a
    tile that another of the copies fills (`gdn_tile.any` of a comparison), gets a ring of
    one stage: *load* reads the element where that copy does, and the refinement takes the branch's condition.

    What a `gdn_tile.ahead` of the loop's body does gets a role of its own, too: *ahead*, of as many teams of
    four warps as it says, which take turns. Tiles that it reads are copied n iterations ahead,
    those that only math reads 2, and *math* waits for a stage where it uses it first; the tiles that it writes have a stage for each team, two at least, acquired in
    front of the first store. A branch that is one refinement with such a tile becomes a condition of it. What runs ahead
    stays in its place if the rest of the iteration writes its tiles, or if it needs what is no number.

    A loop with stages in front of that one counts from 0 by 1, and all of its copies qualify. *load* makes them, too:
    what products read has the loop's stages, what is only loaded has one, for which *math* waits in front of its first
    use. Behind it `gdn_tile.ring_drain` ends both rings, and the bytes of their tiles are those of all others.

    Programs without warpgroup products, with ops that need all warps (`cumsum`, `scores`,
    `tri_inverse`, sums over rows) or with no copy that qualifies stay as they are, for
    `gdn-tile-pipeline-copies`.

    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %init) {
      gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %tile : ...
      %t = gdn_tile.mma %a, %tile acc(%s : ...) : ...
      scf.yield %t
    } {gdn_tile.stages = 3}
    ```

    becomes

    ```mlir
    %ring = gdn_tile.ring(%buffers : ...) producers(3) consumers(4) : !gdn_tile.ring<3>
    gdn_tile.roles {
      gdn_tile.role "math" warps(4) {
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %init) {
          gdn_tile.ring_wait %ring[%i] : ...
          %tile = gdn_tile.stage %buffers[%stage] : ...
          %t = gdn_tile.mma %a, %tile acc(%s : ...) : ...
          gdn_tile.ring_release %ring[%i] : ...
          scf.yield %t
        }
      }
      gdn_tile.role "load" warps(3) {
        scf.for %i = %c0 to %n step %c1 {
          %slot = gdn_tile.ring_acquire %ring[%i] : ...
          %tile = gdn_tile.stage %buffers[%stage] : ...
          gdn_tile.copy_in %k[%i, %c0] dims [0, 1] to %tile signal(%slot) : ...
          gdn_tile.ring_commit %slot
        }
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gdn_tile::GdnTileDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def GdnTilePipelineProductsPass
    : Pass<"gdn-tile-pipeline-products", "::mlir::func::FuncOp"> {
  let summary = "merge the end of one iteration with the start of the next";
  let description = [{
    Before: a loop of step 1 that carries the result of a product which waits for other
    products of its iteration, without barriers and asynchronous copies. After: the first half
    of the first iteration in front of the loop, the second half of the last one behind it,
    and in it the second half of an iteration together with the first half of the next.

    The second half is what waits for the products in front of the carried one. The new
    loop runs, in this order,

    1. the products of the second half that are ready, with what they need,
    2. the first products of the next iteration, with what they need,
    3. what rounds the results of 1 and releases their stages,
    4. the other products of the first half, with what they need,
    5. the rest of the second half, which may have to wait for other warps, and
    6. the rest of the first half.

    So every product but the last ones runs beside others or beside arithmetic, and none is in
    flight over the back edge. Numbers, addresses and broadcasts are computed in both
    halves; fragments of the first half that the second one uses are carried, unless they
    would need more than 150 registers of a thread: such loops stay as they are, and so do
    those whose memory accesses forbid the new order, those of roles with less than 224 registers,
    and those with a `gdn_tile.ahead`. Loops of any length, also of none.

    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %init) {
      %w = gdn_tile.mma %a, %k {transpose_b} : ...          // %a = round(%s)
      %t = gdn_tile.mma %b, %k acc(%s : ...) : ...          // %b = round(%w)
      scf.yield %t
    }
    ```

    becomes

    ```mlir
    %r = scf.if %any {
      %w0 = gdn_tile.mma %a0, %k {transpose_b} : ...
      %l:2 = scf.for %i = %c0 to %last step %c1 iter_args(%w = %w0, %s = %init) {
        %t = gdn_tile.mma %b, %k acc(%s : ...) : ...
        %x = gdn_tile.mma %a, %k {transpose_b} : ...        // %a = round(%t)
        scf.yield %x, %t
      }
      %t = gdn_tile.mma %b, %k acc(%l#1 : ...) : ...        // %b = round(%l#0)
      scf.yield %t
    } else {
      scf.yield %init
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gdn_tile::GdnTileDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def GdnTileOverlapProductsPass
    : Pass<"gdn-tile-overlap-products", "::mlir::func::FuncOp"> {
  let summary = "let warpgroup products run while the warps compute";
  let description = [{
    Before: a tile program with barriers and synchronous `gdn_tile.mma`. After: each
    product that can run as warpgroup products is asynchronous. It is issued as
    early as its operands are there, and its `gdn_tile.mma_wait` stands in front of
    the first use of its fragment and lets the younger products run on. A
    product that continues the fragment of another takes it while it is pending.
    Asynchronous copies in front of the first products are issued behind them.

    Loads from shared memory that stand in the shadow of products are issued in front of
    these: they would queue behind the operands of the products. Not so in a role with less than
    224 registers: there loads and broadcasts stand where they are used, and all products of
    one left operand are waited for together, so that it is free. Where blocks share a
    multiprocessor, products stay as they are if the fragments of all of an IR block need more than
    three quarters of a thread's registers.

    Neither a product nor its wait crosses a `gdn_tile.barrier`, a `gdn_tile.wait` or
    an op with regions, and no wait crosses the `gdn_tile.ring_release` of the stage that its product reads: behind a barrier, products do not read what other warps
    write, and no product is in flight over a loop's back edge, where ptxas would
    serialise all of them.

    ```mlir
    %s = gdn_tile.mma %a, %k {transpose_b} : ...
    %w = arith.subf %v, %s : ...
    %o = gdn_tile.mma %a, %q {transpose_b} : ...
    ```

    becomes

    ```mlir
    %0 = gdn_tile.mma %a, %k {transpose_b} : ... -> !gdn_tile.pending<vector<64x64xf32>>
    %1 = gdn_tile.mma %a, %q {transpose_b} : ... -> !gdn_tile.pending<vector<64x64xf32>>
    %s = gdn_tile.mma_wait %0 {pending = 1} : ...
    %w = arith.subf %v, %s : ...
    ```
  }];
  let dependentDialects = ["::mlir::gdn_tile::GdnTileDialect"];
}

#endif // GDN_DIALECT_GDNTILE_TRANSFORMS_PASSES_TD
