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

class Zero final : public Ddp {
 public:
  Zero(World& world, Device device, int stage, bool sharded)
      : Ddp(world, device, /*find_unused=*/false), stage_(stage), sharded_(sharded) {}
  std::string name() const override { return fmt::format("zero_{}", stage_); }

  void setup_optimizers(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i) {
      optim::Optimizer& optimizer = optimizers.optimizer(i);
      divided_.push_back({&optimizer, std::make_unique<ZeroRedundancyOptimizer>(
                                          optimizer, shared_group(), distributed::ZeroOptions{.stage = stage_})});
      divided_.back().zero->set_sync(false);
    }
  }
  void take_parameters(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i) of(optimizers.optimizer(i)).take_parameters();
  }
  void release_optimizers() override { divided_.clear(); }

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

  bool divides_state() const override { return true; }
  std::vector<Parameter> whole_of(std::vector<Parameter> parameters) const override {
    for (const Divided& d : divided_) parameters = d.zero->whole_of(std::move(parameters));
    return parameters;
  }
  void zero_grad(const std::vector<Parameter>& parameters) override {
    if (stage_ == 1) return;  // the optimizer has already done it
    for (const Parameter& p : whole_of(parameters)) p.set_grad({});
  }
  void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) override {
    if (auto* zero = of(parameters)) return void(zero->clip_grad_norm_(max_norm));
    Ddp::clip_grad_norm(parameters, max_norm);
  }
  Tensor whole_norms(const Tensor& norms, double type) const override { return norms_over_ranks(norms, type); }
  StateDict optimizer_state(const Optimizers& optimizers) override {
    std::vector<StateDict> states;
    for (std::size_t i = 0; i < optimizers.size(); ++i) states.push_back(of(optimizers.optimizer(i)).state_dict());
    return Optimizers::joined(states);
  }
  void load_optimizer_state(Optimizers& optimizers, const StateDict& whole) override {
    const auto states = optimizers.parts(whole);
    for (std::size_t i = 0; i < states.size(); ++i) of(optimizers.optimizer(i)).load_state_dict(states[i]);
  }
  bool saves_shards() const override { return sharded_ && world_size() > 1; }
  std::vector<distributed::Shard> optimizer_shards(const Optimizers& optimizers) override {
    return shards_by_optimizer(optimizers, [this](optim::Optimizer& o) { return of(o).shards(); });
  }

 private:
  struct Divided {
    const optim::Optimizer* optimizer;
    std::unique_ptr<ZeroRedundancyOptimizer> zero;
  };

  ZeroRedundancyOptimizer* of(const std::vector<Parameter>& parameters) const {
    for (const Divided& d : divided_)
      if (!parameters.empty() && d.zero->steps(parameters.front())) return d.zero.get();
    return nullptr;
  }

  ZeroRedundancyOptimizer& of(const optim::Optimizer& optimizer) const {
    return *std::ranges::find(divided_, &optimizer, &Divided::optimizer)->zero;
  }

  int stage_;
  bool sharded_;  // write sharded checkpoints
  std::vector<Divided> divided_;
  bool reduces_ = false;  // reduce in the backward of this window
};

}  // namespace

std::unique_ptr<Strategy> make_zero(const StrategyChoice& choice) {
  return std::make_unique<Zero>(choice.world(), choice.own_device(), choice.name == "zero_1" ? 1 : 2,
                                choice.options->fsdp.state_dict_type == "sharded");
}

}  // namespace levin
