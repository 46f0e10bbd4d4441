#include "src/strategies/rank_strategy.h"

#include <levin/autograd/function.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/bagua.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/sync_batch_norm.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/checkpoint/generator_map.h"
#include "src/checkpoint/state_json.h"

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

void RankStrategy::setup(nn::Module& module) {
  module.to(device_);
  distributed::share_module(module, group());
  // Each rank draws its own random numbers (dropout); the seed is shared.
  default_generator().set_state(of_rank(default_generator().state(), rank()));
}

void RankStrategy::sync_batchnorm(nn::Module& module) { distributed::convert_sync_batchnorm(module, group_); }

Batch RankStrategy::to_device(Batch batch) const {
  for (Tensor& t : batch.tensors) t = t.to(device_);
  return batch;
}

void RankStrategy::finish(nn::Module& module) {
  if (replicas_differ()) module.load_state_dict(consensus(module.state_dict()));
}

StateDict RankStrategy::consensus(const StateDict& own) {
  return replicas_differ() ? distributed::consensus(group(), own) : own;
}

void RankStrategy::share_buffers(nn::Module& module) {
  std::vector<Tensor> buffers;
  for (const auto& [name, b] : module.named_buffers()) buffers.push_back(b);
  distributed::broadcast_all(group(), buffers);
}

double RankStrategy::reduce(double value, ReduceOp op) {
  return reduce(full({}, value, {.dtype = kFloat64}), op).item<double>();
}

Tensor RankStrategy::reduce(const Tensor& value, ReduceOp op) {
  const Tensor out = value.detach().contiguous().clone();
  group().all_reduce(out, op).wait();
  return out;
}

Tensor RankStrategy::norms_over_ranks(const Tensor& norms, double type) const {
  const no_grad guard;
  const bool largest = std::isinf(type);
  const Tensor sum = largest ? norms.clone() : pow(norms, type).contiguous();
  group().all_reduce(sum, largest ? ReduceOp::max : ReduceOp::sum).wait();
  return largest ? sum : pow(sum, 1.0 / type);
}

Tensor RankStrategy::broadcast(const Tensor& value, int src) {
  const Tensor out = value.detach().contiguous().clone();
  group().broadcast(out, src).wait();
  return out;
}

StateMap RankStrategy::broadcast(const StateMap& values, int src) {
  return gather(rank() == src ? values : StateMap())[static_cast<std::size_t>(src)];
}

std::vector<StateMap> RankStrategy::gather(const StateMap& own) { return gather_maps(*group_, own); }

std::vector<std::vector<int>> ranks_by_machine(ProcessGroup& group, int node) {
  const auto nodes = gathered(group, full({}, static_cast<double>(node), {.dtype = kInt64})).to_vector<std::int64_t>();
  std::map<std::int64_t, std::vector<int>> machines;
  for (int r = 0; r < group.size(); ++r) machines[nodes[static_cast<std::size_t>(r)]].push_back(r);
  std::vector<std::vector<int>> ranks;
  for (auto& [machine, own] : machines) ranks.push_back(std::move(own));
  return ranks;
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

Tensor RankStrategy::all_gather(const Tensor& value, bool sync_grads) {
  if (world_size() == 1) return sync_grads ? value : value.detach();
  return sync_grads ? AllGather::apply(value, group_) : gathered(*group_, value.detach());
}

void RankStrategy::any(std::span<std::uint8_t> flags) {
  const Tensor t = from_blob(flags.data(), {static_cast<std::int64_t>(flags.size())}, {.dtype = kUInt8});
  group().all_reduce(t, ReduceOp::max).wait();
}

void scale_rates(const Optimizers& optimizers, double factor) {
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    for (auto& g : optimizers.optimizer(i).param_groups()) g["lr"] *= factor;
    if (optim::Scheduler* scheduler = optimizers.scheduler(i)) scheduler->scale_base_lrs(factor);
  }
}

void average_gradients(ProcessGroup& group, const std::vector<Parameter>& parameters) {
  const no_grad guard;
  std::vector<std::uint8_t> has;
  for (const Parameter& p : parameters) has.push_back(p.grad().defined() ? 1 : 0);
  if (has.empty()) return;
  const Tensor anywhere = from_data(has, {static_cast<std::int64_t>(has.size())});
  group.all_reduce(anywhere, ReduceOp::max).wait();
  std::vector<distributed::Work> works;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (anywhere.data<std::uint8_t>()[i] == 0) continue;
    if (!p.grad().defined()) p.set_grad(zeros(p.sizes(), like(p)));
    if (!p.grad().is_contiguous()) p.set_grad(p.grad().contiguous());
    works.push_back(group.all_reduce(p.grad(), ReduceOp::avg));
  }
  for (const auto& work : works) work.wait();
}

}  // namespace levin
