#pragma once
// Collectives directly in shared memory. Each rank reduces one part, in the order of the ring over TCP, so that both
// give the same bits: part c begins with rank c + 1 and ends with rank c.

#include <vector>

#include "src/collectives/reduction.h"
#include "src/transports/transport.h"

namespace levin::distributed {

/// A reduction by parts: part r of `in` (bytes [begin[r], begin[r + 1])) of all ranks is reduced on rank r into `own`,
/// which already holds that rank's input. All parts are then copied to `out` unless it is null; `shown` is true if any
/// rank has an `out`.
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

/// A reduction by parts where every rank sees the tensors of all ranks, `of[rank]`, so that nothing is staged. The
/// result of this rank's part goes to `own` and, if `everywhere`, to the tensors of all ranks.
struct ReductionInPlace {
  const std::vector<std::byte*>& of;
  std::byte* own;
  bool everywhere;
  const std::vector<std::size_t>& begin;
  DType dtype;
  ReduceOp op;
};
void reduce_in_place(Channel& channel, SharedBlocks& blocks, const ReductionInPlace& r);

/// Copies part r of rank r's `whole` to all ranks. A broadcast has a single part.
void share_parts(Channel& channel, SharedBlocks& blocks, std::byte* whole, const std::vector<std::size_t>& begin);
/// As share_parts, where every rank sees the tensors of all ranks.
void share_in_place(Channel& channel, SharedBlocks& blocks, const std::vector<std::byte*>& of,
                    const std::vector<std::size_t>& begin);

}  // namespace levin::distributed
