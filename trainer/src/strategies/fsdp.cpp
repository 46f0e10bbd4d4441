// "fsdp" (zero_3, fully_sharded): parameters, gradients and optimizer state sharded over the ranks.
#include <levin/distributed/fsdp.h>
#include <levin/trainer/module.h>
#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <algorithm>

#include "src/strategies/rank_strategy.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

using distributed::FullyShardedDataParallel;

class Fsdp final : public RankStrategy, public ShardedOptimizer, public ShardedWeights {
 public:
  Fsdp(World& world, Device device, const StrategyOptions& o)
      : RankStrategy(world, device), unit_size_(o.fsdp.unit_size), saves_shards_(o.fsdp.state_dict_type == "sharded") {}
  std::string name() const override { return "fsdp"; }
  ShardedOptimizer* sharded_optimizer() override { return this; }
  ShardedWeights* sharded_weights() override { return this; }

  void setup(nn::Module& module) override {
    RankStrategy::setup(module);
    // FSDP gathers weights in hooks of module calls, and training_step does not call its own module.
    const auto own = module.parameters(/*recurse=*/false);
    if (!own.empty() && dynamic_cast<LevinModule*>(&module) != nullptr)
      throw UsageError(
          fmt::format("[fsdp] \"{}\" belongs to {} itself. Put it into a module that is called, or use --strategy "
                      "zero_2.",
                      own.front().name, module.type_name()));
    std::erase_if(modules_, [&](const auto& m) { return &m->module() == &module; });
    if (module.parameters().empty()) return;
    modules_.push_back(std::make_unique<FullyShardedDataParallel>(
        module, shared_group(), distributed::FullyShardedOptions{.min_elements = unit_size_}));
    modules_.back()->set_sync(false);
  }
  void setup_optimizers(const Optimizers& optimizers) override {
    for (std::size_t i = 0; i < optimizers.size(); ++i)
      for (const auto& m : modules_) m->take(optimizers.optimizer(i));
  }
  void take_parameters(const Optimizers& optimizers) override { setup_optimizers(optimizers); }
  void finish(nn::Module& module) override {
    const auto own = std::ranges::find_if(modules_, [&](const auto& m) { return &m->module() == &module; });
    if (own == modules_.end()) return;
    (*own)->unshard();
    modules_.erase(own);
  }

  void reduce_in_backward(const std::vector<Parameter>&) override {
    for (const auto& m : modules_) m->set_sync(true);
    reduces_ = true;
  }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    const bool reduced = std::exchange(reduces_, false);
    for (const auto& m : modules_) reduced ? m->set_sync(false) : m->reduce(parameters);
  }

  std::vector<Parameter> full_parameters(std::vector<Parameter> parameters) const override {
    for (const auto& m : modules_) parameters = m->full_parameters(std::move(parameters));
    return parameters;
  }
  void zero_grad(const std::vector<Parameter>& parameters) override {
    for (const Parameter& p : full_parameters(parameters)) p.set_grad({});
  }
  void clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) override {
    distributed::clip_grad_norm_of_pieces_(parameters, max_norm, group());
  }
  Tensor full_norms(const Tensor& norms, double type) const override { return norms_over_ranks(group(), norms, type); }
  StateDict full_optimizer_state(const Optimizers& optimizers) const override {
    std::vector<StateDict> states;
    for (std::size_t i = 0; i < optimizers.size(); ++i)
      states.push_back(of(optimizers.optimizer(i)).optimizer_state(optimizers.optimizer(i)));
    return Optimizers::joined(states);
  }
  void load_full_optimizer_state(Optimizers& optimizers, const StateDict& full) override {
    const auto states = optimizers.parts(full);
    for (std::size_t i = 0; i < states.size(); ++i)
      of(optimizers.optimizer(i)).load_optimizer_state(optimizers.optimizer(i), states[i]);
  }
  StateDict full_state_dict(const nn::Module& module) const override {
    const auto* own = of(module);
    return own ? own->state_dict() : module.state_dict();
  }
  void load_full_state_dict(nn::Module& module, const StateDict& full) override {
    if (auto* own = of(module))
      own->load_state_dict(full);
    else
      module.load_state_dict(full);
  }
  bool saves_shards() const override { return saves_shards_ && world_size() > 1; }
  std::vector<distributed::Shard> optimizer_shards(const Optimizers& optimizers) const override {
    return shards_by_optimizer(optimizers, [this](optim::Optimizer& o) { return of(o).optimizer_shards(o); });
  }
  std::vector<distributed::Shard> weight_shards(const nn::Module& module) const override {
    if (const auto* own = of(module)) return own->shards();
    std::vector<distributed::Shard> buffers;  // buffers of modules without parameters
    if (is_global_zero())
      for (const StateDict all = module.state_dict(); const auto& [name, t] : all)
        buffers.push_back({name, t, 0, t.sizes()});
    return buffers;
  }

 private:
  FullyShardedDataParallel* of(const nn::Module& module) const {
    for (const auto& m : modules_)
      if (&m->module() == &module) return m.get();
    return nullptr;
  }
  /// Returns the module whose parameters an optimizer steps.
  FullyShardedDataParallel& of(const optim::Optimizer& optimizer) const {
    const auto parameters = optimizer.parameters();
    for (const auto& m : modules_)
      if (std::ranges::all_of(parameters, [&](const Parameter& p) { return m->has(p); })) return *m;
    throw UsageError("[fsdp] an optimizer steps parameters of several modules. Set up one module that has them all.");
  }

  std::int64_t unit_size_;
  bool saves_shards_;  // in checkpoints
  std::vector<std::unique_ptr<FullyShardedDataParallel>> modules_;
  bool reduces_ = false;  // reduce in the backward of this window
};

}  // namespace

void check_fsdp(const StrategyOptions& o, const std::string& strategy) {
  if (o.fsdp.unit_size < 1)
    throw UsageError(fmt::format("--fsdp-unit-size {}: give 1 or more.", o.fsdp.unit_size));
  const std::string& type = o.fsdp.state_dict_type;
  if (type != "full" && type != "sharded")
    throw UsageError(fmt::format("--fsdp-state-dict-type {}: choose full or sharded.", type));
  if (type == "sharded" && !shards_state(strategy))
    throw UsageError(
        fmt::format("--fsdp-state-dict-type sharded: with --strategy {} ranks have no shards. Use --strategy fsdp, "
                    "zero_1 or zero_2, or full.",
                    strategy));
}

std::unique_ptr<Strategy> make_fsdp(const StrategyChoice& choice) {
  return std::make_unique<Fsdp>(choice.world(), choice.own_device(), *choice.options);
}

}  // namespace levin
