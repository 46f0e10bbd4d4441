// The collectives of Strategy, over its process group.
#include <levin/autograd/function.h>
#include <levin/autograd/ops.h>

#include <algorithm>

#include "src/checkpoint/state_json.h"
#include "src/strategies/rank_strategy.h"

namespace levin {
namespace {

using distributed::ProcessGroup;

/// Returns (world_size, ...).
Tensor gathered(ProcessGroup& group, const Tensor& own) {
  std::vector<std::int64_t> sizes(own.sizes().begin(), own.sizes().end());
  sizes.insert(sizes.begin(), group.size());
  const Tensor all = empty(Shape{std::span<const std::int64_t>(sizes)}, like(own));
  group.all_gather(all, own.contiguous()).wait();
  return all;
}

struct AllGather : Function<AllGather> {
  static Tensor forward(Context& c, const Tensor& own, const std::shared_ptr<ProcessGroup>& group) {
    c.set(group);
    return gathered(*group, own);
  }
  /// Sums the gradients of this rank's part over all ranks.
  static Tensor backward(Context& c, const Tensor& g) {
    ProcessGroup& group = *c.get<std::shared_ptr<ProcessGroup>>();
    const Tensor sum = g.contiguous().clone();
    group.all_reduce(sum).wait();
    return sum.select(0, group.rank());
  }
};

}  // namespace

double Strategy::reduce(double value, ReduceOp op) const {
  return group_ ? reduce(full({}, value, {.dtype = kFloat64}), op).item<double>() : value;
}

Tensor Strategy::reduce(const Tensor& value, ReduceOp op) const {
  if (!group_) return value;
  const Tensor out = value.detach().contiguous().clone();
  group_->all_reduce(out, op).wait();
  return out;
}

Tensor Strategy::broadcast(const Tensor& value, int src) const {
  if (!group_) return value;
  const Tensor out = value.detach().contiguous().clone();
  group_->broadcast(out, src).wait();
  return out;
}

StateMap Strategy::broadcast(const StateMap& values, int src) const {
  return gather(rank() == src ? values : StateMap())[static_cast<std::size_t>(src)];
}

Tensor Strategy::all_gather(const Tensor& value, bool sync_grads) const {
  if (world_size() == 1) return sync_grads ? value : value.detach();
  return sync_grads ? AllGather::apply(value, group_) : gathered(*group_, value.detach());
}

void Strategy::barrier() const {
  if (group_) group_->barrier().wait();
}

std::vector<StateMap> Strategy::gather(const StateMap& own) const {
  return group_ ? gather_maps(*group_, own) : std::vector<StateMap>{own};
}

/// Sends the maps as JSON, padded to one size.
std::vector<StateMap> gather_maps(ProcessGroup& group, const StateMap& own) {
  const std::string text = to_json(own).dump();
  const Tensor size = full({}, static_cast<double>(text.size()), {.dtype = kInt64});
  const auto lengths = gathered(group, size).to_vector<std::int64_t>();
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(longest));
  const auto all = gathered(group, from_data(bytes, {longest})).to_vector<std::uint8_t>();
  std::vector<StateMap> out;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r) * longest;
    out.push_back(state_from_json(nlohmann::json::parse(begin, begin + lengths[r])));
  }
  return out;
}

void Strategy::any(std::span<std::uint8_t> flags) const {
  if (!group_) return;
  const Tensor t = from_blob(flags.data(), {static_cast<std::int64_t>(flags.size())}, {.dtype = kUInt8});
  group_->all_reduce(t, ReduceOp::max).wait();
}

void Strategy::abort(const std::string& reason) const {
  if (group_) group_->abort(reason);
}

}  // namespace levin
