#pragma once
// Configuration of a Trainer. Names, defaults and meanings are Lightning's.

#include <levin/trainer/config/limits.h>
#include <levin/trainer/config/strategy_config.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin {

class Callback;
class Logger;
class Profiler;

/// A callback shared by the configuration and the Trainer; constructible from any Callback type.
class CallbackPtr : public std::shared_ptr<Callback> {
 public:
  /// Moves a callback in, or shares one that the program queries later.
  template <class C>
    requires std::derived_from<C, Callback>
  CallbackPtr(C callback)  // NOLINT: implicit, so that a list of callbacks reads as one
      : std::shared_ptr<Callback>(std::make_shared<C>(std::move(callback))) {}
  template <class C>
    requires std::derived_from<C, Callback>
  CallbackPtr(std::shared_ptr<C> callback) : std::shared_ptr<Callback>(std::move(callback)) {}  // NOLINT
};

/// Profiler of a run: "simple", "advanced", "trace", "nvtx", "" for none, or a custom profiler object.
class ProfilerChoice {
 public:
  ProfilerChoice() = default;
  /// Takes a name, which make_profiler() checks, or an object.
  ProfilerChoice(std::string name) : name_(std::move(name)) {}  // NOLINT: implicit
  ProfilerChoice(const char* name) : name_(name) {}             // NOLINT
  template <class P>
  requires std::derived_from<P, Profiler> ProfilerChoice(std::shared_ptr<P> object)
      : name_("object"), object_(std::move(object)) {}  // NOLINT
  /// The name, or "object"; and the object, or null.
  const std::string& name() const { return name_; }
  const std::shared_ptr<Profiler>& object() const { return object_; }

 private:
  std::string name_;
  std::shared_ptr<Profiler> object_;
};

/// Loggers that write into the Trainer's folder: "csv" (metrics.csv), "tensorboard" (tensorboard/version_k), "jsonl"
/// (metrics.jsonl), "html" (report.html), several separated by commas, or "none".
class LoggerChoice {
 public:
  /// true means csv, false none.
  LoggerChoice(bool on = true);  // NOLINT: implicit
  /// Throws UsageError for an unknown name.
  LoggerChoice(const std::string& text);  // NOLINT: implicit
  LoggerChoice(const char* text);         // NOLINT
  /// Also accepts a list in brackets and the words for true and false. Throws UsageError whose message begins with
  /// `option`.
  static LoggerChoice parse(const std::string& text, const std::string& option = "--logger");
  /// The names, each once, and whether one is among them.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  /// Returns for example "csv,html", or "none".
  std::string text() const;
  /// True if there is a logger.
  operator bool() const;  // NOLINT: implicit, for `a = b = config.logger = false`

 private:
  std::vector<std::string> names_;
};

/// Configuration of a Trainer. check_config() throws for values out of range.
struct TrainerConfig {
  // Duration
  std::optional<std::int64_t> max_epochs{};  ///< 1000 unless max_steps is given; -1 for no limit
  std::int64_t min_epochs = 0;               ///< early stopping waits for these
  std::int64_t max_steps = -1;               ///< accumulation windows (global_step); -1 for no limit
  std::int64_t min_steps = 0;                ///< early stopping waits for these
  std::optional<Duration> max_time{};        ///< "DD:HH:MM:SS" or a duration; checked after every batch
  std::int64_t fast_dev_run = 0;  ///< run this many batches of everything for one epoch, without checkpoints and logs

  // Fraction of each epoch, or a number of batches; evaluation counts them for each loader
  BatchLimit limit_train_batches = 1.0;    ///< 0: fit does not train
  BatchLimit limit_val_batches = 1.0;      ///< 0: fit does not validate
  BatchLimit limit_test_batches = 1.0;     ///< batches of Trainer::test
  BatchLimit limit_predict_batches = 1.0;  ///< batches of Trainer::predict
  BatchLimit overfit_batches = 0.0;        ///< unless 0: limits training and validation, and disables shuffling
  std::int64_t reload_dataloaders_every_n_epochs = 0;  ///< 0: loaders are requested once

  // Validation
  CheckInterval val_check_interval = 1.0;  ///< fraction of an epoch, batches, or time between two validations
  std::optional<std::int64_t> check_val_every_n_epoch = 1;  ///< if absent, an interval in batches runs across epochs
  std::int64_t num_sanity_val_steps = 2;  ///< batches of validation before training; -1 for all
  bool inference_mode = true;             ///< evaluate under inference_mode; if false, under no_grad

  // Optimization
  std::int64_t accumulate_grad_batches = 1;      ///< batches per optimizer step
  std::optional<double> gradient_clip_val{};     ///< limit of the norm or of each element; empty: no clipping
  std::string gradient_clip_algorithm = "norm";  ///< "norm" (global L2) or "value"
  std::string precision = "32-true";             ///< a name of make_precision()
  bool capture = false;  ///< replay steps of equal shapes without the work around their kernels (StepOptions)

  // Devices and strategy
  std::string accelerator = "auto";     ///< "cpu", "cuda" (or "gpu"), or "auto": a GPU if there is one
  DeviceList devices = "auto";          ///< which GPUs, or how many processes on the CPU; "auto": one
  std::int64_t num_nodes = 1;           ///< machines; each starts the program with MASTER_ADDR, MASTER_PORT, NODE_RANK
  std::int64_t node_rank = -1;          ///< index of this machine, from 0; -1: read NODE_RANK
  std::int64_t timeout = 300;           ///< seconds that ranks wait for each other
  std::string nccl_algo = "ring";       ///< NCCL's all-reduce: "ring" (deterministic order), "tree" or "auto"
  std::string strategy = "auto";        ///< a name of make_strategy()
  DdpConfig ddp{};                      ///< of the strategies that exchange gradients as ddp does
  HorovodConfig horovod{};              ///< of the strategy horovod
  BaguaConfig bagua{};                  ///< of the strategy bagua
  FsdpConfig fsdp{};                    ///< of fsdp, and state_dict_type also of zero_1 and zero_2
  PipelineConfig pipeline{};            ///< of the strategy pipeline
  bool use_distributed_sampler = true;  ///< give every rank its share of the data
  bool sync_batchnorm = false;          ///< compute batch-norm statistics over all ranks

  // Output
  std::string default_root_dir{};             ///< the working directory if empty
  std::int64_t log_every_n_steps = 50;        ///< steps between two records of the step's values
  bool enable_checkpointing = true;           ///< add a ModelCheckpoint if there is none
  std::int64_t checkpoint_every_n_steps = 0;  ///< add one that saves the newest state at this interval; 0 for none
  std::string resume{};                       ///< ckpt_path of a fit that is given none: a folder, "last" or "best"
  bool async_checkpoints = false;    ///< write checkpoints that are not sharded on a thread; fit waits for the last
  bool enable_progress_bar = true;   ///< add a ProgressBar if there is none
  bool enable_model_summary = true;  ///< add a ModelSummary if there is none
  LoggerChoice logger = true;        ///< "csv", "tensorboard", "jsonl", "html", or several: "csv,html"; false for none
  bool enable_autolog_hparams = true;  ///< log the module's hyper-parameters when a fit begins
  bool barebones = false;  ///< none of the above, no sanity check, log() does nothing: to measure the loop itself

  // Debugging and reproducibility
  ProfilerChoice profiler{};           ///< measures each run
  bool deterministic = true;           ///< always true: results depend neither on timing nor on the number of threads
  std::optional<bool> benchmark{};     ///< accepted for compatibility: kernels are chosen by shape, never by timing
  bool detect_anomaly = false;         ///< find the operation whose backward produces a NaN (slow)
  std::optional<std::int64_t> seed{};  ///< seed of the default generator
  bool handle_signals = true;          ///< SIGINT and SIGTERM end fit after the current step and save a checkpoint

  /// True if training repeats a few batches (overfit_batches).
  bool overfits() const { return !overfit_batches.is_zero(); }

  /// Run in this order, before those that the Trainer adds; those that save checkpoints run last.
  std::vector<CallbackPtr> callbacks{};
  std::vector<std::shared_ptr<Logger>> loggers{};  ///< in addition to those of `logger`
};

/// Throws UsageError for an invalid value or one that requires a part that is not built.
void check_config(const TrainerConfig& config);

}  // namespace levin
