#pragma once
// The same training as a plain loop, without the Trainer.

#include "options.h"
#include "run_times.h"

struct RawResult {
  double test_acc = 0, test_loss = 0, val_acc = 0;
  std::string checkpoint{}, report{};
  bool reports = true;  ///< true in the one process that prints
};

RawResult train_raw(const Options& options, const levin::DataModule& data, FirstStep& first_step);
