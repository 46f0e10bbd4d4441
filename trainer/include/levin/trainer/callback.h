#pragma once
// Callbacks: user code that runs at fixed points of a run. tests/trainer/loops/hook_order_test.cpp checks the order of
// all hooks.

#include <levin/core/state_dict.h>
#include <levin/data/dataloader.h>
#include <levin/trainer/config/config.h>
#include <levin/trainer/metric_store.h>
#include <levin/trainer/train_state.h>

#include <functional>
#include <span>

namespace levin {

class LevinModule;
class Logger;
class ManualOptimization;
class Optimizers;
class PrecisionPlugin;
class StepOutput;
class Strategy;
struct DataModule;
struct StepOptions;

/// Results of predict_step, by loader and batch.
using Predictions = std::vector<std::vector<Tensor>>;

/// Passed to every callback hook: the state of the run, the options that a hook may change, and the token that stops
/// the run. A pointer is null where it does not apply; `optimizers` and `step_options` are set during fit only.
struct RunContext {
  const TrainerConfig& config;           ///< that of the Trainer
  const TrainState& state;               ///< position of the run
  MetricStore& metrics;                  ///< the logged values
  LevinModule& module;                   ///< the module that runs, on its device
  StopToken& stop;                       ///< a request ends a fit after the current step
  Optimizers* optimizers = nullptr;      ///< with their schedulers; set from on_fit_start on
  StepOptions* step_options = nullptr;   ///< a change of accumulate_grad_batches takes effect with the next window
  ManualOptimization* manual = nullptr;  ///< set during a fit with manual optimization
  /// Returns the optimizer steps of this fit, -1 if unlimited; empty outside of fit.
  std::function<std::int64_t()> estimated_stepping_batches{};
  const DataModule* data = nullptr;                    ///< the loaders that this run has requested so far
  Strategy* strategy = nullptr;                        ///< processes and devices of the run
  PrecisionPlugin* precision = nullptr;                ///< its types and loss scaling
  std::span<const std::shared_ptr<Logger>> loggers{};  ///< on rank zero; empty on other ranks
  Stage stage = Stage::fit;                            ///< fit also during its validations
  bool sanity_checking = false;                        ///< true during the validation before training
  bool is_last_batch = false;                          ///< true while training processes the last batch of its epoch
  bool resumed = false;                                ///< true if this fit resumed from a checkpoint
  std::int64_t train_batches = 0;                      ///< batches per training epoch; -1 if unknown
  std::int64_t eval_batches = 0;         ///< batches of the current evaluation over all its loaders; -1 if unknown
  std::int64_t eval_batches_done = 0;    ///< those of them that are finished; in on_*_batch_end including this one
  std::int64_t max_epochs = 0;           ///< -1 for no limit
  std::string root_dir{};                ///< directory for the run's files
  std::vector<double> learning_rates{};  ///< one per parameter group, over all optimizers in order
  Tensor prediction{};                   ///< return value of predict_step, in on_predict_batch_end

  /// Records a value as LevinModule::log does; the defaults depend on the hook that calls it.
  void log(std::string_view name, double value, const LogOptions& options = {}) const {
    metrics.log(name, value, options);
  }
};

namespace detail {
template <class... Arguments>
void unused(const Arguments&...) {}
}  // namespace detail

/// Base class of callbacks. Hooks do nothing unless overridden. Each hook runs for all callbacks in order, then for the
/// module.
class Callback {
 public:
  virtual ~Callback() = default;

  /// Key of this callback's state in checkpoints. Equal keys are told apart by the order of the callbacks.
  virtual std::string state_key() const { return {}; }
  /// Numbers and texts that checkpoints store; load_state() receives them when a fit resumes.
  virtual StateMap state() const { return {}; }
  virtual void load_state(const StateMap&) {}
  /// Tensors that checkpoints store beside state(), under names that the callback chooses. A resumed fit restores both
  /// before configure_optimizers; on_fit_start may then add parameter groups, into which the optimizer's state is
  /// loaded.
  virtual StateDict tensors() const { return {}; }
  virtual void load_tensors(const StateDict&) {}
  /// Called before state(). May replace `weights`, the model weights of the checkpoint, by other values such as their
  /// average, and then returns true. The trained weights are stored beside them, and a resumed fit continues with
  /// those.
  virtual bool on_save_weights(RunContext&, StateDict& /*weights*/) { return false; }
  /// True for callbacks that read metrics: their on_train_epoch_end runs after the module's.
  virtual bool is_monitoring() const { return false; }
  /// Name of the logged value that this callback requires; empty for none. The sanity check verifies it.
  virtual std::string monitor() const { return {}; }

  // The hooks, which hooks.h lists.
#define LEVIN_CALLBACK_HOOK(name, parameters, arguments) \
  virtual void name parameters { detail::unused arguments; }
#include <levin/trainer/hooks.h>
};

/// One action on checkpoints that a policy requests. Paths are relative to its directory.
struct CheckpointAction {
  /// Writes a checkpoint folder, sets a pointer to one, or removes a folder or a pointer.
  enum class Kind { save, point, remove };
  Kind kind = Kind::save;        ///< the action
  std::string path{};            ///< the folder, or the pointer's own name for `point`
  std::string target{};          ///< the folder that the pointer names, for `point`
  bool weights_only = false;     ///< for `save`: leaves out the state of training
};

/// Decides when to save which checkpoints, but writes nothing itself.
class CheckpointPolicy : public Callback {
 public:
  bool is_monitoring() const override { return true; }
  /// True if `decide` may request actions now; called at every save point, so it must be cheap.
  virtual bool due(const RunContext&, SavePoint) { return true; }
  /// Returns the actions to take now. If one fails, the policy is reset to its previous state().
  virtual std::vector<CheckpointAction> decide(RunContext& run, SavePoint point) = 0;
  /// Returns the actions to take when a signal ends the run.
  virtual std::vector<CheckpointAction> decide_interrupted(RunContext& run) = 0;
  /// Returns the actions to take when an exception ends the run.
  virtual std::vector<CheckpointAction> decide_exception(RunContext&) { return {}; }
  /// Returns the actions to take when fit completes.
  virtual std::vector<CheckpointAction> decide_finished(RunContext&) { return {}; }
  /// True if a failure to write a checkpoint is only a warning.
  virtual bool continues_on_error() const { return false; }
  /// Returns the checkpoint from which a fit without ckpt_path resumes; empty to start from scratch. Called after
  /// setup.
  virtual std::string resume_from() const { return {}; }
  /// Returns the folder that "best" or "last" refers to; empty if there is none.
  virtual std::string find(const std::string& which) const = 0;
  /// Returns the directory of its folders and pointers; known after setup.
  virtual std::string directory() const = 0;
};

}  // namespace levin
