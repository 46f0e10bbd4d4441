#include <levin/distributed/model_averaging.h>

#include <levin/autograd/modes.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include "src/data_parallel/flat.h"

namespace levin::distributed {

void average_parameters(ProcessGroup& group, const std::vector<Parameter>& parameters) {
  const no_grad guard;
  const std::vector<Tensor> weights = detached(parameters);
  const std::vector<Places> types = by_type(weights);
  std::vector<Tensor> messages;
  std::vector<Work> works;
  for (const Places& places : types) {
    messages.push_back(packed(weights, places));
    works.push_back(group.all_reduce(messages.back(), ReduceOp::avg));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    works[i].wait();
    unpack(messages[i], weights, types[i]);
  }
}

// --- PeriodicModelAverager

PeriodicModelAverager::PeriodicModelAverager(std::shared_ptr<ProcessGroup> group,
                                             const PeriodicModelAveragerOptions& options)
    : group_(std::move(group)), options_(options) {
  if (options.period < 1)
    throw ValueError(
        fmt::format("[PeriodicModelAverager] period {}: give 1 or more steps between two averages.", options.period));
  if (options.warmup_steps < 0)
    throw ValueError(fmt::format("[PeriodicModelAverager] warmup_steps {}: give 0 or more.", options.warmup_steps));
}

void PeriodicModelAverager::average_parameters(const std::vector<Parameter>& parameters) {
  const int64_t local = step_++ - options_.warmup_steps;
  if (local >= 0 && local % options_.period == 0) distributed::average_parameters(*group_, parameters);
}

// --- PostLocalSgd

struct PostLocalSgd::State {
  PostLocalSgdOptions options;
  int64_t iter = 0;
};

PostLocalSgd::PostLocalSgd(const PostLocalSgdOptions& options) : state_(std::make_shared<State>(State{options})) {
  if (options.start_local_sgd_iter < 0)
    throw ValueError(
        fmt::format("[PostLocalSgd] start_local_sgd_iter {}: give 0 or more.", options.start_local_sgd_iter));
  if (options.post_local_gradient_allreduce && !options.subgroup)
    throw ValueError(
        "[PostLocalSgd] post_local_gradient_allreduce is true, and there is no subgroup whose gradients would be "
        "averaged. Give the group of the ranks of one machine, or set post_local_gradient_allreduce to false.");
}

CommStages PostLocalSgd::operator()(ProcessGroup& group, const GradBucket& bucket) const {
  if (bucket.index == 0) ++state_->iter;  // buckets are sent in order, so this one begins an exchange
  const PostLocalSgdOptions& o = state_->options;
  if (state_->iter <= o.start_local_sgd_iter) return allreduce_hook(group, bucket);
  return o.post_local_gradient_allreduce ? allreduce_hook(*o.subgroup, bucket) : CommStages{};
}

int64_t PostLocalSgd::iter() const { return state_->iter; }
void PostLocalSgd::set_iter(int64_t iter) const { state_->iter = iter; }

}  // namespace levin::distributed
