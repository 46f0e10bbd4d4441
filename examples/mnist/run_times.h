#pragma once
// How long what took.

#include <levin/levin.h>

/// Milliseconds since the process began, by the system's own record (to 10 ms).
double ms_since_process_start();

/// Time from the process's start to its first training step, less the reading of data and the sanity check: what a run
/// costs before it does what it is for.
struct FirstStep : levin::Callback {
  explicit FirstStep(double data_ms) : apart_ms(data_ms) {}
  void on_sanity_check_start(levin::RunContext&) override { apart_ms -= ms_since_process_start(); }
  void on_sanity_check_end(levin::RunContext&) override { apart_ms += ms_since_process_start(); }
  void on_train_batch_start(levin::RunContext&, const levin::Batch&, int) override { begin(); }
  void begin() {
    if (*startup_ms < 0) *startup_ms = ms_since_process_start() - apart_ms;
  }
  double apart_ms;
  std::shared_ptr<double> startup_ms = std::make_shared<double>(-1.0);
};
