#pragma once
// Modules for the tests of dp and ddp2.

#include <mutex>
#include <set>
#include <thread>

#include "support/comparison.h"
#include "trainer/processes.h"
#include "trainer/toy.h"

namespace levin::test {

inline TrainerConfig on_replicas(const char* strategy, int devices, TrainerConfig c = {}) {
  c.strategy = strategy;
  c.accelerator = "cpu";
  c.devices = devices;
  c.timeout = 60;
  return quiet(std::move(c));
}

/// A module of which another can be made.
template <class M>
struct Rebuilt : M {
  using M::M;
  std::unique_ptr<nn::Module> fresh() const override { return std::make_unique<Rebuilt>(); }
};

/// Records the values that loggers would get.
struct LoggedValues : Callback {
  using Values = std::vector<MetricStore::Values>;
  explicit LoggedValues(Values& v) : values(&v) {}
  Values* values;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch&, int) override {
    values->push_back(run.metrics.step_values());
    values->back().emplace_back("the loss", out.loss().item<double>());
  }
  void on_validation_end(RunContext& run) override { values->push_back(run.metrics.epoch_values(Split::validation)); }
  void on_train_epoch_end(RunContext& run) override { values->push_back(run.metrics.epoch_values(Split::train)); }
  bool is_monitoring() const override { return true; }
};

/// The largest difference of two values, whose names have to be the same.
inline double difference(const LoggedValues::Values& a, const LoggedValues::Values& b) {
  REQUIRE(a.size() == b.size());
  Largest worst;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      CHECK(a[i][k].first == b[i][k].first);
      worst.add(std::abs(a[i][k].second - b[i][k].second));
    }
  }
  return worst.value();
}

}  // namespace levin::test
