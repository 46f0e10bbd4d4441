#include "src/tuner/trial.h"

#include <levin/autograd/modes.h>

#include <fmt/format.h>

namespace levin {
namespace {

/// Enables logging, because the metric store saves and restores the module's metric objects around a trial.
TrainerConfig with_logs(TrainerConfig config) {
  config.barebones = false;
  return config;
}

}  // namespace

Trial::Trial(LevinModule& module, data::DataLoader& loader, const TrainerConfig& config, std::int64_t steps)
    : module_(module),
      loader_(loader),
      place_(loader.state()),
      random_(default_generator().state()),
      strategy_(make_strategy(strategy_options(config))),
      precision_(make_precision(config.precision)),
      config_(with_logs(config)),
      context_{.config = config_,
               .state = state_,
               .metrics = metrics_,
               .module = module,
               .stop = stop_,
               .estimated_stepping_batches = [steps] { return steps; },
               .strategy = strategy_.get(),
               .precision = precision_.get()} {
  if (strategy_->sharded_weights())
    throw UsageError(
        fmt::format("[tuner] a trial restores all weights, which --strategy {} shards. Tune with --strategy ddp.",
                    strategy_->name()));
  for (const auto& [name, p] : module.named_parameters()) {
    weights_.set(name, p.detach().clone());
    if (p.grad().defined()) gradients_.emplace_back(p, p.grad());
    p.set_grad({});
  }
  for (const auto& [name, b] : module.named_buffers()) weights_.set(name, b.clone());
  for (const auto& [name, m] : module.named_modules()) modes_.emplace_back(m, m->is_training());
  around_ = module.set_run(&context_);
  objects_ = metrics_.state();
  try {
    module.train();
    precision_->setup(module);
    strategy_->setup(module);
    optimizers_ = module.configure_optimizers();
    if (optimizers_.empty())
      throw UsageError("[tuner] configure_optimizers returned no optimizer. Return one, e.g. optim::AdamW.");
    runner_ = std::make_unique<StepRunner>(module, optimizers_, *strategy_, *precision_, hooks_,
                                           StepOptions{.accumulate_grad_batches = config.accumulate_grad_batches,
                                                       .gradient_clip_val = config.gradient_clip_val,
                                                       .gradient_clip_algorithm = config.gradient_clip_algorithm});
    context_.manual = runner_->manual();
  } catch (...) {
    restore();
    throw;
  }
}

Trial::~Trial() { restore(); }

void Trial::restore() {
  const no_grad guard;
  runner_.reset();
  metrics_.load_state(objects_);
  module_.set_run(around_);
  const auto parameters = module_.named_parameters();
  for (const auto& [name, p] : parameters) p.set_grad({});
  if (!weights_.empty()) {
    const Tensor& first = weights_.begin()->second;
    first.is_floating() ? module_.to(first.device(), first.dtype()) : module_.to(first.device());
  }
  for (const auto& [name, p] : parameters) p.copy_(weights_.at(name));
  for (const auto& [name, b] : module_.named_buffers()) b.copy_(weights_.at(name));
  for (const auto& [p, g] : gradients_) p.set_grad(g);
  for (const auto& [m, on] : modes_) m->train(on);  // parents first, so that children take precedence
  loader_.load_state(place_);
  default_generator().set_state(random_);
}

void Trial::run(std::int64_t steps, const std::function<bool(std::optional<double>)>& go_on) {
  metrics_.start_epoch(Split::train);
  for (int index = 0; state_.global_step < steps; state_.batch = 0) {
    const std::int64_t batches = loader_.has_size() ? loader_.size() : -1;
    const std::int64_t before = state_.global_step;
    for (auto it = loader_.begin(); it != loader_.end() && state_.global_step < steps; ++it, ++index) {
      Batch batch = module_.on_before_batch_transfer(std::move(*it));
      batch = module_.transfer_batch_to_device(std::move(batch), strategy_->device());
      batch = module_.on_after_batch_transfer(std::move(batch));
      metrics_.set_scope(MetricStore::Scope::step, Split::train, batch.size());
      const StepOutput out = runner_->run(batch, index, ++state_.batch == batches, state_);
      metrics_.set_scope(MetricStore::Scope::closed, Split::train);
      // All ranks decide alike.
      const auto loss = out.empty()
                            ? std::nullopt
                            : std::optional(strategy_->reduce(out.loss().item<double>(), ReduceOp::avg));
      if (go_on && !go_on(loss)) return;
    }
    if (state_.batch == 0 || (state_.global_step == before && batches < 0))
      throw UsageError("[tuner] the loader gives too few batches for one step. Give it more data.");
  }
  runner_->settle(state_);
}

}  // namespace levin
