#pragma once
// Where the time of a step goes: each kernel's time beside what it needs at the machine's rates.

#include <levin/kernels/kernel.h>

#include <chrono>
#include <map>
#include <string>

namespace levin::bench {

/// The rates that a floor is measured by, in operations and bytes per second.
struct Rates {
  double flops = 0, bytes = 0;
};

/// Adds up calls, time and work of the kernels that run while it lives.
class StepProfile final : public kernels::KernelObserver {
 public:
  StepProfile() : previous_(kernels::set_observer(this)) {}
  ~StepProfile() override { kernels::set_observer(previous_); }
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  void called(const char*, Device) override { start_ = Clock::now(); }
  void returned(const char* kernel, const std::type_info&, const void*, const kernels::Work& work,
                const Stream&) override;

  /// Prints a line for the step, whose time without an observer is `step_seconds`, and one for each kernel, those that
  /// take longest above their floor first. A kernel's floor is the larger of its operations at 0.85 of the peak and its
  /// bytes at the copy rate, or its own time where that is less: its data were in a cache, or Winograd saved products.
  void print(int steps, double step_seconds, const Rates& rates) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    int calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
    double floor(const Rates& rates) const;
  };

  kernels::KernelObserver* previous_;
  Clock::time_point start_{};
  std::map<std::string, Row> rows_;
};

}  // namespace levin::bench
