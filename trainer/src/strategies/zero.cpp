// "zero_1" and "zero_2": data parallelism with sharded optimizer state and, for zero_2, sharded gradients.
#include <levin/distributed/zero.h>
#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <algorithm>

#include "src/strategies/ddp.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

using distributed::ZeroRedundancyOptimizer;

class Zero final : public Ddp, public ShardedOptimizer {
 public:
  Zero(World& world, Device device, int stage, bool saves_shards)
      : Ddp(world, device, /*find_unused=*/false), stage_(stage), saves_shards_(saves_shards) {}
  std::string name() const override { return fmt::format("zero_{}", stage_); }
  ShardedOptimizer* sharded_optimizer() override { return this; }

  void setup_optimizers(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i) {
      optim::Optimizer& optimizer = optimizers.optimizer(i);
      sharded_.push_back({&optimizer, std::make_unique<ZeroRedundancyOptimizer>(
                                          optimizer, shared_group(), distributed::ZeroOptions{.stage = stage_})});
      sharded_.back().zero->set_sync(false);
    }
  }
  void take_parameters(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i) of(optimizers.optimizer(i)).take_parameters();
  }
  void release_optimizers() override { sharded_.clear(); }

  bool may_average_again() const override { return false; }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
    ZeroRedundancyOptimizer* zero = of(parameters);
    if (stage_ == 1 || !zero) return Ddp::reduce_in_backward(parameters);
    zero->set_sync(true);
    reduces_ = true;
  }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    ZeroRedundancyOptimizer* zero = of(parameters);
    if (stage_ == 1 || !zero) return Ddp::finish_reduction(parameters);
    if (!std::exchange(reduces_, false)) return zero->reduce();
    zero->set_sync(false);
  }
  void before_step(const std::vector<Parameter>& parameters) override {
    if (auto* zero = of(parameters)) zero->before_step();
  }
  void after_step(const std::vector<Parameter>& parameters) override {
    if (auto* zero = of(parameters)) zero->after_step();
  }

  std::vector<Parameter> full_parameters(std::vector<Parameter> parameters) const override {
    for (const Sharded& s : sharded_) parameters = s.zero->full_parameters(std::move(parameters));
    return parameters;
  }
  void zero_grad(const std::vector<Parameter>& parameters) override {
    if (stage_ == 1) return;  // the optimizer has already done it
    for (const Parameter& p : full_parameters(parameters)) p.set_grad({});
  }
  void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) override {
    if (auto* zero = of(parameters)) return void(zero->clip_grad_norm_(max_norm));
    Ddp::clip_grad_norm(parameters, max_norm);
  }
  Tensor full_norms(const Tensor& norms, double type) const override { return norms_over_ranks(group(), norms, type); }
  StateDict full_optimizer_state(const Optimizers& optimizers) const override {
    std::vector<StateDict> states;
    for (std::size_t i = 0; i < optimizers.size(); ++i) states.push_back(of(optimizers.optimizer(i)).state_dict());
    return Optimizers::joined(states);
  }
  void load_full_optimizer_state(Optimizers& optimizers, const StateDict& full) override {
    const auto states = optimizers.parts(full);
    for (std::size_t i = 0; i < states.size(); ++i) of(optimizers.optimizer(i)).load_state_dict(states[i]);
  }
  bool saves_shards() const override { return saves_shards_ && world_size() > 1; }
  std::vector<distributed::Shard> optimizer_shards(const Optimizers& optimizers) const override {
    return shards_by_optimizer(optimizers, [this](optim::Optimizer& o) { return of(o).shards(); });
  }

 private:
  struct Sharded {
    const optim::Optimizer* optimizer;
    std::unique_ptr<ZeroRedundancyOptimizer> zero;
  };

  ZeroRedundancyOptimizer* of(const std::vector<Parameter>& parameters) const {
    for (const Sharded& s : sharded_)
      if (!parameters.empty() && s.zero->steps(parameters.front())) return s.zero.get();
    return nullptr;
  }

  ZeroRedundancyOptimizer& of(const optim::Optimizer& optimizer) const {
    return *std::ranges::find(sharded_, &optimizer, &Sharded::optimizer)->zero;
  }

  int stage_;
  bool saves_shards_;  // in checkpoints
  std::vector<Sharded> sharded_;
  bool reduces_ = false;  // reduce in the backward of this window
};

}  // namespace

std::unique_ptr<Strategy> make_zero(const StrategyChoice& choice) {
  return std::make_unique<Zero>(choice.world(), choice.own_device(), choice.name == "zero_1" ? 1 : 2,
                                choice.options->fsdp.state_dict_type == "sharded");
}

}  // namespace levin
