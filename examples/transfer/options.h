#pragma once
// The program's options, and the data of either task.

#include <levin/levin.h>

struct Options {
  std::string data{};  // folder of the IDX files; empty: where Debian's package installs them
  std::string from{};  // checkpoint of the first task; empty: train it
  std::int64_t base_epochs = 2;
  std::int64_t unfreeze_at = 10;
  std::int64_t images = 20;  // training images of each new class
  std::int64_t batch_size = 20;
  double lr = 2e-3;
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0: all cores
  levin::TrainerConfig trainer{.max_epochs = 20,
                               .num_sanity_val_steps = 0,
                               .accelerator = "cpu",
                               .default_root_dir = "runs/transfer",
                               .log_every_n_steps = 1};  // for all three trainings; each writes to its own subfolder
};

/// Returns false after --help. Throws levin::UsageError.
bool parse(int argc, char** argv, Options& options);

/// Returns images of classes first_class to first_class + 4: for training `per_class` of each, or all but the held-out
/// ones if `per_class` is 0; for validation 100 of each; for testing all of the test set.
levin::DataModule clothes(const Options& options, std::int64_t first_class, std::int64_t per_class,
                          std::int64_t batch_size);
