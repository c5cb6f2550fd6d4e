//===- KernelLowering.h - what the patterns of a kernel share ---*- C++ -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTILETONVVM_KERNELLOWERING_H
#define GDN_LIB_CONVERSION_GDNTILETONVVM_KERNELLOWERING_H

#include "Emitter.h"
#include "gdn/Target/GpuTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include <optional>

namespace mlir::gdn {

/// What is known of the indices and bounds of a load, store or copy. Taken
/// before the conversion, which replaces the values that tell.
struct AccessInfo {
  /// Largest power of two up to 16 that divides the byte address of every row
  /// of the accessed tile.
  int64_t alignment = 16;
  /// Per index: its value, and a number that divides it (0 for index zero).
  SmallVector<std::optional<int64_t>> indices;
  SmallVector<int64_t> indexMultiples;
  /// Per bound: its least value, its value if known, and a divisor.
  SmallVector<int64_t> leastValid;
  SmallVector<std::optional<int64_t>> valid;
  SmallVector<int64_t> validMultiples;
};

/// Of an mbarrier.
constexpr int64_t kBarrierBytes = 8;

/// The threads that run an op together.
struct ThreadSet {
  /// Number of the calling thread among them.
  Value id;
  int64_t count;
};

/// The kernel under conversion: its layouts, its shared memory and its types.
class KernelLowering {
public:
  KernelLowering(func::FuncOp func, const GpuTarget &target);

  /// Whether the next kernel may start as soon as all blocks of this one have,
  /// and whether this one starts so: then it ends no earlier than the other.
  bool startsNext = false, startsEarly = false;
  /// Whether it waits for the kernel in front where its program says so, and
  /// whether the next kernel waits so for this one: then that need not start
  /// before this one ends, where it would take places and memory's time away,
  /// unless the blocks of this one are few.
  bool awaitsLaunch = false, isAwaited = false;
  /// Whether the next kernel, which waits for this one, may start while the
  /// last chunks are computed. One that waits itself has let it start then.
  bool letsNextStartLate() const {
    return isAwaited && startsEarly && !awaitsLaunch;
  }

  /// Checks that the kernel can be lowered, places its shared memory and
  /// records the accesses. Errors are reported at the ops.
  LogicalResult analyze();

  /// To be called behind the conversion: what reads the thread's number in
  /// roles of few registers reads it where `analyze` has placed that.
  void useHiddenThreadIds();

  /// The threads that hold a fragment: the whole block, or those of a role.
  int64_t getNumThreads() const { return 32 * kernel.getWarps(); }
  /// Threads below which the numbers of those lie that hold fragments.
  int64_t getEndThread() const { return 32 * endWarp; }
  int64_t getBlockThreads() const { return 32 * blockWarps; }
  /// The threads that run an op: the warp of a gdn_tile.each_warp, those of its
  /// role, or the whole block.
  ThreadSet getThreads(Emitter &emitter, Operation *op) const;
  /// Number of the calling warp among those of an op's team, role or block, and
  /// how many they are.
  Value getWarpId(Emitter &emitter, Operation *op) const;
  int64_t getNumWarps(Operation *op) const;
  /// The same among those of all teams of the role.
  Value getWarpInRole(Emitter &emitter, Operation *op) const;
  /// Number of the calling team of a role, and how many they are.
  Value getTeam(Emitter &emitter, Operation *op) const;
  int64_t getNumTeams(Operation *op) const;
  /// Waits for all threads that run an op.
  void emitBarrier(Emitter &emitter, Operation *op) const;
  /// The assembly of that of a role whose warps are one team.
  std::string getRoleBarrier(Operation *op) const;
  /// Whether an op stands in the region of a gdn_tile.each_warp.
  bool isInWarp(Operation *op) const { return warpOps.contains(op); }
  int64_t getSharedBytes() const { return sharedBytes; }
  /// Whether products run as wgmma, which reads shared memory by the
  /// asynchronous proxy.
  bool usesWarpgroupProducts() const { return warpgroupProducts; }
  /// Whether threads may have written a tile of a product since the barrier
  /// before this one.
  bool needsProxyFence(gdn_tile::BarrierOp barrier) const {
    return fenced.contains(barrier);
  }
  /// Whether products read tiles of the ring that copies or stores of threads
  /// have written.
  bool needsProxyFence(gdn_tile::RingWaitOp wait) const {
    return fenced.contains(wait);
  }
  /// Whether the copy engine moves a tile that is valid as a whole, for a slot.
  bool isBulkCopy(gdn_tile::CopyInOp copy) const;
  /// Whether the consumers of a ring keep their parity of its phase with it.
  static bool hasParities(gdn_tile::RingOp ring) {
    return llvm::any_of(ring.getRing().getUsers(),
                        llvm::IsaPred<gdn_tile::RefineOp>);
  }
  /// Whether the stores of a producer need a fence in front of its commit:
  /// products read tiles of the ring.
  bool needsProxyFence(gdn_tile::RingCommitOp commit) const {
    return fenced.contains(commit);
  }
  /// Whether copies of threads fill the tiles of a ring: then each thread of a
  /// producer arrives for itself, else one for its warp.
  bool hasCopies(gdn_tile::RingOp ring) const { return copied.contains(ring); }
  /// Whether copies into a buffer of a ring leave zeros above a diagonal: the
  /// copy engine does not write them, so they are there from the start.
  bool hasLowerCopies(Value buffer) const {
    return lowerBuffers.contains(buffer);
  }
  /// Whether another ring is made right behind: the block meets once for all.
  bool isFollowedByRing(gdn_tile::RingOp ring) const {
    return joined.contains(ring);
  }
  /// Whether buffers are cleared by this ring or by those right in front.
  bool clearsBuffers(gdn_tile::RingOp ring) const {
    return clearing.contains(ring);
  }
  /// The load of a product's left operand, if the product reads it from shared
  /// memory itself; else null.
  gdn_tile::LoadOp getSharedLeft(gdn_tile::MmaOp op) const {
    return sharedLefts.lookup(op);
  }
  /// Whether only such products use a load.
  bool isOnlySharedLeft(gdn_tile::LoadOp load) const;
  gdn_tile::FragmentLayout getLayout(Type fragment) const;
  /// Whether a register holds two neighbouring columns (16-bit floats).
  bool isPacked(Type fragment) const;
  const AccessInfo &getAccess(Operation *op) const;
  /// Byte offset of an allocation, or of the scratch space of an op.
  int64_t getSharedOffset(Operation *op) const;
  /// An upper bound of the number of items of a gdn_tile.each_warp.
  int64_t getMaxItems(Operation *op) const { return maxItems.lookup(op); }
  /// Whether an item has tiles of its own, because they are fewer than the
  /// warps; else each warp has.
  bool ownsByItem(gdn_tile::EachWarpOp op) const;
  /// The item whose tile an allocation is, in the unconverted program; null
  /// where it is a warp's.
  Value getOwner(Operation *alloc) const { return owners.lookup(alloc); }
  /// Bytes from the tile of a warp, or of a team, to that of the next.
  int64_t getTileStride(Operation *alloc) const {
    return tileStrides.lookup(alloc);
  }
  Value getSharedBase(Emitter &emitter, int64_t offset) const;
  Value getScratch(Emitter &emitter, Operation *op) const {
    return getSharedBase(emitter, getSharedOffset(op));
  }

  /// Coordinates of a thread's first register; null for zero.
  Value getRowBase(Emitter &emitter,
                   const gdn_tile::FragmentLayout &layout) const {
    return emitter.threadCoordinate(layout.getRowTerms(), getEndThread());
  }
  Value getColBase(Emitter &emitter,
                   const gdn_tile::FragmentLayout &layout) const {
    return emitter.threadCoordinate(layout.getColTerms(), getEndThread());
  }

  /// Registers of a fragment one element each, and the reverse.
  SmallVector<Value> unpack(Emitter &emitter, Type fragment,
                            ValueRange registers) const;
  SmallVector<Value> pack(Emitter &emitter, Type fragment,
                          ValueRange elements) const;

  mutable func::FuncOp func;
  gdn_tile::KernelAttr kernel;
  const GpuTarget &target;
  LLVMTypeConverter converter;

private:
  /// The first warp of a role, those of a team of it, and the named barrier of
  /// its first team.
  struct RoleWarps {
    int64_t first, count, teams, barrier;
    /// Without registers for what follows from the thread's number.
    bool isTight;
  };

  LogicalResult checkName();
  LogicalResult checkArguments();
  LogicalResult checkOp(Operation *op);
  LogicalResult checkType(Operation *op, Type type);
  LogicalResult checkRoles(gdn_tile::RolesOp roles);
  LogicalResult placeSharedMemory();
  void addTypeConversions();
  void findProxyFences();
  void findRingFences(const DenseSet<Value> &operands);
  void joinRings();
  void recordRoles(gdn_tile::RolesOp roles);
  void findSharedLefts();
  void hideThreadIds();

  DenseMap<Operation *, AccessInfo> accesses;
  DenseMap<Operation *, int64_t> sharedOffsets, tileStrides;
  DenseSet<Operation *> warpOps;
  DenseMap<Operation *, int64_t> maxItems;
  DenseMap<Operation *, Value> owners;
  int64_t sharedBytes = 0;
  bool warpgroupProducts = false;
  DenseSet<Operation *> fenced, copied, joined, clearing;
  DenseSet<Value> lowerBuffers;
  int64_t blockWarps, endWarp;
  DenseMap<Operation *, RoleWarps> roleWarps;
  DenseMap<Operation *, gdn_tile::LoadOp> sharedLefts;
  /// Reads of the thread's number that LLVM does not move.
  SmallVector<Operation *> hiddenThreadIds;
};

/// Name of the block's one shared memory variable.
constexpr StringLiteral kSharedName = "smem";

inline bool isFragment(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 2;
}

/// Analyses a gdn_tile.load, store or copy. With a shared memref the alignment
/// is that of its first element.
AccessInfo analyzeAccess(MemRefType memref, ValueRange indices,
                         ArrayRef<int64_t> dims, ValueRange valid);

/// An upper bound of an index.
int64_t getMaximum(Value index);

/// Strides of an identity layout, in elements.
SmallVector<int64_t> getStaticStrides(MemRefType type);

/// Base of the patterns on tile ops. They go before the upstream patterns.
template <typename Op>
class TilePattern : public OpConversionPattern<Op> {
public:
  TilePattern(const KernelLowering &kernel, MLIRContext *context,
              PatternBenefit benefit = 10)
      : OpConversionPattern<Op>(kernel.converter, context, benefit),
        kernel(kernel) {}
  using Adaptor = typename OpConversionPattern<Op>::OneToNOpAdaptor;

protected:
  const KernelLowering &kernel;
};

void populateElementwisePatterns(const KernelLowering &kernel,
                                 RewritePatternSet &patterns);
void populateMathPatterns(const KernelLowering &kernel,
                          RewritePatternSet &patterns);
void populateStructurePatterns(const KernelLowering &kernel,
                               RewritePatternSet &patterns);
void populateRolePatterns(const KernelLowering &kernel,
                          RewritePatternSet &patterns);
void populateAccessPatterns(const KernelLowering &kernel,
                            RewritePatternSet &patterns);
void populateCopyPatterns(const KernelLowering &kernel,
                          RewritePatternSet &patterns);
void populateCopySumsPatterns(const KernelLowering &kernel,
                              RewritePatternSet &patterns);
void populateMmaPatterns(const KernelLowering &kernel,
                         RewritePatternSet &patterns);
void populateWarpgroupPatterns(const KernelLowering &kernel,
                               RewritePatternSet &patterns);
void populateRefinePatterns(const KernelLowering &kernel,
                            RewritePatternSet &patterns);
void populateRegisterProductPatterns(const KernelLowering &kernel,
                                     RewritePatternSet &patterns);
void populateSumPatterns(const KernelLowering &kernel,
                         RewritePatternSet &patterns);
void populateCumsumPatterns(const KernelLowering &kernel,
                            RewritePatternSet &patterns);
void populateTriInversePatterns(const KernelLowering &kernel,
                                RewritePatternSet &patterns);
void populatePrefetchPatterns(const KernelLowering &kernel,
                              RewritePatternSet &patterns);
void populateWarpPatterns(const KernelLowering &kernel,
                          RewritePatternSet &patterns);
void populateSequencePatterns(const KernelLowering &kernel,
                              RewritePatternSet &patterns);
void populateScoresPatterns(const KernelLowering &kernel,
                            RewritePatternSet &patterns);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTILETONVVM_KERNELLOWERING_H
