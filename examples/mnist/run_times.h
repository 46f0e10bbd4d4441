#pragma once
// How long what took.

#include <levin/levin.h>

/// Milliseconds since the process began, by the system's own record (to 10 ms).
double ms_since_process_start();

/// Time from the process's start to the end of the first training step, less the reading of data.
struct FirstStep : levin::Callback {
  explicit FirstStep(double data_ms_) : data_ms(data_ms_) {}
  void on_train_batch_end(levin::RunContext&, const levin::StepOutput&, const levin::Batch&, int) override { done(); }
  void done() {
    if (*startup_ms < 0) *startup_ms = ms_since_process_start() - data_ms;
  }
  double data_ms;
  std::shared_ptr<double> startup_ms = std::make_shared<double>(-1.0);
};
