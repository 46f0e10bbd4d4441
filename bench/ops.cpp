// Benchmarks every operation case that has benchmark inputs: seconds per call, bytes and flops per second, and the
// fraction of the measured peak that bounds it.

#include "bench/peaks.h"
#include "cases/cases.h"

#include <benchmark/benchmark.h>
#include <levin/autograd/modes.h>
#include <levin/core/parallel.h>

#include <algorithm>
#include <cstdlib>

namespace levin::bench {
namespace {

using test::OpCase;
using test::Sample;

std::string label_of(const OpCase& c, const Sample& s) {
  std::string label = c.name;
  for (const auto& input : s.inputs) label += "/" + to_string(input.sizes);
  if (!s.label.empty()) label += " " + s.label;
  std::erase(label, ' ');
  return label;
}

void run_case(benchmark::State& state, const OpCase& c, const Sample& s) {
  no_grad guard;
  const auto inputs = test::make_inputs(c, s, kFloat32);
  const auto& op = test::op_of(c, s);
  const auto work = test::work_of(c, inputs, op(inputs));
  for (auto _ : state) benchmark::DoNotOptimize(op(inputs));
  const double calls = static_cast<double>(state.iterations());
  // The lower bound of the time: bytes and flops cannot exceed the peaks.
  const double floor_seconds = std::max(work.bytes / peak_bytes(), work.flops / peak_flops());
  state.counters["GB/s"] = benchmark::Counter(work.bytes * calls / 1e9, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] = benchmark::Counter(work.flops * calls / 1e9, benchmark::Counter::kIsRate);
  state.counters["share"] = benchmark::Counter(floor_seconds * calls, benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace levin::bench

int main(int argc, char** argv) {
  using namespace levin;
  if (const char* threads = std::getenv("LEVIN_BENCH_THREADS")) set_num_threads(std::atoi(threads));
  static const auto cases = test::all_cases();
  for (const auto& c : cases)
    for (const auto& s : c.bench)
      benchmark::RegisterBenchmark(bench::label_of(c, s).c_str(),
                                   [&c, &s](benchmark::State& state) { bench::run_case(state, c, s); })
          ->UseRealTime()
          ->MinTime(0.1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("peak GFLOP/s", std::to_string(bench::peak_flops() / 1e9));
  benchmark::AddCustomContext("peak GB/s", std::to_string(bench::peak_bytes() / 1e9));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
