#pragma once
// A network together with how it is trained.

#include <levin/core/owned_ptr.h>
#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/trainer/config.h>
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

/// What training_step gives back: a loss, {loss, extras}, or nothing ({}) to skip the batch.
class StepOutput {
 public:
  StepOutput() = default;
  StepOutput(Tensor loss, std::map<std::string, Tensor> extras = {});  // NOLINT: implicit
  /// How much this loss counts in an accumulation window instead of the batch's size, e.g. its number of tokens.
  StepOutput& weight(double weight) {
    weight_ = weight;
    return *this;
  }

  bool empty() const { return !loss_.defined(); }
  const Tensor& loss() const { return loss_; }
  const std::map<std::string, Tensor>& extras() const { return extras_; }
  const std::optional<double>& weight() const { return weight_; }
  /// Without the graph, so that hooks may keep it.
  StepOutput detached() const;

 private:
  Tensor loss_;
  std::map<std::string, Tensor> extras_;
  std::optional<double> weight_;
};

/// What the Trainer lends a module for the time of a run.
struct ModuleLink {
  MetricStore* metrics = nullptr;
  const TrainState* state = nullptr;
  const RunContext* run = nullptr;
  std::function<std::int64_t()> total_steps{};
  ManualOptimization* manual = nullptr;  ///< in fit, where the module steps by itself
  Optimizers* optimizers = nullptr;
  LogPart* part = nullptr;         ///< where one of several replicas logs
  LevinModule* original = nullptr;  ///< of which this is a replica
};

class LevinModule : public nn::Module {
 public:
  /// False: training_step does it all itself, by optimizers(), manual_backward and their step(). No clipping, no
  /// accumulation and no scheduler then comes from the Trainer.
  bool automatic_optimization = true;

  // What a program writes
  virtual StepOutput training_step(const Batch& batch, int index);
  /// Gets what training_step gave, and gives the loss. With several devices in one process (strategies dp and ddp2) the
  /// extras of all of them are joined here along their first dimension, with their gradients, so that a loss may see
  /// the whole batch; a number of each replica has become a row. The loss, where the replicas gave any, is that of the
  /// batch.
  virtual StepOutput training_step_end(const StepOutput& whole);
  virtual void validation_step(const Batch&, int) {}
  virtual void test_step(const Batch&, int) {}
  virtual Tensor predict_step(const Batch& batch, int index);
  virtual Optimizers configure_optimizers();

  /// Records a value (a tensor of one element, or a number) under a name. Does nothing outside of a Trainer's run.
  void log(std::string_view name, const Tensor& value, const LogOptions& options = {});
  void log(std::string_view name, double value, const LogOptions& options = {});
  /// Records a metric of this module (see add_metric): its batch value by the step, what it computes by the epoch,
  /// after which it is reset. `log("val_auc", auc)` behind `auc.update(scores, target)` is all that a validation_step
  /// needs.
  void log(std::string_view name, metrics::Metric& metric, const LogOptions& options = {});

  /// Records several values with the same options.
  void log_dict(const std::vector<std::pair<std::string, Tensor>>& values, const LogOptions& options = {});

  /// Makes a metric that belongs to this module, whose state checkpoints keep under `name`:
  /// `metrics::AUROC& auc = add_metric<metrics::AUROC>("auc");`
  template <class M, class... A>
  M& add_metric(const std::string& name, A&&... arguments) {
    auto made = std::make_unique<M>(std::forward<A>(arguments)...);
    M& metric = *made;
    keep_metric(name, std::move(made));
    return metric;
  }

  /// Keeps what this network was made with: checkpoints save it, load_from_checkpoint makes the same network from it,
  /// and it is printed with the summary. A constructor calls it, once or for several values in turn.
  void save_hyperparameters(const StateMap& values);
  const StateMap& hparams() const { return hparams_; }
  /// False lets a checkpoint lack weights, or have more, when the Trainer loads it; it names both in a warning.
  bool strict_loading = true;

  std::int64_t current_epoch() const { return link_.state ? link_.state->epoch : 0; }
  std::int64_t global_step() const { return link_.state ? link_.state->global_step : 0; }
  /// Optimizer steps of the whole fit, for schedulers; 0 outside of one, -1 without an end.
  std::int64_t estimated_stepping_batches() const { return link_.total_steps ? link_.total_steps() : 0; }
  /// Whether training_step has the last batch of its epoch.
  bool is_last_batch() const;

  // Manual optimization, in fit alone; UsageError elsewhere
  /// All optimizers of configure_optimizers: `auto [g_opt, d_opt] = optimizers<2>();`. Throws UsageError for another
  /// number than there are.
  template <std::size_t N = 1>
  std::array<OptimizerHandle, N> optimizers() {
    ManualOptimization& manual = manual_steps("optimizers", N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<OptimizerHandle, N>{OptimizerHandle(manual, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// One for each optimizer; stepping one where there is no scheduler does nothing.
  template <std::size_t N = 1>
  std::array<SchedulerHandle, N> lr_schedulers() {
    Optimizers& all = manual_steps("lr_schedulers", N).optimizers();
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<SchedulerHandle, N>{SchedulerHandle(all, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// In place of loss.backward(): scales the loss as the precision asks, and calls the hooks.
  void manual_backward(const Tensor& loss);
  /// Clips one optimizer's gradients, at their true scale, before its step.
  void clip_gradients(const OptimizerHandle& optimizer, double value, const std::string& algorithm = "norm") {
    optimizer.clip_gradients(value, algorithm);
  }
  /// A hook of Lightning's order: before the sanity check, and before an evaluation.
  virtual void zero_grad(bool set_to_none = true) { nn::Module::zero_grad(set_to_none); }

  // Steps of the step: overridden to change what they do
  virtual void optimizer_zero_grad(optim::Optimizer& optimizer);
  virtual void backward(const Tensor& loss);
  /// Clips by the Trainer's own arguments; call the base from an override, or clip as you like.
  virtual void configure_gradient_clipping(optim::Optimizer& optimizer, std::optional<double> value,
                                           const std::string& algorithm);
  /// Overrides call the base, which also leaves out a window whose gradients overflowed, without waiting to know. One
  /// that steps the optimizer itself is called in good windows only, and every window waits to know.
  virtual void optimizer_step(optim::Optimizer& optimizer);
  /// `metric` is the monitored value of a plateau scheduler.
  virtual void lr_scheduler_step(Optimizers& optimizers, std::optional<double> metric);

  // Data, for runs that are given none
  virtual LoaderPtr train_dataloader() { return {}; }
  virtual Loaders val_dataloader() { return {}; }
  virtual Loaders test_dataloader() { return {}; }
  virtual Loaders predict_dataloader() { return {}; }
  // A batch on its way to the device, in this order, before the hooks of its start
  virtual Batch on_before_batch_transfer(Batch batch) { return batch; }
  virtual Batch transfer_batch_to_device(Batch batch, Device device) { return batch.to(device); }
  virtual Batch on_after_batch_transfer(Batch batch) { return batch; }

  /// Callbacks that belong to this module; one replaces those of its own type that the Trainer has.
  virtual std::vector<CallbackPtr> configure_callbacks() { return {}; }
  /// Makes layers that depend on the data; after setup, before weights are loaded and optimizers made.
  virtual void configure_model() {}
  /// What --strategy pipeline cuts into stages; training_step calls it once. By default the child that is a Sequential,
  /// of several the one with the most parameters; null where there is none.
  virtual nn::Sequential* pipeline_module();

  // Hooks, in the order of a run; each comes after the callbacks' hook of the same name
  virtual void prepare_data() {}
  virtual void setup(Stage) {}
  virtual void on_load_checkpoint(const StateMap&) {}
  virtual void on_fit_start() {}
  virtual void on_train_start() {}
  virtual void on_train_epoch_start() {}
  /// False leaves out this batch and the rest of the epoch.
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
  virtual void teardown(Stage) {}

  /// Before a validation that is not in the middle of an accumulation window.
  virtual void on_validation_model_zero_grad() { nn::Module::zero_grad(); }
  virtual void on_validation_model_eval() { eval(); }
  virtual void on_validation_model_train() {}  ///< every submodule has its former mode again
  virtual void on_validation_start() {}
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_batch_start(const Batch&, int) {}
  virtual void on_validation_batch_end(const Batch&, int) {}
  virtual void on_validation_epoch_end() {}
  virtual void on_validation_end() {}

  virtual void on_test_model_eval() { eval(); }
  virtual void on_test_model_train() {}
  virtual void on_test_start() {}
  virtual void on_test_epoch_start() {}
  virtual void on_test_batch_start(const Batch&, int) {}
  virtual void on_test_batch_end(const Batch&, int) {}
  virtual void on_test_epoch_end() {}
  virtual void on_test_end() {}

  virtual void on_predict_model_eval() { eval(); }
  virtual void on_predict_model_train() {}
  virtual void on_predict_start() {}
  virtual void on_predict_epoch_start() {}
  virtual void on_predict_batch_start(const Batch&, int) {}
  virtual void on_predict_batch_end(const Batch&, int) {}
  virtual void on_predict_epoch_end() {}
  virtual void on_predict_end() {}

  /// Of the Trainer.
  void set_link(const ModuleLink& link);

 private:
  friend class StepRunner;
  friend class ReplicaRun;
  metrics::Metric& of_run(metrics::Metric& own);
  void keep_metric(const std::string& name, std::unique_ptr<metrics::Metric> metric);
  void attach_metrics();
  ManualOptimization& manual_steps(const char* what, std::size_t count) const;

  ModuleLink link_;
  StateMap hparams_;
  Tensor found_inf_;               ///< what the base's optimizer_step obeys
  Strategy* clips_by_ = nullptr;   ///< while gradients are clipped
  bool base_has_stepped_ = false;
  struct OwnMetric {
    std::string name;
    OwnedPtr<metrics::Metric> metric;
  };
  std::vector<OwnMetric> metrics_;
};

/// Share of rows whose largest score is at the target: logits (B, C), target (B) int64; a scalar f32.
Tensor accuracy(const Tensor& logits, const Tensor& target);

}  // namespace levin
