#pragma once
// Finds the largest batch that fits and a good learning rate by short trials, after which everything is as before.

#include <levin/trainer/data_module.h>
#include <levin/trainer/logger.h>
#include <levin/trainer/trainer.h>

namespace levin {

struct BatchSizeOptions {
  std::string mode = "power";  ///< double until it no longer fits; "binsearch": then halve the gap
  std::int64_t steps_per_trial = 3;
  std::int64_t init_val = 2;
  std::int64_t max_trials = 25;
  double margin = 0.05;  ///< binsearch: this part of the result is left free
  std::int64_t max_val = 8192;
};

struct LearningRateOptions {
  double min_lr = 1e-8, max_lr = 1;
  std::int64_t num_training_steps = 100;
  std::string mode = "exponential";                  ///< or "linear"
  std::optional<double> early_stop_threshold = 4.0;  ///< ends where the smoothed loss passes this times the best
};

/// Losses by learning rate, smoothed by an exponential mean of factor 0.98.
struct LearningRateResults {
  std::vector<double> lr{}, loss{};
  /// Where the loss falls fastest (by index, so in powers of the rate), looking away from the first and last points and
  /// from values that are not finite; nothing where too few are left.
  std::optional<double> suggestion(std::size_t skip_begin = 10, std::size_t skip_end = 1) const;
  /// For Logger::log_curve, with the suggestion marked.
  LogCurve curve() const;
};

/// Trials take the Trainer's device, precision, accumulation and clipping, but none of its callbacks, loggers and
/// limits. Afterwards the module (weights, buffers, gradients, modes), the generator and the loader's place are as they
/// were, also where a trial throws.
class Tuner {
 public:
  explicit Tuner(const Trainer& trainer);
  explicit Tuner(TrainerConfig config);

  /// The largest batch size that trains without OutOfMemory, up to max_val and the size of the dataset; `loader` gives
  /// batches of that size from now on. Throws UsageError for options that make no sense and for a loader whose batches
  /// another sampler cuts, OutOfMemory where not even init_val fits.
  std::int64_t scale_batch_size(LevinModule& module, data::DataLoader& loader,
                                const BatchSizeOptions& options = {}) const;

  /// Trains for a few steps with a rate that grows from min_lr to max_lr, in place of the module's own schedule. Throws
  /// UsageError for options that make no sense and for a module that optimizes by hand.
  LearningRateResults lr_find(LevinModule& module, data::DataLoader& loader,
                              const LearningRateOptions& options = {}) const;

 private:
  TrainerConfig config_;
};

/// scale_batch_size before a fit begins, on its training loader.
class BatchSizeFinder : public Callback {
 public:
  explicit BatchSizeFinder(BatchSizeOptions options = {}, std::function<void(std::int64_t)> update = {});
  /// Nothing before a fit.
  const std::optional<std::int64_t>& optimal_batch_size() const { return result_; }
  void setup(RunContext& run) override;

 private:
  BatchSizeOptions options_;
  std::function<void(std::int64_t)> update_;
  std::optional<std::int64_t> result_;
};

/// lr_find before a fit begins. `update` takes the suggestion to where configure_optimizers finds it, which comes
/// afterwards: `LearningRateFinder({}, [&](double lr) { model.lr = lr; })`. The curve goes to the loggers, such as
/// HtmlReport.
class LearningRateFinder : public Callback {
 public:
  explicit LearningRateFinder(LearningRateOptions options = {}, std::function<void(double)> update = {});
  /// Empty before a fit.
  const LearningRateResults& results() const { return results_; }
  void setup(RunContext& run) override;

 private:
  LearningRateOptions options_;
  std::function<void(double)> update_;
  LearningRateResults results_;
};

}  // namespace levin
