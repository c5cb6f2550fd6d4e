//===- SharedPlacement.cpp - where the tiles of a kernel lie --------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockScores.h"
#include "KernelLowering.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn_tile;

namespace {

/// Bytes that an op needs from its place in the program up to another one.
struct Request {
  Operation *op;
  int64_t bytes, alignment;
  int64_t first, last;
  int64_t offset = 0;
  /// Of roles, which run side by side, places say nothing: the op in front of
  /// which all uses are, and those behind which they are.
  Operation *endsAt = nullptr;
  SmallVector<Operation *, 2> startsAt = {};

  bool isInFrontOf(const Request &other) const {
    return endsAt && llvm::is_contained(other.startsAt, endsAt);
  }
  bool overlaps(const Request &other, int64_t at) const {
    return !isInFrontOf(other) && !other.isInFrontOf(*this) &&
           first < other.last && other.first < last &&
           at < other.offset + other.bytes && other.offset < at + bytes;
  }
};

/// The lowest place that is free for the whole life of `request`.
int64_t findPlace(const Request &request, ArrayRef<Request> placed) {
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Request &other : placed)
      if (request.overlaps(other, offset)) {
        offset = llvm::alignTo(other.offset + other.bytes, request.alignment);
        moved = true;
      }
  }
  return offset;
}

/// Places the requests, the largest first: small ones fill the gaps that lives
/// and alignments leave. Returns the number of bytes.
int64_t place(MutableArrayRef<Request> requests) {
  int64_t bytes = 0;
  llvm::sort(requests, [](const Request &a, const Request &b) {
    return std::tuple(-a.bytes, -a.alignment, a.first) <
           std::tuple(-b.bytes, -b.alignment, b.first);
  });
  for (auto [i, request] : llvm::enumerate(requests)) {
    request.offset = findPlace(request, requests.take_front(i));
    bytes = std::max(bytes, request.offset + request.bytes);
  }
  return bytes;
}

/// Of a ring's buffer, the op that drains that ring, and those that drain
/// others in front of it. What is cleared where the ring is made is in use from
/// there on.
void setDrains(Request &request, const KernelLowering &kernel) {
  Value buffer = request.op->getResult(0);
  for (Operation *user : buffer.getUsers()) {
    auto ring = dyn_cast<RingOp>(user);
    if (!ring)
      continue;
    for (Operation *ringUser : ring.getRing().getUsers())
      if (auto drain = dyn_cast<RingDrainOp>(ringUser)) {
        if (drain.getRing() == ring.getRing())
          request.endsAt = drain;
        else if (!kernel.hasLowerCopies(buffer))
          request.startsAt.push_back(drain);
      }
  }
}

} // namespace

LogicalResult KernelLowering::placeSharedMemory() {
  DenseMap<Operation *, int64_t> positions;
  func.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { positions.try_emplace(op, positions.size()); });
  int64_t end = positions.size();
  // By the gdn_tile.each_warp or role of teams that they stand in; null for
  // tiles of the block.
  llvm::MapVector<Operation *, SmallVector<Request>> requests;
  WalkResult walk = func.walk([&](memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    if (!isShared(type) || !type.hasStaticShape() || type.getRank() < 1 ||
        type.getRank() > 3 || !type.getLayout().isIdentity()) {
      alloc.emitOpError("expects a static shared-memory tile of rank 1 to 3, "
                        "but has ")
          << type;
      return WalkResult::interrupt();
    }
    SharedLayout layout(type);
    Request request{alloc, layout.getBytes(), layout.getAlignment(),
                    positions.lookup(alloc), end};
    for (Operation *user : alloc->getUsers())
      if (isa<FreeOp>(user))
        request.last = positions.lookup(user);
    setDrains(request, *this);
    Operation *owner = alloc->getParentOfType<EachWarpOp>();
    if (!owner && getNumTeams(alloc) > 1)
      owner = getRole(alloc);
    requests[owner].push_back(request);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  // A sum over rows that lie in several warps goes through shared memory.
  func.walk([&](SumOp sum) {
    auto type = cast<VectorType>(sum.getResult().getType());
    int64_t bytes = kernel.getWarps() * type.getDimSize(1) * sizeof(float);
    if (type.getDimSize(0) == 1 && kernel.getWarps() > 1)
      requests[nullptr].push_back({sum, bytes, 16, 0, end});
  });
  // The warps exchange decayed keys.
  func.walk([&](ScoresOp scores) {
    int64_t position = positions.lookup(scores);
    requests[nullptr].push_back({scores,
                                 ScoresScratch::getBytes(kernel.getWarps()), 16,
                                 position, position + 1});
  });
  func.walk([&](RingOp ring) {
    int64_t stages = ring.getRing().getType().getStages();
    int64_t bytes = 2 * kBarrierBytes * stages;
    if (hasParities(ring))
      bytes += 4 * ring.getConsumers();
    requests[nullptr].push_back({ring, bytes, 16, 0, end});
  });
  // The mbarrier on which a synchronous copy of the copy engine completes.
  func.walk([&](CopyInOp copy) {
    if (copy.getMap() && !copy.getSlot())
      requests[nullptr].push_back({copy, kBarrierBytes, kBarrierBytes, 0, end});
  });
  // The tiles of one warp or team lie together: another may be at another place
  // of its program. Nothing takes their bytes behind them, for the same reason.
  SmallVector<Request> ofBlock = requests.lookup(nullptr);
  for (auto &[op, own] : requests) {
    if (!op)
      continue;
    int64_t alignment = 0, owners = getNumWarps(op) * getNumTeams(op);
    if (auto role = dyn_cast<RoleOp>(op))
      owners = role.getTeams();
    else if (ownsByItem(cast<EachWarpOp>(op)))
      owners = getMaxItems(op);
    for (const Request &request : own)
      alignment = std::max(alignment, request.alignment);
    int64_t stride = llvm::alignTo(place(own), alignment);
    for (const Request &request : own)
      tileStrides[request.op] = stride;
    ofBlock.push_back(
        {op, stride * owners, alignment, positions.lookup(op), end});
  }
  sharedBytes = place(ofBlock);
  for (const Request &request : ofBlock)
    sharedOffsets[request.op] = request.offset;
  for (auto &[op, own] : requests)
    if (op)
      for (const Request &request : own)
        sharedOffsets[request.op] = sharedOffsets[op] + request.offset;
  if (sharedBytes > target.sharedBytes)
    return func.emitOpError("kernel '")
           << func.getName() << "' needs " << sharedBytes
           << " bytes of shared memory, but " << target.name << " has "
           << target.sharedBytes << " bytes a block";
  return success();
}
