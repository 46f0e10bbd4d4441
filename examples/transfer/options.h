#pragma once
// What the program can be told, and the pictures of either task.

#include <levin/levin.h>

struct Options {
  std::filesystem::path data{};  // of the IDX files; empty: where Debian's package puts them
  std::string from{};  // a checkpoint of the first task; empty: train it
  std::int64_t base_epochs = 2;
  std::int64_t unfreeze_at = 10;
  std::int64_t pictures = 20;  // of each new class
  std::int64_t batch_size = 20;
  double lr = 2e-3;
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0: all cores
  levin::TrainerConfig trainer{.max_epochs = 20,
                               .num_sanity_val_steps = 0,
                               .accelerator = "cpu",
                               .default_root_dir = "runs/transfer",
                               .log_every_n_steps = 1};  // of all three trainings, each in a folder of its own below
};

/// False after --help; throws levin::UsageError.
bool parse(int argc, char** argv, Options& options);

/// Pictures of classes first_class to first_class + 4: `per_class` of each for training (all but the held-out ones for
/// 0), 100 of each for validation, and those of the test set.
levin::DataModule clothes(const Options& options, std::int64_t first_class, std::int64_t per_class,
                          std::int64_t batch_size);
