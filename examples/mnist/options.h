#pragma once
// The program's options.

#include <levin/levin.h>

struct Options {
  std::string model = "lenet";
  std::string dataset = "fashion";
  std::string data{};  // folder of the IDX files; empty: where Debian's package installs them
  std::int64_t batch_size = 128;
  double lr = 4e-3;
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0: all cores
  bool raw = false;
  levin::TrainerConfig trainer{.max_epochs = 5,
                               .num_sanity_val_steps = 0,
                               .accelerator = "cpu",
                               .default_root_dir = "runs/mnist",
                               .logger = "csv,html"};
  std::int64_t epochs() const { return trainer.max_epochs.value_or(-1); }
};

/// Returns false after --help. Throws levin::UsageError.
bool parse(int argc, char** argv, Options& options);

/// Reads the files. The choice of held-out images depends on the seed alone.
levin::DataModule load_data(const Options& options);
