#include <levin/distributed/model_averaging.h>
#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/strategies/by_parameters.h"
#include "src/strategies/ddp.h"

namespace levin {
namespace {

using namespace distributed;

/// Returns the group of the ranks of this machine.
std::shared_ptr<ProcessGroup> group_of_machine(const Strategy& strategy) {
  std::shared_ptr<ProcessGroup> own;
  for (const std::vector<int>& ranks : ranks_by_machine(strategy))
    if (const auto made = strategy.process_group()->new_group(ranks)) own = made;
  return own;
}

/// Lightning's DDPStrategy with PyTorch's post_localSGD_hook: averages gradients over all ranks at first, then within a
/// machine or not at all, and the weights of all ranks every few steps. Each optimizer counts its own steps.
class PostLocalSgdDdp final : public Ddp {
 public:
  PostLocalSgdDdp(World& world, Device device, bool find_unused, const StrategyOptions& o)
      : Ddp(world, device, find_unused),
        hook_options_{.start_local_sgd_iter = o.ddp.start_local_sgd_iter,
                      .post_local_gradient_allreduce = o.ddp.post_local_gradient_allreduce},
        averager_options_{.period = o.ddp.model_averaging_period, .warmup_steps = o.ddp.start_local_sgd_iter} {
    if (o.ddp.post_local_gradient_allreduce) hook_options_.subgroup = group_of_machine(*this);
  }
  void setup_optimizers(const Optimizers& optimizers) override {
    if (std::exchange(released_, false)) kept_.clear();
    for (std::size_t i = 0; i < optimizers.size(); ++i)
      kept_.push_back({&optimizers.optimizer(i), PostLocalSgd(hook_options_),
                       PeriodicModelAverager(shared_group(), averager_options_)});
  }
  void release_optimizers() override { released_ = true; }
  void after_step(const std::vector<Parameter>& parameters) override {
    of(parameters).averager.average_parameters(trainable(parameters));
  }
  bool may_average_again() const override { return false; }
  DivergentWeights* divergent_weights() override { return world_size() > 1 ? &consensus_ : nullptr; }

  StateMap state() override {
    std::vector<std::int64_t> iterations, steps;
    for (const Kept& k : kept_) {
      iterations.push_back(k.hook.iter());
      steps.push_back(k.averager.step());
    }
    StateMap own = Ddp::state();
    own.set("local_sgd_iterations", iterations);
    own.set("local_sgd_steps", steps);
    return own;
  }
  void load_state(const StateMap& state) override {
    Ddp::load_state(state);
    const auto numbers = [&](const char* name) {
      auto saved = state.has(name) ? state.get<std::vector<std::int64_t>>(name) : std::vector<std::int64_t>();
      saved.resize(kept_.size());
      return saved;
    };
    const auto iterations = numbers("local_sgd_iterations"), steps = numbers("local_sgd_steps");
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      kept_[i].hook.set_iter(iterations[i]);
      kept_[i].averager.set_step(steps[i]);
    }
  }

 protected:
  CommHook comm_hook(const std::vector<Parameter>& parameters) override { return of(parameters).hook; }

 private:
  struct Kept {
    const optim::Optimizer* optimizer;
    PostLocalSgd hook;
    PeriodicModelAverager averager;
  };
  /// Returns the state of the optimizer of these parameters.
  Kept& of(const std::vector<Parameter>& parameters) {
    const auto steps_them = [&](const Kept& k) {
      return !parameters.empty() && std::ranges::any_of(k.optimizer->parameters(), [&](const Parameter& p) {
        return p.is_same(parameters.front());
      });
    };
    const auto found = std::ranges::find_if(kept_, steps_them);
    return found == kept_.end() ? kept_.front() : *found;
  }

  PostLocalSgdOptions hook_options_;
  PeriodicModelAveragerOptions averager_options_;
  std::vector<Kept> kept_;  // one per optimizer; counts remain readable after fit
  bool released_ = false;
  GroupConsensus consensus_{group()};
};

}  // namespace

void check_ddp(const StrategyOptions& o, const std::string& strategy) {
  const std::string& hook = o.ddp.comm_hook;
  if (hook != "none" && hook != "fp16_compress" && hook != "bf16_compress" && hook != "post_local_sgd")
    throw UsageError(
        fmt::format("--ddp-comm-hook {}: choose none, fp16_compress, bf16_compress or post_local_sgd.", hook));
  const StrategyKind* const kind = find_strategy(strategy);
  if (hook != "none" && strategy != "single" && kind->make != make_ddp)
    throw UsageError(
        fmt::format("--ddp-comm-hook {}: --strategy {} has its own way to exchange gradients. Use --strategy ddp, or "
                    "leave the hook out.",
                    hook, strategy));
  if (hook == "post_local_sgd" ? o.ddp.model_averaging_period < 1 : o.ddp.model_averaging_period != 0)
    throw UsageError(
        fmt::format("--model-averaging-period {}: give 1 or more steps with --ddp-comm-hook post_local_sgd, which "
                    "needs it, and nothing with other hooks.",
                    o.ddp.model_averaging_period));
  if (o.ddp.start_local_sgd_iter < 0 || (o.ddp.start_local_sgd_iter > 0 && hook != "post_local_sgd"))
    throw UsageError(
        fmt::format("--start-local-sgd-iter {}: give 0 or more, with --ddp-comm-hook post_local_sgd.",
                    o.ddp.start_local_sgd_iter));
}

std::unique_ptr<Strategy> make_post_local_sgd(const StrategyChoice& choice, bool find_unused) {
  return std::make_unique<PostLocalSgdDdp>(choice.world(), choice.own_device(), find_unused, *choice.options);
}

}  // namespace levin
