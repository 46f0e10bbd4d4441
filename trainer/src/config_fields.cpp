#include "config_fields.h"

namespace levin {

const std::vector<ConfigField>& config_fields() {
  using C = TrainerConfig;
  static const std::vector<ConfigField> fields = {
      {"max_epochs", &C::max_epochs, "Epochs; -1 for no limit; 1000 where --max-steps is not given", -1},
      {"min_epochs", &C::min_epochs, "Epochs that an early stop waits for"},
      {"max_steps", &C::max_steps, "Optimizer steps; -1 for no limit", -1},
      {"min_steps", &C::min_steps, "Steps that an early stop waits for"},
      {"max_time", &C::max_time, "Longest time of training, looked at after every batch"},
      {.name = "fast_dev_run",
       .member = &C::fast_dev_run,
       .help = "This many batches of everything, one epoch, nothing written",
       .counts = true},
      {"limit_train_batches", &C::limit_train_batches, "Training batches an epoch, or a fraction of them"},
      {"limit_val_batches", &C::limit_val_batches, "Validation batches, or a fraction"},
      {"limit_test_batches", &C::limit_test_batches, "Test batches, or a fraction"},
      {"limit_predict_batches", &C::limit_predict_batches, "Prediction batches, or a fraction"},
      {"overfit_batches", &C::overfit_batches, "Unless 0: batches of training and validation alike, not shuffled"},
      {"reload_dataloaders_every_n_epochs", &C::reload_dataloaders_every_n_epochs,
       "Epochs between two questions for the loaders; 0 for one question"},
      {"val_check_interval", &C::val_check_interval,
       "Batches between validations, a fraction of an epoch, or a time DD:HH:MM:SS"},
      {"check_val_every_n_epoch", &C::check_val_every_n_epoch, "Epochs between validations", 1},
      {"num_sanity_val_steps", &C::num_sanity_val_steps, "Validation batches before training; -1 for all", -1},
      {"inference_mode", &C::inference_mode, "Evaluate under inference_mode, else no_grad"},
      {"accumulate_grad_batches", &C::accumulate_grad_batches, "Batches an optimizer step", 1},
      {"gradient_clip_val", &C::gradient_clip_val, "Clip gradients to this"},
      {"gradient_clip_algorithm", &C::gradient_clip_algorithm, "What is clipped", 0, {"norm", "value"}},
      {"precision", &C::precision, "32-true, 64-true, 16-mixed, bf16-mixed, 16-true, bf16-true or 16-o2"},
      {"accelerator", &C::accelerator, "auto, cpu or cuda (gpu means cuda)"},
      {"devices", &C::devices, "auto, -1 for all, how many, or which: 0,2 or [1]"},
      {"num_nodes", &C::num_nodes, "Machines", 1},
      {"node_rank", &C::node_rank, "Which machine this is, from 0; -1: as NODE_RANK says", -1},
      {"timeout", &C::timeout, "Seconds that ranks wait for each other", 1},
      {"strategy", &C::strategy, "auto, single, dp, ddp, ddp2 or ddp_spawn"},
      {"use_distributed_sampler", &C::use_distributed_sampler, "Every rank sees its share of the data"},
      {"sync_batchnorm", &C::sync_batchnorm, "Batch norm's statistics over all ranks"},
      {"default_root_dir", &C::default_root_dir, "Folder for logs and checkpoints; the working folder when empty"},
      {"log_every_n_steps", &C::log_every_n_steps, "Steps between rows of the log", 1},
      {"enable_checkpointing", &C::enable_checkpointing, "Save checkpoints"},
      {"checkpoint_every_n_steps", &C::checkpoint_every_n_steps, "Steps between checkpoints of their own; 0 for none"},
      {"resume", &C::resume, "Go on from this checkpoint: its folder, last or best"},
      {"enable_progress_bar", &C::enable_progress_bar, "Show progress"},
      {"async_checkpoints", &C::async_checkpoints, "Write checkpoints while training goes on"},
      {"enable_model_summary", &C::enable_model_summary, "Print the network first"},
      {"logger", &C::logger, "Write metrics.csv"},
      {"enable_autolog_hparams", &C::enable_autolog_hparams, "Log hyper-parameters when a fit begins"},
      {"barebones", &C::barebones, "Nothing but the loop: to measure it"},
      {"profiler", &C::profiler, "Where the time goes: simple, advanced, trace or nvtx"},
      {"deterministic", &C::deterministic, "Always so here"},
      {"benchmark", &C::benchmark, "Accepted for the name's sake: kernels are chosen by shape"},
      {"detect_anomaly", &C::detect_anomaly, "Find the operation that makes a NaN"},
      {"seed", &C::seed, "Seed of the default generator"},
      {"handle_signals", &C::handle_signals, "Ctrl-C ends after the current step with a checkpoint"},
  };
  return fields;
}

}  // namespace levin
