#pragma once
// Code of other people at known moments of a run. The order of all hooks is held by tests/trainer/hook_order_test.cpp.

#include <levin/core/state_dict.h>
#include <levin/data/dataloader.h>
#include <levin/trainer/config.h>
#include <levin/trainer/metric_store.h>
#include <levin/trainer/train_state.h>

#include <span>

namespace levin {

class LevinModule;
class Logger;
class Optimizers;
class Precision;
class StepOutput;
class Strategy;
struct DataModule;
struct StepOptions;

/// What a callback sees of the run, what it may change there, and the token by which it can end it. Pointers are null
/// where there is no such thing: optimizers and step options outside of fit.
struct RunContext {
  const TrainerConfig& config;
  const TrainState& state;
  MetricStore& metrics;
  LevinModule& module;
  StopToken& stop;
  Optimizers* optimizers = nullptr;     ///< with their schedulers, known from on_fit_start on
  StepOptions* step_options = nullptr;  ///< a change of accumulate_grad_batches counts from the next window on
  const DataModule* data = nullptr;     ///< the loaders of this run, as far as it has asked for them
  Strategy* strategy = nullptr;
  Precision* precision = nullptr;
  std::span<const std::shared_ptr<Logger>> loggers{};
  Stage stage = Stage::fit;
  bool sanity_checking = false;
  bool is_last_batch = false;           ///< training has the last batch of its epoch in hand
  bool resumed = false;                 ///< this fit continues a checkpoint
  std::int64_t train_batches = 0;       ///< of each training epoch; -1 where nobody knows
  std::int64_t eval_batches = 0;        ///< of the evaluation that runs, all its loaders; -1 where nobody knows
  std::int64_t max_epochs = 0;          ///< -1 for no limit
  std::filesystem::path root_dir{};     ///< where the run's files go
  std::vector<double> learning_rates{}; ///< one a parameter group, of all optimizers in turn
  Tensor prediction{};                  ///< what predict_step gave, in on_predict_batch_end

  /// Records a value as LevinModule::log does; the hook in which that happens gives the defaults.
  void log(std::string_view name, double value, const LogOptions& options = {}) const {
    metrics.log(name, value, options);
  }
};

/// Hooks do nothing unless overridden. Each runs for all callbacks in their order, then for the module.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Under this name the state is kept in checkpoints; two of one name are told apart by their order.
  virtual std::string state_key() const { return {}; }
  virtual StateMap state() const { return {}; }
  virtual void load_state(const StateMap&) {}
  /// Tensors kept beside state(), under names of the callback's own. A resumed fit gives both back before
  /// configure_optimizers; on_fit_start may then add parameter groups, which the optimizer's own state finds in place.
  virtual StateDict tensors() const { return {}; }
  virtual void load_tensors(const StateDict&) {}
  /// Asked before state(). May put other values (their average) in the place of the `weights` that a checkpoint has as
  /// its network; true when it did. The trained ones are kept beside them, and a resumed fit goes on with those.
  virtual bool on_save_weights(RunContext&, StateDict& /*weights*/) { return false; }
  /// True for callbacks that read metrics: their on_train_epoch_end runs after the module's own.
  virtual bool is_monitoring() const { return false; }
  /// The logged value without which this callback cannot do its work; empty for none. See the sanity check.
  virtual std::string monitor() const { return {}; }

  virtual void setup(RunContext&) {}
  virtual void teardown(RunContext&) {}
  virtual void on_fit_start(RunContext&) {}
  virtual void on_fit_end(RunContext&) {}
  virtual void on_sanity_check_start(RunContext&) {}
  virtual void on_sanity_check_end(RunContext&) {}
  virtual void on_exception(RunContext&, const std::exception&) {}
  virtual void on_save_checkpoint(RunContext&, StateMap&) {}
  virtual void on_load_checkpoint(RunContext&, const StateMap&) {}

  virtual void on_train_start(RunContext&) {}
  virtual void on_train_end(RunContext&) {}
  virtual void on_train_epoch_start(RunContext&) {}
  virtual void on_train_epoch_end(RunContext&) {}
  virtual void on_train_batch_start(RunContext&, const Batch&, int) {}
  virtual void on_train_batch_end(RunContext&, const StepOutput&, const Batch&, int) {}
  virtual void on_before_zero_grad(RunContext&) {}
  virtual void on_before_backward(RunContext&, const Tensor&) {}
  virtual void on_after_backward(RunContext&) {}
  virtual void on_before_optimizer_step(RunContext&) {}

  virtual void on_validation_start(RunContext&) {}
  virtual void on_validation_end(RunContext&) {}
  virtual void on_validation_epoch_start(RunContext&) {}
  virtual void on_validation_epoch_end(RunContext&) {}
  virtual void on_validation_batch_start(RunContext&, const Batch&, int) {}
  virtual void on_validation_batch_end(RunContext&, const Batch&, int) {}

  virtual void on_test_start(RunContext&) {}
  virtual void on_test_end(RunContext&) {}
  virtual void on_test_epoch_start(RunContext&) {}
  virtual void on_test_epoch_end(RunContext&) {}
  virtual void on_test_batch_start(RunContext&, const Batch&, int) {}
  virtual void on_test_batch_end(RunContext&, const Batch&, int) {}

  virtual void on_predict_start(RunContext&) {}
  virtual void on_predict_end(RunContext&) {}
  virtual void on_predict_epoch_start(RunContext&) {}
  virtual void on_predict_epoch_end(RunContext&) {}
  virtual void on_predict_batch_start(RunContext&, const Batch&, int) {}
  virtual void on_predict_batch_end(RunContext&, const Batch&, int) {}
};

/// What a policy wants done with checkpoints. Names are folders below its directory.
struct CheckpointAction {
  enum class Kind { save, point, remove };
  Kind kind = Kind::save;
  std::filesystem::path path{};  ///< the folder; of a pointer, the pointer
  std::string target{};          ///< of a pointer: the name it gets
  bool weights_only = false;     ///< of a folder to save
};

/// Decides when to save what, but writes nothing itself.
class CheckpointPolicy : public Callback {
 public:
  bool is_monitoring() const override { return true; }
  /// Whether decide has something to decide; asked at every save point, so it is quick.
  virtual bool due(const RunContext&, SavePoint) { return true; }
  /// What to do now. If an action fails, the policy gets the state() it had before.
  virtual std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) = 0;
  /// What to do when a signal ends the run now.
  virtual std::vector<CheckpointAction> decide_interrupted(RunContext& run) = 0;
  /// What to do when an exception ends the run now.
  virtual std::vector<CheckpointAction> decide_exception(RunContext&) { return {}; }
  /// What to do when fit has come to its end.
  virtual std::vector<CheckpointAction> decide_finished(RunContext&) { return {}; }
  /// Whether a checkpoint that could not be written is a warning only.
  virtual bool continues_on_error() const { return false; }
  /// Where a fit that was given no checkpoint goes on; empty for a new start. Asked after setup.
  virtual std::filesystem::path resume_from() const { return {}; }
  /// "best" or "last": the folder it stands for; empty when there is none.
  virtual std::filesystem::path find(const std::string& which) const = 0;
  /// Where its folders and pointers stand; known after setup.
  virtual std::filesystem::path directory() const = 0;
};

}  // namespace levin
