#pragma once
// Finds the largest batch size that fits and a good learning rate by short trials, after which all state is restored.

#include <levin/trainer/data_module.h>
#include <levin/trainer/loggers/logger.h>
#include <levin/trainer/trainer.h>

namespace levin {

/// Options of the search for a batch size, with Lightning's names.
struct BatchSizeOptions {
  std::string mode = "power";        ///< "power": double until it no longer fits; "binsearch": then bisect
  std::int64_t steps_per_trial = 3;  ///< optimizer steps that a size must survive
  std::int64_t init_val = 2;         ///< first size
  std::int64_t max_trials = 25;      ///< sizes that are tried at most
  double margin = 0.05;              ///< binsearch: fraction of the result left free
  std::int64_t max_val = 8192;       ///< largest size
};

/// Options of the search for a learning rate, which grows from `min_lr` to `max_lr`, with Lightning's names.
struct LearningRateOptions {
  double min_lr = 1e-8, max_lr = 1;
  std::int64_t num_training_steps = 100;             ///< steps, each with the next rate; 2 or more
  std::string mode = "exponential";                  ///< "exponential" or "linear"
  std::optional<double> early_stop_threshold = 4.0;  ///< stop once the smoothed loss exceeds this times the best
};

/// Losses by learning rate (`lr` and `loss` have equal sizes), smoothed by an exponential moving average of factor 0.98
/// with bias correction.
struct LearningRateResults {
  std::vector<double> lr{}, loss{};
  /// Returns the rate at which the loss falls fastest (by index, i.e. on a logarithmic scale for the exponential mode),
  /// ignoring the first and last points and values that are not finite; empty if too few points remain.
  std::optional<double> suggestion(std::size_t skip_begin = 10, std::size_t skip_end = 1) const;
  /// Curve for Logger::log_curve, with the suggestion marked.
  LogCurve curve() const;
};

/// Trials use the Trainer's device, precision, accumulation (lr_find steps after every batch) and clipping, but none of
/// its callbacks, loggers and limits. Afterwards the module (weights, buffers, gradients, modes), the generator and the
/// loader's position are restored, even if a trial throws.
class Tuner {
 public:
  /// Takes the configuration of a Trainer, or one.
  explicit Tuner(const Trainer& trainer);
  explicit Tuner(TrainerConfig config);

  /// Finds the largest batch size that trains without OutOfMemory, up to max_val and the size of the dataset; `loader`
  /// uses that size from now on. Throws UsageError for invalid options and for a loader with a custom batch sampler,
  /// and OutOfMemory if not even init_val fits.
  std::int64_t scale_batch_size(LevinModule& module, data::DataLoader& loader,
                                const BatchSizeOptions& options = {}) const;

  /// Trains for a few steps with a rate that grows from min_lr to max_lr, in place of the module's own scheduler.
  /// Throws UsageError for invalid options and for a module with manual optimization.
  LearningRateResults lr_find(LevinModule& module, data::DataLoader& loader,
                              const LearningRateOptions& options = {}) const;

 private:
  TrainerConfig config_;
};

/// Runs scale_batch_size on the training loader before a fit begins. `update`, if given, receives the size.
class BatchSizeFinder : public Callback {
 public:
  /// Throws UsageError for invalid options.
  explicit BatchSizeFinder(BatchSizeOptions options = {}, std::function<void(std::int64_t)> update = {});
  /// Empty before a fit.
  const std::optional<std::int64_t>& optimal_batch_size() const { return result_; }
  void setup(RunContext& run) override;

 private:
  BatchSizeOptions options_;
  std::function<void(std::int64_t)> update_;
  std::optional<std::int64_t> result_;
};

/// Runs lr_find before a fit begins. `update` stores the suggestion where configure_optimizers, which runs afterwards,
/// reads it: `LearningRateFinder({}, [&](double lr) { model.lr = lr; })`. The curve is sent to the loggers, such as
/// HtmlReport.
class LearningRateFinder : public Callback {
 public:
  /// Throws UsageError for invalid options.
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
