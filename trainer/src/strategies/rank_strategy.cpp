#include "src/strategies/rank_strategy.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/rank_stream.h>
#include <levin/distributed/bagua.h>
#include <levin/distributed/ddp.h>

#include <cmath>
#include <map>

namespace levin {

using distributed::ProcessGroup;

void RankStrategy::setup(nn::Module& module) {
  module.to(device());
  distributed::share_module(module, group());
  // Each rank draws its own random numbers (dropout); the seed is shared.
  default_generator().set_state(of_rank(default_generator().state(), rank()));
}

void RankStrategy::finish(nn::Module& module) {
  if (auto* divergent = divergent_weights()) module.load_state_dict(divergent->consensus(module.state_dict()));
}

StateDict GroupConsensus::consensus(const StateDict& own) const { return distributed::consensus(group_, own); }

Tensor norms_over_ranks(ProcessGroup& group, const Tensor& norms, double type) {
  const no_grad guard;
  const bool largest = std::isinf(type);
  const Tensor sum = largest ? norms.clone() : pow(norms, type).contiguous();
  group.all_reduce(sum, largest ? ReduceOp::max : ReduceOp::sum).wait();
  return largest ? sum : pow(sum, 1.0 / type);
}

std::vector<std::vector<int>> ranks_by_machine(const Strategy& strategy) {
  const Tensor own = full({}, static_cast<double>(strategy.node_rank()), {.dtype = kInt64});
  const auto nodes = strategy.all_gather(own, /*sync_grads=*/false).to_vector<std::int64_t>();
  std::map<std::int64_t, std::vector<int>> machines;
  for (int r = 0; r < strategy.world_size(); ++r) machines[nodes[static_cast<std::size_t>(r)]].push_back(r);
  std::vector<std::vector<int>> ranks;
  for (auto& [machine, members] : machines) ranks.push_back(std::move(members));
  return ranks;
}

void scale_rates(const Optimizers& optimizers, double factor) {
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    for (auto& g : optimizers.optimizer(i).param_groups()) g["lr"] *= factor;
  for (std::size_t k = 0; k < optimizers.num_schedulers(); ++k)
    if (optim::Scheduler* scheduler = optimizers.scheduler(k)) scheduler->scale_base_lrs(factor);
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
