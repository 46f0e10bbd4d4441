#pragma once
// Stochastic weight averaging (Izmailov et al. 2018, "Averaging weights leads to wider optima and better
// generalization"): the mean of the weights at the ends of the last epochs, trained with a high constant rate.

#include <levin/trainer/callbacks/weight_averaging.h>

#include <variant>

namespace levin {

/// Anneals the learning rate from its current value to swa_lr in anneal_epochs steps, then keeps it; PyTorch's SWALR.
class SWALR : public optim::Scheduler {
 public:
  /// Takes one rate for all groups or one per group. Throws ValueError for any other number of rates and for negative
  /// epochs.
  SWALR(optim::Optimizer& optimizer, std::vector<double> swa_lrs, std::int64_t anneal_epochs = 10,
        optim::Anneal strategy = optim::Anneal::cos);

 protected:
  double lr(std::size_t i) const override;

 private:
  std::vector<double> swa_lrs_;
  std::int64_t anneal_epochs_;
  optim::Anneal strategy_;
};

/// Options of StochasticWeightAveraging, with Lightning's names and defaults.
struct StochasticWeightAveragingOptions {
  std::vector<double> swa_lrs{};  ///< rate after annealing: one, or one per parameter group
  /// A fraction of max_epochs, or an epoch number.
  std::variant<double, std::int64_t> swa_epoch_start{std::in_place_index<0>, 0.8};
  std::int64_t annealing_epochs = 10;                     ///< epochs in which the rate changes to swa_lrs
  optim::Anneal annealing_strategy = optim::Anneal::cos;  ///< shape of that change
  AveragedWeights::Average avg_fn{};                      ///< the arithmetic mean if empty
  std::optional<Device> device = kCpu;                    ///< device of the average; the weights' own if empty
};

/// From swa_epoch_start on (epochs count from 1 here) SWALR replaces the optimizer's scheduler, and the weights at the
/// end of each epoch are averaged. When training ends the network receives the average; networks with BatchNorm then
/// run over the training batches once more, without gradients, to recompute their running statistics. Requires
/// max_epochs, one optimizer and automatic optimization.
class StochasticWeightAveraging : public Callback {
 public:
  /// Throws UsageError without positive rates and for an invalid start.
  explicit StochasticWeightAveraging(StochasticWeightAveragingOptions options);

  /// Averages under the module's parameter names; empty before the first update.
  const StateDict& average() const { return average_.values(); }
  std::string state_key() const override { return "StochasticWeightAveraging"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  StateDict tensors() const override { return average_.values(); }
  void load_tensors(const StateDict& tensors) override;
  void on_fit_start(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_train_end(RunContext& run) override;

 private:
  std::int64_t first_epoch(const RunContext& run) const;
  void replace_scheduler(RunContext& run);

  StochasticWeightAveragingOptions options_;
  AveragedWeights average_;
  bool started_ = false;
};

}  // namespace levin
