#pragma once
// Random numbers of a batch that several ranks work on in parts.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>
#include <levin/distributed/process_group.h>

#include <algorithm>

namespace levin {

/// Each piece of work draws from a part of the stream of its own, so that ranks need not draw as many numbers: the same
/// piece draws the same on any rank. Before and behind it all ranks are at the same place.
class RandomStreams {
 public:
  /// Runs f as piece `number`, from 0 to 65534; may be nested.
  template <class F>
  void run(std::uint64_t number, const F& f) {
    Generator& generator = default_generator();
    const GeneratorState around = generator.state();
    const std::uint64_t begin = start_.offset + ((number + 1) << 48);
    generator.set_state({start_.seed, begin});
    f();
    used_ = std::max(used_, generator.state().offset - begin);
    generator.set_state(around);
  }
  /// All ranks go on behind the longest piece. All call it.
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
