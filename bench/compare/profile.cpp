#include "profile.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace levin::bench {

void StepProfile::returned(const char* kernel, const std::type_info&, const void*, const kernels::Work& work,
                           const Stream&) {
  Row& row = rows_[kernel];
  ++row.calls;
  row.seconds += std::chrono::duration<double>(Clock::now() - start_).count();
  row.flops += work.flops;
  row.bytes += work.bytes;
}

double StepProfile::Row::floor(const Rates& rates) const {
  return std::min(seconds, std::max(flops / (0.85 * rates.flops), bytes / rates.bytes));
}

void StepProfile::print(int steps, double step_seconds, const Rates& rates) const {
  const double each = 1e3 / steps;  // ms of a step
  double seconds = 0, floor = 0;
  std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
  for (const auto& [name, row] : sorted) seconds += row.seconds, floor += row.floor(rates);
  std::ranges::sort(sorted, std::greater<>(), [&](const auto& r) { return r.second.seconds - r.second.floor(rates); });
  std::printf("step %.3f ms, kernels %.3f ms, floor %.3f ms\n", step_seconds * 1e3, seconds * each, floor * each);
  std::printf("%-32s %8s %9s %9s %9s %9s\n", "kernel", "calls", "ms", "floor ms", "GFLOP/s", "GB/s");
  for (const auto& [name, row] : sorted)
    std::printf("%-32s %8.1f %9.3f %9.3f %9.1f %9.1f\n", name.c_str(), static_cast<double>(row.calls) / steps,
                row.seconds * each, row.floor(rates) * each, 1e-9 * row.flops / row.seconds,
                1e-9 * row.bytes / row.seconds);
}

}  // namespace levin::bench
