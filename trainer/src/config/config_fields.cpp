#include "src/config/config_fields.h"

namespace levin {

const std::vector<ConfigField>& config_fields() {
  using C = TrainerConfig;
  static const std::vector<ConfigField> fields = {
      {"max_epochs", &C::max_epochs, "Epochs; -1 for no limit; 1000 unless --max-steps is given", -1},
      {"min_epochs", &C::min_epochs, "Minimum epochs before an early stop"},
      {"max_steps", &C::max_steps, "Optimizer steps; -1 for no limit", -1},
      {"min_steps", &C::min_steps, "Minimum steps before an early stop"},
      {"max_time", &C::max_time, "Maximum training time, checked after every batch"},
      {.name = "fast_dev_run",
       .member = &C::fast_dev_run,
       .help = "Run this many batches of everything for one epoch, and write nothing",
       .counts = true},
      {"limit_train_batches", &C::limit_train_batches, "Training batches per epoch, or a fraction of them"},
      {"limit_val_batches", &C::limit_val_batches, "Validation batches, or a fraction"},
      {"limit_test_batches", &C::limit_test_batches, "Test batches, or a fraction"},
      {"limit_predict_batches", &C::limit_predict_batches, "Prediction batches, or a fraction"},
      {"overfit_batches", &C::overfit_batches, "Unless 0: batches of training and of validation, not shuffled"},
      {"reload_dataloaders_every_n_epochs", &C::reload_dataloaders_every_n_epochs,
       "Epochs after which loaders are requested again; 0 to request them once"},
      {"val_check_interval", &C::val_check_interval,
       "Batches between validations, a fraction of an epoch, or a time DD:HH:MM:SS"},
      {"check_val_every_n_epoch", &C::check_val_every_n_epoch, "Epochs between validations", 1},
      {"num_sanity_val_steps", &C::num_sanity_val_steps, "Validation batches before training; -1 for all", -1},
      {"inference_mode", &C::inference_mode, "Evaluate under inference_mode, else no_grad"},
      {"accumulate_grad_batches", &C::accumulate_grad_batches, "Batches per optimizer step", 1},
      {"gradient_clip_val", &C::gradient_clip_val, "Clip gradients to this"},
      {"gradient_clip_algorithm", &C::gradient_clip_algorithm, "Clip by norm or by value", 0, {"norm", "value"}},
      {"precision", &C::precision, "32-true, 64-true, 16-mixed, bf16-mixed, 16-true, bf16-true or 16-o2"},
      {"capture", &C::capture, "Record the steps of each shape once per epoch and replay them"},
      {"accelerator", &C::accelerator, "auto, cpu or cuda (gpu means cuda)"},
      {"devices", &C::devices, "auto, -1 for all, a count, or indices such as 0,2 or [1]"},
      {"num_nodes", &C::num_nodes, "Machines", 1},
      {"node_rank", &C::node_rank, "Index of this machine, from 0; -1: read NODE_RANK", -1},
      {"timeout", &C::timeout, "Seconds that ranks wait for each other", 1},
      {"nccl_algo", &C::nccl_algo, "Algorithm of NCCL's all-reduce", 0, {"ring", "tree", "auto"}},
      {"strategy", &C::strategy, "auto, or a strategy of docs/distributed.md: ddp, zero_2, fsdp ..."},
#define LEVIN_DDP_OPTION(type, field, value, flag, text, ...) \
  {.name = flag, .member = {&C::ddp, &DdpConfig::field}, .help = text __VA_OPT__(, ) __VA_ARGS__},
#define LEVIN_HOROVOD_OPTION(type, field, value, flag, text, ...) \
  {.name = flag, .member = {&C::horovod, &HorovodConfig::field}, .help = text __VA_OPT__(, ) __VA_ARGS__},
#define LEVIN_BAGUA_OPTION(type, field, value, flag, text, ...) \
  {.name = flag, .member = {&C::bagua, &BaguaConfig::field}, .help = text __VA_OPT__(, ) __VA_ARGS__},
#define LEVIN_FSDP_OPTION(type, field, value, flag, text, ...) \
  {.name = flag, .member = {&C::fsdp, &FsdpConfig::field}, .help = text __VA_OPT__(, ) __VA_ARGS__},
#define LEVIN_PIPELINE_OPTION(type, field, value, flag, text, ...) \
  {.name = flag, .member = {&C::pipeline, &PipelineConfig::field}, .help = text __VA_OPT__(, ) __VA_ARGS__},
#include <levin/trainer/config/strategy_option_rows.h>
      {"use_distributed_sampler", &C::use_distributed_sampler, "Give every rank its share of the data"},
      {"sync_batchnorm", &C::sync_batchnorm, "Compute batch-norm statistics over all ranks"},
      {.name = "default_root_dir",
       .member = &C::default_root_dir,
       .help = "Folder for logs and checkpoints; the working directory if empty",
       .is_path = true},
      {"log_every_n_steps", &C::log_every_n_steps, "Steps between rows of the log", 1},
      {"enable_checkpointing", &C::enable_checkpointing, "Save checkpoints"},
      {"checkpoint_every_n_steps", &C::checkpoint_every_n_steps, "Steps between additional checkpoints; 0 for none"},
      {"resume", &C::resume, "Resume from this checkpoint: a folder, last or best"},
      {"enable_progress_bar", &C::enable_progress_bar, "Show progress"},
      {"async_checkpoints", &C::async_checkpoints, "Write checkpoints asynchronously"},
      {"enable_model_summary", &C::enable_model_summary, "Print a summary of the network before training"},
      {"logger", &C::logger,
       "Logs to write: csv, tensorboard, jsonl, html, several separated by commas, or none; true means csv"},
      {"enable_autolog_hparams", &C::enable_autolog_hparams, "Log hyper-parameters when a fit begins"},
      {"barebones", &C::barebones, "Run nothing but the loop, to measure it"},
      {"profiler", &C::profiler, "Profiler: simple, advanced, trace or nvtx"},
      {"deterministic", &C::deterministic, "Always true in Levin"},
      {"benchmark", &C::benchmark, "Accepted for compatibility: kernels are chosen by shape"},
      {"detect_anomaly", &C::detect_anomaly, "Find the operation that produces a NaN"},
      {"seed", &C::seed, "Seed of the default generator"},
      {"handle_signals", &C::handle_signals, "Ctrl-C ends the run after the current step and saves a checkpoint"},
  };
  return fields;
}

}  // namespace levin
