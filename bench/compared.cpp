// Benchmarks the operations that ./run compare measures beside PyTorch, so that the roofline says what bounds them.

#include "bench/benchmarks.h"
#include "bench/compare/operations.h"
#include "bench/kernel_work.h"

#include <functional>
#include <memory>

namespace levin::bench {
namespace {

/// The flops are those of the kernels that a call runs.
void run_operation(benchmark::State& state, const std::function<double()>& bytes, const std::function<void()>& run) {
  static const void* measured = nullptr;
  static double traffic = 0, flops = 0;
  if (measured != &run) {
    traffic = bytes();
    KernelWork done;
    run();
    flops = done.flops;
    measured = &run;
  }
  const Speed speed = speed_now();
  for (auto _ : state) run();
  set_counters(state, traffic, flops, speed);
}

}  // namespace

void add_compared_operations(const Filters& filters) {
  const auto label_of = [](const std::string& name) { return "compare/" + name; };
  for_each_operation(
      {.wanted = [&](const std::string& name) { return wanted(label_of(name), filters); },
       .visit =
           [&](const std::string& name, const std::function<double()>& bytes, const std::function<void()>& run) {
             const auto owned_bytes = std::make_shared<std::function<double()>>(bytes);
             const auto owned_run = std::make_shared<std::function<void()>>(run);
             benchmark::RegisterBenchmark(label_of(name).c_str(), [=](benchmark::State& state) {
               run_operation(state, *owned_bytes, *owned_run);
             })->UseRealTime();
           }});
}

}  // namespace levin::bench
