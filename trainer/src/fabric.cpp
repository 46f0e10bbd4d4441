#include <levin/trainer/fabric.h>

#include <levin/trainer/checkpoint.h>

#include <fmt/format.h>

#include <cstdio>

#include "data_source.h"
#include "generator_map.h"

namespace levin {

struct Fabric::Taken {
  Optimizers optimizers;
  ManualOptimization steps;
  Taken(Optimizers given, Strategy& strategy, Precision& precision, StepHooks& hooks)
      : optimizers(std::move(given)),
        steps(optimizers, strategy, precision, hooks, ManualOptimization::ScaleMoves::with_step) {}
};

Fabric::Fabric(FabricConfig config)
    : config_(std::move(config)),
      strategy_(make_strategy(StrategyOptions{.strategy = config_.strategy,
                                              .accelerator = config_.accelerator,
                                              .devices = config_.devices,
                                              .num_nodes = config_.num_nodes,
                                              .node_rank = config_.node_rank,
                                              .timeout = config_.timeout,
                                              .nccl_algo = config_.nccl_algo,
                                              .scale_lr = config_.scale_lr,
                                              .gradient_compression = config_.gradient_compression,
                                              .fusion_threshold_mb = config_.fusion_threshold_mb,
                                              .cycle_time_ms = config_.cycle_time_ms,
                                              .bagua_algorithm = config_.bagua_algorithm,
                                              .bagua_peers = config_.bagua_peers,
                                              .bagua_warmup_steps = config_.bagua_warmup_steps,
                                              .bagua_sync_interval_ms = config_.bagua_sync_interval_ms})),
      precision_(make_precision(config_.precision)) {}
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
    throw UsageError(fmt::format("[fabric] {} optimizers were given, and {} asked for. Ask for {}.", optimizers.size(),
                                 count, optimizers.size()));
  strategy_->setup_optimizers(optimizers);
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
  precision_->scale(loss).backward();
}

void Fabric::print(const std::string& text) const {
  if (is_global_zero()) std::puts(text.c_str());
}

void Fabric::check_rank(int src) const {
  if (src < 0 || src >= world_size())
    throw ValueError(fmt::format("[broadcast] rank {} is not there: the ranks are 0 to {}. Give src one of these.", src,
                                 world_size() - 1));
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

void Fabric::save(const std::filesystem::path& folder, const nn::Module& module, const StateMap& values) {
  Checkpoint c;
  c.model = strategy_->divides_weights() ? strategy_->weights(module) : precision_->weights(module);
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const std::string prefix = fmt::format("fabric.{}.", i);
    c.tensors.merge(prefix + "optimizer.", strategy_->optimizer_state(taken_[i]->optimizers));
    c.tensors.merge(prefix + "scheduler.", taken_[i]->optimizers.scheduler_state());
  }
  if (is_global_zero()) {
    c.values.put("rng", to_map(default_generator().state()));
    c.values.set("precision_name", precision_->name());
    c.values.put("precision", precision_->state());
    c.values.put("values", values);
    write_checkpoint(folder, c);
  }
  strategy_->barrier();
}

StateMap Fabric::load(const std::filesystem::path& folder, nn::Module& module) {
  const Checkpoint c = read_checkpoint(folder);
  try {
    strategy_->divides_weights() ? strategy_->load_weights(module, c.model) : precision_->load_weights(module, c.model);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const std::string prefix = fmt::format("fabric.{}.", i);
      strategy_->load_optimizer_state(taken_[i]->optimizers, c.tensors.sub(prefix + "optimizer."));
      taken_[i]->optimizers.load_scheduler_state(c.tensors.sub(prefix + "scheduler."));
    }
    if (const auto saved = c.values.get<std::string>("precision_name"); saved == precision_->name())
      precision_->load_state(c.values.part("precision"));
    default_generator().set_state(generator_state(c.values.part("rng")));
  } catch (const StateError& e) {
    throw StateError(fmt::format("[fabric] {} does not fit what was set up: {}", folder.string(), e.what()));
  }
  return c.values.part("values");
}

}  // namespace levin
