//===- GdnTileRoleOps.td - warps with programs of their own -*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDNTILE_IR_GDNTILEROLEOPS_TD
#define GDN_DIALECT_GDNTILE_IR_GDNTILEROLEOPS_TD

def GdnTile_AheadOp : GdnTile_Op<"ahead", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"AheadEndOp">]> {
  let summary = "part of an iteration that other warps may run ahead of it";
  let description = [{
    Stands in the body of a loop and runs the region in each iteration. Nothing in it depends
    on what the loop carries: it reads tiles that copies of the iteration fill, and writes
    tiles that the rest of the iteration reads. Fragments are those of one warpgroup: 64 rows.

    `gdn-tile-specialize-warps` gives the region a role of `teams` warpgroups, which take
    turns: team t runs the iterations t, t + teams, ... and is as far ahead as the stages
    of the tiles reach. Without roles it is run in its place, in kernels of four warps and
    on the CPU.

    ```mlir
    gdn_tile.ahead teams(2) {
      %x = gdn_tile.load %k[%c0, %c0] dims [0, 1] : memref<64x128xbf16, #shared>, vector<64x128xbf16>
      ...
      gdn_tile.store %y, %t[%c0, %c0] dims [0, 1] : vector<64x64xbf16>, memref<64x64xbf16, #shared>
    }
    ```
  }];
  let arguments = (ins I64Attr:$teams);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`teams` `(` $teams `)` $body attr-dict";
  let hasVerifier = 1;
}

def GdnTile_AheadEndOp : GdnTile_Op<"ahead_end", [
    HasParent<"AheadOp">, Pure, Terminator]> {
  let summary = "end of the part that runs ahead";
  let assemblyFormat = "attr-dict";
}

def GdnTile_RolesOp : GdnTile_Op<"roles", [
    NoTerminator, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "warps of a block that run different programs at the same time";
  let description = [{
    Each `gdn_tile.role` in the region is the program of its own warps; the roles run
    side by side. The first role has the warps of the kernel attribute; the warps of the
    others follow in order. A role, or each of its teams, may hold fragments if it has as
    many warps as the first, or is a warpgroup, whose fragments have 64 rows, and if it fills
    warpgroups of the block. What stands in front of the op is run by all warps; behind it the block ends.

    `gdn_tile.barrier` in a role is a barrier of the warps of the role.

    ```mlir
    gdn_tile.roles {
      gdn_tile.role "math" warps(4) registers(240) { ... }
      gdn_tile.role "load" warps(4) registers(24) { ... }
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let extraClassDeclaration = [{
    /// Warps of all roles.
    int64_t getNumWarps();
    /// The first warp of a role.
    int64_t getFirstWarp(RoleOp role);
  }];
  let hasVerifier = 1;
}

def GdnTile_RoleOp : GdnTile_Op<"role", [
    HasParent<"RolesOp">, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"RoleEndOp">]> {
  let summary = "what the warps of one role do";
  let description = [{
    `registers` is the number of registers of a thread in the role (`setmaxnreg`), a
    multiple of 8 in 24..256, or absent. It belongs to whole warpgroups: if one
    role of a warpgroup (four warps, counted from the first) has it, all have the same.

    With `teams(n)` the warps are n teams of `warps` / n, a power of two, each of which runs the program for itself
    and finds its number by `gdn_tile.team`: fragments, barriers and the items of a
    `gdn_tile.each_warp` are those of a team, and a tile that is allocated in the role
    exists once for each team. One program for all of them, because two copies of a long one
    do not fit the instruction cache.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$warps,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$teams,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let extraClassDeclaration = [{
    int64_t getWarpsOfTeam() { return getWarps() / getTeams(); }
    /// Whether a thread has too few registers for anything but what it computes
    /// at the time: nothing is loaded early, carried over or hoisted.
    bool isScarce() {
      constexpr uint64_t enough = 224;
      return getRegisters().value_or(enough) < enough;
    }
  }];
  let assemblyFormat = [{
    $name `warps` `(` $warps `)` (`teams` `(` $teams^ `)`)?
    (`registers` `(` $registers^ `)`)? $body attr-dict
  }];
  let hasVerifier = 1;
}

def GdnTile_RoleEndOp : GdnTile_Op<"role_end", [
    HasParent<"RoleOp">, Pure, Terminator]> {
  let summary = "end of a role";
  let assemblyFormat = "attr-dict";
}

def GdnTile_TeamOp : GdnTile_Op<"team", [Pure]> {
  let summary = "number of the team of a role that runs the op";
  let description = [{
    From 0 to n - 1, of the n teams of the `gdn_tile.role` around the op.
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GdnTile_RingOp : GdnTile_Op<"ring", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "create a ring of n stages of the given tiles";
  let description = [{
    `buffers` are shared-memory allocations of n tiles each, used only by the roles
    that produce and consume: `producers` warps commit a stage, `consumers` warps release
    it, of one role or of several. Roles that take turns count once: each stage is one
    role's then. All warps of the block meet here: behind the op, and others like it that follow at
    once, every role may use the ring.

    All tiles of one stage share its two barriers, so a consumer waits once for all
    of them.

    ```mlir
    %ring = gdn_tile.ring(%k, %v : memref<3x64x128xbf16, #shared>, memref<3x64x64xbf16, #shared>) producers(4) consumers(4) : !gdn_tile.ring<3>
    ```
  }];
  let arguments = (ins Variadic<AnyMemRef>:$buffers, I64Attr:$producers,
                       I64Attr:$consumers);
  let results = (outs GdnTile_Ring:$ring);
  let assemblyFormat = [{
    `(` $buffers `:` type($buffers) `)` `producers` `(` $producers `)`
    `consumers` `(` $consumers `)` attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
}

class GdnTile_RingUserOp<string mnemonic> : GdnTile_Op<mnemonic, [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let hasVerifier = 1;
}

def GdnTile_RingAcquireOp : GdnTile_RingUserOp<"ring_acquire"> {
  let summary = "producer: wait until a stage is free";
  let description = [{
    Waits until stage `iteration` mod n has been released by its consumers as often
    as it has been committed: `iteration` / n times. Iterations count from 0 and are
    below 2^32; each is acquired and committed once, in order.
  }];
  let arguments = (ins GdnTile_Ring:$ring, Index:$iteration);
  let results = (outs GdnTile_Slot:$slot);
  let assemblyFormat = [{
    $ring `[` $iteration `]` attr-dict `:` type($ring) `->` type($slot)
  }];
}

def GdnTile_RingCommitOp : GdnTile_RingUserOp<"ring_commit"> {
  let summary = "producer: a stage is filled";
  let description = [{
    What this warp stores and copies into the stage stands in front of it. The stage is
    full when all producers have committed it and the copies that signal the
    slot have landed.
  }];
  let arguments = (ins GdnTile_Slot:$slot);
  let assemblyFormat = "$slot attr-dict";
}

def GdnTile_RingWaitOp : GdnTile_RingUserOp<"ring_wait"> {
  let summary = "consumer: wait until a stage is full";
  let description = [{
    Behind it the tiles of stage `iteration` mod n may be read, by products too.
  }];
  let arguments = (ins GdnTile_Ring:$ring, Index:$iteration);
  let assemblyFormat = "$ring `[` $iteration `]` attr-dict `:` type($ring)";
}

def GdnTile_RingReleaseOp : GdnTile_RingUserOp<"ring_release"> {
  let summary = "consumer: a stage has been read";
  let description = [{
    This warp's reads of the stage, and those of products that it has waited for, are in
    front of it.
  }];
  let arguments = (ins GdnTile_Ring:$ring, Index:$iteration);
  let assemblyFormat = "$ring `[` $iteration `]` attr-dict `:` type($ring)";
}

def GdnTile_RingDrainOp : GdnTile_RingUserOp<"ring_drain"> {
  let summary = "producer: wait until a ring is no longer in use";
  let description = [{
    Waits until every stage of the first `iterations` iterations, which are all, has been
    released. The buffers of `later` rings are first written behind it: by this role, or by
    roles that have waited for a stage that this role fills behind it. So they may
    lie where those of `ring` do, and the kernel needs the shared memory of the larger ones only.

    ```mlir
    gdn_tile.ring_drain %ring[%n] before(%next : !gdn_tile.ring<3>) : !gdn_tile.ring<2>
    ```
  }];
  let arguments = (ins GdnTile_Ring:$ring, Index:$iterations, Variadic<GdnTile_Ring>:$later);
  let assemblyFormat = [{
    $ring `[` $iterations `]` (`before` `(` $later^ `:` type($later) `)`)? attr-dict
    `:` type($ring)
  }];
}

def GdnTile_RefineOp : GdnTile_Op<"refine", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "what rounding has left of the operands of a chunk's products";
  let description = [{
    For `acc = a n^T + d`, where `a` is the f32 fragment d rounded to 16 bits, and two more accumulators that products with
    the result are about to be added to, adds the products of second parts:

        u       = acc + a low^T + round(late(d - a)) n^T
        state'  = state + round(error(scale o u)) k
        output' = output + round(late(error(u))) p^T

    error(x) is x - round(x), and late(x) is x in the last columns and zero in front: `count` is the element of `factors`, a
    vector of f32 in shared memory, that says how many. `scale` is the first element of a row of `factors`, one for each
    column of the fragments. d is found again as acc - a n^T, so that nobody has to keep it. Results are u, state' and, if there is an output, output'.

    With `scores` the products of p have a second part too. `p` is the matrix P rounded, with

        P_ij = factor grown_i (q_i . k_j) beta_j / grown_j,  j <= i

    `beta` and `grown` being rows of `factors`, the latter left out if it is 1. `scaled` is a row that, if it is there, stands
    for factor grown_i. P is made anew, what `p` lacks of it is stored in the place of `low`, in the last `count` rows, and

        output' = output + round(late(error(u))) p^T + round(u) round(P - p)^T

    Rows with grown_i, or scaled_i, below 1e-30 have no second part: there grown_i / grown_j has no digits.

    With `if` the op does that where the condition holds, the same in all warps, and hands its
    accumulators on elsewhere. Only in a role, for fragments of whole warpgroups. A branch in the program's own control
    flow would cost what the compilers behind may move over products in flight. `low` is a
    tile then, or a ring of one stage and one tile: that of the next stage, for which the op
    waits and which it releases. Where the condition does not hold the ring is left alone, so the producer
    acquires and commits a stage for each time that it does. All warps of the role are its consumers.

    `n`, `low` and `p` are tiles CxC or in panels of 16 columns as those of `gdn_tile.mma`; `k` and `q` are CxK.

    ```mlir
    %u, %s1, %o1 = gdn_tile.refine if %isSplit a(%a, %n, %low) acc(%u0) state(%s, %k) output(%o, %p) scores(%q)
        factors(%f) count 256 scale 64 {beta = 192 : i64, factor = 0.125 : f64, grown = 0 : i64} : ...
    ```
  }];
  let arguments = (ins Optional<I1>:$condition, GdnTile_Fragment:$a, AnyMemRef:$n,
                       AnyTypeOf<[GdnTile_Ring, AnyMemRef]>:$low, GdnTile_Fragment:$acc,
                       GdnTile_Fragment:$state, AnyMemRef:$k,
                       Optional<GdnTile_Fragment>:$output, Optional<AnyMemRef>:$p, Optional<AnyMemRef>:$q,
                       AnyMemRef:$factors, I64Attr:$count, I64Attr:$scale, OptionalAttr<I64Attr>:$beta,
                       OptionalAttr<I64Attr>:$grown, OptionalAttr<I64Attr>:$scaled, OptionalAttr<F64Attr>:$factor);
  let results = (outs GdnTile_Fragment:$result, GdnTile_Fragment:$newState,
                      Optional<GdnTile_Fragment>:$newOutput);
  let extraClassDeclaration = [{
    /// The ring, if `low` is one.
    RingOp getRing();
    /// The tile `low`, or the buffer of the ring, the same with a 1 in front.
    Value getLowBuffer();
  }];
  let assemblyFormat = [{
    (`if` $condition^)? `a` `(` $a `,` $n `,` $low `)` `acc` `(` $acc `)` `state` `(` $state `,` $k `)`
    (`output` `(` $output^ `,` $p `)`)? (`scores` `(` $q^ `)`)? `factors` `(` $factors `)` `count` $count `scale` $scale
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDNTILE_IR_GDNTILEROLEOPS_TD
