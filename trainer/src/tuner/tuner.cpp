#include <levin/trainer/tuner.h>

#include <fmt/format.h>

#include <cmath>

#include "src/logging.h"
#include "src/tuner/trial.h"

namespace levin {
namespace {

void require_at_least(std::int64_t value, std::int64_t least, const char* option) {
  if (value < least) throw UsageError(fmt::format("[tuner] {} is {}. Give {} or more.", option, value, least));
}

void check(const BatchSizeOptions& o) {
  if (o.mode != "power" && o.mode != "binsearch")
    throw UsageError(fmt::format("[tuner] mode is \"{}\". Choose power or binsearch.", o.mode));
  require_at_least(o.steps_per_trial, 1, "steps_per_trial");
  require_at_least(o.init_val, 1, "init_val");
  require_at_least(o.max_trials, 1, "max_trials");
  require_at_least(o.max_val, o.init_val, "max_val");
  if (!(o.margin >= 0 && o.margin < 1))
    throw UsageError(fmt::format("[tuner] margin is {}. Give a number from 0 to below 1.", o.margin));
}

void check(const LearningRateOptions& o) {
  if (!(o.min_lr > 0 && o.min_lr < o.max_lr))
    throw UsageError(fmt::format("[tuner] rates go from {} to {}. Give 0 < min_lr < max_lr.", o.min_lr, o.max_lr));
  require_at_least(o.num_training_steps, 2, "num_training_steps");
  if (o.mode != "exponential" && o.mode != "linear")
    throw UsageError(fmt::format("[tuner] mode is \"{}\". Choose exponential or linear.", o.mode));
}

data::DataLoader with_batch_size(const data::DataLoader& loader, std::int64_t size) {
  data::DataLoaderOptions options = loader.options();
  options.batch_size = size;
  options.seed = loader.state().seed;  // the same order, without drawing from the default generator
  return data::DataLoader(loader.dataset(), options);
}

/// Rates as computed by Lightning's schedulers for the search.
double rate(const LearningRateOptions& o, std::int64_t step) {
  if (step == 0) return o.min_lr;
  const double r = static_cast<double>(step + 1) / static_cast<double>(o.num_training_steps);
  return o.mode == "linear" ? o.min_lr + r * (o.max_lr - o.min_lr) : o.min_lr * std::pow(o.max_lr / o.min_lr, r);
}

data::DataLoader& train_loader(RunContext& run, const char* who) {
  if (run.data && run.data->train) return *run.data->train;
  throw UsageError(fmt::format("[{}] there is no loader for training. Give fit one.", who));
}

}  // namespace

std::int64_t Tuner::scale_batch_size(LevinModule& module, data::DataLoader& loader,
                                     const BatchSizeOptions& options) const {
  check(options);
  if (!loader.dataset() || loader.options().batch_sampler)
    throw UsageError(
        "[scale_batch_size] batches of this loader have no size to choose. Give a loader over a dataset, "
        "with batch_size.");
  const std::int64_t limit = std::min<std::int64_t>(options.max_val, std::ssize(*loader.dataset()));
  const auto fits = [&](std::int64_t size) {
    data::DataLoader trial_loader = with_batch_size(loader, size);
    try {
      Trial(module, trial_loader, config_, options.steps_per_trial).run(options.steps_per_trial);
      return true;
    } catch (const OutOfMemory&) {
      logging::debug("batch size {} does not fit", size);
      return false;
    }
  };
  std::int64_t good = 0, bad = 0;  // largest size known to fit, smallest known not to
  std::int64_t trials = 0;
  for (std::int64_t size = std::min(options.init_val, limit); trials < options.max_trials; ++trials) {
    if (!fits(size)) {
      bad = size;
      break;
    }
    good = size;
    if (size == limit) break;
    size = std::min(2 * size, limit);
  }
  if (good == 0)
    throw OutOfMemory(
        fmt::format("[scale_batch_size] not even batches of {} fit. Give a smaller init_val or network.", bad));
  if (options.mode == "binsearch") {
    for (++trials; bad - good > 1 && trials < options.max_trials; ++trials) {
      const std::int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    const auto margin = static_cast<std::int64_t>(static_cast<double>(good) * options.margin);
    if (bad != 0) good = std::max<std::int64_t>(1, good - margin);
  }
  loader = with_batch_size(loader, good);
  return good;
}

LearningRateResults Tuner::lr_find(LevinModule& module, data::DataLoader& loader,
                                   const LearningRateOptions& options) const {
  check(options);
  if (!module.automatic_optimization)
    throw UsageError("[lr_find] the module uses manual optimization. Search with automatic_optimization.");
  constexpr double kSmoothing = 0.98;
  LearningRateResults results;
  TrainerConfig config = config_;
  config.accumulate_grad_batches = 1;  // one rate per batch
  Trial trial(module, loader, config, options.num_training_steps);
  auto& groups = trial.optimizers().optimizer().param_groups();
  trial.optimizers().set_scheduler(
      0, [](auto& optimizer) { return optim::LambdaLR(optimizer, [](std::int64_t) { return 1.0; }); });
  std::int64_t step = 0;
  double mean = 0, best = 0;
  const auto set_rate = [&] {
    for (auto& group : groups) group["lr"] = rate(options, step);
  };
  set_rate();
  trial.run(options.num_training_steps, [&](std::optional<double> loss) {
    if (!loss) return true;
    mean = kSmoothing * mean + (1 - kSmoothing) * *loss;
    const double smooth = mean / (1 - std::pow(kSmoothing, static_cast<double>(step + 1)));
    results.lr.push_back(rate(options, step));
    results.loss.push_back(smooth);
    const bool diverges = options.early_stop_threshold && step > 1 && smooth > *options.early_stop_threshold * best;
    if (smooth < best || step <= 1) best = smooth;
    ++step;
    set_rate();
    return !diverges;
  });
  return results;
}

std::optional<double> LearningRateResults::suggestion(std::size_t skip_begin, std::size_t skip_end) const {
  std::vector<std::size_t> kept;
  for (std::size_t i = skip_begin; i + skip_end < loss.size(); ++i)
    if (std::isfinite(loss[i])) kept.push_back(i);
  if (kept.size() < 2) return std::nullopt;
  // Differences to both neighbours; to one neighbour at the ends.
  std::size_t steepest = 0;
  double least = 0;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const std::size_t a = k > 0 ? k - 1 : k, b = std::min(k + 1, kept.size() - 1);
    const double slope = (loss[kept[b]] - loss[kept[a]]) / static_cast<double>(b - a);
    if (k == 0 || slope < least) least = slope, steepest = k;
  }
  return lr[kept[steepest]];
}

LogCurve LearningRateResults::curve() const {
  return {.name = "lr_find",
          .x_label = "learning rate",
          .y_label = "smoothed loss",
          .x = lr,
          .y = loss,
          .log_x = true,
          .mark = suggestion()};
}

Tuner::Tuner(const Trainer& trainer) : config_(trainer.config()) {}
Tuner::Tuner(TrainerConfig config) : config_(std::move(config)) {}

BatchSizeFinder::BatchSizeFinder(BatchSizeOptions options, std::function<void(std::int64_t)> update)
    : options_(std::move(options)), update_(std::move(update)) {
  check(options_);
}

void BatchSizeFinder::setup(RunContext& run) {
  if (run.stage != Stage::fit || run.config.fast_dev_run > 0) return;
  data::DataLoader& loader = train_loader(run, "BatchSizeFinder");
  result_ = Tuner(run.config).scale_batch_size(run.module, loader, options_);
  run.train_batches = run.config.limit_train_batches.of(loader.size(), "--limit-train-batches");
  if (update_) update_(*result_);
  logging::info("batch size {} fits", *result_);
}

LearningRateFinder::LearningRateFinder(LearningRateOptions options, std::function<void(double)> update)
    : options_(std::move(options)), update_(std::move(update)) {
  check(options_);
}

void LearningRateFinder::setup(RunContext& run) {
  if (run.stage != Stage::fit || run.config.fast_dev_run > 0) return;
  results_ = Tuner(run.config).lr_find(run.module, train_loader(run, "LearningRateFinder"), options_);
  const auto suggestion = results_.suggestion();
  if (suggestion && update_) update_(*suggestion);
  for (const auto& logger : run.loggers) logger->log_curve(results_.curve());
  logging::info("learning rate: {}", suggestion ? fmt::format("{:.3g}", *suggestion) : "no suggestion");
}

}  // namespace levin
