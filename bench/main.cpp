// levin_bench [--filter TEXT]... [--threads N] [--list] [FLAGS OF GOOGLE BENCHMARK]: measures operations and the rungs
// of the ladders of GEMM and convolution. tools/bench/run.py runs it, computes the shares of the roofline and compares
// runs.

#include "bench/benchmarks.h"
#include "bench/peaks.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace levin::bench {

bool wanted(const std::string& name, const Filters& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

void set_counters(benchmark::State& state, double bytes, double flops, const Speed& speed) {
  state.counters["bytes"] = bytes;
  state.counters["flops"] = flops;
  state.counters["speed GFLOP/s"] = speed.flops / 1e9;
  state.counters["speed GB/s"] = speed.bytes / 1e9;
}

namespace {

/// Writes what a reader of the figures has to know.
void add_context() {
  benchmark::AddCustomContext("peak GFLOP/s", std::to_string(peak_flops() / 1e9));
  benchmark::AddCustomContext("peak GB/s", std::to_string(peak_bytes() / 1e9));
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("instruction set", instruction_set());
  benchmark::AddCustomContext("compiler", LEVIN_BENCH_COMPILER);
  benchmark::AddCustomContext("flags", LEVIN_BENCH_FLAGS);
}

}  // namespace
}  // namespace levin::bench

int main(int argc, char** argv) {
  using namespace levin;
  bench::Filters filters;
  bool list = false;
  int kept = 1;  // arguments for Google Benchmark, with the program's name
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
      filters.emplace_back(argv[++i]);
    } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      set_num_threads(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--list") == 0) {
      list = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  bench::add_operations(filters);
  bench::add_compared_operations(filters);
  bench::add_gemm_ladder(filters);
  bench::add_conv_ladder(filters);
  char list_tests[] = "--benchmark_list_tests";
  std::vector<char*> arguments(argv, argv + kept);
  if (list) arguments.push_back(list_tests);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  if (!list) bench::add_context();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
