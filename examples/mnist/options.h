#pragma once
// What the program can be told.

#include <levin/levin.h>

struct Options {
  std::string model = "lenet";
  std::string dataset = "fashion";
  std::filesystem::path data{};  // of the IDX files; empty: where Debian's package puts them
  std::filesystem::path checkpoint = "runs/mnist";
  std::string resume{};
  std::int64_t max_epochs = 5;
  std::int64_t batch_size = 128;
  double lr = 4e-3;
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0: all cores
  levin::BatchLimit limit_train = 1.0, limit_val = 1.0, limit_test = 1.0;
  std::string precision = "32-true", accelerator = "cpu", devices = "auto";
  bool fast_dev_run = false;
  bool raw = false;
};

/// False after --help; throws levin::UsageError.
bool parse(int argc, char** argv, Options& options);

/// The held-out pictures depend on the seed alone. Reads the files.
levin::DataModule load_data(const Options& options);
