#pragma once
// Collectives directly in shared memory. Each rank reduces one part, in the order of the ring over TCP, so that both
// give the same bits: part c begins with rank c + 1 and ends with rank c.

#include <vector>

#include "src/reduction.h"
#include "src/transport.h"

namespace levin::distributed {

/// A reduction in parts: part r of `in` (bytes [begin[r], begin[r + 1])) of all ranks comes together on rank r, in
/// `own`, where that rank's part of its input lies already. All parts then go to `out` unless it is null; `shown` says
/// whether any rank wants them.
struct PartedReduction {
  const std::byte* in;
  std::byte* own;
  std::byte* out;
  const std::vector<std::size_t>& begin;
  DType dtype;
  ReduceOp op;
  bool shown;
};
void reduce_parts(Channel& channel, SharedBlocks& blocks, const PartedReduction& r);

/// The same where every rank sees the tensors of all, `of[rank]`: nothing is copied between. The sum of this rank's
/// part goes to `own` and, if it is `everywhere`, to all tensors.
struct ReductionInPlace {
  const std::vector<std::byte*>& of;
  std::byte* own;
  bool everywhere;
  const std::vector<std::size_t>& begin;
  DType dtype;
  ReduceOp op;
};
void reduce_in_place(Channel& channel, SharedBlocks& blocks, const ReductionInPlace& r);

/// Part r of `whole` of rank r is copied to all. A broadcast is a single part.
void share_parts(Channel& channel, SharedBlocks& blocks, std::byte* whole, const std::vector<std::size_t>& begin);
/// The same where every rank sees the tensors of all.
void share_in_place(Channel& channel, SharedBlocks& blocks, const std::vector<std::byte*>& of,
                    const std::vector<std::size_t>& begin);

}  // namespace levin::distributed
