#include <levin/trainer/fabric.h>

#include <levin/core/warning.h>
#include <levin/interop/safetensors.h>
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/checkpoint/load_from_checkpoint.h>

#include <fmt/format.h>

#include <cstdio>

#include "src/checkpoint/checkpoint_shards.h"
#include "src/checkpoint/full_state_dict.h"
#include "src/checkpoint/generator_map.h"
#include "src/config/strategy_options.h"
#include "src/loops/data_source.h"

namespace levin {

struct Fabric::Taken {
  Optimizers optimizers;
  ManualOptimization steps;
  Taken(Optimizers given, Strategy& strategy, PrecisionPlugin& precision, StepHooks& hooks)
      : optimizers(std::move(given)),
        steps(known_to(strategy), strategy, precision, hooks, ManualOptimization::ScaleMoves::with_step) {}
  /// Registers the optimizers, whose address is final, with the strategy.
  Optimizers& known_to(Strategy& strategy) {
    strategy.setup_optimizers(optimizers);
    return optimizers;
  }
};

Fabric::Fabric(FabricConfig config)
    : config_(std::move(config)),
      strategy_(make_strategy(shared_options<StrategyOptions>(config_))),
      precision_(make_precision(config_.precision)) {}
Fabric::Fabric(std::unique_ptr<Strategy> strategy, FabricConfig config)
    : config_(std::move(config)), strategy_(std::move(strategy)), precision_(make_precision(config_.precision)) {
  config_.strategy = strategy_->name();
}
Fabric::~Fabric() = default;

void Fabric::launch(const std::function<void()>& body) {
  strategy_->barrier();
  if (body) body();
}

void Fabric::setup_module(nn::Module& module) {
  precision_->setup(module);
  strategy_->setup(module);
}

ManualOptimization& Fabric::take(Optimizers optimizers, std::size_t count) {
  if (optimizers.size() != count)
    throw UsageError(fmt::format("[fabric] {} optimizers were given, but {} were requested. Request {}.",
                                 optimizers.size(), count, optimizers.size()));
  taken_.push_back(std::make_unique<Taken>(std::move(optimizers), *strategy_, *precision_, hooks_));
  return taken_.back()->steps;
}

FabricLoader Fabric::setup_dataloaders(data::DataLoader& loader, bool use_distributed_sampler) const {
  const std::shared_ptr<data::DataLoader> given(std::shared_ptr<void>(), &loader);
  return {use_distributed_sampler ? shared_out(given, *strategy_, /*pad=*/true) : given, *strategy_, *precision_};
}

void Fabric::backward(const Tensor& loss) {
  if (loss.numel() != 1)
    throw ShapeError(
        fmt::format("[backward] the loss has shape {}. Give one number, e.g. its mean.", to_string(loss.sizes())));
  const Tensor scaled = precision_->scale(loss);
  if (taken_.size() == 1 && taken_.front()->optimizers.size() == 1) {
    taken_.front()->steps.backward_of_only(scaled, averages_in_backward_);
  } else {
    for (const auto& taken : taken_) taken->steps.gradients_are_added();
    scaled.backward();
  }
}

void Fabric::print(const std::string& text) const {
  if (is_global_zero()) std::puts(text.c_str());
}

void Fabric::check_rank(int src) const {
  if (src < 0 || src >= world_size())
    throw ValueError(fmt::format("[broadcast] rank {} does not exist: the ranks are 0 to {}. Set src to one of these.",
                                 src, world_size() - 1));
}

Tensor Fabric::broadcast(const Tensor& value, int src) {
  check_rank(src);
  return strategy_->broadcast(value, src);
}

StateMap Fabric::broadcast(const StateMap& values, int src) {
  check_rank(src);
  return strategy_->broadcast(values, src);
}

void Fabric::log_dict(const MetricStore::Values& values, std::int64_t step) {
  if (!is_global_zero()) return;
  for (const auto& logger : config_.loggers) logger->log_metrics({.step = step, .values = values});
}

void Fabric::seed_everything(std::uint64_t seed) { manual_seed(seed); }

void Fabric::save(const std::string& folder, const nn::Module& module, const StateMap& values) {
  Checkpoint c;
  const bool in_shards = saves_shards(*strategy_);
  if (!in_shards || !strategy_->sharded_weights())
    c.model = consensus(*strategy_, full_state_dict(*strategy_, *precision_, module));
  if (in_shards) add_shards(c, "model.", weight_shards(*strategy_, module, std::exchange(c.model, {})));
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const std::string prefix = fmt::format("fabric.{}.", i);
    if (in_shards)
      add_shards(c, prefix + "optimizer.", strategy_->sharded_optimizer()->optimizer_shards(taken_[i]->optimizers));
    else
      c.tensors.merge(prefix + "optimizer.", full_optimizer_state(*strategy_, taken_[i]->optimizers));
    c.tensors.merge(prefix + "scheduler.", taken_[i]->optimizers.scheduler_state());
  }
  const auto random = strategy_->gather(to_map(default_generator().state()));
  c.values.put("rng", random.front());
  for (std::size_t r = 1; r < random.size(); ++r) c.values.put(fmt::format("rank{}.rng", r), random[r]);
  c.values.put("strategy", strategy_->state());
  c.values.set("precision_name", precision_->name());
  c.values.put("precision", precision_->state());
  c.values.put("values", values);
  write_checkpoint(*strategy_, folder, c);
}

StateMap Fabric::load(const std::string& folder, nn::Module& module) {
  const Checkpoint c = read_checkpoint(folder);
  try {
    const nn::LoadReport report{.converted = load_full_state_dict(*strategy_, *precision_, module, c.model)};
    if (const auto text = detail::describe(report); !text.empty()) warn(fmt::format("{}: {}", folder, text));
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const std::string prefix = fmt::format("fabric.{}.", i);
      load_full_optimizer_state(*strategy_, taken_[i]->optimizers, c.tensors.sub(prefix + "optimizer."));
      taken_[i]->optimizers.load_scheduler_state(c.tensors.sub(prefix + "scheduler."));
    }
    if (const auto saved = c.values.get<std::string>("precision_name"); saved == precision_->name())
      precision_->load_state(c.values.part("precision"));
    if (const StateMap s = c.values.part("strategy"); !s.empty()) strategy_->load_state(s);
    const StateMap own = c.values.part(fmt::format("rank{}.rng", global_rank()));
    const StateMap& random = own.empty() ? c.values.part("rng") : own;
    default_generator().set_state(of_rank(generator_state(random), global_rank()));
  } catch (const StateError& e) {
    throw StateError(fmt::format("[fabric] {} does not fit what was set up: {}", folder, e.what()));
  }
  return c.values.part("values");
}

nn::LoadReport Fabric::load_raw(const std::string& file, nn::Module& module, bool strict) {
  const StateDict given = interop::load_safetensors(file).tensors;
  nn::LoadReport report;
  try {
    const StateDict whole = strict ? given : fitting_weights(*strategy_, *precision_, module, given, report);
    report.converted = load_full_state_dict(*strategy_, *precision_, module, whole);
  } catch (const StateError& e) {
    throw StateError(fmt::format("[load_raw] {} does not fit the module: {}", file, e.what()));
  }
  return report;
}

std::unique_ptr<PrecisionPlugin::Scope> Fabric::autocast() const { return precision_->step_scope(); }

void Fabric::log(const std::string& name, double value, std::int64_t step) { log_dict({{name, value}}, step); }

OwnedPtr<PrecisionPlugin::Scope> Fabric::step_scope() const { return autocast(); }

}  // namespace levin
