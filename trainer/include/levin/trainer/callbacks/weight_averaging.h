#pragma once
// A second set of weights: the average of those that training goes through.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// The averages of a module's parameters and floating buffers by name, in float32 for half types. Where the optimizer
/// steps on float32 masters, those are averaged.
class AveragedWeights {
 public:
  /// New average from the old one, the values now, and the number of values in the old one.
  using Average = std::function<Tensor(const Tensor& average, const Tensor& now, std::int64_t count)>;

  /// Everything lies on `device`, or beside the module's own tensors.
  explicit AveragedWeights(std::optional<Device> device = {}, bool use_buffers = true)
      : device_(device), use_buffers_(use_buffers) {}

  /// The first call copies. Buffers are averaged too or, without use_buffers and where they hold integers, copied.
  void update(RunContext& run, const Average& average);
  std::int64_t count() const { return count_; }
  const StateDict& values() const { return values_; }
  void load(const StateDict& values, std::int64_t count);
  void clear() { load({}, 0); }
  /// Writes the averages into the module, unless there are none yet.
  void copy_to(RunContext& run) const;

 private:
  std::optional<Device> device_;
  bool use_buffers_;
  StateDict values_;
  std::int64_t count_ = 0;
};

struct WeightAveragingOptions {
  std::optional<Device> device{};     ///< where the average lies; beside the weights when empty
  bool use_buffers = true;            ///< running statistics are averaged too, else copied
  AveragedWeights::Average avg_fn{};  ///< the plain mean of all updates when empty
};

/// Averages the weights after optimizer steps (or epochs: see should_update). Validation sees the average in the place
/// of the weights, and the network keeps it when training ends. A checkpoint has the average as its network, so that
/// whoever loads it has the better one, and the trained weights beside it, with which a resumed fit goes on. Before the
/// first update there is no average and the weights stay what they are.
class WeightAveraging : public Callback {
 public:
  explicit WeightAveraging(WeightAveragingOptions options = {});

  /// Asked with the number of each optimizer step (from 0), and with the number of each epoch at its end.
  virtual bool should_update(std::optional<std::int64_t> step, std::optional<std::int64_t> epoch) const;
  /// The averages by the module's names; empty before the first update.
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
  StateDict trained_;  // while the average stands in their place
};

struct EMAWeightAveragingOptions {
  std::optional<Device> device{};
  bool use_buffers = true;
  double decay = 0.999;  ///< average = decay * average + (1 - decay) * weights
  std::int64_t update_every_n_steps = 1;
  std::optional<std::int64_t> update_starting_at_step{};
  std::optional<std::int64_t> update_starting_at_epoch{};  ///< updates at the end of this epoch and of those after it
};

/// The exponential moving average (Polyak & Juditsky 1992). With a starting step or epoch the average begins there.
class EMAWeightAveraging : public WeightAveraging {
 public:
  explicit EMAWeightAveraging(EMAWeightAveragingOptions options = {});
  bool should_update(std::optional<std::int64_t> step, std::optional<std::int64_t> epoch) const override;
  std::string state_key() const override { return "EMAWeightAveraging"; }

 private:
  EMAWeightAveragingOptions options_;
};
using EMA = EMAWeightAveraging;

}  // namespace levin
