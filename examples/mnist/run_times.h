#pragma once
// Start-up times.

#include <levin/levin.h>

/// Returns the milliseconds since the process started, as recorded by the system with a resolution of 10 ms.
double ms_since_process_start();

/// Measures the start-up: the time from the start of the process to its first training step, without the reading of
/// data and the sanity check.
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
