#pragma once
// Everything that a Trainer can be told. Names, defaults and meanings are Lightning's.

#include <levin/trainer/limits.h>

#include <filesystem>
#include <concepts>
#include <memory>
#include <optional>
#include <vector>

namespace levin {

class Callback;
class Logger;
class Profiler;

/// A callback shared by the configuration and the Trainer; made from a value of any Callback type.
class CallbackPtr : public std::shared_ptr<Callback> {
 public:
  template <class C>
    requires std::derived_from<C, Callback>
  CallbackPtr(C callback)  // NOLINT: implicit, so that a list of callbacks reads as one
      : std::shared_ptr<Callback>(std::make_shared<C>(std::move(callback))) {}
  template <class C>
    requires std::derived_from<C, Callback>
  CallbackPtr(std::shared_ptr<C> callback) : std::shared_ptr<Callback>(std::move(callback)) {}  // NOLINT
};

/// What measures a run: "simple", "advanced", "trace", "nvtx", or "" for nothing; or a profiler of the program's own.
class ProfilerChoice {
 public:
  ProfilerChoice() = default;
  ProfilerChoice(std::string name) : name_(std::move(name)) {}  // NOLINT: implicit
  ProfilerChoice(const char* name) : name_(name) {}             // NOLINT
  template <class P>
  requires std::derived_from<P, Profiler> ProfilerChoice(std::shared_ptr<P> object)
      : name_("object"), object_(std::move(object)) {}  // NOLINT
  const std::string& name() const { return name_; }
  const std::shared_ptr<Profiler>& object() const { return object_; }

 private:
  std::string name_;
  std::shared_ptr<Profiler> object_;
};

/// The logs that a Trainer writes into its folder: "csv" (metrics.csv), "tensorboard" (tensorboard/version_k), "jsonl"
/// (metrics.jsonl), "html" (report.html), several separated by commas, or "none". true means csv, false means none.
class LoggerChoice {
 public:
  LoggerChoice(bool on = true);  // NOLINT: implicit
  /// Throws UsageError for an unknown name.
  LoggerChoice(const std::string& text);  // NOLINT: implicit
  LoggerChoice(const char* text);         // NOLINT
  /// Also takes a list in brackets and the words for true and false. Throws UsageError, which begins with `option`.
  static LoggerChoice parse(const std::string& text, const std::string& option = "--logger");
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const;
  /// "csv,html", or "none"
  std::string text() const;
  operator bool() const;  // NOLINT: implicit, for `a = b = config.logger = false`

 private:
  std::vector<std::string> names_;
};

struct TrainerConfig {
  // How long
  std::optional<std::int64_t> max_epochs{};  ///< 1000 unless max_steps is given; -1 for no limit
  std::int64_t min_epochs = 0;               ///< an early stop waits for it
  std::int64_t max_steps = -1;               ///< optimizer steps; -1 for no limit
  std::int64_t min_steps = 0;
  std::optional<Duration> max_time{};  ///< "DD:HH:MM:SS" or a duration; checked after every batch
  std::int64_t fast_dev_run = 0;  ///< this many batches of everything, one epoch, no checkpoint and no log

  // How much of each epoch: a fraction, or a number of batches
  BatchLimit limit_train_batches = 1.0;
  BatchLimit limit_val_batches = 1.0;
  BatchLimit limit_test_batches = 1.0;
  BatchLimit limit_predict_batches = 1.0;
  BatchLimit overfit_batches = 0.0;  ///< unless 0: limits of training and validation, without shuffling
  std::int64_t reload_dataloaders_every_n_epochs = 0;  ///< 0: loaders are asked for once

  // Validation
  CheckInterval val_check_interval = 1.0;  ///< part of an epoch, batches, or time between two validations
  std::optional<std::int64_t> check_val_every_n_epoch = 1;  ///< without: an interval in batches runs across epochs
  std::int64_t num_sanity_val_steps = 2;  ///< batches of validation before training; -1 for all
  bool inference_mode = true;             ///< evaluation under inference_mode, else no_grad

  // Optimisation
  std::int64_t accumulate_grad_batches = 1;
  std::optional<double> gradient_clip_val{};
  std::string gradient_clip_algorithm = "norm";  ///< "norm" (global L2) or "value"
  std::string precision = "32-true";

  // Where
  std::string accelerator = "auto";
  DeviceList devices = "auto";
  std::int64_t num_nodes = 1;   ///< machines; each starts the program, with MASTER_ADDR, MASTER_PORT and NODE_RANK
  std::int64_t node_rank = -1;  ///< of this machine, from 0; -1: NODE_RANK
  std::int64_t timeout = 300;   ///< seconds that ranks wait for each other
  std::string nccl_algo = "ring";  ///< how NCCL sums over GPUs: "ring" (its order is known), "tree" or "auto"
  std::string strategy = "auto";
  std::string ddp_comm_hook = "none";  ///< ddp: "none", "fp16_compress", "bf16_compress" or "post_local_sgd"
  std::int64_t model_averaging_period = 0;    ///< post_local_sgd: steps between two averages of the weights
  std::int64_t start_local_sgd_iter = 0;      ///< post_local_sgd: steps with averaged gradients at first
  bool post_local_gradient_allreduce = true;  ///< post_local_sgd: then gradients are averaged within a machine
  bool scale_lr = true;  ///< horovod: learning rates and schedules' base rates times the number of ranks
  std::string gradient_compression = "none";    ///< horovod: "none" or "fp16"
  std::optional<double> fusion_threshold_mb{};  ///< horovod: MiB that travel together; HOROVOD_FUSION_THRESHOLD, or 64
  std::optional<double> cycle_time_ms{};  ///< horovod: between two agreements; HOROVOD_CYCLE_TIME, or 5
  std::string bagua_algorithm = "gradient_allreduce";  ///< see docs/distributed.md
  std::string bagua_peers = "all";             ///< bagua decentralized: "all" or "shift_one"
  std::string bagua_scale_lr = "none";         ///< bagua, own gradients: "none", or "sqrt" of the number of ranks
  std::int64_t bagua_warmup_steps = 0;         ///< bagua async: steps with averaged gradients at first
  std::int64_t bagua_sync_interval_ms = 500;   ///< bagua async: between two averages of the weights
  std::int64_t fsdp_unit_size = 100'000;       ///< fsdp: elements from which a module is gathered by itself
  /// fsdp, zero_1, zero_2: "full" checkpoints are gathered and written by rank 0; of "sharded" ones each rank writes
  /// its part, never beside training, into a folder that all ranks see. Any strategy reads both.
  std::string fsdp_state_dict_type = "full";
  std::int64_t pipeline_micro_batches = 4;     ///< pipeline: parts of a batch
  std::string pipeline_balance{};  ///< pipeline: layers of each stage, as "2,2"; empty: by their numbers of parameters
  bool use_distributed_sampler = true;  ///< every rank sees its share of the data
  bool sync_batchnorm = false;          ///< batch norm's statistics over all ranks

  // What is written
  std::filesystem::path default_root_dir{};  ///< the working folder when empty
  std::int64_t log_every_n_steps = 50;
  bool enable_checkpointing = true;  ///< adds a ModelCheckpoint where there is none
  std::int64_t checkpoint_every_n_steps = 0;  ///< adds one that saves the newest state so often; 0 for none
  std::string resume{};                       ///< the ckpt_path of a fit that is given none: a folder, "last" or "best"
  bool async_checkpoints = false;    ///< a thread writes those that are not sharded; fit waits for the last
  bool enable_progress_bar = true;
  bool enable_model_summary = true;
  LoggerChoice logger = true;  ///< "csv", "tensorboard", "jsonl", "html", or several: "csv,html"; false for none
  bool enable_autolog_hparams = true;  ///< loggers get the module's hyper-parameters when a fit begins
  bool barebones = false;  ///< none of the above, no sanity check, log() does nothing: to measure the loop itself

  // Finding faults, repeating runs
  ProfilerChoice profiler{};
  bool deterministic = true;  ///< always so: results depend neither on timing nor on the number of threads
  std::optional<bool> benchmark{};  ///< accepted for the name's sake: kernels are chosen by shape, never by timing
  bool detect_anomaly = false;
  std::optional<std::int64_t> seed{};   ///< seeds the default generator
  bool handle_signals = true;           ///< SIGINT and SIGTERM end fit after the current step, with a checkpoint

  /// Whether a few batches are repeated to see the network learn them by heart.
  bool overfits() const { return !overfit_batches.is_zero(); }

  std::vector<CallbackPtr> callbacks{};
  std::vector<std::shared_ptr<Logger>> loggers{};  ///< beside those of `logger`
};

/// Throws UsageError with one sentence for a value that makes no sense or needs a part that is not built.
void check_config(const TrainerConfig& config);

}  // namespace levin
