#pragma once
// LevinModule: a network together with its training logic.

#include <levin/core/owned_ptr.h>
#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/trainer/config/config.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/manual_optimization.h>
#include <levin/trainer/metric_store.h>
#include <levin/trainer/train_state.h>

#include <map>
#include <memory>

namespace levin {

namespace nn {
class Sequential;
}
class LevinModule;
struct RunContext;

/// Result of training_step: a loss, {loss, extras}, or {} to skip the batch.
class StepOutput {
 public:
  StepOutput() = default;
  StepOutput(Tensor loss, std::map<std::string, Tensor> extras = {});  // NOLINT: implicit
  /// Sets the weight of this loss in an accumulation window in place of the batch size, e.g. its number of tokens.
  StepOutput& weight(double weight) {
    weight_ = weight;
    return *this;
  }

  /// True without a loss: the batch is skipped.
  bool empty() const { return !loss_.defined(); }
  /// The loss (one element; undefined if empty), the extras by name, and the weight if weight(double) set one.
  const Tensor& loss() const { return loss_; }
  const std::map<std::string, Tensor>& extras() const { return extras_; }
  const std::optional<double>& weight() const { return weight_; }
  /// Returns a copy detached from the graph, which hooks may keep.
  StepOutput detached() const;
  /// Returns the same with copies of the tensors, which a replay of a captured step does not change.
  StepOutput copied() const;

 private:
  Tensor loss_;
  std::map<std::string, Tensor> extras_;
  std::optional<double> weight_;
};

/// A module's connection to its run.
struct ModuleLink {
  RunContext* run = nullptr;
  LogPart* part = nullptr;          ///< receives the values that a replica logs
  LevinModule* original = nullptr;  ///< the module of which this is a replica
  /// Destination of logged values; null without a run, and in a barebones run.
  MetricStore* metrics() const;
};

/// A network together with its training logic. A program derives from it, writes training_step and
/// configure_optimizers and, where it needs them, the other steps and hooks. Names and meanings are Lightning's.
class LevinModule : public nn::Module {
 public:
  /// False: training_step does everything itself, by optimizers(), manual_backward and their step(). The Trainer then
  /// does not clip, accumulate or step schedulers.
  bool automatic_optimization = true;

  /// Computes the loss of a batch, whose `index` counts from 0 in each epoch. The Trainer runs backward and steps the
  /// optimizer. Throws UsageError if it is not overridden.
  virtual StepOutput training_step(const Batch& batch, int index);
  /// Receives the result of training_step and returns the loss. With several devices per process (strategies dp and
  /// ddp2) the replicas' extras are concatenated along dimension 0 with their gradients, so that a loss may use the
  /// whole batch; a scalar of each replica becomes a row. The loss, if the replicas returned any, is that of the batch.
  virtual StepOutput training_step_end(const StepOutput& whole);
  /// Evaluates a batch in evaluation mode and without recording, and logs values; `index` counts the batches of a
  /// loader. A fit without validation_step does not validate; validate and test throw UsageError without their steps.
  virtual void validation_step(const Batch&, int) {}
  virtual void test_step(const Batch&, int) {}
  /// Returns the prediction of a batch; by default the network's output for batch[0].
  virtual Tensor predict_step(const Batch& batch, int index);
  /// Override these instead for several loaders; hooks read batch.dataloader_idx.
  virtual void validation_step(const Batch& batch, int index, int /*dataloader_idx*/) { validation_step(batch, index); }
  virtual void test_step(const Batch& batch, int index, int /*dataloader_idx*/) { test_step(batch, index); }
  virtual Tensor predict_step(const Batch& batch, int index, int dataloader_idx);
  /// Creates the optimizers and their schedulers when a fit begins; the module is on its device then. Throws UsageError
  /// if it is not overridden.
  virtual Optimizers configure_optimizers();

  /// Records a value (a tensor of one element, or a number) under a name. Does nothing outside a Trainer's run.
  void log(std::string_view name, const Tensor& value, const LogOptions& options = {});
  void log(std::string_view name, double value, const LogOptions& options = {});
  /// Records a metric of this module (see add_metric): its batch value per step, its computed value per epoch, after
  /// which it is reset. A validation_step only needs `auc.update(scores, target)` followed by `log("val_auc", auc)`.
  void log(std::string_view name, metrics::Metric& metric, const LogOptions& options = {});

  /// The logarithm, which the functions above would otherwise hide from a step.
  static Tensor log(const Tensor& x);
  static double log(double x);

  /// Records several values with the same options.
  void log_dict(const std::vector<std::pair<std::string, Tensor>>& values, const LogOptions& options = {});

  /// Creates a metric that belongs to this module; checkpoints store its state under `name`:
  /// `metrics::AUROC& auc = add_metric<metrics::AUROC>("auc");`
  template <class M, class... A>
  M& add_metric(const std::string& name, A&&... arguments) {
    auto made = std::make_unique<M>(std::forward<A>(arguments)...);
    M& metric = *made;
    keep_metric(name, std::move(made));
    return metric;
  }

  /// Records the constructor arguments of this network: checkpoints store them, load_from_checkpoint uses them to
  /// construct the same network, and the summary prints them. Called from a constructor, once or several times.
  void save_hyperparameters(const StateMap& values);
  /// The hyper-parameters that were recorded so far, by name.
  const StateMap& hparams() const { return hparams_; }
  /// If false, the Trainer accepts checkpoints with missing or additional weights and lists both in a warning.
  bool strict_loading = true;

  /// The epoch (from 0) and the completed accumulation windows of the run; 0 outside of one.
  std::int64_t current_epoch() const;
  std::int64_t global_step() const;
  /// Optimizer steps of the whole fit, for schedulers; 0 outside of fit, -1 if unlimited.
  std::int64_t estimated_stepping_batches() const;
  /// True while training_step processes the last batch of its epoch.
  bool is_last_batch() const;

  // Manual optimization, during fit only; UsageError elsewhere
  /// All optimizers of configure_optimizers: `auto [g_opt, d_opt] = optimizers<2>();`. Throws UsageError unless there
  /// are N.
  template <std::size_t N = 1>
  std::array<OptimizerHandle, N> optimizers() {
    ManualOptimization& manual = manual_steps("optimizers");
    check_count("optimizers", N, manual.optimizers().size());
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<OptimizerHandle, N>{OptimizerHandle(manual, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// All schedulers of configure_optimizers, by optimizer. Throws UsageError unless there are N.
  template <std::size_t N = 1>
  std::array<SchedulerHandle, N> lr_schedulers() {
    Optimizers& all = manual_steps("lr_schedulers").optimizers();
    check_count("lr_schedulers", N, all.num_schedulers());
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<SchedulerHandle, N>{SchedulerHandle(all, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// Replaces loss.backward(): scales the loss as the precision requires and calls the hooks.
  void manual_backward(const Tensor& loss);
  /// Unscales and clips one optimizer's gradients; call it before its step.
  void clip_gradients(const OptimizerHandle& optimizer, double value, const std::string& algorithm = "norm") {
    optimizer.clip_gradients(value, algorithm);
  }
  /// Lightning's hook, called before the sanity check and before an evaluation.
  virtual void zero_grad(bool set_to_none = true) { nn::Module::zero_grad(set_to_none); }

  /// Parts of the training step, which may be overridden: clearing the gradients at the first batch of a window, and
  /// backward.
  virtual void optimizer_zero_grad(optim::Optimizer& optimizer);
  virtual void backward(const Tensor& loss);
  /// Clips by the Trainer's arguments, with the strategy's norm over all ranks; an override may call the base or clip
  /// differently.
  virtual void configure_gradient_clipping(optim::Optimizer& optimizer, std::optional<double> value,
                                           const std::string& algorithm, Strategy& strategy);
  /// `found_inf` is nonzero if a gradient is not finite, and undefined if the precision does not check. Overrides
  /// should call the base, which skips a window whose gradients overflowed, without host synchronization. An override
  /// that steps the optimizer itself is called only for windows without overflow, and every window then synchronizes.
  virtual void optimizer_step(optim::Optimizer& optimizer, const Tensor& found_inf);
  /// Called for every scheduler that is due; `metric` is the monitored value of a plateau scheduler.
  virtual void lr_scheduler_step(const SchedulerHandle& scheduler, std::optional<double> metric);

  /// Data loaders, for runs without data arguments.
  virtual LoaderPtr train_dataloader() { return {}; }
  virtual Loaders val_dataloader() { return {}; }
  virtual Loaders test_dataloader() { return {}; }
  virtual Loaders predict_dataloader() { return {}; }
  /// Transfer of a batch to the device, in this order, before the batch-start hooks.
  virtual Batch on_before_batch_transfer(Batch batch) { return batch; }
  virtual Batch transfer_batch_to_device(Batch batch, Device device) { return batch.to(device); }
  virtual Batch on_after_batch_transfer(Batch batch) { return batch; }

  /// Callbacks that belong to this module; each replaces the Trainer's callbacks of its type.
  virtual std::vector<CallbackPtr> configure_callbacks() { return {}; }
  /// Creates layers that depend on the data; called after setup, before weights are loaded and optimizers created.
  virtual void configure_model() {}
  /// The network that --strategy pipeline cuts into stages; training_step must call it once. By default the child that
  /// is a Sequential; of several, the one with the most parameters; null if there is none.
  virtual nn::Sequential* pipeline_module();

  /// Hooks of fit, in their order; each is called after the callbacks' hook of the same name, except
  /// on_load_checkpoint, which is called before it and gets what on_save_checkpoint stored. The first two and teardown
  /// also belong to the other runs.
  virtual void prepare_data() {}  ///< on one process of each machine, such as a download
  virtual void setup(Stage) {}    ///< on all processes, before weights are loaded and moved
  virtual void on_load_checkpoint(const StateMap&) {}
  virtual void on_fit_start() {}
  virtual void on_train_start() {}
  virtual void on_train_epoch_start() {}
  /// Return false to skip this batch and the rest of the epoch.
  virtual bool on_train_batch_start(const Batch&, int) { return true; }
  virtual void on_before_zero_grad(optim::Optimizer&) {}
  virtual void on_before_backward(const Tensor&) {}
  virtual void on_after_backward() {}
  virtual void on_before_optimizer_step(optim::Optimizer&) {}
  virtual void on_train_batch_end(const StepOutput&, const Batch&, int) {}
  virtual void on_train_epoch_end() {}
  virtual void on_save_checkpoint(StateMap&) {}
  virtual void on_train_end() {}
  virtual void on_fit_end() {}
  virtual void teardown(Stage) {}  ///< also after an exception

  /// Called before a validation that does not interrupt an accumulation window.
  virtual void on_validation_model_zero_grad() { nn::Module::zero_grad(); }
  /// Hooks of a validation, in their order, except that on_validation_model_train() is the last.
  virtual void on_validation_model_eval() { eval(); }
  virtual void on_validation_model_train() {}  ///< the mode of every submodule is already restored
  virtual void on_validation_start() {}
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_batch_start(const Batch&, int) {}
  virtual void on_validation_batch_end(const Batch&, int) {}
  virtual void on_validation_epoch_end() {}
  virtual void on_validation_end() {}

  /// The same hooks for Trainer::test.
  virtual void on_test_model_eval() { eval(); }
  virtual void on_test_model_train() {}
  virtual void on_test_start() {}
  virtual void on_test_epoch_start() {}
  virtual void on_test_batch_start(const Batch&, int) {}
  virtual void on_test_batch_end(const Batch&, int) {}
  virtual void on_test_epoch_end() {}
  virtual void on_test_end() {}

  /// The same hooks for Trainer::predict.
  virtual void on_predict_model_eval() { eval(); }
  virtual void on_predict_model_train() {}
  virtual void on_predict_start() {}
  virtual void on_predict_epoch_start() {}
  virtual void on_predict_batch_start(const Batch&, int) {}
  virtual void on_predict_batch_end(const Batch&, int) {}
  virtual void on_predict_epoch_end() {}
  virtual void on_predict_end() {}

  /// Called by the Trainer: connects the module to a run, or to none, and returns the run before.
  RunContext* set_run(RunContext* run);
  /// Expires when the module is destroyed or takes part in another run.
  std::weak_ptr<const void> until_next_run();

 private:
  friend class StepRunner;
  friend class ReplicaRun;
  metrics::Metric& of_run(metrics::Metric& own);
  void keep_metric(const std::string& name, std::unique_ptr<metrics::Metric> metric);
  void attach_metrics();
  ManualOptimization& manual_steps(const char* what) const;
  static void check_count(const char* what, std::size_t requested, std::size_t returned);

  ModuleLink link_;
  StateMap hparams_;
  std::shared_ptr<const void> until_next_run_;
  bool base_has_stepped_ = false;
  struct OwnMetric {
    std::string name;
    OwnedPtr<metrics::Metric> metric;
  };
  std::vector<OwnMetric> metrics_;
};

/// Fraction of rows whose largest score is at the target: logits (B, C), target (B) int64; returns a scalar f32.
Tensor accuracy(const Tensor& logits, const Tensor& target);

}  // namespace levin
