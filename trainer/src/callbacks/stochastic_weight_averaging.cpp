#include <levin/trainer/callbacks/stochastic_weight_averaging.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/layers.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/module.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace levin {

SWALR::SWALR(optim::Optimizer& optimizer, std::vector<double> swa_lrs, std::int64_t anneal_epochs,
             optim::Anneal strategy)
    : Scheduler(optimizer, current_lrs(optimizer)),
      swa_lrs_(std::move(swa_lrs)),
      anneal_epochs_(anneal_epochs),
      strategy_(strategy) {
  const std::size_t given = swa_lrs_.size();
  if (given == 1) swa_lrs_.resize(groups().size(), swa_lrs_[0]);
  if (swa_lrs_.size() != groups().size())
    throw ValueError(fmt::format("[SWALR] there are {} rates for {} parameter groups. Give one, or one for each.",
                                 given, groups().size()));
  if (anneal_epochs_ < 0) throw ValueError(fmt::format("[SWALR] anneal_epochs is {}. Give 0 or more.", anneal_epochs_));
  SWALR::apply();
}

double SWALR::lr(std::size_t i) const {
  const auto now = static_cast<double>(anneal_epochs_ == 0 ? std::max<std::int64_t>(1, last_epoch()) : last_epoch());
  const double t = std::min(1.0, now / static_cast<double>(std::max<std::int64_t>(1, anneal_epochs_)));
  const double part = strategy_ == optim::Anneal::linear ? t : (1.0 - std::cos(std::numbers::pi * t)) / 2.0;
  return swa_lrs_[i] * part + base_lr(i) * (1.0 - part);
}

namespace {

/// Recomputes running statistics: the plain mean over batches of each batch's statistics, regardless of the momentum.
class StatisticsRefresh {
 public:
  explicit StatisticsRefresh(LevinModule& module) {
    for (const auto& [name, m] : module.named_modules()) {
      nn::BatchNorm* const norm = m->as_batch_norm();
      if (norm && norm->is_training() && norm->running_mean.defined())
        layers_.push_back({norm, zeros_like(norm->running_mean), zeros_like(norm->running_var)});
    }
  }
  bool empty() const { return layers_.empty(); }

  void before_batch() {
    for (const Layer& l : layers_) {
      l.norm->running_mean.zero_();
      l.norm->running_var.zero_();
      l.norm->num_batches_tracked.zero_();
    }
  }
  void after_batch() {
    ++batches_;
    for (const Layer& l : layers_) {
      const double momentum = l.norm->options.momentum.value_or(1.0);
      l.mean.add_(l.norm->running_mean / momentum);
      l.var.add_(l.norm->running_var / momentum);
    }
  }
  void finish() {
    for (const Layer& l : layers_) {
      l.norm->running_mean.copy_(l.mean / static_cast<double>(batches_));
      l.norm->running_var.copy_(l.var / static_cast<double>(batches_));
      l.norm->num_batches_tracked.fill_(static_cast<double>(batches_));
    }
  }

 private:
  struct Layer {
    nn::BatchNorm* norm;
    Tensor mean, var;  // sums over batches, (C)
  };
  std::vector<Layer> layers_;
  std::int64_t batches_ = 0;
};

void refresh_statistics(RunContext& run) {
  const no_grad guard;
  StatisticsRefresh refresh(run.module);
  if (refresh.empty()) return;
  const StateMap metrics = run.metrics.state();  // values that training_step logs here are discarded
  auto& loader = *run.data->train;
  auto it = loader.begin();
  for (std::int64_t i = 0; i < run.train_batches && it != loader.end(); ++i) {
    const Batch batch = run.precision->convert(run.strategy->to_device(*it));
    run.metrics.set_scope(MetricStore::Scope::step, Split::train, batch.size());
    refresh.before_batch();
    {
      const auto scope = run.precision->step_scope();
      run.module.training_step(batch, static_cast<int>(i));
    }
    refresh.after_batch();
    if (i + 1 < run.train_batches) ++it;
  }
  refresh.finish();
  run.metrics.load_state(metrics);
  run.metrics.set_scope(MetricStore::Scope::closed, Split::train);
}

}  // namespace

StochasticWeightAveraging::StochasticWeightAveraging(StochasticWeightAveragingOptions options)
    : options_(std::move(options)), average_(options_.device) {
  const auto positive = [](double lr) { return lr > 0; };
  if (options_.swa_lrs.empty() || !std::ranges::all_of(options_.swa_lrs, positive))
    throw UsageError(
        "[StochasticWeightAveraging] swa_lrs has no rate, or one that is not above 0. Give positive rates.");
  const auto* const part = std::get_if<double>(&options_.swa_epoch_start);
  if (part ? !(*part >= 0 && *part <= 1) : std::get<std::int64_t>(options_.swa_epoch_start) < 1)
    throw UsageError(
        "[StochasticWeightAveraging] swa_epoch_start is neither a fraction from 0 to 1 nor a whole number of 1 or "
        "more. "
        "Give one of them.");
  if (options_.annealing_epochs < 0)
    throw UsageError(
        fmt::format("[StochasticWeightAveraging] annealing_epochs is {}. Give 0 or more.", options_.annealing_epochs));
}

StateMap StochasticWeightAveraging::state() const {
  StateMap s;
  s.set("count", average_.count());
  s.set("started", std::int64_t{started_});
  return s;
}

void StochasticWeightAveraging::load_state(const StateMap& s) {
  average_.load(average_.values(), s.get<std::int64_t>("count"));
  started_ = s.get<std::int64_t>("started") != 0;
}

void StochasticWeightAveraging::load_tensors(const StateDict& tensors) { average_.load(tensors, average_.count()); }

/// Returns the first epoch, counted from 0.
std::int64_t StochasticWeightAveraging::first_epoch(const RunContext& run) const {
  const auto* const part = std::get_if<double>(&options_.swa_epoch_start);
  const std::int64_t start = part ? static_cast<std::int64_t>(static_cast<double>(run.max_epochs) * *part)
                                  : std::get<std::int64_t>(options_.swa_epoch_start);
  return std::max<std::int64_t>(start - 1, 0);
}

void StochasticWeightAveraging::replace_scheduler(RunContext& run) {
  run.optimizers->set_scheduler(0, [this](optim::Optimizer& optimizer) {
    return SWALR(optimizer, options_.swa_lrs, options_.annealing_epochs, options_.annealing_strategy);
  });
}

void StochasticWeightAveraging::on_fit_start(RunContext& run) {
  if (!run.module.automatic_optimization)
    throw UsageError(
        "[StochasticWeightAveraging] the module uses manual optimization, so SWALR cannot replace its scheduler. "
        "Average with EMAWeightAveraging.");
  if (run.max_epochs < 0) throw UsageError("[StochasticWeightAveraging] the fit has no last epoch. Set max_epochs.");
  if (run.optimizers->size() != 1)
    throw UsageError(
        fmt::format("[StochasticWeightAveraging] there are {} optimizers. Give one.", run.optimizers->size()));
  if (!run.resumed) {
    average_.clear();
    started_ = false;
  } else if (started_) {
    replace_scheduler(run);  // its position is restored with the optimizer's state
  }
}

void StochasticWeightAveraging::on_train_epoch_start(RunContext& run) {
  if (started_ || run.state.epoch < first_epoch(run)) return;
  started_ = true;
  replace_scheduler(run);
}

void StochasticWeightAveraging::on_train_epoch_end(RunContext& run) {
  if (started_ && run.state.epoch_complete) average_.update(run, options_.avg_fn);
}

void StochasticWeightAveraging::on_train_end(RunContext& run) {
  if (average_.count() == 0) return;
  average_.copy_to(run);
  refresh_statistics(run);
}

}  // namespace levin
