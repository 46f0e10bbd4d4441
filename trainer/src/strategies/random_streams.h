#pragma once
// Random numbers of a batch that several ranks process in parts.

#include <levin/core/rank_stream.h>
#include <levin/core/tensor.h>
#include <levin/distributed/process_group.h>

#include <algorithm>

namespace levin {

/// Each task draws from its own part of the stream, so ranks need not draw the same count: a task draws the same
/// numbers on any rank. Before and after a batch all ranks are at the same position.
class RandomStreams {
 public:
  /// Runs f as task `number`, from 0 to 65534; may be nested.
  template <class F>
  void run(std::uint64_t number, const F& f) {
    Generator& generator = default_generator();
    const GeneratorState around = generator.state();
    const std::uint64_t begin = start_.offset + (number + 1) * kRankStride;
    generator.set_state({start_.seed, begin});
    f();
    used_ = std::max(used_, generator.state().offset - begin);
    generator.set_state(around);
  }
  /// Advances all ranks past the longest task. Collective.
  void agree(distributed::ProcessGroup& group) const {
    const Tensor longest = from_data(std::vector<std::int64_t>{static_cast<std::int64_t>(used_)}, {1});
    group.all_reduce(longest, distributed::ReduceOp::max).wait();
    const auto used = static_cast<std::uint64_t>(longest.item<std::int64_t>());
    default_generator().set_state({start_.seed, start_.offset + used});
  }

 private:
  GeneratorState start_ = default_generator().state();
  std::uint64_t used_ = 0;
};

}  // namespace levin
