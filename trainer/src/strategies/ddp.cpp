#include "src/strategies/ddp.h"

#include <levin/distributed/bagua.h>

#include <algorithm>
#include <utility>

#include "src/strategies/by_parameters.h"

namespace levin {

void Ddp::reduce_in_backward(const std::vector<Parameter>& parameters) {
  const std::vector<Parameter> watched = trainable(parameters);
  const auto same = [](const Parameter& a, const Parameter& b) { return a.is_same(b); };
  if (!reducer_ || !std::equal(watched.begin(), watched.end(), watched_.begin(), watched_.end(), same)) {
    reducer_.reset();
    reducer_ = std::make_unique<distributed::Reducer>(
        watched, shared_group(), distributed::DistributedDataParallelOptions{.find_unused_parameters = find_unused_});
    if (auto hook = comm_hook(watched)) reducer_->register_comm_hook(std::move(hook));
    if (const auto order = std::exchange(order_, {}); order.size() == watched.size()) reducer_->set_order(order);
    watched_ = watched;
  }
  reducer_->set_sync(true);
  reduced_ = true;
}

void Ddp::finish_reduction(const std::vector<Parameter>& parameters) {
  if (std::exchange(reduced_, false)) return reducer_->set_sync(false);  // backward has already waited for it
  const auto watched = trainable(parameters);
  if (const auto hook = comm_hook(watched)) return distributed::exchange_gradients(group(), watched, hook);
  average_gradients(group(), parameters);
}

StateMap Ddp::state() {
  const auto order = reducer_ ? reducer_->order() : order_;
  return order.empty() ? StateMap() : StateMap{{"bucket_order", order}};
}

void Ddp::load_state(const StateMap& state) {
  reducer_.reset();
  if (state.has("bucket_order")) order_ = state.get<std::vector<std::int64_t>>("bucket_order");
}

std::unique_ptr<Strategy> make_ddp(const StrategyChoice& choice) {
  const bool find_unused = choice.name == "ddp_find_unused_parameters_true";
  const std::string& hook = choice.options->ddp.comm_hook;
  if (hook == "post_local_sgd") return make_post_local_sgd(choice, find_unused);
  return std::make_unique<Ddp>(choice.world(), choice.own_device(), find_unused,
                               hook == "fp16_compress"   ? distributed::CommHook(distributed::fp16_compress_hook)
                               : hook == "bf16_compress" ? distributed::CommHook(distributed::bf16_compress_hook)
                                                         : distributed::CommHook());
}

}  // namespace levin
