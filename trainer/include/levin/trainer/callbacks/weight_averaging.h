#pragma once
// Keeps a second set of weights: the average over the course of training.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// Averages of a module's parameters and floating-point buffers by name, in float32 for half types. If the optimizer
/// steps on float32 master weights, those are averaged.
class AveragedWeights {
 public:
  /// Returns the new average from the old one, the current values, and the number of values in the old average.
  using Average = std::function<Tensor(const Tensor& average, const Tensor& now, std::int64_t count)>;

  /// Stores the averages on `device`, or on the device of each tensor if empty.
  explicit AveragedWeights(std::optional<Device> device = {}, bool use_buffers = true)
      : device_(device), use_buffers_(use_buffers) {}

  /// The first call copies the values. Buffers are averaged too; without use_buffers, or if they hold integers, they
  /// are copied.
  void update(RunContext& run, const Average& average);
  /// Number of updates so far.
  std::int64_t count() const { return count_; }
  /// The averages by name; empty before the first update.
  const StateDict& values() const { return values_; }
  /// Replaces the averages and their number of updates, or discards them.
  void load(const StateDict& values, std::int64_t count);
  void clear() { load({}, 0); }
  /// Writes the averages into the module; does nothing before the first update.
  void copy_to(RunContext& run) const;

 private:
  std::optional<Device> device_;
  bool use_buffers_;
  StateDict values_;
  std::int64_t count_ = 0;
};

/// Options of WeightAveraging.
struct WeightAveragingOptions {
  std::optional<Device> device{};     ///< device of the average; the weights' own if empty
  bool use_buffers = true;            ///< average running statistics too; if false, copy them
  AveragedWeights::Average avg_fn{};  ///< the arithmetic mean of all updates if empty
};

/// Averages the weights after optimizer steps or epochs (see should_update). Validation uses the averaged weights, and
/// the network keeps them when training ends. A checkpoint stores the average as the model weights and the trained
/// weights beside them, with which a resumed fit continues. Before the first update the weights are used as they are.
class WeightAveraging : public Callback {
 public:
  /// Starts without averages in every fit that does not resume.
  explicit WeightAveraging(WeightAveragingOptions options = {});

  /// Called with the number of each optimizer step (from 0), and with the number of each epoch at its end. By default
  /// true for every step.
  virtual bool should_update(std::optional<std::int64_t> step, std::optional<std::int64_t> epoch) const;
  /// Averages under the module's parameter names; empty before the first update.
  const StateDict& average() const { return average_.values(); }

  std::string state_key() const override { return "WeightAveraging"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  StateDict tensors() const override { return average_.values(); }
  void load_tensors(const StateDict& tensors) override;
  bool on_save_weights(RunContext& run, StateDict& weights) override;
  void setup(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_validation_epoch_start(RunContext& run) override;
  void on_validation_batch_start(RunContext& run, const Batch& batch, int index) override;
  void on_validation_epoch_end(RunContext& run) override;
  void on_train_end(RunContext& run) override;

 private:
  void swap_in(RunContext& run);
  void swap_back(RunContext& run);

  AveragedWeights::Average avg_fn_;
  AveragedWeights average_;
  std::int64_t last_step_ = 0, last_epoch_ = -1;
  StateDict trained_;  // the trained weights while the average replaces them
};

/// Options of EMAWeightAveraging, with Lightning's defaults.
struct EMAWeightAveragingOptions {
  std::optional<Device> device{};         ///< device of the average; the weights' own if empty
  bool use_buffers = true;                ///< average running statistics too; if false, copy them
  double decay = 0.999;                   ///< average = decay * average + (1 - decay) * weights
  std::int64_t update_every_n_steps = 1;  ///< updates after steps whose number (from 0) is a multiple; 1 or more
  std::optional<std::int64_t> update_starting_at_step{};   ///< first step, from 0, after which to update; 0 if empty
  std::optional<std::int64_t> update_starting_at_epoch{};  ///< updates at the ends of epochs too, from this one on
};

/// Exponential moving average of the weights. The first update copies them. A starting epoch adds updates at the ends
/// of epochs and does not delay those of steps, as in Lightning: give a large starting step too for epochs only.
class EMAWeightAveraging : public WeightAveraging {
 public:
  /// Throws UsageError for a decay outside [0, 1] and for update_every_n_steps below 1.
  explicit EMAWeightAveraging(EMAWeightAveragingOptions options = {});
  bool should_update(std::optional<std::int64_t> step, std::optional<std::int64_t> epoch) const override;
  std::string state_key() const override { return "EMAWeightAveraging"; }

 private:
  EMAWeightAveragingOptions options_;
};
/// A short name.
using EMA = EMAWeightAveraging;

}  // namespace levin
