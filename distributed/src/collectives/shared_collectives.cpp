#include "src/collectives/shared_collectives.h"

#include <algorithm>
#include <cstring>

namespace levin::distributed {

namespace {

// The parts of all ranks, processed block by block.
class Blocks {
 public:
  Blocks(const std::vector<std::size_t>& begin, std::size_t block) : begin_(begin), block_(block) {}
  std::uint64_t steps() const {
    std::size_t longest = 0;
    for (std::size_t r = 0; r + 1 < begin_.size(); ++r) longest = std::max(longest, begin_[r + 1] - begin_[r]);
    return (longest + block_ - 1) / block_;
  }
  std::size_t at(int rank, std::uint64_t step) const { return begin_[static_cast<std::size_t>(rank)] + step * block_; }
  // Returns 0 beyond the end of the part.
  std::size_t bytes(int rank, std::uint64_t step) const {
    const std::size_t end = begin_[static_cast<std::size_t>(rank) + 1], from = at(rank, step);
    return from < end ? std::min(block_, end - from) : 0;
  }

 private:
  const std::vector<std::size_t>& begin_;
  std::size_t block_;
};

// Each rank begins with the next one, so that not all ranks read from the same one.
template <class F>
void each_other(const Channel& channel, const F& f) {
  for (int i = 1; i < channel.size(); ++i) f((channel.rank() + i) % channel.size());
}

constexpr std::size_t kTile = std::size_t{16} << 10;  // bytes per rank: all tiles stay in a core's L1 cache

// Reduces one tile of all ranks into `own`, a part of this rank's result.
class TileSum {
 public:
  TileSum(Channel& channel, const ReductionInPlace& r) : channel_(channel), r_(r) {
    if (channel.size() > 2) scratch_ = channel.scratch(2 * kTile);
  }
  void operator()(std::size_t at, std::byte* own, std::size_t bytes) {
    const std::size_t count = bytes / static_cast<std::size_t>(size_of(r_.dtype));
    const std::byte* sum = nullptr;
    std::size_t turn = 0;
    each_other(channel_, [&](int from) {
      const std::byte* next = r_.of[static_cast<std::size_t>(from)] + at;
      if (sum == nullptr) {
        sum = next;
        return;
      }
      std::byte* here = scratch_ + turn++ % 2 * kTile;
      std::memcpy(here, next, bytes);
      reduce_into(r_.dtype, r_.op, here, sum, count);
      sum = here;
    });
    reduce_into(r_.dtype, r_.op, own, sum, count);
    if (r_.op == ReduceOp::avg) divide(r_.dtype, own, count, channel_.size());
  }

 private:
  Channel& channel_;
  const ReductionInPlace& r_;
  std::byte* scratch_ = nullptr;
};

// Waits until no rank accesses another's tensor any more.
void all_are_through(Channel& channel, SharedBlocks& blocks) {
  blocks.reduced(0);
  each_other(channel, [&](int r) { blocks.wait_result(0, r); });
  blocks.copied(0);
  blocks.finish(1);
}

void take_results(Channel& channel, SharedBlocks& blocks, const Blocks& parts, std::byte* out, std::uint64_t step) {
  each_other(channel, [&](int owner) {
    if (const std::size_t n = parts.bytes(owner, step); n != 0) {
      std::memcpy(out + parts.at(owner, step), blocks.wait_result(step, owner), n);
    }
  });
}

}  // namespace

void reduce_parts(Channel& channel, SharedBlocks& blocks, const PartedReduction& r) {
  const Blocks parts(r.begin, blocks.block());
  const std::uint64_t steps = parts.steps();
  const int rank = channel.rank();
  const auto element = static_cast<std::size_t>(size_of(r.dtype));
  const auto stage = [&](std::uint64_t step) {
    each_other(channel, [&](int owner) {
      const std::size_t n = parts.bytes(owner, step);
      if (n != 0) std::memcpy(blocks.stage(step, owner), r.in + parts.at(owner, step), n);
    });
    blocks.staged(step);
  };
  const auto reduce = [&](std::uint64_t step) {
    const std::size_t n = parts.bytes(rank, step);
    if (n == 0) return;
    std::byte* own = r.own + step * blocks.block();
    std::byte* sum = nullptr;
    each_other(channel, [&](int from) {
      std::byte* next = blocks.wait_staged(step, from);
      if (sum != nullptr) reduce_into(r.dtype, r.op, next, sum, n / element);
      sum = next;
    });
    reduce_into(r.dtype, r.op, own, sum, n / element);
    if (r.op == ReduceOp::avg) divide(r.dtype, own, n / element, channel.size());
    if (r.shown) std::memcpy(blocks.result(step), own, n);
  };
  for (std::uint64_t step = 0; step < steps; ++step) {
    if (step == 0) stage(0);
    if (step + 1 < steps) stage(step + 1);  // while the others still reduce
    reduce(step);
    blocks.reduced(step);
    if (r.out != nullptr) take_results(channel, blocks, parts, r.out, step);
    blocks.copied(step);
  }
  blocks.finish(steps);
}

void reduce_in_place(Channel& channel, SharedBlocks& blocks, const ReductionInPlace& r) {
  const auto rank = static_cast<std::size_t>(channel.rank());
  const std::size_t begin = r.begin[rank], end = r.begin[rank + 1];
  TileSum sum(channel, r);
  for (std::size_t at = begin; at < end; at += kTile) {
    const std::size_t n = std::min(kTile, end - at);
    std::byte* own = r.own + (at - begin);
    sum(at, own, n);
    if (!r.everywhere) continue;
    each_other(channel, [&](int to) { std::memcpy(r.of[static_cast<std::size_t>(to)] + at, own, n); });
  }
  all_are_through(channel, blocks);
}

void share_in_place(Channel& channel, SharedBlocks& blocks, const std::vector<std::byte*>& of,
                    const std::vector<std::size_t>& begin) {
  const auto rank = static_cast<std::size_t>(channel.rank());
  const std::size_t at = begin[rank], n = begin[rank + 1] - at;
  each_other(channel, [&](int to) {
    if (n != 0) std::memcpy(of[static_cast<std::size_t>(to)] + at, of[rank] + at, n);
  });
  all_are_through(channel, blocks);
}

void share_parts(Channel& channel, SharedBlocks& blocks, std::byte* whole, const std::vector<std::size_t>& begin) {
  const Blocks parts(begin, blocks.block());
  const std::uint64_t steps = parts.steps();
  const auto show = [&](std::uint64_t step) {
    const std::size_t n = parts.bytes(channel.rank(), step);
    if (n != 0) std::memcpy(blocks.result(step), whole + parts.at(channel.rank(), step), n);
    blocks.staged(step);
    blocks.reduced(step);
  };
  for (std::uint64_t step = 0; step < steps; ++step) {
    if (step == 0) show(0);
    if (step + 1 < steps) show(step + 1);
    take_results(channel, blocks, parts, whole, step);
    blocks.copied(step);
  }
  blocks.finish(steps);
}

}  // namespace levin::distributed
